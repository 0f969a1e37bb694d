//! TPU telemetry in short: a row a job (`v_tpu_telemetry_job_summary`). Folded by [`super::telemetry`]. As with GPUs, only
//! samples taken while the load generator ran count.

use events::Timestamp;
use events::telemetry::TpuSample;
use serde::{Deserialize, Serialize};

use super::telemetry_frame::Frame;
use super::telemetry_series::JobColumns;
use super::telemetry_summary::{Mean, larger};
use crate::projections::table::{Access, Row};
use crate::projections::text::{Column, Kind};

/// One attempt's TPU telemetry.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct TpuSummaryRow {
    #[serde(flatten)]
    frame: Frame,
    sample_count: u64,
    tpu_count: u64,
    avg_tpu_duty_cycle_pct: Option<f64>,
    peak_tpu_duty_cycle_pct: Option<f64>,
    avg_tensor_core_utilization_pct: Option<f64>,
    peak_tensor_core_utilization_pct: Option<f64>,
    avg_hbm_used_bytes: Option<f64>,
    max_hbm_used_bytes: Option<u64>,
    hbm_total_bytes: Option<u64>,
    started_at: Timestamp,
    ended_at: Timestamp,
    duty_cycle: Mean,
    tensor_core: Mean,
    hbm_used: Mean,
}

/// The sum over chips; nothing where one of them could not be read.
fn over_chips(tpus: &[TpuSample], of: fn(&TpuSample) -> Option<u64>) -> Option<u64> {
    tpus.iter().map(of).sum()
}

impl TpuSummaryRow {
    pub(super) fn new(keys: JobColumns, at: Timestamp, position: i64) -> Self {
        Self {
            frame: Frame::new(keys, position),
            sample_count: 0,
            tpu_count: 0,
            avg_tpu_duty_cycle_pct: None,
            peak_tpu_duty_cycle_pct: None,
            avg_tensor_core_utilization_pct: None,
            peak_tensor_core_utilization_pct: None,
            avg_hbm_used_bytes: None,
            max_hbm_used_bytes: None,
            hbm_total_bytes: None,
            started_at: at,
            ended_at: at,
            duty_cycle: Mean::default(),
            tensor_core: Mean::default(),
            hbm_used: Mean::default(),
        }
    }

    /// Takes what all chips said at one moment.
    pub(super) fn take(&mut self, at: Timestamp, tpus: &[TpuSample], position: i64) {
        self.sample_count += 1;
        self.tpu_count = self.tpu_count.max(tpus.len() as u64);
        self.started_at = self.started_at.min(at);
        self.ended_at = self.ended_at.max(at);
        for tpu in tpus {
            self.duty_cycle.take(tpu.duty_cycle_pct);
            self.tensor_core.take(tpu.tensor_core_utilization_pct);
            self.peak_tpu_duty_cycle_pct = larger(self.peak_tpu_duty_cycle_pct, tpu.duty_cycle_pct);
            self.peak_tensor_core_utilization_pct =
                larger(self.peak_tensor_core_utilization_pct, tpu.tensor_core_utilization_pct);
        }
        let used = over_chips(tpus, |tpu| tpu.hbm_used_bytes);
        self.hbm_used.take(used.map(|bytes| bytes as f64));
        self.max_hbm_used_bytes = self.max_hbm_used_bytes.max(used);
        self.hbm_total_bytes = over_chips(tpus, |tpu| tpu.hbm_total_bytes).or(self.hbm_total_bytes);
        self.avg_tpu_duty_cycle_pct = self.duty_cycle.value();
        self.avg_tensor_core_utilization_pct = self.tensor_core.value();
        self.avg_hbm_used_bytes = self.hbm_used.value();
        self.frame.position = position;
    }
}

impl Row for TpuSummaryRow {
    type Key = (String, u32);
    const TABLE: &'static str = "telemetry_tpus";
    const KEY: &'static [&'static str] = &["job", "attempt"];

    fn columns() -> Vec<Column> {
        use Kind::{Float, Int, Json, Time};
        Frame::around(vec![
            Column::shown("sample_count", Int),
            Column::shown("tpu_count", Int),
            Column::shown("avg_tpu_duty_cycle_pct", Float),
            Column::shown("peak_tpu_duty_cycle_pct", Float),
            Column::shown("avg_tensor_core_utilization_pct", Float),
            Column::shown("peak_tensor_core_utilization_pct", Float),
            Column::shown("avg_hbm_used_bytes", Float),
            Column::shown("max_hbm_used_bytes", Int),
            Column::shown("hbm_total_bytes", Int),
            Column::shown("started_at", Time),
            Column::shown("ended_at", Time),
            Column::hidden("duty_cycle", Json),
            Column::hidden("tensor_core", Json),
            Column::hidden("hbm_used", Json),
        ])
    }
    fn key(&self) -> Self::Key {
        self.frame.key()
    }
    fn access(&mut self) -> Option<Access<'_>> {
        self.frame.access()
    }
}
