//! Who answers the same questions best: candidates of quality evaluations, ranked by the control plane within each set of
//! questions and prompts.

use leptos::prelude::*;

use crate::browser::page::Page;
use crate::browser::remote::{keep_live, use_rows};
use crate::format::{ABSENT, full, maybe, significant};
use crate::parts::states::{Empty, when_there};
use crate::parts::swatch;
use crate::row::Row;
use crate::state::colours::Kind;

/// The candidates.
#[component]
pub(super) fn Questions() -> impl IntoView {
    let rows = use_rows(|| {
        Some("/api/v_kyai_leaderboard?order=dataset.asc,dataset_sha256.asc,rank.asc&limit=200".to_owned())
    });
    let org = Page::expect().org_now();
    if !org.is_empty() {
        keep_live(
            rows,
            vec![format!("{org}:job")],
            |_, _| false,
            |e| e.event_type == "job.completed" || e.event_type.starts_with("quality."),
        );
    }
    view! {
        <section class="below" aria-labelledby="questions" data-testid="questions">
            <div class="section-head">
                <h2 id="questions">"On the same questions"</h2>
                <span class="meta">"same data set, same prompts, same judge; equal scores by latency"</span>
            </div>
            {when_there(
                rows,
                4,
                || view! { <Empty words="No quality evaluation has completed yet: add a KYAI evaluation to a workload."><a class="button" href="/projects">"Projects"</a></Empty> }.into_any(),
                |list| table(&list),
            )}
        </section>
    }
    .into_any()
}

fn table(list: &[Row]) -> AnyView {
    let lines = list.iter().map(|row| {
        let path = row.named_job_path();
        let score = row.number("kyai_score");
        view! {
            <tr data-testid="candidate" data-href=path.clone() tabindex="-1">
                <td class="number card-figure" data-label="Rank">{row.text("rank")}</td>
                <th scope="row" class="card-title"><a class="key" href=path.clone()>{swatch(Kind::Model, &row.text("model_code"))}{row.text("model_code")}</a></th>
                <td class="key card-title">{row.text("dataset")}</td>
                <td class="key">{format!("{} {}", row.text("framework_code"), row.text("framework_version"))}</td>
                <td>{row.maybe_text("quantization").unwrap_or_else(|| ABSENT.to_owned())}</td>
                <td class="number strong card-figure" data-label="Score ↑" title=score.map(full)>{score.map_or_else(|| ABSENT.to_owned(), significant)}</td>
                <td class="number card-figure" data-label="Response ↓" data-unit=row.number("response_time_avg_ms").map(|_| "ms")>{maybe(row.number("response_time_avg_ms"))}</td>
            </tr>
        }
    });
    view! {
        <div class="table-scroll">
            <table class="data-table">
                <caption class="visually-hidden">"Candidates on the same questions"</caption>
                <thead>
                    <tr>
                        <th scope="col" class="number">"Rank"</th>
                        <th scope="col">"Model"</th>
                        <th scope="col">"Data set"</th>
                        <th scope="col">"Framework"</th>
                        <th scope="col">"Precision"</th>
                        <th scope="col" class="number">"Score\u{a0}↑ "<span class="unit">"of 1"</span></th>
                        <th scope="col" class="number">"Response\u{a0}↓ "<span class="unit">"ms"</span></th>
                    </tr>
                </thead>
                <tbody>{lines.collect_view()}</tbody>
            </table>
        </div>
    }
    .into_any()
}
