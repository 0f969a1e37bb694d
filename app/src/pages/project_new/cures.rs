//! A check with its cures: what one press can do is a button, the rest is said.

use events::access::Role;
use events::api::{Cure, ReadinessCheck};
use leptos::prelude::*;
use serde_json::Value;
use wasm_bindgen_futures::spawn_local;

use super::Card;
use crate::browser::api::{self, Trouble};
use crate::browser::page::Page;
use crate::parts::CopyButton;

/// Sets a field of the workload, or takes it out.
type SetField = Callback<(String, Option<Value>)>;

/// One check: its finding, and how it is cured.
///
/// `set` sets a field of the workload, or takes it out.
pub(super) fn check_row(check: &ReadinessCheck, card: Card, set: SetField) -> AnyView {
    let (mark, word) = match check.result.as_str() {
        "ok" => ("completed", "ok"),
        "fails" => ("failed", "fails"),
        "warning" => ("flagged", "look"),
        _ => ("queued", "open"),
    };
    let cures = check.cure.iter().map(|cure| cure_row(cure, card, set)).collect_view();
    view! {
        <li data-rule=check.rule.clone() data-result=check.result.clone()>
            <div class="checks-row">
                <span class="status" data-status=mark>{word}</span>
                <span>{check.title.clone()}</span>
                <span class="meta">{check.message.clone()}</span>
            </div>
            {(!check.cure.is_empty()).then(|| view! { <ul class="cure-list">{cures}</ul> })}
        </li>
    }
    .into_any()
}

fn cure_row(cure: &Cure, card: Card, set: SetField) -> AnyView {
    match cure {
        Cure::Set { field, value, label } => {
            change(set, field.clone(), Some(value.clone()), label.clone())
        }
        Cure::Unset { field, label } => change(set, field.clone(), None, label.clone()),
        Cure::Link { href, label } => {
            // In a window of its own: what is typed here stays.
            view! { <li><a class="cure" data-testid="cure-link" href=href.clone() target="_blank" rel="noopener">{label.clone()}</a></li> }.into_any()
        }
        Cure::Command { command, args, role, label } => {
            if Page::expect().may(*role) {
                given(card, command.clone(), args.clone(), label.clone())
            } else {
                asked_for(command, args, *role, label)
            }
        }
        Cure::Host { line, label } => view! {
            <li>
                {label.clone()}
                <span class="cure-line"><code>{line.clone()}</code><CopyButton text=Signal::stored(line.clone())/></span>
            </li>
        }
        .into_any(),
        Cure::Advice { label } => view! { <li>{label.clone()}</li> }.into_any(),
    }
}

/// A cure that is a command for somebody with another role: said whole, so that it can be sent to them.
fn asked_for(command: &str, args: &Value, role: Role, label: &str) -> AnyView {
    let line = format!("POST /api/rpc/{command} {args}");
    view! {
        <li>
            {label.to_owned()}" "<span class="meta">{format!("takes the role {}", role.as_str())}</span>
            <span class="cure-line"><code>{line.clone()}</code><CopyButton text=Signal::stored(line)/></span>
        </li>
    }
    .into_any()
}

/// A cure that changes a field of the workload: the form follows, and readiness is asked for anew.
fn change(set: SetField, field: String, value: Option<Value>, label: String) -> AnyView {
    let name = field.clone();
    let press = move |_| set.run((field.clone(), value.clone()));
    view! { <li><button type="button" class="cure" data-testid="cure" data-field=name on:click=press>{label}</button></li> }
        .into_any()
}

/// A cure that is a command.
fn given(card: Card, command: String, args: Value, label: String) -> AnyView {
    let live = Page::expect().live;
    let trouble = RwSignal::new(None::<Trouble>);
    let busy = RwSignal::new(false);
    let press = move |_| {
        if busy.get_untracked() {
            return;
        }
        busy.set(true);
        let (command, args) = (command.clone(), args.clone());
        spawn_local(async move {
            let answer = api::command(&command, &args).await;
            busy.try_set(false);
            match answer {
                Ok(reply) => {
                    live.must_reach(reply.position);
                    trouble.try_set(None);
                    card.again.try_update(|n| *n += 1);
                }
                Err(error) => {
                    trouble.try_set(Some(error));
                }
            }
        });
    };
    view! {
        <li>
            <button type="button" class="cure" data-testid="cure-command" aria-disabled=move || busy.get().to_string() on:click=press>{label}</button>
            {move || trouble.get().map(|t| view! { <span role="alert" class="status" data-status="failed">{t.error.message}</span> })}
        </li>
    }
    .into_any()
}
