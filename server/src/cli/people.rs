//! `benchtrail token` and `benchtrail user`: what an operator on the control plane's host can make.

use std::process::ExitCode;

use anyhow::{Context as _, bail};
use clap::{Args, Subcommand, ValueEnum};
use events::access::Role;
use events::api::{CreateApiToken, CreateServer};
use events::keys::{StreamKey, check_code};
use uuid::Uuid;

use super::locate::Located;
use super::{DEFAULT_ADMIN, DEFAULT_ORG, DirArgs};
use crate::auth::accounts::{self, NewAccount};
use crate::auth::api_tokens::{self, Owner};
use crate::auth::{Principal, Scopes, password};
use crate::clock;
use crate::commands::account;
use crate::commands::create_server_config_instance::create_server_config_instance;
use crate::commands::{CommandError, RequestMeta};
use crate::state::AppState;

/// Which token.
#[derive(Debug, Subcommand)]
pub enum Token {
    /// An API token for a person's scripts. Printed once, alone on standard output.
    Create(CreateToken),
    /// A one-time registration token for a server's agent, good for 24 hours. Registers the server if it is new.
    Enrol(EnrolToken),
}

impl Token {
    pub async fn run(self) -> anyhow::Result<ExitCode> {
        match self {
            Self::Create(create) => create.run().await,
            Self::Enrol(enrol) => enrol.run().await,
        }
    }
}

/// An API token for a person's scripts. Printed once, alone on standard output.
#[derive(Debug, Args)]
pub struct CreateToken {
    #[command(flatten)]
    dir: DirArgs,
    /// The organisation the token works in.
    #[arg(long, default_value = DEFAULT_ORG, value_name = "CODE")]
    org: String,
    /// The e-mail of the account whose token it is.
    #[arg(long, default_value = DEFAULT_ADMIN, value_name = "E-MAIL")]
    user: String,
    /// What it may do at most: read, write (includes read), admin (includes write).
    #[arg(
        long,
        value_delimiter = ',',
        default_value = "read,write",
        value_name = "SCOPE,…",
        value_parser = clap::builder::PossibleValuesParser::new(Scopes::WORDS)
    )]
    scopes: Vec<String>,
    /// Days until it expires, 1 to 365.
    #[arg(long, default_value_t = 90, value_parser = clap::value_parser!(u32).range(1..=365))]
    days: u32,
    /// What it is for.
    #[arg(long, default_value = "command line")]
    name: String,
}

impl CreateToken {
    async fn run(self) -> anyhow::Result<ExitCode> {
        let located = Located::find(&self.dir.dir).await?;
        let made = async { self.make(&located.open(&self.dir.dir).await?).await }.await;
        located.close().await;
        println!("{}", made?);
        Ok(ExitCode::SUCCESS)
    }

    async fn make(&self, state: &AppState) -> anyhow::Result<String> {
        let (user, role) = accounts::member(&state.pool, state.keys.vault(), &self.user, &self.org)
            .await?
            .with_context(|| {
                format!(
                    "there is no account {} in the organisation {}. Make it with `benchtrail user create`",
                    self.user, self.org
                )
            })?;
        let args = CreateApiToken {
            p_name: self.name.clone(),
            p_scopes: self.scopes.clone(),
            p_expires_in_days: self.days,
        };
        let owner = Owner { user, org: self.org.clone(), role };
        let actor = Principal::operator(&self.org).actor();
        let correlation = Some(Uuid::now_v7());
        let new =
            api_tokens::create(&state.log, &state.pool, &owner, &args, actor, correlation, clock::now())
                .await?;
        Ok(new.secret.reveal().to_owned())
    }
}

/// A one-time registration token for a server's agent, good for 24 hours. Printed once, alone on standard output.
#[derive(Debug, Args)]
pub struct EnrolToken {
    #[command(flatten)]
    dir: DirArgs,
    /// The organisation that owns the server.
    #[arg(long, default_value = DEFAULT_ORG, value_name = "CODE")]
    org: String,
    /// The code of the server's configuration, for example h100x8.
    #[arg(long, value_name = "CODE")]
    config: String,
    /// The server's host name, in lower case.
    #[arg(long, value_name = "NAME")]
    hostname: String,
}

impl EnrolToken {
    async fn run(self) -> anyhow::Result<ExitCode> {
        check_code("organisation", &self.org)?;
        check_code("server configuration", &self.config)?;
        check_code("host name", &self.hostname)?;
        let located = Located::find(&self.dir.dir).await?;
        let made = async { self.make(&located.open(&self.dir.dir).await?).await }.await;
        located.close().await;
        println!("{}", made?);
        Ok(ExitCode::SUCCESS)
    }

    async fn make(&self, state: &AppState) -> anyhow::Result<String> {
        let args = CreateServer {
            p_config_code: self.config.clone(),
            p_hostname: self.hostname.clone(),
            p_ip_address: None,
            p_bootstrap_script_filename: None,
            p_comment: None,
            p_cost_per_hour_usd: None,
        };
        let org = StreamKey::new("org", &[&self.org]);
        if state.log.stream_version(&org).await? == 0 {
            bail!(
                "there is no organisation {}. `benchtrail user create --org {} --email …` makes it",
                self.org,
                self.org
            );
        }
        let meta = RequestMeta { correlation_id: Uuid::now_v7(), idempotency_key: None, now: clock::now() };
        let operator = Principal::operator(&self.org);
        let reply = create_server_config_instance(state, &operator, args, meta).await.map_err(said)?;
        reply.keys["enrol_token"].as_str().map(str::to_owned).context("the answer holds no token")
    }
}

