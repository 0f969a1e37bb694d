//! How many rows a query has. Exact counts of results and jobs come from tallies, as far as these know what is asked
//! for; what they do not know is counted in indexes.

use super::grammar::{Node, Operator};
use super::params::Query;
use super::sql::{Statement, Value};
use crate::auth::Visibility;
use crate::projections::models::figure_counts::{begins, figure, hour, least, stretch};
use crate::projections::views::{ViewDef, by_kind, counts_of, figure_counts_of};
use crate::projections::{Column, Kind};

/// How many rows a query has within its limits: what a page holds.
pub fn extent(view: &ViewDef, visibility: &Visibility, query: &Query<'_>) -> Statement {
    let mut statement =
        Statement { sql: "select count(*) from (select 1 from ".to_owned(), values: Vec::new() };
    statement.source(view, visibility, query);
    statement.limits(query);
    statement.sql.push_str(") page");
    statement
}

/// How the planner would read a query without its limits: it guesses the number of rows.
pub fn plan(view: &ViewDef, visibility: &Visibility, query: &Query<'_>) -> Statement {
    let mut statement =
        Statement { sql: "explain (format json) select 1 from ".to_owned(), values: Vec::new() };
    statement.source(view, visibility, query);
    statement
}

/// How many rows a query has without its limits.
pub fn count(view: &ViewDef, visibility: &Visibility, query: &Query<'_>) -> Statement {
    if let Some(counts) = counts_by_kind(view, query) {
        let mut statement =
            Statement { sql: "select coalesce(sum(n), 0)::bigint from ".to_owned(), values: Vec::new() };
        statement.source(counts, visibility, query);
        return statement;
    }
    if let Some(bounded) = Bounded::of(view, query)
        && let Some(kinds) = Kinds::of(view)
    {
        return bounded.count(&kinds, visibility);
    }
    let mut statement = Statement { sql: "select count(*) from ".to_owned(), values: Vec::new() };
    match Within::of(view, query) {
        Some(within) => within.rows(&mut statement, visibility),
        None => statement.source(view, visibility, query),
    }
    statement
}

/// A query whose conditions leave out some kinds of rows.
pub(super) struct Within<'q> {
    kinds: Kinds,
    of_kinds: Vec<&'q Node<'q>>,
    others: Vec<&'q Node<'q>>,
}

impl<'q> Within<'q> {
    pub(super) fn of(view: &ViewDef, query: &'q Query<'q>) -> Option<Self> {
        let kinds = Kinds::of(view).filter(|_| query.as_of.is_none())?;
        let (of_kinds, others): (Vec<_>, Vec<_>) =
            query.filter.iter().partition(|node| knows(kinds.counts, node));
        (!of_kinds.is_empty()).then_some(Self { kinds, of_kinds, others })
    }

    /// The most rows that are rather found by their kinds, and then sorted, than looked for in the order that is asked for:
    /// where there are few, nearly all rows that there are would be looked at. With bounds on figures besides, more rows are
    /// looked at than are found; other conditions may have no index at all.
    pub(super) fn few(&self) -> i64 {
        let bounded = |node: &&Node<'_>| matches!(node, Node::Test { column, operator: Operator::Compare(..) } if figure(&column.name).is_some());
        match self.others.iter().all(bounded) {
            _ if self.others.is_empty() => 5_000,
            true => 500,
            false => 0,
        }
    }

    /// The relation with its rows, and the conditions on them.
    pub(super) fn rows(&self, statement: &mut Statement, visibility: &Visibility) {
        statement.within_kinds(&self.kinds, visibility, &self.others, &self.of_kinds);
    }
}

/// How many rows a query has without its limits, counted up to so many.
pub fn few(view: &ViewDef, visibility: &Visibility, query: &Query<'_>, most: i64) -> Statement {
    let mut statement =
        Statement { sql: "select count(*) from (select 1 from ".to_owned(), values: Vec::new() };
    statement.source(view, visibility, query);
    let n = statement.number(most);
    statement.sql.push_str(&format!(" limit {n}) few"));
    statement
}

/// Whether an exact count of a query costs no more than one of a few rows.
pub fn is_tallied(view: &ViewDef, query: &Query<'_>) -> bool {
    counts_by_kind(view, query).is_some() || Bounded::of(view, query).is_some()
}

/// The view that says how many rows there are of each kind, where it can answer for this query.
fn counts_by_kind(view: &ViewDef, query: &Query<'_>) -> Option<&'static ViewDef> {
    counts_of(view)
        .filter(|counts| query.as_of.is_none() && query.filter.iter().all(|node| knows(counts, node)))
}

/// Whether a view of counts knows everything in a condition.
fn knows(counts: &ViewDef, node: &Node<'_>) -> bool {
    let mut names = Vec::new();
    node.names(&mut names);
    let own = ["n", "kind_no", "group_no", "figure", "stretch"];
    names.iter().all(|name| !own.contains(name) && counts.columns.iter().any(|column| column.name == *name))
}

/// The view of the rows with their kinds, and that of the kinds.
struct Kinds {
    rows: &'static ViewDef,
    counts: &'static ViewDef,
}

impl Kinds {
    fn of(view: &ViewDef) -> Option<Self> {
        Some(Self { rows: by_kind(view)?, counts: counts_of(view)? })
    }
}

/// A query with bounds on one figure, all of whose other conditions the counts by stretches know: those stretches that
/// lie within the bounds are summed, and rows are counted only in those that a bound cuts through.
struct Bounded<'q> {
    counts: &'static ViewDef,
    figure: i64,
    column: &'q Column,
    bounds: Vec<&'q Node<'q>>,
    others: Vec<&'q Node<'q>>,
    /// The first and the last stretch of those within, where the bounds are on this side.
    within: (Option<i64>, Option<i64>),
    /// The stretches that are cut.
    cut: Vec<i64>,
}

