//! `GET /api/v_leaderboard`: who is best, among the results that the reader may see and the filters leave.
//!
//! Scores of quality are ranked among those of the same questions, prompts and judge (`question_set`).
//!
//! An entry is a workload on a server with its best scenario, by the mean of that scenario's runs; ranks are shared where
//! the 95 % intervals over runs overlap ([`events::ranking`]). Simulated runs are left out unless the query asks for
//! them (`simulated=…`), doubted ones unless it says `suspicious=is.true`.

use events::ranking::{Place, places};
use sqlx::{PgConnection, Row};

use super::grammar::{Node, Operator};
use super::params::{Query, column};
use super::sql::{Statement, Value, expression};
use super::view::{bound, refused};
use super::{QueryError, leaderboard_past as past};
use crate::api::Failure;
use crate::auth::Visibility;
use crate::projections::models::leaderboard::CATEGORIES;
use crate::projections::views::{RANK_COLUMNS, ViewDef};

/// The most entries that are ranked at once.
pub(super) const MOST_ENTRIES: usize = 100_000;

/// A page of the ranked entries, and how many there are.
pub(super) struct Ranked {
    /// The rows of the page.
    pub(super) rows: Statement,
    /// How many rows the page has.
    pub(super) page: i64,
    /// How many there are in all.
    pub(super) total: i64,
}

/// Ranks what the query leaves.
///
/// # Errors
/// The query asks what cannot be ranked, or the database does not answer.
pub(super) async fn rank(
    conn: &mut PgConnection,
    view: &ViewDef,
    visibility: &Visibility,
    query: &Query<'_>,
) -> Result<Ranked, Failure> {
    let query = complete(view, query)?;
    if query.as_of.is_some() {
        let word = single(&query.filter, "category")?;
        let category = CATEGORIES.into_iter().find(|c| Some(c.word) == word.as_deref());
        let doubted = single(&query.filter, "suspicious")?.as_deref() == Some("true");
        return past::rank(conn, view, visibility, &query, category.unwrap_or(CATEGORIES[0]), doubted).await;
    }
    let mut statement = Statement {
        sql: "select entry, value, interval_half, question_set from
              (select distinct on (setup) entry, value, interval_half, question_set from "
            .to_owned(),
        values: Vec::new(),
    };
    statement.source(view, visibility, &query);
    statement.sql.push_str(
        " and value is not null order by setup, value desc, scenario_code) best
          order by question_set nulls first, value desc, entry",
    );
    let found = bound(statement).fetch_all(&mut *conn).await.map_err(refused)?;
    if found.len() > MOST_ENTRIES {
        return Err(Failure::unprocessable(
            "too_many_rows",
            format!("there are more than {MOST_ENTRIES} entries to rank"),
            "filter by model, framework or server",
        ));
    }
    let mut entries: Vec<String> = Vec::with_capacity(found.len());
    let mut standings: Vec<Standing> = Vec::with_capacity(found.len());
    for row in &found {
        entries.push(row.try_get(0)?);
        standings.push((row.try_get(3)?, (row.try_get(1)?, row.try_get(2)?)));
    }
    let total = entries.len() as i64;
    let first = query.offset.min(total);
    let last = query.limit.map_or(total, |limit| first.saturating_add(limit).min(total));
    let page = first as usize..last as usize;
    let (mut ranks, mut shared) = (Vec::new(), Vec::new());
    for place in &places_among_alike(&standings)[page.clone()] {
        ranks.push(place.rank.to_string());
        shared.push(place.shared.to_string());
    }
    Ok(Ranked {
        rows: rows(view, visibility, &query, entries[page].to_vec(), ranks, shared),
        page: last - first,
        total,
    })
}

/// What an entry's figure was measured by, where that parts the ranks; the figure, and half its interval's width.
pub(super) type Standing = (Option<String>, (f64, Option<f64>));

/// The places of entries that are sorted by what they were measured by: each is ranked among its like.
pub(super) fn places_among_alike(standings: &[Standing]) -> Vec<Place> {
    let alike = standings.chunk_by(|a, b| a.0 == b.0);
    alike.flat_map(|alike| places(&alike.iter().map(|(_, figure)| *figure).collect::<Vec<_>>())).collect()
}

/// The rows of these entries, in this order, with their ranks.
fn rows(
    view: &ViewDef,
    visibility: &Visibility,
    query: &Query<'_>,
    entries: Vec<String>,
    ranks: Vec<String>,
    shared: Vec<String>,
) -> Statement {
    let columns: Vec<String> = query
        .select
        .iter()
        .map(|(alias, c)| {
            let of = if is_rank(&c.name) { "ranked." } else { "rows." };
            format!("{} as \"{alias}\"", expression(c, of, query))
        })
        .collect();
    let mut statement = Statement::default();
    let lists = [entries, ranks, shared].map(|list| statement.bind(Value::List(list)));
    statement.sql = format!(
        "select {} from unnest(${}::text[], ${}::text[]::bigint[], ${}::text[]::boolean[]) with ordinality
            as ranked (entry, rank, shared, nth) join (select * from ",
        columns.join(", "),
        lists[0],
        lists[1],
        lists[2],
    );
    statement.source(view, visibility, query);
    // The entries of the page alone: they are found by their key.
    statement.sql.push_str(&format!(
        " and entry = any (${}::text[])) rows on rows.entry = ranked.entry order by ranked.nth",
        lists[0]
    ));
    statement
}

fn is_rank(name: &str) -> bool {
    RANK_COLUMNS.iter().any(|(rank, _)| *rank == name)
}

/// The query with what it leaves unsaid: throughput, real runs, undoubted ones.
fn complete<'v>(view: &'v ViewDef, query: &Query<'v>) -> Result<Query<'v>, QueryError> {
    if let Some((name, _)) =
        RANK_COLUMNS.iter().find(|(name, _)| query.filter.iter().any(|n| mentions(n, name)))
    {
        return Err(QueryError::new(
            "bad_filter",
            format!("{name} follows from the rows that the filters leave; it cannot be one"),
            "ask for the first rows with limit",
        ));
    }
    if query.order.iter().any(|order| order.column.name != "rank" || order.descending) {
        return Err(QueryError::new(
            "bad_order",
            "a leaderboard is in the order of its ranks",
            "leave order out; category=eq.… chooses what is ranked by",
        ));
    }
    let mut query = query.clone();
    match single(&query.filter, "category")? {
        Some(word) if CATEGORIES.iter().all(|category| category.word != word) => {
            let words: Vec<&str> = CATEGORIES.iter().map(|category| category.word).collect();
            let shown: String = word.chars().take(100).collect();
            return Err(QueryError::new(
                "unknown_category",
                format!("there is no category {shown:?}"),
                format!("the categories are {}", words.join(", ")),
            ));
        }
        Some(_) => {}
        None => query.filter.push(equals(view, "category", CATEGORIES[0].word)?),
    }
    if single(&query.filter, "suspicious")?.is_none() {
        query.filter.push(equals(view, "suspicious", "false")?);
    }
    if !query.filter.iter().any(|node| mentions(node, "simulated")) {
        query.filter.push(equals(view, "simulated", "false")?);
    }
    Ok(query)
}

fn equals<'v>(view: &'v ViewDef, name: &str, value: &str) -> Result<Node<'v>, QueryError> {
    Ok(Node::Test { column: column(view, name)?, operator: Operator::Compare("=", value.to_owned()) })
}

