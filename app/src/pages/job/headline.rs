//! What one wants to know first: the figures, why it failed, how far it is.

use leptos::prelude::*;

use super::View;
use crate::browser::remote::Rows;
use crate::format::{ABSENT, count, duration, maybe};
use crate::metrics::{column, headline};
use crate::parts::{Progress, tables};
use crate::row::Row;

/// The figures of a result, or of a job that has none yet.
#[component]
pub(super) fn Headline(
    /// The result.
    results: Rows,
    /// The job, where there is one.
    #[prop(optional)]
    jobs: Option<Rows>,
) -> impl IntoView {
    move || {
        let cells = |row: &Row, running: bool| {
            let row = row.clone();
            headline(&row.text("tool_code"))
                .iter()
                .filter_map(|key| column(key))
                .map(move |c| {
                    let value = if running {
                        view! { <span class="quiet" title=tables::why_absent(&row, c.key)>{ABSENT}</span> }
                            .into_any()
                    } else {
                        tables::figure(&row, c.key)
                    };
                    view! {
                        <div title=c.definition()>
                            <dt>{c.head()}</dt>
                            <dd data-testid=format!("headline-{}", c.key)>{value}</dd>
                            <dd class="meta">{c.unit()}</dd>
                        </div>
                    }
                })
                .collect_view()
        };
        match results.first() {
            Some(result) => {
                view! { <dl class="metrics" data-testid="headline">{cells(&result, false)}</dl> }.into_any()
            }
            None => match jobs.and_then(Rows::first) {
                Some(job) => {
                    view! { <dl class="metrics" data-testid="headline-empty">{cells(&job, true)}</dl> }
                        .into_any()
                }
                None => ().into_any(),
            },
        }
    }
}

#[component]
pub(super) fn Failure(view: View) -> impl IntoView {
    move || {
        let job = view.jobs.first().unwrap_or_default();
        let code = job.maybe_text("error_code").filter(|c| !c.is_empty())?;
        Some(view! {
            <div class="notice" role="alert" data-testid="failure">
                <p><span class="status" data-status="failed">{code}</span></p>
                <p>{job.text("error_message")}</p>
            </div>
        })
    }
}

#[component]
pub(super) fn ProgressLine(view: View) -> impl IntoView {
    let share = Signal::derive(move || view.feed.with(|feed| feed.share_done(&view.job())));
    let status = Memo::new(move |_| view.job().text("status"));
    let open = move || status.with(|s| matches!(s.as_str(), "running" | "queued" | "pending"));
    let newest = move || view.feed.with(|f| f.progress.last().cloned());
    let words = move || match newest() {
        Some(p) => {
            let total = p.total.map_or_else(String::new, |t| format!(" of {}", count(t as i64)));
            let failed =
                if p.failed > 0.0 { format!(", {} failed", count(p.failed as i64)) } else { String::new() };
            let numbers = format!("{}{total} requests{failed}", count(p.done as i64));
            if open() {
                let phase = p.phase.replace('_', "-");
                format!(
                    "{phase}: {numbers}, {} in flight, {}",
                    count(p.in_flight as i64),
                    duration(p.elapsed_s)
                )
            } else {
                format!("{numbers} in {}", duration(p.elapsed_s))
            }
        }
        None if !open() => String::new(),
        None => match view.job().text("phase").as_str() {
            "serving" => "the model server is starting".to_owned(),
            "claimed" => "the agent prepares the job".to_owned(),
            "queued" => "waiting for the server's agent".to_owned(),
            "pending" => "waiting for the jobs before it".to_owned(),
            _ => "the load generator starts".to_owned(),
        },
    };
    let now = move || {
        newest().filter(|_| open()).map(|p| {
            // Speech and images are no tokens, and have no first one.
            match p.rate() {
                (rate, "tok/s") => {
                    format!("{} tok/s now · TTFT p50 so far {} ms", maybe(rate), maybe(p.ttft_p50_ms))
                }
                (rate, unit) => {
                    let response = maybe(p.response_time_p50_ms);
                    format!("{} {unit} now · response p50 so far {response} ms", maybe(rate))
                }
            }
        })
    };
    view! {
        <Show when=move || open() || newest().is_some()>
            <div class="progress-line" data-testid="progress" data-status=move || status.get()>
                <p class="cell-line"><span>{words}</span><span>{now}</span></p>
                <Show when=open><Progress share label="Requests answered"/></Show>
            </div>
        </Show>
    }
    .into_any()
}
