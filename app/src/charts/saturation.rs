//! Where more concurrency stops paying, and what to do about it, in words.

use super::concurrency::{Measured, Traffic};
use crate::format::significant;

/// A doubling of concurrency that adds less than this share of throughput is not worth it.
const WORTH_IT: f64 = 0.2;

/// The first step whose throughput grows by less than a fifth for each doubling.
#[derive(Debug, Clone, PartialEq)]
pub struct Elbow {
    /// The concurrency of the last point that was worth it.
    pub concurrency: f64,
    /// Its throughput.
    pub value: f64,
    /// The next concurrency measured.
    pub next: f64,
    /// Its throughput.
    pub next_value: f64,
    /// What the next adds: 0.12 is 12 %.
    pub gain: f64,
}

/// The points that count: measured to the end.
fn done(line: &Traffic) -> Vec<&Measured> {
    line.points.iter().filter(|p| !p.running && p.value > 0.0 && p.concurrency > 0.0).collect()
}

/// Finds the elbow of a line of throughputs. Points still running count for nothing.
pub fn elbow(line: &Traffic) -> Option<Elbow> {
    let done = done(line);
    if done.len() < 3 {
        return None;
    }
    done.windows(2).find_map(|pair| {
        let doublings = (pair[1].concurrency / pair[0].concurrency).log2();
        let gain = pair[1].value / pair[0].value - 1.0;
        (doublings > 0.0 && gain / doublings < WORTH_IT).then(|| Elbow {
            concurrency: pair[0].concurrency,
            value: pair[0].value,
            next: pair[1].concurrency,
            next_value: pair[1].value,
            gain,
        })
    })
}

/// The latency of a line at two concurrencies, where both were measured.
fn latencies(elbow: &Elbow, latency: Option<&Traffic>) -> Option<(f64, f64)> {
    let at = |c: f64| {
        latency.and_then(|l| l.points.iter().find(|p| p.concurrency == c && !p.running)).map(|p| p.value)
    };
    let (before, after) = (at(elbow.concurrency)?, at(elbow.next)?);
    (before > 0.0).then_some((before, after))
}

/// The elbow in few words, for a note beside it.
pub fn elbow_words(elbow: &Elbow, name: &str, latency: Option<&Traffic>) -> String {
    let change = if elbow.gain < 0.0 {
        format!("{} loses {:.0} %", elbow.next, -elbow.gain * 100.0)
    } else {
        format!("{} adds {:.0} %", elbow.next, elbow.gain * 100.0)
    };
    let mut words = format!("elbow at {} for {name}: {change}", elbow.concurrency);
    if let Some((before, after)) = latencies(elbow, latency) {
        words.push_str(&format!(" and makes TTFT p99 {}× longer", significant(after / before)));
    }
    words
}

/// Where to ring the elbows of these lines of throughputs: in their own chart, each with its words.
pub fn rings(throughput: &[Traffic], latency: &[Traffic]) -> Vec<(f64, f64, String)> {
    throughput
        .iter()
        .filter_map(|line| {
            let found = elbow(line)?;
            let words = elbow_words(&found, &line.name, latency.iter().find(|l| l.name == line.name));
            Some((found.concurrency, found.value, words))
        })
        .collect()
}

/// Where the same elbows stand among the latencies.
pub fn rings_of_latency(throughput: &[Traffic], latency: &[Traffic]) -> Vec<(f64, f64, String)> {
    throughput
        .iter()
        .filter_map(|line| {
            let at = elbow(line)?.concurrency;
            let beside = latency.iter().find(|l| l.name == line.name)?;
            let point = beside.points.iter().find(|p| p.concurrency == at && !p.running)?;
            Some((at, point.value, String::new()))
        })
        .collect()
}

