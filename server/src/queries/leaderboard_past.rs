//! The leaderboard as it stood at a position of the log: ranked anew from the results that held then, because the table of
//! scenarios knows only how they stand now. Who may see a result is decided as of now.

use std::collections::BTreeMap;

use serde_json::{Value as Json, json};
use sqlx::{PgConnection, Row};

use super::QueryError;
use super::leaderboard::{MOST_ENTRIES, Ranked, Standing, mentions, places_among_alike};
use super::params::Query;
use super::sql::{Statement, Value, expression};
use super::view::{bound, refused};
use crate::api::Failure;
use crate::auth::Visibility;
use crate::projections::models::leaderboard::{CATEGORIES, Category, QUALITY, standing};
use crate::projections::views::{ViewDef, served};

/// The results that are ranked.
const RESULTS: &str = "v_benchmark_results";

/// A scenario of a workload on a server, real or simulated: its runs by their numbers.
type Runs = BTreeMap<i64, Json>;

/// What says which scenario of which workload on which server.
const PLACE: [&str; 6] = ["org", "project_code", "workload_code", "config_code", "hostname", "scenario_code"];

/// Ranks what the query leaves of the results at its position. The query is complete: it names its category.
///
/// # Errors
/// The query filters by what only follows from the runs, or the database does not answer.
pub(super) async fn rank(
    conn: &mut PgConnection,
    view: &ViewDef,
    visibility: &Visibility,
    query: &Query<'_>,
    category: Category,
    doubted: bool,
) -> Result<Ranked, Failure> {
    let results = served(RESULTS).ok_or_else(|| Failure::not_found("no_such_view", RESULTS, ""))?;
    let statement = results_then(results, visibility, query)?;
    let found = bound(statement).fetch_all(&mut *conn).await.map_err(refused)?;
    if found.len() > MOST_ENTRIES {
        return Err(Failure::unprocessable(
            "too_many_rows",
            format!("there are more than {MOST_ENTRIES} results to rank"),
            "filter by model, framework or server",
        ));
    }
    let mut scenarios: BTreeMap<String, Runs> = BTreeMap::new();
    for row in &found {
        let result: Json = row.try_get(0)?;
        let entry = key(&result, &PLACE);
        scenarios.entry(entry).or_default().insert(result["run_number"].as_i64().unwrap_or(0), result);
    }
    // The best scenario of each setup; of two alike, the one that comes first by its code.
    let mut best: BTreeMap<String, (f64, Json)> = BTreeMap::new();
    for runs in scenarios.values() {
        let Some((value, row)) = line(runs, category, doubted) else { continue };
        let setup = key(&row, &PLACE[..5]);
        if best.get(&setup).is_none_or(|(old, _)| value > *old) {
            best.insert(setup, (value, row));
        }
    }
    let mut ranked: Vec<(f64, Json)> = best.into_values().collect();
    let asked = |row: &Json| row["question_set"].as_str().map(str::to_owned);
    ranked.sort_by(|(a, one), (b, other)| {
        asked(one)
            .cmp(&asked(other))
            .then_with(|| b.total_cmp(a))
            .then_with(|| key(one, &PLACE).cmp(&key(other, &PLACE)))
    });
    let standings: Vec<Standing> =
        ranked.iter().map(|(value, row)| (asked(row), (*value, row["interval_half"].as_f64()))).collect();
    for (place, (_, row)) in places_among_alike(&standings).iter().zip(&mut ranked) {
        (row["rank"], row["shared"]) = (json!(place.rank), json!(place.shared));
    }
    let total = ranked.len() as i64;
    let first = query.offset.min(total);
    let last = query.limit.map_or(total, |limit| first.saturating_add(limit).min(total));
    let page: Vec<Json> = ranked.drain(first as usize..last as usize).map(|(_, row)| row).collect();
    Ok(Ranked { rows: rows(view, query, page), page: last - first, total })
}

