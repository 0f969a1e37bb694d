//! The report as a page: no scripts, nothing loaded, to be kept and printed.

use events::Timestamp;
use events::metrics::metric;
use maud::{DOCTYPE, Markup, PreEscaped, html};
use serde_json::{Map, Value};

use crate::api::html::style;
use crate::queries::report::{JobReport, Report};

/// Columns that say where a row belongs, which the report says already.
const PLACE: [&str; 12] = [
    "org",
    "project_code",
    "workload_code",
    "run_number",
    "scenario_code",
    "job",
    "run",
    "visibility",
    "position",
    "valid_from",
    "valid_to",
    "server",
];

pub(super) fn page(report: &Report, now: Timestamp) -> Markup {
    let title = format!("Run {}", report.run_key.trim_start_matches("run/"));
    html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                title { (title) }
                style { (PreEscaped(style())) }
            }
            body {
                h1 { (title) }
                p { "Benchtrail " (report.version) " at " (report.source) ", read " (now.to_string()) "." }
                (doubts(report))
                h2 { "Results" }
                (results(report))
                h2 { "The run" }
                (facts(&report.run))
                details { summary { "Project" } (facts(&report.project)) }
                details { summary { "Workload" } (facts(&report.workload)) }
                @if !report.server.is_null() { details { summary { "Server" } (facts(&report.server)) } }
                @for job in &report.jobs { (job_section(job)) }
                (proof_section(report))
            }
        }
    }
}

fn text<'a>(row: &'a Value, name: &str) -> &'a str {
    row[name].as_str().unwrap_or_default()
}

/// What a reader must know before the figures.
fn doubts(report: &Report) -> Markup {
    let any = |name: &str| report.jobs.iter().any(|job| job.result[name] == true);
    html! {
        @if any("simulated") {
            p.note { "Simulated: a reference server answered, not a model. The figures describe the simulation." }
        }
        @if any("suspicious") { p.note { "Some results are doubted; the doubts stand below, with each job." } }
        @if any("imported") { p.note { "Some results were imported: other tools measured them, outside of Benchtrail." } }
    }
}

fn results(report: &Report) -> Markup {
    const SHOWN: [&str; 8] = [
        "output_tokens_per_second",
        "ttft_p50_ms",
        "ttft_p99_ms",
        "tpot_avg_ms",
        "error_rate_pct",
        "window_s",
        "output_tokens_per_joule",
        "cost_per_million_output_tokens_usd",
    ];
    html! {
        table {
            thead {
                tr {
                    th { "scenario" } th { "status" }
                    @for name in SHOWN {
                        @let found = metric(name);
                        th.number title=[found.as_ref().map(|m| m.definition.as_str())] {
                            (found.as_ref().map_or(name, |m| m.label.as_str()))
                            @if let Some(unit) = found.as_ref().map(|m| m.unit).filter(|unit| !unit.is_empty()) { " [" (unit) "]" }
                        }
                    }
                    th { "doubts" }
                }
            }
            tbody {
                @for job in &report.jobs {
                    tr {
                        td { a href={ "#" (text(&job.job, "scenario_code")) } { (text(&job.job, "scenario_code")) } }
                        td { (text(&job.job, "status")) }
                        @for name in SHOWN { td.number { (shown(&job.result[name])) } }
                        td { (shown(&job.job["flags"])) }
                    }
                }
            }
        }
    }
}

