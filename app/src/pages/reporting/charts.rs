//! The charts over everything that is filtered: who is on the frontier, where throughput saturates, who is best.

use leptos::prelude::*;

use super::View;
use super::table::job_path;
use crate::browser::page::Page;
use crate::browser::remote::use_rows;
use crate::charts::concurrency::{self, Options, Traffic, traffic};
use crate::charts::saturation::explain;
use crate::charts::view::{Chart, Zooming, watch_near};
use crate::charts::{Figure, category, pareto};
use crate::format::count;
use crate::metrics::{Column, column};
use crate::parts::tables;
use crate::row::Row;
use crate::state::colours::{Colour, Kind};
use crate::state::report::MOST_DRAWN;
use crate::state::report_view::{ReportView, TABS, chart_metrics};

/// The figure of the tab Cost.
const COST: &str = "cost_per_million_output_tokens_usd";
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
        let figures = settings.view.with(|v| [v.x.clone(), v.y.clone()]);
        settings
            .report
            .with(|r| r.chart_request(&[&figures[0], &figures[1], COST, "concurrency", "ttft_p99_ms"]))
    });
    let rows = use_rows(move || seen.get().then(|| request.get()));
    // What changes in the table changes in the chart.
    Effect::new(move |before: Option<()>| {
        view.changed.track();
        if before.is_some() && seen.get_untracked() && !untrack(|| settings.is_past()) {
            rows.reload_soon();
        }
    });
    let shown = Memo::new(move |_| settings.view.with(|v| (v.tab.clone(), v.x.clone(), v.y.clone())));
    let metric = |key: &str| column(key).or_else(|| column("output_tokens_per_second"));
    let figure = Memo::new(move |_| {
        let (tab, x, y) = shown.get();
        let (Some(x), Some(y)) = (metric(&x), metric(&y)) else { return Figure::default() };
        let all = rows.all();
        match tab.as_str() {
            "pareto" => pareto::figure(
                &pareto::clouds(&all, x.key, y.key, |name| page.colours.of(Kind::Setup, name)),
                x,
                y,
            ),
            "concurrency" => saturation_figure(&lines(&all, y), y),
            tab => by_category(&all, tab, y, page),
        }
    });
    let sentences = Memo::new(move |_| {
        let (tab, _, y) = shown.get();
        match (tab.as_str(), metric(&y)) {
            ("concurrency", Some(y)) => explanations(&rows.all(), y),
            _ => figure.with(|f| if f.is_empty() { Vec::new() } else { vec![format!("{}.", f.summary)] }),
        }
    });
    let words = Signal::derive(move || match rows.rows.with(Option::is_some) {
        true => "No result here has these figures: choose another metric or another filter.".to_owned(),
        false => "Loading".to_owned(),
    });
    let charted = move || settings.view.with(|v| column(if v.tab == "cost" { COST } else { &v.y }));
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
    let pick = Callback::new(move |job: String| {
        let metric = settings.view.with_untracked(|v| v.y.clone());
        tables::open_proof(settings.address, &job, &metric);
    });
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
                    <Show when=move || !is("cost")>
                    <Metric label="Metric" testid="chart-y" value=Signal::derive(move || settings.view.with(|v| v.y.clone())) set=move |key| settings.look(|v| v.show(|v| v.y = key))/>
                    </Show>
                    <Show when=move || is("pareto")>
                        <Metric label="against" testid="chart-x" value=Signal::derive(move || settings.view.with(|v| v.x.clone())) set=move |key| settings.look(|v| v.show(|v| v.x = key))/>
                    </Show>
                </div>
            </div>
            <div node_ref=place>
                <Chart title unit figure zooming pick height="tall" testid="chart-report" words/>
            </div>
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
    value: Signal<String>,
    set: impl Fn(String) + Copy + Send + Sync + 'static,
) -> impl IntoView {
    let options = chart_metrics().map(|c| {
        view! { <option value=c.key selected=move || value.with(|v| v == c.key)>{format!("{}, {}", c.name(), c.unit())}</option> }
    });
    view! {
        <label class="chart-axis">
            <span class="meta">{label}</span>
            <select class="control control-inline" data-testid=testid on:change=move |event| set(event_target_value(&event))>{options.collect_view()}</select>
        </label>
    }
    .into_any()
}

/// A line a run and traffic, the best first; of a scenario that is there twice, the newest.
fn lines(rows: &[Row], y: &Column) -> Vec<Traffic> {
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
    let name = |row: &Row| {
        format!(
            "{} / {} · {}",
            row.text("workload_code"),
            row.text("run_number"),
            traffic(&row.text("scenario_code"))
        )
    };
    let mut lines = concurrency::lines_by(&newest, name, |row| row.number(y.key).map(|v| (v, false)));
    lines.retain(|line| !line.points.is_empty());
    let best = |line: &Traffic| line.points.iter().map(|p| p.value).fold(0.0, f64::max);
    lines.sort_by(|a, b| best(b).total_cmp(&best(a)));
    lines.truncate(MOST_LINES);
    lines
}

fn saturation_figure(lines: &[Traffic], y: &Column) -> Figure {
    let (name, unit) = (y.name(), y.unit());
    let mut figure = concurrency::figure(
        lines,
        &Options { title: &name, unit, metric: Some(y.key), log: false, elbow: None, legend: true },
    );
    figure.legend =
        lines.iter().enumerate().map(|(place, line)| (line.name.clone(), Colour::nth(place))).collect();
    figure
}

/// What each line says about saturation.
fn explanations(rows: &[Row], y: &Column) -> Vec<String> {
    let Some(p99) = column("ttft_p99_ms") else { return Vec::new() };
    let latency = lines(rows, p99);
    lines(rows, y)
        .iter()
        .map(|line| explain(line, y.unit(), latency.iter().find(|l| l.name == line.name)))
        .collect()
}

fn by_category(rows: &[Row], tab: &str, y: &Column, page: Page) -> Figure {
    let name = |row: &Row| match tab {
        "framework" => format!("{} {}", row.text("framework_code"), row.text("framework_version")),
        "quantization" => row.maybe_text("quantization").unwrap_or_else(|| "as published".to_owned()),
        "hardware" => pareto::setup(row).rsplit(" · ").next().unwrap_or_default().to_owned(),
        "cost" => {
            format!("{} on {}/{}", row.text("workload_code"), row.text("config_code"), row.text("hostname"))
        }
        _ => row.text("model_code"),
    };
    let metric = match tab {
        "cost" => column(COST).unwrap_or(y),
        _ => y,
    };
    let colour =
        |name: &str| if tab == "model" { page.colours.of(Kind::Model, name) } else { Colour::nth(0) };
    category::figure(&category::categories(rows, metric, name), metric, colour)
}
