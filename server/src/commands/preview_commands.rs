//! `preview_commands`: the exact command lines of every scenario, before anything is saved or started.

use events::access::Role;
use events::api::CheckReadiness;
use events::job::ResolvedCommands;
use serde::Serialize;

use super::{CommandError, RequestMeta, catalogue, check_readiness};
use crate::auth::Principal;
use crate::domain::workload::{roll_out, spec_of};
use crate::state::AppState;

/// One scenario's command lines.
#[derive(Debug, Clone, PartialEq, Serialize, schemars::JsonSchema)]
pub struct PreviewedScenario {
    /// The scenario's code.
    pub scenario_code: String,
    /// Its commands.
    pub commands: ResolvedCommands,
}

/// The answer of `preview_commands`.
#[derive(Debug, Clone, PartialEq, Serialize, schemars::JsonSchema)]
pub struct Preview {
    /// Every scenario, in the order in which a run executes them.
    pub scenarios: Vec<PreviewedScenario>,
}

/// Resolves the commands of a workload that need not be saved.
///
/// # Errors
/// The workload cannot be understood or resolved.
pub async fn preview_commands(
    state: &AppState,
    principal: &Principal,
    args: CheckReadiness,
    _meta: RequestMeta,
) -> Result<Preview, CommandError> {
    let caller = principal.require(Role::Viewer)?;
    state.work.catch_up().await?;
    let model = catalogue::model(state, &caller.org, &args.p_workload.p_model_code).await?;
    let spec = spec_of(&args.p_workload, catalogue::default_tool(&model.modality)?);
    let specs = roll_out(&args.p_workload.p_scenarios, &spec.tool_code)?;
    let catalogue = catalogue::catalogue(state, &caller.org, &spec).await?;
    let place = check_readiness::place(state, &caller.org, args.p_config_code, args.p_hostname).await?;
    let mut scenarios = Vec::new();
    for scenario in &specs {
        let commands = catalogue.commands(&spec, scenario, &specs, place.gpus())?;
        scenarios.push(PreviewedScenario { scenario_code: scenario.code(), commands });
    }
    Ok(Preview { scenarios })
}
