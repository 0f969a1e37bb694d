//! A query as SQL: names from the whitelist only, every value bound.

use super::grammar::{Node, Operator};
use super::params::{AS_OF, Query};
use super::{counts, past};
use crate::auth::Visibility;
use crate::projections::Column;
use crate::projections::views::{History, ViewDef};

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

/// The rows of a query of which is known how many it has without its limits.
pub fn rows_of(view: &ViewDef, visibility: &Visibility, query: &Query<'_>, total: Option<i64>) -> Statement {
    let orders = orders(view, query);
    let within = counts::Within::of(view, query).filter(|_| !orders.is_empty());
    let Some(within) = within.filter(|within| total.is_some_and(|total| total <= within.few())) else {
        return rows(view, visibility, query);
    };
    let needed = needed(query, &orders);
    let mut statement =
        Statement { sql: format!("with few as materialized (select {needed} from "), values: Vec::new() };
    within.rows(&mut statement, visibility);
    statement.sql.push_str(&format!(") select {} from few", selected(query)));
    statement.order(&orders);
    statement.limits(query);
    statement
}

/// The rows of a query.
pub fn rows(view: &ViewDef, visibility: &Visibility, query: &Query<'_>) -> Statement {
    let mut orders = orders(view, query);
    if let Some(most) = pages_of_known_first(&orders, query) {
        if !only_known(orders[0].0, query) {
            return known_first(view, visibility, query, &orders, most);
        }
        // Nothing is without a value here, and the index is read backwards.
        orders[0].1.nulls_first = Some(true);
    }
    let mut statement = Statement { sql: format!("select {} from ", selected(query)), values: Vec::new() };
    statement.source(view, visibility, query);
    statement.order(&orders);
    statement.limits(query);
    statement
}

/// The order that is asked for. Pages must not overlap: rows that are alike in it keep one order among themselves.
fn orders<'q>(view: &'q ViewDef, query: &'q Query<'_>) -> Vec<(&'q Column, Direction)> {
    let mut orders: Vec<(&Column, Direction)> = query
        .order
        .iter()
        .map(|o| (o.column, Direction { descending: o.descending, nulls_first: o.nulls_first }))
        .collect();
    let paged = query.limit.is_some() || query.offset > 0;
    let position = view.columns.iter().find(|c| c.name == "position").filter(|_| paged);
    if let Some(position) = position
        && !orders.iter().any(|(column, _)| column.name == "position")
    {
        orders.push((position, Direction::default()));
    }
    orders
}

/// The columns that are selected or ordered by.
fn needed(query: &Query<'_>, orders: &[(&Column, Direction)]) -> String {
    let mut needed: Vec<&str> = Vec::new();
    let asked = query.select.iter().map(|(_, c)| c.name.as_str()).filter(|name| *name != AS_OF);
    for name in asked.chain(orders.iter().map(|(column, _)| column.name.as_str())) {
        if !needed.contains(&name) {
            needed.push(name);
        }
    }
    needed.iter().map(|name| format!("\"{name}\"")).collect::<Vec<_>>().join(", ")
}

/// What is selected, under the names it is asked for by.
fn selected(query: &Query<'_>) -> String {
    let columns =
        query.select.iter().map(|(alias, c)| format!("{} as \"{alias}\"", expression(c, "", query)));
    columns.collect::<Vec<_>>().join(", ")
}

/// Rows that a page may begin after and still be read from known values first.
const DEEPEST_PAGE: i64 = 10_000;

/// How many rows there are up to the end of the page, where the page is of rows from the greatest value down with those that
/// have none last. An index on the column is read backwards for it, which has those that have none first.
fn pages_of_known_first(orders: &[(&Column, Direction)], query: &Query<'_>) -> Option<i64> {
    let (_, direction) = orders.first()?;
    let most = query.limit?.checked_add(query.offset)?;
    let backwards = direction.descending && direction.nulls_first == Some(false);
    (backwards && query.as_of.is_none() && most <= DEEPEST_PAGE).then_some(most)
}

