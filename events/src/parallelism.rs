//! How one model server is spread over accelerators: the degrees of parallelism, and the words for them.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::foreign::InferencexDimensions;
use crate::job::ResolvedCommands;

/// The engine arguments by which frameworks take the degree of tensor parallelism.
pub const TENSOR: &[&str] = &["tensor_parallel_size", "tp_size", "num_shard"];
/// Those of pipeline parallelism.
pub const PIPELINE: &[&str] = &["pipeline_parallel_size", "pp_size"];
/// Those of data parallelism.
pub const DATA: &[&str] = &["data_parallel_size", "dp_size"];
/// Those of sequence parallelism after Ulysses, of diffusion models.
pub const ULYSSES: &[&str] = &["usp", "ulysses_degree"];
/// Those of sequence parallelism in a ring, of diffusion models.
pub const RING: &[&str] = &["ring", "ring_degree"];
/// That of classifier-free guidance, of diffusion models.
pub const GUIDANCE: &[&str] = &["cfg_parallel_size"];
/// With this switch the data-parallel ranks of attention share the accelerators of tensor parallelism.
pub const DATA_PARALLEL_ATTENTION: &str = "enable_dp_attention";
/// Those of expert parallelism, which shares the accelerators of the others.
const EXPERT: &[&str] = &["expert_parallel_size", "ep_size"];
/// With this switch the experts lie over all ranks of tensor and data parallelism.
const EXPERT_SWITCH: &str = "enable_expert_parallel";

/// The engine arguments in force, by key.
pub type EngineArgs = BTreeMap<String, Value>;

/// Whether the data-parallel ranks share the accelerators of tensor parallelism.
pub fn shares_data_parallel(args: &EngineArgs) -> bool {
    args.get(DATA_PARALLEL_ATTENTION) == Some(&Value::Bool(true))
}

/// The degrees of parallelism of one model server, as far as they are known. A framework that takes whatever it sees
/// (llama.cpp, Ollama) and an endpoint that ran already have none.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Parallelism {
    /// Accelerators that each layer is split over.
    pub tensor: Option<u32>,
    /// Stages that the layers are split into.
    pub pipeline: Option<u32>,
    /// Copies of the model, or of its attention alone.
    pub data: Option<u32>,
    /// Accelerators that the experts lie on.
    pub expert: Option<u32>,
    /// Whether attention alone is data parallel, on the accelerators of tensor parallelism.
    pub data_attention: bool,
    /// Sequence parallelism after Ulysses.
    pub ulysses: Option<u32>,
    /// Sequence parallelism in a ring.
    pub ring: Option<u32>,
    /// Parallel branches of guidance.
    pub guidance: Option<u32>,
}

impl Parallelism {
    /// Those of a job, from the commands that were resolved for it. A tensor parallelism that was left at the framework's
    /// default is what remains of its accelerators.
    pub fn of_commands(commands: &ResolvedCommands) -> Self {
        let args = &commands.engine_args;
        let degree = |keys: &[&str]| {
            let set = keys.iter().find_map(|key| args.get(*key)).and_then(Value::as_u64)?;
            u32::try_from(set).ok().filter(|degree| *degree > 0)
        };
        let mut found = Self {
            tensor: None,
            pipeline: degree(PIPELINE),
            data: degree(DATA),
            expert: degree(EXPERT),
            data_attention: shares_data_parallel(args),
            ulysses: degree(ULYSSES),
            ring: degree(RING),
            guidance: degree(GUIDANCE),
        };
        let remaining = || Some(commands.gpus_per_replica? / found.further()).filter(|gpus| *gpus > 0);
        found.tensor = degree(TENSOR).or_else(remaining);
        if args.get(EXPERT_SWITCH) == Some(&Value::Bool(true)) {
            let ranks = found.tensor.map(|tensor| tensor.saturating_mul(found.data.unwrap_or(1)));
            found.expert = found.expert.or(ranks);
        }
        found
    }

    /// Those that InferenceX records. Where prefill and decode have degrees of their own, there are none of the whole.
    pub fn of_inferencex(dimensions: &InferencexDimensions) -> Self {
        Self {
            tensor: dimensions.tp,
            pipeline: dimensions.pp,
            expert: dimensions.ep,
            data_attention: dimensions.dp_attention == Some(true),
            ..Self::default()
        }
    }

    /// What tensor parallelism is multiplied by in the number of accelerators.
    fn further(&self) -> u32 {
        let data = self.data.filter(|_| !self.data_attention);
        [self.pipeline, data, self.ulysses, self.ring, self.guidance]
            .into_iter()
            .flatten()
            .fold(1, u32::saturating_mul)
    }

