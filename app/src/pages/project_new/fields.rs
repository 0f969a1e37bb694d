//! The arguments of the tool, each as the field its definition in the catalogue makes of it. Those that only this kind of
//! workload has stand in the open, the others folded away.

use std::collections::BTreeMap;

use events::catalogue::EngineArgTemplate;
use events::tools::ToolCode;
use leptos::prelude::*;
use serde_json::Value;

use super::Card;
use crate::browser::remote::Rows;
use crate::row::Row;

/// An argument's definition.
#[derive(Debug, Clone, PartialEq)]
struct Argument {
    key: String,
    definition: EngineArgTemplate,
    /// No tool of another kind has it.
    own: bool,
}

/// The arguments that a row of the catalogue defines.
fn defined(tool: &Row) -> BTreeMap<String, EngineArgTemplate> {
    let found = tool.value("args").and_then(Value::as_object);
    let read = |(key, value): (&String, &Value)| {
        Some((key.clone(), serde_json::from_value::<EngineArgTemplate>(value.clone()).ok()?))
    };
    found.into_iter().flatten().filter_map(read).collect()
}

/// The arguments of a tool that a workload may set, its own first, then those that read files or load code.
fn arguments(tool: ToolCode, tools: &[Row]) -> Vec<Argument> {
    let of = |code: ToolCode| tools.iter().find(|row| row.text("tool_code") == code.as_str()).map(defined);
    let others: Vec<BTreeMap<String, EngineArgTemplate>> = ToolCode::ALL
        .iter()
        .filter(|other| other.kind() != tool.kind())
        .filter_map(|other| of(*other))
        .collect();
    let shared = |key: &str, definition: &EngineArgTemplate| {
        others.iter().any(|other| other.get(key).is_some_and(|found| found.meaning == definition.meaning))
    };
    let mut list: Vec<Argument> = of(tool)
        .unwrap_or_default()
        .into_iter()
        // Those have their chips.
        .filter(|(key, _)| !tool.is_of_scenarios(key))
        .map(|(key, definition)| {
            let own = !definition.dangerous && !shared(&key, &definition);
            Argument { key, definition, own }
        })
        .collect();
    list.sort_by_key(|a| (!a.own, a.definition.dangerous, a.key.clone()));
    list
}

