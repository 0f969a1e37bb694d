//! `benchtrail quota`: what an operator allows an organisation.

use std::collections::BTreeMap;
use std::process::ExitCode;
use std::str::FromStr;

use clap::Args;
use events::quota::Resource;
use uuid::Uuid;

use super::locate::Located;
use super::people::said;
use super::{DEFAULT_ORG, DirArgs};
use crate::auth::Principal;
use crate::clock;
use crate::commands::RequestMeta;
use crate::commands::quotas::set_quotas;
use crate::state::AppState;

/// A limit, as the command line spells it.
#[derive(Debug, Clone, Copy)]
struct Limit(Option<u64>);

impl FromStr for Limit {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "none" => Ok(Self(None)),
            number => number
                .parse()
                .map(|limit| Self(Some(limit)))
                .map_err(|_| format!("{number:?} is neither a whole number nor `none`")),
        }
    }
}

/// Limit what an organisation may have, and show what it uses. What is not named stays as it is.
#[derive(Debug, Args)]
pub struct SetQuota {
    #[command(flatten)]
    dir: DirArgs,
    /// The organisation.
    #[arg(long, default_value = DEFAULT_ORG, value_name = "CODE")]
    org: String,
    /// Projects that are not archived, or `none` for no limit.
    #[arg(long, value_name = "N")]
    projects: Option<Limit>,
    /// Jobs of runs that are not finished, or `none` for no limit.
    #[arg(long, value_name = "N")]
    open_jobs: Option<Limit>,
    /// Bytes of logs, request logs, prompts and images that are kept, or `none` for no limit.
    #[arg(long, value_name = "BYTES")]
    stored_bytes: Option<Limit>,
}

impl SetQuota {
    pub async fn run(self) -> anyhow::Result<ExitCode> {
        let located = Located::find(&self.dir.dir).await?;
        let made = async { self.make(&located.open(&self.dir.dir).await?).await }.await;
        located.close().await;
        print!("{}", made?);
        Ok(ExitCode::SUCCESS)
    }

    async fn make(&self, state: &AppState) -> anyhow::Result<String> {
        let named = [
            (Resource::Projects, self.projects),
            (Resource::OpenJobs, self.open_jobs),
            (Resource::StoredBytes, self.stored_bytes),
        ];
        let quotas: BTreeMap<Resource, Option<u64>> =
            named.into_iter().filter_map(|(resource, limit)| Some((resource, limit?.0))).collect();
        let meta = RequestMeta { correlation_id: Uuid::now_v7(), idempotency_key: None, now: clock::now() };
        let operator = Principal::operator(&self.org);
        set_quotas(state, &operator, &self.org, &quotas, meta).await.map_err(said)?;
        state.work.catch_up().await.map_err(said)?;
        let (limits, usage) = state.work.read(|index| {
            let limits = index.quota(&self.org).map(|quota| quota.limits.clone()).unwrap_or_default();
            (limits, index.usage(&self.org))
        });
        Ok(Resource::ALL
            .iter()
            .map(|resource| {
                let limit = limits.get(resource).map_or_else(|| "no limit".to_owned(), u64::to_string);
                let used = usage.get(resource).copied().unwrap_or(0);
                format!("{:<13} {used} of {limit}\n", resource.as_str())
            })
            .collect())
    }
}
