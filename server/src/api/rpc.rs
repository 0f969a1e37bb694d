//! `POST /api/rpc/<command>`: every command by name, with `p_*` arguments by natural key.

mod people;

use axum::Json;
use axum::body::Body;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use events::api::CommandReply;
use http::{HeaderMap, HeaderValue, StatusCode, header};
use serde::Serialize;
use serde::de::{DeserializeOwned, IgnoredAny};
use serde_json::Value;
use std::collections::BTreeMap;
use tracing::Instrument as _;

pub use super::commands::{COMMANDS, Command};

use super::commands::VerifyLog;
use super::error::Failure;
use super::extract::{ApiPath, COMMAND_BODY, RequestContext, parse_json, read_body, require_json};
use super::idempotency::{self, Begun, Stored};
use crate::auth::Principal;
use crate::commands::{
    CommandError, RequestMeta, approvals, cancel_job, cancel_run, cancel_stale_jobs, change_project,
    change_workload, check_readiness, clone_workload, create_project, create_prompt_source,
    create_server_config_instance, create_workload, diff_engine_args_sets, engine_args_sets, flag_result,
    import_results, ingest_results, preview_commands, register_entry, remove_server, rerun, retry_job,
    saved_views, set_server_maintenance, start_run, tool_args_sets,
};
use crate::log::{self, VerifyOptions};
use crate::state::AppState;

/// What a command answers, and the cookie it sets.
struct Answer {
    status: StatusCode,
    body: Value,
    cookie: Option<HeaderValue>,
}

impl Answer {
    fn of<T: Serialize>(body: &T) -> Result<Self, Failure> {
        let body = serde_json::to_value(body).map_err(|error| Failure::unavailable(&error))?;
        Ok(Self { status: StatusCode::OK, body, cookie: None })
    }
}

impl IntoResponse for Answer {
    fn into_response(self) -> Response {
        let mut response = (self.status, Json(self.body)).into_response();
        if let Some(cookie) = self.cookie {
            response.headers_mut().append(header::SET_COOKIE, cookie);
        }
        response
    }
}

fn done<T: Serialize>(result: Result<T, CommandError>) -> Result<Answer, Failure> {
    Answer::of(&result?)
}

