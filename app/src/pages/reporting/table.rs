//! The table of results: sorted by a click, picked for comparison, every number with its proof.

use std::rc::Rc;

use leptos::prelude::*;

use super::{Settings, View};
use crate::browser::page::Page;
use crate::browser::route::use_location;
use crate::browser::static_rows::{self, Marks, StaticRows, Wanted};
use crate::browser::{api, table_rows};
use crate::format::count;
use crate::frame::drawer_href;
use crate::metrics::{Column, Kind, column};
use crate::parts::row_html::{Against, Look};
use crate::parts::{Copied, CopyMenu};
use crate::row::Row;
use crate::state::colours::Kind as Coloured;
use crate::state::copied::{self, Form};
use crate::state::report::PAGE_SIZE;
use crate::state::result_key::path_of;

/// The path of a result's job: `org/project/workload/run/scenario`.
pub(super) fn job_path(row: &Row) -> String {
    path_of(&row.text("job")).to_owned()
}

/// The columns shown.
fn columns(settings: Settings) -> Memo<Vec<&'static Column>> {
    Memo::new(move |_| settings.report.with(|r| r.columns.iter().filter_map(|k| column(k)).collect()))
}

/// The column that rows are compared by with the pinned one: the measured one they are sorted by, else the first shown.
fn compared_by(settings: Settings) -> Memo<Option<&'static Column>> {
    let columns = columns(settings);
    Memo::new(move |_| {
        settings.view.with(|v| v.pinned.is_some()).then_some(())?;
        let sorted = settings.report.with(|r| column(&r.sort)).filter(|c| c.kind == Kind::Metric);
        columns.with(|shown| {
            let first = || shown.iter().find(|c| c.kind == Kind::Metric).copied();
            sorted.filter(|c| shown.contains(c)).or_else(first)
        })
    })
}

/// What the lines of a table share.
#[derive(Clone, Copy)]
pub(super) struct Lined {
    view: View,
    /// The columns shown.
    columns: Memo<Vec<&'static Column>>,
    by: Memo<Option<&'static Column>>,
    /// What the rows are written by.
    pub(super) look: Memo<Look>,
}

impl Lined {
    pub(super) fn of(view: View) -> Self {
        let settings = view.settings;
        table_rows::listen(
            move |job| settings.look(|v| v.toggle(&job)),
            move |job| settings.look(|v| v.pin(&job)),
        );
        let (columns, by) = (columns(settings), compared_by(settings));
        let look = Memo::new(move |_| {
            let against = by.get().zip(settings.view.with(|v| v.pinned.clone())).map(|(by, path)| {
                let value = view.compared.rows.with(|rows| {
                    let pinned = rows.iter().flatten().find(|row| job_path(row) == path);
                    pinned.and_then(|row| row.number(by.key))
                });
                Against { by, path, value }
            });
            Look { columns: columns.get(), against }
        });
        Self { view, columns, by, look }
    }
}

/// The head: a click sorts.
#[component]
pub(super) fn Heads(lined: Lined) -> impl IntoView {
    let settings = lined.view.settings;
    let heads = move || {
        lined.columns.get().into_iter().map(|c| {
            let sort = move || {
                settings.report.with(|r| (r.sort == c.key).then_some(if r.descending { "descending" } else { "ascending" }))
            };
            view! {
                <th scope="col" class:number=c.is_number() class:words=!c.is_number() aria-sort=sort title=c.definition()>
                    <button type="button" class="sort" data-sort=c.key on:click=move |_| settings.update(|r| r.sort_by(c.key))>{c.head()}</button>
                    <span class="unit">{c.unit()}</span>
                </th>
                {move || (lined.by.get() == Some(c)).then(|| view! { <th scope="col" class="number">"vs pinned "<span class="unit">"%"</span></th> })}
            }
        })
        .collect_view()
    };
    view! {
        <tr>
            <th scope="col" class="pick-head"><span class="visually-hidden">"Compare"</span></th>
            {heads}
        </tr>
    }
    .into_any()
}

/// The table of a page of results, and its foot.
#[component]
pub(super) fn Table(view: View) -> impl IntoView {
    let lined = Lined::of(view);
    let rows = move |show: &mut dyn FnMut(&[Wanted])| {
        view.results.rows.with(|rows| {
            let wanted = |row: &Row| Wanted { nth: None, row: Some(Rc::new(row.clone())) };
            show(&rows.iter().flatten().map(wanted).collect::<Vec<_>>());
        });
    };
    view! {
        <div class="table-scroll table-own">
            <table class="data-table dense" data-testid="results">
                <caption class="visually-hidden">"Results"</caption>
                <thead><Heads lined/></thead>
                <Body lined rows/>
            </table>
        </div>
        <Foot view/>
    }
    .into_any()
}

