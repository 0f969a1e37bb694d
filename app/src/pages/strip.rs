//! A running job as a strip: progress, running throughput, GPU power.

use std::collections::HashMap;

use leptos::prelude::*;

use crate::browser::now_ms;
use crate::browser::page::Page;
use crate::browser::remote::Rows;
use crate::format::{ABSENT, count, duration, maybe, millis};
use crate::parts::{AsOf, Progress, Spark, Status, swatch};
use crate::row::Row;
use crate::state::colours::Kind;
use crate::state::job_feed::JobFeed;
use crate::state::live::{job_of, share_done};

/// The last minute of every running job, by job.
#[derive(Clone, Copy)]
pub struct Feeds {
    jobs: RwSignal<HashMap<String, JobFeed>>,
    /// Whether the past is shown, of which nothing is said here.
    past: Option<AsOf>,
}

impl Feeds {
    /// Says nothing while the past is shown.
    pub fn of_now(self, as_of: AsOf) -> Self {
        Self { past: Some(as_of), ..self }
    }

    /// What a job's load generator generates now: the mean of its last ten seconds.
    pub fn tokens_now(self, job: &str) -> Option<f64> {
        if self.past.is_some_and(AsOf::is_past) {
            return None;
        }
        self.jobs.with(|feeds| feeds.get(job)?.running_throughput().last().map(|p| p.avg))
    }
}

/// Listens to events of these kinds of everything under an organisation, project or run.
pub fn use_feeds(path: &str, kinds: &str) -> Feeds {
    let feeds = RwSignal::new(HashMap::<String, JobFeed>::new());
    Page::expect().live.listen(vec![format!("{path}:{kinds}")], move |events| {
        feeds.try_update(|feeds| {
            // By the clock of the log, not by the browser's.
            let newest = events.iter().filter_map(|e| millis(&e.recorded_at.to_string())).fold(0.0, f64::max);
            let old = newest - 60_000.0;
            for event in events {
                if let Some(job) = job_of(event) {
                    let feed = feeds.entry(job).or_default();
                    feed.fold(event);
                    feed.keep_since(old, 60);
                }
            }
            // A job that said nothing for a minute has no last minute.
            feeds.retain(|_, feed| feed.heard_since(old));
        });
    });
    Feeds { jobs: feeds, past: None }
}

/// The strips of running jobs.
#[component]
pub fn Strips(
    /// Rows of `v_jobs`.
    rows: Rows,
    /// Their last minute.
    feeds: Feeds,
) -> impl IntoView {
    let jobs = Memo::new(move |_| {
        rows.all().iter().filter(|r| r.text("status") == "running").map(|r| r.text("job")).collect::<Vec<_>>()
    });
    view! {
        <ol class="strip-list" data-testid="running-jobs">
            <For each=move || jobs.get() key=Clone::clone let:job>
                <Strip rows feeds job/>
            </For>
        </ol>
    }
}

#[component]
fn Strip(rows: Rows, feeds: Feeds, job: String) -> impl IntoView {
    let name = job.clone();
    let row = Memo::new(move |_| {
        rows.rows.with(|r| r.iter().flatten().find(|r| r.text("job") == name).cloned().unwrap_or_default())
    });
    let key = job.clone();
    let tokens = Memo::new(move |_| {
        feeds.jobs.with(|f| {
            f.get(&key)
                .map(|f| f.running_throughput().iter().map(|p| p.avg).collect::<Vec<f64>>())
                .unwrap_or_default()
        })
    });
    let key = job.clone();
    let power = Memo::new(move |_| {
        feeds.jobs.with(|f| {
            let feed = f.get(&key)?;
            let gpus: Vec<f64> =
                feed.sources("gpu", "power_w").iter().filter_map(|(_, l)| l.last()).map(|p| p.avg).collect();
            (!gpus.is_empty()).then_some(gpus)
        })
    });
    let key = job.clone();
    let cpu = Memo::new(move |_| {
        feeds.jobs.with(|f| {
            let feed = f.get(&key)?;
            let sockets = feed.sources("cpu", "utilization").len();
            feed.newest_sum("cpu", "utilization").map(|sum| sum / sockets.max(1) as f64 * 100.0)
        })
    });
    let key = job.clone();
    let values = Memo::new(move |_| feeds.jobs.with(|f| f.get(&key).map_or(0, |feed| feed.taken)));
    let start = row.get_untracked();
    let named = job.clone();
    let (colours, model) = (Page::expect().colours, start.text("model_code"));
    let colour = Signal::derive(move || colours.of(Kind::Model, &model));
    let share = Signal::derive(move || row.with(share_done));
    let left = move || {
        let (share, since) = (share.get()?, row.with(|r| r.millis("running_at"))?);
        let spent = (now_ms() - since) / 1000.0;
        (share > 0.02 && spent > 2.0).then(|| format!("{} left", duration(spent / share * (1.0 - share))))
    };
    let requests = move || {
        row.with(|r| {
            match (r.whole("progress_done"), r.whole("progress_total").or(r.whole("num_requests"))) {
                (Some(done), Some(total)) => format!("{} of {} requests", count(done), count(total)),
                _ => r.text("progress_phase"),
            }
        })
    };
    let newest = move || {
        tokens.with(|t| t.last().copied()).or_else(|| row.with(|r| r.number("progress_tokens_per_second")))
    };
    view! {
        <li data-testid="strip" data-job=named data-values=move || values.get().to_string()>
            <div>
                <p class="strip-title">
                    <a class="key" href=start.job_path()>{swatch(Kind::Model, &start.text("model_code"))}{start.text("scenario_code")}</a>
                </p>
                <p class="meta strip-title">
                    <span class="key">{format!("{} / run {}", start.text("workload_code"), start.text("run_number"))}</span>
                    {format!(" · {}", start.text("hostname"))}
                </p>
            </div>
            <div>
                <p class="cell-line"><Status row=Signal::derive(move || row.get())/><span>{left}</span></p>
                <Progress share label=job/>
                <p class="cell-line"><span>{requests}</span></p>
            </div>
            <div class="strip-spark">
                <Spark values=Signal::derive(move || tokens.get()) colour/>
                <p class="cell-line"><span><b>{move || maybe(newest())}</b>" tok/s"</span></p>
            </div>
            <div class="strip-power">
                {move || match power.get() {
                    Some(gpus) => {
                        let total: f64 = gpus.iter().sum();
                        view! { <Bars values=gpus/><p class="cell-line"><span><b>{maybe(Some(total / 1000.0))}</b>" kW"</span></p> }.into_any()
                    }
                    None => view! { <p class="cell-line"><span>"CPU "<b>{cpu.get().map_or(ABSENT.to_owned(), |c| maybe(Some(c)))}</b>" %"</span></p> }.into_any(),
                }}
            </div>
        </li>
    }
    .into_any()
}

/// Whether a row is a running job.
pub fn is_running(row: &Row) -> bool {
    row.text("status") == "running"
}

#[component]
fn Bars(values: Vec<f64>) -> impl IntoView {
    let most = values.iter().copied().fold(1000.0, f64::max);
    let bars = values.into_iter().enumerate().map(|(i, v)| {
        let height = v / most * 32.0;
        view! { <rect x=(i * 9).to_string() y=format!("{:.1}", 32.0 - height) width="7" height=format!("{height:.1}")></rect> }
    });
    view! { <svg class="spark" viewBox="0 0 70 32" width="70" height="32" aria-hidden="true">{bars.collect_view()}</svg> }
}
