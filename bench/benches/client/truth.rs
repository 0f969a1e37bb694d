//! Reported times against the server's own log.
//!
//! Our tool's requests carry an id: each is compared with itself. The peer's do not, so its figures are compared as wholes:
//! the mean, and each percentile, of what was reported minus that of what was true, which is the milder test. The server takes a request's arrival from the kernel's
//! stamp, so that its own lateness in reading is not held against the client.

use std::collections::HashMap;
use std::path::Path;

use bench::refserver::truth::{self, Truth};
use serde_json::Value;

use crate::tools::Tool;

/// Reported minus true, in milliseconds.
#[derive(Clone, Debug)]
pub struct Drift {
    pub ttft_mean: f64,
    pub ttft_p99: f64,
    pub ttft_max: f64,
    /// Of the mean gap between tokens; none where the tool reports no gaps.
    pub gap_mean: Option<f64>,
}

fn records(folder: &Path, tool: Tool) -> Vec<Value> {
    let text = std::fs::read_to_string(folder.join(tool.request_log())).unwrap_or_default();
    text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
}

fn truths(folder: &Path) -> Vec<Truth> {
    truth::read(&folder.join("truth.jsonl")).unwrap_or_default()
}

/// How the last run's times differ from the truth; none where there is nothing to compare.
pub fn drift(folder: &Path, tool: Tool) -> Option<Drift> {
    let truths = truths(folder);
    let true_ttft_of = |truth: &Truth| {
        let first = truth.chunks_unix_ns.first()?;
        Some((*first as f64 - truth.received_unix_ns as f64) / 1e6)
    };
    let by_id: HashMap<&str, f64> =
        truths.iter().filter_map(|truth| Some((truth.request_id.as_str(), true_ttft_of(truth)?))).collect();
    let (mut reported, mut gaps, mut each) = (Vec::new(), Vec::new(), Vec::new());
    for record in records(folder, tool) {
        let number = |name: &str| record[name].as_f64();
        match tool {
            Tool::Ours => {
                reported.extend(number("ttft_ms"));
                let own = record["request_id"].as_str().and_then(|id| by_id.get(id));
                each.extend(number("ttft_ms").zip(own).map(|(reported, own)| reported - own));
                let span = number("last_output_unix_ns").zip(number("first_output_unix_ns"));
                let chunks = number("chunks").filter(|chunks| *chunks > 1.0);
                gaps.extend(span.zip(chunks).map(|((last, first), n)| (last - first) / 1e6 / (n - 1.0)));
            }
            Tool::Peer => {
                reported.extend(number("ttft_s").map(|seconds| seconds * 1e3));
                let all: Vec<f64> =
                    record["itl_s"].as_array().into_iter().flatten().filter_map(Value::as_f64).collect();
                gaps.extend((!all.is_empty()).then(|| mean(&all) * 1e3));
            }
        }
    }
    let (mut true_ttft, mut true_gaps) = (Vec::new(), Vec::new());
    for truth in &truths {
        let (Some(&first), Some(&last)) = (truth.chunks_unix_ns.first(), truth.chunks_unix_ns.last()) else {
            continue;
        };
        true_ttft.extend(true_ttft_of(truth));
        true_gaps.push((last - first) as f64 / 1e6 / (truth.chunks_unix_ns.len().max(2) - 1) as f64);
    }
    if reported.is_empty() || true_ttft.is_empty() {
        return None;
    }
    reported.sort_by(f64::total_cmp);
    true_ttft.sort_by(f64::total_cmp);
    each.sort_by(f64::total_cmp);
    let off = |share: f64| match each.is_empty() {
        true => at(&reported, share) - at(&true_ttft, share),
        false => at(&each, share),
    };
    Some(Drift {
        ttft_mean: mean(&reported) - mean(&true_ttft),
        ttft_p99: off(0.99),
        ttft_max: off(1.0),
        gap_mean: (!gaps.is_empty()).then(|| mean(&gaps) - mean(&true_gaps)),
    })
}

/// Milliseconds from a moment until the first request arrived.
pub fn first_arrival_after(folder: &Path, started_unix_ns: u64) -> Option<f64> {
    let first = truths(folder).iter().map(|truth| truth.received_unix_ns).min()?;
    Some((first as f64 - started_unix_ns as f64) / 1e6)
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

fn at(sorted: &[f64], share: f64) -> f64 {
    sorted[((share * sorted.len() as f64).ceil() as usize).clamp(1, sorted.len()) - 1]
}
