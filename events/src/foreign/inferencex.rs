//! InferenceX: the result of its `benchmark_serving.py`, and the aggregate that its `process_result.py` makes of one.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::fields::{Fields, kind};
use super::{ForeignError, ForeignFigures, ForeignResult, Format, Load, Spread, vllm};
use crate::job::ResolvedCommands;
use crate::parallelism::{EngineArgs, Parallelism};
use crate::workload::WorkloadSpec;

/// What InferenceX records of a run, so that it can be reproduced and compared.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct Dimensions {
    /// The accelerator.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hardware: Option<String>,
    /// The serving framework.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub framework: Option<String>,
    /// The data type of inference.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub precision: Option<String>,
    /// Speculative decoding, and of what kind.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub spec_decoding: Option<String>,
    /// GPUs of tensor parallelism.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tp: Option<u32>,
    /// Pipeline stages.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pp: Option<u32>,
    /// GPUs of expert parallelism.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ep: Option<u32>,
    /// Whether attention is data parallel.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dp_attention: Option<bool>,
    /// Whether prefill and decode run on GPUs of their own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub disaggregated: Option<bool>,
    /// Whether several nodes serve.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub multinode: Option<bool>,
    /// The container image of the model server.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub image: Option<String>,
    /// GPUs in all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gpu_count: Option<u32>,
    /// GPUs of prefill.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prefill_gpu_count: Option<u32>,
    /// GPUs of decode.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub decode_gpu_count: Option<u32>,
    /// Tensor parallelism of prefill.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prefill_tp: Option<u32>,
    /// Expert parallelism of prefill.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prefill_ep: Option<u32>,
    /// Tensor parallelism of decode.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub decode_tp: Option<u32>,
    /// Expert parallelism of decode.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub decode_ep: Option<u32>,
    /// Processes of prefill.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prefill_workers: Option<u32>,
    /// Processes of decode.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub decode_workers: Option<u32>,
    /// Whether attention of prefill is data parallel.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prefill_dp_attention: Option<bool>,
    /// Whether attention of decode is data parallel.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub decode_dp_attention: Option<bool>,
}

impl Dimensions {
    /// Those of a job that serves on one host. The GPUs are those that its model servers were given, or else the host's;
    /// none for a host without.
    pub fn of_job(workload: &WorkloadSpec, commands: &ResolvedCommands, host_gpus: u32) -> Self {
        let parallelism = Parallelism::of_commands(commands);
        let starts = !commands.serve_argv.is_empty();
        Self {
            spec_decoding: starts.then(|| speculation(&commands.engine_args)),
            framework: Some(workload.framework_code.clone()),
            precision: workload.quantization.clone(),
            tp: parallelism.tensor,
            pp: parallelism.pipeline,
            ep: parallelism.expert,
            dp_attention: starts.then_some(parallelism.data_attention),
            gpu_count: commands.gpus().or(Some(host_gpus)).filter(|gpus| *gpus > 0),
            disaggregated: Some(false),
            multinode: Some(false),
            ..Self::default()
        }
    }
}

/// The kind of speculative decoding that the engine arguments ask for, in the word that they use; `none` without.
fn speculation(args: &EngineArgs) -> String {
    let word = match args.get("speculative_algorithm").or_else(|| args.get("speculative_config")) {
        None => return "none".to_owned(),
        Some(Value::String(text)) => match serde_json::from_str::<Value>(text) {
            Ok(config) => config["method"].as_str().map(str::to_owned),
            Err(_) => Some(text.clone()),
        },
        Some(config) => config["method"].as_str().map(str::to_owned),
    };
    // A configuration that names a draft model alone.
    word.filter(|word| !word.is_empty()).unwrap_or_else(|| "draft_model".to_owned()).to_lowercase()
}

/// Throughput per GPU, tokens a second.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct PerGpu {
    /// Input and output together.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tokens_per_second: Option<f64>,
    /// Output.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output_tokens_per_second: Option<f64>,
    /// Input.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub input_tokens_per_second: Option<f64>,
}

impl PerGpu {
    /// The figures of a run divided by its GPUs; nothing where their number is not known.
    pub fn of(figures: &ForeignFigures, gpu_count: Option<u32>) -> Self {
        let each = |rate: Option<f64>| {
            let gpus = gpu_count.filter(|gpus| *gpus > 0)?;
            Some(rate? / f64::from(gpus))
        };
        Self {
            tokens_per_second: each(figures.total_tokens_per_second),
            output_tokens_per_second: each(figures.completion_tokens_per_second),
            input_tokens_per_second: each(figures.prompt_tokens_per_second),
        }
    }
}

/// Reads what `benchmark_serving.py` wrote. Figures per GPU need the number of GPUs, which it does not say.
pub(super) fn read_result(value: &Value) -> Result<ForeignResult, ForeignError> {
    let file = Fields::of(value, "")?;
    let (load, figures) = vllm::serving(&file)?;
    let tool_code = Format::InferencexResult.tool_code().to_owned();
    Ok(ForeignResult {
        tool_code,
        load,
        figures,
        inferencex: Some(Dimensions::default()),
        per_gpu: Some(PerGpu::default()),
    })
}

