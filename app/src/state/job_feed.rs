//! One attempt of a job as it goes: telemetry lines, the load generator's progress, log lines and phases, folded from
//! events and from what the views keep. Every addition is idempotent: an event that comes twice changes nothing.

use std::collections::BTreeMap;

use events::api::EventView;
use serde_json::Value;

use super::live::{attempt_of, kind};
use crate::row::Row;

/// Milliseconds over which the running throughput is averaged.
pub const THROUGHPUT_WINDOW_MS: f64 = 10_000.0;

/// One quantity of one source: `gpu0` `power_w`, `cpu0` `utilization`, `system` `ram_used_bytes`.
pub type LineKey = (String, String);

/// A point of a line: the mean of a short while, and its extremes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Point {
    /// Milliseconds since 1970.
    pub at: f64,
    /// The smallest value.
    pub min: f64,
    /// The mean.
    pub avg: f64,
    /// The largest value.
    pub max: f64,
}

/// What the load generator said of itself.
#[derive(Debug, Clone, PartialEq)]
pub struct Progress {
    /// Milliseconds since 1970.
    pub at: f64,
    /// `warmup`, `ramp_up`, `running`, `drain` or `done`.
    pub phase: String,
    /// Requests answered so far.
    pub done: f64,
    /// Requests asked for.
    pub total: Option<f64>,
    /// Requests that failed so far.
    pub failed: f64,
    /// Requests in flight.
    pub in_flight: f64,
    /// Seconds since the tool started.
    pub elapsed_s: f64,
    /// Generated tokens a second over the last interval.
    pub tokens_per_second: Option<f64>,
    /// Median time to first token so far, milliseconds.
    pub ttft_p50_ms: Option<f64>,
}

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

/// One attempt of a job.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct JobFeed {
    /// The attempt this is; 0 before the first.
    pub attempt: i64,
    /// Telemetry, each line in order of time.
    pub lines: BTreeMap<LineKey, Vec<Point>>,
    /// Progress, in order of time.
    pub progress: Vec<Progress>,
    /// Logs: `framework`, `tool`, `agent`; each in order of its line numbers.
    pub logs: BTreeMap<String, Vec<LogLine>>,
    /// When each phase began: milliseconds since 1970 and its name.
    pub phases: Vec<(f64, String)>,
}

impl JobFeed {
    /// Folds an event of the job or of one of its attempts' streams. True when something changed.
    pub fn fold(&mut self, event: &EventView) -> bool {
        let payload = &event.payload;
        let of_attempt = match kind(event) {
            "job" => payload.get("attempt").and_then(Value::as_i64),
            _ => attempt_of(event),
        };
        if let Some(attempt) = of_attempt.filter(|a| *a > 0) {
            if attempt < self.attempt {
                return false;
            }
            if attempt > self.attempt {
                *self = Self { attempt, ..Self::default() };
            }
        }
        match event.event_type.as_str() {
            "telemetry.sampled" => self.fold_samples(payload),
            "progress.reported" => self.fold_progress(payload, stamp(event)),
            "log.lines" => self.fold_lines(payload, stamp(event)),
            "job.claimed" => self.begin(stamp(event), "claimed"),
            "job.serving" => self.begin(stamp(event), "serving"),
            "job.running" => self.begin(stamp(event), "running"),
            "job.completed" | "job.failed" | "job.cancelled" => self.begin(stamp(event), "ended"),
            _ => false,
        }
    }

    fn begin(&mut self, at: f64, phase: &str) -> bool {
        if self.phases.iter().any(|(_, name)| name == phase) {
            return false;
        }
        let place = self.phases.partition_point(|(before, _)| *before <= at);
        self.phases.insert(place, (at, phase.to_owned()));
        true
    }

    fn fold_samples(&mut self, payload: &Value) -> bool {
        let mut changed = false;
        for sample in payload.get("samples").and_then(Value::as_array).into_iter().flatten() {
            let Some(at) = sample.get("at").and_then(Value::as_str).and_then(crate::format::millis) else {
                continue;
            };
            for gpu in sample.get("gpus").and_then(Value::as_array).into_iter().flatten() {
                let source = format!("gpu{}", gpu.get("gpu").and_then(Value::as_u64).unwrap_or(0));
                for metric in ["power_w", "utilization", "memory_used_bytes"] {
                    changed |= self.add(&source, metric, at, gpu.get(metric));
                }
            }
            for cpu in sample.get("cpus").and_then(Value::as_array).into_iter().flatten() {
                let source = format!("cpu{}", cpu.get("socket").and_then(Value::as_u64).unwrap_or(0));
                changed |= self.add(&source, "utilization", at, cpu.get("utilization"));
            }
            changed |= self.add("system", "ram_used_bytes", at, sample.pointer("/system/ram_used_bytes"));
        }
        changed
    }

