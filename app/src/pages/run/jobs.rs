//! A run's jobs as a table that fills in.

use leptos::prelude::*;

use super::baseline::Baseline;
use crate::browser::address::Address;
use crate::browser::now_ms;
use crate::browser::remote::Rows;
use crate::charts::concurrency::traffic;
use crate::format::{ABSENT, count, maybe, moment};
use crate::metrics::{Column, Kind, RESULT_COLUMNS, column};
use crate::pages::strip::Feeds;
use crate::parts::{ColumnChoice, Status, swatch_of, tables};
use crate::state::colours::Colour;
use crate::state::order::Order;

/// The measured columns that the jobs' table shows until others are chosen.
const FIGURES: &[&str] = &[
    "output_tokens_per_second",
    "ttft_p50_ms",
    "ttft_p99_ms",
    "tpot_avg_ms",
    "interactivity_tps",
    "gpu_power_avg_w",
    "output_tokens_per_joule",
];

/// The choice of the measured columns.
pub(super) fn choice(address: Address) -> ColumnChoice {
    let measured = || RESULT_COLUMNS.iter().filter(|c| c.kind == Kind::Metric).collect();
    ColumnChoice::in_address(address, measured, FIGURES)
}

/// The table; a click on a figure's head sorts it.
#[component]
pub(super) fn JobsTable(
    jobs: Rows,
    results: Rows,
    feeds: Feeds,
    baseline: Baseline,
    columns: ColumnChoice,
) -> impl IntoView {
    let address = Address::here();
    let columns = columns.shown;
    let order = Memo::new(move |_| {
        let shown: Vec<&str> = columns.with(|shown| shown.iter().map(|c| c.key).collect());
        address.query.with(|query| Order::read(query, &shown))
    });
    let keys = Memo::new(move |_| {
        let jobs = jobs.all().iter().map(|j| j.text("job")).collect::<Vec<_>>();
        let Some(order) = order.get() else { return jobs };
        results.rows.with(|results| {
            let results = results.as_deref().unwrap_or_default();
            let value = |job: &String| results.iter().find(|r| r.text("job") == *job)?.number(&order.key);
            order.arrange(jobs.into_iter().map(|job| {
                let value = value(&job);
                (job, value)
            }))
        })
    });
    // The lines' colours go by the order in which the traffic first appears, as in the charts.
    let shapes = Memo::new(move |_| {
        let mut shapes: Vec<String> = Vec::new();
        for job in jobs.all() {
            let shape = traffic(&job.text("scenario_code")).to_owned();
            if !shapes.contains(&shape) {
                shapes.push(shape);
            }
        }
        shapes
    });
    let head = move |c: &'static Column| {
        let sort = move || {
            order.with(|o| {
                let own = o.as_ref().filter(|o| o.key == c.key)?;
                Some(if own.descending { "descending" } else { "ascending" })
            })
        };
        let click = move |_| {
            let next = order.with_untracked(|o| Order::clicked(o.as_ref(), c.key));
            address.change(|query| Order::write(next.as_ref(), query));
        };
        view! {
            <th scope="col" class="number" aria-sort=sort title=c.definition()>
                <button type="button" class="sort" data-sort=c.key on:click=click>{c.head()}</button>" "<span class="unit">{c.unit()}</span>
            </th>
        }
    };
    // The figure that is sorted by, else the first one, is compared with the baseline's.
    let by = Memo::new(move |_| {
        let sorted = order.with(|order| order.as_ref().and_then(|order| column(&order.key)));
        columns.with(|shown| sorted.or(shown.first().copied())).map(|column| column.key)
    });
    let heads = move || {
        let compared = |c: &'static Column| (by.get() == Some(c.key)).then(|| baseline.head()).flatten();
        columns.get().into_iter().map(|c| view! { {head(c)}{compared(c)} }).collect_view()
    };
    view! {
        <div class="table-scroll">
            <table class="data-table" data-testid="jobs">
                <caption class="visually-hidden">"Jobs of this run"</caption>
                <thead>
                    <tr>
                        <th scope="col">"Job"</th>
                        <th scope="col">"Status"</th>
                        <th scope="col" class="number">"Requests"</th>
                        {heads}
                        <th scope="col" class="number">"Ended "<span class="unit">"UTC"</span></th>
                    </tr>
                </thead>
                <tbody>
                    <For each=move || keys.get() key=Clone::clone let:job>
                        <JobLine jobs results feeds shapes baseline columns by job/>
                    </For>
                </tbody>
            </table>
        </div>
        <p class="table-foot">
            {move || format!("1–{0} of {0}", keys.with(Vec::len))}
            <span class="push">"p99 underlined: fewer than 100 requests"</span>
        </p>
    }
    .into_any()
}

