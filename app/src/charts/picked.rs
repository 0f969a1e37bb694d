//! Points of a job's charts that were picked: what each stands for.

use super::telemetry::MOST_POINTS;
use crate::state::job_feed::JobFeed;

/// What a line is called where a point of it is picked.
pub(super) fn name_of(source: &str, metric: &str) -> String {
    format!("{source} {metric}")
}

/// What a point of a chart that was picked is of.
#[derive(Debug, Clone, PartialEq)]
pub enum Picked {
    /// Samples of a source's metric: the first and the last moment, milliseconds since 1970.
    Samples {
        /// `gpu0`, `cpu0`, `system`.
        source: String,
        /// The metric.
        metric: String,
        /// The first moment.
        from: i64,
        /// The last moment.
        to: i64,
    },
    /// A report of the load generator, by its position in the log.
    Report(i64),
}

/// What the name of a picked point stands for: `gpu0 power_w 12.3` or `progress 12.3`, in seconds of the chart.
pub fn picked(feed: &JobFeed, name: &str) -> Option<Picked> {
    let (line, second) = name.rsplit_once(' ')?;
    let second: f64 = second.parse().ok()?;
    if line == PROGRESS {
        let begin = throughput_begins(feed)?;
        let at = begin + second * 1000.0;
        let reports = feed.progress.iter().filter(|p| p.tokens_per_second.is_some() && p.phase != "done");
        let nearest = reports.min_by(|a, b| (a.at - at).abs().total_cmp(&(b.at - at).abs()))?;
        return Some(Picked::Report(nearest.position));
    }
    let (source, metric) = line.split_once(' ')?;
    let at = feed.begins()? + second * 1000.0;
    let line = feed.lines.get(&(source.to_owned(), metric.to_owned()))?;
    let (from, to) = line.stretch(at, MOST_POINTS)?;
    Some(Picked::Samples { source: source.to_owned(), metric: metric.to_owned(), from, to })
}

/// The name of the running throughput's line.
pub(super) const PROGRESS: &str = "progress";

/// Second 0 of the running throughput's chart.
pub(super) fn throughput_begins(feed: &JobFeed) -> Option<f64> {
    feed.begins().or_else(|| feed.running_throughput().first().map(|p| p.at))
}

#[cfg(test)]
mod tests {
    use super::super::telemetry::tests::feed;
    use super::super::telemetry::{Quantity, figure};
    use super::*;
    use serde_json::json;

    #[test]
    fn a_picked_point_is_its_samples() {
        let feed = feed(2, 3600);
        let figure = figure(&feed, &Quantity::gpu_utilization(), "--series-1");
        assert_eq!(figure.traces[1]["meta"], "gpu1 utilization");
        // Six samples a point: the third is of seconds 12 to 17. The table names the same point as a click on it.
        let third =
            Picked::Samples { source: "gpu1".into(), metric: "utilization".into(), from: 12_000, to: 17_000 };
        assert_eq!(figure.traces[1]["x"][2], json!(12.0));
        assert_eq!(picked(&feed, "gpu1 utilization 12"), Some(third));
        let name = figure.pick(1, 2).expect("a cell with a point");
        let Some(Picked::Samples { source, from, .. }) = picked(&feed, name) else { panic!("{name}") };
        assert_eq!((source.as_str(), from.to_string()), ("gpu1", format!("{}000", figure.rows[1][0])));
        for nothing in ["", "gpu1 utilization", "gpu7 utilization 12", "progress 12"] {
            assert_eq!(picked(&feed, nothing), None, "{nothing}");
        }
    }
}
