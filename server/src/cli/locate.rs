//! Finding the database for a command that is done in a moment: one of your own, that of the control plane that runs,
//! or the private one, which is started for as long as it takes.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use serde::{Deserialize, Serialize};
use tokio_util::sync::CancellationToken;

use crate::config::Config;
use crate::log;
use crate::plant::{NatsEndpoints, Plant, PlantConfig};
use crate::secrets::write_private;
use crate::state::AppState;

/// What a running control plane writes into its folder, for scripts and for other commands.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ServerFile {
    /// The page's address.
    pub url: String,
    /// The process.
    pub pid: u32,
    /// When the process began, in the kernel's ticks since boot: a process of the same number that began at another time
    /// is another one. Absent in files of earlier versions.
    #[serde(default)]
    pub began: Option<u64>,
    /// The control plane's version.
    pub version: String,
    /// Where its database is. A private one lets its own user in and nobody else.
    pub database_url: String,
    /// Where its NATS is.
    pub nats_url: String,
}

impl ServerFile {
    fn path(dir: &Path) -> PathBuf {
        dir.join("server.json")
    }

    /// Writes it, for the owner alone.
    pub fn write(&self, dir: &Path) -> anyhow::Result<()> {
        let path = Self::path(dir);
        // Written whole and then put in place: a script that waits for it never reads half.
        let unfinished = path.with_extension("new");
        write_private(&unfinished, &format!("{}\n", serde_json::to_string_pretty(self)?))
            .and_then(|()| std::fs::rename(&unfinished, &path))
            .with_context(|| format!("writing {}", path.display()))
    }

    /// Removes it, if it is still this process's.
    pub fn remove(&self, dir: &Path) {
        if Self::read(dir).is_some_and(|file| file.pid == self.pid) {
            let _ = std::fs::remove_file(Self::path(dir));
        }
    }

    /// The file of a control plane that still runs.
    pub fn read(dir: &Path) -> Option<Self> {
        let text = std::fs::read_to_string(Self::path(dir)).ok()?;
        let file: Self = serde_json::from_str(&text).ok()?;
        let began = process_began(file.pid)?;
        file.began.is_none_or(|noted| noted == began).then_some(file)
    }
}

/// When a process began, in the kernel's ticks since boot; nothing where there is none.
pub fn process_began(pid: u32) -> Option<u64> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name, in parentheses, may hold anything; the 22nd field is the 20th after it.
    let (_, fields) = stat.rsplit_once(") ")?;
    fields.split(' ').nth(19)?.parse().ok()
}

/// A database, and the plant that was started for it, if any.
#[derive(Debug)]
pub struct Located {
    /// Connects as its owner.
    pub database_url: String,
    plant: Option<Plant>,
}

impl Located {
    /// Finds the database of `dir`.
    pub async fn find(dir: &Path) -> anyhow::Result<Self> {
        if let Some(database_url) = std::env::var("DATABASE_URL").ok().filter(|url| !url.is_empty()) {
            return Ok(Self { database_url, plant: None });
        }
        if let Some(file) = ServerFile::read(dir) {
            return Ok(Self { database_url: file.database_url, plant: None });
        }
        if !dir.join("postgres").exists() {
            bail!(
                "there is no data in {}. Run `benchtrail up` first, name its folder with --dir, \
                 or set DATABASE_URL to a database of your own",
                dir.display()
            );
        }
        let plant = Plant::start(PlantConfig::from_env(dir)?).await?;
        Ok(Self { database_url: plant.database_url.clone(), plant: Some(plant) })
    }

    /// Opens the control plane's state on it, without NATS and without serving anything.
    pub async fn open(&self, dir: &Path) -> anyhow::Result<AppState> {
        log::migrate(&self.database_url).await?;
        let listen = std::net::SocketAddr::from(([127, 0, 0, 1], 0));
        let mut config = Config::new(dir, listen);
        if let Some(file) = ServerFile::read(dir)
            && let Ok(url) = file.url.parse()
        {
            config.public_url = url;
        }
        let nowhere = NatsEndpoints { url: String::new(), credentials: None, account: None };
        Ok(AppState::open(&self.database_url, nowhere, config, CancellationToken::new()).await?)
    }

    /// Stops what was started.
    pub async fn close(self) {
        if let Some(plant) = self.plant {
            plant.stop().await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_a_process_left_is_not_taken_for_one_of_a_process_that_has_its_number_now() {
        let dir = tempfile::tempdir().unwrap();
        let pid = std::process::id();
        let file = ServerFile {
            url: "http://127.0.0.1:1".into(),
            pid,
            began: process_began(pid),
            version: "0".into(),
            database_url: "postgres://none".into(),
            nats_url: String::new(),
        };
        assert!(file.began.is_some_and(|ticks| ticks > 0), "{:?}", file.began);
        file.write(dir.path()).unwrap();
        assert_eq!(ServerFile::read(dir.path()), Some(file.clone()));

        let other = ServerFile { began: file.began.map(|ticks| ticks - 1), ..file.clone() };
        other.write(dir.path()).unwrap();
        assert_eq!(ServerFile::read(dir.path()), None);
        // The kernel's first process is there, and another user's.
        let other = ServerFile { pid: 1, began: Some(u64::MAX), ..file };
        other.write(dir.path()).unwrap();
        assert_eq!(ServerFile::read(dir.path()), None);
    }
}
