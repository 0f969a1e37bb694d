//! Sets of the tool's arguments that the organisation keeps: one is taken into the form, and what is set here is kept as one.

use std::collections::BTreeMap;

use events::api::{RemoveToolArgsSet, SaveToolArgsSet};
use leptos::prelude::*;
use serde_json::Value;

use super::Card;
use super::controls::select;
use super::keep_as::KeepAs;
use crate::browser::page::Page;
use crate::browser::remote::{keep_live, use_rows};
use crate::parts::{CommandButton, Done};
use crate::row::Row;
use crate::state::filters::percent;
use crate::state::live;

/// What a set holds.
fn values(set: &Row) -> BTreeMap<String, Value> {
    let found = set.value("tool_args").and_then(Value::as_object);
    found.into_iter().flatten().map(|(key, value)| (key.clone(), value.clone())).collect()
}

/// The set that holds just these arguments: its code, or nothing.
fn same(sets: &[Row], args: &BTreeMap<String, Value>) -> String {
    sets.iter().find(|set| values(set) == *args).map(|set| set.text("set_code")).unwrap_or_default()
}

/// The choice among the sets of a workload's tool, and the present arguments to be kept as one.
#[component]
pub(super) fn ToolSets(card: Card) -> impl IntoView {
    let page = Page::expect();
    let draft = card.draft;
    let tool = Memo::new(move |_| draft.with(|d| d.tool.clone()));
    let sets = use_rows(move || {
        Some(format!(
            "/api/v_tool_args_sets?tool_code=eq.{}&order=name.asc,position.asc&limit=500",
            percent(&tool.get())
        ))
    });
    let org = page.org_now();
    if !org.is_empty() {
        let topics = vec![format!("{org}:tool_args_set")];
        keep_live(sets, topics, |_, _| false, |e| live::kind(e) == "tool_args_set");
    }
    let chosen = Memo::new(move |_| {
        sets.rows.with(|sets| draft.with(|d| same(sets.as_deref().unwrap_or_default(), &d.tool_args)))
    });
    let options = move || {
        let none =
            draft.with(|d| if d.tool_args.is_empty() { "none: the tool's defaults" } else { "as set here" });
        let of_team = sets.all().into_iter().map(|set| (set.text("set_code"), set.text("name")));
        std::iter::once((String::new(), none.to_owned())).chain(of_team).collect::<Vec<_>>()
    };
    let choose = move |code: String| {
        let found = sets.rows.with_untracked(|sets| {
            sets.iter().flatten().find(|set| set.text("set_code") == code).map(values)
        });
        draft.update(|d| d.tool_args = found.unwrap_or_default());
    };
    let live = page.live;
    let wanted = Callback::new(move |name: String| {
        let set = draft.with_untracked(|d| SaveToolArgsSet {
            p_tool_code: d.tool.clone(),
            p_name: name,
            p_set_code: None,
            p_values: d.tool_args.clone(),
            p_notes: None,
        });
        ("save_tool_args_set", serde_json::to_value(set).unwrap_or_default())
    });
    let saved = Callback::new(move |_| sets.reload());
    let removed = Done::new(move |reply| {
        live.must_reach(reply.position);
        sets.reload();
    });
    view! {
        {select("tool-args-set", "Tool arguments of the team", "span-5", move || chosen.get(), options, choose)}
        <KeepAs testid="tool-args-set-name" nothing=Signal::derive(move || draft.with(|d| d.tool_args.is_empty())) wanted done=saved/>
        {move || {
            let code = chosen.get();
            let removed = removed.clone();
            (!code.is_empty()).then(|| view! {
                <div class="span-12 actions">
                    <CommandButton
                        word="Remove this set"
                        sure="Remove the set for everybody? Workloads keep their values."
                        command="remove_tool_args_set"
                        arguments=Callback::new(move |()| RemoveToolArgsSet {
                            p_tool_code: tool.get_untracked(),
                            p_set_code: code.clone(),
                        })
                        done=removed
                        testid="remove-tool-args-set"
                    />
                </div>
            })
        }}
    }
    .into_any()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_set_that_is_in_force_is_the_one_with_just_these_arguments() {
        let set = |code: &str, args: Value| -> Row {
            serde_json::from_value(json!({"set_code": code, "tool_args": args})).expect("a row")
        };
        let sets = [
            set("a", json!({"request_timeout": 5})),
            set("b", json!({"request_timeout": 5, "mode": "chat"})),
        ];
        let of = |args: Value| same(&sets, &serde_json::from_value(args).expect("a map"));
        assert_eq!(of(json!({"request_timeout": 5, "mode": "chat"})), "b");
        assert_eq!(of(json!({"request_timeout": 5})), "a");
        assert_eq!(of(json!({"request_timeout": 6})), "");
        assert_eq!(of(json!({})), "");
    }
}
