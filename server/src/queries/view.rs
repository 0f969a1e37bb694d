//! `GET /api/<view>`: the answer to a query.

use std::time::Duration;

use axum::body::Body;
use axum::response::Response;
use futures::TryStreamExt;
use http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use sqlx::postgres::{PgArguments, PgRow};
use sqlx::{AssertSqlSafe, PgConnection, PgPool, Postgres, Row};

use super::export::{self, CHUNK};
use super::params::Query;
use super::request::{Count, Format, Preferences, apply_range};
use super::sql::{self, Statement, Value};
use super::{act_for, as_of, counts, encode, leaderboard, past};
use crate::api::Failure;
use crate::auth::Visibility;
use crate::log::Log;
use crate::projections::views::{self, History, ViewDef, served};
use crate::projections::{Handle, Kind};

/// The most rows of one JSON answer. More is refused, never cut off in silence; CSV and NDJSON have no limit.
const MOST_ROWS: usize = 50_000;
/// How long `Prefer: at-least` waits.
const PATIENCE: Duration = Duration::from_secs(5);

/// Whoever asks `count=planned` or `count=estimated` gets an exact count where there are no more rows than this.
const COUNTED_EXACTLY: i64 = 10_000;

/// What is read from, and how far it is.
#[derive(Debug, Clone, Copy)]
pub struct Source<'a> {
    /// The reading role's connections.
    pub reader: &'a PgPool,
    /// The log, for positions.
    pub log: &'a Log,
    /// The read tables' progress.
    pub projections: &'a Handle,
}

/// Answers a query of a view; `HEAD` with the same header fields and no rows.
///
/// # Errors
/// No such view, a query that is not understood, read tables that are too far behind, or a database that does not
/// answer.
pub async fn query(
    source: Source<'_>,
    visibility: &Visibility,
    name: &str,
    raw_query: &str,
    headers: &HeaderMap,
    method: &Method,
) -> Result<Response, Failure> {
    let view = served(name).ok_or_else(|| no_such_view(name))?;
    let format = Format::of(headers)?;
    let preferences = Preferences::of(headers)?;
    let mut query = Query::parse(view, raw_query)?;
    apply_range(&mut query, headers)?;
    if let Some(position) = preferences.at_least {
        wait(source, view, position).await?;
    }
    if let Some(time) = query.as_of_time {
        query.as_of = Some(as_of::position_at(source.log, time).await?);
    }
    if let Some(position) = query.as_of {
        // What is not folded yet would be missing from the answer, and be there when it is asked again.
        wait(source, view, position).await?;
    }
    let mut tx = source.reader.begin_with("begin isolation level repeatable read read only").await?;
    act_for(&mut tx, visibility).await?;
    let mut rows_of = query.as_of.unwrap_or(0);
    if let Some(position) = query.as_of {
        // For views whose rows follow from several others of that time.
        sqlx::query("select set_config('app.as_of', $1, true)")
            .bind(position.to_string())
            .execute(&mut *tx)
            .await?;
        if view.history == Some(History::Folded) {
            query.past = Some(past::tables(&mut tx, source.log, view, visibility, &query, position).await?);
        }
    }
    if format.is_export() {
        if query.as_of.is_none() {
            rows_of = position_of(&mut tx, view).await?;
        }
        query.carry_provenance(view, rows_of);
    }
    let ranked = match view.ranked {
        true => Some(leaderboard::rank(&mut tx, view, visibility, &query).await?),
        false => None,
    };
    let total = match &ranked {
        Some(ranked) => preferences.count.map(|_| ranked.total),
        None => total(&mut tx, view, visibility, &query, preferences.count).await?,
    };
    if let Some(total) = total.filter(|total| query.offset > *total) {
        return Err(Failure::new(
            StatusCode::RANGE_NOT_SATISFIABLE,
            "range_not_satisfiable",
            format!("the range begins at row {}, there are {total}", query.offset),
            "begin earlier",
        ));
    }
    let answer = Answered { format, view, query: &query, total, applied: &preferences.applied };
    if method == Method::HEAD {
        let rows = match (preferences.count, total) {
            _ if ranked.is_some() => ranked.map_or(0, |ranked| ranked.page),
            (Some(Count::Exact), Some(total)) => (total - query.offset).min(query.limit.unwrap_or(i64::MAX)),
            _ => number(&mut tx, counts::extent(view, visibility, &query)).await?,
        };
        tx.commit().await?;
        return Ok(answer.respond(Body::empty(), usize::try_from(rows).ok()));
    }
    let statement = match ranked {
        Some(ranked) => ranked.rows,
        None => sql::rows_of(view, visibility, &query, total),
    };
    match format {
        Format::Json | Format::Object => {
            let (body, rows) = collect(&mut tx, statement, &query, format).await?;
            if format == Format::Object && rows != 1 {
                return Err(Failure::new(
                    StatusCode::NOT_ACCEPTABLE,
                    "not_one_row",
                    format!("there are {rows} rows, not one"),
                    "narrow the query, or accept application/json",
                )
                // PostgREST's words: its clients' `maybe_single` looks for them.
                .details(format!("The result contains {rows} rows")));
            }
            tx.commit().await?;
            Ok(answer.respond(Body::from(body), Some(rows)))
        }
        Format::Ndjson | Format::Csv | Format::Parquet => {
            let about = [
                ("benchtrail.view", view.name.to_owned()),
                ("benchtrail.query", raw_query.to_owned()),
                ("benchtrail.log_position", rows_of.to_string()),
            ];
            let body = export::stream(tx, statement, &query, format, &about)
                .map_err(|error| Failure::unavailable(&error))?;
            Ok(answer.respond(body, None))
        }
    }
}

