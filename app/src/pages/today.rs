//! How the day went: the jobs that ended since midnight, counted by the control plane, not by the few that are listed.

use leptos::prelude::*;

use crate::browser::page::Page;
use crate::browser::remote::{Rows, keep_live, use_rows_counted};
use crate::format::{count, midnight};
use crate::state::live;

/// What is counted of the day: the word, the view, and what its rows fulfil.
const COUNTED: [(&str, &str, &str); 4] = [
    ("completed", "v_jobs", "status=eq.completed"),
    ("failed", "v_jobs", "status=eq.failed"),
    ("flagged", "v_benchmark_results", "suspicious=is.true&imported=is.false"),
    ("simulated", "v_benchmark_results", "simulated=is.true&imported=is.false"),
];

/// What ended today, in words; `now` says which day it is (milliseconds since 1970).
#[component]
pub(super) fn Today(now: RwSignal<f64>) -> impl IntoView {
    let org = Page::expect().org_now();
    let midnight = Memo::new(move |_| midnight(now.get()));
    let counted = COUNTED.map(|(word, view, which)| {
        let since =
            move || format!("/api/{view}?select=job&{which}&finished_at=gte.{}&limit=1", midnight.get());
        let rows = use_rows_counted(move || Some(since()));
        if !org.is_empty() {
            let topics = vec![format!("{org}:job")];
            keep_live(rows, topics, |_, _| false, |e| live::kind(e) == "job");
        }
        (word, rows)
    });
    let words = move || {
        let totals = counted.each_ref().map(|(word, rows): &(&str, Rows)| (*word, rows.total.get()));
        words(&totals).map(|words| format!("today {words}"))
    };
    view! { <span class="meta" data-testid="today">{words}</span> }.into_any()
}

/// What there is of each, the first always; nothing before all is counted.
fn words(counts: &[(&str, Option<usize>)]) -> Option<String> {
    let counts: Option<Vec<(&str, usize)>> = counts.iter().map(|(word, n)| Some((*word, (*n)?))).collect();
    let said = counts?.into_iter().enumerate().filter(|(nth, (_, n))| *nth == 0 || *n > 0);
    Some(said.map(|(_, (word, n))| format!("{} {word}", count(n as i64))).collect::<Vec<_>>().join(", "))
}

#[cfg(test)]
mod tests {
    use super::words;

    #[test]
    fn the_day_is_told_once_all_of_it_is_counted() {
        let day = |n: [Option<usize>; 4]| {
            let names = ["completed", "failed", "flagged", "simulated"];
            words(&names.into_iter().zip(n).collect::<Vec<_>>())
        };
        let told = day([Some(38), Some(1), Some(3), Some(0)]);
        assert_eq!(told.as_deref(), Some("38 completed, 1 failed, 3 flagged"));
        assert_eq!(day([Some(0); 4]).as_deref(), Some("0 completed"));
        assert_eq!(day([Some(38), None, Some(3), Some(0)]), None, "half a tally is a wrong one");
    }
}
