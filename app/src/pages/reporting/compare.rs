//! Results side by side: the settings that differ, the figures against the pinned one, and their curves over each other.

use leptos::prelude::*;

use super::table::job_path;
use super::{View, log_diff};
use crate::browser::remote::use_rows;
use crate::charts::overlay::{self, MEASURES, Measure};
use crate::charts::view::{Chart, Zooming};
use crate::format::signed_percent;
use crate::parts::{swatch_of, tables};
use crate::row::Row;
use crate::state::colours::Colour;
use crate::state::compare::{Cell, Comparison, Line, Side, two_sets};
use crate::state::filters::any_of;
use crate::state::job_feed::{JobFeed, Resolution};
use crate::state::naming::Naming;

/// The comparison; nothing while nothing is picked.
#[component]
pub(super) fn Compare(view: View) -> impl IntoView {
    let any = Memo::new(move |_| view.settings.view.with(|v| !v.compared().is_empty()));
    view! {
        <Show when=move || any.get()>
            <Tray view/>
        </Show>
    }
}

/// The sides in the order of the address, the pinned one first, with everything known of how they were made.
fn sides(view: View) -> Memo<Vec<Side>> {
    let results = Memo::new(move |_| {
        let found = view.compared.all();
        let order = view.settings.view.with(|v| v.compared());
        order
            .iter()
            .filter_map(|path| found.iter().find(|row| job_path(row) == *path).cloned())
            .collect::<Vec<Row>>()
    });
    let each = move |key: &'static str| {
        results.with(|rows| {
            let mut values: Vec<String> = rows.iter().map(|r| r.text(key)).collect();
            values.sort();
            values.dedup();
            values
        })
    };
    let ask = move |path: &str, keys: &[&'static str], rest: &str| {
        if results.with(Vec::is_empty) {
            return None;
        }
        let conditions: Vec<String> = keys.iter().map(|key| any_of(key, &each(key))).collect();
        Some(format!("/api/{path}?{}{rest}", conditions.join("&")))
    };
    let jobs = use_rows(move || ask("v_jobs", &["job"], "&limit=100"));
    let workloads = use_rows(move || ask("v_workloads", &["workload_code", "project_code"], "&limit=500"));
    let repeats = use_rows(move || {
        ask(
            "v_benchmark_results",
            &["workload_code", "project_code", "scenario_code"],
            "&status=eq.completed&limit=2000",
        )
    });
    Memo::new(move |_| {
        let (jobs, workloads, repeats) = (jobs.all(), workloads.all(), repeats.all());
        results.with(|results| {
            let same = |a: &Row, b: &Row, keys: &[&str]| keys.iter().all(|key| a.text(key) == b.text(key));
            let side = |result: &Row| {
                let found = |rows: &[Row], keys: &[&str]| {
                    rows.iter().find(|row| same(row, result, keys)).cloned().unwrap_or_default()
                };
                let mut side = Side {
                    result: result.clone(),
                    workload: found(&workloads, &["org", "project_code", "workload_code"]),
                    job: found(&jobs, &["job"]),
                    repeats: Vec::new(),
                };
                side.repeats = repeats.iter().filter(|row| side.is_repeat(row)).cloned().collect();
                side
            };
            results.iter().map(side).collect()
        })
    })
}

/// How the sides are called: as short as tells them apart.
fn naming(sides: &[Side]) -> Naming {
    Naming::of(sides.iter().map(|side| &side.result))
}

