//! Leaderboard: the best scenario of each workload and server, as the control plane ranks it. Category, filters and page
//! are in the URL.

mod questions;

use leptos::prelude::*;

use crate::browser::address::Address;
use crate::browser::page::Page;
use crate::browser::remote::{Rows, keep_live, use_rows, use_rows_counted};
use crate::format::{ABSENT, count, counted, full, maybe_count, significant};
use crate::metrics::{Column, column};
use crate::parts::states::{Empty, once_there};
use crate::parts::{AsOf, AsOfButton, AsOfSlider, ChosenFilters, FilterChips, PageHead, swatch, tables};
use crate::row::Row;
use crate::state::board::{Board, CATEGORIES, FILTERS, PAGE_SIZE};
use crate::state::colours::Kind;

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
        <PageHead title="Leaderboard" meta=move || words().into_any()>
            <AsOfButton as_of/>
        </PageHead>
        <nav class="tabs" aria-label="Ranking">{tabs.collect_view()}</nav>
        <Filters settings entries/>
        <AsOfSlider as_of/>
        {once_there(entries, 10, move || nothing(settings), move || view! { <Ranks settings entries/> }.into_any())}
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
        settings.choose(|b| crate::state::report::toggle(&mut b.filters, &column, &value));
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
        let (simulated, hint, past) = settings.board.with(|b| (b.simulated, b.category.hint, b.as_of.is_some()));
        let words = if past {
            "Nothing was ranked yet at this position of the log.".to_owned()
        } else if simulated { "No simulated run qualifies.".to_owned() } else { format!("No result qualifies yet: {hint}.") };
        view! {
            <Empty words>
                <button type="button" class="button" on:click=move |_| settings.choose(|b| b.simulated = !b.simulated)>
                    {if simulated { "Show real runs" } else { "Show simulated runs" }}
                </button>
            </Empty>
        }
        .into_any()
    })
    .into_any()
}