/// What a line of throughputs says about saturation, in a sentence or two: the name of the line comes first.
pub fn explain(line: &Traffic, unit: &str, latency: Option<&Traffic>) -> String {
    let points = done(line);
    let name = &line.name;
    match (points.as_slice(), elbow(line)) {
        ([], _) => format!("{name}: nothing measured yet."),
        ([only], _) => {
            format!(
                "{name}: measured at concurrency {} only; three or more show where it saturates.",
                only.concurrency
            )
        }
        ([before, last], _) => {
            let gain = last.value / before.value - 1.0;
            format!(
                "{name}: {} to {} {} {:.0} % of throughput; a third concurrency shows where it saturates.",
                before.concurrency,
                last.concurrency,
                if gain < 0.0 { "loses" } else { "adds" },
                gain.abs() * 100.0
            )
        }
        (_, Some(elbow)) => {
            let verb = if elbow.gain < 0.0 { "falls" } else { "grows only" };
            let mut text = format!(
                "{name} saturates at concurrency {}: from there to {} throughput {verb} by {:.0} %, {} to {} {unit}",
                elbow.concurrency,
                elbow.next,
                elbow.gain.abs() * 100.0,
                significant(elbow.value),
                significant(elbow.next_value),
            );
            match latencies(&elbow, latency) {
                Some((before, after)) => text.push_str(&format!(
                    ", while TTFT p99 goes from {} to {} ms, {}×.",
                    significant(before),
                    significant(after),
                    significant(after / before)
                )),
                None => text.push('.'),
            }
            text.push_str(&format!(" Beyond {} requests wait for each other.", elbow.concurrency));
            text
        }
        ([.., before, last], None) => {
            let gain = last.value / before.value - 1.0;
            format!(
                "{name} still climbs: {} to {} adds {:.0} %. It saturates beyond {}: measure a higher concurrency.",
                before.concurrency,
                last.concurrency,
                gain * 100.0,
                last.concurrency
            )
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn line(points: &[(f64, f64)]) -> Traffic {
        let points = points.iter().map(|(concurrency, value)| Measured {
            job: String::new(),
            concurrency: *concurrency,
            value: *value,
            running: false,
        });
        Traffic { name: "isl512-osl256".into(), points: points.collect() }
    }

    #[test]
    fn the_elbow_is_where_doubling_stops_paying() {
        let throughput = line(&[(16.0, 1501.0), (32.0, 2569.0), (64.0, 3956.0), (128.0, 4445.0)]);
        let found = elbow(&throughput).expect("an elbow");
        assert_eq!(found.concurrency, 64.0);
        let latency = line(&[(64.0, 402.0), (128.0, 1610.0)]);
        assert_eq!(
            elbow_words(&found, "isl512-osl256", Some(&latency)),
            "elbow at 64 for isl512-osl256: 128 adds 12 % and makes TTFT p99 4.00× longer"
        );
        assert_eq!(
            explain(&throughput, "tok/s", Some(&latency)),
            "isl512-osl256 saturates at concurrency 64: from there to 128 throughput grows only by 12 %, \
             3\u{202f}956 to 4\u{202f}445 tok/s, while TTFT p99 goes from 402 to 1\u{202f}610 ms, 4.00×. \
             Beyond 64 requests wait for each other."
        );
    }

    #[test]
    fn a_line_that_still_climbs_has_no_elbow_and_says_so() {
        let climbing = line(&[(1.0, 100.0), (2.0, 190.0), (4.0, 350.0)]);
        assert_eq!(elbow(&climbing), None);
        assert_eq!(
            explain(&climbing, "tok/s", None),
            "isl512-osl256 still climbs: 2 to 4 adds 84 %. It saturates beyond 4: measure a higher concurrency."
        );
    }

    #[test]
    fn two_points_are_no_line() {
        let two = line(&[(1.0, 100.0), (2.0, 101.0)]);
        assert_eq!(elbow(&two), None);
        assert_eq!(
            explain(&two, "tok/s", None),
            "isl512-osl256: 1 to 2 adds 1 % of throughput; a third concurrency shows where it saturates."
        );
        assert!(explain(&line(&[(8.0, 1.0)]), "tok/s", None).contains("concurrency 8 only"));
    }

    #[test]
    fn throughput_that_falls_is_said_to_fall() {
        let falling = line(&[(1.0, 100.0), (2.0, 90.0), (4.0, 80.0)]);
        assert!(explain(&falling, "tok/s", None).contains("throughput falls by 10 %, 100 to 90.0 tok/s."));
    }

    proptest! {
        #[test]
        fn every_line_can_be_explained(points in proptest::collection::vec((1u32..1024, 0.0f64..1e6), 0..8)) {
            let mut points: Vec<(f64, f64)> = points.into_iter().map(|(c, v)| (f64::from(c), v)).collect();
            points.sort_by(|a, b| a.0.total_cmp(&b.0));
            let text = explain(&line(&points), "tok/s", None);
            prop_assert!(text.starts_with("isl512-osl256") && text.ends_with('.'), "{}", text);
            prop_assert!(!text.contains("NaN") && !text.contains("inf"), "{}", text);
        }
    }
}