    fn add(&mut self, source: &str, metric: &str, at: f64, value: Option<&Value>) -> bool {
        let Some(value) = value.and_then(Value::as_f64) else { return false };
        self.insert(source, metric, Point { at, min: value, avg: value, max: value })
    }

    /// Puts a point at its place; one that is there already stays as it is.
    fn insert(&mut self, source: &str, metric: &str, point: Point) -> bool {
        let line = self.lines.entry((source.to_owned(), metric.to_owned())).or_default();
        match line.last() {
            Some(last) if point.at <= last.at => {
                let place = line.partition_point(|p| p.at < point.at);
                if line[place].at == point.at {
                    return false;
                }
                line.insert(place, point);
            }
            _ => line.push(point),
        }
        true
    }

    fn fold_progress(&mut self, payload: &Value, at: f64) -> bool {
        let number = |field: &str| payload.get(field).and_then(Value::as_f64);
        let progress = Progress {
            at,
            phase: payload.get("phase").and_then(Value::as_str).unwrap_or_default().to_owned(),
            done: number("done").unwrap_or(0.0),
            total: number("total"),
            failed: number("failed").unwrap_or(0.0),
            in_flight: number("in_flight").unwrap_or(0.0),
            elapsed_s: number("elapsed_s").unwrap_or(0.0),
            tokens_per_second: number("completion_tokens_per_second"),
            ttft_p50_ms: number("ttft_p50_ms"),
        };
        let place = self.progress.partition_point(|p| p.elapsed_s < progress.elapsed_s);
        if self.progress.get(place).is_some_and(|p| p.elapsed_s == progress.elapsed_s) {
            return false;
        }
        if progress.phase == "drain" {
            self.begin(at, "drain");
        }
        self.progress.insert(place, progress);
        true
    }

    fn fold_lines(&mut self, payload: &Value, at: f64) -> bool {
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
        let lines = self.logs.entry(source.to_owned()).or_default();
        let place = lines.partition_point(|l| l.number < line.number);
        if lines.get(place).is_some_and(|l| l.number == line.number) {
            return false;
        }
        lines.insert(place, line);
        true
    }

    /// Adds rows of `v_log_lines`.
    pub fn add_log_rows(&mut self, rows: &[Row]) {
        for row in rows {
            let Some(number) = row.whole("line_number").filter(|n| *n > 0) else { continue };
            let line = LogLine { number: number as u64, at: row.millis("at"), text: row.text("line") };
            self.add_line(&row.text("source"), line);
        }
    }

    /// Adds rows of `v_telemetry_chunks`: every sample, a row a source and minute.
    pub fn add_chunk_rows(&mut self, rows: &[Row]) {
        for row in rows {
            let source = row.text("source");
            let times: Vec<Option<f64>> = row.list("at").iter().map(|at| crate::format::millis(at)).collect();
            for metric in ["power_w", "utilization", "memory_used_bytes", "ram_used_bytes"] {
                for (at, value) in times.iter().zip(numbers(row, metric)) {
                    if let (Some(at), Some(value)) = (*at, value) {
                        self.insert(&source, metric, Point { at, min: value, avg: value, max: value });
                    }
                }
            }
        }
    }

    /// Adds rows of `v_telemetry_series`: means and extremes of a few seconds each, all of one width.
    pub fn add_series_rows(&mut self, rows: &[Row]) {
        for row in rows {
            let (source, metric) = (row.text("source"), row.text("metric"));
            let starts = row.list("bucket_start");
            let values = numbers(row, "min").into_iter().zip(numbers(row, "avg")).zip(numbers(row, "max"));
            for (start, ((min, avg), max)) in starts.iter().zip(values) {
                if let (Some(at), Some(min), Some(avg), Some(max)) =
                    (crate::format::millis(start), min, avg, max)
                {
                    self.insert(&source, &metric, Point { at, min, avg, max });
                }
            }
        }
    }

