//! Rows as they come, in the formats without a limit: CSV, NDJSON, Parquet.

use std::time::Duration;

use axum::body::Body;
use bytes::Bytes;
use futures::TryStreamExt;
use sqlx::postgres::PgRow;
use sqlx::{Postgres, Transaction};
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;

use super::encode;
use super::params::Query;
use super::parquet::ParquetRows;
use super::request::Format;
use super::sql::Statement;
use super::view::{bound, kinds, names};
use crate::projections::Kind;

/// Bytes sent at a time.
pub(super) const CHUNK: usize = 64 * 1024;

/// Rows read before they are handed on.
const BATCH: usize = 256;
/// How long a client may take nothing before its export is broken off: until then it holds a connection to the database.
const STALLED: Duration = Duration::from_secs(60);
/// Batches that are read ahead: about as many rows as come while a row group of Parquet is written.
const AHEAD: usize = 24;

/// Writes rows in one format.
enum Writer {
    Csv { kinds: Vec<Kind> },
    Ndjson { names: Vec<String>, kinds: Vec<Kind> },
    Parquet(Box<ParquetRows>),
}

impl Writer {
    fn new(
        format: Format,
        query: &Query<'_>,
        about: &[(&str, String)],
        out: &mut Vec<u8>,
    ) -> std::io::Result<Self> {
        Ok(match format {
            Format::Parquet => Self::Parquet(Box::new(ParquetRows::new(query, about)?)),
            Format::Csv => {
                for (nth, (alias, _)) in query.select.iter().enumerate() {
                    if nth > 0 {
                        out.push(b',');
                    }
                    encode::csv_field(alias.as_bytes(), out);
                }
                out.extend_from_slice(b"\r\n");
                Self::Csv { kinds: kinds(query) }
            }
            _ => Self::Ndjson { names: names(query), kinds: kinds(query) },
        })
    }

    fn row(&mut self, row: &PgRow, out: &mut Vec<u8>) -> std::io::Result<()> {
        match self {
            Self::Csv { kinds } => encode::csv_row(row, kinds, out).map_err(std::io::Error::other),
            Self::Ndjson { names, kinds } => {
                encode::json_row(row, names, kinds, out).map_err(std::io::Error::other)?;
                out.push(b'\n');
                Ok(())
            }
            Self::Parquet(rows) => rows.row(row, out),
        }
    }

    fn finish(self, out: &mut Vec<u8>) -> std::io::Result<()> {
        match self {
            Self::Csv { .. } | Self::Ndjson { .. } => Ok(()),
            Self::Parquet(rows) => rows.finish(out),
        }
    }
}

/// The rows of a statement, read in one task and written in another, so that the database goes on while rows are written. An
/// error in the middle breaks the transfer off, so that nobody takes the part for the whole.
///
/// # Errors
/// The columns have no form in this format.
pub(super) fn stream(
    tx: Transaction<'static, Postgres>,
    statement: Statement,
    query: &Query<'_>,
    format: Format,
    about: &[(&str, String)],
) -> std::io::Result<Body> {
    let (sender, receiver) = mpsc::channel::<Result<Bytes, std::io::Error>>(4);
    let mut out = Vec::with_capacity(CHUNK * 2);
    let writer = Writer::new(format, query, about, &mut out)?;
    let (rows, batches) = mpsc::channel::<Batch>(AHEAD);
    tokio::spawn(read(tx, statement, rows));
    tokio::spawn(async move {
        if let Err(error) = write(batches, writer, out, &sender).await {
            tracing::warn!(%error, "an export broke off");
            // The rows are let go of by now; a client that takes nothing may come back, and must not find a whole file.
            let _ = sender.send(Err(error)).await;
        }
    });
    Ok(Body::from_stream(ReceiverStream::new(receiver)))
}

/// Rows that are handed on together; an error is the last of them, and `None` says that there are no more.
type Batch = std::io::Result<Option<Vec<PgRow>>>;

async fn read(mut tx: Transaction<'static, Postgres>, statement: Statement, rows: mpsc::Sender<Batch>) {
    let mut found = bound(statement).fetch(&mut *tx);
    let mut batch = Vec::with_capacity(BATCH);
    let last = loop {
        match found.try_next().await {
            Ok(Some(row)) => batch.push(row),
            Ok(None) => break Ok(None),
            Err(error) => break Err(std::io::Error::other(error)),
        }
        if batch.len() == BATCH {
            let full = std::mem::replace(&mut batch, Vec::with_capacity(BATCH));
            if rows.send(Ok(Some(full))).await.is_err() {
                // The client went away.
                return;
            }
        }
    };
    if rows.send(Ok(Some(batch))).await.is_ok() {
        let _ = rows.send(last).await;
    }
}

async fn write(
    mut batches: mpsc::Receiver<Batch>,
    mut writer: Writer,
    mut out: Vec<u8>,
    sender: &mpsc::Sender<Result<Bytes, std::io::Error>>,
) -> std::io::Result<()> {
    loop {
        let batch = match batches.recv().await {
            Some(batch) => batch?,
            None => return Err(std::io::Error::other("the rows are no longer read")),
        };
        let Some(batch) = batch else { break };
        for row in &batch {
            writer.row(row, &mut out)?;
            if out.len() >= CHUNK && !send(sender, &mut out, STALLED).await? {
                // The client went away.
                return Ok(());
            }
        }
    }
    writer.finish(&mut out)?;
    send(sender, &mut out, STALLED).await?;
    Ok(())
}

/// Hands on what was written; false where the client went away.
///
/// # Errors
/// The client took nothing for as long as `patience`.
async fn send(
    sender: &mpsc::Sender<Result<Bytes, std::io::Error>>,
    out: &mut Vec<u8>,
    patience: Duration,
) -> std::io::Result<bool> {
    let next = Vec::with_capacity(CHUNK * 2);
    let sent = sender.send(Ok(std::mem::replace(out, next).into()));
    match tokio::time::timeout(patience, sent).await {
        Ok(sent) => Ok(sent.is_ok()),
        Err(_) => Err(std::io::Error::other(format!("the client took nothing for {} s", patience.as_secs()))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_client_that_takes_nothing_is_not_waited_for_for_ever() {
        let (sender, mut receiver) = mpsc::channel(1);
        let send = async |text: &str| send(&sender, &mut text.as_bytes().to_vec(), Duration::ZERO).await;
        assert!(send("one").await.unwrap());
        assert!(send("two").await.unwrap_err().to_string().contains("took nothing"));
        assert_eq!(receiver.recv().await.unwrap().unwrap(), "one");
        assert!(send("three").await.unwrap(), "it came back");
        drop(receiver);
        assert!(!send("four").await.unwrap(), "it went away");
    }
}
