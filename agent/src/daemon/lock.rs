//! One agent a state folder.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};

use nix::fcntl::{Flock, FlockArg};

/// Held for as long as the agent runs; the kernel releases it whatever happens to the process.
#[derive(Debug)]
pub struct SingleInstance(#[allow(dead_code, reason = "held for its drop")] Flock<File>);

/// Why the lock is not to be had.
#[derive(Debug, thiserror::Error)]
pub enum LockError {
    /// Another agent holds it.
    #[error(
        "another agent (process {pid}) runs on this state folder: {path} is locked. Stop it, or use another --state-dir"
    )]
    Taken {
        /// The other agent, as it wrote it down.
        pid: String,
        /// The lock.
        path: PathBuf,
    },
    /// The file cannot be used.
    #[error("the lock {path} cannot be used: {source}")]
    Unusable {
        /// The lock.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
}

impl SingleInstance {
    /// Takes the lock.
    ///
    /// # Errors
    /// [`LockError`].
    pub fn lock(path: &Path) -> Result<Self, LockError> {
        let unusable = |source| LockError::Unusable { path: path.to_owned(), source };
        let file = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path);
        let mut lock = match Flock::lock(file.map_err(unusable)?, FlockArg::LockExclusiveNonblock) {
            Ok(lock) => lock,
            Err((_, nix::errno::Errno::EWOULDBLOCK)) => {
                let pid = std::fs::read_to_string(path).unwrap_or_default().trim().to_owned();
                return Err(LockError::Taken { pid, path: path.to_owned() });
            }
            Err((_, errno)) => return Err(unusable(errno.into())),
        };
        lock.set_len(0).and_then(|()| writeln!(lock, "{}", std::process::id())).map_err(unusable)?;
        Ok(Self(lock))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_agent_on_the_same_folder_is_told_which_one_runs() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("lock");
        let first = SingleInstance::lock(&path).unwrap();
        let error = SingleInstance::lock(&path).unwrap_err();
        assert!(error.to_string().contains(&std::process::id().to_string()), "{error}");
        drop(first);
        SingleInstance::lock(&path).unwrap();
    }
}
