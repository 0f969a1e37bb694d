//! The source of a job's inputs on its command line. The file itself comes to the agent by its hash; `{agent.prompts}` and
//! `{agent.ground_truth}` stand for where the agent put it.

use events::catalogue::ToolRegistered;
use events::prompt_source::{PromptSourceCreated, PromptSourceRef, PromptSourceType};
use events::tools::ToolCode;
use events::workload::WorkloadSpec;

use super::{DangerousArg, Resolved};
use crate::domain::Refusal;
use crate::domain::prompt_source::{PromptSource, takes};

/// Tool arguments that name inputs themselves, and so exclude a source.
const INPUTS: &[&str] = &["prompts", "prompt", "input", "ground_truth", "dataset", "synthetic_image"];

/// The argument that a tool takes its inputs by.
fn input_key(source_type: PromptSourceType) -> &'static str {
    match source_type {
        PromptSourceType::MetrumbenchAsrSnapshot => "input",
        _ => "prompts",
    }
}

/// Refuses a source that the workload's tool cannot take.
///
/// # Errors
/// `wrong_prompt_source`, `prompt_source_twice`, `prompts_missing`.
pub fn check_source(workload: &WorkloadSpec, source: Option<&PromptSource>) -> Result<(), Refusal> {
    let tool = ToolCode::of(&workload.tool_code);
    let Some(source) = source else {
        return match tool {
            // These have nothing to send by themselves.
            Some(ToolCode::MetrumbenchAsr) if !workload.tool_args.contains_key("input") => {
                Err(Refusal::invalid("prompts_missing", "a transcription needs audio files").hint(
                    "set p_prompt_source_code, for example librispeech-test-clean, or p_tool_args.input",
                ))
            }
            Some(ToolCode::Kyai) if !workload.tool_args.contains_key("dataset") => {
                Err(Refusal::invalid("prompts_missing", "an evaluation needs questions")
                    .hint("set p_tool_args.dataset, for example mmlu-pro, or p_prompt_source_code"))
            }
            _ => Ok(()),
        };
    };
    let facts = &source.facts;
    if !tool.is_some_and(|tool| takes(tool, facts.source_type)) {
        let message = format!("{} takes no {}", workload.tool_code, facts.source_type.as_str());
        return Err(Refusal::invalid("wrong_prompt_source", message)
            .hint("choose a source of the tool's kind: GET /api/v_prompt_sources"));
    }
    if let Some(key) = workload.tool_args.keys().find(|key| INPUTS.contains(&key.as_str())) {
        let message = format!("both p_prompt_source_code and the tool argument {key} name inputs");
        return Err(Refusal::invalid("prompt_source_twice", message).hint("keep one of them"));
    }
    if tool == Some(ToolCode::Kyai) {
        for key in ["generation_prompt", "judge_prompt"] {
            if !workload.tool_args.contains_key(key) {
                let message = format!("questions of one's own need the tool argument {key}");
                return Err(Refusal::invalid("prompts_missing", message)
                    .hint("there is no built-in prompt for questions that only you know"));
            }
        }
    }
    Ok(())
}

/// How a source is named in a job.
pub fn source_ref(org: &str, code: &str, facts: &PromptSourceCreated) -> PromptSourceRef {
    PromptSourceRef {
        org: org.to_owned(),
        code: code.to_owned(),
        source_type: facts.source_type,
        sha256: facts.sha256.clone(),
        ground_truth_sha256: facts.ground_truth_sha256.clone(),
    }
}

