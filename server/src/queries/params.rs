//! A query string of PostgREST's dialect, read against a view's columns.

use std::sync::LazyLock;

use events::Timestamp;

use super::QueryError;
use super::grammar::{self, Node};
use super::past;
use crate::clock;
use crate::projections::views::ViewDef;
use crate::projections::{Column, Kind};

/// The most columns, orderings and tests one query may name.
const MOST_NAMED: usize = 400;
/// The longest query string, bytes.
const LONGEST: usize = 16 * 1024;

/// What is asked of a view.
#[derive(Debug, Clone, PartialEq)]
pub struct Query<'v> {
    /// The columns of the answer, each under the name it is asked for.
    pub select: Vec<(String, &'v Column)>,
    /// Every test, all of which must hold.
    pub filter: Vec<Node<'v>>,
    /// The order.
    pub order: Vec<Order<'v>>,
    /// The most rows.
    pub limit: Option<i64>,
    /// Rows left out at the beginning.
    pub offset: i64,
    /// The position at which rows are asked for; absent means now.
    pub as_of: Option<i64>,
    /// The time at which rows are asked for, until its position is found.
    pub as_of_time: Option<Timestamp>,
    /// The view's tables as they were at that position, where it answers by these.
    pub past: Option<Vec<past::Table>>,
    /// Whether exports carry where their rows come from; absent means where every column is asked for.
    pub provenance: Option<bool>,
    /// Whether the columns were named one by one.
    pub selected: bool,
    /// The position that the rows are of: what the column [`AS_OF`] holds.
    pub rows_of: i64,
}

/// What stands behind a row of a result: its run and job, the event with its figures and that event's hash in the chain,
/// and the last event that changed the row.
const PROVENANCE: [&str; 5] = ["run", "job", "output_position", "output_hash", "position"];

/// The column of exports that says which position their rows are of: with `as_of` the same rows come again.
pub const AS_OF: &str = "as_of_position";

/// [`AS_OF`], which no view has of its own.
static AS_OF_COLUMN: LazyLock<Column> = LazyLock::new(|| Column::shown(AS_OF, Kind::Int));

/// One column to order by.
#[derive(Debug, Clone, PartialEq)]
pub struct Order<'v> {
    /// The column.
    pub column: &'v Column,
    /// Whether from the largest.
    pub descending: bool,
    /// Whether nulls come first; absent means last when ascending, first when descending, as PostgreSQL does.
    pub nulls_first: Option<bool>,
}

/// Finds a column by name.
///
/// # Errors
/// The view has none of that name.
pub fn column<'v>(view: &'v ViewDef, name: &str) -> Result<&'v Column, QueryError> {
    view.columns.iter().find(|c| c.name == name).ok_or_else(|| {
        let names: Vec<&str> = view.columns.iter().map(|c| c.name.as_str()).collect();
        let shown: String = name.chars().take(100).collect();
        QueryError::new(
            "unknown_column",
            format!("{} has no column {shown:?}", view.name),
            format!("its columns are: {}", names.join(", ")),
        )
    })
}

