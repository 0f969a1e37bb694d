//! Reporting: every result one may see, filtered, sorted, compared and provable. All of its settings are in the URL.

mod charts;
mod compare;
mod filters;
mod log_diff;
mod long;
mod table;

use events::first_page;
use leptos::prelude::*;

use crate::browser::address::Address;
use crate::browser::page::Page;
use crate::browser::remote::{Rows, use_rows, use_rows_counted};
use crate::browser::{in_turns, is_small};
use crate::metrics::RESULT_COLUMNS;
use crate::parts::states::{Empty, once_there};
use crate::parts::{AsOf, AsOfButton, AsOfSlider, ColumnChooser, ExportMenu, PageHead, SavedViews};
use crate::state::filters::any_of;
use crate::state::report::Report;
use crate::state::report_view::ReportView;
use crate::state::result_key::stream_of;

/// The settings, read from the URL, and the ways to change them.
#[derive(Clone, Copy)]
struct Settings {
    address: Address,
    /// What the table is set to.
    report: Memo<Report>,
    /// What the charts and the comparison are set to.
    view: Memo<ReportView>,
}

impl Settings {
    fn from_url() -> Self {
        let address = Address::here();
        // Where rows are cards, they come in pages: a card is of any height.
        let small = is_small();
        let read = move |query: &_| {
            let mut report = Report::read(query);
            report.long &= !small;
            report
        };
        Self {
            address,
            report: Memo::new(move |_| address.query.with(read)),
            view: Memo::new(move |_| address.query.with(ReportView::read)),
        }
    }

    fn update(self, change: impl FnOnce(&mut Report)) {
        self.address.change(|query| {
            let mut report = Report::read(query);
            change(&mut report);
            report.write(query);
        });
    }

    /// Changes the lower half in place: picks and zooms are many.
    fn look(self, change: impl FnOnce(&mut ReportView)) {
        self.address.replace(|query| {
            let mut view = ReportView::read(query);
            change(&mut view);
            view.write(query);
        });
    }

    /// Whether the past is shown: nothing new comes then.
    fn is_past(self) -> bool {
        self.report.with(|r| r.as_of.is_some())
    }
}

/// What the parts of the page share.
#[derive(Clone, Copy)]
struct View {
    settings: Settings,
    /// The page of the table.
    results: Rows,
    /// How many there are without filters.
    everything: Rows,
    /// The results compared, whatever page they are on.
    compared: Rows,
    /// New results that wait behind the pill.
    fresh: RwSignal<usize>,
    /// Another number whenever the table was read again because results changed, not because its settings did.
    changed: RwSignal<u32>,
}

