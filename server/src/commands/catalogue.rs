//! What the catalogue says, from the streams themselves: an organisation's own entries stand before the platform's.

use std::collections::BTreeMap;

use events::catalogue::{
    AcceleratorRegistered, EngineArgsSetRegistered, FrameworkRegistered, ModelRegistered,
    ServerConfigRegistered, ToolRegistered,
};
use events::envelope::Recorded;
use events::job::ResolvedCommands;
use events::keys::PLATFORM_ORG;
use events::tools::ToolCode;
use events::workload::{ScenarioSpec, WorkloadSpec};
use events::{Event, StreamKey};

use super::{CommandError, load};
use crate::domain::prompt_source::PromptSource;
use crate::domain::{Refusal, decode};
use crate::resolve::{
    Inputs, Resolved, SetInForce, add_source, check_source, nearest, resolve_all, source_ref,
};
use crate::state::AppState;

/// The events of an entry's stream: the organisation's own where it has one, or else the platform's. With its owner.
async fn entry(
    state: &AppState,
    org: &str,
    kind: &str,
    parts: &[&str],
) -> Result<Option<(String, Vec<Recorded>)>, CommandError> {
    for owner in [org, PLATFORM_ORG] {
        let all: Vec<&str> = std::iter::once(owner).chain(parts.iter().copied()).collect();
        let events = load::stream(&state.log, &StreamKey::new(kind, &all)).await?;
        if !events.is_empty() {
            return Ok(Some((owner.to_owned(), events)));
        }
    }
    Ok(None)
}

async fn last_of(
    state: &AppState,
    org: &str,
    kind: &str,
    parts: &[&str],
) -> Result<Option<Event>, CommandError> {
    let Some((_, events)) = entry(state, org, kind, parts).await? else { return Ok(None) };
    Ok(events.last().map(decode).transpose()?)
}

fn unknown(state: &AppState, org: &str, kind: &str, code: &str) -> CommandError {
    let shown: String = code.chars().take(100).collect();
    let (word, what) = match kind {
        "model" => ("unknown_model", "model"),
        "framework" => ("unknown_framework", "framework"),
        "tool" => ("unknown_tool", "tool"),
        "accelerator" => ("unknown_accelerator", "accelerator type"),
        "engine_args_set" => ("unknown_engine_args_set", "engine args set"),
        _ => ("unknown_server_config", "server configuration"),
    };
    let refusal = Refusal::invalid(word, format!("there is no {what} {shown:?} in the catalogue"));
    let known = state.work.read(|index| index.catalogue_codes(kind, org));
    match nearest(code, known.iter().map(String::as_str)) {
        Some(near) => refusal.hint(format!("did you mean {near:?}?")),
        None => refusal.hint("choose one that the catalogue lists"),
    }
    .into()
}

/// A model.
pub(super) async fn model(state: &AppState, org: &str, code: &str) -> Result<ModelRegistered, CommandError> {
    match last_of(state, org, "model", &[code]).await? {
        Some(Event::ModelRegistered(model)) => Ok(*model),
        _ => Err(unknown(state, org, "model", code)),
    }
}

/// A framework version.
pub(super) async fn framework(
    state: &AppState,
    org: &str,
    code: &str,
    version: &str,
) -> Result<FrameworkRegistered, CommandError> {
    if let Some(Event::FrameworkRegistered(framework)) =
        last_of(state, org, "framework", &[code, version]).await?
    {
        return Ok(*framework);
    }
    let versions = state.work.read(|index| index.framework_versions(org, code));
    if versions.is_empty() {
        return Err(unknown(state, org, "framework", code));
    }
    let message = format!("framework {code} has no version {version:?} in the catalogue");
    Err(Refusal::invalid("unknown_framework_version", message)
        .hint(format!("it has {}", versions.join(", ")))
        .into())
}

/// A tool.
pub(super) async fn tool(state: &AppState, org: &str, code: &str) -> Result<ToolRegistered, CommandError> {
    match last_of(state, org, "tool", &[code]).await? {
        Some(Event::ToolRegistered(tool)) => Ok(tool),
        _ => Err(unknown(state, org, "tool", code)),
    }
}

/// A server configuration.
pub(super) async fn server_config(
    state: &AppState,
    org: &str,
    code: &str,
) -> Result<ServerConfigRegistered, CommandError> {
    match last_of(state, org, "config", &[code]).await? {
        Some(Event::ServerConfigRegistered(config)) => Ok(config),
        _ => Err(unknown(state, org, "config", code)),
    }
}

