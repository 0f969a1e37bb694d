//! Entries that an organisation adds to the catalogue: what must hold of them before anything is run with them.

use events::Event;
use events::catalogue::{
    AcceleratorRegistered, EngineArgTemplate, FrameworkRegistered, ModelRegistered, ServerConfigRegistered,
};

use super::Refusal;
use super::project::check_name;
use crate::resolve::{FlagStyle, check_template};

/// The modalities that models have.
pub const MODALITIES: &[&str] = &["llm", "vlm", "asr", "imagegen"];

fn bad(message: impl Into<String>) -> Refusal {
    Refusal::invalid("bad_entry", message)
}

fn positive(what: &str, value: Option<f64>) -> Result<(), Refusal> {
    match value {
        Some(value) if !value.is_finite() || value <= 0.0 || value > 1e9 => {
            Err(bad(format!("{what} is {value}; it must be a number above 0")))
        }
        _ => Ok(()),
    }
}

/// A model's code: like a repository's name, one slash at most.
///
/// # Errors
/// `bad_code`.
pub fn check_model_code(code: &str) -> Result<(), Refusal> {
    let part = |part: &str| {
        !part.is_empty()
            && part.starts_with(|c: char| c.is_ascii_alphanumeric())
            && part.chars().all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c))
    };
    let parts: Vec<&str> = code.split('/').collect();
    if code.len() <= 200 && parts.len() <= 2 && parts.iter().all(|p| part(p)) {
        return Ok(());
    }
    let shown: String = code.chars().take(100).collect();
    Err(Refusal::invalid("bad_code", format!("{shown:?} is no model code"))
        .hint("write it like a repository's name: letters, digits, '-', '_' and '.', with at most one '/'"))
}

/// A model's entry.
///
/// # Errors
/// `bad_name`, `bad_entry`.
pub fn model(mut facts: ModelRegistered) -> Result<Event, Refusal> {
    facts.display_name = check_name(&facts.display_name)?;
    if !MODALITIES.contains(&facts.modality.as_str()) {
        return Err(bad(format!(
            "modality is {:?}; it must be one of {}",
            facts.modality,
            MODALITIES.join(", ")
        )));
    }
    positive("params_b_total", facts.params_b_total)?;
    positive("params_b_active", facts.params_b_active)?;
    positive("kv_bytes_per_token_16bit", facts.kv_bytes_per_token_16bit)?;
    for (what, count) in [
        ("layers", facts.layers),
        ("attention_heads", facts.attention_heads),
        ("kv_heads", facts.kv_heads),
        ("head_dim", facts.head_dim),
        ("max_context", facts.max_context),
    ] {
        if count == Some(0) {
            return Err(bad(format!("{what} is 0; leave it out where it is not known")));
        }
    }
    Ok(Event::ModelRegistered(Box::new(facts)))
}

/// A framework version's entry. Nothing in its templates may be left to chance: known placeholders only, and an
/// executable that no value chooses.
///
/// # Errors
/// `bad_name`, `bad_entry`, `bad_flag_style`.
pub fn framework(code: &str, mut facts: FrameworkRegistered) -> Result<Event, Refusal> {
    facts.display_name = check_name(&facts.display_name)?;
    FlagStyle::parse(&facts.flag_style)?;
    if facts.serve_argv.is_empty() {
        return Err(bad("serve_argv is empty: only framework openai starts nothing"));
    }
    if code == crate::resolve::FRAMEWORK_OPENAI {
        return Err(bad("framework openai starts nothing and is the platform's"));
    }
    check_template(&facts.serve_argv).map_err(bad)?;
    for companion in &facts.companions {
        if companion.argv.is_empty() {
            return Err(bad(format!("the command of companion {:?} is empty", companion.name)));
        }
        check_template(&companion.argv).map_err(bad)?;
    }
    if !facts.readiness_path.starts_with('/') || facts.readiness_path.len() > 200 {
        return Err(bad("readiness_path must begin with '/', for example /health"));
    }
    if !(1..=86_400).contains(&facts.readiness_timeout_s) {
        return Err(bad("readiness_timeout_s must be 1 to 86400 seconds"));
    }
    for name in facts.serve_env.keys() {
        check_env_name(name)?;
    }
    check_template(&facts.fetch_argv).map_err(bad)?;
    if let Some(key) = &facts.readiness_port_arg
        && facts.engine_args.get(key).is_none_or(|arg| arg.arg_type != "int")
    {
        return Err(bad(format!("readiness_port_arg {key:?} is none of its arguments of type int")));
    }
    for (key, arg) in &facts.engine_args {
        check_arg(key, arg)?;
    }
    Ok(Event::FrameworkRegistered(Box::new(facts)))
}