/// The position that the rows of a view are of, in the snapshot that they are read from.
async fn position_of(tx: &mut PgConnection, view: &ViewDef) -> Result<i64, Failure> {
    Ok(sqlx::query_scalar(
        "select coalesce(min(position), 0) from read.projections where state = 'live' and name = any($1)",
    )
    .bind(views::fed_by(view))
    .fetch_one(tx)
    .await?)
}

/// The rows of a view that have these values, for other queries to use.
pub(super) async fn rows(
    source: Source<'_>,
    visibility: &Visibility,
    name: &str,
    filters: &[(&str, &str)],
) -> Result<Vec<serde_json::Value>, Failure> {
    let view = served(name).ok_or_else(|| no_such_view(name))?;
    let pairs = filters.iter().map(|(column, value)| (*column, format!("eq.{value}")));
    let raw = url::form_urlencoded::Serializer::new(String::new()).extend_pairs(pairs).finish();
    let query = Query::parse(view, &raw)?;
    let mut tx = source.reader.begin_with("begin isolation level repeatable read read only").await?;
    act_for(&mut tx, visibility).await?;
    let (body, _) = collect(&mut tx, sql::rows(view, visibility, &query), &query, Format::Json).await?;
    tx.commit().await?;
    serde_json::from_slice(&body).map_err(|error| Failure::unavailable(&error))
}

/// How many rows there are without the limits, where that was asked.
async fn total(
    tx: &mut PgConnection,
    view: &ViewDef,
    visibility: &Visibility,
    query: &Query<'_>,
    count: Option<Count>,
) -> Result<Option<i64>, Failure> {
    let Some(count) = count else { return Ok(None) };
    if count != Count::Exact && !counts::is_tallied(view, query) {
        // The planner guesses from all rows that there are, others' too: where the reader's own are few, a guess would tell
        // whether others have what is asked for.
        let few = number(&mut *tx, counts::few(view, visibility, query, COUNTED_EXACTLY + 1)).await?;
        if few <= COUNTED_EXACTLY {
            return Ok(Some(few));
        }
        let row = bound(counts::plan(view, visibility, query)).fetch_one(&mut *tx).await.map_err(refused)?;
        let plan: serde_json::Value = row.try_get(0)?;
        let planned = plan[0]["Plan"]["Plan Rows"].as_f64().unwrap_or(0.0) as i64;
        return Ok(Some(planned.max(few)));
    }
    number(tx, counts::count(view, visibility, query)).await.map(Some)
}

fn no_such_view(name: &str) -> Failure {
    let shown: String = name.chars().take(100).collect();
    let names: Vec<&str> = views::all().iter().filter(|v| v.served).map(|v| v.name).collect();
    Failure::not_found(
        "no_such_view",
        format!("there is no view {shown:?}"),
        format!("the views are: {}", names.join(", ")),
    )
}

/// Waits until the view shows what is in the log up to `position`.
async fn wait(source: Source<'_>, view: &ViewDef, position: i64) -> Result<(), Failure> {
    let head = source.log.head().await?.position;
    if position > head {
        return Err(Failure::bad_request(
            "position_ahead",
            format!("the log ends at position {head}, before {position}"),
            "ask with a position that a command answered with",
        ));
    }
    let status = source.projections.status();
    let (message, hint, retry_after_s) = if let Some(projection) =
        status.rebuilding(&views::fed_by(view), position)
    {
        let (name, reached) = (&projection.name, projection.position);
        let message = format!(
            "the tables of {} are being rebuilt after an update of the program; until then they show position {reached}",
            view.name
        );
        let hint = format!(
            "ask without a position for what they show, or again once `/readyz` no longer says that {name} is rebuilding"
        );
        (message, hint, 10)
    } else if let Err(behind) = source.projections.wait_for(position, PATIENCE).await {
        (behind.to_string(), "ask again in a moment, or without `Prefer: at-least`".to_owned(), 1)
    } else {
        return Ok(());
    };
    let mut failure = Failure::new(StatusCode::SERVICE_UNAVAILABLE, "not_yet", message, hint);
    failure.retry_after_s = Some(retry_after_s);
    Err(failure)
}

