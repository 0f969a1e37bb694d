//! `GET /api/<view>`: the answer to a query.

use std::time::Duration;

use axum::body::Body;
use axum::response::Response;
use bytes::Bytes;
use futures::TryStreamExt;
use http::{HeaderMap, HeaderValue, StatusCode, header};
use sqlx::postgres::{PgArguments, PgRow};
use sqlx::{AssertSqlSafe, PgConnection, PgPool, Postgres, Row};
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;

use super::params::Query;
use super::sql::{self, Statement, Value};
use super::{QueryError, act_for, encode};
use crate::api::Failure;
use crate::auth::Visibility;
use crate::log::Log;
use crate::projections::views::{ViewDef, served};
use crate::projections::{Handle, Kind};

/// The most rows of one JSON answer. More is refused, never cut off in silence; CSV and NDJSON have no limit.
const MOST_ROWS: usize = 50_000;
/// How long `Prefer: at-least` waits.
const PATIENCE: Duration = Duration::from_secs(5);
/// Bytes sent at a time.
const CHUNK: usize = 64 * 1024;

/// How the rows are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Format {
    Json,
    /// One object, and an error unless there is exactly one row.
    Object,
    Ndjson,
    Csv,
}

impl Format {
    fn media_type(self) -> &'static str {
        match self {
            Self::Json => "application/json; charset=utf-8",
            Self::Object => "application/vnd.pgrst.object+json; charset=utf-8",
            Self::Ndjson => "application/x-ndjson; charset=utf-8",
            Self::Csv => "text/csv; charset=utf-8",
        }
    }

    fn of(headers: &HeaderMap) -> Result<Self, Failure> {
        let accept = headers.get(header::ACCEPT).and_then(|v| v.to_str().ok()).unwrap_or("*/*");
        for wanted in accept.split(',') {
            match wanted.split(';').next().unwrap_or_default().trim() {
                "*/*" | "application/*" | "application/json" => return Ok(Self::Json),
                "application/vnd.pgrst.object+json" => return Ok(Self::Object),
                "application/x-ndjson" => return Ok(Self::Ndjson),
                "text/csv" => return Ok(Self::Csv),
                _ => {}
            }
        }
        Err(Failure::new(
            StatusCode::NOT_ACCEPTABLE,
            "not_acceptable",
            format!("no answer in {accept:?}"),
            "accept application/json, text/csv, application/x-ndjson or application/vnd.pgrst.object+json",
        ))
    }
}

/// What the header `Prefer` asks.
#[derive(Debug, Default, PartialEq, Eq)]
struct Preferences {
    count: bool,
    at_least: Option<i64>,
}

impl Preferences {
    fn of(headers: &HeaderMap) -> Result<Self, QueryError> {
        let mut preferences = Self::default();
        for value in headers.get_all("prefer") {
            for item in value.to_str().unwrap_or_default().split(',').map(str::trim) {
                if item == "count=exact" {
                    preferences.count = true;
                } else if let Some(position) = item.strip_prefix("at-least=") {
                    let position = position.parse::<i64>().ok().filter(|p| *p >= 0);
                    preferences.at_least = Some(position.ok_or_else(|| {
                        QueryError::new("bad_preference", format!("{item:?}"), "Prefer: at-least=<position>")
                    })?);
                }
                // Preferences are wishes: those not known are passed over.
            }
        }
        Ok(preferences)
    }
}

