//! Leaderboard: the best scenario of each workload and server, as the control plane ranks it. Category, filters and page
//! are in the URL.

mod entry;
mod questions;
mod record;

use events::first_page;
use leptos::prelude::*;

use crate::browser::address::Address;
use crate::browser::page::Page;
use crate::browser::remote::{Rows, keep_live, use_rows, use_rows_counted};
use crate::format::count;
use crate::metrics::{Column, column};
use crate::parts::states::{Empty, once_there};
use crate::parts::{
    AsOf, AsOfButton, AsOfSlider, ChosenColumns, ChosenFilters, ColumnChoice, ExportMenu, FilterChips,
    PageHead,
};
use crate::row::Row;
use crate::state::board::{Board, CATEGORIES, FILTERS, PAGE_SIZE};
use crate::state::ranks::Scale;

/// The settings, read from the URL, and the way to change them.
#[derive(Clone, Copy)]
struct Settings {
    address: Address,
    board: Memo<Board>,
}

impl Settings {
    fn update(self, change: impl FnOnce(&mut Board)) {
        self.address.change(|query| {
            let mut board = Board::read(query);
            change(&mut board);
            board.write(query);
        });
    }

    /// Another choice: from the first page on.
    fn choose(self, change: impl FnOnce(&mut Board)) {
        self.update(|board| {
            change(board);
            board.page = 1;
        });
    }

    /// The column that is ranked by.
    fn by(self) -> Option<&'static Column> {
        self.board.with(|b| column(b.category.metric))
    }
}

/// The page.
#[component]
pub fn Leaderboard() -> impl IntoView {
    let page = Page::expect();
    let address = Address::here();
    let settings = Settings { address, board: Memo::new(move |_| address.query.with(Board::read)) };
    let request = Memo::new(move |_| settings.board.with(Board::request));
    let entries = use_rows_counted(move || Some(request.get()));
    let org = page.org_now();
    if !org.is_empty() {
        keep_live(
            entries,
            vec![format!("{org}:job")],
            |_, _| false,
            |e| {
                e.event_type == "job.completed"
                    || e.event_type.starts_with("quality.")
                    || e.event_type.starts_with("tool_output.")
            },
        );
    }
    let as_of = AsOf {
        position: Signal::derive(move || settings.board.with(|b| b.as_of)),
        set: Callback::new(move |to| settings.choose(|b| b.as_of = to)),
    };
    let choice = entry::choice(address);
    let export = Callback::new(move |()| settings.board.with_untracked(Board::export_request));
    let tabs = CATEGORIES.map(|category| {
        let href = address.link(move |query| {
            let mut board = Board::read(query);
            (board.category, board.page) = (category, 1);
            board.write(query);
        });
        let here = move || settings.board.with(|b| b.category == category).then_some("page");
        view! { <a href=href data-noscroll="" data-testid=format!("tab-{}", category.category) aria-current=here>{category.name}</a> }
    });
    let words = move || {
        settings.board.with(|b| match (b.simulated, b.flagged) {
            (false, false) => "real runs that nobody doubts",
            (false, true) => "real runs, the doubted ones too",
            (true, false) => "simulated runs, ranked among themselves",
            (true, true) => "simulated runs, ranked among themselves, the doubted ones too",
        })
    };
    view! {
        <PageHead title=first_page::LEADERBOARD.title meta=move || words().into_any()>
            <AsOfButton as_of/>
            <ChosenColumns choice/>
            <ExportMenu request=export name="benchtrail-leaderboard"/>
        </PageHead>
        <nav class="tabs" aria-label="Ranking">{tabs.collect_view()}</nav>
        <Filters settings entries/>
        <AsOfSlider as_of/>
        {once_there(entries, 10, move || nothing(settings), move || view! { <Ranks settings entries choice/> }.into_any())}
        <Show when=move || entries.rows.with(|rows| rows.as_ref().is_some_and(|rows| !rows.is_empty()))>
            <record::WhoLed settings entries/>
        </Show>
        <Show when=move || settings.board.with(|b| b.category.category == "quality")>
            <questions::Questions/>
        </Show>
    }
    .into_any()
}

#[component]
fn Filters(settings: Settings, entries: Rows) -> impl IntoView {
    let adding = RwSignal::new(false);
    let filters = Signal::derive(move || settings.board.with(|b| b.filters.clone()));
    let toggle = Callback::new(move |(column, value): (String, String)| {
        settings.choose(|b| crate::state::filters::toggle(&mut b.filters, &column, &value));
    });
    let counts =
        move || entries.total.get().map(|n| format!("{} ranked", count(n as i64))).unwrap_or_default();
    view! {
        <div class="filters" role="group" aria-label="Filters" data-testid="filters">
            <button type="button" class="button" data-testid="simulated" aria-pressed=move || settings.board.with(|b| b.simulated).to_string() on:click=move |_| settings.choose(|b| b.simulated = !b.simulated)>"Simulated"</button>
            <button type="button" class="button" data-testid="flagged" aria-pressed=move || settings.board.with(|b| b.flagged).to_string() on:click=move |_| settings.choose(|b| b.flagged = !b.flagged)>"Count doubted"</button>
            <ChosenFilters columns=FILTERS filters remove=toggle/>
            <button type="button" class="button button-quiet" data-testid="add-filter" aria-expanded=move || adding.get().to_string() on:click=move |_| adding.update(|a| *a = !*a)>
                "Add filter"
            </button>
            <span class="push meta" data-testid="result-count">{counts}</span>
        </div>
        <Show when=move || adding.get()>
            <Choices settings filters toggle/>
        </Show>
    }
    .into_any()
}

