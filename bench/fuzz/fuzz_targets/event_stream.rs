//! However a stream is cut into reads, the same events come out of it.
#![no_main]

use bench::sse::Parser;
use libfuzzer_sys::fuzz_target;

fn events<'a>(reads: impl Iterator<Item = &'a [u8]>) -> Vec<(Vec<u8>, Vec<u8>)> {
    let (mut parser, mut events) = (Parser::new(), Vec::new());
    for read in reads {
        parser.feed(read, |event| events.push((event.kind.to_vec(), event.data.to_vec())));
    }
    events
}

fuzz_target!(|input: (u8, &[u8])| {
    let (size, bytes) = input;
    let whole = events(std::iter::once(bytes));
    assert_eq!(events(bytes.chunks(usize::from(size).max(1))), whole);
});
