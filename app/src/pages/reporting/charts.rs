//! The charts over everything that is filtered: who is on the frontier, where throughput saturates, who is best.

use std::collections::HashMap;

use leptos::prelude::*;

use super::View;
use super::table::job_path;
use crate::browser::page::Page;
use crate::browser::remote::use_rows;
use crate::browser::route::{NavigateOptions, use_navigate};
use crate::charts::concurrency::{self, Options, Traffic, traffic};
use crate::charts::saturation::{explain, rings, rings_of_latency};
use crate::charts::view::{Chart, Zooming, watch_near};
use crate::charts::{Figure, category, pareto};
use crate::format::count;
use crate::metrics::{Column, column};
use crate::parts::tables;
use crate::row::Row;
use crate::state::colours::{Colour, Kind};
use crate::state::naming::Naming;
use crate::state::report::MOST_DRAWN;
use crate::state::report_view::{IN_USE, PER_HOUR, ReportView, TABS, drawn, explained, metrics_of};
use crate::state::result_key::path_of;

/// The latency beside the throughput of the tab Concurrency.
const LATENCY: &str = "ttft_p99_ms";
/// Jobs of which it is read how much of their host was in use: the newest.
const MOST_SUMMARIES: usize = 5000;
/// Lines of the concurrency chart at most: the best.
const MOST_LINES: usize = 8;

