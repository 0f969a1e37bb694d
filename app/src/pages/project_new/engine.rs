//! Engine arguments: a set of the catalogue, one's own beside it, and what is in force, against the framework's defaults.

use std::collections::BTreeMap;

use events::api::CommandReply;
use events::api_catalogue::{CloneEngineArgsSet, CreateEngineArgsSet};
use events::keys::code_from_name;
use leptos::prelude::*;
use serde_json::Value;

use super::draft::{Draft, written};
use super::keep_as::{KeepAs, Wanted};
use super::{Card, workload::Choices};
use crate::browser::remote::use_rows;
use crate::row::Row;
use crate::state::filters::percent;

/// An engine argument that is in force, and differs from the framework's default.
#[derive(Debug, Clone, PartialEq)]
struct Different {
    key: String,
    default: String,
    here: String,
    /// Who says so.
    by: &'static str,
    meaning: String,
}

/// The framework's version of a draft.
fn framework<'a>(draft: &Draft, frameworks: &'a [Row]) -> Option<&'a Row> {
    frameworks
        .iter()
        .find(|f| f.text("framework_code") == draft.framework && f.text("framework_version") == draft.version)
}

fn definition<'a>(framework: Option<&'a Row>, key: &str) -> Option<&'a Value> {
    framework?.value("engine_args")?.get(key)
}

/// What is in force and differs, one's own first.
fn differing(
    in_force: &BTreeMap<String, Value>,
    own: &BTreeMap<String, Value>,
    set: Option<&Row>,
    framework: Option<&Row>,
) -> Vec<Different> {
    let of_set = |key: &str| set.and_then(|set| set.value("engine_args")?.get(key));
    let mut list: Vec<Different> = in_force
        .iter()
        .filter_map(|(key, value)| {
            let known = definition(framework, key);
            let default = known.and_then(|d| d.get("default")).unwrap_or(&Value::Null);
            let same = |a: &Value, b: &Value| a == b || (a.is_number() && a.as_f64() == b.as_f64());
            if same(default, value) {
                return None;
            }
            let by = match (own.contains_key(key), of_set(key)) {
                (true, _) => "set here",
                (false, Some(_)) => "by the set",
                (false, None) => "worked out",
            };
            let text = |value: &Value| if value.is_null() { "none".to_owned() } else { written(value) };
            let meaning = known.and_then(|d| d.get("meaning")?.as_str()).unwrap_or_default().to_owned();
            Some(Different { key: key.clone(), default: text(default), here: text(value), by, meaning })
        })
        .collect();
    list.sort_by_key(|d| (d.by != "set here", d.by != "by the set"));
    list
}

/// What is in force, once the commands resolve.
#[component]
pub(super) fn InForce(card: Card, choices: Choices) -> impl IntoView {
    let code = Memo::new(move |_| card.draft.with(|d| d.engine_args_set.clone()));
    let set = use_rows(move || {
        let code = code.get();
        (!code.is_empty()).then(|| {
            format!(
                "/api/v_framework_engine_args_sets?set_code=eq.{}&select=set_code,engine_args&limit=1",
                percent(&code)
            )
        })
    });
    let list = Memo::new(move |_| {
        let in_force = card
            .readiness
            .with(|r| r.as_ref().and_then(|r| r.commands.as_ref()).map(|c| c.engine_args.clone()))?;
        let set = set.first().filter(|set| set.text("set_code") == code.get());
        let found = choices.frameworks.rows.with(|frameworks| {
            card.draft.with(|draft| {
                let framework = framework(draft, frameworks.as_deref().unwrap_or_default());
                differing(&in_force, &draft.own_engine_args(), set.as_ref(), framework)
            })
        });
        Some((in_force.len(), found))
    });
    let rows = |found: Vec<Different>| {
        found
            .into_iter()
            .map(|d| {
                view! {
                    <tr data-testid="in-force" data-key=d.key.clone()>
                        <th scope="row" class="key" title=d.meaning>{d.key.clone()}</th>
                        <td class="key quiet">{d.default}</td>
                        <td class="key"><b>{d.here}</b></td>
                        <td class="meta">{d.by}</td>
                    </tr>
                }
            })
            .collect_view()
    };
    move || {
        list.get().filter(|(_, found)| !found.is_empty()).map(|(all, found)| {
            view! {
                <table class="data-table keep-shape argument-diff span-12">
                    <caption class="visually-hidden">"Engine arguments in force that differ from the framework's defaults"</caption>
                    <thead>
                        <tr>
                            <th scope="col">"Engine argument"</th>
                            <th scope="col">"Default"</th>
                            <th scope="col">"Here"</th>
                            <th scope="col">{format!("{} of {all} in force differ from the default", found.len())}</th>
                        </tr>
                    </thead>
                    <tbody>{rows(found)}</tbody>
                </table>
            }
        })
    }
}