/// The rows. They are static; what is clicked in them is heard here.
#[component]
pub(super) fn Body(
    lined: Lined,
    /// Hands over the rows to be shown, and is called again whenever they are others.
    rows: impl Fn(&mut dyn FnMut(&[Wanted])) + 'static,
) -> impl IntoView {
    let settings = lined.view.settings;
    let colours = Page::expect().colours;
    let location = use_location();
    // The address without what belongs to the drawer.
    let here = move || {
        let search = location.search.get_untracked();
        drawer_href(&location.pathname.get_untracked(), &search, &[])
    };
    let shown = StaticRows::new();
    Effect::new(move |_| {
        let look = lined.look.get();
        let swatch = |row: &Row| colours.of(Coloured::Model, &row.text("model_code")).class();
        rows(&mut |wanted| shown.show(&look, wanted, &here(), swatch));
        let explained = settings.address.query.with(|query| {
            let of = |key: &str| query.get(key).map(str::to_owned);
            (of("drawer").as_deref() == Some("proof")).then(|| of("job").zip(of("metric"))).flatten()
        });
        settings.view.with(|view| {
            shown.mark(|path| Marks {
                picked: view.picked.iter().any(|picked| picked == path),
                pinned: view.pinned.as_deref() == Some(path),
                explained: explained
                    .as_ref()
                    .filter(|(job, _)| job == path)
                    .map(|(_, metric)| metric.clone()),
            });
        });
    });
    // With the shift key everything from the last pick to here.
    let click = move |event: web_sys::MouseEvent| {
        static_rows::freshen(&event, here);
        let Some(path) = static_rows::picked(&event) else { return };
        settings.look(|v| v.pick(&path, event.shift_key().then(|| shown.paths()).as_deref()));
    };
    view! {
        <tbody
            node_ref=shown.body
            on:click=click
            on:pointerover=move |event| static_rows::freshen(&event, here)
            on:focusin=move |event| static_rows::freshen(&event, here)
        ></tbody>
    }
    .into_any()
}

/// Copies the table as it is shown: this page of it, or all of the long one.
#[component]
pub(super) fn CopyTable(view: View) -> impl IntoView {
    let settings = view.settings;
    let columns = columns(settings);
    let text = move |form: Form| -> Copied {
        let long = settings.report.with_untracked(|r| r.long.then(|| r.rows_request()));
        let shown = view.results.rows.get_untracked().unwrap_or_default();
        let columns = columns.get_untracked();
        Box::pin(async move {
            let rows = match long {
                Some(request) => api::rows(&request, 0, false).await?.0,
                None => shown,
            };
            Ok(copied::table(&rows, &columns, form))
        })
    };
    view! { <CopyMenu text=Callback::new(text)/> }
}

/// How much of the table is seen, and the way on.
#[component]
pub(super) fn Foot(
    view: View,
    /// The first and the last row in sight of a long table, from 0.
    #[prop(optional)]
    seen: Option<Signal<(usize, usize)>>,
) -> impl IntoView {
    let (settings, results) = (view.settings, view.results);
    let pages = move || results.total.get().map_or(1, |t| t.div_ceil(PAGE_SIZE).max(1));
    let words = move || {
        let (page, total) = (settings.report.with(|r| r.page), results.total.get().unwrap_or(0));
        let shown = results.rows.with(|r| r.as_ref().map_or(0, Vec::len));
        let (first, end) = match seen {
            Some(seen) => seen.with(|(first, last)| (*first, (last + 1).min(total))),
            None => ((page - 1) * PAGE_SIZE, (page - 1) * PAGE_SIZE + shown),
        };
        if shown == 0 {
            String::new()
        } else {
            format!("{}–{} of {}", count(first as i64 + 1), count(end as i64), count(total.max(end) as i64))
        }
    };
    let long = seen.is_some();
    let go = move |step: isize| settings.update(|r| r.page = r.page.saturating_add_signed(step).max(1));
    view! {
        <p class="table-foot">
            <span data-testid="row-range">{words}</span>
            <Show when=move || { !long && pages() > 1 }>
                <button type="button" class="figure-toggle" disabled=move || settings.report.with(|r| r.page == 1) on:click=move |_| go(-1)>"Previous"</button>
                <button type="button" class="figure-toggle" disabled=move || settings.report.with(|r| r.page >= pages()) on:click=move |_| go(1)>"Next"</button>
            </Show>
            <Show when=move || { pages() > 1 }>
                <button type="button" class="figure-toggle at-a-desk" data-testid="long" on:click=move |_| settings.update(|r| { r.long = !r.long; r.page = 1; })>{if long { "In pages" } else { "All rows" }}</button>
            </Show>
            <span class="push at-a-desk"><kbd>"j"</kbd>" "<kbd>"k"</kbd>" row "<kbd>"x"</kbd>" compare "<kbd>"b"</kbd>" pin"</span>
        </p>
    }
    .into_any()
}
