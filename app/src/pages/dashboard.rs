//! The dashboard: what runs now, what ended, what is doubted, the servers.

use events::first_page;
use leptos::prelude::*;

use super::strip::{Strips, is_running, use_feeds};
use crate::browser::page::Page;
use crate::browser::remote::{Rows, keep_live, use_rows, use_rows_counted};
use crate::browser::{in_turns, now_ms};
use crate::format::{ABSENT, ago, count, long_moment, maybe, moment};
use crate::metrics::column;
use crate::parts::states::{Empty, once_there, when_there};
use crate::parts::{PageHead, Status, further_marks, server_state, swatch, tables};
use crate::row::Row;
use crate::state::board::CATEGORIES;
use crate::state::colours::Kind;
use crate::state::live;

/// The dashboard.
#[component]
pub fn Dashboard() -> impl IntoView {
    let page = Page::expect();
    let org = page.org_now();
    let running = use_rows(|| Some(first_page::RUNNING.path.into()));
    let ended = use_rows(|| Some(first_page::ENDED.path.into()));
    let results = use_rows(|| Some(first_page::RESULTS.path.into()));
    // A doubt that somebody cleared is none any more.
    let doubted = use_rows_counted(|| Some(first_page::DOUBTED.path.into()));
    let doubts = use_rows(|| Some(first_page::DOUBTS.path.into()));
    let servers = use_rows(|| Some(first_page::SERVERS.path.into()));
    let topics = vec![format!("{}:run+job+server+progress", if org.is_empty() { "_" } else { &org })];
    keep_live(running, topics.clone(), live::fold_job, |e| live::kind(e) == "job");
    keep_live(ended, topics.clone(), |_, _| false, |e| live::kind(e) == "job");
    keep_live(results, topics.clone(), |_, _| false, |e| live::kind(e) == "job");
    keep_live(doubted, topics.clone(), |_, _| false, |e| live::kind(e) == "job");
    keep_live(doubts, topics.clone(), |_, _| false, |e| e.event_type.starts_with("quality."));
    keep_live(servers, topics, live::fold_server, |e| matches!(live::kind(e), "server" | "job"));
    let feeds = use_feeds(if org.is_empty() { "_" } else { &org }, "telemetry+progress");

    let now = RwSignal::new(now_ms());
    if let Ok(timer) = set_interval_with_handle(
        move || {
            now.try_set(now_ms());
        },
        std::time::Duration::from_secs(5),
    ) {
        on_cleanup(move || timer.clear());
    }
    let turn = in_turns(3);
    view! {
        <PageHead title=first_page::DASHBOARD.title meta=move || long_moment(now.get()).into_any()>
            <a class="button button-primary" href="/projects/new" data-testid="new-project">"New project"</a>
        </PageHead>
        <div class="stack">
            <section aria-labelledby="running">
                <div class="section-head">
                    <h2 id="running">"Running now"</h2>
                    <span class="meta" data-testid="running-words">{move || running.rows.with(|rows| running_words(rows.as_deref().unwrap_or_default(), feeds.kilowatts()))}</span>
                    <span class="push meta strip-keys">"tokens/s, last 60 s · power, one bar a GPU"</span>
                </div>
                {once_there(running, 2, nothing_runs, move || {
                    let any = Memo::new(move |_| running.rows.with(|r| r.iter().flatten().any(is_running)));
                    view! {
                        <Show when=move || any.get() fallback=|| view! { <p class="meta one-line">"Queued; nothing runs at this moment."</p> }>
                            <Strips rows=running feeds/>
                        </Show>
                    }
                    .into_any()
                })}
            </section>
            <div class="dash-columns">
                <div class="stack">
                    <Show when=move || { turn.get() > 0 }>
                    <section aria-labelledby="ended">
                        <div class="section-head">
                            <h2 id="ended">"Ended last"</h2>
                            <super::today::Today now/>
                            <span class="push"><a class="link" href="/reporting">"All in Reporting"</a></span>
                        </div>
                        {when_there(ended, 6, || view! { <Empty words="No job has ended yet."/> }.into_any(), move |jobs| ended_table(&jobs, results, now))}
                    </section>
                    </Show>
                </div>
                <div class="stack">
                    <Show when=move || { turn.get() > 1 }><Leaders/></Show>
                    <Show when=move || { turn.get() > 2 }>
                    <section aria-labelledby="flagged">
                        <div class="section-head">
                            <h2 id="flagged">"Flagged"</h2><span class="meta">"shown, never discarded"</span>
                            <span class="push">
                                {move || doubted.total.get().filter(|n| *n > 0).map(|n| view! { <a class="link" href="/reporting?flagged=true" data-testid="all-flagged">{format!("All {}", count(n as i64))}</a> })}
                            </span>
                        </div>
                        {when_there(doubted, 2, || view! { <p class="meta one-line">"No result is doubted."</p> }.into_any(), move |list| flagged(&list, doubts, now))}
                    </section>
                    <section aria-labelledby="servers">
                        <div class="section-head">
                            <h2 id="servers">"Servers"</h2><span class="meta">{move || servers.rows.with(|rows| server_words(rows.as_deref().unwrap_or_default()))}</span>
                            <span class="push"><a class="link" href="/hardware">"Hardware"</a></span>
                        </div>
                        {when_there(
                            servers,
                            3,
                            || view! { <Empty words="No server yet."><a class="button" href="/hardware">"Add a server"</a></Empty> }.into_any(),
                            move |list| servers_table(&list, now),
                        )}
                    </section>
                    </Show>
                </div>
            </div>
        </div>
    }
    .into_any()
}