/// Whether the query's conditions leave no row without a value in a column.
fn only_known(column: &Column, query: &Query<'_>) -> bool {
    query.filter.iter().any(|node| match node {
        Node::Test { column: tested, operator } => {
            tested.name == column.name && !matches!(operator, Operator::Is(_))
        }
        _ => false,
    })
}

/// Such a page: rows with a value, and only where these are too few, those without.
fn known_first(
    view: &ViewDef,
    visibility: &Visibility,
    query: &Query<'_>,
    orders: &[(&Column, Direction)],
    most: i64,
) -> Statement {
    let (by, _) = orders[0];
    let needed = needed(query, orders);
    let backwards = Direction { descending: true, nulls_first: Some(true) };
    let mut statement =
        Statement { sql: format!("with known as materialized (select {needed} from "), values: Vec::new() };
    statement.source(view, visibility, query);
    statement.sql.push_str(&format!(" and \"{}\" is not null", by.name));
    statement.order(&[&[(by, backwards)], &orders[1..]].concat());
    statement.sql.push_str(&format!(" limit {most}), others as (select {needed} from "));
    statement.source(view, visibility, query);
    statement.sql.push_str(&format!(" and \"{}\" is null", by.name));
    statement.order(&orders[1..]);
    statement.sql.push_str(&format!(
        " limit greatest({most} - (select count(*) from known), 0)) \
         select {} from (select * from known union all select * from others) page",
        selected(query)
    ));
    statement.order(orders);
    statement.limits(query);
    statement
}

/// Which way a column is ordered; PostgreSQL's own way where nothing is said.
#[derive(Debug, Clone, Copy, Default)]
struct Direction {
    descending: bool,
    nulls_first: Option<bool>,
}

/// A column of the answer, as the view `of` (with its dot) has it. The position that the rows are of is no column.
pub(super) fn expression(column: &Column, of: &str, query: &Query<'_>) -> String {
    match column.name.as_str() {
        AS_OF => format!("{}::bigint", query.rows_of),
        name => format!("{of}\"{name}\""),
    }
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
    statement.conditions(filter.iter().copied());
    let n = statement.number(limit);
    statement.sql.push_str(&format!(" limit {n}"));
    statement
}

impl Statement {
    pub(super) fn bind(&mut self, value: Value) -> usize {
        self.values.push(value);
        self.values.len()
    }

    /// A whole number, as it is written where it stands.
    pub(super) fn number(&mut self, number: i64) -> String {
        format!("${}::text::bigint", self.bind(Value::Text(Some(number.to_string()))))
    }

    /// Conditions besides those that stand already.
    pub(super) fn conditions<'n, 'v: 'n>(&mut self, nodes: impl IntoIterator<Item = &'n Node<'v>>) {
        for node in nodes {
            self.sql.push_str(" and ");
            self.condition(node);
        }
    }

    fn order(&mut self, orders: &[(&Column, Direction)]) {
        let each = orders.iter().map(|(column, direction)| {
            let way = if direction.descending { "desc" } else { "asc" };
            let nulls = match direction.nulls_first {
                Some(true) => " nulls first",
                Some(false) => " nulls last",
                None => "",
            };
            format!("\"{}\" {way}{nulls}", column.name)
        });
        let each = each.collect::<Vec<_>>().join(", ");
        if !each.is_empty() {
            self.sql.push_str(&format!(" order by {each}"));
        }
    }

    pub(super) fn limits(&mut self, query: &Query<'_>) {
        if let Some(limit) = query.limit {
            let n = self.number(limit);
            self.sql.push_str(&format!(" limit {n}"));
        }
        if query.offset > 0 {
            let n = self.number(query.offset);
            self.sql.push_str(&format!(" offset {n}"));
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
            let n = self.number(position);
            self.sql.push_str(&format!(" and valid_from <= {n} and (valid_to is null or valid_to > {n})"));
        }
        self.conditions(&query.filter);
    }

    /// The condition that the reader may see a row.
    pub(super) fn visible(&mut self, visibility: &Visibility) {
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

    pub(super) fn condition(&mut self, node: &Node<'_>) {
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
mod tests;
