//! Sets of engine arguments that an organisation keeps for itself.

use std::collections::BTreeMap;

use events::Event;
use events::api_catalogue::{CreateEngineArgsSet, UpdateEngineArgsSet};
use events::catalogue::{EngineArgsSetArchived, EngineArgsSetRegistered, FrameworkRegistered};
use events::envelope::Recorded;
use events::keys::check_code;
use serde_json::Value;

use super::project::check_name;
use super::{LoadError, Refusal, decode, wrong_beginning};
use crate::resolve::{FlagStyle, SetInForce, check_values};

/// The most values one set may hold.
pub(super) const MAX_VALUES: usize = 200;
/// The longest notes, characters.
const MAX_NOTES: usize = 4000;

/// A set as its stream's events made it.
#[derive(Debug, Clone, PartialEq)]
pub struct EngineArgsSet {
    /// What it says now.
    pub facts: EngineArgsSetRegistered,
    /// Whether no new workload may name it.
    pub archived: bool,
    /// The version of its stream.
    pub version: i64,
}

impl EngineArgsSet {
    /// The set its stream's events make; nothing for an empty stream.
    ///
    /// # Errors
    /// An event cannot be read, or the stream does not begin with `engine_args_set.registered`.
    pub fn load(events: &[Recorded]) -> Result<Option<Self>, LoadError> {
        let Some(first) = events.first() else { return Ok(None) };
        let Event::EngineArgsSetRegistered(facts) = decode(first)? else {
            return Err(wrong_beginning(first, "engine_args_set", "engine_args_set.registered"));
        };
        let mut set = Self { facts: *facts, archived: false, version: 1 };
        for recorded in &events[1..] {
            set.version = recorded.version;
            match decode(recorded)? {
                Event::EngineArgsSetRegistered(facts) => set.facts = *facts,
                Event::EngineArgsSetArchived(_) => set.archived = true,
                _ => {}
            }
        }
        Ok(Some(set))
    }

    /// A person makes a set. That the code is free is the append's to judge.
    ///
    /// # Errors
    /// `bad_code`, `bad_name`, `bad_notes`, `too_many_values`, `unknown_argument`, `bad_argument`, `sidecar_only`.
    pub fn create(
        args: &CreateEngineArgsSet,
        framework: &FrameworkRegistered,
    ) -> Result<Vec<Event>, Refusal> {
        check_code("engine args set code", &args.p_set_code)?;
        let facts = EngineArgsSetRegistered {
            display_name: args.p_display_name.as_deref().map(check_name).transpose()?,
            framework_code: args.p_framework_code.clone(),
            framework_version: args.p_framework_version.clone(),
            model_code: args.p_model_code.clone(),
            precision: args.p_precision.clone(),
            accelerator_codes: args.p_accelerator_codes.clone(),
            values: args.p_values.clone(),
            notes: check_notes(args.p_notes.as_deref())?,
            ..EngineArgsSetRegistered::default()
        };
        checked(facts, framework)
    }

    /// A person makes a set like another. It is nobody's recipe any more: not verified, and without what the framework
    /// version does not know.
    ///
    /// # Errors
    /// As [`EngineArgsSet::create`]; `unchanged_clone` is none: a clone may be equal.
    pub fn clone_of(
        from: &SetInForce,
        code: &str,
        display_name: Option<&str>,
        changes: &BTreeMap<String, Value>,
        notes: Option<&str>,
        framework: &FrameworkRegistered,
    ) -> Result<Vec<Event>, Refusal> {
        check_code("engine args set code", code)?;
        let mut facts = EngineArgsSetRegistered {
            display_name: display_name.map(check_name).transpose()?,
            notes: check_notes(notes)?,
            verified: false,
            curated: false,
            named_in_seeds: false,
            unsupported_flags: vec![],
            cloned_from: Some(format!("{}@{}", from.set_code, from.version)),
            ..from.facts.clone()
        };
        for (key, value) in changes {
            match value {
                Value::Null => {
                    facts.values.remove(key);
                }
                value => {
                    facts.values.insert(key.clone(), value.clone());
                }
            }
        }
        checked(facts, framework)
    }

    /// A person changes the set. Nothing to append where nothing is different.
    ///
    /// # Errors
    /// `set_archived`, and as [`EngineArgsSet::create`].
    pub fn update(
        &self,
        args: &UpdateEngineArgsSet,
        framework: &FrameworkRegistered,
    ) -> Result<Vec<Event>, Refusal> {
        if self.archived {
            let message = format!("engine args set {} is archived", args.p_set_code);
            return Err(Refusal::conflict("set_archived", message).hint("clone it under another code"));
        }
        let mut facts = self.facts.clone();
        if let Some(values) = &args.p_values {
            facts.values.clone_from(values);
        }
        if let Some(name) = &args.p_display_name {
            facts.display_name = Some(check_name(name)?);
        }
        if let Some(notes) = &args.p_notes {
            facts.notes = check_notes(Some(notes))?;
        }
        if facts == self.facts {
            return Ok(vec![]);
        }
        checked(facts, framework)
    }

    /// A person archives the set. Nothing to append where it is archived.
    pub fn archive(&self) -> Vec<Event> {
        if self.archived { vec![] } else { vec![Event::EngineArgsSetArchived(EngineArgsSetArchived {})] }
    }
}

