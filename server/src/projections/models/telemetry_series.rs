//! Telemetry over time: raw chunks of a minute (`v_telemetry_chunks`), and min/avg/max buckets for charts
//! (`v_telemetry_buckets`, `v_telemetry_series`). Folded by [`super::telemetry`].

use events::Timestamp;
use events::telemetry::TelemetrySample;
use serde::{Deserialize, Serialize};

use super::access;
use crate::projections::table::{Access, Row};
use crate::projections::text::{Column, Kind};

/// Microseconds of telemetry in one chunk row.
pub const CHUNK_US: i64 = 60_000_000;
/// The bucket sizes kept, seconds.
pub const BUCKET_SECONDS: [i64; 2] = [6, 60];
/// Buckets in one row: enough that an hour is few rows, few enough that a new sample rewrites little.
pub const BUCKETS_A_ROW: i64 = 50;

/// The keys that every row of a job's telemetry carries.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct JobColumns {
    pub(super) org: String,
    pub(super) project_code: String,
    pub(super) workload_code: String,
    pub(super) run_number: u32,
    pub(super) scenario_code: String,
    pub(super) job: String,
    pub(super) attempt: u32,
    pub(super) visibility: String,
    pub(super) owner: String,
}

impl JobColumns {
    /// The columns, before those of the row itself.
    pub fn columns() -> Vec<Column> {
        let mut columns = access::job_columns();
        columns.push(Column::shown("attempt", Kind::Int));
        columns.extend(access::columns());
        columns
    }

    pub(super) fn access(&mut self) -> Option<Access<'_>> {
        access::access(&self.org, &self.project_code, &mut self.visibility)
    }
}

/// One source's samples within one minute, as arrays of equal length.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ChunkRow {
    #[serde(flatten)]
    pub(super) keys: JobColumns,
    pub(super) source: String,
    pub(super) minute: Timestamp,
    at: Vec<Timestamp>,
    power_w: Option<Vec<Option<f64>>>,
    utilization: Option<Vec<Option<f64>>>,
    memory_used_bytes: Option<Vec<Option<u64>>>,
    memory_total_bytes: Option<u64>,
    temperature_c: Option<Vec<Option<f64>>>,
    sm_clock_mhz: Option<Vec<Option<u32>>>,
    ram_used_bytes: Option<Vec<Option<u64>>>,
    ram_total_bytes: Option<u64>,
    position: i64,
}

/// What one source said at one moment.
#[derive(Debug, Clone, Default)]
pub struct Reading {
    pub(super) power_w: Option<f64>,
    pub(super) utilization: Option<f64>,
    pub(super) memory_used_bytes: Option<u64>,
    pub(super) memory_total_bytes: Option<u64>,
    pub(super) temperature_c: Option<f64>,
    pub(super) sm_clock_mhz: Option<u32>,
    pub(super) ram_used_bytes: Option<u64>,
    pub(super) ram_total_bytes: Option<u64>,
}

impl Reading {
    /// The figures that charts draw.
    pub(super) fn metrics(&self) -> impl Iterator<Item = (&'static str, f64)> {
        [
            ("power_w", self.power_w),
            ("utilization", self.utilization),
            ("memory_used_bytes", self.memory_used_bytes.map(|b| b as f64)),
            ("ram_used_bytes", self.ram_used_bytes.map(|b| b as f64)),
        ]
        .into_iter()
        .filter_map(|(metric, value)| value.map(|v| (metric, v)))
    }
}

/// A sample's readings by source: `gpu0`, `cpu0`, `system`.
pub fn readings(sample: &TelemetrySample) -> Vec<(String, Reading)> {
    let mut out = Vec::with_capacity(sample.gpus.len() + sample.cpus.len() + 1);
    for gpu in &sample.gpus {
        let reading = Reading {
            power_w: gpu.power_w,
            utilization: gpu.utilization,
            memory_used_bytes: gpu.memory_used_bytes,
            memory_total_bytes: gpu.memory_total_bytes,
            temperature_c: gpu.temperature_c,
            sm_clock_mhz: gpu.sm_clock_mhz,
            ..Reading::default()
        };
        out.push((format!("gpu{}", gpu.gpu), reading));
    }
    for cpu in &sample.cpus {
        let reading = Reading { utilization: Some(cpu.utilization), ..Reading::default() };
        out.push((format!("cpu{}", cpu.socket), reading));
    }
    let system = &sample.system;
    let reading = Reading {
        power_w: system.power_w,
        ram_used_bytes: system.ram_used_bytes,
        ram_total_bytes: system.ram_total_bytes,
        ..Reading::default()
    };
    out.push(("system".to_owned(), reading));
    out
}

/// The start of the stretch of `span_us` microseconds that holds a moment.
pub fn start_of(at: Timestamp, span_us: i64) -> Timestamp {
    at.plus_micros(-at.as_micros().rem_euclid(span_us))
}

fn put<T: Clone>(array: &mut Option<Vec<Option<T>>>, before: usize, at: usize, value: Option<T>) {
    match array {
        Some(values) => values.insert(at, value),
        None if value.is_none() => {}
        None => {
            let mut values = vec![None; before];
            values.insert(at, value);
            *array = Some(values);
        }
    }
}

