//! One job: headline figures, telemetry growing sample by sample, the load generator's progress, logs, commands, phases.

mod facts;
mod figures;
mod fill;
mod headline;
mod imported;
mod logs;
mod requests;
mod telemetry;

use events::api::CancelJob;
use leptos::prelude::*;

use self::fill::Reading;
use crate::browser::address::Address;
use crate::browser::page::Page;
use crate::browser::remote::{Rows, keep_live_while, use_rows};
use crate::browser::route::use_location;
use crate::format::{clock, duration};
use crate::frame::drawer_href;
use crate::parts::cancel::Cancel;
use crate::parts::states::once_there;
use crate::parts::{AsOf, AsOfButton, AsOfSlider, PageHead, Status};
use crate::row::Row;
use crate::state::filters::percent;
use crate::state::job_feed::JobFeed;
use crate::state::job_view::JobView;
use crate::state::live;

/// What the parts of the page share.
#[derive(Clone, Copy)]
struct View {
    jobs: Rows,
    results: Rows,
    servers: Rows,
    /// The attempt that is shown; none before the job was claimed.
    attempt: Memo<Option<i64>>,
    /// Whether the load generator has reported progress: its stream is not there before that.
    reported: Memo<bool>,
    feed: RwSignal<JobFeed>,
    /// Whether the samples before the page are there.
    samples: RwSignal<Reading>,
    /// Whether the progress reported before the page is there.
    progress: RwSignal<Reading>,
    address: Address,
    /// What the address says.
    set: Memo<JobView>,
    /// The position of the log that is shown.
    as_of: AsOf,
}

impl View {
    /// The job's row; empty before it is there.
    fn job(self) -> Row {
        self.jobs.first().unwrap_or_default()
    }

    /// Changes what the page is set to, in place.
    fn change(self, change: impl FnOnce(&mut JobView)) {
        self.address.replace(|query| {
            let mut set = JobView::read(query);
            change(&mut set);
            set.write(query);
        });
    }
}

/// Everything of one job, kept live. `path` is `org/project/workload/run/scenario`.
fn open(path: &str) -> View {
    let job = format!("job/{path}");
    let org = path.split('/').next().unwrap_or_default();
    let ask = |request: String| move || Some(request.clone());
    let address = Address::here();
    let as_of = AsOf::in_address(address);
    let then = |request: String| move || Some(format!("{request}{}", as_of.condition()));
    let jobs = use_rows(then(format!("/api/v_jobs?job=eq.{}", percent(&job))));
    let view = View {
        jobs,
        results: use_rows(then(format!("/api/v_benchmark_results?job=eq.{}", percent(&job)))),
        servers: use_rows(ask(format!("/api/v_servers?org=eq.{}", percent(org)))),
        attempt: Memo::new(move |_| jobs.first().and_then(|j| j.whole("attempt")).filter(|a| *a > 0)),
        reported: Memo::new(move |_| jobs.first().is_some_and(|j| j.value("progress_phase").is_some())),
        feed: RwSignal::new(JobFeed::default()),
        samples: RwSignal::default(),
        progress: RwSignal::default(),
        address,
        set: Memo::new(move |_| address.query.with(JobView::read)),
        as_of,
    };
    // One topic for everything of this job, so that its order is the log's.
    let topics = vec![format!("{path}:job+telemetry+progress+logs")];
    let now = move || !as_of.is_past();
    keep_live_while(now, view.jobs, topics.clone(), live::fold_job, |e| live::kind(e) == "job");
    keep_live_while(now, view.results, topics.clone(), |_, _| false, |e| live::kind(e) == "job");
    Page::expect().live.listen(topics, move |events| {
        if !untrack(now) {
            return;
        }
        let changed = view
            .feed
            .try_update_untracked(|feed| events.iter().fold(false, |changed, e| feed.fold(e) | changed));
        if changed == Some(true) {
            view.feed.notify();
        }
    });
    fill::fill_feed(view, &job);
    view
}

