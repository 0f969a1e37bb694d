//! The leaderboard's view: every scenario in every category.

use super::{History, ViewDef, column, shown};
use crate::projections::models::leaderboard::{BoardRow, CATEGORIES, QUALITY};
use crate::projections::table::Row;
use crate::projections::text::{Column, Kind};

/// The leaderboard's columns that are not in the database: they follow from the rows that a query leaves.
pub const RANK_COLUMNS: [(&str, Kind); 2] = [("rank", Kind::Int), ("shared", Kind::Bool)];

/// Every scenario in every category (quality with what it was measured by, which parts its ranks), without and with the runs that are doubted (`suspicious`), not yet ranked.
pub(super) fn leaderboard() -> ViewDef {
    let figures = CATEGORIES.map(|category| category.metric);
    let computed = [
        "entry",
        "setup",
        "sound_job",
        "sound_recorded_at",
        "all_job",
        "all_recorded_at",
        "visibility",
        "position",
    ];
    let is_mean = |name: &str| name.starts_with("sound_") || name.starts_with("all_");
    let own: Vec<Column> = shown(BoardRow::columns())
        .into_iter()
        .filter(|c| !is_mean(&c.name) && !computed.contains(&c.name.as_str()))
        .collect();
    let names = |category: &str| -> String {
        let of = |c: &Column| match c.name.as_str() {
            "question_set" if category != QUALITY => "null::text as question_set".to_owned(),
            name => name.to_owned(),
        };
        own.iter().map(of).collect::<Vec<_>>().join(", ")
    };
    let mut branches = Vec::new();
    for doubted in [false, true] {
        let which = if doubted { "all" } else { "sound" };
        let means: Vec<String> =
            CATEGORIES.iter().map(|c| format!("{} as {}", c.value_column(doubted), c.metric)).collect();
        for category in CATEGORIES {
            branches.push(format!(
                "select '{}'::text as category, '{}'::text as metric, {doubted} as suspicious, entry, setup, {},
                        {} as value, {} as interval_half, {}::bigint as runs, {},
                        {which}_job as job, {which}_recorded_at as recorded_at, position, visibility, owner
                   from {{leaderboard}}",
                category.word,
                category.metric,
                names(category.word),
                category.value_column(doubted),
                category.half_column(doubted),
                category.runs_column(doubted),
                means.join(", "),
            ));
        }
    }
    let mut columns = vec![column("category", Kind::Text), column("metric", Kind::Text)];
    columns.extend(RANK_COLUMNS.map(|(name, kind)| column(name, kind)));
    columns.extend([
        column("value", Kind::Float),
        column("interval_half", Kind::Float),
        column("runs", Kind::Int),
    ]);
    columns.extend(own);
    columns.extend(figures.map(|name| column(name, Kind::Float)));
    columns.extend([
        column("suspicious", Kind::Bool),
        column("job", Kind::Text),
        column("recorded_at", Kind::Time),
        column("position", Kind::Int),
        column("visibility", Kind::Text),
    ]);
    ViewDef {
        name: "v_leaderboard",
        columns,
        tables: vec!["leaderboard"],
        select: branches.join(" union all "),
        invoker: true,
        // Ranked anew from the results that held then.
        history: Some(History::Versions("v_benchmark_results_history")),
        served: true,
        ranked: true,
    }
}
