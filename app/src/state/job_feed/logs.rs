//! The log lines of an attempt: kept in order, searched as they grow, drawn a screenful at a time.

use std::collections::BTreeMap;

use serde_json::Value;

use super::JobFeed;
use crate::row::Row;

/// A log line.
#[derive(Debug, Clone, PartialEq)]
pub struct LogLine {
    /// Its number in its source, from 1.
    pub number: u64,
    /// Milliseconds since 1970, as the agent's report has it.
    pub at: Option<f64>,
    /// The line.
    pub text: String,
}

/// Log lines by source: `framework`, `tool`, `agent`; each in order of its line numbers.
pub type Logs = BTreeMap<String, Vec<LogLine>>;

impl JobFeed {
    pub(super) fn fold_lines(&mut self, payload: &Value, at: f64) -> bool {
        let source = payload.get("source").and_then(Value::as_str).unwrap_or("agent");
        let first = payload.get("first_line").and_then(Value::as_u64).unwrap_or(1);
        let mut changed = false;
        for (offset, text) in payload.get("lines").and_then(Value::as_array).into_iter().flatten().enumerate()
        {
            let line = LogLine {
                number: first + offset as u64,
                at: Some(at),
                text: text.as_str().unwrap_or_default().to_owned(),
            };
            changed |= self.add_line(source, line);
        }
        changed
    }

    /// Puts a log line at its place; one that is there already stays as it is.
    pub fn add_line(&mut self, source: &str, line: LogLine) -> bool {
        let lines = match self.logs.get_mut(source) {
            Some(lines) => lines,
            None => self.logs.entry(source.to_owned()).or_default(),
        };
        let place = match lines.last() {
            Some(last) if line.number <= last.number => lines.partition_point(|l| l.number < line.number),
            _ => lines.len(),
        };
        if lines.get(place).is_some_and(|l| l.number == line.number) {
            return false;
        }
        lines.insert(place, line);
        true
    }

    /// Adds rows of `v_log_lines` of one source; answers the last line's number.
    pub fn add_log_rows(&mut self, source: &str, rows: &[Row]) -> Option<u64> {
        let mut last = None;
        for row in rows {
            let Some(number) = row.whole("line_number").and_then(|n| u64::try_from(n).ok()) else { continue };
            self.add_line(source, LogLine { number, at: row.millis("at"), text: row.text("line") });
            last = last.max(Some(number));
        }
        last
    }
}

/// The places of the lines that hold a text, whatever its case. It goes on where it stopped as lines are added.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Hits {
    find: String,
    scanned: usize,
    last_number: u64,
    places: Vec<u32>,
}

impl Hits {
    /// Brings itself up to date with the lines.
    pub fn follow(&mut self, lines: &[LogLine], find: &str) {
        // Another text, another stream, or a line that came late: from the start.
        let same = self.find == find
            && self.scanned <= lines.len()
            && (self.scanned == 0 || lines[self.scanned - 1].number == self.last_number);
        if !same {
            *self = Self { find: find.to_owned(), ..Self::default() };
        }
        if !self.find.is_empty() {
            for (place, line) in lines.iter().enumerate().skip(self.scanned) {
                if find_ignoring_case(&line.text, &self.find).is_some() {
                    self.places.push(place as u32);
                }
            }
        }
        self.scanned = lines.len();
        self.last_number = lines.last().map_or(0, |l| l.number);
    }

    /// How many lines are shown: the hits, or all lines where nothing is looked for.
    pub fn shown(&self) -> usize {
        if self.find.is_empty() { self.scanned } else { self.places.len() }
    }

    /// The place, among all lines, of the nth line shown.
    pub fn place(&self, nth: usize) -> Option<usize> {
        if self.find.is_empty() {
            (nth < self.scanned).then_some(nth)
        } else {
            self.places.get(nth).map(|place| *place as usize)
        }
    }
}

/// Where a text is found in a line, compared without regard to ASCII case: its first and last byte.
pub fn find_ignoring_case(line: &str, find: &str) -> Option<(usize, usize)> {
    if find.is_empty() || find.len() > line.len() {
        return None;
    }
    let (hay, needle) = (line.as_bytes(), find.as_bytes());
    let first = [needle[0].to_ascii_lowercase(), needle[0].to_ascii_uppercase()];
    (0..=hay.len() - needle.len())
        .find(|at| first.contains(&hay[*at]) && hay[*at..*at + needle.len()].eq_ignore_ascii_case(needle))
        .map(|at| (at, at + needle.len()))
}

