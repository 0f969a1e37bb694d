//! What telemetry comes to: a row a job (`v_telemetry_job_summary`), a row a GPU (`v_telemetry_per_gpu_summary`).
//! Folded by [`super::telemetry`].
//!
//! Only samples taken while the load generator ran count here: from `job.running` until the attempt's end.

use events::Timestamp;
use events::telemetry::{GpuSample, TelemetrySample};
use serde::{Deserialize, Serialize};

use super::energy::{Meter, total_power};
use super::telemetry_frame::Frame;
use super::telemetry_series::JobColumns;
use crate::projections::table::{Access, Row};
use crate::projections::text::{Column, Kind};

/// A mean in the making.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Mean {
    n: u64,
    sum: f64,
}

impl Mean {
    pub(super) fn take(&mut self, value: Option<f64>) {
        if let Some(value) = value {
            self.n += 1;
            self.sum += value;
        }
    }

    pub(super) fn value(self) -> Option<f64> {
        (self.n > 0).then(|| self.sum / self.n as f64)
    }
}

pub(super) fn larger(a: Option<f64>, b: Option<f64>) -> Option<f64> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a.max(b)),
        (a, b) => a.or(b),
    }
}

fn smaller(a: Option<f64>, b: Option<f64>) -> Option<f64> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a.min(b)),
        (a, b) => a.or(b),
    }
}

fn memory_pct(gpu: &GpuSample) -> Option<f64> {
    let (used, total) = (gpu.memory_used_bytes?, gpu.memory_total_bytes?);
    (total > 0).then(|| used as f64 / total as f64 * 100.0)
}

/// What a job's summary is made of.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Sums {
    events: u64,
    max_seq: u64,
    received: u64,
    expected: Option<u64>,
    interval_ms: u32,
    running_at: Option<Timestamp>,
    ended_at: Option<Timestamp>,
    first: Option<Timestamp>,
    last: Option<Timestamp>,
    gpu_power: Mean,
    gpu_power_total: Mean,
    gpus_changed: bool,
    gpu_utilization: Mean,
    gpu_memory_pct: Mean,
    cpu_utilization: Mean,
    ram_pct: Mean,
    system_power: Mean,
    meter: Option<Meter>,
}

/// One attempt's telemetry in short.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct JobSummaryRow {
    #[serde(flatten)]
    pub(super) frame: Frame,
    sample_count: u64,
    duration_s: Option<f64>,
    gpu_count: u64,
    avg_gpu_power_w: Option<f64>,
    max_gpu_power_w: Option<f64>,
    avg_gpu_power_total_w: Option<f64>,
    avg_gpu_utilization: Option<f64>,
    avg_gpu_memory_pct: Option<f64>,
    max_gpu_memory_pct: Option<f64>,
    avg_cpu_utilization: Option<f64>,
    avg_system_ram_pct: Option<f64>,
    avg_system_power_w: Option<f64>,
    gpu_energy_j: Option<f64>,
    complete: Option<bool>,
    gaps: u64,
    started_at: Option<Timestamp>,
    ended_at: Option<Timestamp>,
    pub(super) superseded: bool,
    pub(super) sums: Sums,
}

impl JobSummaryRow {
    pub(super) fn new(keys: JobColumns, position: i64) -> Self {
        Self {
            frame: Frame::new(keys, position),
            sample_count: 0,
            duration_s: None,
            gpu_count: 0,
            avg_gpu_power_w: None,
            max_gpu_power_w: None,
            avg_gpu_power_total_w: None,
            avg_gpu_utilization: None,
            avg_gpu_memory_pct: None,
            max_gpu_memory_pct: None,
            avg_cpu_utilization: None,
            avg_system_ram_pct: None,
            avg_system_power_w: None,
            gpu_energy_j: None,
            complete: None,
            gaps: 0,
            started_at: None,
            ended_at: None,
            superseded: false,
            sums: Sums::default(),
        }
    }

    /// The load generator started: samples count from here.
    pub(super) fn running(&mut self, at: Timestamp) {
        self.sums.running_at = Some(at);
        self.sums.meter = Some(Meter::new(at.as_micros()));
        self.started_at = Some(at);
    }

    /// The attempt ended; its agent says how many samples it took, where it says anything.
    pub(super) fn ended(&mut self, at: Timestamp, expected: Option<u64>) {
        self.sums.ended_at = Some(at);
        self.sums.expected = expected;
        self.ended_at = Some(at);
        self.refresh();
    }

