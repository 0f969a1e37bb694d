//! Reporting: every result one may see, filtered, sorted and provable. All of its settings are in the URL.

use leptos::prelude::*;
use leptos_router::NavigateOptions;
use leptos_router::hooks::{use_location, use_navigate};
use wasm_bindgen_futures::spawn_local;

use crate::browser::api;
use crate::browser::page::Page;
use crate::browser::remote::{Rows, use_rows, use_rows_counted};
use crate::browser::save_file;
use crate::format::count;
use crate::metrics::{RESULT_COLUMNS, column};
use crate::parts::states::{Empty, when_there};
use crate::parts::{PageHead, tables};
use crate::row::Row;
use crate::state::query::Query;
use crate::state::report::{FILTERS, PAGE_SIZE, Report};

/// The settings, read from the URL, and the way to change them.
#[derive(Clone, Copy)]
struct Settings {
    report: Memo<Report>,
    change: StoredValue<Box<dyn Fn(Report) + Send + Sync>>,
}

impl Settings {
    fn from_url() -> Self {
        let location = use_location();
        let navigate = send_wrapper(use_navigate());
        let report = Memo::new(move |_| location.search.with(|s| Report::read(&Query::parse(s))));
        let change = StoredValue::new(Box::new(move |report: Report| {
            let mut query = location.search.with_untracked(|s| Query::parse(s));
            report.write(&mut query);
            let to = format!("/reporting{}", query.write());
            navigate(&to, NavigateOptions { scroll: false, ..NavigateOptions::default() });
        }) as Box<dyn Fn(Report) + Send + Sync>);
        Self { report, change }
    }

    fn update(self, change: impl FnOnce(&mut Report)) {
        let mut report = self.report.get_untracked();
        change(&mut report);
        self.change.with_value(|go| go(report));
    }
}

fn send_wrapper<F: Fn(&str, NavigateOptions) + 'static>(
    navigate: F,
) -> impl Fn(&str, NavigateOptions) + Send + Sync {
    let kept = StoredValue::new_local(navigate);
    move |to: &str, options| kept.with_value(|go| go(to, options))
}

/// The page.
#[component]
pub fn Reporting() -> impl IntoView {
    let page = Page::expect();
    let settings = Settings::from_url();
    let results = use_rows_counted(move || Some(settings.report.with(Report::page_request)));
    let everything = use_rows_counted(|| Some("/api/v_benchmark_results?limit=1".into()));
    // New rows wait behind a pill: what the reader looks at does not move.
    let fresh = RwSignal::new(0usize);
    let org = page.org_now();
    if !org.is_empty() {
        page.live.listen(vec![format!("{org}:job")], move |events| {
            let new = events.iter().filter(|e| e.event_type.starts_with("tool_output.")).count();
            let at_top =
                window().scroll_y().unwrap_or(0.0) < 40.0 && settings.report.with_untracked(|r| r.page == 1);
            if new > 0 {
                everything.reload_soon();
                if at_top {
                    results.reload_soon();
                } else {
                    fresh.update(|n| *n += new);
                }
            } else if at_top
                && events.iter().any(|e| {
                    matches!(e.event_type.as_str(), "job.completed" | "quality.flagged" | "quality.cleared")
                })
            {
                results.reload_soon();
            }
        });
    }
    view! {
        <PageHead title="Reporting" meta=|| "every result you may see, filtered, compared and provable".into_any()>
            <ColumnChooser settings/>
            <Export settings/>
        </PageHead>
        <Filters settings results everything/>
        <Show when=move || { fresh.get() > 0 }>
            <p class="new-rows">
                <button type="button" class="button button-quiet" on:click=move |_| { fresh.set(0); results.reload(); window().scroll_to_with_x_and_y(0.0, 0.0); }>
                    {move || format!("{} new", fresh.get())}
                </button>
            </p>
        </Show>
        {when_there(results, 10, move || nothing(settings), move |rows| table(&rows, settings))}
        <Foot settings results/>
    }
    .into_any()
}

