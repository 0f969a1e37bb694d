//! `benchtrail-agent enrol`: from a one-time token to an identity.

use std::path::PathBuf;

use anyhow::Context;
use events::report::EnrolRequest;
use url::Url;

use crate::control::Https;
use crate::identity::Identity;
use crate::policy;
use crate::state_dir::{StateDir, write_atomically};

/// What `enrol` was asked to do.
pub struct Enrolment {
    /// The control plane.
    pub url: Url,
    /// The one-time token.
    pub token: String,
    /// The folders to write into the policy's `search_dirs`.
    pub bin_dirs: Vec<PathBuf>,
    /// The models to write into the policy.
    pub models: Vec<(String, String)>,
    /// The networks to write into the policy's `allowed_networks`.
    pub networks: Vec<String>,
    /// Enrol although there is an identity.
    pub force: bool,
    /// Write the policy although there is one.
    pub replace_policy: bool,
}

/// There is an identity already.
#[derive(Debug, thiserror::Error)]
#[error("this host is enrolled already ({0}). To enrol it anew, use a new token and --force")]
pub struct AlreadyEnrolled(pub PathBuf);

/// Enrols: makes a NATS key, trades the token, writes the identity and, if there is none, a policy.
///
/// # Errors
/// Says what to do. The token is used up only when the control plane accepted it.
pub async fn enrol(state: &StateDir, policy_path: &std::path::Path, ask: Enrolment) -> anyhow::Result<()> {
    if state.identity().exists() && !ask.force {
        return Err(AlreadyEnrolled(state.identity()).into());
    }
    state
        .create()
        .with_context(|| format!("the state folder {} cannot be created", state.root().display()))?;

    if policy_path.exists() && !ask.replace_policy {
        println!("policy   {} (kept as it was)", policy_path.display());
    } else {
        let bin_dirs = ask.bin_dirs.iter().map(std::path::absolute).collect::<Result<Vec<_>, _>>()?;
        let text = policy::template(state, &bin_dirs, &ask.models, &ask.networks);
        write_atomically(policy_path, text.as_bytes())
            .with_context(|| format!("the policy {} cannot be written", policy_path.display()))?;
        println!("policy   {} (written; read it: it says what this host allows)", policy_path.display());
    }

    let key = nkeys::KeyPair::new_user();
    let https = Https::new(&ask.url, "")?;
    let reply = https
        .enrol(&EnrolRequest {
            token: ask.token,
            nats_public_key: key.public_key(),
            agent_version: env!("CARGO_PKG_VERSION").into(),
        })
        .await
        .with_context(|| format!("enrolling at {} failed", ask.url))?;

    let identity = Identity {
        url: ask.url,
        org: reply.org,
        agent: reply.agent,
        server: reply.server,
        agent_token: reply.agent_token,
        job_signing_key: reply.job_signing_key,
        nats_seed: key.seed().context("the NATS key could not be made")?,
    };
    identity.verifying_key()?;
    let path = state.identity();
    identity.save(&path).with_context(|| format!("{} cannot be written", path.display()))?;
    println!("identity {} (secret, mode 0600)", path.display());
    println!("enrolled as {} of {}, for server {}", identity.agent, identity.org, identity.server.stream());
    println!("next: benchtrail-agent --state-dir {} doctor, then run", state.root().display());
    Ok(())
}
