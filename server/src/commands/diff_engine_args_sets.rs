//! `diff_engine_args_sets`: how two sets of engine arguments differ, or one from the framework's defaults.

use std::collections::{BTreeMap, BTreeSet};

use events::access::Role;
use events::api_catalogue::{DiffEngineArgsSets, EngineArgDifference, EngineArgsSetsDiff};
use events::catalogue::{EngineArgTemplate, FrameworkRegistered};
use serde_json::Value;

use super::{CommandError, RequestMeta, catalogue};
use crate::auth::Principal;
use crate::domain::Refusal;
use crate::resolve::SetInForce;
use crate::state::AppState;

/// Compares.
///
/// # Errors
/// `unknown_engine_args_set`, `sets_of_different_frameworks`.
pub async fn diff_engine_args_sets(
    state: &AppState,
    principal: &Principal,
    args: DiffEngineArgsSets,
    _meta: RequestMeta,
) -> Result<EngineArgsSetsDiff, CommandError> {
    let caller = principal.require(Role::Viewer)?;
    state.work.catch_up().await?;
    let org = &caller.org;
    let set = catalogue::engine_args_set(state, org, &args.p_set_code, None).await?;
    let (code, version) = (&set.facts.framework_code, &set.facts.framework_version);
    let framework = catalogue::framework(state, org, code, version).await?;
    let mut sidecars = catalogue::sidecars(state, org, Some(&set)).await?;
    let base = match &args.p_base_set_code {
        Some(base) => {
            let base = catalogue::engine_args_set(state, org, base, None).await?;
            if base.facts.framework_code != *code {
                let message = format!(
                    "{} is for {}, {} is for {code}",
                    base.set_code, base.facts.framework_code, set.set_code
                );
                return Err(Refusal::invalid("sets_of_different_frameworks", message)
                    .hint("compare sets of the same framework")
                    .into());
            }
            sidecars.extend(catalogue::sidecars(state, org, Some(&base)).await?);
            named(&base)
        }
        None => defaults(&named(&set), &framework, &sidecars),
    };
    let template = |key: &str| template_of(key, &framework, &sidecars);
    Ok(EngineArgsSetsDiff {
        set_code: set.set_code.clone(),
        base_set_code: args.p_base_set_code,
        framework_code: code.clone(),
        framework_version: version.clone(),
        differences: differences(&base, &named(&set), template),
    })
}

/// All that a set says, environment variables under `env.<NAME>`.
fn named(set: &SetInForce) -> BTreeMap<String, Value> {
    let mut args = set.args();
    args.extend(
        set.facts.env.iter().map(|(name, value)| (format!("env.{name}"), Value::from(value.clone()))),
    );
    args
}

/// The defaults of the arguments that a set names.
fn defaults(
    args: &BTreeMap<String, Value>,
    framework: &FrameworkRegistered,
    sidecars: &BTreeMap<String, FrameworkRegistered>,
) -> BTreeMap<String, Value> {
    args.keys()
        .filter_map(|key| Some((key.clone(), template_of(key, framework, sidecars)?.default.clone())))
        .filter(|(_, default)| !default.is_null())
        .collect()
}

fn template_of<'a>(
    key: &str,
    framework: &'a FrameworkRegistered,
    sidecars: &'a BTreeMap<String, FrameworkRegistered>,
) -> Option<&'a EngineArgTemplate> {
    match key.split_once('.') {
        Some((sidecar, key)) => sidecars.get(sidecar)?.engine_args.get(key),
        None => framework.engine_args.get(key),
    }
}

fn differences<'a>(
    base: &BTreeMap<String, Value>,
    set: &BTreeMap<String, Value>,
    template: impl Fn(&str) -> Option<&'a EngineArgTemplate>,
) -> Vec<EngineArgDifference> {
    let keys: BTreeSet<&String> = base.keys().chain(set.keys()).collect();
    let mut differences = Vec::new();
    for key in keys {
        let change = match (base.get(key), set.get(key)) {
            (None, Some(_)) => "added",
            (Some(_), None) => "removed",
            (base, set) if base != set => "changed",
            _ => continue,
        };
        let known = template(key);
        differences.push(EngineArgDifference {
            key: key.clone(),
            change: change.to_owned(),
            base: base.get(key).cloned().unwrap_or_default(),
            value: set.get(key).cloned().unwrap_or_default(),
            dangerous: known.is_some_and(|template| template.dangerous),
            meaning: known.map(|template| template.meaning.clone()),
        });
    }
    differences
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_is_added_removed_and_changed_is_named_and_what_is_equal_is_not() {
        let args = |value: Value| -> BTreeMap<String, Value> { serde_json::from_value(value).unwrap() };
        let base = args(json!({"a": 1, "b": 2, "c": 3}));
        let set = args(json!({"b": 2, "c": 4, "d": 5}));
        let found: Vec<(String, String, Value, Value)> = differences(&base, &set, |_| None)
            .into_iter()
            .map(|d| (d.key, d.change, d.base, d.value))
            .collect();
        assert_eq!(
            found,
            [
                ("a".into(), "removed".into(), json!(1), json!(null)),
                ("c".into(), "changed".into(), json!(3), json!(4)),
                ("d".into(), "added".into(), json!(null), json!(5)),
            ]
        );
    }
}
