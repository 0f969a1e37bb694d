//! The table of results: sorted by a click, picked for comparison, every number with its proof.

use leptos::prelude::*;

use super::{Settings, View};
use crate::browser::{api, table_rows};
use crate::format::{count, signed_percent};
use crate::metrics::{Column, Kind, column};
use crate::parts::{Copied, CopyMenu, tables};
use crate::row::Row;
use crate::state::compare::is_better;
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
    pub(super) columns: Memo<Vec<&'static Column>>,
    by: Memo<Option<&'static Column>>,
    pinned: Memo<Option<Row>>,
}

impl Lined {
    pub(super) fn of(view: View) -> Self {
        let settings = view.settings;
        table_rows::listen(
            move |job| settings.look(|v| v.toggle(&job)),
            move |job| settings.look(|v| v.pin(&job)),
        );
        let pinned = Memo::new(move |_| {
            let path = settings.view.with(|v| v.pinned.clone())?;
            view.compared.all().into_iter().find(|row| job_path(row) == path)
        });
        Self { view, columns: columns(settings), by: compared_by(settings), pinned }
    }
}

impl Lined {
    /// How many columns there are, the boxes to pick by and the difference to the pinned one among them.
    pub(super) fn width(self) -> usize {
        self.columns.with(Vec::len) + 1 + usize::from(self.by.get().is_some())
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
    let jobs = Memo::new(move |_| view.results.all().iter().map(|r| r.text("job")).collect::<Vec<_>>());
    let row_of = move |job: &str| {
        let job = job.to_owned();
        Memo::new(move |_| {
            view.results
                .rows
                .with(|r| r.iter().flatten().find(|r| r.text("job") == job).cloned().unwrap_or_default())
        })
    };
    view! {
        <div class="table-scroll table-own">
            <table class="data-table dense" data-testid="results">
                <caption class="visually-hidden">"Results"</caption>
                <thead><Heads lined/></thead>
                <tbody>
                    <For each=move || jobs.get() key=Clone::clone let:job>
                        <Line lined row=row_of(&job) job jobs/>
                    </For>
                </tbody>
            </table>
        </div>
        <Foot view/>
    }
    .into_any()
}

/// A result.
#[component]
pub(super) fn Line(
    lined: Lined,
    job: String,
    #[prop(into)] row: Signal<Row>,
    /// The jobs of the table, in order.
    #[prop(into)]
    jobs: Signal<Vec<String>>,
    /// Its place in a table of which not all rows are drawn, from 0.
    #[prop(default = None)]
    nth: Option<usize>,
) -> impl IntoView {
    let Lined { view, columns, by, pinned } = lined;
    let settings = view.settings;
    let path = StoredValue::new(job_path(&row.get_untracked()));
    let picked = Memo::new(move |_| settings.view.with(|v| path.with_value(|p| v.picked.contains(p))));
    let is_pinned =
        Memo::new(move |_| settings.view.with(|v| path.with_value(|p| v.pinned.as_ref() == Some(p))));
    let against = move |c: &'static Column| {
        let row = row.get();
        if is_pinned.get() {
            return view! { <td class="number pin">"pinned"</td> }.into_any();
        }
        let delta = pinned
            .with(|p| Some(row.number(c.key)? / p.as_ref()?.number(c.key).filter(|v| *v != 0.0)? - 1.0));
        let title = delta
            .and_then(|d| is_better(c.key, d))
            .map(|better| if better { "better than the pinned one" } else { "worse than the pinned one" });
        view! { <td class="number" title=title>{delta.map(signed_percent)}</td> }.into_any()
    };
    let cells = move || {
        let (row, columns, by) = (row.get(), columns.get(), by.get());
        // On a phone two measured columns stay.
        let on_card: Vec<&str> = columns
            .iter()
            .filter(|c| c.kind == Kind::Metric && c.key != "output_tokens_per_second_per_gpu")
            .take(2)
            .map(|c| c.key)
            .collect();
        columns
            .into_iter()
            .map(|c| {
                view! {
                    {tables::cell(&row, c, on_card.contains(&c.key))}
                    {(by == Some(c)).then(|| against(c))}
                }
            })
            .collect_view()
    };
    // With the shift key everything from the last pick to here.
    let pick = move |event: web_sys::MouseEvent| {
        let here = path.get_value();
        let all: Vec<String> = jobs.with_untracked(|j| j.iter().map(|job| path_of(job).to_owned()).collect());
        settings.look(|v| {
            let last = v.picked.last().and_then(|p| all.iter().position(|j| j == p));
            match (event.shift_key(), last, all.iter().position(|j| *j == here)) {
                (true, Some(from), Some(to)) => {
                    for job in &all[from.min(to)..=from.max(to)] {
                        if !v.picked.contains(job) {
                            v.toggle(job);
                        }
                    }
                }
                _ => v.toggle(&here),
            }
        });
    };
    let label = move || {
        row.with(|r| {
            format!(
                "Compare {} of {} run {}",
                r.text("scenario_code"),
                r.text("workload_code"),
                r.text("run_number")
            )
        })
    };
    view! {
        <tr
            data-testid="result"
            data-job=job
            data-path=path.get_value()
            data-href=row.get_untracked().job_path()
            aria-rowindex=nth.map(|nth| (nth + 2).to_string())
            tabindex="-1"
            aria-selected=move || (picked.get() || is_pinned.get()).to_string()
        >
            <td><input type="checkbox" data-testid="pick" aria-label=label prop:checked=move || picked.get() on:click=pick/></td>
            {cells}
        </tr>
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
            <span class="push">
                "every number opens its proof · underlined percentiles rest on few requests"
                <span class="at-a-desk">" · "<kbd>"j"</kbd>" "<kbd>"k"</kbd>" row "<kbd>"x"</kbd>" compare "<kbd>"b"</kbd>" pin"</span>
            </span>
        </p>
    }
    .into_any()
}
