//! `as_of` on views whose tables hold no old versions of a row: a row that has not changed since is as it was, and the few
//! that were in the middle of changing are folded again from the log, by the projection that fills their table. Who may
//! see a row is decided as of now.

use std::collections::{HashMap, HashSet};

use events::envelope::Recorded;
use events::keys::{JobKey, ProjectKey, RunKey, StreamKey};
use futures::{StreamExt, TryStreamExt, stream};
use serde_json::Value as Json;
use sqlx::{PgConnection, Row};

use super::grammar::Node;
use super::params::Query;
use super::sql;
use super::view::{bound, refused};
use crate::api::Failure;
use crate::auth::Visibility;
use crate::log::Log;
use crate::projections::refold::refold;
use crate::projections::views::{ViewDef, filled_by};
use crate::projections::{registry, relation};

/// The most rows of one table that are folded again for one query.
const MOST_ROWS: usize = 1000;
/// The most streams that are read for one query.
const MOST_STREAMS: usize = 5000;
/// The most events that are folded for one query.
const MOST_EVENTS: usize = 300_000;
/// Events read at a time.
const PAGE: i64 = 5000;
/// Streams read side by side.
const READERS: usize = 4;
/// What rows never change in, by which fewer of them need to be folded.
const IDENTITY: [&str; 7] =
    ["org", "project_code", "workload_code", "run_number", "scenario_code", "job", "run"];
/// The column that says at which position a row began; `position` says at which it last changed.
const FIRST: &str = "first_position";

/// A table as it was at the query's position.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Table {
    /// Its name, without its generation.
    pub(super) name: &'static str,
    /// The table that holds how its rows are now.
    pub(super) relation: String,
    /// The rows that changed since, as they were: a JSON list.
    pub(super) changed: String,
}

/// What is known of a table.
struct Known {
    projection: &'static str,
    version: i32,
    key: Vec<&'static str>,
    columns: HashSet<String>,
}

/// The tables of a view as they were.
///
/// # Errors
/// Too much was going on at that position, the tables are being filled anew by this version of the program, or the log
/// or the database does not answer.
pub(super) async fn tables(
    conn: &mut PgConnection,
    log: &Log,
    view: &ViewDef,
    visibility: &Visibility,
    query: &Query<'_>,
    position: i64,
) -> Result<Vec<Table>, Failure> {
    let live: HashMap<String, (i32, i32)> = sqlx::query_as::<_, (String, i32, i32)>(
        "select name, generation, code_version from read.projections where state = 'live'",
    )
    .fetch_all(&mut *conn)
    .await?
    .into_iter()
    .map(|(name, generation, version)| (name, (generation, version)))
    .collect();
    let mut tables = Vec::new();
    for &name in &view.tables {
        let known = known(name).ok_or_else(|| Failure::unavailable(&format!("nothing fills {name}")))?;
        let Some(&(generation, version)) = live.get(known.projection).filter(|(_, v)| *v == known.version)
        else {
            return Err(Failure::new(
                http::StatusCode::SERVICE_UNAVAILABLE,
                "not_yet",
                format!("the read table {name} is being filled anew"),
                "ask again in a moment, or without as_of",
            ));
        };
        debug_assert_eq!(version, known.version);
        let relation = relation(name, generation);
        let changed = match known.columns.contains(FIRST) {
            true => changed(conn, log, &known, name, &relation, visibility, query, position).await?,
            // Its rows never change: they were there or they were not.
            false => Vec::new(),
        };
        tables.push(Table { name, relation, changed: Json::from(changed).to_string() });
    }
    Ok(tables)
}

fn known(table: &str) -> Option<Known> {
    let of = filled_by(table)?;
    let mut projection = registry().into_iter().find(|p| p.name() == of)?;
    let version = projection.version();
    let tables = projection.tables();
    let table = tables.iter().find(|t| t.name() == table)?;
    let columns = table.columns().iter().map(|c| c.name.clone()).collect();
    Some(Known { projection: of, version, key: table.primary_key(), columns })
}

