//! What people ask, and how long it takes.

use std::time::Instant;

use futures::StreamExt;

use crate::generate::MODELS;
use crate::reading::{Read, at, person};
use crate::row;

/// The jobs that ended last, as the page asks for them.
const ENDED: &str = "status=in.(completed,failed,cancelled)&order=finished_at.desc.nullslast&limit=14";
/// What the reporting page's charts ask for.
const CHARTED: &str = "select=job,org,project_code,workload_code,run_number,scenario_code,model_code,framework_code,\
    framework_version,quantization,config_code,hostname,gpu_name,gpu_count,concurrency,output_tokens_per_second,\
    ttft_p99_ms&model_code=eq.{model}&order=finished_at.desc.nullslast,job.asc&limit=2000";

pub async fn queries(read: &Read) {
    let exact: &[(&'static str, &str)] = &[("prefer", "count=exact")];
    for (what, view, query) in [
        (
            "reporting page: a model, concurrency ≥ 8, sorted by throughput, first 50 of an exact count",
            "v_benchmark_results",
            "model_code=eq.{model}&concurrency=gte.8&order=output_tokens_per_second.desc.nullslast,job.asc&limit=50",
        ),
        (
            "reporting page: a model and framework, sorted by TTFT, first 50 of an exact count",
            "v_benchmark_results",
            "model_code=eq.{model}&framework_code=eq.vllm&order=ttft_p99_ms.asc.nullslast,job.asc&limit=50",
        ),
        (
            "reporting page: a scenario of a model on a server, sorted by TTFT, first 50 of an exact count",
            "v_benchmark_results",
            "model_code=eq.{model}&hostname=eq.gpu-{server}&scenario_code=eq.c8-isl512-osl256&order=ttft_p99_ms.asc.nullslast,job.asc&limit=50",
        ),
        (
            "reporting page: a model, finished last, first 50 of an exact count",
            "v_benchmark_results",
            "model_code=eq.{model}&order=finished_at.desc.nullslast,job.asc&limit=50",
        ),
        (
            "reporting page: as it opens, finished last, first 50 of an exact count",
            "v_benchmark_results",
            "order=finished_at.desc.nullslast,job.asc&limit=50",
        ),
        (
            "reporting page: the runs of a workload, by throughput, first 50 of an exact count",
            "v_benchmark_results",
            "workload_code=eq.w{nth}&order=output_tokens_per_second.desc.nullslast,job.asc&limit=50",
        ),
        (
            "reporting page: a model with a bound on TTFT, by energy efficiency, first 50 of an exact count",
            "v_benchmark_results",
            "model_code=eq.{model}&ttft_p99_ms=lt.250&order=output_tokens_per_joule.desc.nullslast,job.asc&limit=50",
        ),
        (
            "reporting page: a bound on throughput alone, best first, first 50 of an exact count",
            "v_benchmark_results",
            "output_tokens_per_second=gte.{bound}&order=output_tokens_per_second.desc.nullslast,job.asc&limit=50",
        ),
        (
            "reporting page: bounds on latency and throughput, by cost, first 50 of an exact count",
            "v_benchmark_results",
            "response_time_p99_ms=lte.1800&output_tokens_per_second=gte.{bound}&order=cost_per_million_output_tokens_usd.asc.nullslast,job.asc&limit=50",
        ),
        (
            "reporting page: a bound on time per output token, by it, first 50 of an exact count",
            "v_benchmark_results",
            "tpot_p99_ms=lte.{tpot}&order=tpot_p99_ms.desc.nullslast,job.asc&limit=50",
        ),
        (
            "reporting page: a day, finished last, first 50 of an exact count",
            "v_benchmark_results",
            "finished_at=gte.{day}&order=finished_at.desc.nullslast,job.asc&limit=50",
        ),
        (
            "jobs page: of a status on a server, first 50 of an exact count",
            "v_jobs",
            "status=eq.completed&hostname=eq.gpu-{server}&order=finished_at.desc.nullslast&limit=50",
        ),
        ("charts: the newest 2000 of a model", "v_benchmark_results", CHARTED),
        ("jobs page: what ended last", "v_jobs", ENDED),
        (
            "jobs page: what runs, and how much that is",
            "v_jobs",
            "status=eq.running&order=claimed_at.asc&limit=200",
        ),
        (
            "run page: its jobs",
            "v_jobs",
            "org=eq.acme&project_code=eq.p0&workload_code=eq.w{nth}&run_number=eq.7&order=ordinal.asc&limit=1000",
        ),
        ("leaderboard: throughput, first 50", "v_leaderboard", "limit=50"),
        (
            "leaderboard: sustainability of a model",
            "v_leaderboard",
            "category=eq.sustainability&model_code=eq.{model}&limit=50",
        ),
    ] {
        let ada = person("acme", "ada");
        let (mut waits, mut total) = (Vec::new(), String::new());
        for nth in 0..60 {
            let model: String =
                url::form_urlencoded::byte_serialize(MODELS[nth % MODELS.len()].as_bytes()).collect();
            let query = query
                .replace("{model}", &model)
                .replace("{nth}", &nth.to_string())
                .replace("{server}", &(nth % 20).to_string())
                // From nearly everything to a little.
                .replace("{tpot}", &(nth as f64 / 2.0).to_string())
                .replace("{bound}", &(nth * 800).to_string())
                .replace("{day}", &at(nth as f64 * 500.0).to_string());
            let began = Instant::now();
            // What the page counts.
            let counted = if what.contains("exact count") || view == "v_leaderboard" { exact } else { &[] };
            let (status, headers, body) = read.ask(&ada, view, &query, counted).await;
            waits.push(began.elapsed().as_secs_f64() * 1e3);
            assert!(status == 200 || status == 206, "{status}: {body}");
            total = headers["content-range"].to_str().unwrap_or_default().to_owned();
        }
        waits.sort_by(f64::total_cmp);
        row(what, format!("p50 {:.1} ms, p95 {:.1} ms ({total})", waits[30], waits[57]), "p95 ≤ 50 ms");
    }
}

pub async fn exports(read: &Read) {
    let ada = person("acme", "ada");
    let counted = [("prefer", "count=exact")]
        .map(|(k, v)| (http::HeaderName::from_static(k), http::HeaderValue::from_static(v)));
    let (_, answer, _) = read
        .bytes(&ada, "v_benchmark_results", "", &counted.into_iter().collect(), &http::Method::HEAD)
        .await;
    let range = answer["content-range"].to_str().unwrap_or_default().to_owned();
    let rows: i64 = range.rsplit('/').next().and_then(|total| total.parse().ok()).expect("a count");
    for accept in ["text/csv", "application/x-ndjson", "application/vnd.apache.parquet"] {
        let headers = [(http::header::ACCEPT, http::HeaderValue::from_static(accept))].into_iter().collect();
        let source = server::queries::view::Source {
            reader: &read.reader,
            log: &read.log,
            projections: &read.projections,
        };
        let (began, spent) = (Instant::now(), own_time());
        let response = server::queries::view::query(
            source,
            &ada,
            "v_benchmark_results",
            "",
            &headers,
            &http::Method::GET,
        )
        .await
        .unwrap_or_else(|failure| panic!("{failure:?}"));
        // As a client takes it: piece by piece, none kept.
        let (mut body, mut bytes) = (response.into_body().into_data_stream(), 0_u64);
        while let Some(piece) = body.next().await {
            bytes += piece.unwrap().len() as u64;
        }
        let took = began.elapsed().as_secs_f64();
        row(
            &format!("export of v_benchmark_results, every column, {accept}"),
            format!(
                "{:.0} rows/s ({rows} rows, {:.0} MB, {:.1} µs of our own processor time a row)",
                rows as f64 / took,
                bytes as f64 / 1e6,
                (own_time() - spent) / rows as f64 * 1e6
            ),
            "≥ 100,000 rows/s",
        );
    }
}

/// Processor time of this process so far, seconds: what an export costs beside the database, whoever else is busy.
fn own_time() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap();
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap().split_whitespace().collect();
    // utime and stime, in hundredths of a second.
    [11, 12].iter().map(|nth| fields[*nth].parse::<f64>().unwrap()).sum::<f64>() / 100.0
}