impl<'q> Bounded<'q> {
    fn of(view: &ViewDef, query: &'q Query<'q>) -> Option<Self> {
        let counts = figure_counts_of(view).filter(|_| query.as_of.is_none())?;
        let (others, bounds): (Vec<_>, Vec<_>) = query.filter.iter().partition(|node| knows(counts, node));
        let Node::Test { column, .. } = bounds.first()? else { return None };
        let figure = figure(&column.name)?;
        let (mut first, mut last) = (None::<i64>, None::<i64>);
        let mut cut = Vec::new();
        for node in &bounds {
            let Node::Test { column: bounded, operator: Operator::Compare(sign, value) } = node else {
                return None;
            };
            if bounded.name != column.name {
                return None;
            }
            let (place, edge) = place(column.kind, value)?;
            // Whether the stretch that the bound lies in is wholly on its side, or wholly on the other.
            let cuts = match (*sign, edge) {
                (">=" | "<", Edge::Least | Edge::Only) | (">" | "<=", Edge::Only) => None,
                (">" | ">=" | "<" | "<=", _) => Some(place),
                _ => return None,
            };
            match *sign {
                ">=" if cuts.is_none() => first = first.max(Some(place)),
                ">" | ">=" => first = first.max(Some(place + 1)),
                "<=" if cuts.is_none() => last = Some(last.map_or(place, |last| last.min(place))),
                _ => last = Some(last.map_or(place - 1, |last| last.min(place - 1))),
            }
            cut.extend(cuts);
        }
        cut.sort_unstable();
        cut.dedup();
        Some(Self { counts, figure, column, bounds, others, within: (first, last), cut })
    }

    fn count(&self, kinds: &Kinds, visibility: &Visibility) -> Statement {
        let mut statement = Statement { sql: "select (".to_owned(), values: Vec::new() };
        statement.sql.push_str(&format!("(select coalesce(sum(n), 0) from read.{} where ", self.counts.name));
        statement.visible(visibility);
        let figure = statement.number(self.figure);
        statement.sql.push_str(&format!(" and figure = {figure}"));
        for (stretch, sign) in [(self.within.0, ">="), (self.within.1, "<=")] {
            let Some(stretch) = stretch else { continue };
            let n = statement.number(stretch);
            statement.sql.push_str(&format!(" and stretch {sign} {n}"));
        }
        statement.conditions(self.others.iter().copied());
        statement.sql.push(')');
        for stretch in &self.cut {
            statement.sql.push_str(" + (select count(*) from ");
            statement.within_kinds(kinds, visibility, &self.bounds, &[]);
            let (name, kind) = (&self.column.name, self.column.kind);
            for (stretch, sign) in [(*stretch, ">="), (stretch + 1, "<")] {
                let Some(value) = start(kind, stretch) else { continue };
                let n = statement.bind(Value::Text(Some(value)));
                statement.sql.push_str(&format!(" and \"{name}\" {sign} ${n}::text::{}", kind.sql()));
            }
            statement.of_kinds(kinds, visibility, &self.others);
            statement.sql.push(')');
        }
        statement.sql.push_str(")::bigint");
        statement
    }
}

/// Where a value lies in its stretch.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Edge {
    /// It is the least.
    Least,
    /// It is the only one.
    Only,
    /// Elsewhere.
    Inside,
}

/// The stretch that a value lies in, and where in it.
fn place(kind: Kind, value: &str) -> Option<(i64, Edge)> {
    let (place, is_least) = match kind {
        Kind::Time => {
            let time = value.parse().ok()?;
            let hour = hour(time);
            (hour, begins(hour) == Some(time))
        }
        _ => {
            let number: f64 = value.parse().ok()?;
            let place = stretch(number);
            if place == 0 {
                return Some((place, Edge::Only));
            }
            (place, least(place) == number)
        }
    };
    Some((place, if is_least { Edge::Least } else { Edge::Inside }))
}

/// The least value of a stretch, as PostgreSQL reads it; `None` beyond all values.
fn start(kind: Kind, stretch: i64) -> Option<String> {
    match kind {
        Kind::Time => begins(stretch).map(|time| time.to_string()),
        _ => Some(least(stretch)).filter(|number| !number.is_nan()).map(|number| number.to_string()),
    }
}