/// The results at the position, with the query's filters but for those that choose what is ranked.
fn results_then(
    results: &ViewDef,
    visibility: &Visibility,
    query: &Query<'_>,
) -> Result<Statement, QueryError> {
    let mut then = query.clone();
    then.filter.retain(|node| !mentions(node, "category") && !mentions(node, "suspicious"));
    let mut names = Vec::new();
    then.filter.iter().for_each(|node| node.names(&mut names));
    let known = |name: &str| name != "position" && results.columns.iter().any(|c| c.name == name);
    if let Some(name) = names.iter().find(|name| !known(name)) {
        return Err(QueryError::new(
            "bad_filter",
            format!("with as_of a leaderboard is filtered by what results have, not by {name}"),
            "leave that filter out, or as_of",
        ));
    }
    let mut statement = Statement { sql: "select to_jsonb(r) from ".to_owned(), values: Vec::new() };
    statement.source(results, visibility, &then);
    statement.sql = statement.sql.replacen(" from read.", " from (select * from read.", 1);
    statement
        .sql
        .push_str(&format!(" and status = 'completed' and not imported limit {}) r", MOST_ENTRIES + 1));
    Ok(statement)
}

/// These columns of a result and whether it was simulated, as one text that sorts.
fn key(result: &Json, columns: &[&str]) -> String {
    let mut parts: Vec<&str> = columns.iter().map(|c| result[*c].as_str().unwrap_or_default()).collect();
    parts.push(if result["simulated"] == true { "true" } else { "false" });
    parts.join("\u{1f}")
}

/// A scenario's row of the leaderboard, and the mean it is ranked by; nothing where no run has the figure.
fn line(runs: &Runs, category: Category, doubted: bool) -> Option<(f64, Json)> {
    let is_doubted = |run: &&Json| run["suspicious"] == true;
    let counted: Vec<&Json> = runs.values().filter(|run| doubted || !is_doubted(run)).collect();
    let newest = counted.last()?;
    // What its quality was measured by, in its newest run that was; scores of other questions are no repeats.
    let asked = runs.values().rev().map(|run| &run["question_set"]).find(|set| !set.is_null());
    let of = |category: Category| {
        let alike = |run: &&&Json| category.word != QUALITY || asked == Some(&run["question_set"]);
        let figures = counted.iter().filter(alike).filter_map(|run| run[category.metric].as_f64());
        standing(&figures.collect::<Vec<f64>>())
    };
    let (mean, half, number) = of(category);
    let mut row = (*newest).clone();
    row["category"] = json!(category.word);
    row["metric"] = json!(category.metric);
    (row["value"], row["interval_half"], row["runs"]) = (json!(mean), json!(half), json!(number));
    row["question_set"] = json!(asked.filter(|_| category.word == QUALITY));
    row["suspicious"] = json!(doubted);
    row["doubted_runs"] = json!(runs.values().filter(is_doubted).count());
    row["position"] = json!(runs.values().filter_map(|run| run["position"].as_i64()).max());
    for category in CATEGORIES {
        row[category.metric] = json!(of(category).0);
    }
    Some((mean?, row))
}

/// The page's rows as SQL, so that every format writes them as it writes any others.
fn rows(view: &ViewDef, query: &Query<'_>, page: Vec<Json>) -> Statement {
    let page: Vec<Json> = page
        .into_iter()
        .enumerate()
        .map(|(nth, mut row)| {
            row["nth"] = json!(nth);
            row
        })
        .collect();
    let types: Vec<String> =
        view.columns.iter().map(|c| format!("\"{}\" {}", c.name, c.kind.sql())).collect();
    let columns: Vec<String> = query
        .select
        .iter()
        .map(|(alias, c)| format!("{} as \"{alias}\"", expression(c, "", query)))
        .collect();
    let mut statement = Statement::default();
    let n = statement.bind(Value::Text(Some(Json::from(page).to_string())));
    statement.sql = format!(
        "select {} from jsonb_to_recordset(${n}::text::jsonb) as ranked (nth bigint, {}) order by ranked.nth",
        columns.join(", "),
        types.join(", ")
    );
    statement
}