/// Answers a query of a view.
///
/// # Errors
/// No such view, a query that is not understood, read tables that are too far behind, or a database that does not
/// answer.
pub async fn query(
    reader: &PgPool,
    log: &Log,
    projections: &Handle,
    visibility: &Visibility,
    name: &str,
    raw_query: &str,
    headers: &HeaderMap,
) -> Result<Response, Failure> {
    let view = served(name).ok_or_else(|| no_such_view(name))?;
    let format = Format::of(headers)?;
    let preferences = Preferences::of(headers)?;
    let mut query = Query::parse(view, raw_query)?;
    apply_range(&mut query, headers)?;
    if let Some(position) = preferences.at_least {
        wait(log, projections, position).await?;
    }
    let mut tx = reader.begin_with("begin isolation level repeatable read read only").await?;
    act_for(&mut tx, visibility).await?;
    let total = match preferences.count {
        true => Some(count(&mut tx, &sql::count(view, visibility, &query)).await?),
        false => None,
    };
    if let Some(total) = total.filter(|total| query.offset > *total) {
        return Err(Failure::new(
            StatusCode::RANGE_NOT_SATISFIABLE,
            "range_not_satisfiable",
            format!("the range begins at row {}, there are {total}", query.offset),
            "begin earlier",
        ));
    }
    let statement = sql::rows(view, visibility, &query);
    match format {
        Format::Json | Format::Object => {
            let (body, rows) = collect(&mut tx, statement, &query, format).await?;
            if format == Format::Object && rows != 1 {
                return Err(Failure::new(
                    StatusCode::NOT_ACCEPTABLE,
                    "not_one_row",
                    format!("there are {rows} rows, not one"),
                    "narrow the query, or accept application/json",
                ));
            }
            tx.commit().await?;
            Ok(respond(Body::from(body), format, view, &query, Some(rows), total))
        }
        Format::Ndjson | Format::Csv => {
            let body = stream(tx, statement, &query, format);
            Ok(respond(body, format, view, &query, None, total))
        }
    }
}

fn no_such_view(name: &str) -> Failure {
    let shown: String = name.chars().take(100).collect();
    let names: Vec<&str> =
        crate::projections::views::all().iter().filter(|v| v.served).map(|v| v.name).collect();
    Failure::not_found(
        "no_such_view",
        format!("there is no view {shown:?}"),
        format!("the views are: {}", names.join(", ")),
    )
}

async fn wait(log: &Log, projections: &Handle, position: i64) -> Result<(), Failure> {
    let head = log.head().await?.position;
    if position > head {
        return Err(Failure::bad_request(
            "position_ahead",
            format!("the log ends at position {head}, before {position}"),
            "ask with the position that a command answered with",
        ));
    }
    projections.wait_for(position, PATIENCE).await.map_err(|behind| {
        let mut failure = Failure::new(
            StatusCode::SERVICE_UNAVAILABLE,
            "not_yet",
            behind.to_string(),
            "ask again in a moment, or without `Prefer: at-least`",
        );
        failure.retry_after_s = Some(1);
        failure
    })
}

/// `Range: 0-24` stands for offset and limit where the query has neither.
fn apply_range(query: &mut Query<'_>, headers: &HeaderMap) -> Result<(), QueryError> {
    let Some(range) = headers.get(header::RANGE).and_then(|v| v.to_str().ok()) else { return Ok(()) };
    if query.limit.is_some() || query.offset > 0 {
        return Ok(());
    }
    let bad =
        || QueryError::new("bad_range", format!("Range: {range:?}"), "Range: 0-24, with Range-Unit: items");
    let range = range.trim_start_matches("items=");
    let (first, last) = range.split_once('-').ok_or_else(bad)?;
    let first: i64 = first.trim().parse().ok().filter(|n| *n >= 0).ok_or_else(bad)?;
    query.offset = first;
    if !last.trim().is_empty() {
        let last: i64 = last.trim().parse().map_err(|_| bad())?;
        query.limit =
            Some(last.checked_sub(first).and_then(|n| n.checked_add(1)).filter(|n| *n >= 0).ok_or_else(bad)?);
    }
    Ok(())
}

fn bound(statement: Statement) -> sqlx::query::Query<'static, Postgres, PgArguments> {
    let mut query = sqlx::query(AssertSqlSafe(statement.sql));
    for value in statement.values {
        query = match value {
            Value::Text(text) => query.bind(text),
            Value::List(list) => query.bind(list),
        };
    }
    query
}

async fn count(conn: &mut PgConnection, statement: &Statement) -> Result<i64, Failure> {
    let row: PgRow = bound(statement.clone()).fetch_one(conn).await.map_err(refused)?;
    Ok(row.try_get(0)?)
}