pub(super) fn check_notes(notes: Option<&str>) -> Result<Option<String>, Refusal> {
    let Some(notes) = notes.map(str::trim).filter(|notes| !notes.is_empty()) else { return Ok(None) };
    let odd = notes.chars().any(|c| c.is_control() && !matches!(c, '\n' | '\t'));
    if odd || notes.chars().count() > MAX_NOTES {
        return Err(Refusal::invalid(
            "bad_notes",
            format!("notes have at most {MAX_NOTES} characters, and no control characters"),
        ));
    }
    Ok(Some(notes.to_owned()))
}

fn checked(facts: EngineArgsSetRegistered, framework: &FrameworkRegistered) -> Result<Vec<Event>, Refusal> {
    if framework.sidecar {
        let message = format!("{} only runs beside another framework's server", facts.framework_code);
        return Err(Refusal::invalid("sidecar_only", message)
            .hint("clone a set that brings this sidecar, and change its values there"));
    }
    if facts.values.len() > MAX_VALUES {
        let message = format!("a set holds at most {MAX_VALUES} values; this one has {}", facts.values.len());
        return Err(Refusal::invalid("too_many_values", message));
    }
    if let Some(key) = facts.values.iter().find(|(_, value)| value.is_null()).map(|(key, _)| key) {
        return Err(Refusal::invalid("bad_argument", format!("engine argument {key} is null"))
            .hint("leave it out: a set holds only what it sets"));
    }
    let style = FlagStyle::parse(&framework.flag_style)?;
    check_values("engine argument", &facts.values, &framework.engine_args, style)?;
    Ok(vec![Event::EngineArgsSetRegistered(Box::new(facts))])
}

#[cfg(test)]
mod tests {
    use events::catalogue::EngineArgTemplate;
    use serde_json::json;

    use super::*;

    fn framework() -> FrameworkRegistered {
        let arg = |value: Value| serde_json::from_value::<EngineArgTemplate>(value).unwrap();
        let engine_args = [
            ("tp_size".to_owned(), arg(json!({"cli_flag": "--tp-size", "type": "int", "min": 1.0}))),
            ("dtype".to_owned(), arg(json!({"cli_flag": "--dtype", "type": "choice", "choices": ["half"]}))),
        ];
        FrameworkRegistered {
            flag_style: "equals".into(),
            engine_args: engine_args.into(),
            ..FrameworkRegistered::default()
        }
    }

    fn args(values: Value) -> CreateEngineArgsSet {
        serde_json::from_value(json!({
            "p_set_code": "mine", "p_framework_code": "sglang", "p_framework_version": "1", "p_values": values,
        }))
        .unwrap()
    }

    fn set(values: Value) -> EngineArgsSet {
        let events = EngineArgsSet::create(&args(values), &framework()).unwrap();
        let [Event::EngineArgsSetRegistered(facts)] = events.as_slice() else { panic!("{events:?}") };
        EngineArgsSet { facts: (**facts).clone(), archived: false, version: 1 }
    }

    fn update(values: Value) -> UpdateEngineArgsSet {
        serde_json::from_value(json!({"p_set_code": "mine", "p_values": values})).unwrap()
    }

    #[test]
    fn a_set_holds_only_what_the_version_knows_with_its_types() {
        let refused = |values| EngineArgsSet::create(&args(values), &framework()).unwrap_err();
        let unknown = refused(json!({"tp": 1}));
        assert_eq!(unknown.code, "unknown_argument");
        assert_eq!(refused(json!({"tp_size": "2"})).code, "bad_argument");
        assert_eq!(refused(json!({"tp_size": null})).code, "bad_argument");
        assert!(refused(json!({"dtype": "float"})).message.contains("one of half"));
        let many: serde_json::Map<String, Value> = (0..201).map(|n| (n.to_string(), json!(1))).collect();
        assert_eq!(refused(Value::Object(many)).code, "too_many_values");
    }

    #[test]
    fn a_clone_is_changed_and_no_longer_verified() {
        let from = SetInForce {
            org: "_".into(),
            set_code: "recipe".into(),
            version: 3,
            archived: false,
            facts: EngineArgsSetRegistered {
                verified: true,
                unsupported_flags: vec!["--gone".into()],
                env: [("A".to_owned(), "1".to_owned())].into(),
                ..set(json!({"tp_size": 2, "dtype": "half"})).facts
            },
        };
        let changes = [("tp_size".to_owned(), json!(4)), ("dtype".to_owned(), Value::Null)].into();
        let events = EngineArgsSet::clone_of(&from, "mine", None, &changes, None, &framework()).unwrap();
        let [Event::EngineArgsSetRegistered(facts)] = events.as_slice() else { panic!("{events:?}") };
        assert_eq!(facts.values, [("tp_size".to_owned(), json!(4))].into());
        assert!(!facts.verified && facts.unsupported_flags.is_empty());
        assert_eq!(facts.cloned_from.as_deref(), Some("recipe@3"));
        assert_eq!(facts.env["A"], "1");
    }

    #[test]
    fn a_change_of_nothing_is_no_event_and_an_archived_set_is_not_changed() {
        let mut set = set(json!({"tp_size": 2}));
        assert_eq!(set.update(&update(json!({"tp_size": 2})), &framework()).unwrap(), vec![]);
        assert_eq!(set.update(&update(json!({"tp_size": 4})), &framework()).unwrap().len(), 1);
        assert_eq!(set.archive().len(), 1);
        set.archived = true;
        assert!(set.archive().is_empty());
        let refused = set.update(&update(json!({"tp_size": 4})), &framework()).unwrap_err();
        assert_eq!(refused.code, "set_archived");
    }
}