/// The handler.
pub async fn call(
    State(state): State<AppState>,
    principal: Principal,
    context: RequestContext,
    ApiPath(name): ApiPath<String>,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, Failure> {
    let Some(command) = COMMANDS.iter().find(|command| command.name == name) else {
        let known: Vec<&str> = COMMANDS.iter().map(|command| command.name).collect();
        let name: String = name.chars().take(100).collect();
        return Err(Failure::not_found(
            "no_such_command",
            format!("there is no command {name:?}"),
            format!("the commands are {}", known.join(", ")),
        ));
    };
    command.access.allows(&principal)?;
    require_json(&headers)?;
    let key = idempotency::key_of(&headers)?;
    let body = read_body(body, COMMAND_BODY).await?;
    let call = Call { state, principal, context, headers, key, body };
    // Carried out to its end although the client may go away: half a command is what nobody could repeat.
    let done = tokio::spawn(call.carry_out(command).in_current_span()).await;
    done.unwrap_or_else(|broken| Err(Failure::unavailable(&broken)))
}

struct Call {
    state: AppState,
    principal: Principal,
    context: RequestContext,
    headers: HeaderMap,
    key: Option<String>,
    body: bytes::Bytes,
}

impl Call {
    async fn carry_out(self, command: &'static Command) -> Result<Response, Failure> {
        if people::UNREPEATED.contains(&command.name) {
            return Ok(self.run(command.name).await?.into_response());
        }
        let Self { state, principal, context, key, body, .. } = &self;
        match idempotency::begin(state, principal, command.name, key.as_deref(), body, context.now).await? {
            Begun::WithoutKey => Ok(self.run(command.name).await?.into_response()),
            Begun::Again(stored) => {
                let (status, body) = stored.into_parts();
                Ok((status, [("idempotent-replay", "true")], Json(body)).into_response())
            }
            Begun::First(claimed) => match self.run(command.name).await {
                Ok(answer) => {
                    let stored = Stored::new(answer.status, answer.body.clone());
                    idempotency::finish(state, &claimed, &stored).await?;
                    Ok(answer.into_response())
                }
                Err(failure) => {
                    idempotency::abandon(state, &claimed).await;
                    Err(failure)
                }
            },
        }
    }

    async fn run(&self, name: &str) -> Result<Answer, Failure> {
        let (state, principal) = (&self.state, &self.principal);
        match name {
            "create_checkpoint" => self.create_checkpoint().await,
            "verify_log" => self.verify_log().await,
            "create_project" => {
                done(create_project::create_project(state, principal, self.args()?, self.meta()).await)
            }
            "rename_project" => {
                done(change_project::rename_project(state, principal, self.args()?, self.meta()).await)
            }
            "set_project_visibility" => done(
                change_project::set_project_visibility(state, principal, self.args()?, self.meta()).await,
            ),
            "archive_project" => {
                done(change_project::archive_project(state, principal, self.args()?, self.meta()).await)
            }
            "cancel_stale_jobs" => {
                done(cancel_stale_jobs::cancel_stale_jobs(state, principal, self.args()?, self.meta()).await)
            }
            "remove_server" => {
                done(remove_server::remove_server(state, principal, self.args()?, self.meta()).await)
            }
            "save_tool_args_set" => {
                done(tool_args_sets::save_tool_args_set(state, principal, self.args()?, self.meta()).await)
            }
            "remove_tool_args_set" => {
                done(tool_args_sets::remove_tool_args_set(state, principal, self.args()?, self.meta()).await)
            }
            "save_view" => {
                let args = self.args()?;
                self.not_read_only()?;
                done(saved_views::save_view(state, principal, args, self.meta()).await)
            }
            "remove_view" => {
                let args = self.args()?;
                self.not_read_only()?;
                done(saved_views::remove_view(state, principal, args, self.meta()).await)
            }
            "create_workload" => {
                done(create_workload::create_workload(state, principal, self.args()?, self.meta()).await)
            }
            "rename_workload" => {
                done(change_workload::rename_workload(state, principal, self.args()?, self.meta()).await)
            }
            "archive_workload" => {
                done(change_workload::archive_workload(state, principal, self.args()?, self.meta()).await)
            }
            "clone_workload" => {
                done(clone_workload::clone_workload(state, principal, self.args()?, self.meta()).await)
            }
            "check_readiness" => {
                done(check_readiness::check_readiness(state, principal, self.args()?, self.meta()).await)
            }
            "preview_commands" => {
                done(preview_commands::preview_commands(state, principal, self.args()?, self.meta()).await)
            }
            "start_run" => done(start_run::start_run(state, principal, self.args()?, self.meta()).await),
            "cancel_run" => done(cancel_run::cancel_run(state, principal, self.args()?, self.meta()).await),
            "cancel_job" => done(cancel_job::cancel_job(state, principal, self.args()?, self.meta()).await),
            "retry_job" => done(retry_job::retry_job(state, principal, self.args()?, self.meta()).await),
            "rerun" => done(rerun::rerun(state, principal, self.args()?, self.meta()).await),
            "set_server_maintenance" => done(
                set_server_maintenance::set_server_maintenance(state, principal, self.args()?, self.meta())
                    .await,
            ),
            "flag_result" => {
                done(flag_result::flag_result(state, principal, self.args()?, self.meta()).await)
            }
            "clear_flag" => done(flag_result::clear_flag(state, principal, self.args()?, self.meta()).await),
            "ingest_inferencex_results" => done(
                ingest_results::ingest_inferencex_results(state, principal, self.args()?, self.meta()).await,
            ),
            "create_prompt_source" => done(
                create_prompt_source::create_prompt_source(state, principal, self.args()?, self.meta()).await,
            ),
            "import_results" => {
                done(import_results::import_results(state, principal, self.args()?, self.meta()).await)
            }
            "create_server_config_instance" => done(
                create_server_config_instance::create_server_config_instance(
                    state,
                    principal,
                    self.args()?,
                    self.meta(),
                )
                .await,
            ),
            "register_model" => {
                done(register_entry::register_model(state, principal, self.args()?, self.meta()).await)
            }
            "register_framework_version" => done(
                register_entry::register_framework_version(state, principal, self.args()?, self.meta()).await,
            ),
            "register_accelerator" => {
                done(register_entry::register_accelerator(state, principal, self.args()?, self.meta()).await)
            }
            "register_server_config" => done(
                register_entry::register_server_config(state, principal, self.args()?, self.meta()).await,
            ),
            "create_engine_args_set" => done(
                engine_args_sets::create_engine_args_set(state, principal, self.args()?, self.meta()).await,
            ),
            "clone_engine_args_set" => done(
                engine_args_sets::clone_engine_args_set(state, principal, self.args()?, self.meta()).await,
            ),
            "update_engine_args_set" => done(
                engine_args_sets::update_engine_args_set(state, principal, self.args()?, self.meta()).await,
            ),
            "archive_engine_args_set" => done(
                engine_args_sets::archive_engine_args_set(state, principal, self.args()?, self.meta()).await,
            ),
            "diff_engine_args_sets" => done(
                diff_engine_args_sets::diff_engine_args_sets(state, principal, self.args()?, self.meta())
                    .await,
            ),
            "approve_dangerous_args" => {
                done(approvals::approve_dangerous_args(state, principal, self.args()?, self.meta()).await)
            }
            "revoke_dangerous_args" => {
                done(approvals::revoke_dangerous_args(state, principal, self.args()?, self.meta()).await)
            }
            _ => match self.people(name).await {
                Some(answer) => answer,
                None => {
                    Err(Failure::unavailable(&format!("command {name} is in the table and not dispatched")))
                }
            },
        }
    }

    fn meta(&self) -> RequestMeta {
        RequestMeta {
            correlation_id: self.context.correlation_id,
            idempotency_key: self.key.clone(),
            now: self.context.now,
        }
    }

    fn args<T: DeserializeOwned>(&self) -> Result<T, Failure> {
        parse_json(&self.body)
    }

    fn no_args(&self) -> Result<(), Failure> {
        let args: BTreeMap<String, IgnoredAny> = self.args()?;
        match args.keys().next() {
            None => Ok(()),
            Some(name) => Err(Failure::unprocessable(
                "bad_arguments",
                format!("unknown argument `{name}`"),
                "this command takes none: send {}",
            )),
        }
    }

    async fn verify_log(&self) -> Result<Answer, Failure> {
        let args: VerifyLog = self.args()?;
        let head = self.state.log.head().await?.position;
        let (from, to) = (args.p_from.unwrap_or(1), args.p_to.unwrap_or(head));
        if from < 1 || from > to || to > head {
            return Err(Failure::unprocessable(
                "bad_range",
                format!("positions {from} to {to} are not a range of the log, which ends at {head}"),
                "p_from from 1, p_to at least p_from and at most the head; leave both out for the whole log",
            ));
        }
        let archive = log::Archive::open(&self.state.config.archive_dir())?;
        let options = VerifyOptions {
            from: args.p_from.unwrap_or(1),
            to: args.p_to,
            archive,
            ..VerifyOptions::default()
        };
        let report = log::verify(&self.state.pool, &options, |_| {}).await?;
        Answer::of(&crate::cli::verify_json(&report))
    }

    async fn create_checkpoint(&self) -> Result<Answer, Failure> {
        self.no_args()?;
        let checkpoint = self.state.log.checkpoint().await?.ok_or_else(|| {
            Failure::not_found("log_is_empty", "the log has no event yet", "do something first")
        })?;
        Answer::of(&checkpoint)
    }
}

fn reply<const N: usize>(position: i64, keys: [(&str, Value); N]) -> CommandReply {
    CommandReply { position, keys: keys.into_iter().map(|(name, value)| (name.to_owned(), value)).collect() }
}