/// A value as a field shows it.
fn shown(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// What is typed into a field, as a value of the argument's type. What does not fit it stays a word: readiness says so.
fn value_of(arg_type: &str, text: &str) -> Option<Value> {
    let text = text.trim();
    if text.is_empty() {
        return None;
    }
    let word = || Value::String(text.to_owned());
    Some(match arg_type {
        "string" | "choice" => word(),
        _ => serde_json::from_str(text).unwrap_or_else(|_| word()),
    })
}

/// The fields; `own` of the tool, or else the common ones.
#[component]
pub(super) fn ToolFields(card: Card, tools: Rows, own: bool) -> impl IntoView {
    let draft = card.draft;
    let list = Memo::new(move |_| {
        let tool = draft.with(|d| d.tool());
        let all = tools.rows.with(|rows| arguments(tool, rows.as_deref().unwrap_or_default()));
        all.into_iter().filter(|a| a.own == own).collect::<Vec<_>>()
    });
    // The tool is part of the key: the same name may be another argument there.
    let keyed = move || {
        let tool = draft.with(|d| d.tool.clone());
        list.get().into_iter().map(|a| (tool.clone(), a)).collect::<Vec<_>>()
    };
    view! {
        <For each=keyed key=|(tool, a)| format!("{tool} {}", a.key) let:entry>
            {field(card, entry.1)}
        </For>
    }
    .into_any()
}

fn field(card: Card, argument: Argument) -> AnyView {
    let Argument { key, definition, .. } = argument;
    let draft = card.draft;
    let place = StoredValue::new(key.clone());
    let now =
        move || draft.with(|d| place.with_value(|key| d.tool_args.get(key).map(shown).unwrap_or_default()));
    let arg_type = StoredValue::new(definition.arg_type.clone());
    let set = move |text: String| {
        let value = arg_type.with_value(|arg_type| value_of(arg_type, &text));
        draft.update(|d| place.with_value(|key| d.set_tool_arg(key, value)));
    };
    let default = if definition.default.is_null() { "none".to_owned() } else { shown(&definition.default) };
    let label = {
        let mut words = key.replace('_', " ");
        if let Some(first) = words.get_mut(0..1) {
            first.make_ascii_uppercase();
        }
        words
    };
    let meaning = definition.meaning.clone();
    let testid = format!("arg-{key}");
    let options = match definition.arg_type.as_str() {
        "bool" => vec!["true".to_owned(), "false".to_owned()],
        "choice" => definition.choices.clone(),
        _ => Vec::new(),
    };
    let control = if options.is_empty() {
        let numeric = matches!(definition.arg_type.as_str(), "int" | "float");
        view! {
            <input
                class="control"
                inputmode=numeric.then_some("decimal")
                placeholder=default
                data-testid=testid
                prop:value=now
                on:change=move |event| set(event_target_value(&event))
            />
        }
        .into_any()
    } else {
        let word = |option: &str| match option {
            "true" if definition.arg_type == "bool" => "on".to_owned(),
            "false" if definition.arg_type == "bool" => "off".to_owned(),
            other => other.to_owned(),
        };
        let first = if definition.default.is_null() {
            "choose".to_owned()
        } else {
            format!("{} (default)", word(&default))
        };
        let entries = options.into_iter().map(|option| {
            let (code, words) = (option.clone(), word(&option));
            view! { <option value=code prop:selected=move || now() == option>{words}</option> }
        });
        view! {
            <select class="control" data-testid=testid on:change=move |event| set(event_target_value(&event))>
                <option value="" prop:selected=move || now().is_empty()>{first}</option>
                {entries.collect_view()}
            </select>
        }
        .into_any()
    };
    view! {
        <label class="field span-3 half">
            <span class="field-label" title=key>{label}</span>
            {control}
            <small>{meaning}</small>
        </label>
    }
    .into_any()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn tool(code: &str, args: Value) -> Row {
        serde_json::from_value(json!({"tool_code": code, "args": args})).expect("a row")
    }

    fn arg(meaning: &str, dangerous: bool) -> Value {
        json!({"cli_flag": "--x", "type": "string", "meaning": meaning, "dangerous": dangerous})
    }

    #[test]
    fn what_only_this_kind_has_comes_first_and_axes_are_no_fields() {
        let tools = [
            tool(
                "metrumbench-asr",
                json!({"seed": arg("Seed.", false), "language": arg("Spoken.", false),
                "insecure": arg("No certificate.", true), "streaming": arg("Streams.", false)}),
            ),
            tool("metrumbench-llm", json!({"seed": arg("Seed.", false)})),
        ];
        let found: Vec<(String, bool)> =
            arguments(ToolCode::MetrumbenchAsr, &tools).into_iter().map(|a| (a.key, a.own)).collect();
        let named = |key: &str, own: bool| (key.to_owned(), own);
        assert_eq!(found, [named("language", true), named("seed", false), named("insecure", false)]);
    }

    #[test]
    fn the_same_name_with_another_meaning_is_another_argument() {
        let tools = [
            tool("kyai", json!({"dataset": arg("Questions.", false)})),
            tool("kv-cache-offload", json!({"dataset": arg("Conversations.", false)})),
        ];
        assert!(arguments(ToolCode::Kyai, &tools)[0].own);
    }

    #[test]
    fn what_is_typed_has_the_arguments_type() {
        assert_eq!(value_of("int", " 7 "), Some(json!(7)));
        assert_eq!(value_of("string", "42"), Some(json!("42")));
        assert_eq!(value_of("bool", "true"), Some(json!(true)));
        assert_eq!(value_of("json", "{\"a\": 1}"), Some(json!({"a": 1})));
        assert_eq!(value_of("float", "many"), Some(json!("many")));
        assert_eq!(value_of("int", " "), None);
    }
}