/// What the database says of a value that passed our checks (a pattern, for example) is the client's to mend.
fn refused(error: sqlx::Error) -> Failure {
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

fn names(query: &Query<'_>) -> Vec<String> {
    query.select.iter().map(|(alias, _)| format!("{}:", serde_json::Value::from(alias.as_str()))).collect()
}

fn kinds(query: &Query<'_>) -> Vec<Kind> {
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
                    "set limit, or accept text/csv or application/x-ndjson, which have no limit",
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

/// Rows as they come. An error in the middle breaks the transfer off, so that nobody takes the part for the whole.
fn stream(
    mut tx: sqlx::Transaction<'static, Postgres>,
    statement: Statement,
    query: &Query<'_>,
    format: Format,
) -> Body {
    let (sender, receiver) = mpsc::channel::<Result<Bytes, std::io::Error>>(4);
    let (names, kinds) = (names(query), kinds(query));
    let mut out = Vec::with_capacity(CHUNK * 2);
    if format == Format::Csv {
        for (nth, (alias, _)) in query.select.iter().enumerate() {
            if nth > 0 {
                out.push(b',');
            }
            encode::csv_field(alias.as_bytes(), &mut out);
        }
        out.extend_from_slice(b"\r\n");
    }
    tokio::spawn(async move {
        let result = async {
            let mut found = bound(statement).fetch(&mut *tx);
            while let Some(row) = found.try_next().await.map_err(std::io::Error::other)? {
                match format {
                    Format::Csv => encode::csv_row(&row, &kinds, &mut out),
                    _ => encode::json_row(&row, &names, &kinds, &mut out).inspect(|()| out.push(b'\n')),
                }
                .map_err(std::io::Error::other)?;
                if out.len() >= CHUNK && sender.send(Ok(std::mem::take(&mut out).into())).await.is_err() {
                    // The client went away.
                    return Ok(());
                }
            }
            let _ = sender.send(Ok(out.into())).await;
            Ok::<(), std::io::Error>(())
        }
        .await;
        if let Err(error) = result {
            tracing::warn!(%error, "an export broke off");
            let _ = sender.send(Err(error)).await;
        }
    });
    Body::from_stream(ReceiverStream::new(receiver))
}

fn respond(
    body: Body,
    format: Format,
    view: &ViewDef,
    query: &Query<'_>,
    rows: Option<usize>,
    total: Option<i64>,
) -> Response {
    let mut response = Response::new(body);
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(format.media_type()));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert(header::VARY, HeaderValue::from_static("accept, authorization, cookie, prefer"));
    let total_text = total.map_or("*".to_owned(), |t| t.to_string());
    let range = match rows {
        Some(0) => format!("*/{total_text}"),
        Some(rows) => format!("{}-{}/{total_text}", query.offset, query.offset + rows as i64 - 1),
        None => format!("{}-/{total_text}", query.offset),
    };
    if let Ok(value) = HeaderValue::from_str(&range) {
        headers.insert(header::CONTENT_RANGE, value);
    }
    if format == Format::Csv
        && let Ok(value) = HeaderValue::from_str(&format!("attachment; filename=\"{}.csv\"", view.name))
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

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
        pairs.iter().map(|(k, v)| (http::HeaderName::from_static(k), HeaderValue::from_static(v))).collect()
    }

    #[test]
    fn the_first_acceptable_format_is_taken() {
        assert_eq!(Format::of(&headers(&[])).unwrap(), Format::Json);
        assert_eq!(Format::of(&headers(&[("accept", "text/html, text/csv;q=0.9")])).unwrap(), Format::Csv);
        assert!(Format::of(&headers(&[("accept", "image/png")])).is_err());
    }

    #[test]
    fn preferences_are_read_together() {
        let preferences =
            Preferences::of(&headers(&[("prefer", "count=exact, at-least=42, handling=strict")]));
        assert_eq!(preferences.unwrap(), Preferences { count: true, at_least: Some(42) });
        assert!(Preferences::of(&headers(&[("prefer", "at-least=soon")])).is_err());
    }

    #[test]
    fn a_range_stands_for_offset_and_limit() {
        let view = served("v_jobs").unwrap();
        let mut query = Query::parse(view, "").unwrap();
        apply_range(&mut query, &headers(&[("range", "10-19")])).unwrap();
        assert_eq!((query.offset, query.limit), (10, Some(10)));
        assert!(apply_range(&mut Query::parse(view, "").unwrap(), &headers(&[("range", "x-9")])).is_err());
        assert!(apply_range(&mut Query::parse(view, "").unwrap(), &headers(&[("range", "9-1")])).is_err());
    }
}