/// Adds the source to a job's commands: where its file will lie, and what was learnt of it for the model.
///
/// # Errors
/// The catalogue does not say how the tool takes it.
pub fn add_source(
    resolved: &mut Resolved,
    workload: &WorkloadSpec,
    tool: &ToolRegistered,
    source: &PromptSource,
    named: PromptSourceRef,
) -> Result<(), Refusal> {
    let facts = &source.facts;
    let flag = |key: &str| {
        tool.args.get(key).map(|argument| argument.cli_flag.clone()).ok_or_else(|| {
            Refusal::unready("unresolved_placeholder", format!("the catalogue gives {key} no flag"))
                .hint("the tool's entry in the catalogue is at fault; report it")
        })
    };
    let key = input_key(facts.source_type);
    let input = flag(key)?;
    let commands = &mut resolved.commands;
    commands.tool_argv.push(format!("{input}={{agent.prompts}}"));
    if facts.ground_truth {
        commands.tool_argv.push(format!("{}={{agent.ground_truth}}", flag("ground_truth")?));
    }
    if let Some(sha256) = facts.sha256.as_ref().filter(|_| facts.local_paths) {
        // Its rows make the tool read files that somebody else than the host's owner names: these very rows are approved.
        commands.dangerous_flags.push(input.clone());
        resolved.dangerous.push(DangerousArg {
            program: workload.tool_code.clone(),
            key: key.to_owned(),
            flag: input,
            value: sha256.clone().into(),
        });
    }
    let counts_itself = ["words_per_token", "overhead_tokens", "calibrate"]
        .iter()
        .any(|key| workload.tool_args.contains_key(*key));
    if let Some(learnt) = source.calibrations.get(&workload.model_code)
        && !counts_itself
        && let (Ok(words_per_token), Ok(overhead_tokens)) = (flag("words_per_token"), flag("overhead_tokens"))
    {
        commands.tool_argv.push(format!("{words_per_token}={}", learnt.words_per_token));
        // A chat template is around the prompt of a chat alone.
        if workload.tool_args.get("mode").and_then(|mode| mode.as_str()) != Some("completion") {
            commands.tool_argv.push(format!("{overhead_tokens}={}", learnt.overhead_tokens));
        }
    }
    commands.prompt_source = Some(named);
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use events::Event;
    use events::job::ResolvedCommands;
    use events::prompt_source::PromptSourceCalibrated;
    use serde_json::json;

    use super::*;
    use crate::domain::testing::{job_created, workload};

    fn source(source_type: PromptSourceType) -> PromptSource {
        PromptSource {
            facts: PromptSourceCreated {
                name: "s".into(),
                source_type,
                rows: Some(1),
                sha256: Some("0a".repeat(32)),
                size: Some(1),
                uploaded_sha256: None,
                ground_truth_sha256: None,
                ground_truth: false,
                local_paths: false,
                words: None,
                audio_s: None,
                description: String::new(),
                sources: vec![],
            },
            calibrations: BTreeMap::new(),
            version: 1,
        }
    }

    fn of(tool: ToolCode, args: serde_json::Value) -> WorkloadSpec {
        let serde_json::Value::Object(args) = args else { panic!("an object") };
        WorkloadSpec { tool_code: tool.as_str().into(), tool_args: args.into_iter().collect(), ..workload() }
    }

    fn registered(tool: ToolCode) -> ToolRegistered {
        let stream = events::StreamKey::new("tool", &["_", tool.as_str()]);
        let Some(Event::ToolRegistered(found)) = crate::seed::catalogue().unwrap().remove(&stream) else {
            panic!("{tool}")
        };
        found
    }

    fn added(tool: ToolCode, source: &PromptSource, args: serde_json::Value) -> ResolvedCommands {
        let mut resolved = Resolved { commands: job_created().commands, dangerous: vec![] };
        let named = source_ref("acme", "s", &source.facts);
        add_source(&mut resolved, &of(tool, args), &registered(tool), source, named).unwrap();
        assert_eq!(resolved.dangerous.len(), resolved.commands.dangerous_flags.len());
        resolved.commands
    }

    #[test]
    fn a_library_is_named_by_where_the_agent_puts_it() {
        let library = source(PromptSourceType::PromptLibrary);
        let commands = added(ToolCode::MetrumbenchLlm, &library, json!({}));
        assert_eq!(commands.tool_argv.last().unwrap(), "--prompts={agent.prompts}");
        assert!(commands.dangerous_flags.is_empty(), "the bytes are known by their hash");
        assert_eq!(commands.prompt_source.unwrap().sha256, library.facts.sha256);
    }

    #[test]
    fn audio_with_paths_of_the_host_needs_approval() {
        let mut audio = source(PromptSourceType::MetrumbenchAsrSnapshot);
        (audio.facts.ground_truth, audio.facts.local_paths) = (true, true);
        let commands = added(ToolCode::MetrumbenchAsr, &audio, json!({}));
        assert_eq!(commands.dangerous_flags, ["--input"]);
        assert!(commands.tool_argv.contains(&"--ground-truth={agent.ground_truth}".to_owned()));
        // One that the host's owner laid there names the owner's own files.
        audio.facts.sha256 = None;
        assert!(added(ToolCode::MetrumbenchAsr, &audio, json!({})).dangerous_flags.is_empty());
    }

    #[test]
    fn what_was_learnt_for_the_model_is_used_unless_the_workload_says_otherwise() {
        let mut library = source(PromptSourceType::PromptLibrary);
        let calibrated = PromptSourceCalibrated {
            model_code: workload().model_code,
            words_per_token: 0.71,
            overhead_tokens: 12.0,
            requests: 8,
            job: None,
        };
        library.calibrations.insert(calibrated.model_code.clone(), calibrated);
        let learnt = |args| {
            let argv = added(ToolCode::MetrumbenchLlm, &library, args).tool_argv;
            let flags = ["--words-per-token", "--overhead-tokens"];
            let told = argv.into_iter().filter(|element| flags.iter().any(|flag| element.starts_with(flag)));
            told.collect::<Vec<_>>()
        };
        assert_eq!(learnt(json!({})), ["--words-per-token=0.71", "--overhead-tokens=12"]);
        assert_eq!(learnt(json!({"mode": "completion"})), ["--words-per-token=0.71"]);
        for own in
            [json!({"words_per_token": 0.5}), json!({"overhead_tokens": 3}), json!({"calibrate": true})]
        {
            assert_eq!(learnt(own.clone()), [""; 0], "{own}");
        }
    }

    #[test]
    fn a_source_that_does_not_fit_is_refused() {
        let library = source(PromptSourceType::PromptLibrary);
        let code = |tool, args, source: Option<&PromptSource>| {
            check_source(&of(tool, args), source).map_err(|refusal| refusal.code)
        };
        assert_eq!(code(ToolCode::MetrumbenchLlm, json!({}), Some(&library)), Ok(()));
        assert_eq!(code(ToolCode::MetrumbenchVlm, json!({}), Some(&library)), Err("wrong_prompt_source"));
        assert_eq!(code(ToolCode::GenaiPerf, json!({}), Some(&library)), Err("wrong_prompt_source"));
        let twice = json!({"prompts": "/p.jsonl"});
        assert_eq!(code(ToolCode::MetrumbenchLlm, twice, Some(&library)), Err("prompt_source_twice"));
        assert_eq!(code(ToolCode::MetrumbenchAsr, json!({}), None), Err("prompts_missing"));
        assert_eq!(code(ToolCode::MetrumbenchAsr, json!({"input": "/m"}), None), Ok(()));
        let questions = source(PromptSourceType::KyaiDataset);
        assert_eq!(code(ToolCode::Kyai, json!({}), Some(&questions)), Err("prompts_missing"));
        let prompts = json!({"generation_prompt": "g", "judge_prompt": "j"});
        assert_eq!(code(ToolCode::Kyai, prompts, Some(&questions)), Ok(()));
    }
}
