//! The job's requests, from its load generator's own log: a waterfall as they were sent, and the errors by kind.

use events::api::EventView;
use leptos::prelude::*;
use wasm_bindgen_futures::spawn_local;

use super::View;
use crate::browser::api::{self, Trouble};
use crate::browser::page::Page;
use crate::browser::remote::use_rows;
use crate::charts::Figure;
use crate::charts::view::{Chart, Zooming};
use crate::charts::waterfall;
use crate::format::{count, counted, significant, size};
use crate::parts::states::trouble_view;
use crate::parts::tables::open_drawer;
use crate::state::colours::Kind;
use crate::state::filters::percent;
use crate::state::requests::{Requests, WINDOW};

/// Bytes of a request log that are read. What lies behind is said to be missing, never left out in silence.
const MOST_BYTES: usize = 48 << 20;
/// Bytes of a request log that are read without being asked for.
const UNASKED_BYTES: i64 = 8 << 20;

/// How far the log was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Read {
    /// It is not known yet whether there is one.
    Waiting,
    /// The job has none (yet).
    None,
    /// It was erased.
    Erased,
    /// It is large: it is read when it is asked for.
    Large,
    /// Some of it is here.
    Some,
    /// All of it.
    All,
    /// As much as is read; there is more.
    Cut,
}