/// A command's refusal as the command line says it: what happened, why, and what to do.
pub(super) fn said(error: CommandError) -> anyhow::Error {
    let error = error.error;
    let parts = [Some(error.message), error.details, error.hint];
    anyhow::anyhow!(parts.into_iter().flatten().collect::<Vec<_>>().join(". "))
}

/// What to do with accounts.
#[derive(Debug, Subcommand)]
pub enum User {
    /// Make an account with a role in an organisation. Prints its password once.
    Create(CreateUser),
    /// Set another password for an account, for somebody who lost theirs. Prints it once; their sessions end.
    SetPassword(SetPassword),
}

impl User {
    pub async fn run(self) -> anyhow::Result<ExitCode> {
        match self {
            Self::Create(create) => create.run().await,
            Self::SetPassword(set) => set.run().await,
        }
    }
}

/// A role, as the command line spells it.
#[derive(Debug, Clone, Copy, ValueEnum)]
enum RoleArg {
    /// Reads what the organisation may see.
    Viewer,
    /// Also creates projects and executes runs.
    Member,
    /// Also manages servers, members and dangerous flags.
    Admin,
}

impl From<RoleArg> for Role {
    fn from(role: RoleArg) -> Self {
        match role {
            RoleArg::Viewer => Self::Viewer,
            RoleArg::Member => Self::Member,
            RoleArg::Admin => Self::Admin,
        }
    }
}

/// The password from standard input, or one made here; true for the latter.
fn new_password(from_stdin: bool) -> anyhow::Result<(String, bool)> {
    if !from_stdin {
        return Ok((password::generate(), true));
    }
    let mut line = String::new();
    std::io::stdin().read_line(&mut line).context("reading the password")?;
    let password = line.trim_end_matches(['\r', '\n']).to_owned();
    if password.is_empty() {
        bail!("standard input held no password");
    }
    Ok((password, false))
}

/// Make an account with a role in an organisation. Prints its password once.
#[derive(Debug, Args)]
pub struct CreateUser {
    #[command(flatten)]
    dir: DirArgs,
    /// The organisation; made when it does not exist.
    #[arg(long, default_value = DEFAULT_ORG, value_name = "CODE")]
    org: String,
    /// The e-mail the account signs in with.
    #[arg(long, value_name = "E-MAIL")]
    email: String,
    /// The name shown to others; the e-mail's first part by default.
    #[arg(long)]
    name: Option<String>,
    /// The role in the organisation.
    #[arg(long, value_enum, default_value = "member")]
    role: RoleArg,
    /// Read the password from standard input instead of making one.
    #[arg(long)]
    password_stdin: bool,
}

impl CreateUser {
    async fn run(self) -> anyhow::Result<ExitCode> {
        let (password, made_here) = new_password(self.password_stdin)?;
        let located = Located::find(&self.dir.dir).await?;
        let made = async { self.make(&located.open(&self.dir.dir).await?, password.clone()).await }.await;
        located.close().await;
        made?;
        println!("email: {}", self.email);
        if made_here {
            println!("password: {password}");
        }
        Ok(ExitCode::SUCCESS)
    }

    async fn make(&self, state: &AppState, password: String) -> anyhow::Result<()> {
        let now = clock::now();
        let actor = Principal::operator(&self.org).actor();
        accounts::ensure_org(&state.log, &self.org, &self.org, actor.clone(), now).await?;
        let first_part = self.email.split('@').next().unwrap_or_default().to_owned();
        let new = NewAccount {
            email: self.email.clone(),
            name: self.name.clone().unwrap_or(first_part),
            password,
            org: self.org.clone(),
            role: self.role.into(),
        };
        accounts::create_account(&state.log, &state.pool, state.keys.vault(), new, actor, now).await?;
        Ok(())
    }
}

/// Set another password for an account, for somebody who lost theirs. Prints it once; their sessions end.
#[derive(Debug, Args)]
pub struct SetPassword {
    #[command(flatten)]
    dir: DirArgs,
    /// The organisation whose audit trail says so.
    #[arg(long, default_value = DEFAULT_ORG, value_name = "CODE")]
    org: String,
    /// The e-mail the account signs in with.
    #[arg(long, value_name = "E-MAIL")]
    email: String,
    /// Read the password from standard input instead of making one.
    #[arg(long)]
    password_stdin: bool,
}

impl SetPassword {
    async fn run(self) -> anyhow::Result<ExitCode> {
        let (password, made_here) = new_password(self.password_stdin)?;
        let located = Located::find(&self.dir.dir).await?;
        let made = async { self.make(&located.open(&self.dir.dir).await?, password.clone()).await }.await;
        located.close().await;
        made?;
        println!("email: {}", self.email);
        if made_here {
            println!("password: {password}");
        }
        Ok(ExitCode::SUCCESS)
    }

    async fn make(&self, state: &AppState, password: String) -> anyhow::Result<()> {
        let member = accounts::member(&state.pool, state.keys.vault(), &self.email, &self.org).await?;
        let (user, _) = member.with_context(|| {
            format!("there is no account {} in the organisation {}", self.email, self.org)
        })?;
        account::reset_password(state, &self.org, user, password, clock::now()).await.map_err(said)
    }
}