#[component]
fn Tray(view: View) -> impl IntoView {
    let settings = view.settings;
    let sides = sides(view);
    let comparison = Memo::new(move |_| sides.with(|sides| Comparison::of(sides)));
    let words = move || {
        let (differing, all) = comparison.with(Comparison::differing);
        match sides.with(Vec::len) {
            0 => "loading".to_owned(),
            1 => "pick another one to compare it with".to_owned(),
            _ => format!("{differing} of {all} settings differ"),
        }
    };
    let heads = move || {
        sides.with(|sides| {
            let naming = naming(sides);
            sides
                .iter()
                .enumerate()
                .map(|(place, side)| {
                    let row = &side.result;
                    let path = job_path(row);
                    let pinned = settings.view.with(|v| v.pinned.as_deref() == Some(path.as_str()));
                    let (to_pin, to_drop) = (path.clone(), path);
                    view! {
                        <th scope="col" data-testid="compared">
                            <a class="key" href=row.job_path() title=row.text("job")>{swatch_of(Colour::nth(place))}{naming.workload(row)}</a>
                            <span class="unit">{format!("run {} · {}", row.text("run_number"), row.text("scenario_code"))}</span>
                            {(place == 0).then(|| view! { <span class="unit" title="the others are compared with it">"baseline"</span> })}
                            <span class="compare-acts">
                                <button type="button" class="figure-toggle" aria-pressed=pinned.to_string() on:click=move |_| settings.look(|v| v.pin(&to_pin))>{if pinned { "pinned" } else { "pin" }}</button>
                                <button
                                    type="button"
                                    class="figure-toggle"
                                    aria-label="Drop from the comparison"
                                    on:click=move |_| settings.look(|v| {
                                        v.picked.retain(|p| *p != to_drop);
                                        if v.pinned.as_ref() == Some(&to_drop) { v.pinned = None; }
                                    })
                                >
                                    "drop"
                                </button>
                            </span>
                        </th>
                    }
                })
                .collect_view()
        })
    };
    let body = move || {
        let all = settings.view.with(|v| v.all_settings);
        comparison.with(|c| {
            let settings =
                c.settings.iter().filter(|line| all || line.differs()).map(setting_line).collect_view();
            let figures =
                sides.with(|sides| c.figures.iter().map(|line| figure_line(line, sides)).collect_view());
            view! { <tbody>{settings}</tbody><tbody class="results">{figures}</tbody> }
        })
    };
    view! {
        <section class="span-5 compare" aria-labelledby="compare" data-testid="compare">
            <div class="section-head">
                <h2 id="compare">{move || format!("Compare {}", sides.with(Vec::len))}</h2>
                <span class="meta" data-testid="compare-words">{words}</span>
                <div class="actions">
                    <label class="meta">
                        <input type="checkbox" prop:checked=move || !settings.view.with(|v| v.all_settings) on:change=move |e| settings.look(|v| v.all_settings = !event_target_checked(&e))/>
                        " only what differs"
                    </label>
                    <button type="button" class="button button-quiet" data-testid="compare-clear" on:click=move |_| settings.look(|v| { v.picked.clear(); v.pinned = None; })>"Clear"</button>
                </div>
            </div>
            <div class="table-scroll">
                <table class="data-table keep-shape">
                    <caption class="visually-hidden">"Settings and figures of the results picked"</caption>
                    <thead><tr><th scope="col"><span class="visually-hidden">"Setting"</span></th>{heads}</tr></thead>
                    {body}
                </table>
            </div>
            {move || sides.with(|s| two_sets(s)).map(|(first, other)| {
                let encode = crate::state::query::encode;
                let href = format!("/catalogue?tab=sets&entry={}&against={}", encode(&other), encode(&first));
                view! { <p class="one-line"><a class="link" href=href data-testid="compare-sets">{format!("Compare the sets {first} and {other} key by key")}</a></p> }
            })}
            <Overlays view sides/>
            <log_diff::Logs view sides/>
        </section>
    }
    .into_any()
}

fn setting_line(line: &Line) -> AnyView {
    let cells = line.cells.iter().map(|cell| {
        view! { <td class="key wrap-any" class:quiet=!cell.differs title=cell.full.clone()>{cell.text.clone()}</td> }
    });
    view! {
        <tr data-testid="setting" data-differs=line.differs().to_string()>
            <th scope="row" class="quiet wrap-any">{line.label.clone()}</th>
            {cells.collect_view()}
        </tr>
    }
    .into_any()
}

