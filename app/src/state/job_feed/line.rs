//! One quantity of one source over time: what the view keeps, and the live samples that came after it.

use crate::row::Row;
use serde_json::Value;

/// A point of a line: one sample, or the mean of a short while with its extremes.
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
    /// How many samples it is made of.
    pub count: u32,
}

impl Point {
    /// One sample.
    pub fn sample(at: f64, value: f64) -> Self {
        Self { at, min: value, avg: value, max: value, count: 1 }
    }

    fn take(&mut self, value: f64) {
        self.min = self.min.min(value);
        self.max = self.max.max(value);
        self.avg = (self.avg * f64::from(self.count) + value) / f64::from(self.count + 1);
        self.count += 1;
    }
}

/// A live sample: the position of the event that brought it, its time and its value.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Sample {
    position: i64,
    at: f64,
    value: f64,
}

/// A line: points of one width, exact to the sample whatever the order in which reading and stream arrive.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Line {
    /// Milliseconds of one point; 0 where every sample is a point of its own.
    width_ms: f64,
    /// The view was read up to this position of the log: events up to here are in `points` already.
    position: i64,
    points: Vec<Point>,
    /// The samples after that position, in order of time: they are folded anew when the view is read again.
    tail: Vec<Sample>,
}

impl Line {
    /// The points, in order of time.
    pub fn points(&self) -> &[Point] {
        &self.points
    }

    /// What the drawn point nearest to a moment stands for where the line is drawn with `most` points: its first and last
    /// moment, whole milliseconds since 1970.
    pub fn stretch(&self, at: f64, most: usize) -> Option<(i64, i64)> {
        let width = joined(self.points.len(), most);
        let away = |chunk: &[Point]| chunk.first().map_or(f64::INFINITY, |p| (p.at - at).abs());
        let chunk = self.points.chunks(width).min_by(|a, b| away(a).total_cmp(&away(b)))?;
        let (first, last) = (chunk.first()?, chunk.last()?);
        // A mean is of the samples until the next one begins.
        let end = if self.width_ms > 0.0 { last.at + self.width_ms - 1.0 } else { last.at };
        Some((first.at.floor() as i64, end.floor() as i64))
    }

    /// How many samples it is made of.
    pub fn samples(&self) -> i64 {
        self.points.iter().map(|p| i64::from(p.count)).sum()
    }

    /// Folds a live sample. False when it is there already.
    pub fn add(&mut self, position: i64, at: f64, value: f64) -> bool {
        if position <= self.position {
            return false;
        }
        let place = self.tail.partition_point(|s| s.at < at);
        if self.tail.get(place).is_some_and(|s| s.at == at) {
            return false;
        }
        let sample = Sample { position, at, value };
        self.tail.insert(place, sample);
        self.put(sample)
    }

    fn put(&mut self, sample: Sample) -> bool {
        let start =
            if self.width_ms > 0.0 { (sample.at / self.width_ms).floor() * self.width_ms } else { sample.at };
        // Nearly always the last place.
        let place = match self.points.last() {
            Some(last) if start <= last.at => self.points.partition_point(|p| p.at < start),
            _ => self.points.len(),
        };
        match self.points.get_mut(place).filter(|p| p.at == start) {
            Some(point) if self.width_ms > 0.0 => point.take(sample.value),
            Some(_) => return false,
            None => {
                let point = Point { at: start, ..Point::sample(sample.at, sample.value) };
                self.points.insert(place, point);
            }
        }
        true
    }

    /// Takes what the view holds, `points` in order of time, up to `position`; later live samples stay on top.
    fn replace(&mut self, width_ms: f64, position: i64, points: Vec<Point>) {
        *self = Self { width_ms, position, points, tail: std::mem::take(&mut self.tail) };
        self.tail.retain(|s| s.position > position);
        for sample in self.tail.clone() {
            self.put(sample);
        }
    }

    /// Forgets all but the last points.
    pub fn keep_last(&mut self, most: usize) {
        // Twice as many before anything is moved.
        if self.points.len() > most * 2 {
            self.points.drain(..self.points.len() - most);
            let from = self.points[0].at;
            self.tail.retain(|s| s.at >= from);
        }
    }
}

/// How finely a job's telemetry is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Resolution {
    /// Every sample.
    Samples,
    /// Means and extremes of so many seconds: the sizes the view keeps.
    Means(u32),
}

impl Resolution {
    /// The finest that draws a job of this length with a few thousand points a line.
    pub fn for_span(milliseconds: f64) -> Self {
        const MINUTE: f64 = 60_000.0;
        match milliseconds {
            ms if ms <= 20.0 * MINUTE => Self::Samples,
            ms if ms <= 6.0 * 60.0 * MINUTE => Self::Means(6),
            _ => Self::Means(60),
        }
    }

