//! Typed arguments: checked against their template, then emitted as flags.

use std::collections::BTreeMap;

use events::catalogue::{EngineArgTemplate, ToolRegistered};
use events::tools::{SCENARIO_AXES, ToolCode};
use serde_json::Value;

use super::nearest::nearest;
use super::template::{check_not_option, check_value};
use super::{JOB_TIMEOUT, SERVED_MODEL, TOKENIZER};
use crate::domain::Refusal;

/// How a program takes a flag with a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FlagStyle {
    /// One element: `--flag=value`.
    Equals,
    /// Two elements: `--flag`, `value`; the value may not begin with `-`.
    Separate,
}

impl FlagStyle {
    /// Reads the catalogue's word.
    ///
    /// # Errors
    /// `bad_flag_style`: the catalogue is at fault.
    pub fn parse(word: &str) -> Result<Self, Refusal> {
        match word {
            "equals" => Ok(Self::Equals),
            "separate" => Ok(Self::Separate),
            other => {
                Err(Refusal::unready("bad_flag_style", format!("the catalogue has flag style {other:?}"))
                    .hint("it must be equals or separate"))
            }
        }
    }
}

/// Flags as they stand on the command line.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Emitted {
    /// The elements, in the order of the arguments' keys.
    pub(super) argv: Vec<String>,
    /// Environment variables, for arguments that are such.
    pub(super) env: BTreeMap<String, String>,
    /// Those that load code or read paths: key, flag, value.
    pub(super) dangerous: Vec<(String, String, Value)>,
}

/// Holds typed values to their templates.
///
/// # Errors
/// `unknown_argument` with the nearest key, `bad_argument` with the rule that was broken.
pub fn check_values(
    what: &str,
    args: &BTreeMap<String, Value>,
    templates: &BTreeMap<String, EngineArgTemplate>,
    style: FlagStyle,
) -> Result<(), Refusal> {
    emit(what, args, templates, style).map(|_| ())
}

/// Whether workloads of a tool may have these arguments.
///
/// # Errors
/// `scenario_axis`, `unknown_argument`, `bad_argument`.
pub fn check_tool_args(
    tool_code: &str,
    args: &BTreeMap<String, Value>,
    tool: &ToolRegistered,
) -> Result<(), Refusal> {
    check_values("tool argument", &flags_of(tool_code, args, tool)?, &tool.args, FlagStyle::Equals)
}

/// The arguments of a tool that are flags of it, of those that a workload has.
pub(super) fn flags_of(
    tool_code: &str,
    args: &BTreeMap<String, Value>,
    tool: &ToolRegistered,
) -> Result<BTreeMap<String, Value>, Refusal> {
    let of_scenarios = |key: &str| match ToolCode::of(tool_code) {
        Some(code) => code.is_of_scenarios(key),
        None => SCENARIO_AXES.contains(&key),
    };
    if let Some(axis) = args.keys().find(|key| of_scenarios(key)) {
        return Err(Refusal::invalid(
            "scenario_axis",
            format!("{axis} belongs to the scenario, not to the tool's arguments"),
        )
        .hint("set it in p_scenarios, so that the scenario's code names the load that is sent"));
    }
    let tokenizes = tool.argv.iter().any(|element| element.contains("{tokenizer}"));
    let own = |key: &str| [JOB_TIMEOUT, SERVED_MODEL].contains(&key) || (key == TOKENIZER && tokenizes);
    let flags = args.iter().filter(|(key, _)| !own(key));
    Ok(flags.map(|(key, value)| (key.clone(), value.clone())).collect())
}

/// Emits arguments as flags. How many elements come out depends on the keys and the style, never on the text of a
/// value. `what` is for messages.
///
/// # Errors
/// `unknown_argument` with the nearest key, `bad_argument` with the rule that was broken.
pub(super) fn emit(
    what: &str,
    args: &BTreeMap<String, Value>,
    templates: &BTreeMap<String, EngineArgTemplate>,
    style: FlagStyle,
) -> Result<Emitted, Refusal> {
    let mut emitted = Emitted::default();
    for (key, value) in args {
        let template = templates.get(key).ok_or_else(|| unknown(what, key, templates))?;
        let Some(text) = text_of(what, key, value, template)? else { continue };
        let flag = &template.cli_flag;
        match (text, style) {
            (Text::Off(flag), _) => {
                emitted.argv.push(flag);
                continue;
            }
            (Text::Value(text), _) if template.env => {
                emitted.env.insert(flag.clone(), text);
            }
            (Text::Switch, _) if template.env => {
                emitted.env.insert(flag.clone(), "1".to_owned());
            }
            (Text::Switch, _) => emitted.argv.push(flag.clone()),
            (Text::Value(text), FlagStyle::Equals) => emitted.argv.push(format!("{flag}={text}")),
            (Text::Value(text), FlagStyle::Separate) => {
                check_not_option(key, &text)?;
                emitted.argv.extend([flag.clone(), text]);
            }
        }
        if template.dangerous {
            emitted.dangerous.push((key.clone(), flag.clone(), value.clone()));
        }
    }
    Ok(emitted)
}