/// A line in three parts around the first hit.
pub fn around(line: &str, find: &str) -> Option<(String, String, String)> {
    let (at, end) = find_ignoring_case(line, find)?;
    Some((line.get(..at)?.to_owned(), line.get(at..end)?.to_owned(), line.get(end..)?.to_owned()))
}

/// How bad a line is, by the words in it.
pub fn level(line: &str) -> &'static str {
    let end = line.char_indices().nth(120).map_or(line.len(), |(at, _)| at);
    let has = |word: &str| find_ignoring_case(&line[..end], word).is_some();
    if has("error") || has("fatal") || has("panic") {
        "error"
    } else if has("warn") {
        "warning"
    } else {
        "info"
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::live::tests::event;
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    fn lines(texts: &[&str]) -> Vec<LogLine> {
        let line =
            |(n, text): (usize, &&str)| LogLine { number: n as u64 + 1, at: None, text: (*text).to_owned() };
        texts.iter().enumerate().map(line).collect()
    }

    #[test]
    fn log_lines_keep_their_order_however_they_arrive() {
        let mut feed = JobFeed::default();
        let report = |first: u64, lines: &[&str]| {
            event(
                "logs/o/p/w/1/c8/1",
                "log.lines",
                json!({"source": "tool", "first_line": first, "lines": lines}),
            )
        };
        feed.fold(&report(3, &["c", "d"]));
        feed.fold(&report(1, &["a", "b", "c"]));
        let texts: Vec<&str> = feed.logs["tool"].iter().map(|l| l.text.as_str()).collect();
        assert_eq!(texts, ["a", "b", "c", "d"]);
    }

    #[test]
    fn rows_of_the_view_join_what_streamed_in() {
        let mut feed = JobFeed::default();
        feed.add_line("tool", LogLine { number: 2, at: None, text: "live".into() });
        let rows: Vec<Row> =
            [json!({"line_number": 1, "line": "old"}), json!({"line_number": 2, "line": "live"})]
                .map(|row| serde_json::from_value(row).expect("a row"))
                .to_vec();
        assert_eq!(feed.add_log_rows("tool", &rows), Some(2));
        assert_eq!(feed.logs["tool"].len(), 2);
    }

    #[test]
    fn a_search_marks_the_hit_whatever_its_case() {
        assert_eq!(
            around("Avg Generation Throughput: 5", "generation"),
            Some(("Avg ".into(), "Generation".into(), " Throughput: 5".into()))
        );
        assert_eq!(around("Größe", "x"), None);
        assert_eq!(around("Größe", ""), None);
    }

    #[test]
    fn a_search_grows_with_the_log_and_starts_again_for_a_line_that_came_late() {
        let mut hits = Hits::default();
        let mut all = lines(&["an Error", "fine"]);
        hits.follow(&all, "error");
        all.push(LogLine { number: 4, at: None, text: "error again".into() });
        hits.follow(&all, "error");
        assert_eq!((hits.shown(), hits.place(1)), (2, Some(2)));
        all.insert(2, LogLine { number: 3, at: None, text: "late error".into() });
        hits.follow(&all, "error");
        assert_eq!((hits.shown(), hits.place(2)), (3, Some(3)));
        hits.follow(&all, "");
        assert_eq!(hits.shown(), 4);
    }

    #[test]
    fn bad_lines_are_told_by_their_words() {
        assert_eq!(
            (level("E  fatal: out of memory"), level("WARN slow"), level("ready")),
            ("error", "warning", "info")
        );
    }

    proptest! {
        #[test]
        fn a_search_finds_what_lower_case_finds(line in "[ -~]{0,40}", find in "[ -~]{1,3}") {
            let expected = line.to_ascii_lowercase().find(&find.to_ascii_lowercase());
            prop_assert_eq!(find_ignoring_case(&line, &find).map(|(at, _)| at), expected);
        }

        #[test]
        fn a_search_in_parts_is_a_search_at_once(texts in proptest::collection::vec("[abAB]{0,4}", 0..30), cut in 0usize..30) {
            let all = lines(&texts.iter().map(String::as_str).collect::<Vec<_>>());
            let (mut parts, mut once) = (Hits::default(), Hits::default());
            parts.follow(&all[..cut.min(all.len())], "ab");
            parts.follow(&all, "ab");
            once.follow(&all, "ab");
            prop_assert_eq!(parts, once);
        }
    }
}