    /// Adds what the row of `v_jobs` knows about phases and attempt.
    pub fn add_job_row(&mut self, row: &Row) {
        if let Some(attempt) = row.whole("attempt").filter(|a| *a > self.attempt) {
            *self = Self { attempt, ..Self::default() };
        }
        for (column, phase) in [
            ("claimed_at", "claimed"),
            ("serving_at", "serving"),
            ("running_at", "running"),
            ("finished_at", "ended"),
        ] {
            if let Some(at) = row.millis(column) {
                self.begin(at, phase);
            }
        }
    }

    /// When the attempt's first sample or phase was, milliseconds since 1970: second 0 of its charts.
    pub fn begins(&self) -> Option<f64> {
        let first = self.lines.values().filter_map(|line| line.first()).map(|p| p.at);
        first.chain(self.phases.iter().map(|(at, _)| *at)).min_by(f64::total_cmp)
    }

    /// When the last sample was.
    pub fn ends(&self) -> Option<f64> {
        self.lines.values().filter_map(|line| line.last()).map(|p| p.at).max_by(f64::total_cmp)
    }

    /// The sources that have a metric, in order.
    pub fn sources(&self, prefix: &str, metric: &str) -> Vec<(String, &[Point])> {
        let mut found: Vec<_> = self
            .lines
            .iter()
            .filter(|((source, m), line)| source.starts_with(prefix) && m == metric && !line.is_empty())
            .map(|((source, _), line)| (source.clone(), line.as_slice()))
            .collect();
        // gpu10 comes after gpu9.
        found.sort_by_key(|(source, _)| (source.len(), source.clone()));
        found
    }

    /// The running throughput, tokens a second, at each report: the mean of the last [`THROUGHPUT_WINDOW_MS`]. Tokens are
    /// counted when an answer ends, so that single reports jump between nothing and all. The last report, said at the
    /// end over an interval too short to mean anything, is left out.
    pub fn running_throughput(&self) -> Vec<Point> {
        let told: Vec<(f64, f64)> = self
            .progress
            .iter()
            .filter(|p| p.phase != "done")
            .filter_map(|p| Some((p.at, p.tokens_per_second?)))
            .collect();
        let mut first = 0;
        let mut line = Vec::with_capacity(told.len());
        for (place, (at, _)) in told.iter().enumerate() {
            while told[first].0 < at - THROUGHPUT_WINDOW_MS {
                first += 1;
            }
            let window = &told[first..=place];
            let mean = window.iter().map(|(_, v)| v).sum::<f64>() / window.len() as f64;
            line.push(Point { at: *at, min: mean, avg: mean, max: mean });
        }
        line
    }

    /// The newest value of a metric summed over its sources.
    pub fn newest_sum(&self, prefix: &str, metric: &str) -> Option<f64> {
        let sources = self.sources(prefix, metric);
        (!sources.is_empty()).then(|| sources.iter().filter_map(|(_, line)| line.last()).map(|p| p.avg).sum())
    }
}

/// A column that is a list of numbers, some of them absent.
fn numbers(row: &Row, column: &str) -> Vec<Option<f64>> {
    match row.value(column) {
        Some(Value::Array(list)) => list.iter().map(Value::as_f64).collect(),
        _ => Vec::new(),
    }
}

fn stamp(event: &EventView) -> f64 {
    crate::format::millis(&event.occurred_at.to_string()).unwrap_or_default()
}