fn job_section(job: &JobReport) -> Markup {
    html! {
        h2 id=(text(&job.job, "scenario_code")) { "Job " (text(&job.job, "scenario_code")) }
        @for flag in &job.flags {
            p.note {
                b { (text(flag, "rule")) } ": " (text(flag, "message"))
                @if flag["cleared"] == true { " Cleared: " (text(flag, "cleared_reason")) }
            }
        }
        @for (title, name) in [("The model server was started as", "serve_argv"), ("The load generator was started as", "tool_argv")] {
            @if let Some(argv) = job.job[name].as_array() {
                h3 { (title) }
                pre { code { (serde_json::to_string(argv).unwrap_or_default()) } }
            }
        }
        @if let Some(args) = job.job["engine_args"].as_object().filter(|args| !args.is_empty()) {
            h3 {
                "Engine arguments in force"
                @if let Some(set) = job.job["engine_args_set_code"].as_str() {
                    ", of set " (set) " in version " (shown(&job.job["engine_args_set_version"]))
                }
            }
            pre { code { @for (key, value) in args { (key) " = " (value) "\n" } } }
        }
        h3 { "Where its figures come from" }
        table {
            thead { tr { th { "link" } th { "key" } th.number { "position" } th { "hash" } th { "recorded" } } }
            tbody {
                @for link in &job.chain {
                    tr {
                        td { (link.link) } td { (link.key) } td.number { (link.position) }
                        td.hash { (link.hash) } td { (link.recorded_at.to_string()) }
                    }
                }
            }
        }
        @for (title, row) in [("Result", &job.result), ("Telemetry", &job.telemetry), ("TPU telemetry", &job.tpus)] {
            @if !row.is_null() { details { summary { (title) } (facts(row)) } }
        }
        @for gpu in &job.gpus { details { summary { "GPU " (shown(&gpu["gpu_index"])) } (facts(gpu)) } }
        @if !job.artifacts.is_empty() {
            details {
                summary { "Files" }
                table {
                    thead { tr { th { "kind" } th.number { "bytes" } th { "SHA-256" } } }
                    tbody {
                        @for file in &job.artifacts {
                            tr { td { (text(file, "kind")) } td.number { (shown(&file["bytes"])) } td.hash { (text(file, "sha256")) } }
                        }
                    }
                }
            }
        }
        details { summary { "The job" } (facts(&job.job)) }
        @if !job.summary.is_null() {
            details { summary { "The tool's summary, as it was recorded" } (json(&job.summary)) }
        }
    }
}

fn proof_section(report: &Report) -> Markup {
    html! {
        h2 { "Proof" }
        p {
            "Each event above stands in one log whose hashes form a chain. Here is every event behind the figures, with its "
            "path in the Merkle tree and the checkpoint that was signed over it. With the same report as JSON "
            "(" code { (report.source) "/api/report/" (report.run_key.trim_start_matches("run/")) "?format=json" } ") "
            "anybody can work the hashes out again and check the signature against the control plane's public key."
        }
        @for proof in &report.proofs {
            details {
                summary { "Position " (proof.event.position) ": " (proof.event.event_type) " in " (proof.event.stream.as_str()) }
                (json(&serde_json::to_value(proof).unwrap_or_default()))
            }
        }
    }
}

/// A row as a table of names and values, with labels and units where the metric catalogue knows them.
fn facts(row: &Value) -> Markup {
    let empty = Map::new();
    let columns = row.as_object().unwrap_or(&empty);
    html! {
        table {
            tbody {
                @for (name, value) in columns.iter().filter(|(name, value)| !value.is_null() && !PLACE.contains(&name.as_str())) {
                    @let found = metric(name);
                    tr {
                        th title=[found.as_ref().map(|m| m.definition.as_str())] { (found.as_ref().map_or(name.as_str(), |m| m.label.as_str())) }
                        td { (shown(value)) @if let Some(metric) = &found { " " (metric.unit) } }
                    }
                }
            }
        }
    }
}

fn shown(value: &Value) -> String {
    match value {
        Value::Null => "–".to_owned(),
        Value::String(text) => text.clone(),
        Value::Array(items) if items.iter().all(Value::is_string) => {
            items.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(" ")
        }
        other => other.to_string(),
    }
}

fn json(value: &Value) -> Markup {
    html! { pre { code { (serde_json::to_string_pretty(value).unwrap_or_default()) } } }
}