/// The waterfall and the errors.
#[component]
pub(super) fn Requested(view: View, org: String) -> impl IntoView {
    let requests = RwSignal::new(Requests::default());
    let read = RwSignal::new(Read::Waiting);
    let trouble = RwSignal::new(None::<Trouble>);
    let again = RwSignal::new(0u32);
    // Once the job has ended its log is there; an attempt's log is never added to.
    let ended = Memo::new(move |_| {
        let job = view.job();
        job.millis("finished_at").map(|_| (job.text("job"), job.text("claimed_at")))
    });
    let logs = use_rows(move || {
        let (job, claimed) = ended.get()?;
        let until = view.as_of.position.get().map(|at| format!("&position=lte.{at}")).unwrap_or_default();
        // Of this attempt: an earlier one's log is another measurement.
        Some(
            format!(
                "/api/v_job_artifacts?job=eq.{}&kind=eq.request_log&recorded_at=gte.{}&order=position.desc&limit=1&select=org,sha256,erased,bytes,position",
                percent(&job),
                percent(&claimed)
            ) + &until,
        )
    });
    // Uploaded after the job ended: its event comes later than the job's.
    Page::expect().live.listen(vec![format!("{org}:blob")], move |events| {
        let job = view.jobs.rows.with_untracked(|r| r.iter().flatten().next().map(|j| j.text("job")));
        let of_job =
            |e: &EventView| e.payload.get("job").and_then(serde_json::Value::as_str) == job.as_deref();
        if events.iter().any(|event| of_job(event)) {
            logs.reload_soon();
        }
    });
    let address = Memo::new(move |_| {
        let log = logs.first().filter(|log| !log.is("erased"))?;
        Some(format!("/api/blobs/{}/{}", percent(&log.text("org")), percent(&log.text("sha256"))))
    });
    let bytes = Memo::new(move |_| logs.first().and_then(|log| log.whole("bytes")).unwrap_or(0));
    let asked = RwSignal::new(false);
    Effect::new(move |_| {
        if address.with(Option::is_none) && logs.rows.with(Option::is_some) {
            read.set(if logs.first().is_some() { Read::Erased } else { Read::None });
        }
    });
    let turn = StoredValue::new(0u32);
    Effect::new(move |_| {
        again.track();
        let Some(address) = address.get() else { return };
        if bytes.get() > UNASKED_BYTES && !asked.get() {
            read.set(Read::Large);
            return;
        }
        let mine = turn.try_update_value(|turn| {
            *turn += 1;
            *turn
        });
        requests.set(Requests::default());
        trouble.set(None);
        spawn_local(async move {
            let mut bytes = 0;
            let answer = api::pieces(&address, |piece| {
                if turn.try_get_value() != mine {
                    return false; // Nobody waits for it any more.
                }
                bytes += piece.len();
                // Shown when all is there: what is being read is in no order yet.
                requests.try_update_untracked(|r| r.add(piece));
                if read.try_get_untracked() != Some(Read::Some) {
                    read.try_set(Read::Some);
                }
                bytes < MOST_BYTES
            })
            .await;
            if turn.try_get_value() != mine {
                return;
            }
            match answer {
                Ok(()) => {
                    let cut = bytes >= MOST_BYTES;
                    requests.try_update(|r| if cut { r.cut() } else { r.end() });
                    read.try_set(if cut { Read::Cut } else { Read::All });
                }
                Err(error) => {
                    trouble.try_set(Some(error));
                }
            }
        });
    });

    let there = move || matches!(read.get(), Read::All | Read::Cut);
    let total = Memo::new(move |_| requests.with(Requests::len));
    let from = Memo::new(move |_| view.set.with(|set| set.requests).min(total.get().saturating_sub(WINDOW)));
    let figure = Memo::new(move |_| {
        if !there() {
            return Figure::default();
        }
        let colour = Page::expect().colours.of(Kind::Model, &view.job().text("model_code"));
        requests.with(|r| waterfall::figure(r, from.get(), colour))
    });
    let unit = move || {
        let shown = total.get().min(WINDOW);
        format!(
            "{} of {}, as sent · seconds since the first · strong until the first token, faint while generating",
            count(shown as i64),
            count(total.get() as i64)
        )
    };
    let words = move || match read.get() {
        Read::Waiting if ended.with(Option::is_none) => "The requests are shown once the job has ended.",
        Read::Waiting => "Looking for the request log.",
        Read::None => {
            "This job has no request log: its agent uploads one after the run, and an imported result has none."
        }
        Read::Erased => "The request log was erased. Its hash stays in the log of events.",
        Read::Large => "This request log is large: it is read when you ask for it.",
        Read::Some => "Reading the request log.",
        _ => "The request log is empty.",
    };
    // The last window is full: nobody is sent behind it.
    let go = move |to: usize| {
        let most = total.get_untracked().saturating_sub(WINDOW);
        view.change(|set| set.requests = to.min(most));
    };
    let show = move |index: u64| {
        if let Some(place) = requests.with_untracked(|r| r.around(index)) {
            go(place);
        }
    };
    // The line that proves a request, by the event that names its log.
    let pick = Callback::new(move |line: String| {
        let named = logs
            .rows
            .with_untracked(|rows| rows.iter().flatten().next().and_then(|log| log.whole("position")));
        if let Some(position) = named {
            let position = position.to_string();
            open_drawer(view.address, &[("drawer", "request"), ("position", &position), ("line", &line)]);
        }
    });
    view! {
        <section class="below" aria-labelledby="requests" data-testid="requests">
            <div class="section-head">
                <h2 id="requests">"Requests"</h2>
                <span class="meta">"from the load generator’s own log"</span>
                <Show when=move || there() && { total.get() > WINDOW }>
                    <div class="actions push">
                        <button type="button" class="figure-toggle" data-testid="requests-earlier" disabled=move || from.get() == 0 on:click=move |_| go(from.get_untracked().saturating_sub(WINDOW))>"Earlier"</button>
                        <input
                            type="range"
                            class="requests-place"
                            aria-label="First request shown"
                            data-testid="requests-place"
                            min="0"
                            max=move || total.get().saturating_sub(WINDOW).to_string()
                            prop:value=move || from.get().to_string()
                            on:change=move |event| go(event_target_value(&event).parse().unwrap_or(0))
                        />
                        <button type="button" class="figure-toggle" data-testid="requests-later" disabled={move || from.get() + WINDOW >= total.get()} on:click=move |_| go(from.get_untracked() + WINDOW)>"Later"</button>
                        <button type="button" class="figure-toggle" data-testid="requests-slowest" on:click=move |_| requests.with_untracked(Requests::slowest).into_iter().for_each(show)>"Slowest"</button>
                    </div>
                </Show>
            </div>
            {move || trouble.get().map(|t| trouble_view(&t, move || again.update(|n| *n += 1)))}
            {move || logs.trouble.get().map(|t| trouble_view(&t, move || logs.reload()))}
            <Show when=move || trouble.with(Option::is_none)>
                <Chart title="Waterfall" unit=Signal::derive(unit) figure zooming=Zooming::in_address(view.address, "zoom-requests") pick height="tall" words=Signal::derive(move || words().to_owned()) testid="chart-requests"/>
            </Show>
            {move || (read.get() == Read::Large).then(|| view! {
                <div class="actions">
                    <button type="button" class="button" data-testid="read-requests" on:click=move |_| asked.set(true)>
                        {format!("Read {}", if bytes.get() > MOST_BYTES as i64 { format!("the first {} of {}", size(MOST_BYTES as i64), size(bytes.get())) } else { size(bytes.get()) })}
                    </button>
                </div>
            })}
            {move || (read.get() == Read::Cut).then(|| view! { <p class="meta one-line" data-testid="requests-cut">{format!("The log has {}: these are the requests of its first {}.", size(bytes.get()), size(MOST_BYTES as i64))}</p> })}
            {move || address.get().map(|href| view! { <p class="meta one-line"><a class="link" href=href download="requests.jsonl" rel="external" data-testid="requests-file">{format!("The whole log, {}", size(bytes.get()))}</a></p> })}
            {move || requests.with(|r| (there() && r.unreadable > 0).then(|| view! { <p class="meta one-line">{format!("{} of the log could not be read.", counted(r.unreadable as i64, "line"))}</p> }))}
            <Show when=there>
                <Errors requests show=Callback::new(show)/>
            </Show>
        </section>
    }
    .into_any()
}

