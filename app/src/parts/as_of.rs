//! The past: what a page shows as it stood at a position of the log.

use leptos::prelude::*;

use crate::browser::address::Address;
use crate::browser::now_ms;
use crate::browser::page::Page;
use crate::browser::remote::use_rows;
use crate::format::{count, moment};
use crate::state::query::as_of;

/// The position of the log that a page shows, and how it is changed; nothing for now.
#[derive(Clone, Copy)]
pub struct AsOf {
    /// The position.
    pub position: Signal<Option<i64>>,
    /// Shows another one.
    pub set: Callback<Option<i64>>,
}

impl AsOf {
    /// Kept in the address as `as-of`.
    pub fn in_address(address: Address) -> Self {
        Self {
            position: Signal::derive(move || address.query.with(as_of)),
            set: Callback::new(move |to: Option<i64>| {
                address.change(|query| {
                    query.set("as-of", to.map(|p| p.to_string()).as_deref());
                });
            }),
        }
    }

    /// Whether the past is shown: nothing new comes then.
    pub fn is_past(self) -> bool {
        self.position.get().is_some()
    }

    /// What it adds to the request of a view that remembers: `&as_of=400`.
    pub fn condition(self) -> String {
        self.position.get().map(|position| format!("&as_of={position}")).unwrap_or_default()
    }
}

/// Opens the past at the head of the log, and closes it.
#[component]
pub fn AsOfButton(
    /// What is shown.
    as_of: AsOf,
) -> impl IntoView {
    let live = Page::expect().live;
    view! {
        <button
            type="button"
            class="button"
            data-testid="as-of"
            aria-pressed=move || as_of.position.get().is_some().to_string()
            on:click=move |_| {
                let head = live.head.get_untracked().max(1);
                as_of.set.run(as_of.position.get_untracked().is_none().then_some(head));
            }
        >
            "As of…"
        </button>
    }
}

/// The slider over the log, and what stood at its place.
#[component]
pub fn AsOfSlider(
    /// What is shown.
    as_of: AsOf,
) -> impl IntoView {
    let live = Page::expect().live;
    let position = as_of.position;
    // Under the finger, before it is let go.
    let dragged = RwSignal::new(None::<i64>);
    let shown = Memo::new(move |_| dragged.get().or(position.get()));
    let event = use_rows(move || {
        position.get().map(|p| format!("/api/v_events?position=lte.{p}&order=position.desc&limit=1&select=position,type,stream,recorded_at"))
    });
    let most = Memo::new(move |_| live.head.get().max(position.get().unwrap_or(1)));
    let words = move || {
        let at = event.first().filter(|_| dragged.get().is_none());
        at.map(|e| {
            let when = e.millis("recorded_at").map(|at| moment(at, now_ms())).unwrap_or_default();
            format!("{when} UTC, after {} of {}", e.text("type"), e.text("stream"))
        })
    };
    let read = |event: &leptos::ev::Event| event_target_value(event).parse::<i64>().ok();
    let go = move |to: i64| as_of.set.run(Some(to.clamp(1, most.get_untracked())));
    view! {
        <Show when=move || position.get().is_some()>
            <div class="as-of-row" data-testid="as-of-row">
                <label for="as-of-slider">"As of position "<b data-testid="as-of-position">{move || shown.get().map(count)}</b></label>
                <button type="button" class="figure-toggle" aria-label="One event back" on:click=move |_| go(position.get_untracked().unwrap_or(1) - 1)>"◂"</button>
                <input
                    id="as-of-slider"
                    class="as-of"
                    type="range"
                    min="1"
                    max=move || most.get().to_string()
                    prop:value=move || shown.get().unwrap_or(1).to_string()
                    on:input=move |e| dragged.set(read(&e))
                    on:change=move |e| {
                        dragged.set(None);
                        if let Some(to) = read(&e) {
                            go(to);
                        }
                    }
                />
                <button type="button" class="figure-toggle" aria-label="One event on" on:click=move |_| go(position.get_untracked().unwrap_or(1) + 1)>"▸"</button>
                <span class="meta clip-line">{words}</span>
                <button type="button" class="button button-quiet" on:click=move |_| as_of.set.run(None)>"Back to now"</button>
            </div>
        </Show>
    }
    .into_any()
}
