//! All results in one long table: only the rows in sight are drawn, and read in chunks as they come in sight.

use std::rc::Rc;
use std::time::Duration;

use leptos::prelude::*;
use wasm_bindgen_futures::spawn_local;

use super::View;
use super::table::{Body, Heads, Lined};
use crate::browser::api;
use crate::browser::page::Page;
use crate::browser::static_rows::Wanted;
use crate::parts::row_html::Look;
use crate::row::Row;
use crate::state::report::Report;
use crate::state::window::{BEYOND, Chunks, Window};

/// The height of a row in the style sheet, pixels.
const ROW: f64 = 28.0;
/// The box is this high at most, pixels: without its style sheet it would be as high as all rows are.
const MOST_SEEN: f64 = 4_000.0;
/// How long what is in sight has the browser for itself.
const SEEN_FIRST: Duration = Duration::from_millis(60);
/// Rows read beyond what is drawn.
const AHEAD: usize = 100;
/// The window moves every so many rows.
const STEP: usize = 8;

/// What is read of the list, and what is seen of it.
#[derive(Clone, Copy)]
struct List {
    chunks: StoredValue<Chunks<Rc<Row>>, LocalStorage>,
    /// Another number whenever a chunk came.
    came: RwSignal<u64>,
    window: Memo<Window>,
    total: Memo<usize>,
    /// How many rows are drawn beyond what is in sight.
    beyond: RwSignal<usize>,
}

/// Reads the chunks in sight. The first comes with the page's own request, which also says how many rows there are.
/// Another list begins with `begin`, before its first row is drawn: until then the one before stays where it is.
fn read(view: View, list: List, begin: impl Fn() + 'static) {
    let settings = view.settings;
    let live = Page::expect().live;
    let request = move || settings.report.with_untracked(Report::page_request);
    let shown = StoredValue::new(String::new());
    Effect::new(move |_| {
        view.results.read.track();
        let Some(first) = view.results.rows.get_untracked() else { return };
        let now = request();
        // Another order or another filter is another list; the same request again is a change in it.
        let other = shown.with_value(|before| *before != now);
        if other {
            begin();
        }
        list.chunks.update_value(|chunks| {
            if other {
                chunks.clear()
            } else {
                chunks.doubt()
            }
            chunks.put(0, first.into_iter().map(Rc::new));
        });
        shown.set_value(now);
        list.came.update(|n| *n += 1);
    });
    Effect::new(move |_| {
        list.came.track();
        let window = list.window.get();
        // Further than is drawn, once what is in sight is there: what is scrolled to is then there in time.
        let further = if list.beyond.get() == 0 { 0 } else { AHEAD };
        let ahead = Window {
            first: window.first.saturating_sub(further),
            end: (window.end + further).min(list.total.get_untracked()).max(window.end),
        };
        let wanted = list.chunks.try_update_value(|chunks| chunks.ask(ahead)).unwrap_or_default();
        for number in wanted {
            let (path, of) = (settings.report.with_untracked(|r| r.chunk_request(number)), request());
            spawn_local(async move {
                let answer = api::rows(&path, live.at_least(), false).await;
                // Meanwhile it may have become another list, or nobody's.
                if shown.try_with_value(|shown| *shown != of).unwrap_or(true) {
                    return;
                }
                let came = list.chunks.try_update_value(|chunks| match answer {
                    Ok((rows, _)) => {
                        chunks.put(number, rows.into_iter().map(Rc::new));
                        true
                    }
                    Err(_) => {
                        chunks.lost(number);
                        false
                    }
                });
                if came == Some(true) {
                    list.came.try_update(|n| *n += 1);
                } else {
                    let again = move || {
                        list.came.try_update(|n| *n += 1);
                    };
                    set_timeout(again, Duration::from_secs(2));
                }
            });
        }
    });
}

/// The table and its foot.
#[component]
pub(super) fn LongTable(view: View) -> impl IntoView {
    let lined = Lined::of(view);
    let total = Memo::new(move |_| view.results.total.get().unwrap_or(0));
    let scrolled = RwSignal::new((0.0, 800.0));
    // Of another list what is in sight is drawn first, and what lies beyond once that is seen.
    let beyond = RwSignal::new(0);
    let window = Memo::new(move |_| {
        let (top, height) = scrolled.get();
        Window::seen(total.get(), ROW, top, height, beyond.get()).in_steps(STEP, total.get())
    });
    let list = List {
        chunks: StoredValue::new_local(Chunks::default()),
        came: RwSignal::new(0),
        window,
        total,
        beyond,
    };
    let scroller = NodeRef::<leptos::html::Div>::new();
    read(view, list, move || {
        beyond.set(0);
        if let Some(list) = scroller.get_untracked() {
            list.set_scroll_top(0);
        }
        scrolled.update(|(top, _)| *top = 0.0);
    });
    let look = move || {
        if let Some(list) = scroller.get_untracked() {
            let height = f64::from(list.client_height()).min(MOST_SEEN);
            scrolled.set((f64::from(list.scroll_top()), height));
        }
    };
    Effect::new(move |_| {
        if scroller.get().is_some() {
            look();
        }
    });
    Effect::new(move |_| {
        list.came.track();
        if beyond.get_untracked() == 0 {
            let draw_more = move || {
                if beyond.try_get_untracked() == Some(0) {
                    beyond.set(BEYOND);
                }
            };
            set_timeout(draw_more, SEEN_FIRST);
        }
    });
    let rows = move |show: &mut dyn FnMut(&[Wanted])| {
        list.came.track();
        let Window { first, end } = window.get();
        list.chunks.with_value(|chunks| {
            let wanted = |nth| Wanted { nth: Some(nth), row: chunks.get(nth).cloned() };
            show(&(first..end).map(wanted).collect::<Vec<_>>());
        });
    };
    // The empty room of the rows that are not drawn.
    let room = move |rows: Signal<usize>| {
        let height = move || format!("{:.0}", rows.get() as f64 * ROW);
        let wide = move || lined.look.with(Look::width).to_string();
        view! {
            <tbody aria-hidden="true"><tr class="room"><td colspan=wide><svg class="log-room" width="1" height=height></svg></td></tr></tbody>
        }
    };
    view! {
        <div class="table-own" node_ref=scroller on:scroll=move |_| look() data-testid="long-table">
            <table class="data-table dense long keep-shape" data-testid="results" aria-rowcount=move || (total.get() + 1).to_string()>
                <caption class="visually-hidden">"Results"</caption>
                <thead><Heads lined/></thead>
                {room(Signal::derive(move || window.get().first))}
                <Body lined rows/>
                {room(Signal::derive(move || total.get().saturating_sub(window.get().end)))}
            </table>
        </div>
        <super::table::Foot view seen=Signal::derive(move || {
            let (top, height) = scrolled.get();
            let first = (top / ROW) as usize;
            (first, (((top + height) / ROW) as usize).saturating_sub(1).clamp(first, total.get()))
        })/>
    }
    .into_any()
}
