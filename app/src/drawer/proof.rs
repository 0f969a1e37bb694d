//! What made a number: the calculation, the chain with positions, the events with their hashes, the exact command.

use events::api::{ChainLink, EventView, History};
use events::proof_file::{FORMAT, ProofFile};
use leptos::prelude::*;
use wasm_bindgen_futures::spawn_local;

use super::check::CheckProof;
use super::doubts::Doubts;
use super::mean::MeanOf;
use super::{Head, Runs, evidence};
use crate::browser::api::{self, Trouble};
use crate::browser::page::Page;
use crate::browser::remote::use_rows;
use crate::browser::route::use_location;
use crate::format::{clock, count, millis};
use crate::frame::drawer_href;
use crate::metrics::{calculation, column};
use crate::parts::states::{Skeleton, trouble_view};
use crate::parts::{CopyButton, command, shell};
use crate::row::Row;
use crate::state::filters::percent;
use crate::state::live::kind;
use crate::state::result_key::{is_import, stream_of};

/// The link to an event in the drawer.
pub fn event_href(position: i64) -> Signal<String> {
    let location = use_location();
    let position = position.to_string();
    Signal::derive(move || {
        location.pathname.with(|p| {
            location.search.with(|s| drawer_href(p, s, &[("drawer", "event"), ("position", &position)]))
        })
    })
}

/// Where a link of the chain leads on the page.
fn link_path(job: &str, link: &str) -> Option<String> {
    let key = if is_import(job) { job.strip_prefix("import/")? } else { job };
    let parts: Vec<&str> = key.split('/').collect();
    let depth = match link {
        "project" => 2,
        "workload" | "scenario" => 3,
        "run" => 4,
        "job" => 5,
        _ => return None,
    };
    if is_import(job) && depth > 2 {
        return None;
    }
    parts.get(..depth).map(|p| format!("/projects/{}", p.join("/")))
}

/// The end of a key: what people call it.
fn short_key(link: &ChainLink, metric: &str) -> String {
    match link.link.as_str() {
        "metrics" => metric.to_owned(),
        "invocation" => once(&link.key),
        _ => link.key.rsplit('/').next().unwrap_or(&link.key).to_owned(),
    }
}

/// A tool and its version: tools that print their own name with their version are not named twice.
pub(super) fn once(words: &str) -> String {
    match words.split_once(' ') {
        Some((tool, version)) if version.starts_with(tool) => version.to_owned(),
        _ => words.to_owned(),
    }
}

/// The proof of a figure.
#[component]
pub fn Proof(
    job: String,
    metric: String,
    /// The runs that the figure is the mean of; this is the newest of them.
    mean: Option<Runs>,
) -> impl IntoView {
    let page = Page::expect();
    let label = column(&metric)
        .map_or_else(|| metric.clone(), |c| c.definition().split(':').next().unwrap_or(c.label).to_owned());
    let definition = column(&metric).map_or_else(String::new, |c| {
        c.definition().split_once(": ").map_or_else(String::new, |(_, d)| d.to_owned())
    });
    let stream = stream_of(&job);
    let request = format!("/api/v_benchmark_results?job=eq.{}", percent(&stream));
    let result = use_rows(move || Some(request.clone()));
    let newest = Memo::new(move |_| result.first());
    let history = RwSignal::new(None::<Result<History, Trouble>>);
    let again = RwSignal::new(0u32);
    let key = stream.clone();
    Effect::new(move |_| {
        again.track();
        page.live.epoch.track();
        let request = format!("/api/history?result={}", percent(&key));
        spawn_local(async move {
            let answer = api::get::<History>(&request, page.live.at_least()).await;
            history.try_set(Some(answer));
        });
    });
    let tabs = vec![
        (
            "Provenance",
            vec![("drawer", "proof".to_owned()), ("job", job.clone()), ("metric", metric.clone())],
            true,
        ),
        ("Events", vec![("drawer", "events".to_owned()), ("job", job.clone())], false),
    ];
    let (named, of) = (metric.clone(), job.clone());
    view! {
        <Head title=label note=definition tabs/>
        <div class="drawer-body" data-testid="proof">
            {mean.map(|runs| view! { <MeanOf result=newest metric=named.clone() runs/> })}
            <div class="verdict">
                {move || result.first().map(|row| verdict(&row, &metric))}
            </div>
            {move || match history.get() {
                None => view! { <Skeleton lines=8/> }.into_any(),
                Some(Err(trouble)) => trouble_view(&trouble, move || again.update(|n| *n += 1)),
                Some(Ok(history)) => proved_by(&history, &of, &named, result.first().unwrap_or_default()),
            }}
        </div>
    }
    .into_any()
}

fn verdict(row: &Row, metric: &str) -> AnyView {
    let written = calculation(metric, row);
    let mut marks: Vec<AnyView> = Vec::new();
    if row.is("simulated") {
        marks.push(view! { <p><span class="status" data-status="simulated">"simulated"</span>" "<span class="quiet">"served by benchtrail-refserver, not by a model"</span></p> }.into_any());
    }
    if row.is("imported") {
        marks.push(view! { <p><span class="status" data-status="imported">"imported"</span>" "<span class="quiet">"measured elsewhere, read from a file: the log proves the file, not the measurement"</span></p> }.into_any());
    }
    for rule in row.list("flags") {
        marks.push(
            view! { <p><span class="status" data-status="flagged">{rule.replace('_', " ")}</span></p> }
                .into_any(),
        );
    }
    view! {
        {marks}
        <p class="key" data-testid="calculation">{written}</p>
    }
    .into_any()
}

