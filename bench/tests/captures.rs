//! Answers of real servers, as they came over the wire, read by the reader the tool uses.

use std::time::Instant;

use bench::answer::{AnswerReader, Measured};
use bench::failure::Failure;
use bench::http::response::ResponseReader;

/// A capture holds the head and the body with its transfer coding already undone: a length takes its place.
fn read(name: &str, streamed: bool, read_size: usize) -> (Measured, Option<Failure>) {
    let path = format!("{}/tests/data/{name}.txt", env!("CARGO_MANIFEST_DIR"));
    let bytes = std::fs::read(path).unwrap();
    let split = bytes.windows(4).position(|window| window == b"\r\n\r\n").map(|at| at + 4);
    let split = split.unwrap_or_else(|| bytes.windows(2).position(|window| window == b"\n\n").unwrap() + 2);
    let head = String::from_utf8_lossy(&bytes[..split]).to_lowercase();
    let kept: Vec<&str> = head
        .lines()
        .filter(|line| {
            !line.is_empty() && !line.starts_with("transfer-encoding") && !line.starts_with("content-length")
        })
        .collect();
    let mut wire = kept.join("\r\n").replace("http/1.1", "HTTP/1.1").into_bytes();
    wire.extend(format!("\r\ncontent-length: {}\r\n\r\n", bytes.len() - split).bytes());
    wire.extend_from_slice(&bytes[split..]);
    let (mut response, mut answer) = (ResponseReader::default(), AnswerReader::new(streamed));
    for piece in wire.chunks(read_size) {
        response.feed(piece, Instant::now(), &mut answer).unwrap();
    }
    assert!(response.is_done(), "{name}");
    answer.finish(Ok(()), Instant::now())
}

/// Name, streamed, chunks with output, prompt and completion tokens, cached prompt tokens, words.
type Row = (&'static str, bool, Option<(u64, u64)>, Option<u64>);

const ANSWERS: &[Row] = &[
    ("llamacpp-chat-stream-usage", true, Some((26, 8)), Some(21)),
    ("llamacpp-chat-stream-nousage", true, None, None),
    ("llamacpp-completions-stream", true, Some((5, 6)), Some(1)),
    ("llamacpp-chat-nonstream", false, Some((26, 8)), Some(21)),
    ("vllm-chat-stream-usage", true, Some((8, 8)), None),
    ("vllm-chat-stream-nousage", true, None, None),
    ("vllm-completions-stream", true, Some((6, 6)), None),
    ("vllm-chat-nonstream", false, Some((8, 8)), None),
];

#[test]
fn answers_of_real_servers_are_complete_with_their_usage() {
    for (name, streamed, usage, cached) in ANSWERS {
        for read_size in [1, 13, 4096, usize::MAX] {
            let (measured, failure) = read(name, *streamed, read_size);
            assert_eq!(failure, None, "{name}");
            assert_eq!(measured.finish_reason.as_deref(), Some("length"), "{name}");
            let found =
                measured.usage.map(|usage| (usage.prompt_tokens.unwrap(), usage.completion_tokens.unwrap()));
            assert_eq!(found, *usage, "{name}");
            assert_eq!(measured.usage.and_then(|usage| usage.cached()), *cached, "{name}");
            assert_eq!(measured.done_marker, *streamed, "{name}");
            assert!(measured.chunks > 0 && measured.words > 0, "{name}");
        }
    }
}

#[test]
fn the_role_chunk_is_no_token() {
    // llama.cpp begins with content null, vLLM with an empty string: seven of its nine chunks carry output.
    let (measured, _) = read("vllm-chat-stream-usage", true, usize::MAX);
    assert_eq!(measured.chunks, 8);
}

#[test]
fn error_answers_have_their_class_and_message() {
    for (name, kind, text) in [
        ("llamacpp-error-overlong-stream", "bad_request", "exceeds the available context size"),
        ("vllm-error-overlong-stream", "bad_request", "maximum context length"),
        ("vllm-error-badmodel", "http_error", "does not exist"),
        ("llamacpp-error-badjson", "bad_request", "unexpected end of input"),
    ] {
        let failure = read(name, true, 7).1.unwrap();
        assert_eq!(failure.kind.name(), kind, "{name}");
        assert!(failure.message.contains(text), "{name}: {}", failure.message);
    }
}
