//! The leaderboard of answers' quality.

use super::{History, ViewDef, column, selected, shown};
use crate::projections::models::external_outputs::{ExternalRow, Kyai};
use crate::projections::table::Row;
use crate::projections::text::{Column, Kind};

/// Candidates by their best score on the same questions with the same prompts and the same judge; equal scores by latency. What was
/// simulated, doubted or did not complete has no rank.
pub(super) fn leaderboard() -> [ViewDef; 2] {
    let then = ranks(|row| {
        let at = "(select nullif(current_setting('app.as_of', true), '')::bigint)";
        format!("{row}.valid_from <= {at} and ({row}.valid_to is null or {row}.valid_to > {at})")
    });
    let now = ranks(|row| format!("{row}.valid_to is null"));
    [
        ViewDef { name: "v_kyai_leaderboard_history", served: false, ..then },
        ViewDef { history: Some(History::Versions("v_kyai_leaderboard_history")), ..now },
    ]
}

/// The ranks among the rows for which `holds` is the condition.
fn ranks(holds: impl Fn(&str) -> String) -> ViewDef {
    let own: Vec<Column> = shown(ExternalRow::<Kyai>::columns())
        .into_iter()
        .filter(|c| {
            !matches!(c.name.as_str(), "valid_from" | "valid_to" | "tool_argv" | "simulated" | "imported")
        })
        .collect();
    let same = "dataset, dataset_sha256, generation_prompt_sha256, judge_prompt_sha256, judge";
    let order = "kyai_score desc, response_time_avg_ms asc nulls last";
    let mut columns = vec![column("rank", Kind::Int)];
    columns.extend(own.clone());
    let names = selected(&own, "b.");
    ViewDef {
        name: "v_kyai_leaderboard",
        select: format!(
            "select rank() over (partition by {same} order by {order}) as rank, {names}, 0::bigint as valid_from,
                    null::bigint as valid_to
               from (select distinct on ({same}, model_code, framework_code, framework_version, quantization) k.*
                       from {{kyai_outputs}} k
                      where {} and not k.simulated
                        and exists (select 1 from {{benchmark_results}} r
                                     where r.job = k.job and {} and r.status = 'completed'
                                       and not r.suspicious)
                      order by {same}, model_code, framework_code, framework_version, quantization, {order},
                               position) b",
            holds("k"),
            holds("r")
        ),
        columns,
        tables: vec!["kyai_outputs", "benchmark_results"],
        invoker: true,
        history: None,
        served: true,
        ranked: false,
    }
}
