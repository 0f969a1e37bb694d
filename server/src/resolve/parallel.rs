//! How many accelerators a model server uses, and how many model servers a host therefore holds.

use std::collections::BTreeMap;

use events::catalogue::EngineArgTemplate;
use events::parallelism::{
    DATA, EngineArgs as Args, GUIDANCE, PIPELINE, RING, TENSOR, ULYSSES, shares_data_parallel,
};
use serde_json::Value;

use super::Inputs;

/// The degrees that multiply the accelerators besides tensor parallelism's.
const FURTHER: &[&[&str]] = &[PIPELINE, DATA, ULYSSES, RING, GUIDANCE];

type Templates = BTreeMap<String, EngineArgTemplate>;

fn degree(args: &Args, templates: &Templates, keys: &[&str]) -> Option<u64> {
    let key = keys.iter().find(|key| templates.contains_key(**key))?;
    let set = args.get(*key).and_then(Value::as_u64);
    set.or_else(|| templates[*key].default.as_u64())
}

/// The degree of tensor parallelism; nothing where the framework has none, or takes all the accelerators it sees.
pub fn tensor_parallel(args: &Args, templates: &Templates) -> Option<u64> {
    degree(args, templates, TENSOR)
}

/// The accelerators of one model server: TP × PP × DP, and the degrees of sequence parallelism. Nothing where the
/// framework has no such argument, or takes all the accelerators it sees.
pub fn gpus_per_replica(args: &Args, templates: &Templates) -> Option<u64> {
    let tensor = tensor_parallel(args, templates)?;
    let shared = shares_data_parallel(args);
    let further = FURTHER.iter().filter(|keys| !(shared && **keys == DATA));
    let product = further
        .filter_map(|keys| degree(args, templates, keys))
        .fold(tensor, |product, degree| product.saturating_mul(degree.max(1)));
    Some(product.max(1))
}

/// How many model servers a job has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Replicas {
    /// Their number.
    pub count: u32,
    /// Accelerators of each; nothing: all that the host has.
    pub gpus_each: Option<u32>,
}

impl Replicas {
    /// One, on all that the host has.
    pub const ONE: Self = Self { count: 1, gpus_each: None };

    /// As many as the host's accelerators hold, where the tool can spread its load over them.
    pub(super) fn of(inputs: &Inputs<'_>, engine: &Args) -> Self {
        let each = gpus_per_replica(engine, &inputs.framework.engine_args);
        let Some(each) = each.and_then(|each| u32::try_from(each).ok()) else { return Self::ONE };
        // Companions find their server by names and ports that only one pair on a host can have.
        let companions = !inputs.framework.companions.is_empty()
            || inputs.set.is_some_and(|set| !set.facts.companions.is_empty());
        match inputs.gpus {
            None | Some(0) => Self::ONE,
            Some(gpus) if !inputs.tool.endpoints_argv.is_empty() && !companions => {
                Self { count: (gpus / each).max(1), gpus_each: Some(each) }
            }
            Some(_) => Self { count: 1, gpus_each: Some(each) },
        }
    }
}