/// The tabs, the axes and the chart.
#[component]
pub(super) fn Charts(view: View) -> impl IntoView {
    let page = Page::expect();
    let settings = view.settings;
    // What nobody looks at is neither read nor drawn.
    let place = NodeRef::<leptos::html::Div>::new();
    let near = RwSignal::new(false);
    watch_near(place, near);
    let seen = Memo::new(move |before: Option<&bool>| before == Some(&true) || near.get());
    let request = Memo::new(move |_| {
        let figures = settings.view.with(|v| [v.tab.clone(), v.x.clone(), v.y.clone()]);
        let y = drawn(&figures[0], &figures[2]).map_or("", |c| explained(c.key));
        let mut asked = vec!["concurrency", "output_tokens_per_second", LATENCY];
        asked.extend([figures[1].as_str(), y].into_iter().filter(|key| column(key).is_some()));
        settings.report.with(|r| r.chart_request(&asked))
    });
    let rows = use_rows(move || seen.get().then(|| request.get()));
    // How much of the host was in use is known of jobs, not of results.
    let in_use = Memo::new(move |_| {
        settings.view.with(|v| {
            let shown = drawn(&v.tab, &v.y).filter(|c| is_in_use(c))?;
            Some(format!(
                "/api/v_telemetry_job_summary?select=job,{0}&{0}=not.is.null&order=started_at.desc.nullslast&limit={MOST_SUMMARIES}",
                shown.key
            ))
        })
    });
    let summaries = use_rows(move || if seen.get() { in_use.get() } else { None });
    // What changes in the table changes in the chart.
    Effect::new(move |before: Option<()>| {
        view.changed.track();
        if before.is_some() && seen.get_untracked() && !untrack(|| settings.is_past()) {
            rows.reload_soon();
        }
    });
    let shown = Memo::new(move |_| settings.view.with(|v| (v.tab.clone(), v.x.clone(), v.y.clone())));
    let figure = Memo::new(move |_| {
        let (tab, x, y) = shown.get();
        let (Some(x), Some(y)) = (drawn(&tab, &x), drawn(&tab, &y)) else { return Figure::default() };
        let mut all = rows.all();
        complete(&mut all, y, &summaries.all());
        match tab.as_str() {
            "pareto" => pareto::figure(
                &pareto::clouds(&all, x.key, y.key, |name| page.colours.of(Kind::Setup, name)),
                x,
                y,
            ),
            "concurrency" => throughput_figure(&all, y),
            tab => by_category(&all, tab, y, page),
        }
    });
    let sentences = Memo::new(move |_| {
        let (tab, _, y) = shown.get();
        match (tab.as_str(), drawn(&tab, &y)) {
            ("concurrency", Some(y)) => explanations(&rows.all(), y),
            _ => figure.with(|f| if f.is_empty() { Vec::new() } else { vec![format!("{}.", f.summary)] }),
        }
    });
    let words = Signal::derive(move || match rows.rows.with(Option::is_some) {
        true => "No result here has these figures: choose another metric or another filter.".to_owned(),
        false => "Loading".to_owned(),
    });
    let charted = move || settings.view.with(|v| drawn(&v.tab, &v.y));
    // Beside what is chosen under Concurrency stands what it costs those who wait.
    let latency = Memo::new(move |_| {
        let (tab, _, y) = shown.get();
        match (drawn(&tab, &y), column(LATENCY)) {
            (Some(y), Some(latency)) if tab == "concurrency" && y.key != LATENCY => {
                latency_figure(&rows.all(), y, latency)
            }
            _ => Figure::default(),
        }
    });
    let title = Signal::derive(move || charted().map_or_else(String::new, Column::name));
    let unit = Signal::derive(move || {
        let drawn = rows.rows.with(|r| r.as_ref().map_or(0, Vec::len));
        let all = if drawn >= MOST_DRAWN {
            format!(" · the newest {} results", count(MOST_DRAWN as i64))
        } else {
            String::new()
        };
        settings.view.with(|v| {
            let unit = charted().map_or("", |c| c.unit());
            let frontier = if v.tab == "pareto" { " · frontier shaded" } else { "" };
            format!("{unit}{frontier}{all}")
        })
    });
    let zooming = Zooming {
        now: Signal::derive(move || settings.view.with(|v| v.zoom)),
        set: Callback::new(move |zoom| settings.look(|v| v.zoom = zoom)),
    };
    // A click on a point opens its proof.
    let navigate = StoredValue::new_local(use_navigate());
    let pick = Callback::new(move |job: String| {
        match untrack(charted) {
            // The samples behind it are on the job's page.
            Some(metric) if is_in_use(metric) => {
                let path = format!("/projects/{}", path_of(&job));
                navigate.with_value(|go| go(&path, NavigateOptions::default()));
            }
            Some(metric) => tables::open_proof(settings.address, &job, explained(metric.key)),
            None => {}
        }
    });
    let pick_latency = Callback::new(move |job: String| tables::open_proof(settings.address, &job, LATENCY));
    let tab = Memo::new(move |_| settings.view.with(|v| v.tab.clone()));
    let is = move |tab: &'static str| settings.view.with(|v| v.tab == tab);
    let class = move || if settings.view.with(|v| v.compared().is_empty()) { "span-12" } else { "span-7" };
    let tabs = TABS.map(|(word, name)| {
        let href = settings.address.link(move |query| {
            let mut view = ReportView::read(query);
            view.show(|v| v.tab = word.to_owned());
            view.write(query);
        });
        view! { <a href=href data-noscroll="" data-testid=format!("tab-{word}") aria-current=move || is(word).then_some("true")>{name}</a> }
    });
    view! {
        <section class=class aria-label="Charts" data-testid="charts">
            <div class="chart-head">
                <nav class="tabs" aria-label="Chart">{tabs.collect_view()}</nav>
                <div class="chart-axes">
                    <Metric label="Metric" testid="chart-y" tab value=Signal::derive(move || charted().map_or_else(String::new, |c| c.key.to_owned())) set=move |key| settings.look(|v| v.show(|v| v.y = key))/>
                    <Show when=move || is("pareto")>
                        <Metric label="against" testid="chart-x" tab value=Signal::derive(move || settings.view.with(|v| v.x.clone())) set=move |key| settings.look(|v| v.show(|v| v.x = key))/>
                    </Show>
                </div>
            </div>
            <div node_ref=place>
                <Chart title unit figure zooming pick height="tall" testid="chart-report" words/>
            </div>
            <Show when=move || latency.with(|figure| !figure.is_empty())>
                <Chart title=column(LATENCY).map_or_else(String::new, Column::name) unit="ms, log scale ↓" figure=latency pick=pick_latency height="high" testid="chart-report-latency" words="No latency here."/>
            </Show>
            <ul class="sentences" data-testid="chart-words">
                {move || sentences.get().into_iter().map(|text| view! { <li>{text}</li> }).collect_view()}
            </ul>
        </section>
    }
    .into_any()
}

/// A choice among the metrics.
#[component]
fn Metric(
    label: &'static str,
    testid: &'static str,
    tab: Memo<String>,
    value: Signal<String>,
    set: impl Fn(String) + Copy + Send + Sync + 'static,
) -> impl IntoView {
    let options = move || {
        let all = tab.with(|tab| metrics_of(tab));
        all.into_iter()
            .map(|c| {
                view! { <option value=c.key selected=move || value.with(|v| v == c.key)>{c.axis()}</option> }
            })
            .collect_view()
    };
    view! {
        <label class="chart-axis">
            <span class="meta">{label}</span>
            <select class="control control-inline" data-testid=testid on:change=move |event| set(event_target_value(&event))>{options}</select>
        </label>
    }
    .into_any()
}

/// A line a run and traffic, the best first and only those; of a scenario that is there twice, the newest.
fn lines(rows: &[Row], y: &Column) -> Vec<Traffic> {
    let mut lines = lines_of_all(rows, y);
    lines.retain(|line| !line.points.is_empty());
    let best = |line: &Traffic| line.points.iter().map(|p| p.value).fold(0.0, f64::max);
    lines.sort_by(|a, b| best(b).total_cmp(&best(a)));
    lines.truncate(MOST_LINES);
    lines
}