pub(super) fn bound(statement: Statement) -> sqlx::query::Query<'static, Postgres, PgArguments> {
    let mut query = sqlx::query(AssertSqlSafe(statement.sql));
    for value in statement.values {
        query = match value {
            Value::Text(text) => query.bind(text),
            Value::List(list) => query.bind(list),
        };
    }
    query
}

async fn number(conn: &mut PgConnection, statement: Statement) -> Result<i64, Failure> {
    let row: PgRow = bound(statement).fetch_one(conn).await.map_err(refused)?;
    Ok(row.try_get(0)?)
}

/// What the database says of a value that passed our checks (a pattern, for example) is the client's to mend.
pub(super) fn refused(error: sqlx::Error) -> Failure {
    match &error {
        sqlx::Error::Database(said) if said.code().is_some_and(|c| c.starts_with("22")) => {
            Failure::bad_request("bad_value", said.message().to_owned(), "check the values of the filters")
        }
        sqlx::Error::Database(said) if said.code().as_deref() == Some("57014") => Failure::unprocessable(
            "query_too_slow",
            "the query took too long and was stopped",
            "filter by project, run or job, or ask for fewer rows",
        ),
        _ => error.into(),
    }
}

pub(super) fn names(query: &Query<'_>) -> Vec<String> {
    query.select.iter().map(|(alias, _)| format!("{}:", serde_json::Value::from(alias.as_str()))).collect()
}

pub(super) fn kinds(query: &Query<'_>) -> Vec<Kind> {
    query.select.iter().map(|(_, column)| column.kind).collect()
}

async fn collect(
    conn: &mut PgConnection,
    statement: Statement,
    query: &Query<'_>,
    format: Format,
) -> Result<(Vec<u8>, usize), Failure> {
    let (names, kinds) = (names(query), kinds(query));
    let mut out = Vec::with_capacity(CHUNK);
    let mut rows = 0_usize;
    if format == Format::Json {
        out.push(b'[');
    }
    {
        let mut found = bound(statement).fetch(conn);
        while let Some(row) = found.try_next().await.map_err(refused)? {
            if rows > 0 {
                out.extend_from_slice(b",\n");
            }
            rows += 1;
            if rows > MOST_ROWS {
                return Err(Failure::unprocessable(
                    "too_many_rows",
                    format!("the answer has more than {MOST_ROWS} rows"),
                    "set limit, or accept text/csv, application/x-ndjson or application/vnd.apache.parquet, which have no limit",
                ));
            }
            encode::json_row(&row, &names, &kinds, &mut out).map_err(|e| Failure::unavailable(&e))?;
        }
    }
    if format == Format::Json {
        out.push(b']');
    }
    Ok((out, rows))
}

/// What an answer says of itself.
struct Answered<'a> {
    format: Format,
    view: &'a ViewDef,
    query: &'a Query<'a>,
    total: Option<i64>,
    applied: &'a [String],
}

impl Answered<'_> {
    fn respond(&self, body: Body, rows: Option<usize>) -> Response {
        let (offset, total) = (self.query.offset, self.total);
        let mut response = Response::new(body);
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(self.format.media_type()));
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
        headers
            .insert(header::VARY, HeaderValue::from_static("accept, authorization, cookie, prefer, range"));
        let total_text = total.map_or("*".to_owned(), |t| t.to_string());
        let range = match rows {
            Some(0) => format!("*/{total_text}"),
            Some(rows) => format!("{offset}-{}/{total_text}", offset + rows as i64 - 1),
            None => format!("{offset}-/{total_text}"),
        };
        if let Ok(value) = HeaderValue::from_str(&range) {
            headers.insert(header::CONTENT_RANGE, value);
        }
        if let Ok(value) = HeaderValue::from_str(&self.applied.join(", "))
            && !self.applied.is_empty()
        {
            headers.insert("preference-applied", value);
        }
        if let Some(ending) = self.format.ending()
            && let Ok(value) =
                HeaderValue::from_str(&format!("attachment; filename=\"{}.{ending}\"", self.view.name))
        {
            headers.insert(header::CONTENT_DISPOSITION, value);
        }
        if let (Some(total), Some(rows)) = (total, rows)
            && (rows as i64) < total
        {
            *response.status_mut() = StatusCode::PARTIAL_CONTENT;
        }
        response
    }
}
