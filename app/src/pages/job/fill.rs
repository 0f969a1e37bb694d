//! Reads what was before the page: telemetry, progress and log lines of the newest attempt; again when something was lost.

use events::api::History;
use leptos::prelude::*;
use wasm_bindgen_futures::spawn_local;

use super::View;
use crate::browser::api::{self, Trouble};
use crate::browser::now_ms;
use crate::browser::page::Page;
use crate::state::filters::percent;
use crate::state::job_feed::{JobFeed, Resolution};
use crate::state::job_view::SOURCES;

/// Log lines of one request: read and folded well within a frame or two.
const LINES_AT_ONCE: usize = 5000;

/// How far the reading of what was before the page has come. What is not read yet must not look like nothing.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) enum Reading {
    #[default]
    Waiting,
    Done,
    /// Why it could not be read.
    Failed(String),
}

/// Takes note of an answer. What was there once stays, also when it cannot be read again.
fn note(reading: RwSignal<Reading>, answer: Result<(), Trouble>) {
    let next = match answer {
        Ok(()) => Reading::Done,
        Err(trouble) => Reading::Failed(trouble.error.message),
    };
    if reading.try_get_untracked().is_some_and(|now| now != Reading::Done) {
        reading.try_set(next);
    }
}

pub(super) fn fill_feed(view: View, job: &str) {
    let page = Page::expect();
    Effect::new(move |_| {
        // Also a row that is as it was says something to a feed that begins anew.
        view.jobs.read.track();
        view.jobs.rows.with(|rows| {
            if let Some(row) = rows.as_ref().and_then(|r| r.first()) {
                view.feed.try_update(|feed| feed.add_job_row(row));
            }
        });
    });
    // Another position is another job's worth of numbers: nothing of the one before stays.
    let until = Memo::new(move |_| view.as_of.position.get());
    Effect::new(move |before: Option<Option<i64>>| {
        let now = until.get();
        if before.is_some_and(|before| before != now) {
            view.feed.set(JobFeed::default());
            view.samples.set(Reading::Waiting);
            view.progress.set(Reading::Waiting);
        }
        now
    });
    let path = job.strip_prefix("job/").unwrap_or(job).to_owned();
    Effect::new(move |_| {
        page.live.epoch.track();
        let (Some(attempt), true) = (view.attempt.get(), view.reported.get()) else { return };
        let stream = format!("progress/{}/{attempt}", percent(&path));
        spawn_local(read_progress(view, stream, page.live.at_least(), until.get()));
    });
    let of = format!("job=eq.{}", percent(job));
    Effect::new(move |_| {
        page.live.epoch.track();
        let Some(attempt) = view.attempt.get() else { return };
        let until = until.get();
        let bound = until.map(|position| format!("&position=lte.{position}")).unwrap_or_default();
        let of = format!("{of}&attempt=eq.{attempt}{bound}");
        let at_least = page.live.at_least();
        spawn_local(async move {
            read_telemetry(view, &of, at_least, until).await;
            // The stream that is looked at comes first.
            let shown = view.set.try_get_untracked().unwrap_or_default().log;
            let mut sources = SOURCES.map(|(source, _)| source);
            sources.sort_by_key(|source| *source != shown);
            for source in sources {
                read_lines(view, &of, source, at_least, until).await;
            }
        });
    });
}

/// Whether it is still this position of the log that is shown: what comes too late is left alone.
fn still(view: View, until: Option<i64>) -> bool {
    view.as_of.position.try_get_untracked() == Some(until)
}

/// Every sample of a short job, means of a longer one.
async fn read_telemetry(view: View, of: &str, at_least: i64, until: Option<i64>) {
    let spent = view.jobs.rows.try_with_untracked(|rows| {
        let job = rows.as_ref().and_then(|r| r.first())?;
        Some(job.millis("finished_at").unwrap_or_else(now_ms) - job.millis("claimed_at")?)
    });
    let resolution = Resolution::for_span(spent.flatten().unwrap_or(0.0));
    let answer = api::rows(&resolution.request(of), at_least, false).await;
    if still(view, until) {
        let taken = answer.map(|(rows, _)| {
            view.feed.try_update(|feed| feed.take_telemetry(resolution, &rows));
        });
        note(view.samples, taken);
    }
}

async fn read_progress(view: View, stream: String, at_least: i64, until: Option<i64>) {
    let mut after = 0;
    // Ten pages are hours of progress at one report a second.
    for _ in 0..10 {
        let request = format!("/api/history?stream={stream}&after={after}&limit=1000");
        let answer = api::get::<History>(&request, at_least).await;
        if !still(view, until) {
            return;
        }
        let history = match answer {
            Ok(history) => history,
            Err(trouble) => return note(view.progress, Err(trouble)),
        };
        view.feed.try_update(|feed| {
            for event in history.events.iter().filter(|e| until.is_none_or(|until| e.position <= until)) {
                feed.fold(event);
            }
        });
        match history.next_after {
            Some(next) => after = next,
            None => break,
        }
    }
    note(view.progress, Ok(()));
}

/// Reads the lines of one source in order, some thousand at a time.
async fn read_lines(view: View, of: &str, source: &str, at_least: i64, until: Option<i64>) {
    let mut after = 0;
    loop {
        let request = format!(
            "/api/v_log_lines?{of}&source=eq.{source}&line_number=gt.{after}&select=line_number,line,at&order=line_number.asc&limit={LINES_AT_ONCE}"
        );
        let Ok((rows, _)) = api::rows(&request, at_least, false).await else { return };
        if !still(view, until) {
            return;
        }
        let last = view.feed.try_update(|feed| feed.add_log_rows(source, &rows)).flatten();
        match last {
            Some(last) if rows.len() == LINES_AT_ONCE => after = last,
            _ => return,
        }
    }
}
