//! `check_readiness`: what stands in the way of a run, and its cure, before anything is saved or started.

use events::access::Role;
use events::api::{CheckReadiness, Readiness};
use events::keys::ServerKey;
use events::workload::{ScenarioSpec, WorkloadSpec};

use super::load::{self, Catalogue};
use super::{CommandError, RequestMeta};
use crate::auth::Principal;
use crate::domain::Refusal;
use crate::domain::workload::{roll_out, spec_of};
use crate::readiness::{self, Facts};
use crate::state::AppState;

/// Judges a workload, saved or not, on a server, chosen or not.
///
/// # Errors
/// The workload cannot be understood: an unknown model, framework, version, argument or server.
pub async fn check_readiness(
    state: &AppState,
    principal: &Principal,
    args: CheckReadiness,
    _meta: RequestMeta,
) -> Result<Readiness, CommandError> {
    let caller = principal.require(Role::Viewer)?;
    state.work.catch_up().await?;
    let model = load::model(&state.log, &state.work, &args.p_workload.p_model_code).await?;
    let spec = spec_of(&args.p_workload, load::default_tool(&model.modality)?);
    let scenarios = roll_out(&args.p_workload)?;
    let catalogue = load::catalogue(state, &spec).await?;
    let server = match (args.p_config_code, args.p_hostname) {
        (Some(config), Some(hostname)) => Some(ServerKey { org: caller.org, config, hostname }),
        (None, None) => None,
        _ => {
            return Err(Refusal::invalid(
                "half_a_server",
                "a server is named by p_config_code and p_hostname together",
            )
            .hint("give both, or neither")
            .into());
        }
    };
    judge(state, &catalogue, &spec, &scenarios, server.as_ref()).await
}

/// Judges a workload whose catalogue facts are loaded.
pub(super) async fn judge(
    state: &AppState,
    catalogue: &Catalogue,
    spec: &WorkloadSpec,
    scenarios: &[ScenarioSpec],
    server_key: Option<&ServerKey>,
) -> Result<Readiness, CommandError> {
    let (server, config) = match server_key {
        Some(key) => {
            let server = load::server(&state.log, key).await?;
            let config = load::server_config(&state.log, &state.work, &key.config).await.ok();
            (server, config)
        }
        None => (None, None),
    };
    let commands = scenarios.first().map(|first| catalogue.resolve(spec, first, scenarios));
    let facts = Facts {
        server_key,
        server: server.as_ref(),
        config: config.as_ref(),
        model: &catalogue.model,
        framework: &catalogue.framework,
        tool: &catalogue.tool,
        workload: spec,
        scenarios,
        commands: commands.as_ref(),
    };
    Ok(readiness::check(&facts))
}