impl<'v> Query<'v> {
    /// Reads a query string.
    ///
    /// # Errors
    /// [`QueryError`] names the first thing that is not understood.
    pub fn parse(view: &'v ViewDef, raw: &str) -> Result<Self, QueryError> {
        if raw.len() > LONGEST {
            return Err(QueryError::new(
                "query_too_long",
                format!("the query is longer than {LONGEST} bytes"),
                "ask for less at once",
            ));
        }
        let mut query = Self {
            select: Vec::new(),
            filter: Vec::new(),
            order: Vec::new(),
            limit: None,
            offset: 0,
            as_of: None,
            as_of_time: None,
            past: None,
            provenance: None,
            selected: false,
            rows_of: 0,
        };
        for (name, value) in url::form_urlencoded::parse(raw.as_bytes()) {
            if name.contains('\0') || value.contains('\0') {
                return Err(QueryError::new("bad_value", "a NUL character", "leave it out"));
            }
            match &*name {
                "select" => {
                    query.select = select(view, &value)?;
                    query.selected = value.trim() != "*";
                }
                "provenance" => query.provenance = Some(provenance(&value)?),
                "order" => query.order = order(view, &value)?,
                "limit" => query.limit = Some(count("limit", &value)?),
                "offset" => query.offset = count("offset", &value)?,
                "as_of" => (query.as_of, query.as_of_time) = as_of(view, &value)?,
                "and" | "or" | "not.and" | "not.or" => {
                    query.filter.push(grammar::group(view, &name, &value)?);
                }
                name => {
                    let column = column(view, name)?;
                    query.filter.push(grammar::test(column, &value)?);
                }
            }
        }
        if query.select.is_empty() {
            query.select = view.columns.iter().map(|c| (c.name.clone(), c)).collect();
        }
        let tests: usize = query.filter.iter().map(Node::tests).sum();
        if tests + query.select.len() + query.order.len() > MOST_NAMED {
            return Err(QueryError::new(
                "query_too_large",
                format!("the query names more than {MOST_NAMED} columns and tests"),
                "ask for less at once",
            ));
        }
        Ok(query)
    }

    /// Adds to an export what makes each of its rows verifiable by itself, where the query wants that. `rows_of` is the
    /// position that the rows are of.
    pub fn carry_provenance(&mut self, view: &'v ViewDef, rows_of: i64) {
        if !self.provenance.unwrap_or(!self.selected) {
            return;
        }
        let named = |query: &Self, name: &str| {
            query.select.iter().any(|(alias, column)| alias == name || column.name == name)
        };
        for name in PROVENANCE {
            if let Some(column) = view.columns.iter().find(|column| column.name == name)
                && !named(self, name)
            {
                self.select.push((name.to_owned(), column));
            }
        }
        if !named(self, AS_OF) {
            self.rows_of = rows_of;
            self.select.push((AS_OF.to_owned(), &*AS_OF_COLUMN));
        }
    }
}

/// `columns` or `none`.
fn provenance(value: &str) -> Result<bool, QueryError> {
    match value {
        "columns" => Ok(true),
        "none" => Ok(false),
        _ => {
            let shown: String = value.chars().take(100).collect();
            Err(QueryError::new("bad_value", format!("provenance is {shown:?}"), "columns or none"))
        }
    }
}

fn count(what: &str, value: &str) -> Result<i64, QueryError> {
    value
        .parse::<i64>()
        .ok()
        .filter(|n| *n >= 0)
        .ok_or_else(|| QueryError::new("bad_value", format!("{what} is {value:?}"), "a whole number from 0"))
}

/// A position, or a time.
fn as_of(view: &ViewDef, value: &str) -> Result<(Option<i64>, Option<Timestamp>), QueryError> {
    if view.history.is_none() {
        return Err(QueryError::new(
            "no_history",
            format!("{} keeps no old versions", view.name),
            "as_of works on the reporting views, for example v_benchmark_results, v_jobs and v_runs",
        ));
    }
    if let Some(time) = time(value) {
        if time > clock::now() {
            // What is answered now would be another answer then.
            return Err(QueryError::new(
                "position_ahead",
                format!("as_of is {time}, which is yet to come"),
                "ask for a time that has passed, or leave as_of out for what is so now",
            ));
        }
        return Ok((None, Some(time)));
    }
    let position = value.parse::<i64>().ok().filter(|n| *n >= 0).ok_or_else(|| {
        let shown: String = value.chars().take(100).collect();
        let hint = "a position of the log, or a time such as 2026-01-31T08:15:30Z";
        QueryError::new("bad_value", format!("as_of is {shown:?}"), hint)
    })?;
    Ok((Some(position), None))
}

/// A time, or a day.
fn time(value: &str) -> Option<Timestamp> {
    if value.len() == 10 && value.contains('-') {
        return format!("{value}T00:00:00Z").parse().ok();
    }
    value.parse().ok()
}