/// An accelerator type.
pub(super) async fn accelerator(
    state: &AppState,
    org: &str,
    code: &str,
) -> Result<AcceleratorRegistered, CommandError> {
    match last_of(state, org, "accelerator", &[code]).await? {
        Some(Event::AcceleratorRegistered(accelerator)) => Ok(*accelerator),
        _ => Err(unknown(state, org, "accelerator", code)),
    }
}

/// A set of engine arguments, as it stood at a version of its stream, or as it stands.
pub(super) async fn engine_args_set(
    state: &AppState,
    org: &str,
    code: &str,
    version: Option<i64>,
) -> Result<SetInForce, CommandError> {
    let Some((owner, events)) = entry(state, org, "engine_args_set", &[code]).await? else {
        return Err(unknown(state, org, "engine_args_set", code));
    };
    let mut found: Option<(i64, EngineArgsSetRegistered)> = None;
    let mut archived = false;
    for recorded in &events {
        match decode(recorded)? {
            Event::EngineArgsSetRegistered(facts) => {
                archived = false;
                if version.is_none_or(|version| recorded.version <= version) {
                    found = Some((recorded.version, *facts));
                }
            }
            Event::EngineArgsSetArchived(_) => archived = true,
            _ => {}
        }
    }
    let (version, facts) = found.ok_or_else(|| unknown(state, org, "engine_args_set", code))?;
    Ok(SetInForce { org: owner, set_code: code.to_owned(), version, archived, facts })
}

/// The sidecars that a set needs.
pub(super) async fn sidecars(
    state: &AppState,
    org: &str,
    set: Option<&SetInForce>,
) -> Result<BTreeMap<String, FrameworkRegistered>, CommandError> {
    let mut sidecars = BTreeMap::new();
    for companion in set.map(|set| set.facts.companions.as_slice()).unwrap_or_default() {
        let code = &companion.framework_code;
        let facts = framework(state, org, code, &companion.framework_version).await?;
        sidecars.insert(code.clone(), facts);
    }
    Ok(sidecars)
}

/// A prompt source by its code: the organisation's own, or one of the platform's. With the organisation it belongs to.
pub(super) async fn prompt_source(
    state: &AppState,
    org: &str,
    code: &str,
) -> Result<Option<(String, PromptSource)>, CommandError> {
    let Some((owner, events)) = entry(state, org, "prompt_source", &[code]).await? else { return Ok(None) };
    Ok(PromptSource::load(&events)?.map(|source| (owner, source)))
}

/// What the catalogue says about a workload.
pub(super) struct Catalogue {
    pub(super) model: ModelRegistered,
    pub(super) framework: FrameworkRegistered,
    pub(super) tool: ToolRegistered,
    pub(super) set: Option<SetInForce>,
    pub(super) sidecars: BTreeMap<String, FrameworkRegistered>,
    /// The source of the inputs, and whose it is.
    pub(super) source: Option<(String, PromptSource)>,
}

/// What the catalogue says about a workload of an organisation's.
pub(super) async fn catalogue(
    state: &AppState,
    org: &str,
    spec: &WorkloadSpec,
) -> Result<Catalogue, CommandError> {
    let model = model(state, org, &spec.model_code).await?;
    let framework = framework(state, org, &spec.framework_code, &spec.framework_version).await?;
    let tool = tool(state, org, &spec.tool_code).await?;
    if tool.modality != model.modality {
        let message = format!(
            "{} measures {} models; {} is {}",
            spec.tool_code, tool.modality, spec.model_code, model.modality
        );
        return Err(Refusal::invalid("wrong_tool", message)
            .hint("leave p_tool_code out: the tool follows from the model")
            .into());
    }
    fits(spec, &model, &tool)?;
    check_build(spec, &framework)?;
    let set = match &spec.engine_args_set_code {
        Some(code) => Some(engine_args_set(state, org, code, spec.engine_args_set_version).await?),
        None => None,
    };
    let sidecars = sidecars(state, org, set.as_ref()).await?;
    let source = match &spec.prompt_source_code {
        None => None,
        Some(code) => Some(prompt_source(state, org, code).await?.ok_or_else(|| {
            let shown: String = code.chars().take(100).collect();
            Refusal::invalid("unknown_prompt_source", format!("there is no prompt source {shown:?} here"))
                .hint("GET /api/v_prompt_sources lists them; create_prompt_source makes one")
        })?),
    };
    check_source(spec, source.as_ref().map(|(_, source)| source))?;
    Ok(Catalogue { model, framework, tool, set, sidecars, source })
}

