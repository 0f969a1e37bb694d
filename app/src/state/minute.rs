//! The last minute of running jobs, as strips show it. Of telemetry a strip shows what is now, of progress the minute: no
//! more is kept, however long a page watches however many jobs.

use std::collections::HashMap;
use std::sync::Arc;

use events::api::EventView;

use super::job_feed::JobFeed;
use super::live::job_of;
use crate::format::millis;

/// Milliseconds that a strip looks back.
const LOOK_BACK_MS: f64 = 60_000.0;
/// Samples kept of each line, of which the newest is shown; the others are there for samples that come late.
const SAMPLES: usize = 2;

/// What a job's strip shows.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Minute {
    /// The running throughput in its unit, oldest first.
    pub tokens: Vec<f64>,
    /// What is counted: `tok/s`, or `req/s` where no tokens are generated.
    pub unit: &'static str,
    /// The newest power of each GPU, watts; empty where none is read.
    pub power: Vec<f64>,
    /// The newest utilization of the CPU, the mean of its sockets, per cent.
    pub cpu: Option<f64>,
    /// Telemetry values taken since the page watches.
    pub values: u64,
}

impl Minute {
    fn of(feed: &JobFeed) -> Self {
        let newest = |source: &str, metric: &str| -> Vec<f64> {
            feed.sources(source, metric).iter().filter_map(|(_, line)| line.last()).map(|p| p.avg).collect()
        };
        let cpu = newest("cpu", "utilization");
        Self {
            unit: feed.running_unit(),
            tokens: feed.running_throughput().iter().map(|p| p.avg).collect(),
            power: newest("gpu", "power_w"),
            cpu: (!cpu.is_empty()).then(|| cpu.iter().sum::<f64>() / cpu.len() as f64 * 100.0),
            values: feed.taken,
        }
    }
}

/// The last minute of every running job, by job.
#[derive(Debug, Default)]
pub struct Minutes {
    jobs: HashMap<String, (JobFeed, Arc<Minute>)>,
}

impl Minutes {
    /// Folds a batch of events. Jobs that it says nothing of are left as they are.
    pub fn fold(&mut self, events: &[&EventView]) {
        // By the clock of the log, not by the browser's.
        let newest = events.iter().filter_map(|e| millis(&e.recorded_at.to_string())).fold(0.0, f64::max);
        let old = newest - LOOK_BACK_MS;
        let mut touched: Vec<String> = Vec::new();
        for event in events {
            if let Some(job) = job_of(event) {
                self.jobs.entry(job.clone()).or_default().0.fold(event);
                touched.push(job);
            }
        }
        touched.sort();
        touched.dedup();
        for job in &touched {
            if let Some((feed, minute)) = self.jobs.get_mut(job) {
                feed.keep_since(old, SAMPLES);
                *minute = Arc::new(Minute::of(feed));
            }
        }
        // A job that said nothing for a minute has no last minute.
        self.jobs.retain(|_, (feed, _)| feed.heard_since(old));
    }

    /// The power of all GPUs of all jobs, watts.
    pub fn watts(&self) -> f64 {
        self.jobs.values().flat_map(|(_, minute)| &minute.power).sum()
    }

    /// The last minute of a job; nothing where it was silent.
    pub fn of(&self, job: &str) -> Option<Arc<Minute>> {
        self.jobs.get(job).map(|(_, minute)| Arc::clone(minute))
    }
}

#[cfg(test)]
mod tests {
    use super::super::live::tests::event_at;
    use super::*;
    use serde_json::json;

    fn at(second: u32) -> String {
        format!("2026-11-29T20:{:02}:{:02}Z", 41 + second / 60, second % 60)
    }

    fn sample(job: &str, second: u32, gpus: u32) -> EventView {
        let gpus: Vec<_> = (0..gpus).map(|gpu| json!({"gpu": gpu, "power_w": 100 * gpu + second})).collect();
        let mut event = event_at(
            i64::from(second) + 1,
            &format!("telemetry/o/p/w/1/{job}/1"),
            "telemetry.sampled",
            json!({"samples": [{"at": at(second), "gpus": gpus, "cpus": [{"socket": 0, "utilization": 0.25}, {"socket": 1, "utilization": 0.75}]}]}),
        );
        event.recorded_at = at(second).parse().expect("a time");
        event
    }

    #[test]
    fn a_strip_shows_what_is_now() {
        let mut minutes = Minutes::default();
        minutes.fold(&[&sample("c8", 1, 2), &sample("c8", 2, 2)]);
        let minute = minutes.of("job/o/p/w/1/c8").expect("a minute");
        assert_eq!(
            (minute.power.as_slice(), minute.cpu, minute.values),
            ([2.0, 102.0].as_slice(), Some(50.0), 8)
        );
        assert!(minutes.of("job/o/p/w/1/c16").is_none());
        assert_eq!(minutes.watts(), 104.0);
    }

    #[test]
    fn watching_for_long_keeps_no_more() {
        let mut minutes = Minutes::default();
        for second in 0..600 {
            minutes.fold(&[&sample("c8", second, 8)]);
            let (feed, _) = &minutes.jobs["job/o/p/w/1/c8"];
            assert!(feed.lines.values().all(|line| line.points().len() <= 2 * SAMPLES), "second {second}");
        }
        assert_eq!(minutes.of("job/o/p/w/1/c8").expect("a minute").values, 600 * 10);
    }

    #[test]
    fn a_job_that_says_nothing_is_left_as_it_is_and_forgotten_after_a_minute() {
        let mut minutes = Minutes::default();
        minutes.fold(&[&sample("c8", 0, 1), &sample("c16", 0, 1)]);
        let before = minutes.of("job/o/p/w/1/c8").expect("a minute");
        minutes.fold(&[&sample("c16", 30, 1)]);
        assert!(Arc::ptr_eq(&before, &minutes.of("job/o/p/w/1/c8").expect("a minute")));
        minutes.fold(&[&sample("c16", 61, 1)]);
        assert!(minutes.of("job/o/p/w/1/c8").is_none());
    }
}