    /// An event with samples arrived, whether or not these count.
    pub(super) fn received(&mut self, seq: u64, samples: u64, interval_ms: u32) {
        self.sums.events += 1;
        self.sums.max_seq = self.sums.max_seq.max(seq);
        self.sums.received += samples;
        self.sums.interval_ms = interval_ms;
    }

    /// Whether a sample of this moment counts.
    pub(super) fn counts(&self, at: Timestamp) -> bool {
        // Sent twice with other values, a moment counts as it was said first.
        self.sums.running_at.is_some_and(|from| at >= from)
            && self.sums.ended_at.is_none_or(|to| at <= to)
            && self.sums.last != Some(at)
    }

    /// Takes a sample that counts.
    pub(super) fn take(&mut self, sample: &TelemetrySample, longest_step: i64) {
        let sums = &mut self.sums;
        self.sample_count += 1;
        sums.first = Some(sums.first.map_or(sample.at, |first| first.min(sample.at)));
        sums.last = Some(sums.last.map_or(sample.at, |last| last.max(sample.at)));
        let gpus = sample.gpus.len() as u64;
        // A GPU that is missing from a sample, or from those before it, leaves the sum of all unknown.
        sums.gpus_changed |= self.sample_count > 1 && gpus != self.gpu_count;
        self.gpu_count = self.gpu_count.max(gpus);
        for gpu in &sample.gpus {
            sums.gpu_power.take(gpu.power_w);
            sums.gpu_utilization.take(gpu.utilization);
            sums.gpu_memory_pct.take(memory_pct(gpu));
            self.max_gpu_power_w = larger(self.max_gpu_power_w, gpu.power_w);
            self.max_gpu_memory_pct = larger(self.max_gpu_memory_pct, memory_pct(gpu));
        }
        sums.gpu_power_total.take(total_power(sample));
        for cpu in &sample.cpus {
            sums.cpu_utilization.take(Some(cpu.utilization));
        }
        let system = &sample.system;
        if let (Some(used), Some(total)) = (system.ram_used_bytes, system.ram_total_bytes)
            && total > 0
        {
            sums.ram_pct.take(Some(used as f64 / total as f64 * 100.0));
        }
        sums.system_power.take(system.power_w);
        if let Some(meter) = &mut sums.meter {
            let watts = total_power(sample).filter(|_| !sums.gpus_changed);
            meter.take(sample.at.as_micros(), watts, longest_step);
        }
    }

    /// Works the figures out again.
    pub(super) fn refresh(&mut self) {
        let sums = &self.sums;
        self.gaps = sums.max_seq.saturating_sub(sums.events);
        self.duration_s =
            sums.first.zip(sums.last).map(|(first, last)| last.micros_since(first) as f64 / 1e6);
        self.avg_gpu_power_w = sums.gpu_power.value();
        self.avg_gpu_power_total_w = sums.gpu_power_total.value().filter(|_| !sums.gpus_changed);
        self.avg_gpu_utilization = sums.gpu_utilization.value();
        self.avg_gpu_memory_pct = sums.gpu_memory_pct.value();
        self.avg_cpu_utilization = sums.cpu_utilization.value();
        self.avg_system_ram_pct = sums.ram_pct.value();
        self.avg_system_power_w = sums.system_power.value();
        // Without its agent's count nobody knows whether all samples are here.
        self.complete = sums.ended_at.map(|_| self.gaps == 0 && sums.expected == Some(sums.received));
        let longest = super::energy::longest_step(sums.interval_ms);
        self.gpu_energy_j = match (self.complete, sums.ended_at, &sums.meter) {
            (Some(true), Some(end), Some(meter)) => meter.until(end.as_micros(), longest),
            _ => None,
        };
    }
}

impl Row for JobSummaryRow {
    type Key = (String, u32);
    const TABLE: &'static str = "telemetry_jobs";
    const KEY: &'static [&'static str] = &["job", "attempt"];

    fn columns() -> Vec<Column> {
        use Kind::{Bool, Float, Int, Json, Time};
        Frame::around(vec![
            Column::shown("sample_count", Int),
            Column::shown("duration_s", Float),
            Column::shown("gpu_count", Int),
            Column::shown("avg_gpu_power_w", Float),
            Column::shown("max_gpu_power_w", Float),
            Column::shown("avg_gpu_power_total_w", Float),
            Column::shown("avg_gpu_utilization", Float),
            Column::shown("avg_gpu_memory_pct", Float),
            Column::shown("max_gpu_memory_pct", Float),
            Column::shown("avg_cpu_utilization", Float),
            Column::shown("avg_system_ram_pct", Float),
            Column::shown("avg_system_power_w", Float),
            Column::shown("gpu_energy_j", Float),
            Column::shown("complete", Bool),
            Column::shown("gaps", Int),
            Column::shown("started_at", Time),
            Column::shown("ended_at", Time),
            Column::hidden("superseded", Bool),
            Column::hidden("sums", Json),
        ])
    }
    fn key(&self) -> Self::Key {
        self.frame.key()
    }
    fn access(&mut self) -> Option<Access<'_>> {
        self.frame.access()
    }
}