/// The page.
#[component]
pub fn Reporting() -> impl IntoView {
    let settings = Settings::from_url();
    let request = Memo::new(move |_| settings.report.with(Report::page_request));
    let total = Memo::new(move |_| settings.report.with(Report::total_request));
    let compared = Memo::new(move |_| {
        let jobs: Vec<String> =
            settings.view.with(|v| v.compared()).iter().map(|path| stream_of(path)).collect();
        let as_of = settings.report.with(|r| r.as_of).map(|p| format!("&as_of={p}")).unwrap_or_default();
        (!jobs.is_empty()).then(|| format!("/api/v_benchmark_results?{}{as_of}", any_of("job", &jobs)))
    });
    let view = View {
        settings,
        results: use_rows_counted(move || Some(request.get())),
        everything: use_rows_counted(move || Some(total.get())),
        compared: use_rows(move || compared.get()),
        fresh: RwSignal::new(0),
        changed: RwSignal::new(0),
    };
    keep_live(view);
    let as_of = AsOf {
        position: Signal::derive(move || settings.report.with(|r| r.as_of)),
        set: Callback::new(move |to| {
            settings.update(|r| {
                r.as_of = to;
                r.page = 1;
            });
        }),
    };
    let shown =
        Callback::new(move |key: &'static str| settings.report.with(|r| r.columns.iter().any(|k| k == key)));
    let all: Vec<_> = RESULT_COLUMNS.iter().collect();
    let toggle = Callback::new(move |key: &'static str| settings.update(|r| r.toggle_column(key)));
    let turn = in_turns(1);
    let export = Callback::new(move |()| settings.report.with_untracked(Report::export_request));
    view! {
        <PageHead title=first_page::REPORTING.title meta=|| first_page::REPORTING.words.into_any()>
            <SavedViews path="/reporting"/>
            <AsOfButton as_of/>
            <ColumnChooser all shown toggle/>
            <table::CopyTable view/>
            <ExportMenu request=export name="benchtrail-results"/>
        </PageHead>
        <filters::Filters settings results=view.results everything=view.everything/>
        <AsOfSlider as_of/>
        <Pill view/>
        {once_there(view.results, 10, move || nothing(settings), move || results(view))}
        // Below the table, and so after it: nothing jumps when its rows come.
        <Show when=move || { turn.get() > 0 && view.results.rows.with(Option::is_some) }>
            <div class="grid report-lower">
                <charts::Charts view/>
                <compare::Compare view/>
            </div>
        </Show>
    }
    .into_any()
}

/// Pages of results, or all of them in one table.
fn results(view: View) -> AnyView {
    let long = Memo::new(move |_| view.settings.report.with(|r| r.long));
    (move || {
        if long.get() {
            view! { <long::LongTable view/> }.into_any()
        } else {
            view! { <table::Table view/> }.into_any()
        }
    })
    .into_any()
}

/// New rows wait behind a pill: what the reader looks at does not move.
fn keep_live(view: View) {
    let page = Page::expect();
    let org = page.org_now();
    if org.is_empty() {
        return;
    }
    page.live.listen(vec![format!("{org}:job")], move |events| {
        if untrack(|| view.settings.is_past()) {
            return;
        }
        let new = events.iter().filter(|e| e.event_type.starts_with("tool_output.")).count();
        let changed = || {
            events.iter().any(|e| {
                matches!(e.event_type.as_str(), "job.completed" | "quality.flagged" | "quality.cleared")
            })
        };
        // The page, and the box that a table scrolls in.
        let box_top =
            document().query_selector(".table-own").ok().flatten().map_or(0, |table| table.scroll_top());
        let at_top = box_top < 40
            && window().scroll_y().unwrap_or(0.0) < 40.0
            && view.settings.report.with_untracked(|r| r.page == 1);
        if new > 0 {
            view.everything.reload_soon();
        }
        if at_top && (new > 0 || changed()) {
            view.results.reload_soon();
            view.changed.update(|n| *n += 1);
        } else if new > 0 {
            view.fresh.update(|n| *n += new);
        }
        if changed() {
            view.compared.reload_soon();
        }
    });
}

#[component]
fn Pill(view: View) -> impl IntoView {
    view! {
        <Show when=move || { view.fresh.get() > 0 }>
            <p class="new-rows">
                <button
                    type="button"
                    class="button button-quiet"
                    data-testid="new-results"
                    on:click=move |_| {
                        view.fresh.set(0);
                        view.results.reload();
                        view.changed.update(|n| *n += 1);
                        window().scroll_to_with_x_and_y(0.0, 0.0);
                    }
                >
                    {move || format!("{} new", view.fresh.get())}
                </button>
            </p>
        </Show>
    }
}

fn nothing(settings: Settings) -> AnyView {
    let filtered = move || settings.report.with(Report::narrows);
    (move || match (settings.is_past(), filtered()) {
        (_, true) => view! {
            <Empty words="No result fits these filters.">
                <button type="button" class="button" on:click=move |_| settings.update(Report::widen)>"Clear filters"</button>
            </Empty>
        }
        .into_any(),
        (true, false) => view! {
            <Empty words="There was no result yet at this position of the log.">
                <button type="button" class="button" on:click=move |_| settings.update(|r| r.as_of = None)>"Back to now"</button>
            </Empty>
        }
        .into_any(),
        (false, false) => view! {
            <Empty words="No result yet. A run's jobs appear here the moment their numbers are in the log.">
                <a class="button button-primary" href="/projects/new">"New project"</a>
            </Empty>
        }
        .into_any(),
    })
    .into_any()
}