/// The errors by kind, each with the requests it happened to.
#[component]
fn Errors(requests: RwSignal<Requests>, show: Callback<u64>) -> impl IntoView {
    let kinds = Memo::new(move |_| requests.with(Requests::errors));
    let lines = move || {
        let total = requests.with(Requests::len).max(1) as f64;
        kinds
            .get()
            .into_iter()
            .map(|kind| {
                let named = kind.requests.iter().map(|index| {
                    let index = *index;
                    view! { <button type="button" class="figure-toggle" data-testid="error-request" on:click=move |_| show.run(index)>{format!("#{index}")}</button>" " }
                });
                let rest = kind.count.saturating_sub(kind.requests.len());
                view! {
                    <tr data-testid="error-kind" data-kind=kind.kind.clone()>
                        <th scope="row" title=kind.example.clone()>{kind.kind.replace('_', " ")}</th>
                        <td class="number">{count(kind.count as i64)}</td>
                        <td class="number">{significant(kind.count as f64 / total * 100.0)}</td>
                        <td>{named.collect_view()}{(rest > 0).then(|| view! { <span class="meta">{format!("and {} more", count(rest as i64))}</span> })}</td>
                    </tr>
                }
            })
            .collect_view()
    };
    view! {
        <Show
            when=move || kinds.with(|k| !k.is_empty())
            fallback=|| view! { <p class="meta one-line" data-testid="no-errors">"No request failed."</p> }
        >
            <table class="data-table keep-shape" data-testid="errors">
                <caption class="visually-hidden">"Errors by kind"</caption>
                <thead>
                    <tr>
                        <th scope="col">"Error"</th>
                        <th scope="col" class="number">"Count"</th>
                        <th scope="col" class="number">"Share "<span class="unit">"%"</span></th>
                        <th scope="col">"Requests"</th>
                    </tr>
                </thead>
                <tbody>{lines}</tbody>
            </table>
        </Show>
    }
    .into_any()
}
