//! Chunks of one stream are alike: all but the text of a token is the same in each. What was parsed once need not be parsed
//! again.
//!
//! A chunk that was read as JSON leaves its bytes before and after the token's text. A later one with the same bytes there,
//! and between them characters that stand for themselves in a JSON string, is the same JSON with another text: what a
//! parser would say of it is known. Everything else goes to the parser.

/// Chunks in a row that were unlike the one before; then nothing is kept any more.
const MOST_MISSES: u8 = 4;

/// A longer chunk is not one of a token: keeping its bytes would cost more than it spares.
const LONGEST: usize = 4096;

/// What chunks of a stream have in common.
#[derive(Debug, Default)]
pub struct Template {
    /// The last chunk that was parsed.
    chunk: Vec<u8>,
    /// Where its text begins, after the quotation mark.
    start: usize,
    /// Bytes after the text, from the quotation mark on.
    rest: usize,
    /// The text is visible content rather than reasoning.
    visible: bool,
    misses: u8,
}

impl Template {
    /// The text of a chunk, and whether it is visible, if it is like the one before.
    pub fn text_of<'a>(&self, chunk: &'a [u8]) -> Option<(&'a str, bool)> {
        if self.start == 0 || chunk.len() < self.start + self.rest {
            return None;
        }
        let (before, tail) = chunk.split_at(self.start);
        let (text, after) = tail.split_at(tail.len() - self.rest);
        let alike =
            before == &self.chunk[..self.start] && after == &self.chunk[self.chunk.len() - self.rest..];
        let stands_for_itself = |byte: &u8| *byte >= 0x20 && *byte != b'"' && *byte != b'\\';
        if !alike || !text.iter().all(stands_for_itself) {
            return None;
        }
        Some((std::str::from_utf8(text).ok()?, self.visible))
    }

    /// Keeps a chunk that was parsed and holds nothing but `text`, which lies inside of it as it is.
    pub fn keep(&mut self, chunk: &[u8], text: &str, visible: bool) {
        let start = (text.as_ptr() as usize).wrapping_sub(chunk.as_ptr() as usize);
        let end = start.wrapping_add(text.len());
        let quoted = start > 0 && end < chunk.len() && chunk[start - 1] == b'"' && chunk[end] == b'"';
        if !quoted || chunk.len() > LONGEST || self.misses > MOST_MISSES {
            return;
        }
        // The first one is no miss; from the fifth unlike one on it is not worth the while.
        self.misses += u8::from(self.start > 0);
        self.chunk.clear();
        self.chunk.extend_from_slice(chunk);
        (self.start, self.rest, self.visible) = (start, chunk.len() - end, visible);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::Value;

    fn chunk(text: &str) -> Vec<u8> {
        format!(r#"{{"id":"a","choices":[{{"delta":{{"content":"{text}"}},"finish_reason":null}}]}}"#).into()
    }

    fn learnt(text: &str) -> (Template, Vec<u8>) {
        let (chunk, mut template) = (chunk(text), Template::default());
        let at = chunk.windows(text.len().max(1)).position(|part| part == text.as_bytes()).unwrap();
        template.keep(&chunk, std::str::from_utf8(&chunk[at..at + text.len()]).unwrap(), true);
        (template, chunk)
    }

    #[test]
    fn a_chunk_like_the_one_before_need_not_be_parsed() {
        let (template, _) = learnt("one");
        assert_eq!(template.text_of(&chunk(" zwölf")), Some((" zwölf", true)));
        assert_eq!(template.text_of(&chunk("")), Some(("", true)));
    }

    #[test]
    fn what_is_not_sure_is_left_to_the_parser() {
        let (template, _) = learnt("one");
        assert_eq!(Template::default().text_of(&chunk("one")), None);
        for text in [r"a\n", r"\u00e4", "a\",\"x\":\"", "tab\t"] {
            assert_eq!(template.text_of(&chunk(text)), None, "{text:?}");
        }
        let mut other = chunk("one");
        other[7] = b'b';
        assert_eq!(template.text_of(&other), None);
        let mut cut = chunk("x");
        cut.truncate(30);
        assert_eq!(template.text_of(&cut), None);
        let mut no_text = chunk("aa");
        let at = no_text.windows(2).position(|part| part == b"aa").unwrap();
        no_text[at] = 0xff;
        assert_eq!(template.text_of(&no_text), None, "no UTF-8");
    }

    #[test]
    fn chunks_that_are_never_alike_are_not_kept_for_ever() {
        let mut template = Template::default();
        for number in 0..20 {
            let chunk = format!(r#"{{"n":{number},"content":"x"}}"#);
            let at = chunk.len() - 3;
            template.keep(chunk.as_bytes(), &chunk[at..at + 1], true);
        }
        assert!(template.text_of(br#"{"n":19,"content":"y"}"#).is_none());
    }

    proptest! {
        #[test]
        fn what_is_taken_for_granted_is_what_the_parser_says(
            first in "[a-z ]{1,6}", bytes in prop::collection::vec(any::<u8>(), 0..12), plain in "\\PC{0,8}",
        ) {
            let (template, _) = learnt(&first);
            let whole = chunk("@");
            let at = whole.iter().position(|byte| *byte == b'@').unwrap();
            for middle in [bytes.as_slice(), plain.as_bytes()] {
                let other = [&whole[..at], middle, &whole[at + 1..]].concat();
                if let Some((text, _)) = template.text_of(&other) {
                    let parsed: Value = serde_json::from_slice(&other).unwrap();
                    prop_assert_eq!(&parsed["choices"][0]["delta"]["content"], text);
                }
            }
        }
    }
}