/// A job as it runs: progress, the summary of its telemetry, the charts, the logs. For Monitoring.
#[component]
pub fn Watch(
    /// `org/project/workload/run/scenario`.
    path: String,
) -> impl IntoView {
    let view = open(&path);
    let title = move || {
        let job = view.job();
        view! {
            <h2><a class="key link" href=job.job_path()>{job.text("scenario_code")}</a></h2>
            <span class="meta">{head_words(&job)}</span>
            <span class="push"><Status row=Signal::derive(move || marked(view))/></span>
        }
    };
    view! {
        <section class="below" data-testid="watched" data-job=format!("job/{path}")>
            <div class="section-head">{title}</div>
            <headline::ProgressLine view/>
            <telemetry::Summaries view/>
            <telemetry::Telemetry view/>
            <section aria-labelledby="logs" id="logs" class="below">
                <div class="section-head"><h2>"Logs"</h2><span class="meta">"three streams, secrets redacted by the agent"</span></div>
                <logs::Logs view/>
            </section>
        </section>
    }
    .into_any()
}

/// One job.
#[component]
pub fn Job(org: String, project: String, workload: String, run: String, scenario: String) -> impl IntoView {
    let path = format!("{org}/{project}/{workload}/{run}/{scenario}");
    let view = open(&path);
    let cancel = CancelJob {
        p_project_code: project.clone(),
        p_workload_code: workload,
        p_run_number: run.parse().unwrap_or(0),
        p_scenario_code: scenario.clone(),
    };
    // Nothing of a job is offered where there is none: an imported result has a page here, too.
    let there = Memo::new(move |_| view.jobs.rows.with(|r| r.as_ref().is_none_or(|r| !r.is_empty())));
    let events_job = path.clone();
    let location = use_location();
    let events_href = move || {
        drawer_href(
            &location.pathname.get(),
            &location.search.get(),
            &[("drawer", "events"), ("job", &events_job)],
        )
    };
    view! {
        <PageHead
            title=scenario
            status=move || there.get().then(|| view! { <Status row=Signal::derive(move || marked(view))/> }).into_any()
            meta=move || view.jobs.first().map(|j| head_words(&j)).into_any()
        >
            <Show when=move || there.get()>
                <a class="button" href="#logs" rel="external">"Logs"</a>
                <a class="button" href=events_href.clone() data-noscroll="" data-testid="events">"Events"</a>
            </Show>
            <Show when=move || there.get()><AsOfButton as_of=view.as_of/></Show>
            <Show when=move || !view.as_of.is_past()><Cancel what="job" rows=view.jobs arguments=cancel.clone()/></Show>
        </PageHead>
        <AsOfSlider as_of=view.as_of/>
        {once_there(view.jobs, 8, move || absent(view.as_of, &path), move || view! { <Body view org=org.clone()/> }.into_any())}
    }
    .into_any()
}

/// There is no such job: an imported result, nothing at all, or nothing yet at the position that is shown.
fn absent(as_of: AsOf, path: &str) -> AnyView {
    if untrack(|| as_of.is_past()) {
        return super::run::not_there(as_of, "job", path);
    }
    view! { <imported::OrUnknown path=path.to_owned()/> }.into_any()
}

/// The job's row with what its result knows of flags and simulation.
fn marked(view: View) -> Row {
    let mut row = view.job();
    if let Some(result) = view.results.first() {
        for column in ["flags", "simulated", "imported", "suspicious"] {
            if let Some(value) = result.value(column) {
                row.set(column, value.clone());
            }
        }
    }
    row
}

fn head_words(job: &Row) -> String {
    let mut words = vec![format!("{} / run {}", job.text("workload_code"), job.text("run_number"))];
    match (job.millis("claimed_at"), job.millis("finished_at")) {
        (Some(from), Some(to)) => words.push(format!(
            "{} to {} UTC, took {}",
            clock(from),
            clock(to),
            duration((to - from) / 1000.0)
        )),
        (Some(from), None) => words.push(format!("since {} UTC", clock(from))),
        _ => {}
    }
    words.push(format!("on {}/{}", job.text("config_code"), job.text("hostname")));
    if let Some(attempt) = job.whole("attempt").filter(|a| *a > 1) {
        words.push(format!("attempt {attempt}"));
    }
    words.join(" · ")
}

#[component]
fn Body(view: View, org: String) -> impl IntoView {
    view! {
        <headline::Headline results=view.results jobs=view.jobs/>
        <headline::Failure view/>
        <headline::ProgressLine view/>
        <telemetry::Telemetry view/>
        <telemetry::Summaries view/>
        <figures::Figures results=view.results/>
        <requests::Requested view org/>
        <section aria-labelledby="logs" id="logs" class="below">
            <div class="section-head"><h2>"Logs"</h2><span class="meta">"three streams, secrets redacted by the agent"</span></div>
            <logs::Logs view/>
        </section>
        <facts::Commands view/>
        <facts::Phases view/>
    }
    .into_any()
}
