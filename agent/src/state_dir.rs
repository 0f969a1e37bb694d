//! Where the agent keeps what must outlive it.

use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// The agent's state folder: identity, policy, spool, and what it was doing.
#[derive(Debug, Clone)]
pub struct StateDir {
    root: PathBuf,
}

impl StateDir {
    /// The folder at `root`. Nothing is created.
    pub fn new(root: impl Into<PathBuf>) -> Self {
        Self { root: root.into() }
    }

    /// Where the state lies when nothing else was said: `/var/lib/benchtrail-agent` for root,
    /// `$XDG_STATE_HOME/benchtrail-agent` or `~/.local/state/benchtrail-agent` for everyone else.
    pub fn default_root() -> PathBuf {
        if nix::unistd::geteuid().is_root() {
            return PathBuf::from("/var/lib/benchtrail-agent");
        }
        let state = std::env::var_os("XDG_STATE_HOME").map(PathBuf::from).or_else(|| {
            std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".local").join("state"))
        });
        state.unwrap_or_else(|| PathBuf::from(".")).join("benchtrail-agent")
    }

    /// Creates the folder, readable by its owner only.
    ///
    /// # Errors
    /// When it cannot be created.
    pub fn create(&self) -> io::Result<()> {
        fs::DirBuilder::new().recursive(true).mode(0o700).create(&self.root)
    }

    /// The folder itself.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Who this agent is: tokens and keys, mode 0600.
    pub fn identity(&self) -> PathBuf {
        self.root.join("identity.json")
    }

    /// The rows of prompt sources, kept by their hash.
    pub fn sources(&self) -> PathBuf {
        self.root.join("sources")
    }

    /// The hashes of weights that were served.
    pub fn weights(&self) -> PathBuf {
        self.root.join("weights.json")
    }

    /// The policy, unless another file was named.
    pub fn policy(&self) -> PathBuf {
        self.root.join("agent.toml")
    }

    /// The file whose lock makes this the only agent on the folder.
    pub fn lock(&self) -> PathBuf {
        self.root.join("lock")
    }

    /// The model server that is kept between two jobs.
    pub fn kept_server(&self) -> PathBuf {
        self.root.join("kept-server.json")
    }

    /// Reports that are not acknowledged.
    pub fn spool(&self) -> PathBuf {
        self.root.join("spool")
    }

    /// The attempt being carried out, with the processes it started.
    pub fn attempt(&self) -> PathBuf {
        self.root.join("attempt.json")
    }

    /// The claim whose answer has not arrived.
    pub fn claim(&self) -> PathBuf {
        self.root.join("claim.json")
    }

    /// Files waiting to be uploaded.
    pub fn uploads(&self) -> PathBuf {
        self.root.join("uploads")
    }
}

/// Writes a file so that it is there whole or not at all, also after a power cut; mode 0600.
///
/// # Errors
/// When the folder cannot be written.
pub fn write_atomically(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let temporary = path.with_extension("tmp");
    let mut file =
        fs::OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&temporary)?;
    file.write_all(bytes)?;
    file.sync_all()?;
    fs::rename(&temporary, path)?;
    if let Some(folder) = path.parent() {
        fs::File::open(folder)?.sync_all()?;
    }
    Ok(())
}
