//! Who this agent is, as the control plane told it when it enrolled.

use std::fmt;
use std::path::{Path, PathBuf};

use ed25519_dalek::VerifyingKey;
use events::keys::ServerKey;
use serde::{Deserialize, Serialize};
use url::Url;

use crate::state_dir::write_atomically;

/// What an agent keeps of its enrolment. Holds secrets: the file has mode 0600 and `Debug` shows none of them.
#[derive(Clone, Serialize, Deserialize)]
pub struct Identity {
    /// The control plane.
    pub url: Url,
    /// The agent's organisation.
    pub org: String,
    /// The agent's name.
    pub agent: String,
    /// The server it stands for.
    pub server: ServerKey,
    /// The long-lived token.
    pub agent_token: String,
    /// The control plane's Ed25519 key for jobs, hexadecimal. Pinned: jobs signed by another key are refused.
    pub job_signing_key: String,
    /// The seed of the agent's NATS key; never leaves this host.
    pub nats_seed: String,
}

/// What can be wrong with the identity.
#[derive(Debug, thiserror::Error)]
pub enum IdentityError {
    /// There is none.
    #[error(
        "this host is not enrolled: {path} does not exist. Register the server in Benchtrail, then run `benchtrail-agent enrol --url … --token bt_e_…` with the token shown there"
    )]
    Missing {
        /// Where it was looked for.
        path: PathBuf,
    },
    /// It cannot be read.
    #[error("{path} cannot be read: {source}")]
    Unreadable {
        /// Where it is.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// It is damaged.
    #[error("{path} is damaged ({source}): enrol again with --force and a new token")]
    Damaged {
        /// Where it is.
        path: PathBuf,
        /// What is wrong.
        source: serde_json::Error,
    },
    /// The pinned key is no Ed25519 key.
    #[error(
        "the pinned job signing key is not an Ed25519 public key: enrol again with --force and a new token"
    )]
    SigningKey,
}

impl Identity {
    /// Reads the identity.
    ///
    /// # Errors
    /// [`IdentityError`] says what to do.
    pub fn load(path: &Path) -> Result<Self, IdentityError> {
        let bytes = std::fs::read(path).map_err(|source| match source.kind() {
            std::io::ErrorKind::NotFound => IdentityError::Missing { path: path.to_owned() },
            _ => IdentityError::Unreadable { path: path.to_owned(), source },
        })?;
        serde_json::from_slice(&bytes)
            .map_err(|source| IdentityError::Damaged { path: path.to_owned(), source })
    }

    /// Writes the identity, mode 0600.
    ///
    /// # Errors
    /// When the folder cannot be written.
    pub fn save(&self, path: &Path) -> std::io::Result<()> {
        let mut json = serde_json::to_vec_pretty(self)?;
        json.push(b'\n');
        write_atomically(path, &json)
    }

    /// The pinned key.
    ///
    /// # Errors
    /// [`IdentityError::SigningKey`] when it is none.
    pub fn verifying_key(&self) -> Result<VerifyingKey, IdentityError> {
        let bytes: [u8; 32] = hex::decode(&self.job_signing_key)
            .ok()
            .and_then(|bytes| bytes.try_into().ok())
            .ok_or(IdentityError::SigningKey)?;
        VerifyingKey::from_bytes(&bytes).map_err(|_| IdentityError::SigningKey)
    }

    /// The values that must never be written anywhere.
    pub fn secrets(&self) -> Vec<String> {
        vec![self.agent_token.clone(), self.nats_seed.clone()]
    }
}

impl fmt::Debug for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Identity")
            .field("url", &self.url.as_str())
            .field("org", &self.org)
            .field("agent", &self.agent)
            .finish_non_exhaustive()
    }
}
