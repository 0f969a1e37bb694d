//! Server-sent events by the WHATWG rules, on bytes, incrementally.
//!
//! Whatever way the bytes are cut into reads, the same events come out. An event whose single `data` line
//! lies inside one read is handed out as a slice of that read: nothing is copied.

/// One dispatched event. Bytes are as sent; a consumer that needs text decides what invalid UTF-8 means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event<'a> {
    /// The `event` field; empty means `message`.
    pub kind: &'a [u8],
    /// The `data` lines joined by line feeds.
    pub data: &'a [u8],
}

/// An incremental parser: feed it reads in order.
#[derive(Debug, Default)]
pub struct Parser {
    /// The start of a line whose end has not come yet.
    line: Vec<u8>,
    /// Data lines of the event under way, where they could not stay in the read.
    data: Vec<u8>,
    has_data: bool,
    kind: Vec<u8>,
    last_event_id: Vec<u8>,
    /// The previous byte was a carriage return: a line feed now belongs to it.
    after_cr: bool,
    /// How many bytes of a byte order mark have been seen; [`BOM_SETTLED`] once that is decided.
    bom_seen: u8,
}

const BOM: [u8; 3] = [0xEF, 0xBB, 0xBF];
const BOM_SETTLED: u8 = u8::MAX;

/// The single data line of the event under way, while it still lies in the current read.
type Borrowed<'a> = Option<&'a [u8]>;

impl Parser {
    /// A parser at the start of a stream.
    pub fn new() -> Self {
        Self::default()
    }

    /// The last `id` field seen.
    pub fn last_event_id(&self) -> &[u8] {
        &self.last_event_id
    }

    /// True when the stream stopped inside an event: what was pending is discarded, as the rules say.
    pub fn is_mid_event(&self) -> bool {
        self.has_data || !self.line.is_empty()
    }

    /// Takes one read and hands each completed event to `on_event`.
    pub fn feed<'a>(&mut self, read: &'a [u8], mut on_event: impl FnMut(Event<'_>)) {
        let mut rest = self.skip_byte_order_mark(read);
        let mut borrowed: Borrowed<'a> = None;
        loop {
            if self.after_cr {
                match rest.first() {
                    None => break,
                    Some(b'\n') => rest = &rest[1..],
                    Some(_) => {}
                }
                self.after_cr = false;
            }
            let Some(end) = memchr::memchr2(b'\n', b'\r', rest) else {
                self.line.extend_from_slice(rest);
                break;
            };
            self.after_cr = rest[end] == b'\r';
            let line = &rest[..end];
            rest = &rest[end + 1..];
            if self.line.is_empty() {
                self.take_line(line, &mut borrowed, true, &mut on_event);
            } else {
                let mut whole = std::mem::take(&mut self.line);
                whole.extend_from_slice(line);
                self.take_line(&whole, &mut None, false, &mut on_event);
                whole.clear();
                self.line = whole;
            }
        }
        if let Some(data) = borrowed {
            self.data.extend_from_slice(data);
        }
    }

