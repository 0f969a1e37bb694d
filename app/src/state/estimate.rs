//! How long a run will take, from what ran before: each scenario by the past results most like it.

use events::tools::image_size;
use events::workload::ScenarioSpec;

use crate::row::Row;

/// Seconds of a job beside its requests, where no past job says it: the model server starts, the tool ends.
const AROUND_S: f64 = 20.0;

/// An estimate.
#[derive(Debug, Clone, PartialEq)]
pub struct Estimate {
    /// Seconds of the whole run.
    pub seconds: f64,
    /// How many of its scenarios are estimated; the others have nothing like them in the past.
    pub known: usize,
    /// Seconds of each scenario; nothing for those that nothing in the past is like.
    pub each: Vec<Option<f64>>,
}

/// A past result, as far as an estimate needs it.
struct Past {
    concurrency: f64,
    input: f64,
    output: f64,
    /// Pixels that are generated for a request; 0 for text.
    pixels: f64,
    /// Requests a second.
    rate: f64,
}

fn past(row: &Row) -> Option<Past> {
    Some(Past {
        concurrency: row.number("concurrency").filter(|c| *c > 0.0)?,
        input: row.number("input_sequence_length").unwrap_or(0.0),
        output: row.number("output_sequence_length").unwrap_or(0.0),
        pixels: pixels(
            row.maybe_text("image_size").as_deref(),
            row.whole("num_images_batch").and_then(|n| u32::try_from(n).ok()),
        ),
        rate: row.number("requests_per_second").filter(|r| *r > 0.0)?,
    })
}

/// Pixels that a request has generated.
fn pixels(size: Option<&str>, images: Option<u32>) -> f64 {
    let one = size.and_then(image_size).map_or(0.0, |(w, h)| f64::from(w) * f64::from(h));
    one * f64::from(images.unwrap_or(1))
}

/// How unlike a past result is: doublings of concurrency, of tokens and of pixels.
fn unlike(past: &Past, scenario: &ScenarioSpec) -> f64 {
    let doublings = |a: f64, b: f64| ((a + 1.0) / (b + 1.0)).log2().abs();
    let length = |tokens: Option<u32>| f64::from(tokens.unwrap_or(0));
    doublings(past.concurrency, f64::from(scenario.concurrency))
        + doublings(past.output, length(scenario.output_sequence_length))
        + doublings(past.input, length(scenario.input_sequence_length)) * 0.5
        + doublings(past.pixels, pixels(scenario.image_size.as_deref(), scenario.num_images_batch))
}

/// Requests a second of a scenario, from the past result most like it: answers take as long as their tokens, and up to
/// the same number of them at once go as fast; images as long as their pixels.
fn rate(past: &[Past], scenario: &ScenarioSpec) -> Option<f64> {
    let like = past.iter().min_by(|a, b| unlike(a, scenario).total_cmp(&unlike(b, scenario)))?;
    // More than eight times as much of anything is no likeness.
    if unlike(like, scenario) > 3.0 {
        return None;
    }
    let work = |output: f64, pixels: f64| output.max(1.0) * pixels.max(1.0);
    let output = f64::from(scenario.output_sequence_length.unwrap_or(0));
    let own = work(output, pixels(scenario.image_size.as_deref(), scenario.num_images_batch));
    let faster = (f64::from(scenario.concurrency) / like.concurrency).min(1.0);
    Some(like.rate * faster * work(like.output, like.pixels) / own)
}

/// Estimates a run of these scenarios from results of the same model, framework, tool and server.
pub fn estimate(scenarios: &[ScenarioSpec], results: &[Row]) -> Option<Estimate> {
    let past: Vec<Past> = results.iter().filter_map(past).collect();
    let each: Vec<Option<f64>> =
        scenarios.iter().map(|s| Some(f64::from(s.num_requests) / rate(&past, s)? + AROUND_S)).collect();
    let known = each.iter().flatten().count();
    (known > 0).then(|| Estimate { seconds: each.iter().flatten().sum(), known, each })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    fn scenario(concurrency: u32, output: u32, requests: u32) -> ScenarioSpec {
        ScenarioSpec {
            concurrency,
            input_sequence_length: Some(128),
            output_sequence_length: Some(output),
            num_requests: requests,
            streaming: Some(true),
            ..ScenarioSpec::default()
        }
    }

    fn result(concurrency: u32, output: u32, rate: f64) -> Row {
        serde_json::from_value(json!({"concurrency": concurrency, "input_sequence_length": 128,
            "output_sequence_length": output, "requests_per_second": rate}))
        .expect("a row")
    }

    #[test]
    fn the_same_scenario_takes_as_long_again() {
        let found = estimate(&[scenario(8, 64, 200)], &[result(8, 64, 4.0), result(1, 64, 1.0)])
            .expect("an estimate");
        assert_eq!(found, Estimate { seconds: 50.0 + AROUND_S, known: 1, each: vec![Some(50.0 + AROUND_S)] });
    }

    #[test]
    fn fewer_at_once_take_longer_and_longer_answers_too() {
        let past = [result(8, 64, 4.0)];
        let of = |s: ScenarioSpec| estimate(&[s], &past).expect("an estimate").seconds - AROUND_S;
        assert_eq!(of(scenario(4, 64, 200)), 100.0);
        assert_eq!(of(scenario(8, 128, 200)), 100.0);
        assert_eq!(of(scenario(16, 64, 200)), 50.0, "more at once are not promised to go faster");
    }

    #[test]
    fn what_has_nothing_like_it_is_not_estimated() {
        assert_eq!(estimate(&[scenario(8, 64, 200)], &[]), None);
        assert_eq!(estimate(&[scenario(1024, 64, 200)], &[result(1, 64, 1.0)]), None);
        let found = estimate(&[scenario(1, 64, 10), scenario(1024, 64, 10)], &[result(1, 64, 1.0)])
            .expect("an estimate");
        assert_eq!((found.known, found.each[0].is_some(), found.each[1]), (1, true, None));
    }

    #[test]
    fn four_times_the_pixels_take_four_times_as_long() {
        let image = |size: &str| ScenarioSpec {
            concurrency: 1,
            image_size: Some(size.to_owned()),
            num_images_batch: Some(1),
            num_requests: 10,
            ..ScenarioSpec::default()
        };
        let past: Row =
            serde_json::from_value(json!({"concurrency": 1, "image_size": "512x512", "num_images_batch": 1,
            "requests_per_second": 1.0}))
            .expect("a row");
        let of = |size: &str| {
            estimate(&[image(size)], std::slice::from_ref(&past)).expect("an estimate").seconds - AROUND_S
        };
        assert_eq!((of("512x512"), of("1024x1024")), (10.0, 40.0));
    }

    proptest! {
        #[test]
        fn more_requests_never_take_less(concurrency in 1u32..64, output in 1u32..512, requests in 1u32..1000, rate in 0.1f64..100.0) {
            let past = [result(8, 64, rate)];
            let of = |n: u32| estimate(&[scenario(concurrency, output, n)], &past).map(|e| e.seconds);
            if let (Some(few), Some(many)) = (of(requests), of(requests + 1)) {
                prop_assert!(few.is_finite() && many > few);
            }
        }
    }
}
