//! A job's three log streams, with search and follow. Only the lines in sight are drawn.

use std::time::Duration;

use leptos::prelude::*;

use super::View;
use crate::format::{clock, count, counted};
use crate::state::job_feed::{Hits, LogLine, around, level};
use crate::state::job_view::SOURCES;
use crate::state::window::{BEYOND, Window};

/// The height of a line in the style sheet, pixels.
const ROW: f64 = 18.0;
/// The typing rests after this long.
const TYPING: Duration = Duration::from_millis(300);

/// Where the box of lines is scrolled to, and how high it is.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Scrolled {
    top: f64,
    height: f64,
}

/// The log streams of a job.
#[component]
pub(super) fn Logs(view: View) -> impl IntoView {
    let feed = view.feed;
    let source = Memo::new(move |_| view.set.with(|set| set.log.clone()));
    // What is typed is found at once; the address follows when the typing rests, and leads where one goes back.
    let search = RwSignal::new(view.set.with_untracked(|set| set.search.clone()));
    let addressed = Memo::new(move |_| view.set.with(|set| set.search.clone()));
    Effect::new(move |before: Option<()>| {
        let text = addressed.get();
        if before.is_some() && search.with_untracked(|typed| *typed != text) {
            search.set(text);
        }
    });
    let keep = debounce(TYPING, move |text: String| view.change(|set| set.search = text));
    let keep = StoredValue::new_local(keep);
    let follow = RwSignal::new(true);
    let scrolled = RwSignal::new(Scrolled { top: 0.0, height: 320.0 });
    let list = NodeRef::<leptos::html::Div>::new();

    // The lines that hold what is looked for: found anew for another text, else only among what was added.
    let hits = StoredValue::new(Hits::default());
    let shown = Memo::new(move |_| {
        feed.with(|feed| {
            let lines = source.with(|s| feed.logs.get(s).map(Vec::as_slice)).unwrap_or_default();
            search.with(|find| {
                hits.try_update_value(|hits| {
                    hits.follow(lines, find);
                    hits.shown()
                })
                .unwrap_or(0)
            })
        })
    });
    let total = Memo::new(move |_| feed.with(|f| source.with(|s| f.logs.get(s).map_or(0, Vec::len))));
    let window = Memo::new(move |_| {
        let Scrolled { top, height } = scrolled.get();
        Window::seen(shown.get(), ROW, top, height, BEYOND)
    });
    let drawn = move || {
        let Window { first, end } = window.get();
        shown.track();
        feed.with(|feed| {
            let source = source.get();
            let Some(lines) = feed.logs.get(&source) else { return Vec::new() };
            let line = |nth: usize| {
                hits.try_with_value(|hits| hits.place(nth)).flatten().and_then(|at| lines.get(at))
            };
            // Every stream of every attempt numbers its lines from 1.
            let named = |line: &LogLine| ((feed.attempt, source.clone(), line.number), line.clone());
            (first..end).filter_map(line).map(named).collect::<Vec<_>>()
        })
    };
    let room = move |rows: usize| format!("{:.0}", rows as f64 * ROW);

    Effect::new(move |_| {
        shown.track();
        source.track();
        if follow.get()
            && let Some(list) = list.get()
        {
            request_animation_frame(move || list.set_scroll_top(list.scroll_height()));
        }
    });
    let on_scroll = move |_| {
        let Some(list) = list.get_untracked() else { return };
        let (top, height) = (f64::from(list.scroll_top()), f64::from(list.client_height()));
        scrolled.set(Scrolled { top, height });
        // At the end one follows; whoever scrolls up stays where he is.
        let at_end = top + height >= f64::from(list.scroll_height()) - ROW;
        if follow.get_untracked() != at_end {
            follow.set(at_end);
        }
    };
    let tabs = SOURCES.map(|(code, word)| {
        let lines = Memo::new(move |_| feed.with(|f| f.logs.get(code).map_or(0, Vec::len)));
        view! {
            <label data-testid=format!("log-{code}")>
                <input
                    type="radio"
                    name="log-source"
                    prop:checked=move || source.with(|s| s == code)
                    on:change=move |_| view.change(|set| set.log = code.to_owned())
                />
                {word}
                <span class="quiet">{move || format!(" {}", count(lines.get() as i64))}</span>
            </label>
        }
    });
    let found = move || {
        let (shown, total) = (shown.get() as i64, total.get() as i64);
        if search.with(String::is_empty) {
            counted(total, "line")
        } else {
            format!("{} of {}", count(shown), counted(total, "line"))
        }
    };
    view! {
        <div class="log-box" data-testid="logs">
            <div class="actions">
                <span class="segmented" role="radiogroup" aria-label="Stream">{tabs.collect_view()}</span>
                <input
                    class="control control-find"
                    type="search"
                    placeholder="Search"
                    aria-label="Search log"
                    data-testid="log-search"
                    prop:value=move || search.get()
                    on:input=move |event| {
                        let text = event_target_value(&event);
                        search.set(text.clone());
                        keep.update_value(|keep| keep(text));
                    }
                />
                <button
                    type="button"
                    class="button"
                    data-testid="log-follow"
                    aria-pressed=move || follow.get().to_string()
                    on:click=move |_| follow.update(|f| *f = !*f)
                >
                    "Follow"
                </button>
                <span class="meta" data-testid="log-count" aria-live="polite">{found}</span>
            </div>
            <Show when=move || shown.get() == 0>
                <p class="meta one-line">{move || if total.get() == 0 { "No line yet." } else { "No line holds that text." }}</p>
            </Show>
            <div class="log" node_ref=list tabindex="0" role="region" aria-label="Log lines" on:scroll=on_scroll hidden=move || shown.get() == 0>
                <svg class="log-room" aria-hidden="true" width="1" height=move || room(window.get().first)></svg>
                <ol>
                    <For each=drawn key=|(name, _)| name.clone() let:named>
                        <Line line=named.1 search/>
                    </For>
                </ol>
                <svg class="log-room" aria-hidden="true" width="1" height=move || room(shown.get().saturating_sub(window.get().end))></svg>
            </div>
        </div>
    }
    .into_any()
}

#[component]
fn Line(line: LogLine, search: RwSignal<String>) -> impl IntoView {
    let LogLine { number, at, text } = line;
    let rank = level(&text);
    let parts = move || match search.with(|find| around(&text, find)) {
        Some((before, hit, after)) => view! { {before}<mark>{hit}</mark>{after} }.into_any(),
        None => text.clone().into_any(),
    };
    view! {
        <li data-level=rank data-line=number.to_string()>
            <time title=format!("line {number}")>{at.map_or_else(|| number.to_string(), clock)}</time>
            <span>{parts}</span>
        </li>
    }
    .into_any()
}