/// The one value that a column must have, where the query says so; anything but one value is refused.
fn single(filter: &[Node<'_>], name: &str) -> Result<Option<String>, QueryError> {
    let mut values = Vec::new();
    for node in filter.iter().filter(|node| mentions(node, name)) {
        match node {
            Node::Test { operator: Operator::Compare("=", value), .. } => values.push(value.clone()),
            Node::Test { operator: Operator::Is(word @ ("true" | "false")), .. } => {
                values.push((*word).to_owned())
            }
            _ => values.extend([String::new(), String::new()]),
        }
    }
    match values.len() {
        0 => Ok(None),
        1 => Ok(values.pop()),
        _ => Err(QueryError::new(
            "bad_filter",
            format!("a leaderboard has one {name}"),
            format!("write `{name}=eq.…` once, outside of any group"),
        )),
    }
}

pub(super) fn mentions(node: &Node<'_>, name: &str) -> bool {
    match node {
        Node::And(nodes) | Node::Or(nodes) => nodes.iter().any(|node| mentions(node, name)),
        Node::Not(node) => mentions(node, name),
        Node::Test { column, .. } => column.name == name,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::projections::views::served;

    fn asked(raw: &str) -> Result<String, String> {
        let view = served("v_leaderboard").unwrap();
        let query = Query::parse(view, raw).map_err(|e| e.code.to_owned())?;
        let query = complete(view, &query).map_err(|e| e.code.to_owned())?;
        let test = |node: &Node<'_>| match node {
            Node::Test { column, operator: Operator::Compare(_, value) } => {
                format!("{}={value}", column.name)
            }
            Node::Test { column, operator: Operator::Is(word) } => format!("{} is {word}", column.name),
            other => format!("{other:?}"),
        };
        Ok(query.filter.iter().map(test).collect::<Vec<_>>().join(", "))
    }

    #[test]
    fn real_undoubted_throughput_is_ranked_unless_asked_otherwise() {
        assert_eq!(asked("").unwrap(), "category=throughput, suspicious=false, simulated=false");
        assert_eq!(
            asked("category=eq.quality&suspicious=is.true&simulated=is.true").unwrap(),
            "category=quality, suspicious is true, simulated is true"
        );
    }

    #[test]
    fn what_cannot_be_ranked_is_refused() {
        for (raw, code) in [
            ("category=eq.speed", "unknown_category"),
            ("category=in.(throughput,quality)", "bad_filter"),
            ("category=not.eq.quality", "bad_filter"),
            ("or=(category.eq.quality,model_code.eq.m)", "bad_filter"),
            ("category=eq.quality&category=eq.throughput", "bad_filter"),
            ("rank=lte.3", "bad_filter"),
            ("order=value.desc", "bad_order"),
            ("order=rank.desc", "bad_order"),
        ] {
            assert_eq!(asked(raw).unwrap_err(), code, "{raw}");
        }
        assert!(asked("order=rank").is_ok());
    }
}
