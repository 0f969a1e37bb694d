//! A query as SQL: names from the whitelist only, every value bound.

use super::grammar::{Node, Operator};
use super::params::{AS_OF, Query};
use super::past;
use crate::auth::Visibility;
use crate::projections::Column;
use crate::projections::views::{History, ViewDef, counts_of};

/// SQL with its values, all of them text that is cast where it stands.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Statement {
    /// The SQL.
    pub sql: String,
    /// The values of `$1`, `$2`, …
    pub values: Vec<Value>,
}

/// A bound value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Value {
    /// Text, or nothing.
    Text(Option<String>),
    /// Several.
    List(Vec<String>),
}

/// The rows of a query.
pub fn rows(view: &ViewDef, visibility: &Visibility, query: &Query<'_>) -> Statement {
    let mut statement = Statement::default();
    let columns: Vec<String> = query
        .select
        .iter()
        .map(|(alias, c)| format!("{} as \"{alias}\"", expression(c, "", query)))
        .collect();
    statement.sql = format!("select {} from ", columns.join(", "));
    statement.source(view, visibility, query);
    let mut orders: Vec<String> = query
        .order
        .iter()
        .map(|o| {
            let direction = if o.descending { "desc" } else { "asc" };
            let nulls = match o.nulls_first {
                Some(true) => " nulls first",
                Some(false) => " nulls last",
                None => "",
            };
            format!("\"{}\" {direction}{nulls}", o.column.name)
        })
        .collect();
    // Pages must not overlap: rows that are alike in the order asked for keep one order among themselves.
    let paged = query.limit.is_some() || query.offset > 0;
    let has_position = view.columns.iter().any(|c| c.name == "position");
    if paged && has_position && !query.order.iter().any(|o| o.column.name == "position") {
        orders.push("\"position\" asc".to_owned());
    }
    if !orders.is_empty() {
        statement.sql.push_str(&format!(" order by {}", orders.join(", ")));
    }
    statement.limits(query);
    statement
}

/// A column of the answer, as the view `of` (with its dot) has it. The position that the rows are of is no column.
pub(super) fn expression(column: &Column, of: &str, query: &Query<'_>) -> String {
    match column.name.as_str() {
        AS_OF => format!("{}::bigint", query.rows_of),
        name => format!("{of}\"{name}\""),
    }
}

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
    let mut statement = Statement { sql: "select count(*) from ".to_owned(), values: Vec::new() };
    statement.source(view, visibility, query);
    statement
}

/// How many rows a query has without its limits, counted up to so many.
pub fn few(view: &ViewDef, visibility: &Visibility, query: &Query<'_>, most: i64) -> Statement {
    let mut statement =
        Statement { sql: "select count(*) from (select 1 from ".to_owned(), values: Vec::new() };
    statement.source(view, visibility, query);
    let n = statement.bind(Value::Text(Some(most.to_string())));
    statement.sql.push_str(&format!(" limit ${n}::text::bigint) few"));
    statement
}

/// Whether an exact count of a query costs no more than one of a few rows.
pub fn is_counted_by_kind(view: &ViewDef, query: &Query<'_>) -> bool {
    counts_by_kind(view, query).is_some()
}