/// Who leads in what, as the leaderboard has it: real results that nobody doubts.
#[component]
fn Leaders() -> impl IntoView {
    let org = Page::expect().org_now();
    let asked = CATEGORIES.iter().zip(first_page::LEADERS);
    let lines = asked.filter_map(|(category, asked)| Some((asked, column(category.metric)?))).map(|(asked, c)| {
        let best = use_rows(move || Some(asked.path.into()));
        if !org.is_empty() {
            keep_live(best, vec![format!("{org}:job")], |_, _| false, |e| e.event_type == "job.completed" || e.event_type.starts_with("quality."));
        }
        let key = c.key;
        view! {
            <tr data-testid="leader" data-metric=key>
                <th scope="row" class="card-title" title=c.definition()>{c.head()}" "<span class="quiet">{c.unit()}</span></th>
                <td class="card-figure" data-label="Leader">
                    {move || match best.first() {
                        Some(row) => view! { <a class="key" href=row.named_job_path()>{swatch(Kind::Model, &row.text("model_code"))}{format!("{} / {}", row.text("project_code"), row.text("workload_code"))}</a>{row.is("imported").then(|| view! { " "<span class="status" data-status="imported">"imported"</span> })} }.into_any(),
                        None => view! { <span class="quiet">"no result yet that nobody doubts"</span> }.into_any(),
                    }}
                </td>
                <td class="number strong card-figure" data-label="Figure">{move || best.first().map(|row| tables::figure(&row, key))}</td>
            </tr>
        }
    });
    view! {
        <section aria-labelledby="leaders">
            <div class="section-head">
                <h2 id="leaders">"Leaders"</h2>
                <span class="meta">"real and undoubted"</span>
                <span class="push"><a class="link" href="/leaderboard">"Leaderboard"</a></span>
            </div>
            <table class="data-table">
                <caption class="visually-hidden">"Who leads in what"</caption>
                <tbody>{lines.collect_view()}</tbody>
            </table>
        </section>
    }
    .into_any()
}

