//! Workloads: one model, served by one framework version, driven by one tool.

use std::collections::BTreeSet;

use events::Event;
use events::api::{ScenarioMatrix, WorkloadInput};
use events::envelope::Recorded;
use events::keys::{WorkloadKey, check_code, code_from_name};
use events::tools::ToolCode;
use events::workload::{ScenarioSpec, WorkloadArchived, WorkloadCreated, WorkloadRenamed, WorkloadSpec};

use super::project::check_name;
use super::scenario::Scenario;
use super::{Aggregate, LoadError, Refusal, decode, wrong_beginning};

/// The most scenarios one workload may roll out into.
pub const MAX_SCENARIOS: usize = 200;

/// A workload as its stream's events made it.
#[derive(Debug, Clone, PartialEq)]
pub struct Workload {
    /// The display name.
    pub name: String,
    /// What is measured.
    pub spec: WorkloadSpec,
    /// Whether it takes no more runs.
    pub archived: bool,
    /// The version of its stream.
    pub version: i64,
}

/// A new workload with its scenarios, ready to be appended.
#[derive(Debug, Clone, PartialEq)]
pub struct NewWorkload {
    /// Its code.
    pub code: String,
    /// What is measured.
    pub spec: WorkloadSpec,
    /// The events of its own stream.
    pub events: Vec<Event>,
    /// Its scenarios in the order in which runs execute them: code, traffic, and the events of the scenario's stream.
    pub scenarios: Vec<(String, ScenarioSpec, Vec<Event>)>,
}

impl Aggregate for Workload {
    fn begin(first: &Recorded) -> Result<Self, LoadError> {
        let Event::WorkloadCreated(created) = decode(first)? else {
            return Err(wrong_beginning(first, "workload", "workload.created"));
        };
        Ok(Self { name: created.name, spec: created.spec, archived: false, version: 1 })
    }

    fn follow(&mut self, recorded: &Recorded) -> Result<(), LoadError> {
        self.evolve(&decode(recorded)?);
        Ok(())
    }
}

impl Workload {
    /// What an event makes of the workload.
    pub fn evolve(&mut self, event: &Event) {
        self.version += 1;
        match event {
            Event::WorkloadRenamed(renamed) => self.name.clone_from(&renamed.name),
            Event::WorkloadArchived(_) => self.archived = true,
            _ => {}
        }
    }

    /// A person renames the workload.
    ///
    /// # Errors
    /// `bad_name`, `workload_archived`.
    pub fn rename(&self, name: &str) -> Result<Vec<Event>, Refusal> {
        self.check_open()?;
        let name = check_name(name)?;
        Ok(if name == self.name { vec![] } else { vec![Event::WorkloadRenamed(WorkloadRenamed { name })] })
    }

    /// A person archives the workload. Runs that are under way go on.
    pub fn archive(&self) -> Vec<Event> {
        if self.archived { vec![] } else { vec![Event::WorkloadArchived(WorkloadArchived {})] }
    }

    /// Refuses more runs of an archived workload.
    ///
    /// # Errors
    /// `workload_archived`.
    pub fn check_open(&self) -> Result<(), Refusal> {
        if self.archived {
            return Err(Refusal::conflict("workload_archived", "the workload is archived")
                .hint("clone it with clone_workload to go on under another code"));
        }
        Ok(())
    }

    /// A person makes the same workload again under another code, with its scenarios; `changed` is what it measures then.
    ///
    /// # Errors
    /// `bad_code`, `bad_name`, `bad_scenario`.
    pub fn copy(
        from: &WorkloadKey,
        code: &str,
        name: &str,
        changed: WorkloadSpec,
        scenarios: &[ScenarioSpec],
    ) -> Result<NewWorkload, Refusal> {
        check_code("workload code", code)?;
        let name = check_name(name)?;
        let cloned_from = Some(from.stream().to_string());
        let created = WorkloadCreated { name, spec: changed.clone(), cloned_from };
        let scenarios = scenarios
            .iter()
            .map(|scenario| Ok((scenario.code(), scenario.clone(), Scenario::define(scenario)?)))
            .collect::<Result<_, Refusal>>()?;
        let events = vec![Event::WorkloadCreated(created)];
        Ok(NewWorkload { code: code.to_owned(), spec: changed, events, scenarios })
    }

