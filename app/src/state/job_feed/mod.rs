//! One attempt of a job as it goes: telemetry lines, the load generator's progress, log lines and phases, folded from
//! events and from what the views keep. Every addition is idempotent: an event that comes twice changes nothing.

mod line;
mod logs;
mod progress;
mod summary;

use std::collections::BTreeMap;

use events::api::EventView;
use serde_json::Value;

use super::live::{attempt_of, kind};
use crate::row::Row;

pub use line::{Line, Point, Resolution, thin};
pub use logs::{Hits, LogLine, Logs, around, level};
pub use progress::{Progress, THROUGHPUT_WINDOW_MS};
pub use summary::Summary;

/// One quantity of one source: `gpu0` `power_w`, `cpu0` `utilization`, `system` `ram_used_bytes`.
pub type LineKey = (String, String);

/// One attempt of a job.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct JobFeed {
    /// The attempt this is; 0 before the first.
    pub attempt: i64,
    /// Telemetry values taken since this was made: each once, forgotten ones too.
    pub taken: u64,
    /// Telemetry, each line in order of time.
    pub lines: BTreeMap<LineKey, Line>,
    /// Progress, in order of the log.
    pub progress: Vec<Progress>,
    /// Logs: `framework`, `tool`, `agent`; each in order of its line numbers.
    pub logs: Logs,
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
            "telemetry.sampled" => self.fold_samples(event.position, payload),
            "progress.reported" => self.fold_progress(event.position, payload, stamp(event)),
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

    fn fold_samples(&mut self, position: i64, payload: &Value) -> bool {
        let mut changed = false;
        for sample in payload.get("samples").and_then(Value::as_array).into_iter().flatten() {
            let Some(at) = sample.get("at").and_then(Value::as_str).and_then(crate::format::millis) else {
                continue;
            };
            for gpu in sample.get("gpus").and_then(Value::as_array).into_iter().flatten() {
                let source = format!("gpu{}", gpu.get("gpu").and_then(Value::as_u64).unwrap_or(0));
                for metric in ["power_w", "utilization", "memory_used_bytes"] {
                    changed |= self.add(position, &source, metric, at, gpu.get(metric));
                }
            }
            for cpu in sample.get("cpus").and_then(Value::as_array).into_iter().flatten() {
                let source = format!("cpu{}", cpu.get("socket").and_then(Value::as_u64).unwrap_or(0));
                changed |= self.add(position, &source, "utilization", at, cpu.get("utilization"));
            }
            changed |=
                self.add(position, "system", "ram_used_bytes", at, sample.pointer("/system/ram_used_bytes"));
        }
        changed
    }

    fn add(&mut self, position: i64, source: &str, metric: &str, at: f64, value: Option<&Value>) -> bool {
        let Some(value) = value.and_then(Value::as_f64) else { return false };
        let line = self.lines.entry((source.to_owned(), metric.to_owned())).or_default();
        let new = line.add(position, at, value);
        self.taken += u64::from(new);
        new
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
        let first = self.lines.values().filter_map(|line| line.points().first()).map(|p| p.at);
        first.chain(self.phases.iter().map(|(at, _)| *at)).min_by(f64::total_cmp)
    }

    /// When the last sample was.
    pub fn ends(&self) -> Option<f64> {
        self.lines.values().filter_map(|line| line.points().last()).map(|p| p.at).max_by(f64::total_cmp)
    }

    /// The sources that have a metric, in order.
    pub fn sources(&self, prefix: &str, metric: &str) -> Vec<(String, &[Point])> {
        let mut found: Vec<_> = self
            .lines
            .iter()
            .filter(|((source, m), line)| {
                source.starts_with(prefix) && m == metric && !line.points().is_empty()
            })
            .map(|((source, _), line)| (source.clone(), line.points()))
            .collect();
        // gpu10 comes after gpu9.
        found.sort_by_key(|(source, _)| (source.len(), source.clone()));
        found
    }

    /// Forgets what is older than a moment: all that a strip shows is the last minute.
    pub fn keep_since(&mut self, at: f64, samples: usize) {
        self.progress.retain(|p| p.at >= at);
        for line in self.lines.values_mut() {
            line.keep_last(samples);
        }
    }

    /// Whether a sample or a report came after a moment.
    pub fn heard_since(&self, at: f64) -> bool {
        self.ends().into_iter().chain(self.progress.last().map(|p| p.at)).any(|last| last >= at)
    }
}

fn stamp(event: &EventView) -> f64 {
    crate::format::millis(&event.occurred_at.to_string()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::super::live::tests::{event, event_at};
    use super::*;
    use serde_json::json;

    fn sample(second: u32, power: f64) -> EventView {
        event_at(
            i64::from(second) + 1,
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
        // Power and utilization of three seconds.
        assert_eq!(feed.taken, 6);
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
        feed.fold(&sample(3, 103.0));
        let chunk = json!({"source": "gpu0", "at": ["2026-11-29T20:41:01Z", "2026-11-29T20:41:02Z"],
            "power_w": [101.0, 102.0], "utilization": [null, 0.5], "position": 3});
        feed.take_telemetry(Resolution::Samples, &[serde_json::from_value(chunk).expect("a row")]);
        let line =
            |metric: &str| feed.sources("gpu", metric)[0].1.iter().map(|p| p.avg).collect::<Vec<f64>>();
        assert_eq!((line("power_w"), line("utilization")), (vec![101.0, 102.0, 103.0], vec![0.5]));
    }
}
