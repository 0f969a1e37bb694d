//! Figures that single third-party measurements have: caches and disks of conversations with KV cache offload, and how
//! good answers were judged to be. Each comes from the summary line that the host's runner writes, one JSON object.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::foreign::{ForeignFigures, Load, Spread};

/// The `schema` of a summary of KV cache offload.
pub const KV_CACHE_SCHEMA: &str = "kv-cache-offload.summary.v1";
/// The `schema` of a KYAI summary.
pub const KYAI_SCHEMA: &str = "kyai.summary.v1";

/// The figures of KV cache offload beside those of serving, by column. Sessions and degradation have every tier; the
/// cache's only the tiers with a cache server; the disk's only the NVMe tier.
pub const KV_CACHE_FIGURES: &[&str] = &[
    "sessions_total",
    "sessions_complete",
    "sessions_incomplete",
    "sessions_error",
    "ttft_degradation_p50_pct",
    "ttft_degradation_p95_pct",
    "local_cache_hit_rate",
    "external_cache_hit_rate",
    "kv_cache_usage_pct",
    "cache_evictions",
    "cache_usage_bytes",
    "l1_usage_ratio",
    "l1_eviction_loop_ticks",
    "l1_eviction_loop_triggered",
    "l0_l1_load_gb_per_second",
    "l0_l1_store_gb_per_second",
    "l2_load_gb_per_second",
    "l2_store_gb_per_second",
    "chunks_loaded",
    "lookup_hit_tokens",
    "lookup_requested_tokens",
    "shared_prefix_reuse_pct",
    "user_history_reuse_pct",
    "disk_read_gb_per_second",
    "disk_write_gb_per_second",
    "disk_read_iops",
    "disk_write_iops",
    "disk_read_latency_ms",
    "disk_write_latency_ms",
    "disk_utilization_pct",
    "disk_queue_depth",
    "disk_read_total_gb",
    "disk_write_total_gb",
];

/// Of these, those that may be below 0: later turns can be quicker than the first.
const MAY_BE_NEGATIVE: &[&str] = &["ttft_degradation_p50_pct", "ttft_degradation_p95_pct"];

/// What KV cache offload measured beside serving.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct KvCacheFigures {
    /// Where offloaded blocks live: `gpu`, `cpu` or `nvme`.
    pub tier: String,
    /// The conversations: `sammshen` or `tau2-bench-v1`.
    pub dataset: String,
    /// SHA-256 of the conversations' file, hexadecimal; absent where the runner does not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dataset_sha256: Option<String>,
    /// The figures that were measured, of [`KV_CACHE_FIGURES`].
    pub figures: BTreeMap<String, f64>,
}

/// How good the answers were. Errors count as a score of 0.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct KyaiFigures {
    /// The questions' code.
    pub dataset: String,
    /// SHA-256 of the questions, hexadecimal.
    pub dataset_sha256: String,
    /// SHA-256 of the system prompt for generation, hexadecimal.
    pub generation_prompt_sha256: String,
    /// SHA-256 of the judge's prompt, hexadecimal.
    pub judge_prompt_sha256: String,
    /// The judge, by name and version.
    pub judge: String,
    /// Questions asked.
    pub questions: u64,
    /// Of these, judged.
    pub scored: u64,
    /// Of these, not answered or not judged.
    pub errors: u64,
    /// Mean correctness over all questions, 0 to 1.
    pub score: f64,
}

/// A summary line of the runner of KV cache offload.
///
/// # Errors
/// What is wrong with it.
pub fn read_kv_cache(line: &str) -> Result<(Load, ForeignFigures, KvCacheFigures), String> {
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Line {
        schema: String,
        #[serde(default)]
        load: Load,
        serving: ForeignFigures,
        cache: KvCacheFigures,
    }
    let line: Line = serde_json::from_str(line).map_err(|error| error.to_string())?;
    check_schema(&line.schema, KV_CACHE_SCHEMA)?;
    check_kv_cache(&line.cache)?;
    check_figures(&line.serving)?;
    Ok((line.load, line.serving, line.cache))
}

fn is_sha256(text: &str) -> bool {
    text.len() == 64 && text.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'))
}

/// Checks what a run of KV cache offload said of the cache.
///
/// # Errors
/// What is wrong with it.
pub fn check_kv_cache(cache: &KvCacheFigures) -> Result<(), String> {
    if !["gpu", "cpu", "nvme"].contains(&cache.tier.as_str()) {
        return Err("cache.tier is neither gpu, cpu nor nvme".to_owned());
    }
    if cache.dataset_sha256.as_ref().is_some_and(|hash| !is_sha256(hash)) {
        return Err("cache.dataset_sha256 is no SHA-256 in lower-case hexadecimal".to_owned());
    }
    for (name, value) in &cache.figures {
        if !KV_CACHE_FIGURES.contains(&name.as_str()) {
            return Err(format!("cache.figures.{name} is not known"));
        }
        if !value.is_finite() || (*value < 0.0 && !MAY_BE_NEGATIVE.contains(&name.as_str())) {
            return Err(format!("cache.figures.{name} is {value}: it must be at least 0"));
        }
    }
    Ok(())
}

