//! An entry of the ranking: a line of the table, and the first of all at large.

use leptos::prelude::*;

use crate::browser::page::Page;
use crate::format::{ABSENT, counted, full, maybe_count, significant};
use crate::metrics::{Column, column};
use crate::parts::{swatch, tables};
use crate::row::Row;
use crate::state::board::CATEGORIES;
use crate::state::colours::Kind;
use crate::state::ranks::Scale;

/// The figures beside the one that is ranked by: those of the other categories.
pub(super) fn others(by: &'static Column) -> Vec<&'static Column> {
    CATEGORIES.iter().filter(|c| c.metric != by.key).filter_map(|c| column(c.metric)).collect()
}

/// The first of the ranking, at large; `ahead` of the next by this share.
pub(super) fn hero(first: &Row, ahead: Option<f64>, by: &'static Column) -> AnyView {
    let facts = [
        ("Framework", framework(first)),
        ("Precision", first.maybe_text("quantization").unwrap_or_else(|| "as published".into())),
        ("Server", server(first)),
        ("Traffic", first.text("scenario_code")),
        ("Runs", counted(first.whole("runs").unwrap_or(1), "run")),
    ];
    let mut words = vec![by.unit().to_owned()];
    if let Some(half) = first.number("interval_half") {
        words[0].push_str(&format!(" ± {}", significant(half)));
    }
    words.extend(ahead.map(|share| format!("{} % ahead of the second", significant(share * 100.0))));
    if first.is("shared") {
        words.push("shared: another's interval overlaps".to_owned());
    }
    view! {
        <section class="hero" aria-labelledby="leader" data-testid="hero">
            <p class="hero-line">
                <b id="leader">{swatch(Kind::Model, &first.text("model_code"))}{first.text("model_code")}</b>
                {mean(first, by)}
                <span class="meta">{words.join(" · ")}</span>
            </p>
            <dl class="run-facts">{facts.map(|(n, v)| view! { <div><dt>{n}</dt><dd class="key">{v}</dd></div> }).collect_view()}</dl>
        </section>
    }
    .into_any()
}

fn framework(row: &Row) -> String {
    match row.maybe_text("framework_code") {
        Some(code) => format!("{code} {}", row.text("framework_version")),
        None => ABSENT.to_owned(),
    }
}

/// Where it ran; what was brought from elsewhere has no server here.
fn server(row: &Row) -> String {
    match row.maybe_text("hostname") {
        Some(host) => format!("{}/{host}", row.text("config_code")),
        None => "elsewhere".to_owned(),
    }
}

/// The mean that is ranked by, with the proof of the newest run that is in it.
fn mean(row: &Row, by: &'static Column) -> AnyView {
    let Some(value) = row.number("value") else {
        return view! { <span class="quiet">{ABSENT}</span> }.into_any();
    };
    let runs = row.whole("runs").unwrap_or(1);
    let job = row.text("job");
    let title = if runs > 1 {
        format!("{}: the mean of {runs} runs; show what made the newest one", full(value))
    } else {
        format!("{}: show what made this number", full(value))
    };
    let explained = tables::is_explained(&job, by.key);
    view! {
        <a
            href=tables::proof_href(&job, by.key)
            data-noscroll=""
            title=title
            data-testid="figure"
            data-metric=by.key
            data-value=full(value)
            aria-current=move || explained.get().then_some("true")
        >
            {significant(value)}
        </a>
    }
    .into_any()
}

/// An entry.
pub(super) fn line(row: &Row, by: &'static Column, scale: Memo<Option<Scale>>) -> AnyView {
    let shared = row.is("shared");
    let rank = format!("{}{}", if shared { "=" } else { "" }, maybe_count(row.whole("rank")));
    let why = if shared { "its interval overlaps with another's: nobody knows who is better" } else { "" };
    let interval = match row.number("interval_half") {
        Some(half) => view! { <span title=format!("half the interval: {}", full(half))>{format!("±{}", significant(half))}</span> }.into_any(),
        None => view! { <span title="ran once: repeat the run for an interval">{ABSENT}</span> }.into_any(),
    };
    let (value, half) = (row.number("value"), row.number("interval_half").unwrap_or(0.0));
    let (colours, model) = (Page::expect().colours, row.text("model_code"));
    let drawn = move || {
        let place = scale.get()?.place(value?, half);
        let class = format!("interval {}", colours.of(Kind::Model, &model).class());
        Some(view! {
            <svg class=class viewBox="0 0 100 16" preserveAspectRatio="none" aria-hidden="true">
                <line x1="0" x2="100" y1="8" y2="8" vector-effect="non-scaling-stroke"></line>
                <line class="range" x1=place.low.to_string() x2=place.high.to_string() y1="8" y2="8" vector-effect="non-scaling-stroke"></line>
                <line class="range" x1=place.mean.to_string() x2=place.mean.to_string() y1="3" y2="13" vector-effect="non-scaling-stroke"></line>
            </svg>
        })
    };
    let cells =
        others(by).into_iter().enumerate().map(|(nth, c)| tables::cell(row, c, nth == 0)).collect_view();
    let path = row.named_job_path();
    let marks = marks(row);
    view! {
        <tr data-testid="entry" data-rank=row.text("rank") data-href=path.clone() tabindex="-1">
            <td class="number card-figure" data-label="Rank" title=why>{rank}</td>
            <th scope="row" class="card-title"><a class="key" href=path.clone()>{swatch(Kind::Model, &row.text("model_code"))}{row.maybe_text("project_code").map(|project| view! { <span class="within" title=project.clone()>{project.clone()}</span>" / " })}{row.text("workload_code")}</a>{marks}</th>
            <td><span class="key">{framework(row)}</span></td>
            <td class="optional">{row.maybe_text("quantization").unwrap_or_else(|| ABSENT.into())}</td>
            <td title=server(row)>{tables::words(row, "gpu_name")}</td>
            <td class="key">{row.text("scenario_code")}</td>
            <td class="number optional">{maybe_count(row.whole("concurrency"))}</td>
            <td class="number card-figure strong" data-label=by.head() data-unit=by.unit()>{mean(row, by)}</td>
            <td class="number quiet">{interval}</td>
            <td class="interval-cell optional">{drawn}</td>
            <td class="number optional">{maybe_count(row.whole("runs"))}</td>
            {cells}
        </tr>
    }
    .into_any()
}

/// What is to be known of an entry beside its place.
fn marks(row: &Row) -> AnyView {
    let mark = |status: &'static str, words: String| view! { " "<span class="status" data-status=status>{words}</span> };
    let doubted = row.whole("doubted_runs").filter(|n| *n > 0).map(|n| {
        let words = if row.is("suspicious") {
            format!("{} counted", counted(n, "doubted run"))
        } else {
            format!("{} left out", counted(n, "doubted run"))
        };
        mark("flagged", words)
    });
    view! {
        {row.is("simulated").then(|| mark("simulated", "simulated".to_owned()))}
        {doubted}
    }
    .into_any()
}
