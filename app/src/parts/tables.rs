//! Cells of tables of results: numbers with their full value on hover and their proof one click away.

use leptos::prelude::*;

use crate::browser::now_ms;
use crate::browser::route::use_location;
use crate::format::{ABSENT, day, full, maybe_count, significant};
use crate::frame::drawer_href;
use crate::metrics::{Column, Kind};
use crate::row::Row;
use crate::state::colours::Kind as Coloured;
use crate::state::query::Query;
use crate::state::result_key::path_of;

/// The link to the proof of a figure of a job, in this view's drawer.
pub fn proof_href(job: &str, metric: &str) -> Signal<String> {
    let location = use_location();
    let (job, metric) = (job.to_owned(), metric.to_owned());
    Signal::derive(move || {
        let path = path_of(&job);
        location.pathname.with(|at| {
            location.search.with(|search| {
                drawer_href(at, search, &[("drawer", "proof"), ("job", path), ("metric", &metric)])
            })
        })
    })
}

/// Whether the drawer explains this figure now.
pub fn is_explained(job: &str, metric: &str) -> Signal<bool> {
    let location = use_location();
    let (job, metric) = (job.to_owned(), metric.to_owned());
    Signal::derive(move || {
        location.search.with(|search| {
            let query = Query::parse(search);
            query.get("drawer") == Some("proof")
                && query.get("metric") == Some(&metric)
                && query.get("job") == Some(path_of(&job))
        })
    })
}

/// A figure: three digits, all of them on hover, its proof on click; "–" with the reason where there is none.
pub fn figure(row: &Row, key: &'static str) -> AnyView {
    let job = row.text("job");
    match row.number(key) {
        Some(value) => {
            let explained = is_explained(&job, key);
            let few = few_samples(row, key);
            let title = match &few {
                Some(why) => format!("{}: {why}", full(value)),
                None => format!("{}: show what made this number", full(value)),
            };
            view! {
                <a
                    href=proof_href(&job, key)
                    data-noscroll=""
                    class:few=few.is_some()
                    title=title
                    data-testid="figure"
                    data-metric=key
                    data-value=full(value)
                    aria-current=move || explained.get().then_some("true")
                >
                    {significant(value)}
                </a>
            }
            .into_any()
        }
        None => view! { <span class="quiet" title=why_absent(row, key)>{ABSENT}</span> }.into_any(),
    }
}

/// Why a percentile rests on too few samples, where it does: p99 needs a hundred.
pub fn few_samples(row: &Row, key: &str) -> Option<String> {
    let needed = [("p99", 100), ("p95", 20), ("p90", 10)].iter().find(|(p, _)| key.contains(p))?;
    let sample = row.whole("requests_succeeded")?;
    (sample < needed.1).then(|| format!("{sample} requests, too few for a {}: {} needed", needed.0, needed.1))
}

/// Why a figure is not there.
pub fn why_absent(row: &Row, key: &str) -> &'static str {
    match row.text("status").as_str() {
        "pending" | "queued" => "not measured yet",
        "running" => "measured when the job completes",
        "failed" | "cancelled" => "the job ended without a result",
        _ if key.contains("gpu") || key.contains("joule") || key.contains("energy") => {
            "no GPU power was sampled on this server"
        }
        _ if key.contains("cost") => "the server has no hourly cost",
        _ if key.contains("tpot") || key.contains("interactivity") => "answers were not streamed",
        _ => "not measured",
    }
}

/// A cell of a column. The first two columns of words survive on a phone as the card's title.
pub fn cell(row: &Row, column: &'static Column, figure_on_card: bool) -> AnyView {
    let label = column.head();
    match column.kind {
        Kind::Metric => view! {
            <td class="number" class:card-figure=figure_on_card data-label=label data-unit=column.unit()>
                {figure(row, column.key)}
            </td>
        }
        .into_any(),
        Kind::Count => view! { <td class="number">{maybe_count(row.whole(column.key))}</td> }.into_any(),
        Kind::Time => {
            let at = row.millis(column.key);
            let title = row.text(column.key);
            view! { <td class="number" title=title>{at.map_or_else(|| ABSENT.to_owned(), |at| day(at, now_ms()))}</td> }.into_any()
        }
        Kind::Status => {
            let row = row.clone();
            view! { <td class="card-figure" data-label="Status"><super::Marks row/></td> }.into_any()
        }
        Kind::Key => key_cell(row, column.key),
        Kind::Text => view! { <td>{words(row, column.key)}</td> }.into_any(),
    }
}

/// A cell of words: the GPUs with their number.
pub fn words(row: &Row, key: &str) -> String {
    match key {
        "gpu_name" => match (row.whole("gpu_count"), row.maybe_text("gpu_name")) {
            (Some(n), Some(name)) if n > 0 => format!("{n}×{}", name.trim_start_matches("NVIDIA ")),
            _ => "CPU".to_owned(),
        },
        _ => row.maybe_text(key).unwrap_or_else(|| ABSENT.to_owned()),
    }
}

fn key_cell(row: &Row, key: &str) -> AnyView {
    match key {
        "workload_code" => view! {
            <th scope="row" class="card-title">
                <a class="key" href=row.run_path()>
                    {super::swatch(Coloured::Model, &row.text("model_code"))}
                    {format!("{} / {}", row.text("workload_code"), row.text("run_number"))}
                </a>
            </th>
        }
        .into_any(),
        "scenario_code" => view! {
            <td class="card-title">
                <a class="key" href=row.job_path()>{row.text("scenario_code")}</a>
            </td>
        }
        .into_any(),
        "project_code" => {
            view! { <td><a class="key" href=row.project_path()>{row.text(key)}</a></td> }.into_any()
        }
        "framework_code" => {
            view! { <td>{format!("{} {}", row.text("framework_code"), row.text("framework_version"))}</td> }
                .into_any()
        }
        "hostname" => {
            view! { <td class="key">{format!("{}/{}", row.text("config_code"), row.text("hostname"))}</td> }
                .into_any()
        }
        _ => view! { <td class="key">{row.maybe_text(key).unwrap_or_else(|| ABSENT.to_owned())}</td> }
            .into_any(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_p99_of_few_requests_says_so() {
        let row: Row = serde_json::from_value(json!({"requests_succeeded": 40})).expect("a row");
        assert_eq!(
            few_samples(&row, "ttft_p99_ms").as_deref(),
            Some("40 requests, too few for a p99: 100 needed")
        );
        assert_eq!(few_samples(&row, "ttft_p50_ms"), None);
    }
}