    /// A person defines a workload and the scenarios that its matrix rolls out into. That the codes are free is the
    /// append's `NoStream` to judge. `tool_code` is what an absent tool stands for.
    ///
    /// # Errors
    /// `bad_code`, `bad_name`, `bad_scenario`, and those of [`roll_out`].
    pub fn create(input: &WorkloadInput, tool_code: &str) -> Result<NewWorkload, Refusal> {
        let spec = spec_of(input, tool_code);
        let code = match &input.p_workload_code {
            Some(code) => code.clone(),
            None => default_code(&spec),
        };
        check_code("workload code", &code)?;
        let name = check_name(input.p_name.as_deref().unwrap_or(&code))?;
        let created = WorkloadCreated { name, spec: spec.clone(), cloned_from: None };
        let scenarios = roll_out(&input.p_scenarios, &spec.tool_code)?
            .into_iter()
            .map(|scenario| Ok((scenario.code(), scenario.clone(), Scenario::define(&scenario)?)))
            .collect::<Result<_, Refusal>>()?;
        Ok(NewWorkload { code, spec, events: vec![Event::WorkloadCreated(created)], scenarios })
    }
}

impl NewWorkload {
    /// Keeps the version of its set of engine arguments: a change of the set does not change the workload.
    #[must_use]
    pub fn with_set_version(mut self, version: Option<i64>) -> Self {
        self.spec.engine_args_set_version = version;
        for event in &mut self.events {
            if let Event::WorkloadCreated(created) = event {
                created.spec.engine_args_set_version = version;
            }
        }
        self
    }
}

/// The framework that offloads its cache as the named sets say.
pub const OFFLOADING_FRAMEWORK: &str = "vllm";

/// The named set of engine arguments that serves a tier of KV cache offload.
pub fn tier_set(tier: &str) -> Option<&'static str> {
    match tier {
        "gpu" => Some("vllm-kvoffload-gpu"),
        "cpu" => Some("vllm-kvoffload-lmcache-cpu"),
        "nvme" => Some("vllm-kvoffload-lmcache-nvme"),
        _ => None,
    }
}

/// Where no set is named, the tier that blocks are offloaded to brings its own. Without offloading none is needed.
fn set_of_tier(input: &WorkloadInput, tool_code: &str) -> Option<String> {
    let tool = input.p_tool_code.as_deref().unwrap_or(tool_code);
    let tier = input.p_tool_args.get("tier").and_then(serde_json::Value::as_str)?;
    let offloads = tool == ToolCode::KvCacheOffload.as_str()
        && input.p_framework_code == OFFLOADING_FRAMEWORK
        && tier != "gpu";
    // Whoever says how blocks are offloaded needs no set for it.
    let says_how = input.p_engine_args.contains_key("kv_transfer_config");
    tier_set(tier).filter(|_| offloads && !says_how).map(str::to_owned)
}

/// What is measured, of a workload as a person entered it.
pub fn spec_of(input: &WorkloadInput, tool_code: &str) -> WorkloadSpec {
    WorkloadSpec {
        model_code: input.p_model_code.clone(),
        framework_code: input.p_framework_code.clone(),
        framework_version: input.p_framework_version.clone(),
        tool_code: input.p_tool_code.clone().unwrap_or_else(|| tool_code.to_owned()),
        quantization: input.p_quantization.clone(),
        engine_args_set_code: input.p_engine_args_set_code.clone().or_else(|| set_of_tier(input, tool_code)),
        engine_args_set_version: None,
        engine_args: input.p_engine_args.clone(),
        tool_args: input.p_tool_args.clone(),
        endpoint_url: input.p_endpoint_url.clone(),
        prompt_source_code: input.p_prompt_source_code.clone(),
        build_profile: input.p_build_profile.clone(),
        keep_server: input.p_keep_server,
    }
}