#[component]
fn JobLine(
    jobs: Rows,
    results: Rows,
    feeds: Feeds,
    shapes: Memo<Vec<String>>,
    baseline: Baseline,
    columns: Memo<Vec<&'static Column>>,
    /// The figure that is compared with the baseline's.
    by: Memo<Option<&'static str>>,
    job: String,
) -> impl IntoView {
    let name = job.clone();
    let row = Memo::new(move |_| {
        jobs.rows.with(|r| r.iter().flatten().find(|r| r.text("job") == name).cloned().unwrap_or_default())
    });
    let name = job.clone();
    let result = Memo::new(move |_| {
        results.rows.with(|r| r.iter().flatten().find(|r| r.text("job") == name).cloned())
    });
    let start = row.get_untracked();
    let shape = traffic(&start.text("scenario_code")).to_owned();
    let colour = Colour::nth(shapes.get_untracked().iter().position(|s| *s == shape).unwrap_or(0));
    // The job's own row says how it stands; the result knows of flags and simulation.
    let marked = Signal::derive(move || {
        let mut row = row.get();
        if let Some(result) = result.get() {
            for column in ["flags", "simulated", "suspicious"] {
                if let Some(value) = result.value(column) {
                    row.set(column, value.clone());
                }
            }
        }
        row
    });
    // Where nothing is measured there is no unit either.
    let measured = move |key: &'static str| {
        let result = result.with(|r| r.as_ref().map(|r| r.number(key).is_some()));
        result.unwrap_or_else(|| {
            key == "output_tokens_per_second" && row.with(|r| r.text("status") == "running")
        })
    };
    let requests = move || {
        let row = row.get();
        let total = row.whole("progress_total").or(row.whole("num_requests"));
        match (row.text("status").as_str(), row.whole("progress_done"), total) {
            ("running", Some(done), Some(total)) => {
                view! { <span class="quiet">{format!("{} of {}", count(done), count(total))}</span> }
                    .into_any()
            }
            ("completed", _, _) => result
                .with(|r| r.as_ref().and_then(|r| r.whole("requests_succeeded")))
                .or(total)
                .map(count)
                .into_any(),
            (_, _, Some(total)) => view! { <span class="quiet">{count(total)}</span> }.into_any(),
            _ => ABSENT.into_any(),
        }
    };
    let figure = move |c: &'static Column| {
        let key = c.key;
        let on_card = matches!(key, "output_tokens_per_second" | "ttft_p99_ms");
        view! {
            <td class="number" class:strong=key == "output_tokens_per_second" class:card-figure=on_card data-label=c.head() data-unit=move || measured(key).then(|| c.unit())>
                {move || match result.get() {
                    Some(result) => tables::figure(&result, key),
                    None => {
                        let row = row.get();
                        let so_far = (key == "output_tokens_per_second" && row.text("status") == "running").then(|| feeds.tokens_now(&row.text("job"))).flatten();
                        match so_far {
                            Some(tokens) => view! { <span class="quiet" title="what the load generator said of the last ten seconds, not yet a result">{maybe(Some(tokens))}</span> }.into_any(),
                            None => view! { <span class="quiet" title=tables::why_absent(&row, key)>{ABSENT}</span> }.into_any(),
                        }
                    }
                }}
            </td>
        }
    };
    let figures = move || {
        let difference = move |key: &'static str| {
            (by.get() == Some(key))
                .then_some(move || result.with(|result| baseline.cell(result.as_ref(), key)))
        };
        columns.get().into_iter().map(|c| view! { {figure(c)}{difference(c.key)} }).collect_view()
    };
    let ended = move || {
        row.with(|r| r.millis("finished_at")).map_or_else(|| ABSENT.to_owned(), |at| moment(at, now_ms()))
    };
    view! {
        <tr data-testid="job" data-job=job data-href=start.job_path() tabindex="-1" data-status=move || row.with(|r| r.text("status")) data-phase=move || row.with(|r| r.text("phase"))>
            <th scope="row" class="card-title"><a class="key" href=start.job_path()>{swatch_of(colour)}{start.text("scenario_code")}</a></th>
            <td class="card-figure" data-label="Status"><Status row=marked/></td>
            <td class="number">{requests}</td>
            {figures}
            <td class="number">{ended}</td>
        </tr>
    }
    .into_any()
}