/// Reads what `process_result.py` wrote, or a list of such.
pub(super) fn read_aggregates(value: &Value) -> Result<Vec<ForeignResult>, ForeignError> {
    match value {
        Value::Array(items) => items
            .iter()
            .enumerate()
            .map(|(index, item)| read_aggregate(&Fields::of(item, &format!("[{index}]"))?))
            .collect(),
        Value::Object(_) => Ok(vec![read_aggregate(&Fields::of(value, "")?)?]),
        other => {
            Err(ForeignError::new("the file", format!("must be an object or a list, not {}", kind(other))))
        }
    }
}

fn read_aggregate(file: &Fields<'_>) -> Result<ForeignResult, ForeignError> {
    let total = file.required("tput_per_gpu", file.number("tput_per_gpu")?)?;
    if total <= 0.0 {
        return Err(file.wrong("tput_per_gpu", "0 tokens a second are no result"));
    }
    let dimensions = dimensions(file)?;
    let per_gpu = PerGpu {
        tokens_per_second: Some(total),
        output_tokens_per_second: file.number("output_tput_per_gpu")?,
        input_tokens_per_second: file.number("input_tput_per_gpu")?,
    };
    let gpus = file.required("tp", dimensions.gpu_count)?;
    // Over several nodes each rate is per GPU of its own kind, disaggregated or not; where none is for decoding alone, the
    // output's is per GPU of all.
    let times = |rate: Option<f64>, own: Option<u32>| {
        let gpus = match own {
            Some(own @ 1..) => own,
            None if dimensions.disaggregated == Some(true) => return None,
            _ => gpus,
        };
        Some(rate? * f64::from(gpus))
    };
    let figures = ForeignFigures {
        total_tokens_per_second: Some(total * f64::from(gpus)),
        completion_tokens_per_second: times(per_gpu.output_tokens_per_second, dimensions.decode_gpu_count),
        prompt_tokens_per_second: times(per_gpu.input_tokens_per_second, dimensions.prefill_gpu_count),
        ttft_ms: spread(file, "ttft")?,
        tpot_excl_first_ms: spread(file, "tpot")?,
        inter_chunk_ms: spread(file, "itl")?,
        response_time_ms: spread(file, "e2el")?,
        ..ForeignFigures::default()
    };
    let load = Load {
        model_id: file.text("model")?,
        concurrency: file.axis("conc")?,
        input_sequence_length: file.axis("isl")?,
        output_sequence_length: file.axis("osl")?,
        ..Load::default()
    };
    let tool_code = Format::Inferencex.tool_code().to_owned();
    Ok(ForeignResult { tool_code, load, figures, inferencex: Some(dimensions), per_gpu: Some(per_gpu) })
}

fn dimensions(file: &Fields<'_>) -> Result<Dimensions, ForeignError> {
    let mut dimensions = Dimensions {
        hardware: file.text("hw")?,
        framework: file.text("framework")?,
        precision: file.text("precision")?,
        spec_decoding: file.text("spec_decoding")?,
        tp: file.axis("tp")?,
        pp: file.axis("pp")?,
        ep: file.axis("ep")?,
        dp_attention: file.flag("dp_attention")?,
        disaggregated: file.flag("disagg")?,
        multinode: file.flag("is_multinode")?,
        image: file.text("image")?,
        gpu_count: None,
        prefill_gpu_count: file.axis("num_prefill_gpu")?,
        decode_gpu_count: file.whole("num_decode_gpu")?,
        prefill_tp: file.axis("prefill_tp")?,
        prefill_ep: file.axis("prefill_ep")?,
        // Without GPUs of its own decoding has no degrees: they are written as 0.
        decode_tp: file.axis_or_none("decode_tp")?,
        decode_ep: file.axis_or_none("decode_ep")?,
        prefill_workers: file.axis("prefill_num_workers")?,
        decode_workers: file.whole("decode_num_workers")?,
        prefill_dp_attention: file.flag("prefill_dp_attention")?,
        decode_dp_attention: file.flag("decode_dp_attention")?,
    };
    let context = file.axis("pcp_size")?.unwrap_or(1);
    dimensions.gpu_count = match (dimensions.prefill_gpu_count, dimensions.decode_gpu_count) {
        (Some(prefill), Some(decode)) => prefill.checked_add(decode),
        _ => dimensions
            .tp
            .and_then(|tp| tp.checked_mul(dimensions.pp.unwrap_or(1)))
            .and_then(|gpus| gpus.checked_mul(context)),
    };
    Ok(dimensions)
}

/// `mean_ttft`, `median_ttft`, `p99.9_ttft`, …: seconds, which become milliseconds.
fn spread(file: &Fields<'_>, metric: &str) -> Result<Option<Spread>, ForeignError> {
    let of = |statistic: &str| file.number(&format!("{statistic}_{metric}"));
    let spread = Spread {
        avg: of("mean")?,
        std: of("std")?,
        p50: of("median")?,
        p90: of("p90")?,
        p95: of("p95")?,
        p99: of("p99")?,
        p99_9: of("p99.9")?,
        ..Spread::default()
    };
    Ok(spread.measured().map(|spread| spread.scaled(1000.0)))
}