/// The tool's command line as it ran.
fn tool_argv(history: &History) -> Vec<String> {
    history
        .events
        .iter()
        .find(|e| e.event_type.starts_with("tool_output."))
        .and_then(|e| e.payload.pointer("/invocation/argv"))
        .and_then(|v| v.as_array())
        .map(|list| list.iter().filter_map(|v| v.as_str().map(str::to_owned)).collect())
        .unwrap_or_default()
}

fn proved_by(history: &History, job: &str, metric: &str, row: Row) -> AnyView {
    let argv = tool_argv(history);
    view! {
        <section data-testid="chain">
            <div class="command-head"><h3>"Chain"</h3><span class="meta">"position in the log"</span></div>
            <ol class="chain">{history.chain.iter().map(|link| chain_link(link, job, metric)).collect_view()}</ol>
        </section>
        <section>
            <div class="command-head"><h3>"Evidence"</h3></div>
            <dl class="definitions">{evidence::facts(history, job, &row)}</dl>
        </section>
        <CheckProof file=unproved(history, job, metric, &row) positions=behind(history) name=format!("{job}-{metric}")/>
        {(!is_import(job)).then(|| view! { <Doubts job=job.to_owned()/> })}
        {(!argv.is_empty()).then(|| {
            let text = shell(&argv);
            view! {
                <section data-testid="proof-command">
                    <div class="command-head"><h3>"Tool command"</h3><CopyButton text=Signal::stored(text)/></div>
                    {command(&argv)}
                </section>
            }
        })}
        <section data-testid="proof-events">
            <div class="command-head"><h3>"Events"</h3><span class="meta">"UTC · actor · hash · position"</span></div>
            <EventList events=history.events.clone()/>
        </section>
    }
    .into_any()
}

/// The positions of the events behind a figure.
fn behind(history: &History) -> Vec<i64> {
    let events = history.events.iter().filter(|e| !matches!(kind(e), "telemetry" | "progress" | "logs"));
    events.map(|e| e.position).collect()
}

/// The proof of a figure, without its events.
fn unproved(history: &History, job: &str, metric: &str, row: &Row) -> ProofFile {
    ProofFile {
        format: FORMAT.to_owned(),
        result: stream_of(job),
        metric: metric.to_owned(),
        value: row.number(metric),
        unit: column(metric).map_or("", |c| c.unit()).to_owned(),
        calculation: calculation(metric, row),
        command: tool_argv(history),
        chain: history.chain.clone(),
        proofs: Vec::new(),
        samples: None,
        line: None,
    }
}

fn chain_link(link: &ChainLink, job: &str, metric: &str) -> AnyView {
    let last = link.link == "metrics";
    let title = link.key.clone();
    let words = short_key(link, metric);
    let name = match link_path(job, &link.link) {
        Some(path) => view! { <a class="key" href=path title=title>{words}</a> }.into_any(),
        None => view! { <span class="key" title=title>{words}</span> }.into_any(),
    };
    view! {
        <li aria-current=last.then_some("true") data-link=link.link.clone() title=format!("{} · {}", link.recorded_at, link.hash)>
            <span class="label">{link.link.clone()}</span>
            {name}
            <a class="position key" href=event_href(link.position) data-noscroll="">{count(link.position)}</a>
        </li>
    }
    .into_any()
}

/// Events in order of position; telemetry, progress and log lines are folded into one line each.
#[component]
pub fn EventList(events: Vec<EventView>) -> impl IntoView {
    let lines = events.into_iter().filter(|e| !matches!(kind(e), "telemetry" | "progress" | "logs")).map(|event| {
        let at = millis(&event.recorded_at.to_string()).map_or_else(String::new, clock);
        let who = event.actor_name.clone().unwrap_or_else(|| event.actor_id.clone());
        view! {
            <li data-testid="proof-event" title=event.recorded_at.to_string()>
                <span class="label">{at}</span>
                <span>
                    <a class="key" href=event_href(event.position) data-noscroll="">{event.event_type.clone()}</a>
                    <span class="meta event-by">{format!("{} {who} · ", event.actor_kind)}<span class="key" title=event.hash.clone()>{event.hash.get(..12).unwrap_or_default().to_owned()}</span></span>
                </span>
                <a class="position key" href=event_href(event.position) data-noscroll="">{count(event.position)}</a>
            </li>
        }
        .into_any()
    });
    view! { <ol class="chain">{lines.collect_view()}</ol> }.into_any()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tool_is_named_once() {
        assert_eq!(once("metrumbench-llm metrumbench-llm 0.1.0"), "metrumbench-llm 0.1.0");
        assert_eq!(once("metrumbench-llm 0.1.0"), "metrumbench-llm 0.1.0");
    }

    #[test]
    fn a_link_of_the_chain_leads_to_its_page() {
        let job = "acme/p/w/3/c8";
        assert_eq!(link_path(job, "project").as_deref(), Some("/projects/acme/p"));
        assert_eq!(link_path(job, "run").as_deref(), Some("/projects/acme/p/w/3"));
        assert_eq!(link_path(job, "metrics"), None);
        let imported = "import/acme/p/i/1/c8";
        assert_eq!(link_path(imported, "project").as_deref(), Some("/projects/acme/p"));
        assert_eq!(link_path(imported, "run"), None);
    }
}