fn nothing(settings: Settings) -> AnyView {
    let filtered = settings.report.with(|r| !r.filters.is_empty());
    if filtered {
        view! {
            <Empty words="No result fits these filters.">
                <button type="button" class="button" on:click=move |_| settings.update(|r| r.filters.clear())>"Clear filters"</button>
            </Empty>
        }
        .into_any()
    } else {
        view! {
            <Empty words="No result yet. A run's jobs appear here the moment their numbers are in the log.">
                <a class="button button-primary" href="/projects/new">"New project"</a>
            </Empty>
        }
        .into_any()
    }
}

#[component]
fn Filters(settings: Settings, results: Rows, everything: Rows) -> impl IntoView {
    let adding = RwSignal::new(false);
    let chosen = move || {
        settings
            .report
            .get()
            .filters
            .into_iter()
            .map(|(column, value)| {
                let word = FILTERS.iter().find(|(c, _)| *c == column).map_or("", |(_, w)| *w);
                let shown = value.clone();
                view! {
                    <span class="filter" data-testid="filter">
                        <b>{word}</b>
                        {shown}
                        " "
                        <button type="button" aria-label=format!("Remove {word}") on:click=move |_| settings.update(|r| r.toggle_filter(&column, &value))>"×"</button>
                    </span>
                }
            })
            .collect_view()
    };
    let counts = move || match (results.total.get(), everything.total.get()) {
        (Some(shown), Some(all)) if settings.report.with(|r| r.filters.is_empty()) => {
            format!("{} results", count(all.max(shown) as i64))
        }
        (Some(shown), Some(all)) => format!("{} of {} results", count(shown as i64), count(all as i64)),
        _ => String::new(),
    };
    let quick = move |column: &'static str, value: &'static str, word: &'static str| {
        let on = move || settings.report.with(|r| r.filters.iter().any(|(c, v)| c == column && v == value));
        view! {
            <button type="button" class="button" aria-pressed=move || on().to_string() on:click=move |_| settings.update(|r| r.toggle_filter(column, value))>{word}</button>
        }
    };
    view! {
        <div class="filters" role="group" aria-label="Filters" data-testid="filters">
            {quick("simulated", "false", "Real only")}
            {quick("suspicious", "true", "Flagged")}
            {chosen}
            <button type="button" class="button button-quiet" data-testid="add-filter" aria-expanded=move || adding.get().to_string() on:click=move |_| adding.update(|a| *a = !*a)>
                "Add filter"
            </button>
            <span class="push meta" data-testid="result-count">{counts}</span>
        </div>
        <Show when=move || adding.get()>
            <FilterChooser settings/>
        </Show>
    }
    .into_any()
}

/// Every value there is, as chips: a filter is one click.
#[component]
fn FilterChooser(settings: Settings) -> impl IntoView {
    let columns: Vec<&str> =
        FILTERS.iter().map(|(c, _)| *c).filter(|c| !matches!(*c, "simulated" | "suspicious")).collect();
    let request = format!("/api/v_benchmark_results?select={}&limit=5000", columns.join(","));
    let values = use_rows(move || Some(request.clone()));
    view! {
        <div class="filter-box" data-testid="filter-box">
            {move || {
                let rows = values.all();
                FILTERS
                    .iter()
                    .filter(|(c, _)| !matches!(*c, "simulated" | "suspicious"))
                    .filter_map(|(column, word)| {
                        let mut found: Vec<String> = rows.iter().filter_map(|r| r.maybe_text(column)).collect();
                        found.sort_by_key(|v| (v.parse::<u64>().unwrap_or(u64::MAX), v.clone()));
                        found.dedup();
                        (found.len() > 1 && found.len() <= 60).then(|| {
                            let chips = found.into_iter().map(|value| {
                                let shown = value.clone();
                                let (v1, v2) = (value.clone(), value);
                                view! {
                                    <label class="chip">
                                        <input type="checkbox"
                                            prop:checked=move || settings.report.with(|r| r.filters.iter().any(|(c, v)| c == column && *v == v1))
                                            on:change=move |_| settings.update(|r| r.toggle_filter(column, &v2))/>
                                        {shown}
                                    </label>
                                }
                            });
                            view! { <fieldset class="field"><legend class="field-label">{*word}</legend><div class="chips">{chips.collect_view()}</div></fieldset> }
                        })
                    })
                    .collect_view()
            }}
        </div>
    }
    .into_any()
}