fn nothing_runs() -> AnyView {
    view! {
        <Empty words="Nothing runs. Define a workload, pick a server, and the numbers grow here while you watch.">
            <a class="button" href="/projects/new">"New project"</a>
            <a class="button button-quiet" href="/projects">"Run one again"</a>
        </Empty>
    }
    .into_any()
}

fn running_words(rows: &[Row], kilowatts: Option<f64>) -> String {
    let running: Vec<&Row> = rows.iter().filter(|r| is_running(r)).collect();
    let queued = rows.len() - running.len();
    let mut hosts: Vec<String> = running.iter().map(|r| r.text("hostname")).collect();
    hosts.sort();
    hosts.dedup();
    let plural = |n: usize| if n == 1 { "" } else { "s" };
    let mut words = Vec::new();
    if !running.is_empty() {
        words.push(format!(
            "{} job{} on {} server{}",
            running.len(),
            plural(running.len()),
            hosts.len(),
            plural(hosts.len())
        ));
    }
    if queued > 0 {
        words.push(format!("{queued} queued"));
    }
    let words = words.join(", ");
    match kilowatts {
        Some(power) => format!("{words} · total {} kW", maybe(Some(power))),
        None => words,
    }
}

/// How many servers are in which state, the commonest word first.
fn server_words(servers: &[Row]) -> String {
    let states: Vec<String> = servers.iter().map(|s| s.text("state").replace('_', " ")).collect();
    let mut counted: Vec<(usize, &String)> = Vec::new();
    for state in &states {
        match counted.iter_mut().find(|(_, known)| *known == state) {
            Some((n, _)) => *n += 1,
            None => counted.push((1, state)),
        }
    }
    counted.sort_by_key(|(n, _)| std::cmp::Reverse(*n));
    counted.into_iter().map(|(n, state)| format!("{n} {state}")).collect::<Vec<_>>().join(", ")
}

fn ended_table(jobs: &[Row], results: Rows, now: RwSignal<f64>) -> AnyView {
    let lines = jobs.iter().map(|row| {
        let job = row.text("job");
        let result = Memo::new(move |_| results.rows.with(|r| r.iter().flatten().find(|r| r.text("job") == job).cloned()));
        let ended = row.millis("finished_at");
        let shown = row.clone();
        // Nothing has no unit.
        let unit = move |key: &'static str, unit: &'static str| {
            move || result.with(|r| r.as_ref().and_then(|r| r.number(key)).map(|_| unit))
        };
        view! {
            <tr data-href=row.job_path() tabindex="-1">
                <th scope="row" class="card-title">
                    <a class="key" href=row.job_path()>{swatch(Kind::Model, &row.text("model_code"))}{row.text("scenario_code")}</a>
                </th>
                <td class="clip">
                    <a class="key quiet names" href=row.run_path() title=row.run_key()><span class="within">{row.text("project_code")}</span><span class="cut">{format!(" / {}", row.text("workload_code"))}</span><span>{format!(" / {}", row.text("run_number"))}</span></a>
                </td>
                <td class="card-figure" data-label="Status">
                    <Status row=Signal::derive(move || result.get().unwrap_or_else(|| shown.clone()))/>
                </td>
                <td class="number card-figure strong" data-label="Output ↑" data-unit=unit("output_tokens_per_second", "tok/s")>
                    {move || result.with(|r| match r {
                        Some(r) => tables::figure(r, "output_tokens_per_second"),
                        None => view! { <span class="quiet">{ABSENT}</span> }.into_any(),
                    })}
                </td>
                <td class="quiet">"tok/s"</td>
                <td class="number card-figure" data-label="TTFT p50 ↓" data-unit=unit("ttft_p50_ms", "ms")>
                    {move || result.with(|r| match r {
                        Some(r) => tables::figure(r, "ttft_p50_ms"),
                        None => view! { <span class="quiet">{ABSENT}</span> }.into_any(),
                    })}
                </td>
                <td class="number" title=row.text("finished_at")>{move || ended.map_or_else(|| ABSENT.to_owned(), |at| moment(at, now.get()))}</td>
            </tr>
        }
        .into_any()
    });
    view! {
        <table class="data-table dense" data-testid="ended-jobs">
            <caption class="visually-hidden">"Jobs that ended last"</caption>
            <thead>
                <tr>
                    <th scope="col">"Job"</th>
                    <th scope="col">"Workload / run"</th>
                    <th scope="col">"Status"</th>
                    <th scope="col" class="number">"Output"</th>
                    <th scope="col">"Unit ↑"</th>
                    <th scope="col" class="number">"TTFT p50\u{a0}↓ "<span class="unit">"ms"</span></th>
                    <th scope="col" class="number">"Ended "<span class="unit">"UTC"</span></th>
                </tr>
            </thead>
            <tbody>{lines.collect_view()}</tbody>
        </table>
    }
    .into_any()
}

