//! The folders of one attempt.

use std::path::{Path, PathBuf};

use events::keys::JobKey;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};

use crate::tools::ToolFiles;

/// Where one attempt works and where it leaves its logs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// Processes work in here.
    pub work_dir: PathBuf,
    /// Logs and summaries lie here.
    pub log_dir: PathBuf,
}

impl Place {
    /// The folders of an attempt below the policy's.
    pub fn of(work_dir: &Path, log_dir: &Path, job: &JobKey, attempt: u32) -> Self {
        let run = job.run.to_string();
        let attempt = format!("attempt-{attempt}");
        let parts = [&*job.org, &*job.project, &*job.workload, &*run, &*job.scenario, &*attempt];
        let below =
            |root: &Path| parts.iter().fold(root.to_owned(), |path, part| path.join(folder_name(part)));
        Self { work_dir: below(work_dir), log_dir: below(log_dir) }
    }

    /// Creates the folders.
    ///
    /// # Errors
    /// Names the folder that cannot be created.
    pub fn create(&self) -> std::io::Result<()> {
        for folder in [&self.work_dir, &self.log_dir] {
            std::fs::create_dir_all(folder)
                .map_err(|e| std::io::Error::new(e.kind(), format!("{}: {e}", folder.display())))?;
        }
        Ok(())
    }

    /// The model server's log.
    pub fn framework_log(&self) -> PathBuf {
        self.log_dir.join("framework.log")
    }

    /// The tool's log.
    pub fn tool_log(&self) -> PathBuf {
        self.log_dir.join("tool.log")
    }

    /// The agent's log of this attempt.
    pub fn agent_log(&self) -> PathBuf {
        self.log_dir.join("agent.log")
    }

    /// The model servers' addresses, for a tool that spreads its load over them.
    pub fn endpoints_file(&self) -> PathBuf {
        self.log_dir.join("endpoints.json")
    }

    /// What the tool writes for the agent.
    pub fn tool_files(&self) -> ToolFiles {
        ToolFiles::inside(&self.log_dir)
    }
}

/// A key's part as a folder name: whatever could leave the folder or mean something else is encoded.
fn folder_name(part: &str) -> String {
    const KEEP: &percent_encoding::AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.');
    let name = utf8_percent_encode(part, KEEP).to_string();
    if name.trim_matches('.').is_empty() { name.replace('.', "%2E") } else { name }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_cannot_leave_its_folder() {
        assert_eq!(folder_name(".."), "%2E%2E");
        assert_eq!(folder_name("a/../b"), "a%2F..%2Fb");
        assert_eq!(folder_name("c8-isl512.v1"), "c8-isl512.v1");
    }
}
