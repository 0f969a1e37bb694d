//! Views of telemetry: what it comes to, and its lines.

use super::{ACCESS, ViewDef, column, plain, selected, shown};
use crate::projections::models::jobs::JobRow;
use crate::projections::models::telemetry_series::JobColumns;
use crate::projections::models::telemetry_summary::{GpuSummaryRow, JobSummaryRow};
use crate::projections::models::tpu_summary::TpuSummaryRow;
use crate::projections::table::Row;
use crate::projections::text::{Column, Kind};

pub(super) fn job_summary() -> ViewDef {
    let view = plain::<JobSummaryRow>("v_telemetry_job_summary");
    ViewDef { select: format!("{} where not superseded", view.select), ..view }
}

/// Rows of the attempt that counts.
fn not_superseded<R: Row>(name: &'static str) -> ViewDef {
    let own = shown(R::columns());
    ViewDef {
        select: format!(
            "select {} from {{{}}} t join {{telemetry_jobs}} j
               on j.job = t.job and j.attempt = t.attempt and not j.superseded",
            selected(&own, "t."),
            R::TABLE
        ),
        tables: vec![R::TABLE, "telemetry_jobs"],
        ..plain::<R>(name)
    }
}

pub(super) fn gpu_summary() -> ViewDef {
    not_superseded::<GpuSummaryRow>("v_telemetry_per_gpu_summary")
}

pub(super) fn tpu_summary() -> ViewDef {
    not_superseded::<TpuSummaryRow>("v_tpu_telemetry_job_summary")
}

pub(super) fn job_with_telemetry() -> ViewDef {
    let jobs = shown(JobRow::columns());
    let mut columns = jobs.clone();
    let mut names = selected(&jobs, "j.");
    for c in shown(JobSummaryRow::columns()) {
        if columns.iter().any(|own| own.name == c.name) || ACCESS.contains(&c.name.as_str()) {
            continue;
        }
        let name = match c.name.as_str() {
            "started_at" | "ended_at" | "complete" | "gaps" => format!("telemetry_{}", c.name),
            other => other.to_owned(),
        };
        names.push_str(&format!(", t.{} as {name}", c.name));
        columns.push(Column { name, ..c });
    }
    ViewDef {
        name: "v_job_with_telemetry",
        select: format!(
            "select {names} from {{jobs}} j left join {{telemetry_jobs}} t on t.job = j.job and t.attempt = j.attempt"
        ),
        columns,
        tables: vec!["jobs", "telemetry_jobs"],
        invoker: true,
        history: None,
        served: true,
        ranked: false,
    }
}

fn series_columns() -> Vec<Column> {
    let mut columns = shown(JobColumns::columns());
    columns.extend([
        column("source", Kind::Text),
        column("metric", Kind::Text),
        column("bucket_s", Kind::Int),
    ]);
    columns
}

/// Buckets as arrays, a few rows an hour and line: the cheapest way to draw a chart.
pub(super) fn series() -> ViewDef {
    let mut columns = series_columns();
    let keys = selected(&columns, "");
    columns.extend([
        column("bucket_start", Kind::Times),
        column("min", Kind::Floats),
        column("avg", Kind::Floats),
        column("max", Kind::Floats),
        column("count", Kind::Ints),
        column("segment", Kind::Time),
        column("position", Kind::Int),
    ]);
    ViewDef {
        name: "v_telemetry_series",
        select: format!(
            "select {keys}, starts as bucket_start, mins as min,
                    (select array_agg(s / c order by n) from unnest(sums, counts) with ordinality as u (s, c, n)) as avg,
                    maxs as max, counts as count, segment, position
               from {{telemetry_segments}}"
        ),
        columns,
        tables: vec!["telemetry_segments"],
        invoker: true,
        history: None,
        served: true,
        ranked: false,
    }
}

/// Buckets, one a row. Buckets of one second are the samples themselves.
pub(super) fn buckets() -> ViewDef {
    let mut columns = series_columns();
    let keys = selected(&columns, "s.");
    let raw_keys = keys.replace("s.metric", "m.metric").replace("s.bucket_s", "1::bigint");
    columns.extend([
        column("bucket_start", Kind::Time),
        column("min", Kind::Float),
        column("avg", Kind::Float),
        column("max", Kind::Float),
        column("count", Kind::Int),
    ]);
    ViewDef {
        name: "v_telemetry_buckets",
        select: format!(
            "select {keys}, u.bucket_start, u.min, u.sum / u.count as avg, u.max, u.count
               from {{telemetry_segments}} s,
                    unnest(s.starts, s.mins, s.maxs, s.sums, s.counts) as u (bucket_start, min, max, sum, count)
             union all
             select {raw_keys}, u.at, u.value, u.value, u.value, 1::bigint
               from {{telemetry_chunks}} s,
                    lateral (values ('power_w', s.power_w), ('utilization', s.utilization),
                                    ('memory_used_bytes', s.memory_used_bytes::double precision[]),
                                    ('ram_used_bytes', s.ram_used_bytes::double precision[])) as m (metric, readings),
                    unnest(s.at, m.readings) as u (at, value)
              where u.value is not null"
        ),
        columns,
        tables: vec!["telemetry_segments", "telemetry_chunks"],
        invoker: true,
        history: None,
        served: true,
        ranked: false,
    }
}