/// Results that are doubted, each with what its newest doubt says.
fn flagged(results: &[Row], doubts: Rows, now: RwSignal<f64>) -> AnyView {
    let doubted: Vec<AnyView> = results
        .iter()
        .map(|row| {
            let rules = row.list("flags").iter().map(|r| r.replace('_', " ")).collect::<Vec<_>>().join(", ");
            let words = if rules.is_empty() { "doubted".to_owned() } else { rules };
            let further = further_marks(row);
            let ended = row.millis("finished_at");
            let job = row.text("job");
            let message = move || {
                doubts.rows.with(|doubts| {
                    let found = doubts.iter().flatten().find(|doubt| doubt.text("job") == job)?;
                    Some(format!(" · {}", found.maybe_text("message")?))
                })
            };
            view! {
                <li>
                    <p class="command-head">
                        <span>
                            <span class="status" data-status="flagged">{words}</span>
                            {further}
                            " "
                            <a class="key" href=row.job_path()>{row.text("scenario_code")}</a>
                        </span>
                        <span class="meta">{ended.map(|at| move || moment(at, now.get()))}</span>
                    </p>
                    <p class="meta"><span class="key">{row.run_key()}</span>{message}</p>
                </li>
            }
            .into_any()
        })
        .collect();
    view! { <ul class="flag-list">{doubted}</ul> }.into_any()
}

fn servers_table(servers: &[Row], now: RwSignal<f64>) -> AnyView {
    let lines = servers.iter().map(|row| {
        let seen = row.millis("last_seen");
        let doing = row.maybe_text("running_job").filter(|j| !j.is_empty());
        view! {
            <tr>
                <th scope="row" class="card-title">
                    <span class="key">{format!("{}/{}", row.text("config_code"), row.text("hostname"))}</span>
                </th>
                <td class="card-figure" data-label="State">{server_state(&row.text("state"))}</td>
                <td class="card-figure" data-label="Doing">
                    {match doing {
                        Some(job) => {
                            let path = job.strip_prefix("job/").unwrap_or(&job).to_owned();
                            let short = path.rsplit('/').next().unwrap_or_default().to_owned();
                            view! { <a class="key" href=format!("/projects/{path}")>{short}</a> }.into_any()
                        }
                        None => "idle".into_any(),
                    }}
                </td>
                <td class="number card-figure" data-label="Heartbeat">
                    {move || seen.map_or_else(|| "never".to_owned(), |at| ago((now.get() - at) / 1000.0))}
                </td>
            </tr>
        }
        .into_any()
    });
    view! {
        <table class="data-table" data-testid="servers">
            <caption class="visually-hidden">"Servers"</caption>
            <thead>
                <tr>
                    <th scope="col">"Server"</th>
                    <th scope="col">"State"</th>
                    <th scope="col">"Doing"</th>
                    <th scope="col" class="number">"Heartbeat"</th>
                </tr>
            </thead>
            <tbody>{lines.collect_view()}</tbody>
        </table>
    }
    .into_any()
}