    /// The request for these rows; `of` names the job and attempt.
    pub fn request(self, of: &str) -> String {
        match self {
            Self::Samples => format!(
                "/api/v_telemetry_chunks?{of}&select=source,at,power_w,utilization,memory_used_bytes,ram_used_bytes,position&order=source.asc,minute.asc"
            ),
            Self::Means(seconds) => format!(
                "/api/v_telemetry_series?{of}&bucket_s=eq.{seconds}&select=source,metric,bucket_s,bucket_start,min,avg,max,count,position&order=source.asc,metric.asc,segment.asc"
            ),
        }
    }
}

/// The metrics of a row of `v_telemetry_chunks`.
const METRICS: [&str; 4] = ["power_w", "utilization", "memory_used_bytes", "ram_used_bytes"];

/// What the view holds of one line.
struct Kept {
    source: String,
    metric: String,
    position: i64,
    points: Vec<Point>,
}

impl super::JobFeed {
    /// Takes rows of [`Resolution::request`]: what the views hold, with the live samples after it on top.
    pub fn take_telemetry(&mut self, resolution: Resolution, rows: &[Row]) {
        let (width_ms, kept) = match resolution {
            Resolution::Samples => (0.0, rows.iter().flat_map(chunk).collect::<Vec<Kept>>()),
            Resolution::Means(seconds) => (f64::from(seconds) * 1000.0, rows.iter().map(series).collect()),
        };
        let mut lines: std::collections::BTreeMap<super::LineKey, (i64, Vec<Point>)> = Default::default();
        for piece in kept {
            let (position, points) = lines.entry((piece.source, piece.metric)).or_default();
            *position = piece.position.max(*position);
            points.extend(piece.points);
        }
        for (key, (position, mut points)) in lines {
            points.sort_by(|a, b| a.at.total_cmp(&b.at));
            self.lines.entry(key).or_default().replace(width_ms, position, points);
        }
    }
}

/// A row of samples: one source, one minute, every metric that was read.
fn chunk(row: &Row) -> Vec<Kept> {
    let source = row.text("source");
    let times: Vec<Option<f64>> = row.list("at").iter().map(|at| crate::format::millis(at)).collect();
    let of = |metric: &&str| {
        let values = times.iter().zip(numbers(row, metric));
        let points: Vec<Point> = values.filter_map(|(at, v)| Some(Point::sample((*at)?, v?))).collect();
        let position = row.whole("position").unwrap_or(0);
        (!points.is_empty()).then(|| Kept {
            source: source.clone(),
            metric: (*metric).to_owned(),
            position,
            points,
        })
    };
    METRICS.iter().filter_map(of).collect()
}

/// A row of means: one metric of one source, many buckets as arrays.
fn series(row: &Row) -> Kept {
    let starts = row.list("bucket_start");
    let columns = ["min", "avg", "max", "count"].map(|column| numbers(row, column));
    let value = |column: usize, place: usize| columns[column].get(place).copied().flatten();
    let points = starts.iter().enumerate().filter_map(|(place, start)| {
        Some(Point {
            at: crate::format::millis(start)?,
            min: value(0, place)?,
            avg: value(1, place)?,
            max: value(2, place)?,
            count: value(3, place).unwrap_or(1.0) as u32,
        })
    });
    Kept {
        source: row.text("source"),
        metric: row.text("metric"),
        position: row.whole("position").unwrap_or(0),
        points: points.collect(),
    }
}

/// A column that is a list of numbers, some of them absent.
fn numbers(row: &Row, column: &str) -> Vec<Option<f64>> {
    match row.value(column) {
        Some(Value::Array(list)) => list.iter().map(Value::as_f64).collect(),
        _ => Vec::new(),
    }
}

/// How many neighbours are joined, so that a line of `points` is drawn with `most` at most.
fn joined(points: usize, most: usize) -> usize {
    points.div_ceil(most.max(1)).max(1)
}

