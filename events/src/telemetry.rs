//! Hardware telemetry, sampled by the agent while a job runs. Units as in the performance methodology.

use serde::{Deserialize, Serialize};

use crate::timestamp::Timestamp;

/// One GPU at one moment.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct GpuSample {
    /// The GPU's index on its host, from 0.
    pub gpu: u32,
    /// Power draw, watts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub power_w: Option<f64>,
    /// Fraction of compute cycles in use, 0 to 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub utilization: Option<f64>,
    /// Memory in use, bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_used_bytes: Option<u64>,
    /// Memory in all, bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_total_bytes: Option<u64>,
    /// Temperature of the core, degrees Celsius.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub temperature_c: Option<f64>,
    /// SM clock, MHz.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sm_clock_mhz: Option<u32>,
}

/// One CPU socket over the interval since the sample before.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CpuSample {
    /// The socket (physical package), from 0.
    pub socket: u32,
    /// Fraction of cycles in use, 0 to 1.
    pub utilization: f64,
}

/// One TPU chip at one moment, as the TPU runtime library says.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TpuSample {
    /// The chip's index on its host, from 0.
    pub chip: u32,
    /// Share of time in which the chip was busy, percent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duty_cycle_pct: Option<f64>,
    /// Use of the tensor cores, percent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tensor_core_utilization_pct: Option<f64>,
    /// High-bandwidth memory in use, bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hbm_used_bytes: Option<u64>,
    /// High-bandwidth memory in all, bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hbm_total_bytes: Option<u64>,
}

/// The host at one moment.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Default)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SystemSample {
    /// Memory in use (total less available), bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ram_used_bytes: Option<u64>,
    /// Memory in all, bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ram_total_bytes: Option<u64>,
    /// Power draw of the whole system, watts, where the host can tell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub power_w: Option<f64>,
}

/// Everything read at one moment. A value that could not be read is absent, never 0.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TelemetrySample {
    /// When it was read, UTC.
    pub at: Timestamp,
    /// One entry a GPU.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub gpus: Vec<GpuSample>,
    /// One entry a CPU socket.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cpus: Vec<CpuSample>,
    /// One entry a TPU chip.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tpus: Vec<TpuSample>,
    /// The host.
    #[serde(default)]
    pub system: SystemSample,
}

/// An agent sampled its host. Stream: the attempt's telemetry stream. One event a sample at 1 Hz; above
/// that at most one second of samples. Read by: chunks, buckets, job and GPU summaries, live charts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TelemetrySampled {
    /// The event's number within the attempt, from 1 without a gap: a hole is visible.
    pub seq: u64,
    /// Nominal milliseconds between samples.
    pub interval_ms: u32,
    /// The samples, oldest first.
    pub samples: Vec<TelemetrySample>,
}