/// One GPU's telemetry in one attempt.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct GpuSummaryRow {
    #[serde(flatten)]
    pub(super) frame: Frame,
    gpu_index: u32,
    sample_count: u64,
    avg_gpu_power_w: Option<f64>,
    max_gpu_power_w: Option<f64>,
    min_gpu_power_w: Option<f64>,
    avg_gpu_utilization: Option<f64>,
    max_gpu_utilization: Option<f64>,
    avg_gpu_memory_used_bytes: Option<f64>,
    max_gpu_memory_used_bytes: Option<u64>,
    gpu_memory_total_bytes: Option<u64>,
    max_gpu_temperature_c: Option<f64>,
    power: Mean,
    utilization: Mean,
    memory: Mean,
}

impl GpuSummaryRow {
    pub(super) fn new(keys: JobColumns, gpu_index: u32, position: i64) -> Self {
        Self {
            frame: Frame::new(keys, position),
            gpu_index,
            sample_count: 0,
            avg_gpu_power_w: None,
            max_gpu_power_w: None,
            min_gpu_power_w: None,
            avg_gpu_utilization: None,
            max_gpu_utilization: None,
            avg_gpu_memory_used_bytes: None,
            max_gpu_memory_used_bytes: None,
            gpu_memory_total_bytes: None,
            max_gpu_temperature_c: None,
            power: Mean::default(),
            utilization: Mean::default(),
            memory: Mean::default(),
        }
    }

    pub(super) fn take(&mut self, gpu: &GpuSample, position: i64) {
        self.sample_count += 1;
        self.power.take(gpu.power_w);
        self.utilization.take(gpu.utilization);
        self.memory.take(gpu.memory_used_bytes.map(|b| b as f64));
        self.max_gpu_power_w = larger(self.max_gpu_power_w, gpu.power_w);
        self.min_gpu_power_w = smaller(self.min_gpu_power_w, gpu.power_w);
        self.max_gpu_utilization = larger(self.max_gpu_utilization, gpu.utilization);
        self.max_gpu_memory_used_bytes = self.max_gpu_memory_used_bytes.max(gpu.memory_used_bytes);
        self.gpu_memory_total_bytes = gpu.memory_total_bytes.or(self.gpu_memory_total_bytes);
        self.max_gpu_temperature_c = larger(self.max_gpu_temperature_c, gpu.temperature_c);
        self.avg_gpu_power_w = self.power.value();
        self.avg_gpu_utilization = self.utilization.value();
        self.avg_gpu_memory_used_bytes = self.memory.value();
        self.frame.position = position;
    }
}

impl Row for GpuSummaryRow {
    type Key = (String, u32, u32);
    const TABLE: &'static str = "telemetry_gpus";
    const KEY: &'static [&'static str] = &["job", "attempt", "gpu_index"];

    fn columns() -> Vec<Column> {
        use Kind::{Float, Int, Json};
        Frame::around(vec![
            Column::shown("gpu_index", Int),
            Column::shown("sample_count", Int),
            Column::shown("avg_gpu_power_w", Float),
            Column::shown("max_gpu_power_w", Float),
            Column::shown("min_gpu_power_w", Float),
            Column::shown("avg_gpu_utilization", Float),
            Column::shown("max_gpu_utilization", Float),
            Column::shown("avg_gpu_memory_used_bytes", Float),
            Column::shown("max_gpu_memory_used_bytes", Int),
            Column::shown("gpu_memory_total_bytes", Int),
            Column::shown("max_gpu_temperature_c", Float),
            Column::hidden("power", Json),
            Column::hidden("utilization", Json),
            Column::hidden("memory", Json),
        ])
    }
    fn key(&self) -> Self::Key {
        let (job, attempt) = self.frame.key();
        (job, attempt, self.gpu_index)
    }
    fn access(&mut self) -> Option<Access<'_>> {
        self.frame.access()
    }
}
