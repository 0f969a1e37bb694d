//! Monitoring: every running job with its last minute, one job (running, waiting or ended) watched
//! closely, and the jobs that wait.

use events::api::CancelStaleJobs;
use events::first_page;
use leptos::prelude::*;

use super::job::Watch;
use super::strip::{Strips, use_feeds};
use crate::browser::address::Address;
use crate::browser::page::Page;
use crate::browser::remote::{Rows, keep_live, use_rows};
use crate::parts::states::{Empty, once_there, when_there};
use crate::parts::{CommandButton, Done, PageHead, Status};
use crate::row::Row;
use crate::state::live;

/// The page.
#[component]
pub fn Monitoring() -> impl IntoView {
    let page = Page::expect();
    let org = page.org_now();
    let path = if org.is_empty() { "_".to_owned() } else { org };
    let running = use_rows(|| Some(first_page::WATCHED.path.into()));
    let waiting = use_rows(|| {
        Some("/api/v_jobs?status=in.(pending,queued)&order=position.asc,ordinal.asc&limit=200".into())
    });
    let ended = use_rows(|| Some(ended_request()));
    let topics = vec![format!("{path}:run+job+progress")];
    keep_live(running, topics.clone(), live::fold_job, |e| live::kind(e) == "job");
    keep_live(waiting, topics.clone(), |_, _| false, |e| live::kind(e) == "job");
    keep_live(
        ended,
        topics,
        |_, _| false,
        |e| matches!(e.event_type.as_str(), "job.completed" | "job.failed" | "job.cancelled"),
    );
    let feeds = use_feeds(&path, "telemetry+progress");
    // The job of the address; else the first that runs, which stays until the reader chooses another.
    let address = Address::here();
    let chosen = Memo::new(move |_| address.query.with(|q| q.get("watch").map(str::to_owned)));
    let watched = Memo::new(move |before: Option<&Option<String>>| {
        let path = |row: &Row| row.text("job").strip_prefix("job/").map(str::to_owned);
        let newest = || {
            // Where nothing runs, the job that ended last is shown: once it is known that nothing does.
            running
                .rows
                .with(|rows| rows.as_ref().is_some_and(Vec::is_empty))
                .then(|| ended.first())
                .flatten()
        };
        let first = || running.first().or_else(newest);
        chosen.get().or_else(|| before.cloned().flatten()).or_else(|| first().as_ref().and_then(path))
    });
    view! {
        <PageHead title=first_page::MONITORING.title meta=|| first_page::MONITORING.words.into_any()/>
        <div class="stack">
            <section aria-labelledby="running">
                <div class="section-head"><h2 id="running">"Running"</h2><span class="push meta strip-keys">"tokens/s, last 60 s · power, one bar a GPU"</span></div>
                {once_there(running, 3, || view! { <Empty words="Nothing runs at this moment."><a class="button" href="/projects">"Projects"</a></Empty> }.into_any(), move || view! { <Strips rows=running feeds/> }.into_any())}
            </section>
            {move || watched.get().map(|path| view! {
                <Choice lists=[("Running", running), ("Waiting", waiting), ("Ended", ended)] watched address/>
                <Watch path/>
            })}
            <section aria-labelledby="waiting">
                <div class="section-head">
                    <h2 id="waiting">"Waiting"</h2>
                    {untrack(|| page.signed_in()).then(|| view! {
                        <span class="push">
                            <CommandButton
                                word="Cancel stale jobs"
                                sure="Stops every run that waits for a server from which nothing is heard."
                                command="cancel_stale_jobs"
                                arguments=Callback::new(|()| CancelStaleJobs::default())
                                done=Done::new(move |_| waiting.reload())
                                testid="cancel-stale-jobs"
                            />
                        </span>
                    })}
                </div>
                {when_there(waiting, 2, || view! { <p class="meta one-line">"No job waits."</p> }.into_any(), |rows| {
                    let lines = rows.iter().map(|row| view! {
                        <tr data-href=row.job_path() tabindex="-1">
                            <th scope="row" class="card-title"><a class="key" href=row.job_path()>{row.text("scenario_code")}</a></th>
                            <td class="card-figure" data-label="Status"><Status row=Signal::stored(row.clone())/></td>
                            <td class="card-figure" data-label="Run"><a class="key" href=row.run_path()>{row.run_key()}</a></td>
                            <td class="key">{format!("{}/{}", row.text("config_code"), row.text("hostname"))}</td>
                        </tr>
                    });
                    view! {
                        <table class="data-table">
                            <caption class="visually-hidden">"Jobs that wait"</caption>
                            <thead><tr><th scope="col">"Job"</th><th scope="col">"Status"</th><th scope="col">"Workload / run"</th><th scope="col">"Server"</th></tr></thead>
                            <tbody>{lines.collect_view()}</tbody>
                        </table>
                    }.into_any()
                })}
            </section>
        </div>
    }
    .into_any()
}

/// The jobs that ended last, of which telemetry and logs are still read.
fn ended_request() -> String {
    "/api/v_jobs?status=in.(completed,failed,cancelled)&attempt=gt.0&order=finished_at.desc.nullslast&limit=50".to_owned()
}

/// A job in words, and its path.
fn choice(row: &Row) -> (String, String) {
    let job = row.text("job");
    let words = format!(
        "{} / {} · {} on {}",
        row.text("workload_code"),
        row.text("run_number"),
        row.text("scenario_code"),
        row.text("hostname")
    );
    (job.strip_prefix("job/").unwrap_or(&job).to_owned(), words)
}

/// Which job is watched: any that runs, waits or has ended.
#[component]
fn Choice(
    lists: [(&'static str, Rows); 3],
    watched: Memo<Option<String>>,
    address: Address,
) -> impl IntoView {
    let options = move || {
        let mut seen: Vec<String> = Vec::new();
        let mut groups: Vec<(&str, Vec<(String, String)>)> = Vec::new();
        for (name, rows) in lists {
            let mut jobs: Vec<(String, String)> = rows.all().iter().map(choice).collect();
            // A job that changed its list between two answers stands in the first.
            jobs.retain(|(path, _)| !seen.contains(path));
            seen.extend(jobs.iter().map(|(path, _)| path.clone()));
            groups.push((name, jobs));
        }
        // The one of the address stays in the list, however long ago it ended.
        if let Some(path) = watched.get().filter(|path| !seen.contains(path)) {
            groups.insert(0, ("Shown", vec![(path.clone(), path)]));
        }
        groups
            .into_iter()
            .filter(|(_, jobs)| !jobs.is_empty())
            .map(|(name, jobs)| {
                let options = jobs.into_iter().map(|(path, words)| {
                    let selected = watched.with(|w| w.as_ref() == Some(&path));
                    view! { <option value=path selected=selected>{words}</option> }
                });
                view! { <optgroup label=name>{options.collect_view()}</optgroup> }
            })
            .collect_view()
    };
    let choose = move |event: leptos::ev::Event| {
        let path = event_target_value(&event);
        address.change(|query| {
            query.set("watch", Some(&path)).set("zoom", None);
        });
    };
    view! {
        <label class="chart-axis">
            <span class="meta">"Watch"</span>
            <select class="control watch-choice" data-testid="watch" on:change=choose>{options}</select>
        </label>
    }
    .into_any()
}