/// The command that makes a set of what a draft sets, beside the set that it begins from.
fn as_set(draft: &Draft, name: String) -> Wanted {
    let (code, mut values) = (code_from_name(&name), draft.own_engine_args());
    if draft.engine_args_set.is_empty() {
        values.retain(|_, value| !value.is_null());
        let set = CreateEngineArgsSet {
            p_set_code: code,
            p_display_name: Some(name),
            p_framework_code: draft.framework.clone(),
            p_framework_version: draft.version.clone(),
            p_values: values,
            p_model_code: None,
            p_precision: None,
            p_accelerator_codes: Vec::new(),
            p_notes: None,
        };
        return ("create_engine_args_set", serde_json::to_value(set).unwrap_or_default());
    }
    let set = CloneEngineArgsSet {
        p_from_set_code: draft.engine_args_set.clone(),
        p_set_code: code,
        p_display_name: Some(name),
        p_values: values,
        p_notes: None,
    };
    ("clone_engine_args_set", serde_json::to_value(set).unwrap_or_default())
}

/// One's own arguments, one a line, and those that are set most at a press.
#[component]
pub(super) fn Own(card: Card, choices: Choices) -> impl IntoView {
    let draft = card.draft;
    let known = Memo::new(move |_| {
        choices.frameworks.rows.with(|frameworks| {
            draft.with(|draft| {
                let found = framework(draft, frameworks.as_deref().unwrap_or_default())
                    .and_then(|f| f.value("engine_args")?.as_object().cloned())
                    .unwrap_or_default();
                let often =
                    |(_, v): &(String, Value)| v.get("commonly_used").and_then(Value::as_bool) == Some(true);
                found.into_iter().filter(often).collect::<Vec<_>>()
            })
        })
    });
    let entries = move || {
        known
            .get()
            .into_iter()
            .map(|(key, definition)| {
                let default = definition.get("default").cloned().unwrap_or_default();
                let meaning = definition.get("meaning").and_then(Value::as_str).unwrap_or_default().to_owned();
                let name = key.clone();
                let add = move |_| {
                    draft.update(|d| d.add_engine_arg(&key, &default));
                };
                view! { <button type="button" class="figure-toggle key" title=meaning on:click=add>{name}</button>" " }
            })
            .collect_view()
    };
    let wanted = Callback::new(move |name: String| draft.with_untracked(|draft| as_set(draft, name)));
    let done = Callback::new(move |reply: CommandReply| {
        let code = reply.keys.get("set_code").and_then(Value::as_str).unwrap_or_default().to_owned();
        // What was set here is now the set's.
        draft.try_update(|d| {
            d.engine_args_set = code;
            d.engine_args.clear();
        });
        choices.sets.reload();
    });
    view! {
        <label class="field">
            <span class="field-label">"Engine arguments, one a line, key=value; what is not named keeps the set's or the framework's, null takes the set's away"</span>
            <textarea
                class="control control-tall key"
                rows="3"
                placeholder="max_model_len=4096"
                data-testid="engine-args"
                prop:value=move || draft.with(|d| d.engine_args.clone())
                on:input=move |event| draft.update(|d| d.engine_args = event_target_value(&event))
            ></textarea>
        </label>
        <p class="known" data-testid="known-engine-args">{entries}</p>
        <div class="form-grid">
            <KeepAs testid="engine-args-set-name" nothing=Signal::derive(move || draft.with(|d| d.own_engine_args().is_empty())) wanted done/>
        </div>
    }
    .into_any()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_is_set_beside_a_set_becomes_a_clone_and_alone_a_set() {
        let draft = Draft {
            framework: "vllm".into(),
            engine_args: "max_model_len=4096\nseed=null".into(),
            ..Draft::default()
        };
        let (command, set) = as_set(&draft, "Long Context".into());
        assert_eq!((command, &set["p_set_code"]), ("create_engine_args_set", &json!("long-context")));
        assert_eq!(set["p_values"], json!({"max_model_len": 4096}));
        let draft = Draft { engine_args_set: "recipe".into(), ..draft };
        let (command, set) = as_set(&draft, "Long Context".into());
        assert_eq!((command, &set["p_from_set_code"]), ("clone_engine_args_set", &json!("recipe")));
        assert_eq!(set["p_values"], json!({"max_model_len": 4096, "seed": null}));
    }

    #[test]
    fn only_what_differs_from_the_default_is_shown_and_who_says_so() {
        let of = |value: Value| -> BTreeMap<String, Value> { serde_json::from_value(value).expect("a map") };
        let row = |value: Value| -> Row { serde_json::from_value(value).expect("a row") };
        let in_force = of(json!({"a": 1, "b": 2, "c": 3, "d": 4}));
        let framework = row(
            json!({"engine_args": {"a": {"default": 1}, "b": {"default": 0, "meaning": "B."}, "c": {"default": null}}}),
        );
        let set = row(json!({"engine_args": {"b": 2, "c": 9}}));
        let found = differing(&in_force, &of(json!({"c": 3})), Some(&set), Some(&framework));
        let lines: Vec<(&str, &str, &str, &str)> =
            found.iter().map(|d| (d.key.as_str(), d.default.as_str(), d.here.as_str(), d.by)).collect();
        assert_eq!(
            lines,
            [("c", "none", "3", "set here"), ("b", "0", "2", "by the set"), ("d", "none", "4", "worked out")]
        );
        assert_eq!(found[1].meaning, "B.");
    }
}
