//! A running job as a strip: progress, running throughput, GPU power.

use std::sync::Arc;

use leptos::prelude::*;

use crate::browser::now_ms;
use crate::browser::page::Page;
use crate::browser::remote::Rows;
use crate::format::{ABSENT, count, duration, maybe};
use crate::parts::{AsOf, Progress, Spark, Status, swatch};
use crate::row::Row;
use crate::state::colours::Kind;
use crate::state::live::share_done;
use crate::state::minute::{Minute, Minutes};

/// The last minute of every running job, by job.
#[derive(Clone, Copy)]
pub struct Feeds {
    jobs: RwSignal<Minutes>,
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
        self.jobs.with(|jobs| jobs.of(job).filter(|minute| minute.unit == "tok/s")?.tokens.last().copied())
    }

    /// What all GPUs of the jobs that run draw now, in kilowatts; nothing where none is read.
    pub fn kilowatts(self) -> Option<f64> {
        let watts = self.jobs.with(Minutes::watts);
        (watts > 0.0).then_some(watts / 1000.0)
    }

    /// What a job's strip shows: another one whenever something of this job came.
    fn minute(self, job: String) -> Memo<Option<Arc<Minute>>> {
        let other =
            |before: Option<&Option<Arc<Minute>>>, now: Option<&Option<Arc<Minute>>>| match (before, now) {
                (Some(Some(before)), Some(Some(now))) => !Arc::ptr_eq(before, now),
                (Some(None), Some(None)) => false,
                _ => true,
            };
        Memo::new_with_compare(move |_| self.jobs.with(|jobs| jobs.of(&job)), other)
    }
}

/// Listens to events of these kinds of everything under an organisation, project or run.
pub fn use_feeds(path: &str, kinds: &str) -> Feeds {
    let jobs = RwSignal::new(Minutes::default());
    Page::expect().live.listen(vec![format!("{path}:{kinds}")], move |events| {
        jobs.try_update(|jobs| jobs.fold(events));
    });
    Feeds { jobs, past: None }
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
        rows.rows.with(|rows| {
            rows.iter().flatten().filter(|row| is_running(row)).map(|row| row.text("job")).collect::<Vec<_>>()
        })
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
    let minute = feeds.minute(job.clone());
    let of = move |pick: fn(&Minute) -> Vec<f64>| {
        Memo::new(move |_| minute.with(|minute| minute.as_deref().map(pick).unwrap_or_default()))
    };
    let (tokens, power) = (of(|minute| minute.tokens.clone()), of(|minute| minute.power.clone()));
    let cpu = Memo::new(move |_| minute.with(|minute| minute.as_ref().and_then(|m| m.cpu)));
    let unit = move || minute.with(|minute| minute.as_ref().map_or("tok/s", |m| m.unit));
    let values = Memo::new(move |_| minute.with(|minute| minute.as_ref().map_or(0, |m| m.values)));
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
                    <span class="key">{start.run_key()}</span>
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
                <p class="cell-line"><span><b>{move || maybe(newest())}</b>" "{unit}</span></p>
            </div>
            <div class="strip-power">
                <Show
                    when=move || power.with(|gpus| !gpus.is_empty())
                    fallback=move || view! { <p class="cell-line"><span>"CPU "<b>{move || cpu.get().map_or(ABSENT.to_owned(), |c| maybe(Some(c)))}</b>" %"</span></p> }
                >
                    <Bars values=power/>
                    <p class="cell-line"><span><b>{move || maybe(Some(power.with(|gpus| gpus.iter().sum::<f64>()) / 1000.0))}</b>" kW"</span></p>
                </Show>
            </div>
        </li>
    }
    .into_any()
}

/// Whether a row is a running job.
pub fn is_running(row: &Row) -> bool {
    row.text("status") == "running"
}

/// One bar a GPU: a single path, so that another second changes one attribute.
#[component]
fn Bars(values: Memo<Vec<f64>>) -> impl IntoView {
    let path = move || values.with(|values| bars(values));
    view! { <svg class="spark" viewBox="0 0 70 32" width="70" height="32" aria-hidden="true"><path d=path></path></svg> }
}

/// The outlines of bars, 7 wide and 2 apart, of at most 32: 1,000 W are as high, more where a bar is more.
fn bars(values: &[f64]) -> String {
    let most = values.iter().copied().fold(1000.0, f64::max);
    let bar = |(nth, value): (usize, &f64)| {
        let height = value / most * 32.0;
        format!("M{} 32v-{height:.1}h7v{height:.1}z", nth * 9)
    };
    values.iter().enumerate().map(bar).collect()
}

#[cfg(test)]
mod tests {
    use super::bars;

    #[test]
    fn a_bar_is_as_high_as_its_share_of_a_kilowatt() {
        assert_eq!(bars(&[500.0, 1000.0]), "M0 32v-16.0h7v16.0zM9 32v-32.0h7v32.0z");
        assert_eq!(bars(&[2000.0, 1000.0]), "M0 32v-32.0h7v32.0zM9 32v-16.0h7v16.0z");
    }
}