fn check_env_name(name: &str) -> Result<(), Refusal> {
    let good = !name.is_empty()
        && !name.starts_with(|c: char| c.is_ascii_digit())
        && name.chars().all(|c| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_');
    if good { Ok(()) } else { Err(bad(format!("{name:?} is no name of an environment variable"))) }
}

fn check_arg(key: &str, arg: &EngineArgTemplate) -> Result<(), Refusal> {
    let good_key =
        !key.is_empty() && key.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_');
    if !good_key {
        return Err(bad(format!("{key:?} is no key: lower-case letters, digits and '_'")));
    }
    if !["int", "float", "string", "bool", "choice", "json"].contains(&arg.arg_type.as_str()) {
        return Err(bad(format!(
            "engine argument {key} has type {:?}; it must be int, float, string, bool, choice or json",
            arg.arg_type
        )));
    }
    if (arg.arg_type == "choice") == arg.choices.is_empty() {
        return Err(bad(format!("engine argument {key}: choices belong to type choice, and to no other")));
    }
    if arg.env {
        return check_env_name(&arg.cli_flag);
    }
    let of_a_flag = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    if !arg.cli_flag.starts_with("--") || arg.cli_flag.len() < 3 || !arg.cli_flag.chars().all(of_a_flag) {
        return Err(bad(format!("engine argument {key}: {:?} is no flag such as --ctx-size", arg.cli_flag)));
    }
    Ok(())
}

/// An accelerator type's entry.
///
/// # Errors
/// `bad_name`, `bad_entry`.
pub fn accelerator(mut facts: AcceleratorRegistered) -> Result<Event, Refusal> {
    facts.display_name = check_name(&facts.display_name)?;
    positive("memory_gb", Some(facts.memory_gb))?;
    positive("tdp_w", facts.tdp_w)?;
    positive("bandwidth_gb_s", facts.bandwidth_gb_s)?;
    positive("price_per_hour_usd", facts.price_per_hour_usd)?;
    Ok(Event::AcceleratorRegistered(Box::new(facts)))
}

/// A server configuration's entry.
///
/// # Errors
/// `bad_name`, `bad_entry`.
pub fn server_config(mut facts: ServerConfigRegistered) -> Result<Event, Refusal> {
    facts.display_name = check_name(&facts.display_name)?;
    positive("gpu_memory_gb", facts.gpu_memory_gb)?;
    if facts.gpu_count > 1024 {
        return Err(bad(format!("gpu_count is {}; a host has at most 1024", facts.gpu_count)));
    }
    Ok(Event::ServerConfigRegistered(facts))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn framework_with(change: impl FnOnce(&mut Value)) -> Result<Event, Refusal> {
        let mut facts = json!({
            "display_name": "Mine", "serve_argv": ["mine", "--port={agent.port}"], "flag_style": "equals",
            "readiness_path": "/health", "readiness_timeout_s": 60,
            "engine_args": {"size": {"cli_flag": "--size", "type": "int"}},
        });
        change(&mut facts);
        framework("mine", serde_json::from_value(facts).unwrap())
    }

    #[test]
    fn a_framework_whose_command_could_be_anything_is_refused() {
        assert!(framework_with(|_| {}).is_ok());
        for (field, value) in [
            ("serve_argv", json!([])),
            ("serve_argv", json!(["{model}"])),
            ("serve_argv", json!(["mine", "{nonsense}"])),
            ("flag_style", json!("shell")),
            ("readiness_path", json!("health")),
            ("readiness_timeout_s", json!(0)),
            ("serve_env", json!({"lower": "1"})),
            ("fetch_argv", json!(["pull", "{nothing}"])),
            ("readiness_port_arg", json!("no_port")),
            ("companions", json!([{"name": "x", "argv": ["{served_model_name}"]}])),
            ("engine_args", json!({"size": {"cli_flag": "--size=1 --other", "type": "int"}})),
            ("engine_args", json!({"size": {"cli_flag": "-s", "type": "int"}})),
            ("engine_args", json!({"size": {"cli_flag": "--size", "type": "number"}})),
            ("engine_args", json!({"size": {"cli_flag": "--size", "type": "choice"}})),
            ("engine_args", json!({"a.b": {"cli_flag": "--size", "type": "int"}})),
        ] {
            let refused = framework_with(|facts| facts[field] = value.clone());
            assert!(refused.is_err(), "{field}: {value}");
        }
    }

    #[test]
    fn a_model_code_is_like_a_repositorys_name() {
        for good in ["gpt2", "meta-llama/Llama-3.3-70B-Instruct", "acme/a_b.c"] {
            assert!(check_model_code(good).is_ok(), "{good}");
        }
        for bad in ["", "/", "a/", "a/b/c", "--flag", "a b", "a/-b", "../etc"] {
            assert!(check_model_code(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn numbers_that_make_no_sense_are_refused() {
        let facts =
            ModelRegistered { display_name: "M".into(), modality: "llm".into(), ..Default::default() };
        assert!(model(facts.clone()).is_ok());
        assert!(model(ModelRegistered { params_b_total: Some(-1.0), ..facts.clone() }).is_err());
        assert!(model(ModelRegistered { layers: Some(0), ..facts.clone() }).is_err());
        assert!(model(ModelRegistered { modality: "music".into(), ..facts }).is_err());
        assert!(
            accelerator(AcceleratorRegistered { display_name: "A".into(), ..Default::default() }).is_err()
        );
    }
}
