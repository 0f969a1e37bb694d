//! Which log a process's output goes to: a model server that is kept writes into the log of the job it serves.

use std::sync::{Arc, Mutex, PoisonError};

use super::LogHandle;

/// Where output goes now; cheap to clone. Nowhere between two jobs.
#[derive(Clone)]
pub struct LogSwitch(Arc<Mutex<Option<LogHandle>>>);

impl LogSwitch {
    /// Output goes to this log.
    pub fn to(log: &LogHandle) -> Self {
        Self(Arc::new(Mutex::new(Some(log.clone()))))
    }

    /// From now on output goes to another log, or nowhere.
    pub fn turn(&self, log: Option<&LogHandle>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = log.cloned();
    }

    /// Adds lines to the log that is on.
    pub async fn lines(&self, lines: Vec<String>) {
        let log = self.0.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if let Some(log) = log {
            log.lines(lines).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use events::tool_output::LogSource;

    use super::*;
    use crate::logs::{LogLimits, LogWriter};

    #[tokio::test]
    async fn lines_go_to_the_log_that_is_on_and_hold_no_other_open() {
        let folder = tempfile::tempdir().unwrap();
        let start = |name: &str| {
            let limits = LogLimits { live_lines: 10, file_bytes: 1 << 10 };
            LogWriter::start(LogSource::Framework, &folder.path().join(name), limits, |_| {}).unwrap()
        };
        let (first, first_handle) = start("first");
        let switch = LogSwitch::to(&first_handle);
        switch.lines(vec!["one".into()]).await;
        drop(first_handle);
        switch.turn(None);
        switch.lines(vec!["between".into()]).await;
        // It ends although the switch is still there.
        assert_eq!(first.end().await.unwrap().lines, 1);

        let (second, second_handle) = start("second");
        switch.turn(Some(&second_handle));
        switch.lines(vec!["two".into()]).await;
        drop((second_handle, switch));
        second.end().await.unwrap();
        assert_eq!(std::fs::read_to_string(folder.path().join("second")).unwrap(), "two\n");
    }
}