    /// A byte order mark at the very start is not part of the stream; it too may arrive in pieces.
    fn skip_byte_order_mark<'a>(&mut self, read: &'a [u8]) -> &'a [u8] {
        let mut rest = read;
        while self.bom_seen != BOM_SETTLED {
            let Some(&byte) = rest.first() else { return rest };
            if byte == BOM[self.bom_seen as usize] {
                rest = &rest[1..];
                self.bom_seen += 1;
                if self.bom_seen as usize == BOM.len() {
                    self.bom_seen = BOM_SETTLED;
                }
            } else {
                let seen = self.bom_seen as usize;
                self.bom_seen = BOM_SETTLED;
                self.line.extend_from_slice(&BOM[..seen]); // it was no mark after all
            }
        }
        rest
    }

    /// Handles one whole line. `in_read` says that `line` lives as long as the read, so it may be borrowed.
    fn take_line<'a>(
        &mut self,
        line: &'a [u8],
        borrowed: &mut Borrowed<'a>,
        in_read: bool,
        on_event: &mut impl FnMut(Event<'_>),
    ) {
        if line.is_empty() {
            let data = borrowed.take();
            if self.has_data {
                on_event(Event { kind: &self.kind, data: data.unwrap_or(&self.data) });
            }
            self.has_data = false;
            self.data.clear();
            self.kind.clear();
            return;
        }
        let (field, value) = match memchr::memchr(b':', line) {
            Some(0) => return, // a comment
            Some(colon) => {
                let value = &line[colon + 1..];
                (&line[..colon], value.strip_prefix(b" ").unwrap_or(value))
            }
            None => (line, &[][..]),
        };
        match field {
            b"data" if !self.has_data => {
                self.has_data = true;
                match in_read {
                    true => *borrowed = Some(value),
                    false => self.data.extend_from_slice(value),
                }
            }
            b"data" => {
                if let Some(first) = borrowed.take() {
                    self.data.extend_from_slice(first);
                }
                self.data.push(b'\n');
                self.data.extend_from_slice(value);
            }
            b"event" => {
                self.kind.clear();
                self.kind.extend_from_slice(value);
            }
            b"id" if !value.contains(&0) => {
                self.last_event_id.clear();
                self.last_event_id.extend_from_slice(value);
            }
            _ => {} // `retry` is for reconnecting clients; unknown fields are ignored
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn parse_in_reads<'a>(reads: impl IntoIterator<Item = &'a [u8]>) -> Vec<(Vec<u8>, Vec<u8>)> {
        let mut parser = Parser::new();
        let mut events = Vec::new();
        for read in reads {
            parser.feed(read, |event| events.push((event.kind.to_vec(), event.data.to_vec())));
        }
        events
    }

    fn data_of(text: &str) -> Vec<String> {
        parse_in_reads([text.as_bytes()]).into_iter().map(|(_, d)| String::from_utf8(d).unwrap()).collect()
    }

    #[test]
    fn one_event_is_one_data_line_and_a_blank_line() {
        assert_eq!(data_of("data: hello\n\n"), ["hello"]);
    }

    #[test]
    fn only_the_first_space_after_the_colon_is_dropped() {
        assert_eq!(data_of("data:x\n\ndata:  y\n\n"), ["x", " y"]);
    }

    #[test]
    fn data_lines_are_joined_by_line_feeds() {
        assert_eq!(data_of("data: a\ndata: b\ndata\n\n"), ["a\nb\n"]);
    }

    #[test]
    fn every_line_ending_will_do() {
        assert_eq!(data_of("data: a\r\n\r\ndata: b\r\rdata: c\n\n"), ["a", "b", "c"]);
    }

    #[test]
    fn comments_and_other_fields_are_ignored() {
        assert_eq!(data_of(": ping\n\nretry: 5\nid: 7\nx: y\ndata: a\n\n"), ["a"]);
    }

    #[test]
    fn an_event_without_data_is_not_dispatched_and_forgets_its_name() {
        let events = parse_in_reads([&b"event: error\n\ndata: a\n\n"[..]]);
        assert_eq!(events, [(vec![], b"a".to_vec())]);
    }

    #[test]
    fn a_data_field_without_value_dispatches_empty_data() {
        assert_eq!(data_of("data\n\n"), [""]);
    }

    #[test]
    fn an_event_without_its_blank_line_is_discarded() {
        assert_eq!(data_of("data: a\n"), Vec::<String>::new());
    }

    #[test]
    fn a_byte_order_mark_at_the_start_is_skipped() {
        assert_eq!(data_of("\u{feff}data: a\n\n"), ["a"]);
    }

    #[test]
    fn a_carriage_return_ends_the_event_without_waiting_for_more() {
        let mut parser = Parser::new();
        let mut seen = 0;
        parser.feed(b"data: a\r\r", |_| seen += 1);
        assert_eq!(seen, 1);
    }

    #[test]
    fn a_whole_event_in_one_read_is_not_copied() {
        let read = b"data: abc\n\n".to_vec();
        Parser::new().feed(&read, |event| assert!(read.as_ptr_range().contains(&event.data.as_ptr())));
    }

    /// Lines of a stream as a conforming server may send them.
    fn any_line() -> impl Strategy<Value = String> {
        prop_oneof![
            4 => "[ -9;-~äß€]{0,12}".prop_map(|v| format!("data: {v}")),
            1 => "[ -~]{0,8}".prop_map(|v| format!("data:{v}")),
            1 => "[ -~]{0,8}".prop_map(|v| format!(":{v}")),
            1 => Just("data".to_owned()),
            1 => "(event|id|retry|other): ?[a-z0-9]{0,5}",
            4 => Just(String::new()),
        ]
    }

    proptest! {
        #[test]
        fn any_split_and_any_line_ending_give_the_same_events(
            lines in prop::collection::vec((any_line(), prop::sample::select(vec!["\n", "\r\n", "\r"])), 0..30),
            cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..12),
            mark in any::<bool>(),
        ) {
            let reference: String = lines.iter().map(|(line, _)| format!("{line}\n")).collect();
            // A lone CR before a lone LF would be one line ending: keep the endings unambiguous.
            let mut mixed = String::from(if mark { "\u{feff}" } else { "" });
            for (line, ending) in &lines {
                let joins = line.is_empty() && mixed.ends_with('\r') && *ending == "\n";
                mixed.push_str(line);
                mixed.push_str(if joins { "\r\n" } else { ending });
            }
            let bytes = mixed.as_bytes();
            let mut places: Vec<usize> = cuts.iter().map(|cut| cut.index(bytes.len() + 1)).collect();
            places.extend([0, bytes.len()]);
            places.sort_unstable();
            let reads = places.windows(2).map(|w| &bytes[w[0]..w[1]]);
            prop_assert_eq!(parse_in_reads(reads), parse_in_reads([reference.as_bytes()]));
        }

        #[test]
        fn byte_by_byte_equals_all_at_once(bytes in prop::collection::vec(
            prop::sample::select(b"da:t\n\r \xEF\xBB\xBF:eventx".to_vec()), 0..80)) {
            prop_assert_eq!(parse_in_reads(bytes.chunks(1)), parse_in_reads([&bytes[..]]));
        }
    }
}
