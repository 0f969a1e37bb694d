//! Cuts a stream of bytes into lines that can be stored and shown.

/// Longer lines are cut into pieces of at most this many bytes.
const LONGEST_LINE: usize = 8 << 10;

/// A splitter for one stream. `\n`, `\r\n` and a lone `\r` (a progress bar's) each end a line.
#[derive(Debug, Default)]
pub struct LineSplitter {
    line: Vec<u8>,
    after_cr: bool,
}

impl LineSplitter {
    /// Takes the next chunk and gives the lines it completed.
    pub fn push(&mut self, chunk: &[u8]) -> Vec<String> {
        let mut lines = Vec::new();
        for &byte in chunk {
            let after_cr = std::mem::replace(&mut self.after_cr, byte == b'\r');
            match byte {
                b'\n' if after_cr => {}
                b'\n' | b'\r' => lines.push(self.take_line()),
                _ => {
                    self.line.push(byte);
                    if self.line.len() >= LONGEST_LINE {
                        lines.push(self.take_piece());
                    }
                }
            }
        }
        lines
    }

    /// Ends the stream and gives a last line without its end.
    pub fn finish(&mut self) -> Option<String> {
        (!self.line.is_empty()).then(|| self.take_line())
    }

    fn take_line(&mut self) -> String {
        clean(&std::mem::take(&mut self.line))
    }

    /// The line so far, without a character that is cut in two.
    fn take_piece(&mut self) -> String {
        let cut = (1..4)
            .map(|back| self.line.len() - back)
            .find(|&at| self.line[at] & 0xC0 != 0x80)
            .filter(|&at| self.line[at] >= 0xC0 && self.line.len() - at < width(self.line[at]))
            .unwrap_or(self.line.len());
        let rest = self.line.split_off(cut);
        clean(&std::mem::replace(&mut self.line, rest))
    }
}

/// How many bytes a character takes that begins with this byte.
fn width(first: u8) -> usize {
    match first {
        0xF0.. => 4,
        0xE0.. => 3,
        0xC0.. => 2,
        _ => 1,
    }
}

/// Replaces what is not UTF-8 or cannot be shown, and drops the colour codes of terminals.
fn clean(line: &[u8]) -> String {
    let text = String::from_utf8_lossy(line);
    if !text.chars().any(|c| c.is_control() && c != '\t') {
        return text.into_owned();
    }
    let mut clean = String::with_capacity(text.len());
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '\u{1b}' if chars.peek() == Some(&'[') => {
                chars.next();
                // Parameters up to the letter that says what they are for.
                for c in chars.by_ref() {
                    if ('@'..='~').contains(&c) {
                        break;
                    }
                }
            }
            '\t' => clean.push('\t'),
            c if c.is_control() => clean.push('\u{FFFD}'),
            c => clean.push(c),
        }
    }
    clean
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn lines(chunks: &[&[u8]]) -> Vec<String> {
        let mut splitter = LineSplitter::default();
        let mut lines: Vec<String> = chunks.iter().flat_map(|chunk| splitter.push(chunk)).collect();
        lines.extend(splitter.finish());
        lines
    }

    #[test]
    fn each_kind_of_line_end_ends_a_line_also_across_chunks() {
        assert_eq!(lines(&[b"a\nb\r", b"\nc\rd\n\ne"]), ["a", "b", "c", "d", "", "e"]);
    }

    #[test]
    fn what_is_not_utf8_is_replaced_and_colours_are_dropped() {
        assert_eq!(lines(&[b"a\xFFb \x1b[32mgreen\x1b[0m \x00\n"]), ["a\u{FFFD}b green \u{FFFD}"]);
    }

    #[test]
    fn a_character_cut_by_a_chunk_is_put_together_again() {
        assert_eq!(lines(&["ü".as_bytes().split_at(1).0, "ü".as_bytes().split_at(1).1]), ["ü"]);
    }

    proptest! {
        #[test]
        fn a_long_line_is_cut_between_characters_and_loses_nothing(text in "[aü€😀]{0,9000}") {
            let pieces = lines(&[text.as_bytes()]);
            prop_assert_eq!(pieces.concat(), text);
            prop_assert!(pieces.iter().all(|piece| piece.len() <= LONGEST_LINE));
        }
    }
}
