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
        let pid = nix::unistd::Pid::from_raw(i32::try_from(file.pid).ok()?);
        nix::sys::signal::kill(pid, None).is_ok().then_some(file)
    }
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
