//! What the load generator says of itself while it works.

use serde_json::Value;

use super::{JobFeed, Point};
use crate::row::Row;
use crate::state::live::share_done;

/// Milliseconds over which the running throughput is averaged.
pub const THROUGHPUT_WINDOW_MS: f64 = 10_000.0;

/// One report of the load generator.
#[derive(Debug, Clone, PartialEq)]
pub struct Progress {
    /// The report's place in the log: reports are in order of it, and each is there once.
    pub position: i64,
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
    /// Requests answered a second over the last interval.
    pub requests_per_second: Option<f64>,
    /// Median response time so far, milliseconds.
    pub response_time_p50_ms: Option<f64>,
}

impl Progress {
    /// How fast it goes, and in which unit: tokens where the tool counts them, else requests.
    pub fn rate(&self) -> (Option<f64>, &'static str) {
        match self.tokens_per_second {
            Some(tokens) => (Some(tokens), "tok/s"),
            None => (self.requests_per_second, "req/s"),
        }
    }

    fn read(position: i64, at: f64, payload: &Value) -> Self {
        let number = |field: &str| payload.get(field).and_then(Value::as_f64);
        Self {
            position,
            at,
            phase: payload.get("phase").and_then(Value::as_str).unwrap_or_default().to_owned(),
            done: number("done").unwrap_or(0.0),
            total: number("total"),
            failed: number("failed").unwrap_or(0.0),
            in_flight: number("in_flight").unwrap_or(0.0),
            elapsed_s: number("elapsed_s").unwrap_or(0.0),
            tokens_per_second: number("completion_tokens_per_second"),
            ttft_p50_ms: number("ttft_p50_ms"),
            requests_per_second: number("requests_per_second"),
            response_time_p50_ms: number("response_time_p50_ms"),
        }
    }
}

impl JobFeed {
    pub(super) fn fold_progress(&mut self, position: i64, payload: &Value, at: f64) -> bool {
        let place = self.progress.partition_point(|p| p.position < position);
        if self.progress.get(place).is_some_and(|p| p.position == position) {
            return false;
        }
        let progress = Progress::read(position, at, payload);
        self.progress.insert(place, progress);
        true
    }

    /// The share of the job that is done, 0 to 1, by the newest report; by the job's row where none came yet.
    pub fn share_done(&self, job: &Row) -> Option<f64> {
        match (job.text("status").as_str(), self.progress.last()) {
            ("running" | "failed" | "cancelled", Some(last)) => {
                let total = last.total.or_else(|| job.number("num_requests"))?;
                (total > 0.0).then(|| (last.done / total).clamp(0.0, 1.0))
            }
            _ => share_done(job),
        }
    }

