//! What is shown: filters.

use events::metrics::Direction;
use leptos::prelude::*;

use super::Settings;
use crate::browser::remote::{Rows, use_rows};
use crate::format::count;
use crate::metrics::column;
use crate::parts::{ChosenFilters, FilterChips, Filtered};
use crate::state::limit::{Limit, bounded};
use crate::state::report::{FILTERS, Report, is_day};

#[component]
pub(super) fn Filters(settings: Settings, results: Rows, everything: Rows) -> impl IntoView {
    let adding = RwSignal::new(false);
    let filters = Signal::derive(move || settings.report.with(|r| r.filters.clone()));
    let remove = Callback::new(move |(column, value): (String, String)| {
        settings.update(|r| r.toggle_filter(&column, &value))
    });
    let bounds = move || {
        settings
            .report
            .get()
            .limits
            .into_iter()
            .map(|limit| {
                let words = limit.words();
                let label = format!("Remove {words}");
                view! {
                    <span class="filter" data-testid="limit">
                        {words}
                        " "
                        <button type="button" aria-label=label on:click=move |_| settings.update(|r| { r.limits.retain(|l| *l != limit); r.page = 1; })>"×"</button>
                    </span>
                }
            })
            .collect_view()
    };
    let days = move || {
        let (from, to) = settings.report.with(|r| (r.from.clone(), r.to.clone()));
        let words = match (from, to) {
            (Some(from), Some(to)) => format!("{from} to {to}"),
            (Some(from), None) => format!("since {from}"),
            (None, Some(to)) => format!("until {to}"),
            (None, None) => return None,
        };
        Some(view! {
            <span class="filter" data-testid="days">
                <b>"ended"</b>
                {words}
                " "
                <button type="button" aria-label="Remove the days" on:click=move |_| settings.update(|r| { (r.from, r.to) = (None, None); r.page = 1; })>"×"</button>
            </span>
        })
    };
    let counts = move || match (results.total.get(), everything.total.get()) {
        (Some(shown), Some(all)) if !settings.report.with(Report::narrows) => {
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
            <ChosenFilters columns=FILTERS filters remove/>
            {bounds}
            {days}
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

/// Bounds on figures, and every value there is.
#[component]
fn FilterChooser(settings: Settings) -> impl IntoView {
    // These two have buttons of their own.
    let columns: Vec<Filtered> =
        FILTERS.iter().filter(|(c, _)| !matches!(*c, "simulated" | "suspicious")).copied().collect();
    let selected: Vec<&str> = columns.iter().map(|(c, _)| *c).collect();
    let request = format!("/api/v_benchmark_results?select={}&limit=5000", selected.join(","));
    let values = use_rows(move || Some(request.clone()));
    let filters = Signal::derive(move || settings.report.with(|r| r.filters.clone()));
    let toggle = Callback::new(move |(column, value): (String, String)| {
        settings.update(|r| r.toggle_filter(&column, &value))
    });
    view! {
        <div class="filter-box" data-testid="filter-box">
            <AddLimit settings/>
            <Days settings/>
            <FilterChips values columns filters toggle/>
        </div>
    }
    .into_any()
}

/// The days between which results ended.
#[component]
fn Days(settings: Settings) -> impl IntoView {
    let set = move |value: String, first: bool| {
        let day = Some(value).filter(|day| is_day(day));
        settings.update(|r| {
            if first {
                r.from = day;
            } else {
                r.to = day;
            }
            r.page = 1;
        });
    };
    view! {
        <div class="limit-form">
            <span class="field-label">"Only results that ended (UTC)"</span>
            <div class="actions">
                <label class="meta">"from "<input type="date" class="control control-inline" data-testid="ended-from" prop:value=move || settings.report.with(|r| r.from.clone().unwrap_or_default()) on:change=move |e| set(event_target_value(&e), true)/></label>
                <label class="meta">"to "<input type="date" class="control control-inline" data-testid="ended-to" prop:value=move || settings.report.with(|r| r.to.clone().unwrap_or_default()) on:change=move |e| set(event_target_value(&e), false)/></label>
            </div>
        </div>
    }
    .into_any()
}

/// A bound on a figure: what a service promises.
#[component]
fn AddLimit(settings: Settings) -> impl IntoView {
    let key = RwSignal::new("ttft_p99_ms".to_owned());
    let at_least = RwSignal::new(false);
    let value = RwSignal::new(String::new());
    let number =
        move || value.with(|v| v.trim().replace(',', ".").parse::<f64>().ok().filter(|n| n.is_finite()));
    let add = move |event: leptos::ev::SubmitEvent| {
        event.prevent_default();
        if let Some(number) = untrack(number) {
            let limit =
                Limit { column: key.get_untracked(), at_least: at_least.get_untracked(), value: number };
            settings.update(|r| r.limit(limit));
            value.set(String::new());
        }
    };
    // The end that a promise is about: at most for what is better low.
    let choose = move |event: leptos::ev::Event| {
        let chosen = event_target_value(&event);
        at_least.set(column(&chosen).is_some_and(|c| c.direction() == Direction::Higher));
        key.set(chosen);
    };
    let options = bounded()
        .map(|c| view! { <option value=c.key selected=move || key.with(|k| k == c.key)>{c.name()}</option> });
    let unit = move || key.with(|k| column(k).map_or("", |c| c.unit()));
    view! {
        <form class="limit-form" on:submit=add>
            <span class="field-label">"Only results with"</span>
            <div class="actions">
                <select class="control control-inline" aria-label="Figure" data-testid="limit-figure" on:change=choose>{options.collect_view()}</select>
                <select class="control limit-end" aria-label="At most or at least" data-testid="limit-end" on:change=move |e| at_least.set(event_target_value(&e) == "min")>
                    <option value="max" selected=move || !at_least.get()>"≤"</option>
                    <option value="min" selected=move || at_least.get()>"≥"</option>
                </select>
                <input class="control limit-value" inputmode="decimal" aria-label="Value" data-testid="limit-value" bind:value=value/>
                <span class="meta">{unit}</span>
                <button type="submit" class="button" data-testid="limit-add" aria-disabled=move || number().is_none().to_string()>"Add"</button>
            </div>
        </form>
    }
    .into_any()
}
