//! The checkpoints: which generation of a projection's tables is live, and how far each is.

use sqlx::{AssertSqlSafe, PgConnection, PgPool, Row as _};

use super::batch::{Folded, Poison};
use super::handle::{ProjectionState, ProjectionStatus};

/// Has a transaction's commit not wait for the disk: what a lost one had folded is folded again from the log, whose own
/// commits did wait, and which stands before everything that was folded from it.
const WITHOUT_WAITING: &str = "(select set_config('synchronous_commit', 'off', true)) = 'off'";

/// One set of tables of one projection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Generation {
    pub(super) name: String,
    pub(super) generation: i32,
    pub(super) code_version: i32,
    pub(super) position: i64,
}

/// The live generation of every projection, with what is quarantined in it.
pub(super) async fn live(pool: &PgPool) -> Result<Vec<(Generation, ProjectionStatus)>, sqlx::Error> {
    let rows = sqlx::query(
        "select p.name, p.generation, p.code_version, p.position, p.unknown,
                (select count(*) from read.quarantine q where q.name = p.name and q.generation = p.generation)
           from read.projections p where p.state = 'live' order by p.name",
    )
    .fetch_all(pool)
    .await?;
    rows.into_iter()
        .map(|row| {
            let generation = Generation {
                name: row.try_get(0)?,
                generation: row.try_get(1)?,
                code_version: row.try_get(2)?,
                position: row.try_get(3)?,
            };
            let quarantined: i64 = row.try_get(5)?;
            let status = ProjectionStatus {
                name: generation.name.clone(),
                generation: generation.generation,
                code_version: generation.code_version,
                position: generation.position,
                state: if quarantined > 0 { ProjectionState::Degraded } else { ProjectionState::Live },
                quarantined,
                unknown: row.try_get(4)?,
            };
            Ok((generation, status))
        })
        .collect()
}

/// Moves a checkpoint from where the caller knows it to be; false when it is not there any more.
pub(super) async fn advance(
    conn: &mut PgConnection,
    generation: &Generation,
    to: i64,
    folded: Folded,
) -> Result<bool, sqlx::Error> {
    let moved = sqlx::query(AssertSqlSafe(format!(
        "update read.projections set position = $4, unknown = unknown + $5
          where name = $1 and generation = $2 and position = $3 and state in ('live', 'building')
            and {WITHOUT_WAITING}",
    )))
    .bind(&generation.name)
    .bind(generation.generation)
    .bind(generation.position)
    .bind(to)
    .bind(folded.unknown)
    .execute(conn)
    .await?;
    Ok(moved.rows_affected() == 1)
}

/// Moves the checkpoints of several projections that have nothing to fold, in one statement. Returns those that moved.
pub(super) async fn advance_idle(
    pool: &PgPool,
    idle: &[(String, i32)],
    from: i64,
    to: i64,
) -> Result<Vec<String>, sqlx::Error> {
    let (names, generations): (Vec<&str>, Vec<i32>) = idle.iter().map(|(n, g)| (n.as_str(), *g)).unzip();
    sqlx::query_scalar(AssertSqlSafe(format!(
        "update read.projections p set position = $4
           from unnest($1::text[], $2::int[]) as u (name, generation)
          where p.name = u.name and p.generation = u.generation and p.position = $3 and p.state = 'live'
            and {WITHOUT_WAITING}
         returning p.name",
    )))
    .bind(names)
    .bind(generations)
    .bind(from)
    .bind(to)
    .fetch_all(pool)
    .await
}

/// Notes the events that could not be folded.
pub(super) async fn quarantine<'a>(
    conn: &mut PgConnection,
    name: &str,
    generation: i32,
    poison: impl Iterator<Item = &'a Poison>,
) -> Result<(), sqlx::Error> {
    for p in poison {
        sqlx::query(
            "insert into read.quarantine (name, generation, position, event_type, error) values ($1, $2, $3, $4, $5)
             on conflict (name, generation, position) do update set error = excluded.error",
        )
        .bind(name)
        .bind(generation)
        .bind(p.position)
        .bind(&p.event_type)
        .bind(p.error.replace('\0', "\u{2400}"))
        .execute(&mut *conn)
        .await?;
    }
    Ok(())
}
