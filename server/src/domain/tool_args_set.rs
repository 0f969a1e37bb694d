//! Sets of a tool's arguments that an organisation keeps.

use std::collections::BTreeMap;

use events::Event;
use events::catalogue::ToolRegistered;
use events::envelope::Recorded;
use events::tool_args::{ToolArgsSetRemoved, ToolArgsSetSaved};
use serde_json::Value;

use super::engine_args_set::{MAX_VALUES, check_notes};
use super::project::check_name;
use super::{LoadError, Refusal, decode};
use crate::resolve::check_tool_args;

/// A set as its stream's events made it.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolArgsSet {
    /// What it is now; nothing before it was saved and after it was removed.
    pub saved: Option<ToolArgsSetSaved>,
}

/// What a set is to hold.
#[derive(Debug, Clone, Copy)]
pub struct Wanted<'a> {
    /// The display name.
    pub name: &'a str,
    /// The arguments.
    pub values: &'a BTreeMap<String, Value>,
    /// What else is to be known.
    pub notes: Option<&'a str>,
}

impl ToolArgsSet {
    /// The set its stream's events make.
    ///
    /// # Errors
    /// An event cannot be read.
    pub fn load(events: &[Recorded]) -> Result<Self, LoadError> {
        let mut set = Self { saved: None };
        for recorded in events {
            match decode(recorded)? {
                Event::ToolArgsSetSaved(saved) => set.saved = Some(saved),
                Event::ToolArgsSetRemoved(_) => set.saved = None,
                _ => {}
            }
        }
        Ok(set)
    }

    /// A person saves it, or another in its place. Nothing to append where it is just that already.
    ///
    /// # Errors
    /// `bad_name`, `bad_notes`, `no_values`, `too_many_values`, `scenario_axis`, `unknown_argument`, `bad_argument`.
    pub fn save(
        &self,
        wanted: Wanted<'_>,
        tool_code: &str,
        tool: &ToolRegistered,
    ) -> Result<Vec<Event>, Refusal> {
        let values = wanted.values;
        if values.is_empty() {
            return Err(Refusal::invalid("no_values", "the set sets nothing").hint(
                "give at least one argument in p_values; a workload without any has the tool's defaults",
            ));
        }
        if values.len() > MAX_VALUES {
            let message = format!("a set holds at most {MAX_VALUES} values; this one has {}", values.len());
            return Err(Refusal::invalid("too_many_values", message));
        }
        if let Some((key, _)) = values.iter().find(|(_, value)| value.is_null()) {
            return Err(Refusal::invalid("bad_argument", format!("tool argument {key} is null"))
                .hint("leave it out: a set holds only what it sets"));
        }
        check_tool_args(tool_code, values, tool)?;
        let saved = ToolArgsSetSaved {
            name: check_name(wanted.name)?,
            values: values.clone(),
            notes: check_notes(wanted.notes)?,
        };
        Ok(match &self.saved {
            Some(before) if *before == saved => vec![],
            _ => vec![Event::ToolArgsSetSaved(saved)],
        })
    }

    /// A person removes it.
    ///
    /// # Errors
    /// `set_not_found`.
    pub fn remove(&self, code: &str) -> Result<Vec<Event>, Refusal> {
        if self.saved.is_none() {
            let shown: String = code.chars().take(100).collect();
            return Err(Refusal::not_found("set_not_found", format!("there is no such set {shown:?}"))
                .hint("GET /api/v_tool_args_sets lists the organisation's"));
        }
        Ok(vec![Event::ToolArgsSetRemoved(ToolArgsSetRemoved {})])
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn tool() -> ToolRegistered {
        let arg = |value: Value| serde_json::from_value(value).unwrap();
        let args = [
            ("request_timeout", json!({"cli_flag": "--request-timeout", "type": "int", "min": 1.0})),
            ("mode", json!({"cli_flag": "--mode", "type": "choice", "choices": ["chat", "completion"]})),
        ];
        ToolRegistered {
            args: args.into_iter().map(|(key, value)| (key.to_owned(), arg(value))).collect(),
            ..ToolRegistered::default()
        }
    }

    fn save(set: &ToolArgsSet, values: Value) -> Result<Vec<Event>, Refusal> {
        let values = serde_json::from_value(values).unwrap();
        let wanted = Wanted { name: " Slow servers ", values: &values, notes: None };
        set.save(wanted, "metrumbench-llm", &tool())
    }

    const NONE: ToolArgsSet = ToolArgsSet { saved: None };

    #[test]
    fn a_set_holds_only_what_the_tool_knows_with_its_types() {
        for (values, code) in [
            (json!({}), "no_values"),
            (json!({"request_timeout": null}), "bad_argument"),
            (json!({"request_timeout": "soon"}), "bad_argument"),
            (json!({"request_timeout": 0}), "bad_argument"),
            (json!({"mode": "chatty"}), "bad_argument"),
            (json!({"timeout": 5}), "unknown_argument"),
            (json!({"concurrency": 8}), "scenario_axis"),
        ] {
            assert_eq!(save(&NONE, values.clone()).unwrap_err().code, code, "{values}");
        }
        let many: serde_json::Map<String, Value> = (0..201).map(|n| (n.to_string(), json!(1))).collect();
        assert_eq!(save(&NONE, Value::Object(many)).unwrap_err().code, "too_many_values");
    }

    #[test]
    fn the_same_again_is_no_event_and_what_was_removed_is_free() {
        let events = save(&NONE, json!({"mode": "chat"})).unwrap();
        let [Event::ToolArgsSetSaved(saved)] = events.as_slice() else { panic!("{events:?}") };
        assert_eq!(saved.name, "Slow servers");
        let set = ToolArgsSet { saved: Some(saved.clone()) };
        assert_eq!(save(&set, json!({"mode": "chat"})), Ok(vec![]));
        assert_eq!(save(&set, json!({"mode": "completion"})).map(|events| events.len()), Ok(1));
        assert_eq!(set.remove("slow").map(|events| events.len()), Ok(1));
        assert_eq!(NONE.remove("slow").unwrap_err().code, "set_not_found");
    }
}
