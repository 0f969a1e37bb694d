//! The tables of each generation, who may read them, and the stable views that point at the live ones.

use std::collections::HashMap;

use sha2::{Digest, Sha256};
use sqlx::{AssertSqlSafe, Connection, PgConnection, PgPool};

use super::views::{self, ViewDef};
use super::{AnyTable, Projection, ProjectionError, registry, relation};

/// Held while the schema is changed, so that servers starting together take turns.
const SCHEMA_LOCK: i64 = 0x6274_0002;

/// What a reader may see, as a condition on a row's `org`, `visibility` and `owner`. The settings are looked up once a
/// statement, not once a row.
const ROW_POLICY: &str = "visibility = 'public'
    or (org = (select current_setting('app.org', true))
        and (visibility = 'organization'
             or (visibility = 'private' and owner <> '' and owner = (select current_setting('app.user', true)))))";

/// Makes what is missing: the first generation of each projection's tables, and the views over the live ones.
///
/// # Errors
/// The database cannot be reached or the migrations have not been applied.
pub async fn ensure(pool: &PgPool) -> Result<(), ProjectionError> {
    let mut conn = pool.acquire().await?;
    let mut tx = conn.begin().await?;
    sqlx::query("select pg_advisory_xact_lock($1)").bind(SCHEMA_LOCK).execute(&mut *tx).await?;
    for mut projection in registry() {
        let live: Option<i32> =
            sqlx::query_scalar("select generation from read.projections where name = $1 and state = 'live'")
                .bind(projection.name())
                .fetch_optional(&mut *tx)
                .await?;
        if live.is_some() {
            continue;
        }
        let (name, version) = (projection.name(), projection.version());
        sqlx::query(
            "insert into read.projections (name, generation, code_version, state) values ($1, 1, $2, 'live')",
        )
        .bind(name)
        .bind(version)
        .execute(&mut *tx)
        .await?;
        for table in projection.tables() {
            create_table(&mut tx, table, 1).await?;
            create_keys(&mut tx, table, 1).await?;
            create_indexes(&mut tx, table, 1).await?;
        }
    }
    refresh_views(&mut tx).await?;
    tx.commit().await?;
    Ok(())
}

/// Makes one table without its keys, so that COPY into it is fast.
pub(super) async fn create_table(
    conn: &mut PgConnection,
    table: &dyn AnyTable,
    generation: i32,
) -> Result<(), sqlx::Error> {
    let name = relation(table.name(), generation);
    let key = table.primary_key();
    let columns: Vec<String> = table
        .columns()
        .iter()
        .map(|c| {
            let collate = if c.kind.sql() == "text" { " collate \"C\"" } else { "" };
            let not_null = if key.contains(&c.name.as_str()) { " not null" } else { "" };
            format!("{} {}{collate}{not_null}", c.name, c.kind.sql())
        })
        .collect();
    let mut statements = vec![
        format!("create table {name} ({}) with (fillfactor = 85)", columns.join(", ")),
        format!("alter table {name} enable row level security"),
    ];
    if table.columns().iter().any(|c| c.name == "visibility") {
        statements.push(format!(
            "create policy readers on {name} for select to benchtrail_reader using ({ROW_POLICY})"
        ));
        statements.push(format!("grant select on {name} to benchtrail_reader"));
    }
    run(conn, statements).await
}

/// Makes what rows are found by while a table is filled: its primary key, and the index by project.
pub(super) async fn create_keys(
    conn: &mut PgConnection,
    table: &dyn AnyTable,
    generation: i32,
) -> Result<(), sqlx::Error> {
    let name = relation(table.name(), generation);
    let mut statements =
        vec![format!("alter table {name} add primary key ({})", table.primary_key().join(", "))];
    if table.columns().iter().any(|c| c.name == "project_code") && !table.primary_key().starts_with(&["org"])
    {
        // A project's change of visibility finds its rows by this.
        statements.push(format!("create index on {name} (org, project_code)"));
    }
    run(conn, statements).await
}