    /// The unit of [`Self::running_throughput`]: what the newest report counts.
    pub fn running_unit(&self) -> &'static str {
        self.progress.last().map_or("tok/s", |p| p.rate().1)
    }

    /// When each phase began, in order: the job's, and between its running and its end those the load generator tells.
    /// `measured` is the time after a warm-up or ramp-up, whose requests count for nothing.
    pub fn stretches(&self) -> Vec<(f64, &str)> {
        let mut all: Vec<(f64, &str)> = self.phases.iter().map(|(at, name)| (*at, name.as_str())).collect();
        let mut before = "running";
        for report in &self.progress {
            let now = match report.phase.as_str() {
                "warmup" => "warm-up",
                "ramp_up" => "ramp-up",
                "drain" => "drain",
                "running" if before != "running" => "measured",
                "running" => "running",
                _ => continue,
            };
            if now != before {
                all.push((report.at, now));
                before = now;
            }
        }
        all.sort_by(|a, b| a.0.total_cmp(&b.0));
        all
    }

    /// The running throughput in [`Self::running_unit`] at each report: the mean of the last [`THROUGHPUT_WINDOW_MS`].
    /// Tokens are counted when an answer ends, so that single reports jump between nothing and all. The last report, said at the
    /// end over an interval too short to mean anything, is left out.
    pub fn running_throughput(&self) -> Vec<Point> {
        let unit = self.running_unit();
        let told: Vec<(f64, f64)> = self
            .progress
            .iter()
            .filter(|p| p.phase != "done")
            .filter(|p| p.rate().1 == unit)
            .filter_map(|p| Some((p.at, p.rate().0?)))
            .collect();
        let mut first = 0;
        let mut line = Vec::with_capacity(told.len());
        for (place, (at, _)) in told.iter().enumerate() {
            while told[first].0 < at - THROUGHPUT_WINDOW_MS {
                first += 1;
            }
            let window = &told[first..=place];
            let mean = window.iter().map(|(_, v)| v).sum::<f64>() / window.len() as f64;
            line.push(Point::sample(*at, mean));
        }
        line
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::live::tests::event_at;
    use super::*;
    use events::api::EventView;
    use serde_json::json;

    fn report(position: i64, payload: Value) -> EventView {
        event_at(position, "progress/o/p/w/1/c8/1", "progress.reported", payload)
    }

    #[test]
    fn the_running_throughput_is_the_mean_of_ten_seconds() {
        let mut feed = JobFeed::default();
        for second in 0..30u32 {
            let tokens = if second % 5 == 0 { 500.0 } else { 0.0 };
            let mut report = report(
                i64::from(second) + 1,
                json!({"done": second, "elapsed_s": second, "completion_tokens_per_second": tokens, "phase": "running"}),
            );
            report.occurred_at = format!("2026-11-29T20:41:{second:02}Z").parse().expect("a time");
            feed.fold(&report);
        }
        let last = feed.running_throughput().last().copied().expect("a point");
        assert!((last.avg - 1000.0 / 11.0).abs() < 1.0, "{last:?}");
    }

    #[test]
    fn the_load_generators_phases_stand_between_running_and_the_end_whatever_comes_first() {
        let mut feed = JobFeed::default();
        let at = |second: u32, position: i64, phase: &str| {
            let mut event = report(position, json!({"phase": phase, "done": 1, "elapsed_s": second}));
            event.occurred_at = format!("2026-11-29T20:41:{second:02}Z").parse().expect("a time");
            event
        };
        for (second, position, phase) in
            [(40, 9, "drain"), (10, 5, "ramp_up"), (12, 6, "ramp_up"), (20, 7, "running"), (30, 8, "running")]
        {
            feed.fold(&at(second, position, phase));
        }
        feed.fold(&at(41, 10, "done"));
        let names: Vec<&str> = feed.stretches().into_iter().map(|(_, name)| name).collect();
        assert_eq!(names, ["ramp-up", "measured", "drain"]);
        let mut plain = JobFeed::default();
        plain.fold(&at(1, 1, "running"));
        plain.fold(&at(2, 2, "done"));
        assert!(plain.stretches().is_empty());
    }

    #[test]
    fn what_generates_no_tokens_goes_by_requests() {
        let mut feed = JobFeed::default();
        feed.fold(&report(
            1,
            json!({"phase": "running", "done": 4, "elapsed_s": 2, "requests_per_second": 2.0}),
        ));
        assert_eq!((feed.running_unit(), feed.running_throughput()[0].avg), ("req/s", 2.0));
    }

    #[test]
    fn the_last_report_counts_even_in_the_same_second_as_the_one_before() {
        let mut feed = JobFeed::default();
        feed.fold(&report(7, json!({"phase": "drain", "done": 198, "total": 200, "elapsed_s": 31.0})));
        feed.fold(&report(8, json!({"phase": "done", "done": 200, "total": 200, "elapsed_s": 31.0})));
        let job: Row = serde_json::from_value(json!({"status": "running"})).expect("a row");
        assert_eq!(feed.share_done(&job), Some(1.0));
    }

    #[test]
    fn a_report_that_comes_twice_or_late_takes_its_place_once() {
        let mut feed = JobFeed::default();
        for position in [5, 9, 7, 5] {
            feed.fold(&report(position, json!({"phase": "running", "done": position, "total": 10})));
        }
        assert_eq!(feed.progress.iter().map(|p| p.done as i64).collect::<Vec<_>>(), [5, 7, 9]);
    }

    #[test]
    fn a_job_that_ended_early_shows_how_far_it_came() {
        let mut feed = JobFeed::default();
        feed.fold(&report(5, json!({"phase": "running", "done": 50, "total": 200})));
        let job: Row = serde_json::from_value(json!({"status": "cancelled"})).expect("a row");
        assert_eq!(feed.share_done(&job), Some(0.25));
    }
}
