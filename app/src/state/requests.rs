//! A job's requests, as its load generator logged them: one line a request. Folded as they come, so that a log of any
//! size is read in small pieces.

use std::collections::BTreeMap;

use serde::Deserialize;

/// Requests that the waterfall shows at once.
pub const WINDOW: usize = 36;
/// Requests of one kind of error that are named.
const MOST_NAMED: usize = 6;

/// One line of a request log; what the page does not show is passed over.
#[derive(Debug, Deserialize)]
struct Line {
    index: u64,
    #[serde(default)]
    phase: String,
    outcome: String,
    started_unix_ns: u64,
    ended_unix_ns: u64,
    #[serde(default)]
    first_output_unix_ns: Option<u64>,
    #[serde(default)]
    error_type: Option<String>,
    #[serde(default)]
    error: Option<String>,
    #[serde(default)]
    usage: Option<Usage>,
}

#[derive(Debug, Deserialize)]
struct Usage {
    #[serde(default)]
    completion_tokens: Option<u64>,
}

/// One request.
#[derive(Debug, Clone, PartialEq)]
pub struct Request {
    /// Its number in the order in which requests were sent.
    pub index: u64,
    /// Its line in the log, from 1.
    pub line: u64,
    /// When it was sent, nanoseconds since 1970.
    started: u64,
    /// Nanoseconds from there until the first piece of the answer; nothing where none came or it was not streamed.
    first: Option<u64>,
    /// Nanoseconds until it ended.
    total: u64,
    /// Whether it counts: warm-up and ramp-up do not.
    pub measured: bool,
    /// Output tokens, as the server counted them.
    pub tokens: Option<u64>,
    /// The kind of error; nothing where it was answered.
    pub failure: Option<String>,
}

impl Request {
    /// Milliseconds until the first piece of the answer.
    pub fn first_ms(&self) -> Option<f64> {
        self.first.map(|ns| ns as f64 / 1e6)
    }

    /// Seconds until it ended.
    pub fn total_s(&self) -> f64 {
        self.total as f64 / 1e9
    }
}

/// What failed in one way.
#[derive(Debug, Clone, PartialEq)]
pub struct ErrorKind {
    /// The kind, as the load generator names it.
    pub kind: String,
    /// What the first of them said.
    pub example: String,
    /// How many.
    pub count: usize,
    /// The first requests of it.
    pub requests: Vec<u64>,
}

/// All requests that were read.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Requests {
    list: Vec<Request>,
    errors: BTreeMap<String, ErrorKind>,
    /// The piece of a line that the next bytes continue.
    rest: Vec<u8>,
    /// Lines that could not be read.
    pub unreadable: usize,
    /// Lines that were looked at.
    lines: u64,
    sorted: bool,
}

impl Requests {
    /// Takes the next bytes of the log.
    pub fn add(&mut self, bytes: &[u8]) {
        let mut from = 0;
        while let Some(end) = bytes[from..].iter().position(|b| *b == b'\n').map(|n| from + n) {
            if self.rest.is_empty() {
                self.line(&bytes[from..end]);
            } else {
                let mut line = std::mem::take(&mut self.rest);
                line.extend_from_slice(&bytes[from..end]);
                self.line(&line);
            }
            from = end + 1;
        }
        self.rest.extend_from_slice(&bytes[from..]);
    }

    /// The log ended: what is left is its last line, and the requests are put in the order in which they were sent.
    pub fn end(&mut self) {
        let line = std::mem::take(&mut self.rest);
        self.line(&line);
        self.list.sort_by_key(|r| (r.started, r.index));
        self.sorted = true;
    }

    /// The reading was broken off on purpose: half a line is no line.
    pub fn cut(&mut self) {
        self.rest.clear();
        self.end();
    }

    fn line(&mut self, line: &[u8]) {
        self.lines += 1;
        if line.iter().all(u8::is_ascii_whitespace) {
            return;
        }
        let Ok(line) = serde_json::from_slice::<Line>(line) else {
            self.unreadable += 1;
            return;
        };
        let failure = match line.outcome.as_str() {
            "success" => None,
            "failed" => Some(line.error_type.unwrap_or_else(|| "failed".into())),
            other => Some(other.to_owned()),
        };
        if let Some(kind) = &failure {
            let of = self.errors.entry(kind.clone()).or_insert_with(|| ErrorKind {
                kind: kind.clone(),
                example: line.error.unwrap_or_default(),
                count: 0,
                requests: Vec::new(),
            });
            of.count += 1;
            if of.requests.len() < MOST_NAMED {
                of.requests.push(line.index);
            }
        }
        self.list.push(Request {
            index: line.index,
            line: self.lines,
            started: line.started_unix_ns,
            first: line.first_output_unix_ns.map(|at| at.saturating_sub(line.started_unix_ns)),
            total: line.ended_unix_ns.saturating_sub(line.started_unix_ns),
            measured: line.phase.is_empty() || line.phase == "measured",
            tokens: line.usage.and_then(|u| u.completion_tokens),
            failure,
        });
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.list.len()
    }