/// At most `most` points: neighbours are joined, their extremes kept.
pub fn thin(line: &[Point], most: usize) -> Vec<Point> {
    let width = line.len().div_ceil(most.max(1)).max(1);
    if width == 1 {
        return line.to_vec();
    }
    line.chunks(width)
        .map(|chunk| Point {
            at: chunk[0].at,
            min: chunk.iter().map(|p| p.min).fold(f64::INFINITY, f64::min),
            avg: chunk.iter().map(|p| p.avg).sum::<f64>() / chunk.len() as f64,
            max: chunk.iter().map(|p| p.max).fold(f64::NEG_INFINITY, f64::max),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::super::live::tests::event;
    use super::*;
    use serde_json::json;

    fn sample(second: u32, power: f64) -> EventView {
        event(
            "telemetry/o/p/w/1/c8/1",
            "telemetry.sampled",
            json!({"seq": second, "interval_ms": 1000, "samples": [{"at": format!("2026-11-29T20:41:{second:02}Z"),
                "gpus": [{"gpu": 0, "power_w": power}], "cpus": [{"socket": 0, "utilization": 0.5}], "system": {}}]}),
        )
    }

    #[test]
    fn a_chart_grows_sample_by_sample() {
        let mut feed = JobFeed::default();
        for second in 0..5 {
            assert!(feed.fold(&sample(second, 100.0 + f64::from(second))));
        }
        let power: Vec<f64> = feed.sources("gpu", "power_w")[0].1.iter().map(|p| p.avg).collect();
        assert_eq!(power, [100.0, 101.0, 102.0, 103.0, 104.0]);
    }

    #[test]
    fn a_sample_that_comes_twice_or_late_is_drawn_once_and_in_its_place() {
        let mut feed = JobFeed::default();
        for second in [1, 3, 3, 2, 1] {
            feed.fold(&sample(second, f64::from(second)));
        }
        let power: Vec<f64> = feed.sources("gpu", "power_w")[0].1.iter().map(|p| p.avg).collect();
        assert_eq!(power, [1.0, 2.0, 3.0]);
    }

    #[test]
    fn a_value_that_was_not_read_leaves_no_point() {
        let mut feed = JobFeed::default();
        feed.fold(&sample(1, 9.0));
        assert!(feed.sources("system", "ram_used_bytes").is_empty());
    }

    #[test]
    fn a_new_attempt_starts_afresh() {
        let mut feed = JobFeed::default();
        feed.fold(&sample(1, 9.0));
        feed.fold(&event("job/o/p/w/1/c8", "job.claimed", json!({"attempt": 2})));
        assert!(feed.lines.is_empty());
        assert!(!feed.fold(&sample(2, 9.0)));
    }

    #[test]
    fn what_the_view_keeps_and_what_streams_in_make_one_line() {
        let mut feed = JobFeed::default();
        feed.fold(&sample(2, 102.0));
        let chunk = json!({"source": "gpu0", "at": ["2026-11-29T20:41:01Z", "2026-11-29T20:41:02Z"],
            "power_w": [101.0, 102.0], "utilization": [null, 0.5]});
        feed.add_chunk_rows(&[serde_json::from_value(chunk).expect("a row")]);
        let line =
            |metric: &str| feed.sources("gpu", metric)[0].1.iter().map(|p| p.avg).collect::<Vec<f64>>();
        assert_eq!((line("power_w"), line("utilization")), (vec![101.0, 102.0], vec![0.5]));
    }

    #[test]
    fn log_lines_keep_their_order_however_they_arrive() {
        let mut feed = JobFeed::default();
        let lines = |first: u64, lines: &[&str]| {
            event(
                "logs/o/p/w/1/c8/1",
                "log.lines",
                json!({"source": "tool", "first_line": first, "lines": lines}),
            )
        };
        feed.fold(&lines(3, &["c", "d"]));
        feed.fold(&lines(1, &["a", "b", "c"]));
        let texts: Vec<&str> = feed.logs["tool"].iter().map(|l| l.text.as_str()).collect();
        assert_eq!(texts, ["a", "b", "c", "d"]);
    }

    #[test]
    fn the_running_throughput_is_the_mean_of_ten_seconds() {
        let mut feed = JobFeed::default();
        for second in 0..30u32 {
            let tokens = if second % 5 == 0 { 500.0 } else { 0.0 };
            let mut report = event(
                "progress/o/p/w/1/c8/1",
                "progress.reported",
                json!({"done": second, "elapsed_s": second, "completion_tokens_per_second": tokens, "phase": "running"}),
            );
            report.occurred_at = format!("2026-11-29T20:41:{second:02}Z").parse().expect("a time");
            feed.fold(&report);
        }
        let last = feed.running_throughput().last().copied().expect("a point");
        assert!((last.avg - 1000.0 / 11.0).abs() < 1.0, "{last:?}");
    }

    #[test]
    fn thinning_keeps_the_extremes() {
        let line: Vec<Point> = (0..1000)
            .map(|i| Point { at: f64::from(i), min: f64::from(i), avg: f64::from(i), max: f64::from(i) })
            .collect();
        let thinned = thin(&line, 100);
        assert_eq!(thinned.len(), 100);
        assert_eq!((thinned[0].min, thinned[99].max), (0.0, 999.0));
    }
}