/// At most `most` points: neighbours are joined, their extremes kept.
pub fn thin(line: &[Point], most: usize) -> Vec<Point> {
    let width = joined(line.len(), most);
    if width == 1 {
        return line.to_vec();
    }
    line.chunks(width)
        .map(|chunk| {
            let count: u32 = chunk.iter().map(|p| p.count).sum();
            let sum: f64 = chunk.iter().map(|p| p.avg * f64::from(p.count)).sum();
            Point {
                at: chunk[0].at,
                min: chunk.iter().map(|p| p.min).fold(f64::INFINITY, f64::min),
                avg: sum / f64::from(count.max(1)),
                max: chunk.iter().map(|p| p.max).fold(f64::NEG_INFINITY, f64::max),
                count,
            }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::super::JobFeed;
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    /// A fixed second whose milliseconds are a multiple of a minute.
    const BEGIN: f64 = 1_795_984_860_000.0;

    fn stamp(second: u32) -> String {
        format!("2026-11-29T20:{:02}:{:02}Z", 41 + second / 60, second % 60)
    }

    #[test]
    fn the_length_of_a_job_says_how_finely_it_is_read() {
        let hour = 3_600_000.0;
        assert_eq!(Resolution::for_span(60_000.0), Resolution::Samples);
        assert_eq!(Resolution::for_span(hour), Resolution::Means(6));
        assert_eq!(Resolution::for_span(10.0 * hour), Resolution::Means(60));
        assert!(
            Resolution::Means(6)
                .request("job=eq.j")
                .starts_with("/api/v_telemetry_series?job=eq.j&bucket_s=eq.6&")
        );
    }

    #[test]
    fn a_row_of_means_is_a_line_of_points() {
        let row = json!({"source": "gpu0", "metric": "power_w", "bucket_s": 6, "position": 40,
            "bucket_start": [stamp(0), stamp(6)], "min": [1.0, 4.0], "avg": [2.0, 5.0], "max": [3.0, 6.0], "count": [6, 6]});
        let mut feed = JobFeed::default();
        feed.take_telemetry(Resolution::Means(6), &[serde_json::from_value(row).expect("a row")]);
        let (_, line) = &feed.sources("gpu", "power_w")[0];
        assert_eq!(line[1], Point { at: BEGIN + 6000.0, min: 4.0, avg: 5.0, max: 6.0, count: 6 });
    }

    #[test]
    fn a_drawn_point_stands_for_the_samples_that_it_joins() {
        let mut line = Line::default();
        (0..10).for_each(|n| assert!(line.add(n + 1, BEGIN + n as f64 * 1000.0, 1.0)));
        let at = |second: i64| BEGIN as i64 + second * 1000;
        assert_eq!(line.stretch(BEGIN + 4_040.0, 600), Some((at(4), at(4))));
        // Four points of three samples: the second is of seconds 3 to 5, the last of one alone.
        assert_eq!(thin(line.points(), 4)[1].at, BEGIN + 3000.0);
        assert_eq!(line.stretch(BEGIN + 3_050.0, 4), Some((at(3), at(5))));
        assert_eq!(line.stretch(BEGIN + 60_000.0, 4), Some((at(9), at(9))));
        line.replace(6000.0, 10, vec![Point::sample(BEGIN, 1.0), Point::sample(BEGIN + 6000.0, 1.0)]);
        assert_eq!(line.stretch(BEGIN, 600), Some((at(0), at(6) - 1)));
        assert_eq!(Line::default().stretch(BEGIN, 600), None);
    }

    #[test]
    fn a_metric_that_was_never_read_is_no_line() {
        let row =
            json!({"source": "gpu0", "at": [stamp(0)], "power_w": null, "utilization": [0.5], "position": 3});
        let mut feed = JobFeed::default();
        feed.take_telemetry(Resolution::Samples, &[serde_json::from_value(row).expect("a row")]);
        assert!(feed.sources("gpu", "power_w").is_empty());
        assert_eq!(feed.sources("gpu", "utilization").len(), 1);
    }

    #[test]
    fn the_last_points_are_kept_with_their_samples() {
        let mut line = Line::default();
        for second in 0..300u32 {
            line.add(i64::from(second) + 1, f64::from(second) * 1000.0, 1.0);
        }
        line.keep_last(60);
        assert_eq!((line.points.len(), line.tail.len()), (60, 60));
    }

    #[test]
    fn thinning_keeps_the_extremes() {
        let line: Vec<Point> = (0..1000).map(|i| Point::sample(f64::from(i), f64::from(i))).collect();
        let thinned = thin(&line, 100);
        assert_eq!(thinned.len(), 100);
        assert_eq!((thinned[0].min, thinned[99].max), (0.0, 999.0));
    }

    proptest! {
        /// Whatever the view was read up to, and whatever the stream brought before, the line is what all samples give.
        #[test]
        fn view_and_stream_together_are_every_sample_once(
            values in proptest::collection::vec(0.0f64..1000.0, 1..80),
            read_up_to in 0usize..80,
            streamed_from in 0usize..80,
            seconds in prop_oneof![Just(0u32), Just(6u32)],
        ) {
            let read_up_to = read_up_to.min(values.len());
            let at = |i: usize| BEGIN + i as f64 * 1000.0;
            let width = f64::from(seconds) * 1000.0;
            let mut whole = Line { width_ms: width, ..Line::default() };
            for (i, value) in values.iter().enumerate() {
                whole.add(i as i64 + 1, at(i), *value);
            }
            // The view's own fold of the first samples.
            let mut view = Line { width_ms: width, ..Line::default() };
            for (i, value) in values[..read_up_to].iter().enumerate() {
                view.add(i as i64 + 1, at(i), *value);
            }
            let mut line = Line::default();
            // The stream never starts after what the reading covers.
            let from = streamed_from.min(read_up_to);
            for (i, value) in values.iter().enumerate().skip(from) {
                line.add(i as i64 + 1, at(i), *value);
            }
            line.replace(width, read_up_to as i64, view.points.clone());
            for (i, value) in values.iter().enumerate().skip(from) {
                line.add(i as i64 + 1, at(i), *value);
            }
            prop_assert_eq!(line.points.len(), whole.points.len());
            for (a, b) in line.points.iter().zip(&whole.points) {
                prop_assert_eq!((a.at, a.min, a.max, a.count), (b.at, b.min, b.max, b.count));
                prop_assert!((a.avg - b.avg).abs() < 1e-9);
            }
        }
    }
}