/// The scenarios a matrix multiplies out into, for a tool.
///
/// # Errors
/// `unknown_tool`, `no_scenarios`, `too_many_scenarios`, `foreign_axis`, `duplicate_scenario`.
pub fn roll_out(matrix: &ScenarioMatrix, tool_code: &str) -> Result<Vec<ScenarioSpec>, Refusal> {
    let tool = tool(tool_code)?;
    if matrix.p_concurrency.is_empty() && tool.default_concurrency().is_none() {
        return Err(Refusal::invalid("no_scenarios", "the scenario matrix has no concurrency")
            .hint("choose at least one value of p_concurrency"));
    }
    // Judged before it is multiplied out.
    let count = matrix.size();
    if count > MAX_SCENARIOS {
        return Err(Refusal::invalid(
            "too_many_scenarios",
            format!("the matrix rolls out into {count} scenarios; a workload has at most {MAX_SCENARIOS}"),
        )
        .hint("choose fewer chips, or split the matrix over two workloads"));
    }
    if let Some(axis) = matrix.foreign_axis(tool) {
        return Err(Refusal::invalid("foreign_axis", format!("scenarios of {tool} have no {axis}"))
            .hint(format!("leave {axis} out, or choose another tool")));
    }
    let scenarios = matrix.roll_out(tool);
    let mut seen = BTreeSet::new();
    for scenario in &scenarios {
        if !seen.insert(scenario.code()) {
            return Err(Refusal::conflict(
                "duplicate_scenario",
                format!("the scenario matrix holds {} twice", scenario.code()),
            )
            .hint("choose each value of an axis once"));
        }
    }
    Ok(scenarios)
}

/// The tool of a code.
///
/// # Errors
/// `unknown_tool`.
pub fn tool(code: &str) -> Result<ToolCode, Refusal> {
    ToolCode::of(code).ok_or_else(|| {
        let shown: String = code.chars().take(100).collect();
        let known: Vec<&str> = ToolCode::ALL.iter().map(|tool| tool.as_str()).collect();
        Refusal::invalid("unknown_tool", format!("there is no tool {shown:?}"))
            .hint(format!("the tools are {}", known.join(", ")))
    })
}

/// The code of a workload that was given none: model, framework and quantization.
fn default_code(spec: &WorkloadSpec) -> String {
    let model = spec.model_code.rsplit('/').next().unwrap_or(&spec.model_code);
    let mut name = format!("{model}-{}", spec.framework_code);
    if let Some(quantization) = &spec.quantization {
        name.push('-');
        name.push_str(quantization);
    }
    code_from_name(&name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::testing;

    #[test]
    fn a_workload_without_a_code_is_named_after_what_it_measures() {
        let input = WorkloadInput { p_quantization: Some("q4_k_m".into()), ..testing::workload_input() };
        let workload = Workload::create(&input, "metrumbench-llm").unwrap();
        assert_eq!(workload.code, "gemma-3-270m-llama-cpp-q4_k_m");
        assert_eq!(workload.spec.tool_code, "metrumbench-llm");
        let codes: Vec<&str> = workload.scenarios.iter().map(|(code, ..)| code.as_str()).collect();
        assert_eq!(codes, ["c1-isl128-osl64", "c2-isl128-osl64"]);
    }

    #[test]
    fn an_archived_workload_keeps_its_name_and_takes_no_more_runs() {
        let mut workload =
            Workload { name: "a".into(), spec: testing::workload(), archived: false, version: 1 };
        assert_eq!(workload.rename(" a "), Ok(vec![]));
        assert_eq!(workload.rename("").unwrap_err().code, "bad_name");
        for event in workload.rename("b").unwrap().into_iter().chain(workload.archive()) {
            workload.evolve(&event);
        }
        assert_eq!((workload.name.as_str(), workload.version), ("b", 3));
        assert_eq!(workload.check_open().unwrap_err().code, "workload_archived");
        assert_eq!(workload.rename("c").unwrap_err().code, "workload_archived");
        assert_eq!(workload.archive(), vec![]);
    }

    #[test]
    fn the_same_chip_twice_is_a_duplicate() {
        let mut input = testing::workload_input();
        input.p_scenarios.p_concurrency = vec![4, 4];
        let refusal = Workload::create(&input, "metrumbench-llm").unwrap_err();
        assert_eq!((refusal.code, refusal.class.status()), ("duplicate_scenario", 409));
    }

    #[test]
    fn a_matrix_that_explodes_is_refused_before_it_is_rolled_out() {
        let mut input = testing::workload_input();
        let axis: Vec<u32> = (1..=100_000).collect();
        input.p_scenarios.p_concurrency = axis.clone();
        input.p_scenarios.p_input_sequence_length = axis.clone();
        input.p_scenarios.p_output_sequence_length = axis;
        assert_eq!(Workload::create(&input, "metrumbench-llm").unwrap_err().code, "too_many_scenarios");
    }

    #[test]
    fn a_matrix_without_concurrency_has_no_scenarios() {
        let mut input = testing::workload_input();
        input.p_scenarios.p_concurrency = vec![];
        assert_eq!(Workload::create(&input, "metrumbench-llm").unwrap_err().code, "no_scenarios");
    }
}