fn lines_of_all(rows: &[Row], y: &Column) -> Vec<Traffic> {
    let mut seen: Vec<String> = Vec::new();
    let newest: Vec<Row> = rows
        .iter()
        .filter(|row| {
            let job = job_path(row);
            let new = !seen.contains(&job);
            seen.push(job);
            new
        })
        .cloned()
        .collect();
    let naming = Naming::of(&newest);
    let name = |row: &Row| format!("{} · {}", naming.run(row), traffic(&row.text("scenario_code")));
    concurrency::lines_by(&newest, name, |row| row.number(y.key).map(|v| (v, false)))
}

/// Gives the results what the chosen metric needs and they have not: from what is known of their jobs, or from another
/// figure of theirs.
fn complete(rows: &mut [Row], y: &Column, summaries: &[Row]) {
    if y.key == PER_HOUR {
        for row in rows {
            if let Some(a_second) = row.number("output_tokens_per_second") {
                row.set(PER_HOUR, a_second * 3600.0);
            }
        }
        return;
    }
    if summaries.is_empty() {
        return;
    }
    let of: HashMap<String, f64> =
        summaries.iter().filter_map(|s| Some((s.text("job"), s.number(y.key)?))).collect();
    for row in rows {
        if let Some(value) = of.get(&row.text("job")) {
            row.set(y.key, *value);
        }
    }
}

fn throughput_figure(rows: &[Row], y: &Column) -> Figure {
    let of_tokens = y.key == "output_tokens_per_second";
    let lines = lines(rows, y);
    let elbows = match column(LATENCY).filter(|_| of_tokens) {
        Some(latency) => rings(&lines, &self::lines(rows, latency)),
        None => Vec::new(),
    };
    saturation_figure(&lines, y, elbows, false)
}

/// The latency of the lines that the throughput chart has, in their order and colours.
fn latency_figure(rows: &[Row], y: &Column, latency: &Column) -> Figure {
    let throughput = lines(rows, y);
    let all = lines_of_all(rows, latency);
    let beside: Vec<Traffic> = throughput
        .iter()
        .map(|line| {
            let found = all.iter().find(|l| l.name == line.name).cloned();
            found.unwrap_or_else(|| Traffic { name: line.name.clone(), points: Vec::new() })
        })
        .collect();
    let elbows = match y.key {
        "output_tokens_per_second" => rings_of_latency(&throughput, &beside),
        _ => Vec::new(),
    };
    saturation_figure(&beside, latency, elbows, true)
}

fn saturation_figure(lines: &[Traffic], y: &Column, elbows: Vec<(f64, f64, String)>, log: bool) -> Figure {
    let (name, unit) = (y.name(), y.unit());
    let mut figure = concurrency::figure(
        lines,
        &Options { title: &name, unit, metric: Some(y.key), log, elbows, legend: true },
    );
    figure.legend =
        lines.iter().enumerate().map(|(place, line)| (line.name.clone(), Colour::nth(place))).collect();
    figure
}

/// What each line says about saturation.
fn explanations(rows: &[Row], y: &Column) -> Vec<String> {
    let Some(p99) = column(LATENCY) else { return Vec::new() };
    let latency = lines(rows, p99);
    lines(rows, y)
        .iter()
        .map(|line| explain(line, y.unit(), latency.iter().find(|l| l.name == line.name)))
        .collect()
}

fn by_category(rows: &[Row], tab: &str, y: &Column, page: Page) -> Figure {
    let naming = Naming::of(rows);
    let name = |row: &Row| match tab {
        "framework" => format!("{} {}", row.text("framework_code"), row.text("framework_version")),
        "quantization" => row.maybe_text("quantization").unwrap_or_else(|| "as published".to_owned()),
        "hardware" => pareto::setup(row).rsplit(" · ").next().unwrap_or_default().to_owned(),
        "cost" => {
            format!("{} on {}/{}", naming.workload(row), row.text("config_code"), row.text("hostname"))
        }
        _ => row.text("model_code"),
    };
    let colour =
        |name: &str| if tab == "model" { page.colours.of(Kind::Model, name) } else { Colour::nth(0) };
    let mut figure = category::figure(&category::categories(rows, y, name), y, colour);
    // How much of a host was in use is no figure of a result: it has no proof among those.
    let proof = (!is_in_use(y)).then(|| explained(y.key));
    for metric in figure.metrics.iter_mut().filter(|metric| metric.is_some()) {
        *metric = proof;
    }
    figure
}

fn is_in_use(metric: &Column) -> bool {
    IN_USE.iter().any(|own| own.key == metric.key)
}
