//! More rows than there are events: copies, to see what reading costs.

use std::time::Instant;

use server::projections::models::figure_counts::figure;
use sqlx::PgConnection;

use crate::reading::Read;
use crate::{cluster_owner, row};

/// Makes so many copies of every result and every job, each with keys of its own and figures that differ, and counts them
/// by kind. Only what is read: no leaderboard, no outputs of tools, no old versions.
pub async fn grow(read: &Read, copies: u64) {
    let mut conn = cluster_owner(read).await;
    let began = Instant::now();
    for (table, counts) in [("benchmark_results", "result_counts"), ("jobs", "job_counts")] {
        let table = live(&mut conn, table).await;
        let indexes = indexes(&mut conn, &table).await;
        for (name, _) in &indexes {
            run(&mut conn, &format!("drop index read.{name}")).await;
        }
        let columns = columns(&mut conn, &table).await;
        let values: Vec<String> = columns.iter().map(|(name, kind)| copied(name, kind)).collect();
        let names: Vec<&str> = columns.iter().map(|(name, _)| name.as_str()).collect();
        run(
            &mut conn,
            &format!(
                "insert into read.{table} ({}) select {} from read.{table} r cross join generate_series(1, {copies}) g
                 cross join lateral (select 1 + hashint8(r.position + g)::double precision / 4294967296 as f) f",
                names.join(", "),
                values.join(", ")
            ),
        )
        .await;
        for (_, definition) in &indexes {
            run(&mut conn, definition).await;
        }
        let counts = live(&mut conn, counts).await;
        run(&mut conn, &format!("update read.{counts} set n = n * {}", copies + 1)).await;
    }
    count_figures(&mut conn).await;
    run(&mut conn, "vacuum analyze").await;
    let results = live(&mut conn, "benchmark_results").await;
    let number: i64 = sqlx::query_scalar(sqlx::AssertSqlSafe(format!("select count(*) from read.{results}")))
        .fetch_one(&mut conn)
        .await
        .unwrap();
    row(
        "rows read from here on, copies in the tables",
        format!("{number} ({:.0} s)", began.elapsed().as_secs_f64()),
        "–",
    );
}

/// Counts the figures by stretches of values anew: those of the copies are others. A number's leading bits, as
/// `figure_counts::stretch` takes them; no figure here is below zero.
async fn count_figures(conn: &mut PgConnection) {
    let (counts, results) = (live(conn, "result_figure_counts").await, live(conn, "benchmark_results").await);
    let columns = columns(conn, &results).await;
    run(conn, &format!("truncate read.{counts}")).await;
    for (name, kind) in columns {
        let Some(figure) = figure(&name) else { continue };
        let stretch = match kind.as_str() {
            "double precision" => {
                format!("('x' || encode(float8send({name}), 'hex'))::bit(64)::bigint >> 49")
            }
            _ => format!("floor(extract(epoch from {name}) / 3600)::bigint"),
        };
        let group = "org, project_code, model_code, framework_code, status, simulated, imported, suspicious";
        run(
            conn,
            &format!(
                "insert into read.{counts} (figure, stretch, group_no, {group}, n, visibility, owner)
                 select {figure}, {stretch}, hashtextextended(concat_ws('|', {group}), 0), {group}, count(*), visibility, owner
                   from read.{results} where valid_to is null and {name} is not null
                  group by {stretch}, {group}, visibility, owner"
            ),
        )
        .await;
    }
}

async fn run(conn: &mut PgConnection, sql: &str) {
    sqlx::raw_sql(sqlx::AssertSqlSafe(sql.to_owned()))
        .execute(conn)
        .await
        .unwrap_or_else(|e| panic!("{e}: {sql}"));
}

/// The table that the views read.
async fn live(conn: &mut PgConnection, table: &str) -> String {
    sqlx::query_scalar(
        "select c.relname::text from pg_class c join pg_namespace n on n.oid = c.relnamespace
          where n.nspname = 'read' and c.relkind = 'r' and c.relname ~ ('^' || $1 || '_v[0-9]+$')
          order by substring(c.relname from '[0-9]+$')::int desc limit 1",
    )
    .bind(table)
    .fetch_one(conn)
    .await
    .unwrap()
}

/// Its indexes but the primary key: name and definition.
async fn indexes(conn: &mut PgConnection, table: &str) -> Vec<(String, String)> {
    sqlx::query_as(
        "select i.indexname::text, i.indexdef from pg_indexes i
          where i.schemaname = 'read' and i.tablename = $1
            and not exists (select 1 from pg_constraint c where c.conname = i.indexname)",
    )
    .bind(table)
    .fetch_all(conn)
    .await
    .unwrap()
}

async fn columns(conn: &mut PgConnection, table: &str) -> Vec<(String, String)> {
    sqlx::query_as(
        "select column_name::text, data_type::text from information_schema.columns
          where table_schema = 'read' and table_name = $1 order by ordinal_position",
    )
    .bind(table)
    .fetch_all(conn)
    .await
    .unwrap()
}

/// A column of a copy.
fn copied(name: &str, kind: &str) -> String {
    match (name, kind) {
        ("job" | "run" | "workload_code", _) => format!("r.{name} || '~' || g"),
        ("position" | "valid_from" | "first_position", _) => format!("r.{name} + g::bigint * 1000000000"),
        ("finished_at" | "recorded_at", _) => format!("r.{name} + g * interval '7 minutes'"),
        (_, "double precision") => format!("r.{name} * f.f"),
        _ => format!("r.{name}"),
    }
}