/// The rows of a table that the reader may see and that have changed since, as they were.
#[expect(clippy::too_many_arguments, reason = "what is asked, of what, for whom, when")]
async fn changed(
    conn: &mut PgConnection,
    log: &Log,
    known: &Known,
    table: &'static str,
    relation: &str,
    visibility: &Visibility,
    query: &Query<'_>,
    position: i64,
) -> Result<Vec<Json>, Failure> {
    let identity: Vec<&Node<'_>> = query
        .filter
        .iter()
        .filter(|node| {
            matches!(node, Node::Test { column, .. }
                if IDENTITY.contains(&column.name.as_str()) && known.columns.contains(&column.name))
        })
        .collect();
    let statement = sql::changed_since(relation, visibility, position, &identity, MOST_ROWS as i64 + 1);
    let found = bound(statement).fetch_all(&mut *conn).await.map_err(refused)?;
    if found.len() > MOST_ROWS {
        return Err(too_much(format!("more than {MOST_ROWS} rows were changing")));
    }
    let mut now: HashMap<String, Json> = HashMap::new();
    let mut streams: HashSet<StreamKey> = HashSet::new();
    let mut projects: HashSet<ProjectKey> = HashSet::new();
    for row in found {
        let row: Json = row.try_get(0)?;
        streams_of(table, &row, &mut streams, &mut projects)?;
        now.insert(key_of(&row, known), row);
    }
    if now.is_empty() {
        return Ok(Vec::new());
    }
    if streams.len() > MOST_STREAMS {
        return Err(too_much(format!("more than {MOST_STREAMS} streams of events would have to be read")));
    }
    // The projects first, whatever became of them later: rights are as of now.
    let projects: HashSet<StreamKey> = projects.iter().map(ProjectKey::stream).collect();
    let mut facts = read(log, projects, i64::MAX).await?;
    facts.extend(read(log, streams, position).await?);
    let folded = refold(known.projection, facts).await.map_err(|error| Failure::unavailable(&error))?;
    let mut then = Vec::with_capacity(now.len());
    for mut row in
        folded.into_iter().find(|(name, _)| *name == table).map(|(_, rows)| rows).unwrap_or_default()
    {
        let Some(today) = now.remove(&key_of(&row, known)) else { continue };
        for right in ["visibility", "owner"] {
            row[right] = today[right].clone();
        }
        then.push(row);
    }
    match now.keys().next() {
        // An answer without it would be wrong.
        Some(key) => Err(Failure::unavailable(&format!("{key} of {table} does not follow from its events"))),
        None => Ok(then),
    }
}

fn key_of(row: &Json, known: &Known) -> String {
    Json::from(known.key.iter().map(|column| row[*column].clone()).collect::<Vec<_>>()).to_string()
}

/// The streams that a row follows from.
fn streams_of(
    table: &str,
    row: &Json,
    streams: &mut HashSet<StreamKey>,
    projects: &mut HashSet<ProjectKey>,
) -> Result<(), Failure> {
    let text = |name: &str| row[name].as_str().unwrap_or_default().to_owned();
    let number = |name: &str| row[name].as_u64().and_then(|n| u32::try_from(n).ok()).unwrap_or_default();
    let project = ProjectKey { org: text("org"), project: text("project_code") };
    let run = RunKey {
        org: project.org.clone(),
        project: project.project.clone(),
        workload: text("workload_code"),
        run: number("run_number"),
    };
    projects.insert(project);
    let job: JobKey = run.job(&text("scenario_code"));
    let attempt = number("attempt");
    match table {
        "runs" => {
            streams.insert(run.stream());
            let phases = row["phases"].as_object();
            streams.extend(phases.into_iter().flatten().map(|(scenario, _)| run.job(scenario).stream()));
        }
        "jobs" => {
            streams.extend([run.stream(), job.stream()]);
            streams.extend((1..=attempt).map(|attempt| job.progress_stream(attempt)));
        }
        "quality_flags" => streams.extend([run.stream(), job.stream()]),
        "telemetry_jobs" | "telemetry_gpus" | "telemetry_tpus" => {
            streams.extend([job.stream(), job.telemetry_stream(attempt)]);
        }
        other => {
            return Err(Failure::unavailable(&format!(
                "nothing says which events a row of {other} follows from"
            )));
        }
    }
    Ok(())
}

/// The events of these streams up to a position, in the order of the log.
async fn read(log: &Log, streams: HashSet<StreamKey>, position: i64) -> Result<Vec<Recorded>, Failure> {
    let mut reads = stream::iter(streams)
        .map(|stream| async move {
            let (mut facts, mut version) = (Vec::new(), 1);
            loop {
                let page = log.read_stream(&stream, version, PAGE).await?;
                let full = page.len() as i64 == PAGE;
                version += page.len() as i64;
                let before = facts.len();
                facts.extend(page.into_iter().take_while(|fact| fact.position <= position));
                if !full || facts.len() - before < PAGE as usize || facts.len() > MOST_EVENTS {
                    return Ok::<_, Failure>(facts);
                }
            }
        })
        .buffer_unordered(READERS);
    let mut facts: Vec<Recorded> = Vec::new();
    while let Some(more) = reads.try_next().await? {
        facts.extend(more);
        if facts.len() > MOST_EVENTS {
            return Err(too_much(format!("more than {MOST_EVENTS} events would have to be folded again")));
        }
    }
    facts.sort_by_key(|fact| fact.position);
    Ok(facts)
}

fn too_much(what: String) -> Failure {
    Failure::unprocessable(
        "too_many_rows",
        format!("{what} at that position"),
        "filter by project_code, workload_code, run_number or job",
    )
}