/// Whether the tool measures what the framework serves, and models of that family.
fn fits(spec: &WorkloadSpec, model: &ModelRegistered, tool: &ToolRegistered) -> Result<(), Refusal> {
    if !tool.frameworks.is_empty() && !tool.frameworks.contains(&spec.framework_code) {
        let message = format!("{} does not measure what {} serves", spec.tool_code, spec.framework_code);
        return Err(Refusal::invalid("wrong_framework", message)
            .hint(format!("choose one of {}", tool.frameworks.join(", "))));
    }
    if !tool.families.is_empty() && !tool.families.contains(&model.family) {
        let message = format!("{} measures {} models only", spec.tool_code, tool.families.join(" and "));
        return Err(Refusal::invalid("wrong_family", message)
            .because(format!("{} is of the family {:?}", spec.model_code, model.family))
            .hint("choose a model of that family"));
    }
    Ok(())
}

/// Whether the framework's version has the build that is asked for.
fn check_build(spec: &WorkloadSpec, framework: &FrameworkRegistered) -> Result<(), Refusal> {
    let Some(profile) = &spec.build_profile else { return Ok(()) };
    if framework.container_images.contains_key(profile) {
        return Ok(());
    }
    let shown: String = profile.chars().take(100).collect();
    let name = format!("{} {}", spec.framework_code, spec.framework_version);
    let known: Vec<&str> = framework.container_images.keys().map(String::as_str).collect();
    let hint = match known.as_slice() {
        [] => "leave p_build_profile out".to_owned(),
        known => format!("it has {}; or leave p_build_profile out", known.join(", ")),
    };
    Err(Refusal::invalid("unknown_build_profile", format!("{name} has no build {shown:?}")).hint(hint))
}

impl Catalogue {
    /// Nothing new begins with an archived set.
    ///
    /// # Errors
    /// `set_archived`.
    pub(super) fn check_set_open(&self) -> Result<(), Refusal> {
        let Some(set) = self.set.as_ref().filter(|set| set.archived) else { return Ok(()) };
        let message = format!("engine args set {} is archived", set.set_code);
        Err(Refusal::conflict("set_archived", message).hint("choose another set, or clone it"))
    }

    /// What a scenario's commands are made of.
    pub(super) fn inputs<'a>(
        &'a self,
        workload: &'a WorkloadSpec,
        scenario: &'a ScenarioSpec,
        run_scenarios: &'a [ScenarioSpec],
        gpus: Option<u32>,
    ) -> Inputs<'a> {
        Inputs {
            workload,
            scenario,
            run_scenarios,
            framework: &self.framework,
            tool: &self.tool,
            set: self.set.as_ref(),
            sidecars: &self.sidecars,
            gpus,
        }
    }

    /// A scenario's commands, on a host with so many accelerators where that is known.
    pub(super) fn resolve(
        &self,
        workload: &WorkloadSpec,
        scenario: &ScenarioSpec,
        run_scenarios: &[ScenarioSpec],
        gpus: Option<u32>,
    ) -> Result<Resolved, Refusal> {
        let mut resolved = resolve_all(&self.inputs(workload, scenario, run_scenarios, gpus))?;
        if let (Some((org, source)), Some(code)) = (&self.source, &workload.prompt_source_code) {
            let named = source_ref(org, code, &source.facts);
            add_source(&mut resolved, workload, &self.tool, source, named)?;
        }
        Ok(resolved)
    }

    /// A scenario's commands alone.
    pub(super) fn commands(
        &self,
        workload: &WorkloadSpec,
        scenario: &ScenarioSpec,
        run_scenarios: &[ScenarioSpec],
        gpus: Option<u32>,
    ) -> Result<ResolvedCommands, Refusal> {
        self.resolve(workload, scenario, run_scenarios, gpus).map(|resolved| resolved.commands)
    }
}

/// The tool for models of a modality.
pub(super) fn default_tool(modality: &str) -> Result<&'static str, Refusal> {
    ToolCode::of_modality(modality).map(ToolCode::as_str).ok_or_else(|| {
        Refusal::invalid("no_tool", format!("no benchmark tool measures {modality} models"))
            .hint("choose a model for text, images and text, transcription or image generation")
    })
}