/// Every value that an entry has, as chips.
#[component]
fn Choices(
    settings: Settings,
    filters: Signal<Vec<(String, String)>>,
    toggle: Callback<(String, String)>,
) -> impl IntoView {
    let request = Memo::new(move |_| settings.board.with(Board::values_request));
    let values = use_rows(move || Some(request.get()));
    view! {
        <div class="filter-box" data-testid="filter-box">
            <FilterChips values columns=FILTERS.to_vec() filters toggle/>
        </div>
    }
}

fn nothing(settings: Settings) -> AnyView {
    let narrowed = move || settings.board.with(|b| !b.filters.is_empty());
    let past_the_end = move || settings.board.with(|b| b.page > 1);
    (move || {
        if narrowed() {
            return view! {
                <Empty words="No entry fits these filters.">
                    <button type="button" class="button" on:click=move |_| settings.choose(|b| b.filters.clear())>"Clear filters"</button>
                </Empty>
            }
            .into_any();
        }
        if past_the_end() {
            return view! {
                <Empty words="The ranking ends before this page.">
                    <button type="button" class="button" on:click=move |_| settings.update(|b| b.page = 1)>"First page"</button>
                </Empty>
            }
            .into_any();
        }
        let (simulated, flagged, hint, past) =
            settings.board.with(|b| (b.simulated, b.flagged, b.category.hint, b.as_of.is_some()));
        let words = if past {
            "Nothing was ranked yet at this position of the log.".to_owned()
        } else if simulated { "No simulated run qualifies.".to_owned() } else { format!("No result qualifies yet: {hint}.") };
        view! {
            <Empty words>
                <button type="button" class="button" on:click=move |_| settings.choose(|b| b.simulated = !b.simulated)>
                    {if simulated { "Show real runs" } else { "Show simulated runs" }}
                </button>
                // A first run is doubted for its few requests: then this is where it is.
                {(!flagged).then(|| view! {
                    <button type="button" class="button" data-testid="count-doubted" on:click=move |_| settings.choose(|b| b.flagged = true)>"Count doubted runs"</button>
                })}
            </Empty>
        }
        .into_any()
    })
    .into_any()
}

/// The leader, the ranked entries, and how many there are.
#[component]
fn Ranks(settings: Settings, entries: Rows, choice: ColumnChoice) -> impl IntoView {
    let by = Memo::new(move |_| settings.by());
    // One scale for all intervals of the page.
    let scale = Memo::new(move |_| entries.rows.with(|rows| Scale::of(rows.as_deref().unwrap_or_default())));
    let columns = choice.shown;
    let heads = move || {
        by.get().map(|by| {
            let [before, after] = columns.with(|shown| entry::around(shown, by)).map(|columns| {
                columns.into_iter().map(|column| entry::head(column, by, scale)).collect_view()
            });
            view! {
                {before}
                <th scope="col" class="number" title=by.definition()>{by.head()}" "<span class="unit">{by.unit()}</span></th>
                {after}
            }
        })
    };
    // An entry is drawn anew when anything of it changed, and only then: what has the keyboard keeps it.
    let lines = move || {
        let by = by.get();
        entries.all().into_iter().filter_map(move |row| Some((by?, row))).collect::<Vec<_>>()
    };
    let key = |(by, row): &(&'static Column, Row)| {
        format!("{}{}", by.key, serde_json::Value::Object(row.0.clone()))
    };
    // The first of all, and by how much it is ahead of the next.
    let leader = Memo::new(move |_| {
        entries.rows.with(|rows| {
            let mut rows = rows.iter().flatten();
            let first = rows.next().filter(|row| row.whole("rank") == Some(1))?;
            let second = rows.next().and_then(|row| row.number("value")).filter(|value| *value > 0.0);
            let ahead = first.number("value").zip(second).map(|(first, second)| first / second - 1.0);
            Some((first.clone(), ahead))
        })
    });
    view! {
        {move || leader.get().zip(by.get()).map(|((first, ahead), by)| entry::hero(&first, ahead, by))}
        <div class="table-scroll below">
            <table class="data-table" data-testid="leaderboard">
                <caption class="visually-hidden">"Leaderboard"</caption>
                <thead>
                    <tr>
                        <th scope="col" class="number">"Rank"</th>
                        <th scope="col">"Workload"</th>
                        {heads}
                    </tr>
                </thead>
                <tbody>
                    <For each=lines key=key let:entry>
                        {entry::line(&entry.1, entry.0, scale, columns)}
                    </For>
                </tbody>
            </table>
        </div>
        <Foot settings entries/>
    }
    .into_any()
}

#[component]
fn Foot(settings: Settings, entries: Rows) -> impl IntoView {
    let page = move || settings.board.with(|b| b.page);
    let total = move || entries.total.get().unwrap_or(0);
    let words = move || {
        let first = (page() - 1) * PAGE_SIZE;
        let shown = entries.rows.with(|r| r.as_ref().map_or(0, Vec::len));
        format!(
            "{}–{} of {}",
            count(first as i64 + 1),
            count((first + shown) as i64),
            count(total().max(first + shown) as i64)
        )
    };
    let pages = move || total().div_ceil(PAGE_SIZE).max(1);
    let go = move |step: isize| settings.update(|b| b.page = b.page.saturating_add_signed(step).max(1));
    view! {
        <p class="table-foot">
            <span data-testid="row-range">{words}</span>
            <Show when=move || { pages() > 1 }>
                <button type="button" class="figure-toggle" data-testid="previous" disabled=move || page() == 1 on:click=move |_| go(-1)>"Previous"</button>
                <button type="button" class="figure-toggle" data-testid="next" disabled=move || { page() >= pages() } on:click=move |_| go(1)>"Next"</button>
            </Show>
            <span class="push">"the best scenario of each workload and server, ranked by the mean of its runs · = shared: the intervals overlap"</span>
        </p>
    }
    .into_any()
}