    /// Whether none was read.
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// What failed, the most frequent first.
    pub fn errors(&self) -> Vec<ErrorKind> {
        let mut kinds: Vec<ErrorKind> = self.errors.values().cloned().collect();
        kinds.sort_by(|a, b| b.count.cmp(&a.count).then_with(|| a.kind.cmp(&b.kind)));
        kinds
    }

    /// The requests from a place on, as they were sent, with the second into the job's requests at which each began.
    pub fn window(&self, from: usize) -> Vec<(f64, &Request)> {
        let zero = self.list.first().map_or(0, |r| r.started);
        let from = from.min(self.list.len().saturating_sub(WINDOW));
        let at = |r: &Request| r.started.saturating_sub(zero) as f64 / 1e9;
        self.list.iter().skip(from).take(WINDOW).map(|r| (at(r), r)).collect()
    }

    /// The place from which a window shows this request in its middle.
    pub fn around(&self, index: u64) -> Option<usize> {
        let place = self.list.iter().position(|r| r.index == index)?;
        Some(place.saturating_sub(WINDOW / 2).min(self.list.len().saturating_sub(WINDOW)))
    }

    /// The request that took longest, among those that were answered.
    pub fn slowest(&self) -> Option<u64> {
        self.list.iter().filter(|r| r.failure.is_none()).max_by_key(|r| r.total).map(|r| r.index)
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    pub(crate) fn log(requests: usize, failing: &[usize]) -> String {
        (0..requests)
            .map(|n| {
                let start = 1_700_000_000_000_000_000u64 + n as u64 * 250_000_000;
                let fails = failing.contains(&n);
                let line = json!({
                    "index": n, "phase": "measured", "outcome": if fails { "failed" } else { "success" },
                    "started_unix_ns": start, "ended_unix_ns": start + 2_000_000_000 + n as u64,
                    "first_output_unix_ns": if fails { None } else { Some(start + 100_000_000) },
                    "error_type": fails.then_some("connect"), "error": fails.then_some("connection reset"),
                    "usage": {"prompt_tokens": 5, "completion_tokens": 64}, "streamed": true,
                });
                format!("{line}\n")
            })
            .collect()
    }

    pub(crate) fn read(text: &str) -> Requests {
        let mut requests = Requests::default();
        requests.add(text.as_bytes());
        requests.end();
        requests
    }

    #[test]
    fn nanoseconds_since_1970_are_not_rounded_away() {
        let requests = read(&log(3, &[]));
        let window = requests.window(0);
        assert_eq!(
            (window[1].0, window[1].1.first_ms(), window[1].1.total_s()),
            (0.25, Some(100.0), 2.000_000_001)
        );
    }

    #[test]
    fn a_window_shows_a_failure_in_its_middle_and_ends_with_the_last() {
        let requests = read(&log(200, &[120]));
        assert_eq!(requests.errors()[0].requests, [120]);
        let from = requests.around(120).expect("it is there");
        assert_eq!(requests.window(from)[WINDOW / 2].1.failure.as_deref(), Some("connect"));
        assert_eq!(requests.window(10_000).last().map(|(_, r)| r.index), Some(199));
        assert_eq!(requests.slowest(), Some(199));
    }

    #[test]
    fn requests_stand_in_the_order_in_which_they_were_sent() {
        let mut lines: Vec<String> = log(20, &[]).lines().map(|l| format!("{l}\n")).collect();
        lines.reverse();
        let requests = read(&lines.concat());
        let order: Vec<u64> = requests.window(0).iter().map(|(_, r)| r.index).collect();
        assert_eq!(order, (0..20).collect::<Vec<u64>>());
        // Each is still known by its line in the log.
        let lines: Vec<u64> = requests.window(0).iter().map(|(_, r)| r.line).collect();
        assert_eq!(lines, (1..=20).rev().collect::<Vec<u64>>());
    }

    #[test]
    fn a_line_that_is_none_is_counted_and_half_a_line_at_a_cut_is_not() {
        let mut requests = Requests::default();
        requests.add(format!("nonsense\n{}{{\"index\": 7", log(2, &[])).as_bytes());
        requests.cut();
        assert_eq!((requests.len(), requests.unreadable), (2, 1));
    }

    proptest! {
        #[test]
        fn however_the_bytes_are_cut_the_requests_are_the_same(cuts in proptest::collection::vec(0usize..3000, 0..12)) {
            let text = log(12, &[3, 5]);
            let mut cuts: Vec<usize> = cuts.into_iter().map(|c| c.min(text.len())).chain([0, text.len()]).collect();
            cuts.sort_unstable();
            let mut pieces = Requests::default();
            for pair in cuts.windows(2) {
                pieces.add(&text.as_bytes()[pair[0]..pair[1]]);
            }
            pieces.end();
            prop_assert_eq!(pieces, read(&text));
        }
    }
}
