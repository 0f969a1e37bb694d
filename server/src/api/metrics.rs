//! `GET /metrics`: Prometheus text.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Mutex;
use std::time::Duration;

use axum::extract::State;
use axum::response::{IntoResponse, Response};
use http::{Method, StatusCode, header};

use super::error::Failure;
use crate::state::AppState;

/// Upper bounds of the request histogram, seconds.
const BUCKETS: [f64; 8] = [0.001, 0.005, 0.025, 0.1, 0.25, 1.0, 5.0, 30.0];

#[derive(Debug, Default)]
struct Series {
    by_status: BTreeMap<u16, u64>,
    buckets: [u64; BUCKETS.len()],
    count: u64,
    seconds: f64,
}

/// Counters of this process.
#[derive(Debug, Default)]
pub struct Metrics {
    requests: Mutex<BTreeMap<(String, String), Series>>,
    reports: Mutex<BTreeMap<&'static str, u64>>,
}

impl Metrics {
    /// Counts an answered request. `route` is the route's pattern, so that there are few of them.
    pub fn count_request(&self, method: &Method, route: &str, status: StatusCode, took: Duration) {
        let mut requests = self.requests.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let series = requests.entry((method.to_string(), route.to_owned())).or_default();
        *series.by_status.entry(status.as_u16()).or_default() += 1;
        let seconds = took.as_secs_f64();
        for (bound, bucket) in BUCKETS.iter().zip(&mut series.buckets) {
            *bucket += u64::from(seconds <= *bound);
        }
        series.count += 1;
        series.seconds += seconds;
    }

    /// Counts report items by what became of them: `accepted`, `duplicate`, `rejected`, `retry`.
    pub fn count_reports(&self, outcome: &'static str, items: u64) {
        let mut reports = self.reports.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        *reports.entry(outcome).or_default() += items;
    }

    fn write(&self, out: &mut String) {
        let reports = self.reports.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        head(out, "benchtrail_report_items_total", "counter", "Report items, by what became of them.");
        for (outcome, items) in &*reports {
            let _ = writeln!(out, "benchtrail_report_items_total{{outcome=\"{outcome}\"}} {items}");
        }
        let requests = self.requests.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        head(out, "benchtrail_http_requests_total", "counter", "Answered requests.");
        for ((method, route), series) in &*requests {
            for (status, count) in &series.by_status {
                let _ = writeln!(
                    out,
                    "benchtrail_http_requests_total{{method=\"{method}\",route=\"{route}\",status=\"{status}\"}} {count}"
                );
            }
        }
        head(out, "benchtrail_http_request_seconds", "histogram", "Seconds until the answer began.");
        for ((method, route), series) in &*requests {
            let labels = format!("method=\"{method}\",route=\"{route}\"");
            for (bound, count) in BUCKETS.iter().zip(series.buckets) {
                let _ = writeln!(
                    out,
                    "benchtrail_http_request_seconds_bucket{{{labels},le=\"{bound}\"}} {count}"
                );
            }
            let count = series.count;
            let _ = writeln!(out, "benchtrail_http_request_seconds_bucket{{{labels},le=\"+Inf\"}} {count}");
            let _ = writeln!(out, "benchtrail_http_request_seconds_sum{{{labels}}} {}", series.seconds);
            let _ = writeln!(out, "benchtrail_http_request_seconds_count{{{labels}}} {count}");
        }
    }
}

fn head(out: &mut String, name: &str, kind: &str, help: &str) {
    let _ = writeln!(out, "# HELP {name} {help}\n# TYPE {name} {kind}");
}

/// The handler.
pub async fn metrics(State(state): State<AppState>) -> Result<Response, Failure> {
    let position = state.log.head().await?.position;
    let connected: i64 =
        sqlx::query_scalar("select count(*) from presence where last_seen > now() - interval '30 seconds'")
            .fetch_one(&state.pool)
            .await?;
    let status = state.projections.status();
    let mut out = String::with_capacity(8 << 10);
    head(&mut out, "benchtrail_log_position", "gauge", "Position of the log's last event.");
    let _ = writeln!(out, "benchtrail_log_position {position}");
    head(&mut out, "benchtrail_agents_connected", "gauge", "Agents heard of within 30 seconds.");
    let _ = writeln!(out, "benchtrail_agents_connected {connected}");
    head(&mut out, "benchtrail_projection_lag", "gauge", "Events a projection has not folded yet.");
    for projection in &status.projections {
        let lag = (position - projection.position).max(0);
        let _ = writeln!(out, "benchtrail_projection_lag{{projection=\"{}\"}} {lag}", projection.name);
    }
    head(&mut out, "benchtrail_projection_quarantined", "gauge", "Events a projection could not fold.");
    for projection in &status.projections {
        let _ = writeln!(
            out,
            "benchtrail_projection_quarantined{{projection=\"{}\"}} {}",
            projection.name, projection.quarantined
        );
    }
    state.metrics.write(&mut out);
    Ok(([(header::CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")], out).into_response())
}