/// A KYAI summary line.
///
/// # Errors
/// What is wrong with it.
pub fn read_kyai(line: &str) -> Result<(Load, ForeignFigures, KyaiFigures), String> {
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Line {
        schema: String,
        #[serde(default)]
        load: Load,
        #[serde(default)]
        window_s: Option<f64>,
        #[serde(default)]
        latency_ms: Option<Spread>,
        evaluation: KyaiFigures,
    }
    let line: Line = serde_json::from_str(line).map_err(|error| error.to_string())?;
    check_schema(&line.schema, KYAI_SCHEMA)?;
    let kyai = line.evaluation;
    check_kyai(&kyai)?;
    let figures = ForeignFigures {
        requests_succeeded: Some(kyai.scored),
        requests_failed: Some(kyai.errors),
        window_s: line.window_s,
        response_time_ms: line.latency_ms,
        ..ForeignFigures::default()
    };
    check_figures(&figures)?;
    Ok((line.load, figures, kyai))
}

/// Checks an evaluation: its hashes, its counts, and that its score can be made of them.
///
/// # Errors
/// What is wrong with it.
pub fn check_kyai(kyai: &KyaiFigures) -> Result<(), String> {
    for (name, hash) in [
        ("dataset_sha256", &kyai.dataset_sha256),
        ("generation_prompt_sha256", &kyai.generation_prompt_sha256),
        ("judge_prompt_sha256", &kyai.judge_prompt_sha256),
    ] {
        if !is_sha256(hash) {
            return Err(format!("evaluation.{name} is no SHA-256 in lower-case hexadecimal"));
        }
    }
    if kyai.questions == 0 || kyai.scored.checked_add(kyai.errors) != Some(kyai.questions) {
        return Err(
            "evaluation: every question is either scored or an error, and there is at least one".to_owned()
        );
    }
    if !(0.0..=1.0).contains(&kyai.score) {
        return Err(format!("evaluation.score is {}: it must be between 0 and 1", kyai.score));
    }
    // Errors count as zero: what was scored cannot make more.
    let most = kyai.scored as f64 / kyai.questions as f64;
    if kyai.score > most + 1e-9 {
        return Err(format!(
            "evaluation.score is {}, but only {most} of the questions were scored",
            kyai.score
        ));
    }
    Ok(())
}

fn check_schema(found: &str, wanted: &str) -> Result<(), String> {
    if found == wanted {
        return Ok(());
    }
    let found: String = found.chars().take(60).collect();
    Err(format!("the schema is {found:?}, not {wanted:?}"))
}

/// No figure of serving is below 0.
///
/// # Errors
/// Names the figure.
pub fn check_figures(figures: &ForeignFigures) -> Result<(), String> {
    fn find(value: &Value, path: &str) -> Option<String> {
        match value {
            Value::Number(number) => number.as_f64().is_none_or(|n| n < 0.0).then(|| path.to_owned()),
            Value::Object(map) => map.iter().find_map(|(name, value)| find(value, &format!("{path}.{name}"))),
            _ => None,
        }
    }
    let value = serde_json::to_value(figures).map_err(|error| error.to_string())?;
    match find(&value, "serving") {
        None => Ok(()),
        Some(path) => Err(format!("{path} is below 0")),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn kyai(change: impl FnOnce(&mut Value)) -> Result<(Load, ForeignFigures, KyaiFigures), String> {
        let hash = "0a".repeat(32);
        let mut line = json!({
            "schema": KYAI_SCHEMA, "window_s": 60.0, "latency_ms": {"avg": 900.0, "p50": 850.0},
            "evaluation": {"dataset": "mmlu-pro", "dataset_sha256": hash, "generation_prompt_sha256": hash,
                "judge_prompt_sha256": hash, "judge": "judge 1", "questions": 100, "scored": 98, "errors": 2,
                "score": 0.75},
        });
        change(&mut line);
        read_kyai(&line.to_string())
    }

    #[test]
    fn a_score_is_a_mean_over_all_questions() {
        let (_, figures, kyai_figures) = kyai(|_| ()).unwrap();
        assert_eq!((kyai_figures.score, figures.requests_failed), (0.75, Some(2)));
        for (field, value) in [
            ("score", json!(1.5)),
            ("score", json!(0.99)),
            ("questions", json!(0)),
            ("scored", json!(99)),
            ("dataset_sha256", json!("x")),
            ("unheard_of", json!(1)),
        ] {
            let refused = kyai(|line| {
                if field != "unheard_of" {
                    line["evaluation"][field] = value.clone();
                } else {
                    line[field] = value.clone();
                }
            });
            assert!(refused.is_err(), "{field} {value}");
        }
    }

    #[test]
    fn a_cache_figure_is_known_and_not_negative() {
        let line = |name: &str, value: f64| {
            json!({"schema": KV_CACHE_SCHEMA, "serving": {"window_s": 1.0},
                   "cache": {"tier": "cpu", "dataset": "sammshen", "figures": {name: value}}})
            .to_string()
        };
        let (_, _, cache) = read_kv_cache(&line("external_cache_hit_rate", 0.5)).unwrap();
        assert_eq!(cache.figures["external_cache_hit_rate"], 0.5);
        assert!(read_kv_cache(&line("ttft_degradation_p95_pct", -3.0)).is_ok());
        assert!(read_kv_cache(&line("disk_read_iops", -1.0)).is_err());
        assert!(read_kv_cache(&line("luck", 1.0)).is_err());
    }

    #[test]
    fn every_cache_figure_is_in_the_metric_catalogue() {
        let missing: Vec<&str> =
            KV_CACHE_FIGURES.iter().copied().filter(|name| crate::metrics::metric(name).is_none()).collect();
        assert_eq!(missing, Vec::<&str>::new());
    }
}
