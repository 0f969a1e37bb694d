//! A set of engine arguments like another, with changes: every value in a field, typed as its template says.

use std::collections::BTreeMap;

use events::api_catalogue::CloneEngineArgsSet;
use leptos::ev::SubmitEvent;
use leptos::prelude::*;
use serde_json::Value;
use wasm_bindgen_futures::spawn_local;

use super::Settings;
use super::listing::range;
use crate::browser::api::{self, Trouble};
use crate::browser::page::Page;
use crate::browser::remote::{Rows, use_rows};
use crate::row::Row;
use crate::state::args_edit::{changes, written};
use crate::state::catalogue_view::Against;
use crate::state::filters::percent;

/// The form.
#[component]
pub(super) fn CloneForm(settings: Settings, row: StoredValue<Row>) -> impl IntoView {
    let live = Page::expect().live;
    let (from, framework, version) =
        row.with_value(|r| (r.text("set_code"), r.text("framework_code"), r.text("framework_version")));
    let before: BTreeMap<String, Value> = row.with_value(|r| match r.value("engine_args") {
        Some(Value::Object(members)) => members.iter().map(|(k, v)| (k.clone(), v.clone())).collect(),
        _ => BTreeMap::new(),
    });
    let edited = RwSignal::new(
        before.iter().map(|(k, v)| (k.clone(), written(v))).collect::<BTreeMap<String, String>>(),
    );
    let before = StoredValue::new(before);
    let request = format!(
        "/api/v_framework_engine_args_templates?framework_code=eq.{}&framework_version=eq.{}&order=key.asc&limit=1000",
        percent(&framework),
        percent(&version)
    );
    let templates = use_rows(move || Some(request.clone()));
    let code = RwSignal::new(format!("{from}-2"));
    let from = StoredValue::new(from);
    let (notes, busy) = (RwSignal::new(String::new()), RwSignal::new(false));
    let wrong = RwSignal::new(None::<String>);
    let trouble = RwSignal::new(None::<Trouble>);
    let submit = move |event: SubmitEvent| {
        event.prevent_default();
        if busy.get_untracked() {
            return;
        }
        let found = templates.rows.with_untracked(|rows| {
            let template = |key: &str| rows.iter().flatten().find(|r| r.text("key") == key);
            edited.with_untracked(|edited| before.with_value(|before| changes(before, edited, template)))
        });
        let p_values = match found {
            Ok(values) => values,
            Err(what) => return wrong.set(Some(what)),
        };
        wrong.set(None);
        let note = notes.with_untracked(|n| n.trim().to_owned());
        let wanted = CloneEngineArgsSet {
            p_from_set_code: from.get_value(),
            p_set_code: code.with_untracked(|c| c.trim().to_owned()),
            p_display_name: None,
            p_values,
            p_notes: (!note.is_empty()).then_some(note),
        };
        busy.set(true);
        spawn_local(async move {
            let answer = api::command("clone_engine_args_set", &wanted).await;
            busy.try_set(false);
            match answer {
                Ok(reply) => {
                    live.must_reach(reply.position);
                    trouble.try_set(None);
                    // On to the clone, beside what it was made from.
                    settings.update(|v| {
                        v.open(Some(wanted.p_set_code.clone()));
                        v.against = Some(Against::Set(wanted.p_from_set_code.clone()));
                    });
                }
                Err(error) => {
                    trouble.try_set(Some(error));
                }
            }
        });
    };
    let keys = Memo::new(move |_| edited.with(|e| e.keys().cloned().collect::<Vec<_>>()));
    view! {
        <form class="clone-form" on:submit=submit data-testid="clone-form">
            <div class="form-grid">
                <label class="field span-6"><span class="field-label">"Code of the new set"</span><input class="control key" required data-testid="clone-code" bind:value=code/></label>
                <label class="field span-6"><span class="field-label">"Where the changes come from"</span><input class="control" data-testid="clone-notes" bind:value=notes/></label>
                <For each=move || keys.get() key=|key| key.clone() let:key>
                    {field(key, edited, templates)}
                </For>
                <label class="field span-4">
                    <span class="field-label">"Another argument"</span>
                    <select class="control key" data-testid="add-argument" on:change=move |e| {
                        let key = event_target_value(&e);
                        if !key.is_empty() { edited.update(|all| { all.entry(key).or_default(); }); }
                    }>
                        <option value="">"choose"</option>
                        {move || templates.all().iter().map(|t| t.text("key")).filter(|key| edited.with(|e| !e.contains_key(key))).map(|key| view! { <option value=key.clone()>{key.clone()}</option> }).collect_view()}
                    </select>
                </label>
            </div>
            <p class="meta">"An emptied field leaves its argument out. Environment variables and sidecars are taken over as they are."</p>
            <div role="alert">
                {move || wrong.get().map(|what| view! { <p data-testid="clone-wrong"><span class="status" data-status="failed">{what}</span></p> })}
                {move || trouble.get().map(|t| view! { <p data-testid="clone-trouble" data-code=t.error.code><span class="status" data-status="failed">{t.error.message}</span>" "<span class="meta">{t.error.hint}</span></p> })}
            </div>
            <div class="actions one-line">
                <button type="submit" class="button button-primary" data-testid="save-clone" aria-disabled=move || busy.get().to_string()>"Save the clone"</button>
                <button type="button" class="button button-quiet" on:click=move |_| settings.update(|v| v.cloning = false)>"Cancel"</button>
            </div>
        </form>
    }
    .into_any()
}

/// The field of an argument, with what its template says of it.
fn field(key: String, edited: RwSignal<BTreeMap<String, String>>, templates: Rows) -> AnyView {
    let (shown, typed, of) = (key.clone(), key.clone(), key.clone());
    let template = Memo::new(move |_| {
        templates.rows.with(|r| r.iter().flatten().find(|t| t.text("key") == of).cloned())
    });
    let words = move || {
        template.get().map(|t| {
            let danger = if t.is("dangerous") { ", needs approval" } else { "" };
            let values = range(&t);
            format!(
                "{}{}{danger}",
                t.text("type"),
                if values.is_empty() { String::new() } else { format!(", {values}") }
            )
        })
    };
    let value = move || edited.with(|e| e.get(&shown).cloned().unwrap_or_default());
    let meaning = move || template.get().map(|t| t.text("meaning"));
    view! {
        <label class="field span-4" title=meaning>
            <span class="field-label"><code>{key.clone()}</code>" "{words}</span>
            <input class="control key" data-testid=format!("arg-{key}") prop:value=value on:input=move |e| { let text = event_target_value(&e); edited.update(|all| { all.insert(typed.clone(), text); }) }/>
        </label>
    }
    .into_any()
}
