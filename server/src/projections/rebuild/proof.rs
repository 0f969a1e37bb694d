//! The proof: live and rebuilt rows at the same position, byte for byte.

use futures::TryStreamExt;
use sha2::{Digest, Sha256};
use sqlx::{Connection, PgConnection, PgPool};
use tokio_util::sync::CancellationToken;

use super::{Site, TableProof};
use crate::log::Log;
use crate::projections::runner::run_to;
use crate::projections::{ProjectionError, registry, relation};

/// Compares every table of both generations. The live rows are read in one snapshot, so nobody waits for it; the new
/// tables are moved to exactly the position that the snapshot stands at.
pub(super) async fn compare(
    pool: &PgPool,
    log: &Log,
    site: &Site,
    built: i64,
    stop: &CancellationToken,
) -> Result<(i64, Vec<TableProof>), ProjectionError> {
    loop {
        if stop.is_cancelled() {
            return Err(ProjectionError::Cancelled);
        }
        let mut conn = pool.acquire().await?;
        let mut snapshot = conn.begin_with("begin isolation level repeatable read read only").await?;
        let position: i64 = sqlx::query_scalar(
            "select position from read.projections where name = $1 and generation = $2 and state = 'live'",
        )
        .bind(site.name)
        .bind(site.from_generation)
        .fetch_one(&mut *snapshot)
        .await?;
        if position < built {
            // Nobody leads, or the leader is behind: the live tables must come to where the new ones are.
            drop(snapshot);
            drop(conn);
            match run_to(pool, log, site.name, site.from_generation, built).await {
                Ok(_) | Err(ProjectionError::Busy(_)) => continue,
                Err(error) => return Err(error),
            }
        }
        run_to(pool, log, site.name, site.generation, position).await?;
        let mut proofs = Vec::new();
        let mut other = pool.begin().await?;
        // Large tables take their time.
        for conn in [&mut snapshot, &mut other] {
            sqlx::query("set local statement_timeout = 0").execute(&mut **conn).await?;
        }
        for mut projection in registry().into_iter().filter(|p| p.name() == site.name) {
            for table in projection.tables() {
                let order = table.primary_key().join(", ");
                let columns: Vec<&str> = table.columns().iter().map(|c| c.name.as_str()).collect();
                let columns = columns.join(", ");
                let live = relation(table.name(), site.from_generation);
                let rebuilt = relation(table.name(), site.generation);
                let (rows_live, sha256_live) = digest(&mut snapshot, &live, &columns, &order).await?;
                let (rows_rebuilt, sha256_rebuilt) = digest(&mut other, &rebuilt, &columns, &order).await?;
                proofs.push(TableProof {
                    table: table.name().to_owned(),
                    rows_live,
                    rows_rebuilt,
                    equal: rows_live == rows_rebuilt && sha256_live == sha256_rebuilt,
                    sha256_live,
                    sha256_rebuilt,
                });
            }
        }
        return Ok((position, proofs));
    }
}

/// How many rows a table has, and the SHA-256 of all of them in key order, as COPY writes them.
async fn digest(
    conn: &mut PgConnection,
    table: &str,
    columns: &str,
    order: &str,
) -> Result<(i64, String), sqlx::Error> {
    let mut hash = Sha256::new();
    let mut rows = 0;
    let sql = format!("copy (select {columns} from {table} order by {order}) to stdout");
    let mut stream = conn.copy_out_raw(&sql).await?;
    while let Some(bytes) = stream.try_next().await? {
        // COPY's text has a line a row; line ends inside a value are escaped.
        rows += bytes.iter().filter(|b| **b == b'\n').count() as i64;
        hash.update(&bytes);
    }
    Ok((rows, hex::encode(hash.finalize())))
}
