//! The run that a run's figures are compared with.

use leptos::prelude::*;

use crate::browser::address::Address;
use crate::browser::now_ms;
use crate::browser::remote::{Rows, use_rows};
use crate::format::{full, moment, signed_percent};
use crate::row::Row;
use crate::state::baseline;
use crate::state::compare::is_better;

/// The run that is the baseline, and what its workload measured.
#[derive(Clone, Copy)]
pub(super) struct Baseline {
    address: Address,
    /// The runs of the workload, the newest first.
    runs: Rows,
    /// The run that is shown.
    own: i64,
    /// The baseline's number; nothing while there is none.
    pub(super) run: Memo<Option<i64>>,
    /// The results of the workload, while there is a baseline.
    results: Rows,
}

impl Baseline {
    /// The one in this page's address; `here` are the conditions that name the workload.
    pub(super) fn in_address(address: Address, here: &str, own: &str) -> Self {
        let run = Memo::new(move |_| address.query.with(baseline::read));
        let asked =
            format!("/api/v_runs?{here}&select=run_number,created_at,status&order=run_number.desc&limit=200");
        let results = format!("/api/v_benchmark_results?{here}&limit=5000");
        Self {
            address,
            runs: use_rows(move || Some(asked.clone())),
            own: own.parse().unwrap_or(0),
            run,
            results: use_rows(move || run.get().map(|_| results.clone())),
        }
    }

    fn pin(self, run: Option<i64>) {
        self.address.change(|query| baseline::write(run, query));
    }

    /// The head of the differences, while there is a baseline.
    pub(super) fn head(self) -> Option<AnyView> {
        let run = self.run.get()?;
        Some(view! { <th scope="col" class="number">{format!("vs run {run} ")}<span class="unit">"%"</span></th> }.into_any())
    }

    /// The difference of a result's figure, while there is a baseline.
    pub(super) fn cell(self, result: Option<&Row>, metric: &str) -> Option<AnyView> {
        let run = self.run.get()?;
        let delta = self
            .results
            .rows
            .with(|rows| baseline::delta(rows.as_deref().unwrap_or_default(), run, result?, metric));
        let Some(delta) = delta else {
            let why = "one of the two runs did not measure this scenario";
            return Some(
                view! { <td class="number"><span class="quiet" title=why>"–"</span></td> }.into_any(),
            );
        };
        let worth = match (delta.noise, is_better(metric, delta.share)) {
            (true, _) => "no more than the 95 % interval over repeated runs",
            (false, Some(true)) => "better than the baseline",
            (false, Some(false)) => "worse than the baseline",
            (false, None) => "another than the baseline's",
        };
        let title = format!("{} %: {worth}", full(delta.share * 100.0));
        Some(view! { <td class="number" data-testid="delta" title=title><span class:delta-noise=delta.noise>{signed_percent(delta.share)}</span></td> }.into_any())
    }
}

/// The choice of the baseline.
#[component]
pub(super) fn Pin(baseline: Baseline) -> impl IntoView {
    let options = move || {
        let now = now_ms();
        let other = |row: &Row| {
            row.whole("run_number")
                .filter(|run| *run != baseline.own)
                .map(|run| (run, row.millis("created_at")))
        };
        baseline.runs.all().iter().filter_map(other).map(|(run, at)| {
            let words = at.map_or_else(String::new, |at| format!(", {}", moment(at, now)));
            view! { <option value=run.to_string() selected=move || baseline.run.get() == Some(run)>{format!("run {run}{words}")}</option> }
        })
        .collect_view()
    };
    let others = move || baseline.runs.rows.with(|rows| rows.as_ref().is_some_and(|rows| rows.len() > 1));
    view! {
        <Show when=others>
            <label class="filter"><b>"baseline"</b>
                <select class="filter-input" data-testid="baseline" on:change=move |e| baseline.pin(event_target_value(&e).parse().ok())>
                    <option value="" selected=move || baseline.run.get().is_none()>"none"</option>
                    {options}
                </select>
            </label>
        </Show>
    }
    .into_any()
}
