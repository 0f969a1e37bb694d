//! No response makes the readers panic, and what is no complete answer is no success.
#![no_main]

use std::time::Instant;

use bench::answer::AnswerReader;
use bench::http::response::ResponseReader;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: (bool, u8, &[u8])| {
    let (streamed, size, body) = input;
    let kind = if streamed { "text/event-stream" } else { "application/json" };
    let head = format!("HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\n\r\n");
    let wire = [head.as_bytes(), body].concat();
    let (mut response, mut answer) = (ResponseReader::default(), AnswerReader::new(streamed));
    for read in wire.chunks(usize::from(size).max(1)) {
        if response.feed(read, Instant::now(), &mut answer).is_err() || response.is_complete() {
            break;
        }
    }
    let (measured, failure) = answer.finish(Ok(()), Instant::now());
    assert!(failure.is_some() || measured.finish_reason.is_some());
    // The same bytes as a whole response, head and all.
    let mut response = ResponseReader::default();
    let _ = response.feed(body, Instant::now(), &mut AnswerReader::new(streamed));
});