fn unknown(what: &str, key: &str, templates: &BTreeMap<String, EngineArgTemplate>) -> Refusal {
    let shown: String = key.chars().take(100).collect();
    let refusal = Refusal::invalid("unknown_argument", format!("there is no {what} {shown:?}"));
    match nearest(key, templates.keys().map(String::as_str)) {
        Some(known) => refusal.hint(format!("did you mean {known:?}?")),
        None => refusal.hint("the catalogue lists the arguments of each framework version and tool"),
    }
}

enum Text {
    /// The flag alone.
    Switch,
    /// The flag that switches off what is on by default.
    Off(String),
    /// The flag with a value.
    Value(String),
}

/// What stands on the command line for a value; nothing for a switch that is off.
fn text_of(
    what: &str,
    key: &str,
    value: &Value,
    template: &EngineArgTemplate,
) -> Result<Option<Text>, Refusal> {
    let bad = |wanted: String| {
        let mut shown = value.to_string();
        if shown.chars().count() > 100 {
            shown = shown.chars().take(100).chain(['…']).collect();
        }
        Refusal::invalid("bad_argument", format!("{what} {key} is {shown}; it must be {wanted}"))
    };
    let in_range = |number: f64| {
        template.min.is_none_or(|min| number >= min) && template.max.is_none_or(|max| number <= max)
    };
    let text = match template.arg_type.as_str() {
        "bool" => {
            let Value::Bool(on) = value else { return Err(bad("true or false".to_owned())) };
            if *on {
                return Ok(Some(Text::Switch));
            }
            if let Some(off) = &template.off_flag {
                return Ok(Some(Text::Off(off.clone())));
            }
            if template.default == Value::Bool(true) {
                return Err(bad("true: this switch can only be switched on".to_owned()));
            }
            return Ok(None);
        }
        "int" | "float" if value.as_str().is_some_and(|word| template.words.iter().any(|w| w == word)) => {
            value.as_str().unwrap_or_default().to_owned()
        }
        "int" => match value.as_i64() {
            Some(number) if in_range(number as f64) => number.to_string(),
            _ => return Err(bad(format!("a whole number{}", range(template)))),
        },
        "float" => match value.as_f64() {
            Some(number) if number.is_finite() && in_range(number) => value.to_string(),
            _ => return Err(bad(format!("a number{}", range(template)))),
        },
        "choice" => match value {
            Value::String(text) if template.choices.contains(text) => text.clone(),
            _ => return Err(bad(format!("one of {}", template.choices.join(", ")))),
        },
        "string" => match value {
            Value::String(text) => text.clone(),
            _ => return Err(bad("a text".to_owned())),
        },
        "json" => match value {
            Value::Object(_) | Value::Array(_) => value.to_string(),
            _ => return Err(bad("a JSON object or array".to_owned())),
        },
        other => {
            return Err(Refusal::unready(
                "bad_argument_type",
                format!("the catalogue gives {key} the type {other:?}"),
            )
            .hint("it must be int, float, string, bool, choice or json"));
        }
    };
    check_value(key, &text)?;
    Ok(Some(Text::Value(text)))
}

fn range(template: &EngineArgTemplate) -> String {
    let range = match (template.min, template.max) {
        (Some(min), Some(max)) => format!(" from {min} to {max}"),
        (Some(min), None) => format!(" of at least {min}"),
        (None, Some(max)) => format!(" of at most {max}"),
        (None, None) => String::new(),
    };
    let words: Vec<String> = template.words.iter().map(|word| format!(", or {word}")).collect();
    format!("{range}{}", words.concat())
}
