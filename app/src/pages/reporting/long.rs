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
/// The window moves every so many rows.
const STEP: usize = 8;

/// What is read of the list, and what is seen of it.
#[derive(Clone, Copy)]
struct List {
    chunks: StoredValue<Chunks<Rc<Row>>, LocalStorage>,
    /// Another number whenever a chunk came.
    came: RwSignal<u64>,
    window: Memo<Window>,
}

/// Reads the chunks in sight. The first comes with the page's own request, which also says how many rows there are.
fn read(view: View, list: List) {
    let settings = view.settings;
    let live = Page::expect().live;
    let request = move || settings.report.with_untracked(Report::page_request);
    let shown = StoredValue::new(String::new());
    Effect::new(move |_| {
        view.results.read.track();
        let Some(first) = view.results.rows.get_untracked() else { return };
        let now = request();
        list.chunks.update_value(|chunks| {
            // Another order or another filter is another list; the same request again is a change in it.
            if shown.with_value(|before| *before == now) {
                chunks.doubt()
            } else {
                chunks.clear()
            }
            chunks.put(0, first.into_iter().map(Rc::new));
        });
        shown.set_value(now);
        list.came.update(|n| *n += 1);
    });
    Effect::new(move |_| {
        list.came.track();
        let window = list.window.get();
        let wanted = list.chunks.try_update_value(|chunks| chunks.ask(window)).unwrap_or_default();
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
    let settings = view.settings;
    let lined = Lined::of(view);
    let total = Memo::new(move |_| view.results.total.get().unwrap_or(0));
    let scrolled = RwSignal::new((0.0, 800.0));
    // Of another list what is in sight is drawn first, and what lies beyond once that is seen.
    let beyond = RwSignal::new(0);
    let window = Memo::new(move |_| {
        let (top, height) = scrolled.get();
        Window::seen(total.get(), ROW, top, height, beyond.get()).in_steps(STEP, total.get())
    });
    let list = List { chunks: StoredValue::new_local(Chunks::default()), came: RwSignal::new(0), window };
    read(view, list);
    let scroller = NodeRef::<leptos::html::Div>::new();
    let look = move || {
        if let Some(list) = scroller.get_untracked() {
            let height = f64::from(list.client_height()).min(MOST_SEEN);
            scrolled.set((f64::from(list.scroll_top()), height));
        }
    };
    // Another list starts at its top.
    let request = Memo::new(move |_| settings.report.with(Report::page_request));
    Effect::new(move |before: Option<()>| {
        // Read, not only tracked: a memo that nobody reads hears of nothing.
        request.with(|_| ());
        if before.is_none() {
            return look();
        }
        // Once it is asked for: where the box stands costs a layout.
        let begin = move || {
            if let Some(list) = scroller.try_get_untracked().flatten() {
                beyond.set(0);
                list.set_scroll_top(0);
                look();
            }
        };
        set_timeout(begin, Duration::ZERO);
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