fn select<'v>(view: &'v ViewDef, value: &str) -> Result<Vec<(String, &'v Column)>, QueryError> {
    let mut selected: Vec<(String, &Column)> = Vec::new();
    for item in value.split(',').map(str::trim).filter(|item| !item.is_empty()) {
        if item == "*" {
            selected.extend(view.columns.iter().map(|c| (c.name.clone(), c)));
            continue;
        }
        let (alias, name) = match item.split_once(':') {
            Some((alias, name)) => (alias, name),
            None => (item, item),
        };
        let fine = !alias.is_empty()
            && alias.len() <= 63
            && alias.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
        if !fine {
            return Err(QueryError::new(
                "bad_alias",
                format!("{alias:?} cannot be a column's name"),
                "use 1 to 63 letters, digits and '_', as in `select=tps:output_tokens_per_second`; casts and embedding are not supported",
            ));
        }
        selected.push((alias.to_owned(), column(view, name)?));
    }
    for (nth, (alias, _)) in selected.iter().enumerate() {
        if selected[..nth].iter().any(|(other, _)| other == alias) {
            return Err(QueryError::new(
                "bad_alias",
                format!("the answer would have two columns {alias:?}"),
                "rename one: `other:column`",
            ));
        }
    }
    Ok(selected)
}

fn order<'v>(view: &'v ViewDef, value: &str) -> Result<Vec<Order<'v>>, QueryError> {
    let mut orders = Vec::new();
    for item in value.split(',').map(str::trim).filter(|item| !item.is_empty()) {
        let mut words = item.split('.');
        let column = column(view, words.next().unwrap_or_default())?;
        if matches!(column.kind, Kind::Json | Kind::Floats | Kind::Ints | Kind::Times) {
            return Err(QueryError::new(
                "bad_order",
                format!("{} cannot be ordered by", column.name),
                "order by a plain column",
            ));
        }
        let mut order = Order { column, descending: false, nulls_first: None };
        for word in words {
            match word {
                "asc" => order.descending = false,
                "desc" => order.descending = true,
                "nullsfirst" => order.nulls_first = Some(true),
                "nullslast" => order.nulls_first = Some(false),
                other => {
                    return Err(QueryError::new(
                        "bad_order",
                        format!("{other:?} is no direction"),
                        "column.asc or column.desc, then .nullsfirst or .nullslast",
                    ));
                }
            }
        }
        orders.push(order);
    }
    Ok(orders)
}

/// Checks a value against its column and gives it the spelling PostgreSQL reads.
///
/// # Errors
/// The value is not of the column's kind.
pub fn spelled(column: &Column, value: &str) -> Result<String, QueryError> {
    let bad = |hint: &str| {
        let shown: String = value.chars().take(100).collect();
        QueryError::new("bad_value", format!("{shown:?} does not fit column {}", column.name), hint)
    };
    match column.kind {
        Kind::Text => Ok(value.to_owned()),
        Kind::Int => value.trim().parse::<i64>().map(|n| n.to_string()).map_err(|_| bad("a whole number")),
        Kind::Float => match value.trim().parse::<f64>() {
            Ok(number) if number.is_finite() => Ok(number.to_string()),
            _ => Err(bad("a number, with '.' before decimals")),
        },
        Kind::Bool => match value {
            "true" | "t" => Ok("true".to_owned()),
            "false" | "f" => Ok("false".to_owned()),
            _ => Err(bad("true or false")),
        },
        Kind::Time => {
            let time = time(value)
                .ok_or_else(|| bad("a time such as 2026-01-31T08:15:30Z, or a day; write + as %2B"))?;
            Ok(time.to_string())
        }
        Kind::Json | Kind::Floats | Kind::Ints | Kind::Times => {
            Err(bad("this column holds a list or an object: is.null and, for JSON, cs.<json> work on it"))
        }
    }
}
