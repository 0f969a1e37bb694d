//! Reporting: every result one may see, filtered, sorted, compared and provable. All of its settings are in the URL.

mod as_of;
mod charts;
mod compare;
mod filters;
mod log_diff;
mod table;

use leptos::prelude::*;

use crate::browser::address::Address;
use crate::browser::page::Page;
use crate::browser::remote::{Rows, use_rows, use_rows_counted};
use crate::parts::states::{Empty, once_there};
use crate::parts::{PageHead, SavedViews};
use crate::state::report::{Report, any_of};
use crate::state::report_view::ReportView;

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
        Self {
            address,
            report: Memo::new(move |_| address.query.with(Report::read)),
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
}

/// The page.
#[component]
pub fn Reporting() -> impl IntoView {
    let settings = Settings::from_url();
    let request = Memo::new(move |_| settings.report.with(Report::page_request));
    let total = Memo::new(move |_| settings.report.with(Report::total_request));
    let compared = Memo::new(move |_| {
        let jobs: Vec<String> =
            settings.view.with(|v| v.compared()).iter().map(|path| format!("job/{path}")).collect();
        let as_of = settings.report.with(|r| r.as_of).map(|p| format!("&as_of={p}")).unwrap_or_default();
        (!jobs.is_empty()).then(|| format!("/api/v_benchmark_results?{}{as_of}", any_of("job", &jobs)))
    });
    let view = View {
        settings,
        results: use_rows_counted(move || Some(request.get())),
        everything: use_rows_counted(move || Some(total.get())),
        compared: use_rows(move || compared.get()),
        fresh: RwSignal::new(0),
    };
    keep_live(view);
    view! {
        <PageHead title="Reporting" meta=|| "every result you may see, filtered, compared and provable".into_any()>
            <SavedViews path="/reporting"/>
            <as_of::Button settings/>
            <filters::ColumnChooser settings/>
            <table::CopyTable view/>
            <filters::Export settings/>
        </PageHead>
        <filters::Filters settings results=view.results everything=view.everything/>
        <as_of::Slider settings/>
        <Pill view/>
        {once_there(view.results, 10, move || nothing(settings), move || view! { <table::Table view/> }.into_any())}
        <div class="grid report-lower">
            <charts::Charts view/>
            <compare::Compare view/>
        </div>
    }
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
        let at_top =
            window().scroll_y().unwrap_or(0.0) < 40.0 && view.settings.report.with_untracked(|r| r.page == 1);
        if new > 0 {
            view.everything.reload_soon();
        }
        if at_top && (new > 0 || changed()) {
            view.results.reload_soon();
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