/// The figures beside the one that is ranked by: those of the other categories.
fn others(by: &'static Column) -> Vec<&'static Column> {
    CATEGORIES.iter().filter(|c| c.metric != by.key).filter_map(|c| column(c.metric)).collect()
}

fn head(c: &'static Column) -> AnyView {
    view! { <th scope="col" class="number" title=c.definition()>{c.head()}" "<span class="unit">{c.unit()}</span></th> }
        .into_any()
}

/// The leader, the ranked entries, and how many there are.
#[component]
fn Ranks(settings: Settings, entries: Rows) -> impl IntoView {
    let by = Memo::new(move |_| settings.by());
    let heads = move || {
        by.get().map(|c| {
            view! {
                {head(c)}
                <th scope="col" class="number" title="the 95 % interval over repeated runs">"95 % "<span class="unit">{c.unit()}</span></th>
                <th scope="col" class="number optional">"Runs"</th>
                {others(c).into_iter().map(head).collect_view()}
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
    let leader = Memo::new(move |_| entries.first().filter(|row| row.whole("rank") == Some(1)));
    view! {
        {move || leader.get().zip(by.get()).map(|(first, by)| hero(&first, by))}
        <div class="table-scroll below">
            <table class="data-table" data-testid="leaderboard">
                <caption class="visually-hidden">"Leaderboard"</caption>
                <thead>
                    <tr>
                        <th scope="col" class="number">"Rank"</th>
                        <th scope="col">"Workload"</th>
                        <th scope="col">"Framework"</th>
                        <th scope="col" class="optional">"Precision"</th>
                        <th scope="col">"GPUs"</th>
                        <th scope="col">"Traffic"</th>
                        <th scope="col" class="number optional">"Conc."</th>
                        {heads}
                    </tr>
                </thead>
                <tbody>
                    <For each=lines key=key let:entry>
                        {line(&entry.1, entry.0)}
                    </For>
                </tbody>
            </table>
        </div>
        <Foot settings entries/>
    }
    .into_any()
}

/// The first of the ranking, at large.
fn hero(first: &Row, by: &'static Column) -> AnyView {
    let facts = [
        ("Framework", framework(first)),
        ("Precision", first.maybe_text("quantization").unwrap_or_else(|| "as published".into())),
        ("Server", server(first)),
        ("Traffic", first.text("scenario_code")),
        ("Runs", counted(first.whole("runs").unwrap_or(1), "run")),
    ];
    let shared =
        first.is("shared").then(|| view! { <span class="meta">"shared: another's interval overlaps"</span> });
    view! {
        <section class="hero" aria-labelledby="leader" data-testid="hero">
            <p class="hero-line">
                <b id="leader">{swatch(Kind::Model, &first.text("model_code"))}{first.text("model_code")}</b>
                {mean(first, by)}
                <span class="meta">{by.unit()}</span>
                {shared}
            </p>
            <dl class="run-facts">{facts.map(|(n, v)| view! { <div><dt>{n}</dt><dd class="key">{v}</dd></div> }).collect_view()}</dl>
        </section>
    }
    .into_any()
}

fn framework(row: &Row) -> String {
    match row.maybe_text("framework_code") {
        Some(code) => format!("{code} {}", row.text("framework_version")),
        None => ABSENT.to_owned(),
    }
}

/// Where it ran; what was brought from elsewhere has no server here.
fn server(row: &Row) -> String {
    match row.maybe_text("hostname") {
        Some(host) => format!("{}/{host}", row.text("config_code")),
        None => "elsewhere".to_owned(),
    }
}

/// The mean that is ranked by, with the proof of the newest run that is in it.
fn mean(row: &Row, by: &'static Column) -> AnyView {
    let Some(value) = row.number("value") else {
        return view! { <span class="quiet">{ABSENT}</span> }.into_any();
    };
    let runs = row.whole("runs").unwrap_or(1);
    let job = row.text("job");
    let title = if runs > 1 {
        format!("{}: the mean of {runs} runs; show what made the newest one", full(value))
    } else {
        format!("{}: show what made this number", full(value))
    };
    let explained = tables::is_explained(&job, by.key);
    view! {
        <a
            href=tables::proof_href(&job, by.key)
            data-noscroll=""
            title=title
            data-testid="figure"
            data-metric=by.key
            data-value=full(value)
            aria-current=move || explained.get().then_some("true")
        >
            {significant(value)}
        </a>
    }
    .into_any()
}

/// An entry.
fn line(row: &Row, by: &'static Column) -> AnyView {
    let shared = row.is("shared");
    let rank = format!("{}{}", if shared { "=" } else { "" }, maybe_count(row.whole("rank")));
    let why = if shared { "its interval overlaps with another's: nobody knows who is better" } else { "" };
    let interval = match row.number("interval_half") {
        Some(half) => view! { <span title=format!("half the interval: {}", full(half))>{format!("±{}", significant(half))}</span> }.into_any(),
        None => view! { <span title="ran once: repeat the run for an interval">{ABSENT}</span> }.into_any(),
    };
    let cells =
        others(by).into_iter().enumerate().map(|(nth, c)| tables::cell(row, c, nth == 0)).collect_view();
    let path = row.named_job_path();
    let marks = marks(row);
    view! {
        <tr data-testid="entry" data-rank=row.text("rank") data-href=path.clone() tabindex="-1">
            <td class="number card-figure" data-label="Rank" title=why>{rank}</td>
            <th scope="row" class="card-title"><a class="key" href=path.clone()>{swatch(Kind::Model, &row.text("model_code"))}{row.text("workload_code")}</a>{marks}</th>
            <td><span class="key">{framework(row)}</span></td>
            <td class="optional">{row.maybe_text("quantization").unwrap_or_else(|| ABSENT.into())}</td>
            <td title=server(row)>{tables::words(row, "gpu_name")}</td>
            <td class="key">{row.text("scenario_code")}</td>
            <td class="number optional">{maybe_count(row.whole("concurrency"))}</td>
            <td class="number card-figure strong" data-label=by.head() data-unit=by.unit()>{mean(row, by)}</td>
            <td class="number quiet">{interval}</td>
            <td class="number optional">{maybe_count(row.whole("runs"))}</td>
            {cells}
        </tr>
    }
    .into_any()
}

/// What is to be known of an entry beside its place.
fn marks(row: &Row) -> AnyView {
    let mark = |status: &'static str, words: String| view! { " "<span class="status" data-status=status>{words}</span> };
    let doubted = row.whole("doubted_runs").filter(|n| *n > 0).map(|n| {
        let words = if row.is("suspicious") {
            format!("{} counted", counted(n, "doubted run"))
        } else {
            format!("{} left out", counted(n, "doubted run"))
        };
        mark("flagged", words)
    });
    view! {
        {row.is("simulated").then(|| mark("simulated", "simulated".to_owned()))}
        {doubted}
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
