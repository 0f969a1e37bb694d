//! `--calibrate`: how many words a token of this model is.
//!
//! Prompts of different lengths are sent, each for one token of output, and the server says how many tokens they were. The
//! line through these points has the tokens a word for its slope; where it begins is what the chat template and the
//! system message add to each request.

use std::sync::Arc;
use std::time::Instant;

use serde_json::{Map, Value, json};

use super::text::{Mode, TextBody};
use crate::answer::AnswerReader;
use crate::cli::Common;
use crate::endpoints::Endpoint;
use crate::http::connect::Connector;
use crate::http::pool::{Counters, Pool};
use crate::http::request::Request;
use crate::prompts::{Lengths, Prompt, count_words};
use crate::setup::{Refusal, connect_options};

/// Requests sent to learn.
pub const REQUESTS: usize = 8;

/// What was learnt.
#[derive(Clone, Debug, PartialEq)]
pub struct Calibration {
    /// Words a token, and the tokens around each prompt.
    pub lengths: Lengths,
    /// Words and tokens of each prompt asked about.
    pub points: Vec<(u64, u64)>,
}

impl Calibration {
    /// Adds what was learnt to the configuration's echo.
    pub fn describe(&self, derived: &mut Map<String, Value>) {
        derived.insert("words_per_token".into(), json!(crate::stats::round(self.lengths.words_per_token)));
        let learnt = json!({
            "requests": self.points.len(),
            "overhead_tokens": crate::stats::round(self.lengths.overhead_tokens),
        });
        derived.insert("calibration".into(), learnt);
    }
}

/// Asks the first of `endpoints` about each of `prompts`.
pub async fn calibrate(
    common: &Common,
    endpoints: &[Endpoint],
    mode: Mode,
    body: &TextBody,
    prompts: Vec<Prompt>,
) -> Result<Calibration, Refusal> {
    let refuse = |reason: String| {
        Refusal::usage(format!("--calibrate: {reason}; give the ratio with --words-per-token instead"))
    };
    let endpoint = endpoints.first().ok_or_else(|| refuse("no endpoint".into()))?;
    let connector =
        Connector::resolve(&endpoint.url, connect_options(common)).await.map_err(Refusal::usage)?;
    let body = body.for_counting();
    let head =
        endpoint.request_head(body.accept(), "application/json", &common.header, connector.forwarder());
    let pool = Arc::new(Pool::new(connector, 1, common.pool_idle_timeout, Arc::<Counters>::default()));
    let mut points = Vec::new();
    for prompt in prompts {
        let words = count_words(&prompt.prompt);
        let bytes = body.of_prompt(mode, prompt.prompt, Some(1));
        let mut reader = AnswerReader::new(false);
        let request = Request { head: &head, id: "", body: &bytes };
        let sent = pool.send(&request, &mut reader, Instant::now() + common.request_timeout).await;
        let (measured, failure) = reader.finish(sent.as_ref().map(|_| ()), Instant::now());
        if let Some(failure) = failure {
            return Err(refuse(failure.message));
        }
        let tokens = measured.usage.and_then(|usage| usage.prompt_tokens);
        points.push((words, tokens.ok_or_else(|| refuse("the server tells no prompt_tokens".into()))?));
    }
    let lengths = fit(&points)
        .ok_or_else(|| refuse("the prompts are too much alike in length to learn from".into()))?;
    Ok(Calibration { lengths, points })
}

/// The least-squares line through (words, tokens).
fn fit(points: &[(u64, u64)]) -> Option<Lengths> {
    let n = points.len() as f64;
    let mean = |of: fn(&(u64, u64)) -> u64| points.iter().map(|point| of(point) as f64).sum::<f64>() / n;
    let (words, tokens) = (mean(|point| point.0), mean(|point| point.1));
    let (mut covariance, mut variance) = (0.0, 0.0);
    for point in points {
        let off = point.0 as f64 - words;
        covariance += off * (point.1 as f64 - tokens);
        variance += off * off;
    }
    let tokens_per_word = covariance / variance;
    (tokens_per_word.is_finite() && tokens_per_word > 0.0).then(|| Lengths {
        words_per_token: 1.0 / tokens_per_word,
        overhead_tokens: (tokens - tokens_per_word * words).max(0.0),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_slope_is_the_ratio_and_the_rest_the_template() {
        let lengths = fit(&[(10, 32), (20, 52), (40, 92)]).unwrap();
        assert!((lengths.words_per_token - 0.5).abs() < 1e-9, "{lengths:?}");
        assert!((lengths.overhead_tokens - 12.0).abs() < 1e-9, "{lengths:?}");
    }

    #[test]
    fn prompts_of_one_length_teach_nothing() {
        assert_eq!(fit(&[(10, 32), (10, 33)]), None);
    }
}