impl ChunkRow {
    pub(super) fn new(keys: JobColumns, source: String, minute: Timestamp) -> Self {
        Self {
            keys,
            source,
            minute,
            at: Vec::new(),
            power_w: None,
            utilization: None,
            memory_used_bytes: None,
            memory_total_bytes: None,
            temperature_c: None,
            sm_clock_mhz: None,
            ram_used_bytes: None,
            ram_total_bytes: None,
            position: 0,
        }
    }

    /// Whether it has a reading of this moment.
    pub(super) fn has(&self, at: Timestamp) -> bool {
        self.at.binary_search(&at).is_ok()
    }

    pub(super) fn add(&mut self, at: Timestamp, reading: &Reading, position: i64) {
        let before = self.at.len();
        let place = self.at.partition_point(|t| *t <= at);
        self.at.insert(place, at);
        put(&mut self.power_w, before, place, reading.power_w);
        put(&mut self.utilization, before, place, reading.utilization);
        put(&mut self.memory_used_bytes, before, place, reading.memory_used_bytes);
        put(&mut self.temperature_c, before, place, reading.temperature_c);
        put(&mut self.sm_clock_mhz, before, place, reading.sm_clock_mhz);
        put(&mut self.ram_used_bytes, before, place, reading.ram_used_bytes);
        self.memory_total_bytes = reading.memory_total_bytes.or(self.memory_total_bytes);
        self.ram_total_bytes = reading.ram_total_bytes.or(self.ram_total_bytes);
        self.position = position;
    }
}

impl Row for ChunkRow {
    type Key = (String, u32, String, Timestamp);
    const TABLE: &'static str = "telemetry_chunks";
    const KEY: &'static [&'static str] = &["job", "attempt", "source", "minute"];

    fn columns() -> Vec<Column> {
        use Kind::{Floats, Int, Ints, Text, Time, Times};
        let mut columns = JobColumns::columns();
        columns.extend([
            Column::shown("source", Text),
            Column::shown("minute", Time),
            Column::shown("at", Times),
            Column::shown("power_w", Floats),
            Column::shown("utilization", Floats),
            Column::shown("memory_used_bytes", Ints),
            Column::shown("memory_total_bytes", Int),
            Column::shown("temperature_c", Floats),
            Column::shown("sm_clock_mhz", Ints),
            Column::shown("ram_used_bytes", Ints),
            Column::shown("ram_total_bytes", Int),
            Column::shown("position", Int),
        ]);
        columns
    }
    fn key(&self) -> Self::Key {
        (self.keys.job.clone(), self.keys.attempt, self.source.clone(), self.minute)
    }
    fn access(&mut self) -> Option<Access<'_>> {
        self.keys.access()
    }
}

/// Consecutive buckets of one metric of one source, as arrays of equal length in order of time.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct SegmentRow {
    #[serde(flatten)]
    pub(super) keys: JobColumns,
    pub(super) source: String,
    pub(super) metric: String,
    pub(super) bucket_s: i64,
    pub(super) segment: Timestamp,
    starts: Vec<Timestamp>,
    mins: Vec<f64>,
    maxs: Vec<f64>,
    sums: Vec<f64>,
    counts: Vec<i64>,
    position: i64,
}

impl SegmentRow {
    pub(super) fn new(
        keys: JobColumns,
        source: String,
        metric: &str,
        bucket_s: i64,
        segment: Timestamp,
    ) -> Self {
        Self {
            keys,
            source,
            metric: metric.to_owned(),
            bucket_s,
            segment,
            starts: Vec::new(),
            mins: Vec::new(),
            maxs: Vec::new(),
            sums: Vec::new(),
            counts: Vec::new(),
            position: 0,
        }
    }

    pub(super) fn add(&mut self, at: Timestamp, value: f64, position: i64) {
        let start = start_of(at, self.bucket_s * 1_000_000);
        let place = self.starts.partition_point(|s| *s < start);
        if self.starts.get(place) == Some(&start) {
            self.mins[place] = self.mins[place].min(value);
            self.maxs[place] = self.maxs[place].max(value);
            self.sums[place] += value;
            self.counts[place] += 1;
        } else {
            self.starts.insert(place, start);
            self.mins.insert(place, value);
            self.maxs.insert(place, value);
            self.sums.insert(place, value);
            self.counts.insert(place, 1);
        }
        self.position = position;
    }
}

impl Row for SegmentRow {
    type Key = (String, u32, String, String, i64, Timestamp);
    const TABLE: &'static str = "telemetry_segments";
    const KEY: &'static [&'static str] = &["job", "attempt", "source", "metric", "bucket_s", "segment"];

    fn columns() -> Vec<Column> {
        use Kind::{Floats, Int, Ints, Text, Time, Times};
        let mut columns = JobColumns::columns();
        columns.extend([
            Column::shown("source", Text),
            Column::shown("metric", Text),
            Column::shown("bucket_s", Int),
            Column::shown("segment", Time),
            Column::shown("starts", Times),
            Column::shown("mins", Floats),
            Column::shown("maxs", Floats),
            Column::shown("sums", Floats),
            Column::shown("counts", Ints),
            Column::shown("position", Int),
        ]);
        columns
    }
    fn key(&self) -> Self::Key {
        (
            self.keys.job.clone(),
            self.keys.attempt,
            self.source.clone(),
            self.metric.clone(),
            self.bucket_s,
            self.segment,
        )
    }
    fn access(&mut self) -> Option<Access<'_>> {
        self.keys.access()
    }
}