impl Statement {
    /// Rows that some conditions leave, of the kinds that others leave: there are few kinds, and indexes have the figures
    /// with the kinds.
    fn within_kinds(
        &mut self,
        kinds: &Kinds,
        visibility: &Visibility,
        conditions: &[&Node<'_>],
        of_kinds: &[&Node<'_>],
    ) {
        self.sql.push_str(&format!("read.{} where ", kinds.rows.name));
        self.visible(visibility);
        self.conditions(conditions.iter().copied());
        self.of_kinds(kinds, visibility, of_kinds);
    }

    /// The condition that a row is of a kind that these leave.
    fn of_kinds(&mut self, kinds: &Kinds, visibility: &Visibility, conditions: &[&Node<'_>]) {
        if conditions.is_empty() {
            return;
        }
        self.sql.push_str(&format!(" and kind_no in (select kind_no from read.{} where ", kinds.counts.name));
        self.visible(visibility);
        self.conditions(conditions.iter().copied());
        self.sql.push(')');
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::auth::Principal;
    use crate::projections::views::served;

    #[test]
    fn results_are_counted_by_kind_where_the_filters_ask_for_nothing_finer() {
        let view = served("v_benchmark_results").unwrap();
        let counted = |raw: &str| {
            let query = Query::parse(view, raw).unwrap();
            count(view, &Principal::Anonymous.visibility(), &query).sql.starts_with("select coalesce(sum(n)")
        };
        assert!(
            counted("") && counted("or=(status.eq.completed,not.and(model_code.like.x*,concurrency.gt.4))")
        );
        for finer in [
            "run_number=eq.1",
            "or=(status.eq.completed,energy_j.gt.1)",
            "as_of=5",
            "status=eq.completed&as_of=5",
        ] {
            assert!(!counted(finer), "{finer}");
        }
        let raw = "model_code=eq.m&status=eq.completed&ttft_p99_ms=lt.250&tpot_p99_ms=lt.9";
        let within = count(view, &Principal::Anonymous.visibility(), &Query::parse(view, raw).unwrap()).sql;
        assert!(
            within.contains("\"ttft_p99_ms\" <") && within.contains("kind_no in (select kind_no"),
            "{within}"
        );
        let jobs = served("v_jobs").unwrap();
        let query = Query::parse(jobs, "status=in.(queued,running)&config_code=eq.h100x8").unwrap();
        assert!(count(jobs, &Principal::Anonymous.visibility(), &query).sql.contains("read.v_job_counts"));
    }

    fn sql(raw: &str) -> Statement {
        let view = served("v_benchmark_results").unwrap();
        count(view, &Principal::Anonymous.visibility(), &Query::parse(view, raw).unwrap())
    }

    #[test]
    fn rows_are_counted_only_in_the_stretches_that_a_bound_cuts_through() {
        for (raw, cut) in [
            ("ttft_p99_ms=lt.250", 1),
            ("ttft_p99_ms=lt.256", 0),
            ("ttft_p99_ms=lte.256", 1),
            ("ttft_p99_ms=gt.256", 1),
            ("ttft_p99_ms=gte.256&model_code=eq.m&suspicious=is.false", 0),
            ("ttft_p99_ms=gt.10&ttft_p99_ms=lt.300", 2),
            ("ttft_p99_ms=gt.299&ttft_p99_ms=lt.300", 1),
            ("error_rate_pct=lte.0", 0),
            ("error_rate_pct=gt.0", 0),
            ("finished_at=gte.2026-01-31", 0),
            ("finished_at=gte.2026-01-31T08:15:00Z&status=eq.completed", 1),
        ] {
            let sql = sql(raw).sql;
            assert!(sql.contains("read.v_benchmark_result_figure_counts"), "{raw}: {sql}");
            assert_eq!(sql.matches("read.v_benchmark_results_by_kind").count(), cut, "{raw}: {sql}");
        }
    }

    #[test]
    fn few_rows_are_found_by_their_kinds_where_nothing_else_has_to_be_looked_through() {
        let view = served("v_benchmark_results").unwrap();
        for (raw, few) in [
            ("model_code=eq.m&framework_code=eq.f", Some(5_000)),
            ("model_code=eq.m&ttft_p99_ms=lt.250", Some(500)),
            ("model_code=eq.m&image_size=eq.512x512", Some(0)),
            ("ttft_p99_ms=lt.250", None),
            ("model_code=eq.m&as_of=5", None),
        ] {
            let query = Query::parse(view, raw).unwrap();
            assert_eq!(Within::of(view, &query).map(|within| within.few()), few, "{raw}");
        }
    }

    #[test]
    fn other_bounds_are_counted_in_rows() {
        for raw in [
            "ttft_p99_ms=eq.250",
            "ttft_p99_ms=not.lt.250",
            "ttft_p99_ms=lt.250&tpot_p99_ms=lt.10",
            "ttft_p99_ms=lt.250&run_number=eq.1",
            "or=(ttft_p99_ms.lt.250,status.eq.completed)",
            "ttft_p99_ms=lt.250&as_of=5",
            "energy_j=gt.1",
        ] {
            assert!(!sql(raw).sql.contains("figure_counts"), "{raw}");
        }
    }
}
