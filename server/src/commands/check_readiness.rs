//! `check_readiness`: what stands in the way of a run, and its cure, before anything is saved or started.

use std::time::Duration;

use events::access::Role;
use events::api::{CheckReadiness, Readiness};
use events::catalogue::{AcceleratorRegistered, ServerConfigRegistered};
use events::keys::ServerKey;
use events::workload::{ScenarioSpec, WorkloadSpec};
use http::{HeaderMap, Method};

use super::catalogue::Catalogue;
use super::{CommandError, RequestMeta, addresses, approvals, catalogue, hf_token, load};
use crate::auth::{Caller, Principal};
use crate::domain::workload::{roll_out, spec_of};
use crate::domain::{Refusal, Server};
use crate::outbound::OutboundError;
use crate::readiness::{self, Facts};
use crate::resolve::agents_see;
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
    let model = catalogue::model(state, &caller.org, &args.p_workload.p_model_code).await?;
    let spec = spec_of(&args.p_workload, catalogue::default_tool(&model.modality)?);
    let scenarios = roll_out(&args.p_workload.p_scenarios, &spec.tool_code)?;
    let catalogue = catalogue::catalogue(state, &caller.org, &spec).await?;
    let place = place(state, &caller.org, args.p_config_code, args.p_hostname).await?;
    judge(state, &caller, &catalogue, &spec, &scenarios, &place).await
}

/// Where a run is to take place, as far as that is known.
#[derive(Debug, Default)]
pub(super) struct Place {
    pub(super) server_key: Option<ServerKey>,
    pub(super) server: Option<Server>,
    pub(super) config: Option<ServerConfigRegistered>,
    pub(super) accelerator: Option<AcceleratorRegistered>,
}

impl Place {
    /// The accelerators that model servers are given their shares of: as the agent found them, or as the configuration says.
    /// Nothing where they are of a kind that agents cannot tell apart: one model server has them all.
    pub(super) fn gpus(&self) -> Option<u32> {
        if self.accelerator.as_ref().is_some_and(|accelerator| !agents_see(accelerator)) {
            return None;
        }
        let reported = self.server.as_ref().and_then(|server| server.capabilities.as_ref());
        reported
            .map(|capabilities| u32::try_from(capabilities.gpus.len()).unwrap_or(u32::MAX))
            .or_else(|| self.config.as_ref().map(|config| config.gpu_count))
    }
}

/// Looks a server up. Nothing, where none is named.
///
/// # Errors
/// `half_a_server`.
pub(super) async fn place(
    state: &AppState,
    org: &str,
    config_code: Option<String>,
    hostname: Option<String>,
) -> Result<Place, CommandError> {
    match (config_code, hostname) {
        (Some(config), Some(hostname)) => {
            place_of(state, &ServerKey { org: org.to_owned(), config, hostname }).await
        }
        (None, None) => Ok(Place::default()),
        _ => Err(Refusal::invalid(
            "half_a_server",
            "a server is named by p_config_code and p_hostname together",
        )
        .hint("give both, or neither")
        .into()),
    }
}

/// Looks a server up.
pub(super) async fn place_of(state: &AppState, key: &ServerKey) -> Result<Place, CommandError> {
    let server = load::server(&state.log, key).await?;
    let config = catalogue::server_config(state, &key.org, &key.config).await.ok();
    let accelerator = match config.as_ref().and_then(|config| config.accelerator_code.as_deref()) {
        Some(code) => catalogue::accelerator(state, &key.org, code).await.ok(),
        None => None,
    };
    Ok(Place { server_key: Some(key.clone()), server, config, accelerator })
}

/// Judges a workload whose catalogue facts are loaded.
pub(super) async fn judge(
    state: &AppState,
    caller: &Caller,
    catalogue: &Catalogue,
    spec: &WorkloadSpec,
    scenarios: &[ScenarioSpec],
    place: &Place,
) -> Result<Readiness, CommandError> {
    let resolved = scenarios.first().map(|first| catalogue.resolve(spec, first, scenarios, place.gpus()));
    let unapproved = match &resolved {
        Some(Ok(resolved)) => {
            approvals::missing(state, &caller.org, &spec.model_code, &resolved.dangerous).await?
        }
        _ => vec![],
    };
    let address_fault = addresses::fault(state, spec, catalogue.set.as_ref()).await;
    let asked = ask_endpoint(state, caller, spec, address_fault.is_some()).await;
    let facts = Facts {
        server_key: place.server_key.as_ref(),
        server: place.server.as_ref(),
        config: place.config.as_ref(),
        accelerator: place.accelerator.as_ref(),
        model: &catalogue.model,
        framework: &catalogue.framework,
        tool: &catalogue.tool,
        set: catalogue.set.as_ref(),
        workload: spec,
        scenarios,
        resolved: resolved.as_ref(),
        unapproved: &unapproved,
        address_fault: address_fault.as_deref(),
        endpoint_answer: asked.as_ref().map(|asked| asked.as_ref().copied().map_err(String::as_str)),
        stored_token: hf_token::is_stored(state, &caller.org, &caller.user).await?,
    };
    Ok(readiness::check(&facts))
}

/// How long an endpoint may take to answer at all.
const ENDPOINT_WITHIN: Duration = Duration::from_secs(1);

/// Asks an endpoint that is to run already for its models: any answer will do. Only where the policy lets agents ask it, and
/// for those who may start runs. Nothing where there is none.
async fn ask_endpoint(
    state: &AppState,
    caller: &Caller,
    spec: &WorkloadSpec,
    refused: bool,
) -> Option<Result<u16, String>> {
    let url = spec.endpoint_url.as_deref().filter(|_| !refused && caller.role >= Role::Member)?;
    let url = format!("{}/models", url.trim_end_matches('/'));
    let policy = &state.config.endpoints;
    match policy.send(Method::GET, &url, HeaderMap::new(), Vec::new(), ENDPOINT_WITHIN).await {
        Ok(answer) => Some(Ok(answer.status.as_u16())),
        Err(OutboundError::Unreachable(why)) => Some(Err(why)),
        // The address itself, which another rule names.
        Err(OutboundError::Refused(_)) => None,
    }
}