    /// The words for it: `TP2`, `TP4·PP2`, `TP8·DPA8·EP8`. A degree of 1 goes without saying, but for tensor parallelism's.
    /// Nothing where nothing is known.
    pub fn words(&self) -> Option<String> {
        let data = if self.data_attention { "DPA" } else { "DP" };
        let tensor = self.tensor.map(|degree| format!("TP{degree}"));
        let further = [
            ("PP", self.pipeline),
            (data, self.data),
            ("EP", self.expert),
            ("USP", self.ulysses),
            ("Ring", self.ring),
            ("CFG", self.guidance),
        ]
        .into_iter()
        .filter_map(|(word, degree)| match degree {
            Some(2..) => Some(format!("{word}{}", degree?)),
            None if word == "DPA" => Some(word.to_owned()),
            _ => None,
        });
        let words: Vec<String> = tensor.into_iter().chain(further).collect();
        (!words.is_empty()).then(|| words.join("·"))
    }
}

/// The words for what InferenceX records: `TP8·EP8`, or `P:TP4×2 D:TP8` for prefill and decode on accelerators of their
/// own, with the number of their processes.
pub fn inferencex_words(dimensions: &InferencexDimensions) -> Option<String> {
    let d = dimensions;
    let part = |word: &str, tensor, expert, data_attention: Option<bool>, workers: Option<u32>| {
        let part = Parallelism {
            tensor,
            expert,
            data_attention: data_attention == Some(true),
            ..Parallelism::default()
        };
        let times = workers.filter(|workers| *workers > 1).map(|workers| format!("×{workers}"));
        Some(format!("{word}:{}{}", part.words()?, times.unwrap_or_default()))
    };
    let prefill = part("P", d.prefill_tp, d.prefill_ep, d.prefill_dp_attention, d.prefill_workers);
    let decode = part("D", d.decode_tp, d.decode_ep, d.decode_dp_attention, d.decode_workers);
    match (prefill, decode) {
        (None, None) => Parallelism::of_inferencex(d).words(),
        (prefill, decode) => Some(prefill.into_iter().chain(decode).collect::<Vec<_>>().join(" ")),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn words(args: Value, gpus_per_replica: Option<u32>) -> Option<String> {
        let commands = ResolvedCommands {
            engine_args: serde_json::from_value(args).unwrap(),
            gpus_per_replica,
            ..ResolvedCommands::of(vec![], vec![])
        };
        Parallelism::of_commands(&commands).words()
    }

    #[test]
    fn a_server_is_named_by_its_degrees() {
        assert_eq!(words(json!({"tensor_parallel_size": 2}), Some(2)).unwrap(), "TP2");
        assert_eq!(words(json!({"tp_size": 4, "pp_size": 2}), Some(8)).unwrap(), "TP4·PP2");
        assert_eq!(words(json!({"tp_size": 4, "dp_size": 2}), Some(8)).unwrap(), "TP4·DP2");
        assert_eq!(words(json!({"tensor_parallel_size": 1, "usp": 2}), Some(2)).unwrap(), "TP1·USP2");
    }

    #[test]
    fn a_default_is_what_remains_of_the_accelerators() {
        assert_eq!(words(json!({}), Some(1)).unwrap(), "TP1");
        assert_eq!(words(json!({"data_parallel_size": 4}), Some(8)).unwrap(), "TP2·DP4");
        assert_eq!(words(json!({}), None), None, "it takes what it sees");
    }

    #[test]
    fn experts_lie_over_all_ranks_and_attention_may_be_data_parallel_alone() {
        let vllm =
            json!({"tensor_parallel_size": 2, "data_parallel_size": 4, "enable_expert_parallel": true});
        assert_eq!(words(vllm, Some(8)).unwrap(), "TP2·DP4·EP8");
        let sglang = json!({"tp_size": 8, "dp_size": 8, "ep_size": 8, "enable_dp_attention": true});
        assert_eq!(words(sglang, Some(8)).unwrap(), "TP8·DPA8·EP8");
    }

    #[test]
    fn prefill_and_decode_are_named_apart() {
        let whole = InferencexDimensions {
            tp: Some(8),
            ep: Some(8),
            dp_attention: Some(true),
            ..InferencexDimensions::default()
        };
        assert_eq!(inferencex_words(&whole).unwrap(), "TP8·DPA·EP8");
        let apart = InferencexDimensions {
            prefill_tp: Some(4),
            prefill_ep: Some(1),
            prefill_workers: Some(2),
            decode_tp: Some(8),
            decode_ep: Some(8),
            decode_workers: Some(1),
            ..InferencexDimensions::default()
        };
        assert_eq!(inferencex_words(&apart).unwrap(), "P:TP4×2 D:TP8·EP8");
        assert_eq!(inferencex_words(&InferencexDimensions::default()), None);
    }
}