/// The view that says how many rows there are of each kind, where it can answer for this query.
fn counts_by_kind(view: &ViewDef, query: &Query<'_>) -> Option<&'static ViewDef> {
    counts_of(view).filter(|counts| query.as_of.is_none() && counts_all(counts, query))
}

/// Whether a view that says how many rows there are of each kind knows everything that a query filters by.
fn counts_all(counts: &ViewDef, query: &Query<'_>) -> bool {
    let mut names = Vec::new();
    query.filter.iter().for_each(|node| node.names(&mut names));
    names.iter().all(|name| *name != "n" && counts.columns.iter().any(|column| column.name == *name))
}

/// The rows of a table, as JSON, that the reader may see, that were there at a position, and that have changed since.
pub(super) fn changed_since(
    relation: &str,
    visibility: &Visibility,
    position: i64,
    filter: &[&Node<'_>],
    limit: i64,
) -> Statement {
    let mut statement =
        Statement { sql: format!("select to_jsonb(t) from {relation} t where "), values: Vec::new() };
    statement.visible(visibility);
    let n = statement.bind(Value::Text(Some(position.to_string())));
    statement
        .sql
        .push_str(&format!(" and first_position <= ${n}::text::bigint and position > ${n}::text::bigint"));
    for node in filter {
        statement.sql.push_str(" and ");
        statement.condition(node);
    }
    let n = statement.bind(Value::Text(Some(limit.to_string())));
    statement.sql.push_str(&format!(" limit ${n}::text::bigint"));
    statement
}

impl Statement {
    pub(super) fn bind(&mut self, value: Value) -> usize {
        self.values.push(value);
        self.values.len()
    }

    fn limits(&mut self, query: &Query<'_>) {
        if let Some(limit) = query.limit {
            let n = self.bind(Value::Text(Some(limit.to_string())));
            self.sql.push_str(&format!(" limit ${n}::text::bigint"));
        }
        if query.offset > 0 {
            let n = self.bind(Value::Text(Some(query.offset.to_string())));
            self.sql.push_str(&format!(" offset ${n}::text::bigint"));
        }
    }

    pub(super) fn source(&mut self, view: &ViewDef, visibility: &Visibility, query: &Query<'_>) {
        match (query.as_of, view.history, &query.past) {
            (Some(position), Some(History::Folded), Some(tables)) => self.past(view, tables, position),
            (Some(_), Some(History::Versions(history)), _) => self.sql.push_str(&format!("read.{history}")),
            _ => self.sql.push_str(&format!("read.{}", view.name)),
        }
        self.sql.push_str(" where ");
        self.visible(visibility);
        if let (Some(position), Some(History::Versions(_))) = (query.as_of, view.history) {
            let n = self.bind(Value::Text(Some(position.to_string())));
            self.sql.push_str(&format!(
                " and valid_from <= ${n}::text::bigint and (valid_to is null or valid_to > ${n}::text::bigint)"
            ));
        }
        for node in &query.filter {
            self.sql.push_str(" and ");
            self.condition(node);
        }
    }

    /// The condition that the reader may see a row.
    fn visible(&mut self, visibility: &Visibility) {
        let org = self.bind(Value::Text(visibility.org.clone()));
        let user = self.bind(Value::Text(visibility.user.clone()));
        self.sql.push_str(&format!(
            "(visibility = 'public' or (org = ${org}::text and (visibility = 'organization' or \
             (visibility = 'private' and owner <> '' and owner = ${user}::text))))"
        ));
    }

    /// The view's own query over its tables as they were.
    fn past(&mut self, view: &ViewDef, tables: &[past::Table], position: i64) {
        let position = self.bind(Value::Text(Some(position.to_string())));
        let (mut with, mut select) = (Vec::new(), view.select.clone());
        for past::Table { name, relation, changed } in tables {
            let changed = self.bind(Value::Text(Some(changed.clone())));
            with.push(format!(
                "past_{name} as (select * from {relation} where position <= ${position}::text::bigint union all \
                 select * from json_populate_recordset(null::{relation}, ${changed}::text::json))"
            ));
            select = select.replace(&format!("{{{name}}}"), &format!("past_{name}"));
        }
        self.sql.push_str(&format!("(with {} {select}) past", with.join(", ")));
    }

    fn condition(&mut self, node: &Node<'_>) {
        match node {
            Node::And(nodes) => self.join(nodes, " and "),
            Node::Or(nodes) => self.join(nodes, " or "),
            Node::Not(node) => {
                self.sql.push_str("not (");
                self.condition(node);
                self.sql.push(')');
            }
            Node::Test { column, operator } => {
                let (name, kind) = (&column.name, column.kind.sql());
                let condition = match operator {
                    Operator::Compare(sign, value) => {
                        let n = self.bind(Value::Text(Some(value.clone())));
                        format!("\"{name}\" {sign} ${n}::text::{kind}")
                    }
                    Operator::In(values) => {
                        let n = self.bind(Value::List(values.clone()));
                        format!("\"{name}\" = any (${n}::text[]::{kind}[])")
                    }
                    Operator::Is(what) => format!("\"{name}\" is {what}"),
                    Operator::Like(pattern) => {
                        let n = self.bind(Value::Text(Some(pattern.clone())));
                        format!("\"{name}\" like ${n}::text")
                    }
                    Operator::Ilike(pattern) => {
                        let n = self.bind(Value::Text(Some(pattern.clone())));
                        format!("\"{name}\" ilike ${n}::text")
                    }
                    Operator::Contains(json) => {
                        let n = self.bind(Value::Text(Some(json.clone())));
                        format!("\"{name}\" @> ${n}::text::jsonb")
                    }
                };
                self.sql.push_str(&condition);
            }
        }
    }

    fn join(&mut self, nodes: &[Node<'_>], with: &str) {
        self.sql.push('(');
        for (nth, node) in nodes.iter().enumerate() {
            if nth > 0 {
                self.sql.push_str(with);
            }
            self.condition(node);
        }
        self.sql.push(')');
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::auth::Principal;
    use crate::projections::views::served;

    fn statement(raw: &str) -> Option<Statement> {
        let view = served("v_jobs")?;
        let query = Query::parse(view, raw).ok()?;
        Some(rows(view, &Principal::Anonymous.visibility(), &query))
    }

    #[test]
    fn a_query_becomes_sql_with_bound_values() {
        let statement =
            statement("select=job,n:attempt&status=eq.running&order=job.desc.nullslast&limit=5").unwrap();
        assert!(
            statement
                .sql
                .starts_with("select \"job\" as \"job\", \"attempt\" as \"n\" from read.v_jobs where (")
        );
        assert!(statement.sql.contains("\"status\" = $3::text::text order by \"job\" desc nulls last"));
        assert_eq!(statement.values[2], Value::Text(Some("running".into())));
    }

    #[test]
    fn results_are_counted_by_kind_where_the_filters_ask_for_nothing_finer() {
        let view = served("v_benchmark_results").unwrap();
        let counted = |raw: &str| {
            let query = Query::parse(view, raw).unwrap();
            count(view, &Principal::Anonymous.visibility(), &query).sql.contains("result_counts")
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
    }

    proptest! {
        /// Whatever a client writes, the SQL is made of the whitelist: no character of a value ever stands in it.
        #[test]
        fn no_value_reaches_the_sql(marker in "zq[a-z]{6}", before in "[^&=]{0,10}", after in "[^&=]{0,10}") {
            let value = format!("{before}{marker}{after}");
            let encoded: String = url::form_urlencoded::byte_serialize(value.as_bytes()).collect();
            for raw in [
                format!("status=eq.{encoded}"),
                format!("status=in.({encoded},x)"),
                format!("status=like.{encoded}"),
                format!("or=(status.eq.{encoded},job.eq.{encoded})"),
                format!("select={encoded}"),
                format!("order={encoded}"),
                format!("{encoded}=eq.1"),
                format!("select=a{marker}:job"),
            ] {
                if let Some(statement) = statement(&raw) {
                    // An alias is checked to be letters, digits and '_', and stands in quotes.
                    let sql = statement.sql.replace(&format!(" as \"a{marker}\""), "");
                    prop_assert!(!sql.contains(&marker), "{}", statement.sql);
                }
            }
        }
    }
}
