//! What is shown of a file: what it holds, what is wrong with it, what came of it.

use events::foreign::ForeignResult;
use leptos::prelude::*;

use crate::browser::api::Trouble;
use crate::format::{ABSENT, count, counted, maybe, maybe_count};
use crate::state::importing::Chosen;
use crate::state::query::Query;
use crate::state::result_key::path_of;

/// Faults that are shown.
const MOST_FAULTS: usize = 20;
/// Results of a file that are shown before they are imported.
const MOST_SHOWN: usize = 50;

/// The file in one line.
pub(super) fn file_words(chosen: &Chosen) -> String {
    let holds = match chosen.faults.len() {
        0 => counted(chosen.results.len() as i64, "result"),
        n => counted(n as i64, "fault"),
    };
    format!("{} · {} bytes · {} · {holds}", chosen.name, count(chosen.size as i64), chosen.format.title())
}

/// What the file holds.
pub(super) fn preview(results: &[ForeignResult]) -> AnyView {
    let lines = results.iter().take(MOST_SHOWN).enumerate().map(|(n, r)| {
        let figures = &r.figures;
        let whole = |n: Option<u32>| maybe_count(n.map(i64::from));
        let requests = format!("{} / {}", maybe_count(figures.requests_succeeded.map(|n| n as i64)), maybe_count(figures.requests_failed.map(|n| n as i64)));
        let mark = figures.simulated.then(|| view! { " "<span class="status" data-status="simulated">"simulated"</span> });
        view! {
            <tr data-testid="import-result">
                <th scope="row" class="card-title">{n + 1}" "<span class="key">{r.tool_code.clone()}</span>{mark}</th>
                <td class="number card-figure" data-label="Concurrency">{whole(r.load.concurrency)}</td>
                <td class="number">{whole(r.load.input_sequence_length)}</td>
                <td class="number">{whole(r.load.output_sequence_length)}</td>
                <td class="number">{requests}</td>
                <td class="number">{maybe(figures.requests_per_second)}</td>
                <td class="number card-figure" data-label="Tokens/s">{maybe(figures.completion_tokens_per_second)}</td>
                <td class="number">{maybe(figures.ttft_ms.as_ref().and_then(|t| t.p50))}</td>
            </tr>
        }
    });
    let rest = results.len().saturating_sub(MOST_SHOWN);
    view! {
        <table class="data-table" data-testid="import-preview">
            <caption class="visually-hidden">"What the file holds"</caption>
            <thead>
                <tr>
                    <th scope="col">"Result"</th>
                    <th scope="col" class="number">"Concurrency"</th>
                    <th scope="col" class="number">"ISL"</th>
                    <th scope="col" class="number">"OSL"</th>
                    <th scope="col" class="number">"Answered / failed"</th>
                    <th scope="col" class="number">"Requests "<span class="unit">"1/s"</span></th>
                    <th scope="col" class="number">"Output tokens "<span class="unit">"1/s"</span></th>
                    <th scope="col" class="number">"TTFT p50 "<span class="unit">"ms"</span></th>
                </tr>
            </thead>
            <tbody>{lines.collect_view()}</tbody>
        </table>
        {(rest > 0).then(|| view! { <p class="meta one-line">{format!("and {}", counted(rest as i64, "more result"))}</p> })}
        <p class="meta one-line">{format!("{ABSENT} is what the file does not say: it stays unknown, never 0.")}</p>
    }
    .into_any()
}

/// What is wrong with the file, by line.
pub(super) fn faults(chosen: &Chosen) -> AnyView {
    let rest = chosen.faults.len().saturating_sub(MOST_FAULTS);
    let lines = chosen.faults.iter().take(MOST_FAULTS).map(|fault| {
        view! {
            <tr data-testid="import-fault">
                <th scope="row" class="key">{fault.place.clone()}</th>
                <td class="wrap">{fault.message.clone()}</td>
            </tr>
        }
    });
    view! {
        <p class="one-line"><span class="status" data-status="failed">{format!("this is no result of {}", chosen.format.title())}</span></p>
        <table class="data-table keep-shape" data-testid="import-faults">
            <caption class="visually-hidden">"Faults of the file"</caption>
            <thead><tr><th scope="col">"Where"</th><th scope="col">"What is wrong"</th></tr></thead>
            <tbody>{lines.collect_view()}</tbody>
        </table>
        {(rest > 0).then(|| view! { <p class="meta one-line">{format!("and {}", counted(rest as i64, "more fault"))}</p> })}
        <p class="meta one-line">"Nothing is imported while a line is wrong. Choose the file as the tool wrote it, or another format."</p>
    }
    .into_any()
}

/// Why the control plane took none of it.
pub(super) fn refused(trouble: &Trouble) -> AnyView {
    let details = trouble.error.details.clone().unwrap_or_default();
    let lines = details.lines().map(|line| view! { <li>{line.to_owned()}</li> }).collect_view();
    view! {
        <p class="one-line"><span class="status" data-status="failed">{trouble.error.message.clone()}</span></p>
        <ul class="meta">{lines}</ul>
        <p class="meta">{trouble.error.hint.clone()}</p>
    }
    .into_any()
}

/// What was imported, each result a link.
pub(super) fn imported(streams: &[String], project: &str) -> AnyView {
    let mut query = Query::default();
    query.push("project", project);
    let report = format!("/reporting{}", query.write());
    let lines = streams.iter().map(|stream| {
        let path = path_of(stream).strip_prefix("import/").unwrap_or(stream).to_owned();
        view! { <li><a class="key link" href=format!("/projects/{path}")>{path.clone()}</a></li> }
    });
    view! {
        <section aria-labelledby="imported" data-testid="imported">
            <div class="section-head"><h2 id="imported">{format!("{} imported", counted(streams.len() as i64, "result"))}</h2><span class="push"><a class="link" href=report>"In Reporting"</a></span></div>
            <ul class="plain-list">{lines.collect_view()}</ul>
        </section>
    }
    .into_any()
}
