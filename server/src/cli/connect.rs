//! What a control plane is connected to beside its database: an OpenID provider, a mail server, addresses that
//! people name.

use std::path::PathBuf;

use anyhow::{Context as _, bail};
use clap::Args;
use events::networks::Networks;
use ipnet::IpNet;
use url::Url;

use crate::api::limits::{Rate, Rates};
use crate::auth::oidc::OidcConfig;
use crate::config::Config;
use crate::notify::{self, SmtpConfig};
use crate::outbound::Policy;
use crate::secrets::Hidden;

/// What it is connected to. Secrets come from the environment or from files, never from the command line.
#[derive(Debug, Clone, Args)]
pub(super) struct ConnectArgs {
    /// The OpenID provider that people may sign in by, exactly as it calls itself. It has to know the address
    /// PUBLIC-URL/api/oidc/callback; a confidential client's secret is in BENCHTRAIL_OIDC_CLIENT_SECRET.
    #[arg(long, env = "BENCHTRAIL_OIDC_ISSUER", value_name = "URL", requires = "oidc_client_id")]
    oidc_issuer: Option<String>,
    /// How the OpenID provider knows this control plane.
    #[arg(long, env = "BENCHTRAIL_OIDC_CLIENT_ID", value_name = "ID")]
    oidc_client_id: Option<String>,
    /// What the button for signing in by the OpenID provider says.
    #[arg(long, env = "BENCHTRAIL_OIDC_LABEL", value_name = "TEXT", default_value = "Single sign-on")]
    oidc_label: String,
    /// Whom e-mails are from, for example `Benchtrail <benchtrail@example.org>`. The mail server is in
    /// BENCHTRAIL_SMTP_URL: smtps://user:password@host, or smtp://user:password@host:587?tls=required.
    #[arg(long, env = "BENCHTRAIL_SMTP_FROM", value_name = "ADDRESS")]
    smtp_from: Option<String>,
    /// The folder of the programs that agents' hosts fetch (benchtrail-agent and the load generators). Without it: the
    /// one this program lies in, where benchtrail-agent is there too.
    #[arg(long, env = "BENCHTRAIL_AGENT_DIR", value_name = "FOLDER")]
    agent_dir: Option<PathBuf>,
    /// Requests a second of each person and API token in the long run; twice as many may come at once.
    #[arg(long, env = "BENCHTRAIL_RATE_PERSON", value_name = "N", default_value_t = 2000)]
    rate_person: u32,
    /// Requests a second of each address from which nobody is signed in; ten times as many may come at once.
    #[arg(long, env = "BENCHTRAIL_RATE_ANONYMOUS", value_name = "N", default_value_t = 100)]
    rate_anonymous: u32,
    /// Requests a second of each agent; four times as many may come at once.
    #[arg(long, env = "BENCHTRAIL_RATE_AGENT", value_name = "N", default_value_t = 500)]
    rate_agent: u32,
    /// Ranges that this control plane may send to although they are not public: where people's webhooks lie, and where an
    /// OpenID provider's documents lead to beside itself. For example 10.20.0.0/16.
    #[arg(long, env = "BENCHTRAIL_OUTBOUND_ALLOW", value_name = "RANGE,…", value_delimiter = ',')]
    outbound_allow: Vec<IpNet>,
    /// Ranges that workloads may name although they are not public: endpoints that run already, images and audio behind
    /// addresses. Each agent's own allowed_networks have the last word. For example 10.0.0.0/8.
    #[arg(long, env = "BENCHTRAIL_ENDPOINT_ALLOW", value_name = "RANGE,…", value_delimiter = ',')]
    endpoint_allow: Vec<IpNet>,
}

/// A variable of the environment, where it holds something.
fn secret(name: &str) -> Option<Hidden> {
    std::env::var(name).ok().filter(|value| !value.is_empty()).map(Hidden::new)
}

/// The folder this program lies in, where the agent lies beside it.
fn own_folder() -> Option<PathBuf> {
    let folder = std::env::current_exe().ok()?.parent()?.to_owned();
    folder.join("benchtrail-agent").is_file().then_some(folder)
}

impl ConnectArgs {
    /// Writes it into the settings.
    pub(super) fn apply(&self, config: &mut Config) -> anyhow::Result<()> {
        config.outbound = Policy::of_control_plane(Networks::of(self.outbound_allow.clone()));
        config.endpoints = Policy::of_agents(Networks::of(self.endpoint_allow.clone()));
        config.agent_dir = self.agent_dir.clone().or_else(own_folder);
        config.rates = Rates {
            person: Rate::new(self.rate_person, self.rate_person.saturating_mul(2)),
            anonymous: Rate::new(self.rate_anonymous, self.rate_anonymous.saturating_mul(10)),
            agent: Rate::new(self.rate_agent, self.rate_agent.saturating_mul(4)),
        };
        if let Some(url) = secret("BENCHTRAIL_SMTP_URL") {
            let from = self.smtp_from.clone().context("BENCHTRAIL_SMTP_URL needs --smtp-from as well")?;
            let smtp = SmtpConfig { url, from };
            notify::check_smtp(&smtp).map_err(anyhow::Error::msg)?;
            config.smtp = Some(smtp);
        }
        if let Some(issuer) = &self.oidc_issuer {
            let url = Url::parse(issuer)
                .with_context(|| format!("the OpenID provider {issuer:?} is no address"))?;
            let local =
                url.host_str().is_some_and(|host| matches!(host, "localhost" | "127.0.0.1" | "[::1]"));
            if url.scheme() != "https" && !local {
                bail!("the OpenID provider {issuer} has to be reached by https");
            }
            let client_id = self.oidc_client_id.clone().context("--oidc-issuer needs --oidc-client-id")?;
            config.oidc = Some(OidcConfig {
                // As it was written: providers compare to the last character.
                issuer: issuer.clone(),
                client_id,
                client_secret: secret("BENCHTRAIL_OIDC_CLIENT_SECRET"),
                label: self.oidc_label.clone(),
            });
        }
        Ok(())
    }
}
