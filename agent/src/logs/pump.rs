//! From a process's output to its log.

use tokio::io::{AsyncRead, AsyncReadExt};

use super::{LineSplitter, LogSwitch, Redactor, Secrets};

/// Reads until the stream ends. Secrets never get further than this.
pub async fn pump(mut stream: impl AsyncRead + Unpin, secrets: Secrets, log: LogSwitch) {
    let mut redactor = Redactor::new(secrets);
    let mut splitter = LineSplitter::default();
    let mut chunk = vec![0; 16 << 10];
    loop {
        match stream.read(&mut chunk).await {
            Ok(0) => break,
            Ok(read) => log.lines(splitter.push(&redactor.push(&chunk[..read]))).await,
            Err(error) => {
                tracing::warn!(%error, "a process's output cannot be read any further");
                break;
            }
        }
    }
    let mut lines = splitter.push(&redactor.finish());
    lines.extend(splitter.finish());
    log.lines(lines).await;
}