/// Makes the indexes that readers want. A rebuild makes them once all rows are there.
pub(super) async fn create_indexes(
    conn: &mut PgConnection,
    table: &dyn AnyTable,
    generation: i32,
) -> Result<(), sqlx::Error> {
    let name = relation(table.name(), generation);
    // Of a table that keeps old versions, the live rows are what is sorted and counted.
    let live = if table.versioned() { " where valid_to is null" } else { "" };
    let index = |columns: &&str| match columns.split_once(" include ") {
        Some((key, included)) => format!("create index on {name} ({key}) include ({included}){live}"),
        None => format!("create index on {name} ({columns}){live}"),
    };
    run(conn, table.indexes().iter().map(index).collect()).await
}

/// Drops the tables of a generation, where there are any.
pub(super) async fn drop_tables(
    conn: &mut PgConnection,
    projection: &mut dyn Projection,
    generation: i32,
) -> Result<(), sqlx::Error> {
    let drop = |t: &&mut dyn AnyTable| format!("drop table if exists {}", relation(t.name(), generation));
    let statements = projection.tables().iter().map(drop).collect();
    run(conn, statements).await
}

/// Points every view at the live tables, in the caller's transaction. Views that already do are left alone; so are
/// those over tables that another version of this code filled, until these are rebuilt.
pub(super) async fn refresh_views(conn: &mut PgConnection) -> Result<(), sqlx::Error> {
    let rows: Vec<(String, i32, i32)> =
        sqlx::query_as("select name, generation, code_version from read.projections where state = 'live'")
            .fetch_all(&mut *conn)
            .await?;
    let live: HashMap<String, (i32, i32)> = rows.into_iter().map(|(n, g, v)| (n, (g, v))).collect();
    let mut tables: HashMap<&'static str, String> = HashMap::new();
    for mut projection in registry() {
        let Some(&(generation, code_version)) = live.get(projection.name()) else { continue };
        if code_version != projection.version() {
            continue;
        }
        for table in projection.tables() {
            tables.insert(table.name(), relation(table.name(), generation));
        }
    }
    let made: HashMap<String, Option<String>> = sqlx::query_as::<_, (String, Option<String>)>(
        "select c.relname::text, obj_description(c.oid, 'pg_class') from pg_class c
          join pg_namespace n on n.oid = c.relnamespace where n.nspname = 'read' and c.relkind = 'v'",
    )
    .fetch_all(&mut *conn)
    .await?
    .into_iter()
    .collect();
    for view in views::all() {
        let Some(select) = resolve(view, &tables) else { continue };
        let fingerprint = hex::encode(Sha256::digest(format!("{} {select}", view.invoker)));
        if made.get(view.name).is_some_and(|comment| comment.as_deref() == Some(fingerprint.as_str())) {
            continue;
        }
        let options = if view.invoker { "security_invoker = true" } else { "security_barrier = true" };
        run(
            conn,
            vec![
                format!("drop view if exists read.{}", view.name),
                format!("create view read.{} with ({options}) as {select}", view.name),
                format!("comment on view read.{} is '{fingerprint}'", view.name),
                format!("grant select on read.{} to benchtrail_reader", view.name),
            ],
        )
        .await?;
    }
    Ok(())
}

/// Fills in the tables a view reads; nothing when one of them is not there.
fn resolve(view: &ViewDef, tables: &HashMap<&'static str, String>) -> Option<String> {
    let mut sql = view.select.clone();
    for table in &view.tables {
        sql = sql.replace(&format!("{{{table}}}"), tables.get(table)?);
    }
    Some(sql)
}

pub(super) async fn run(conn: &mut PgConnection, statements: Vec<String>) -> Result<(), sqlx::Error> {
    for statement in statements {
        sqlx::raw_sql(AssertSqlSafe(statement)).execute(&mut *conn).await?;
    }
    Ok(())
}