fn figure_line(line: &Line, sides: &[Side]) -> AnyView {
    let cells = line.cells.iter().zip(sides).map(|(cell, side)| figure_cell(cell, line.metric, &side.result));
    view! {
        <tr>
            <th scope="row" class="quiet">{line.label.clone()}" "<span class="unit">{line.unit}</span></th>
            {cells.collect_view()}
        </tr>
    }
    .into_any()
}

fn figure_cell(cell: &Cell, metric: Option<&'static str>, result: &Row) -> AnyView {
    let delta = cell.delta.map(|delta| {
        let title = if cell.noise { "within the pinned one's own interval: noise" } else { "against the pinned one" };
        view! { " "<span class="delta" class:delta-noise=cell.noise title=title>{format!("{} %", signed_percent(delta))}</span> }
    });
    let value = match metric {
        Some(metric) => tables::figure(result, metric),
        None => cell.text.clone().into_any(),
    };
    view! { <td title=cell.full.clone()><b>{value}</b>{delta}</td> }.into_any()
}

/// The curves of the sides over each other.
#[component]
fn Overlays(view: View, sides: Memo<Vec<Side>>) -> impl IntoView {
    let settings = view.settings;
    let measure = Memo::new(move |_| {
        settings.view.with(|v| MEASURES.iter().find(|m| m.word == v.over).copied()).unwrap_or(MEASURES[2])
    });
    let latency = Memo::new(move |_| {
        sides.with(|sides| {
            let naming = naming(sides);
            overlay::percentiles(
                &sides.iter().map(|s| (naming.result(&s.result), s.result.clone())).collect::<Vec<_>>(),
            )
        })
    });
    let samples = use_rows(move || {
        let jobs: Vec<String> = sides.with(|sides| sides.iter().map(|s| s.result.text("job")).collect());
        (!jobs.is_empty()).then(|| {
            format!(
                "/api/v_telemetry_series?{}&{}&select=job,attempt,source,metric,bucket_start,min,avg,max,count,position&order=job.asc,source.asc,segment.asc",
                any_of("job", &jobs),
                measure.get().condition()
            )
        })
    });
    let over_time = Memo::new(move |_| {
        let (measure, rows) = (measure.get(), samples.all());
        let lines: Vec<(String, Vec<(f64, f64)>)> = sides.with(|sides| {
            let naming = naming(sides);
            sides.iter().map(|side| (naming.result(&side.result), line_of(&rows, side, &measure))).collect()
        });
        overlay::over_time(&lines, &measure)
    });
    let choose = move |event: leptos::ev::Event| {
        let word = event_target_value(&event);
        settings.look(|v| v.over = word);
    };
    let options = MEASURES
        .map(|m| view! { <option value=m.word selected=move || measure.get() == m>{m.word}</option> });
    view! {
        <div class="overlays">
            <Chart title="TTFT percentiles" unit="ms, log scale ↓" figure=latency zooming=Zooming::in_address(settings.address, "zoom-percentiles") height="low" testid="chart-percentiles" words="No latency was measured: answers were not streamed."/>
            <label class="chart-axis below">
                <span class="meta">"Over time"</span>
                <select class="control control-inline" data-testid="overlay-measure" on:change=choose>{options.collect_view()}</select>
            </label>
            <Chart title=Signal::derive(move || measure.get().word.to_owned()) unit=Signal::derive(move || measure.get().unit.to_owned()) figure=over_time zooming=Zooming::in_address(settings.address, "zoom-over") height="low" testid="chart-overlay" words="Nothing of this was sampled on these servers."/>
        </div>
    }
    .into_any()
}

/// The samples of the attempt that made a result, as one line.
fn line_of(rows: &[Row], side: &Side, measure: &Measure) -> Vec<(f64, f64)> {
    let of = |row: &&Row| ["job", "attempt"].iter().all(|key| row.text(key) == side.result.text(key));
    let mine: Vec<Row> = rows.iter().filter(of).cloned().collect();
    let mut feed = JobFeed::default();
    feed.take_telemetry(Resolution::Means(6), &mine);
    let lines: Vec<_> =
        feed.sources(measure.source, measure.metric).into_iter().map(|(_, line)| line).collect();
    measure.joined(&lines)
}