#[component]
fn ColumnChooser(settings: Settings) -> impl IntoView {
    view! {
        <details class="menu" data-testid="columns">
            <summary class="button">"Columns"</summary>
            <div class="menu-box">
                {RESULT_COLUMNS
                    .iter()
                    .map(|c| {
                        view! {
                            <label class="check" title=c.definition()>
                                <input type="checkbox"
                                    prop:checked=move || settings.report.with(|r| r.columns.iter().any(|k| k == c.key))
                                    on:change=move |_| settings.update(|r| r.toggle_column(c.key))/>
                                {format!(" {}", c.head())}
                            </label>
                        }
                    })
                    .collect_view()}
            </div>
        </details>
    }
}

#[component]
fn Export(settings: Settings) -> impl IntoView {
    let words = RwSignal::new("Export CSV".to_owned());
    view! {
        <button
            type="button"
            class="button"
            data-testid="export"
            title="exactly what is filtered, every column"
            on:click=move |_| {
                words.set("Exporting".to_owned());
                let request = settings.report.with_untracked(Report::export_request);
                spawn_local(async move {
                    let done = match api::csv(&request).await {
                        Ok(text) => {
                            save_file("benchtrail-results.csv", "text/csv", &text);
                            "Export CSV".to_owned()
                        }
                        Err(trouble) => trouble.error.message,
                    };
                    words.try_set(done);
                });
            }
        >
            {words}
        </button>
    }
}

fn table(rows: &[Row], settings: Settings) -> AnyView {
    let report = settings.report.get_untracked();
    let columns: Vec<_> = report.columns.iter().filter_map(|k| column(k)).collect();
    // On a phone the first three measured columns stay.
    let on_card: Vec<&str> = columns
        .iter()
        .filter(|c| c.kind == crate::metrics::Kind::Metric && c.key != "output_tokens_per_second_per_gpu")
        .take(2)
        .map(|c| c.key)
        .collect();
    let heads = columns.iter().map(|c| {
        let c = *c;
        let sort = move || {
            settings.report.with(|r| (r.sort == c.key).then_some(if r.descending { "descending" } else { "ascending" }))
        };
        view! {
            <th scope="col" class:number=c.is_number() aria-sort=sort title=c.definition()>
                <button type="button" class="sort" data-sort=c.key on:click=move |_| settings.update(|r| r.sort_by(c.key))>{c.head()}</button>
                <span class="unit">{c.unit()}</span>
            </th>
        }
    });
    let lines = rows.iter().map(|row| {
        let cells = columns.iter().map(|c| tables::cell(row, c, on_card.contains(&c.key)));
        view! { <tr data-testid="result" data-job=row.text("job")>{cells.collect_view()}</tr> }
    });
    view! {
        <div class="table-scroll table-own">
            <table class="data-table dense" data-testid="results">
                <caption class="visually-hidden">"Results"</caption>
                <thead><tr>{heads.collect_view()}</tr></thead>
                <tbody>{lines.collect_view()}</tbody>
            </table>
        </div>
    }
    .into_any()
}

#[component]
fn Foot(settings: Settings, results: Rows) -> impl IntoView {
    let pages = move || results.total.get().map_or(1, |t| t.div_ceil(PAGE_SIZE).max(1));
    let words = move || {
        let (page, total) = (settings.report.with(|r| r.page), results.total.get().unwrap_or(0));
        let shown = results.rows.with(|r| r.as_ref().map_or(0, Vec::len));
        let first = (page - 1) * PAGE_SIZE;
        if shown == 0 {
            String::new()
        } else {
            format!(
                "{}–{} of {}",
                count(first as i64 + 1),
                count((first + shown) as i64),
                count(total.max(first + shown) as i64)
            )
        }
    };
    let go = move |step: isize| settings.update(|r| r.page = r.page.saturating_add_signed(step).max(1));
    view! {
        <p class="table-foot">
            <span data-testid="row-range">{words}</span>
            <Show when=move || { pages() > 1 }>
                <button type="button" class="figure-toggle" disabled=move || settings.report.with(|r| r.page == 1) on:click=move |_| go(-1)>"Previous"</button>
                <button type="button" class="figure-toggle" disabled=move || settings.report.with(|r| r.page >= pages()) on:click=move |_| go(1)>"Next"</button>
            </Show>
            <span class="push">"every number opens its proof · underlined percentiles rest on few requests"</span>
        </p>
    }
    .into_any()
}
