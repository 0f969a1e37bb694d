//! The event parser alone.

use std::time::{Duration, Instant};

use bench::openai::Answer;
use bench::sse::Parser;

const EVENT: &[u8] = b"data: {\"id\":\"chatcmpl-8e000a6f6d2b5cd5\",\"object\":\"chat.completion.chunk\",\"created\":1795980885,\"model\":\"tiny-llama\",\
\"choices\":[{\"index\":0,\"delta\":{\"content\":\" ack\"},\"logprobs\":null,\"finish_reason\":null,\"token_ids\":null}]}\n\n";

/// Events a second on one core, and with the JSON of each event read too.
pub fn print() {
    println!("\nevents a second on one core, 220 bytes each");
    let many = EVENT.repeat(64 * 1024 / EVENT.len());
    for (name, read) in [("one event a read", EVENT), ("64 KiB a read", &many[..])] {
        for json in [false, true] {
            let name = format!("{name}{}", if json { ", with its JSON" } else { "" });
            println!("  {name:<34}{:>12.0}", rate(read, json));
        }
    }
}

fn rate(read: &[u8], json: bool) -> f64 {
    let (mut parser, mut events, mut bytes) = (Parser::new(), 0u64, 0usize);
    let began = Instant::now();
    while began.elapsed() < Duration::from_millis(700) {
        for _ in 0..if read.len() > 1000 { 4 } else { 1000 } {
            parser.feed(std::hint::black_box(read), |event| {
                events += 1;
                bytes += match json {
                    true => {
                        let answer: Answer = serde_json::from_slice(event.data).expect("the event is JSON");
                        answer.choices.len()
                    }
                    false => event.data.len(),
                };
            });
        }
    }
    std::hint::black_box(bytes);
    events as f64 / began.elapsed().as_secs_f64()
}
