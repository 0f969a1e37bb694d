//! A name, and a button that keeps what is set in the form under it, for the organisation.

use events::api::CommandReply;
use leptos::prelude::*;
use serde_json::Value;
use wasm_bindgen_futures::spawn_local;

use crate::browser::api::{self, Trouble};
use crate::browser::page::Page;

/// A command and its arguments.
pub(super) type Wanted = (&'static str, Value);

/// The field and its button.
#[component]
pub(super) fn KeepAs(
    /// Its name for tests, and the button's with `save-` before it.
    testid: &'static str,
    /// Whether there is nothing to keep.
    #[prop(into)]
    nothing: Signal<bool>,
    /// What is to be done, for a name.
    wanted: Callback<String, Wanted>,
    /// Called with the reply.
    done: Callback<CommandReply>,
) -> impl IntoView {
    let live = Page::expect().live;
    let (name, busy) = (RwSignal::new(String::new()), RwSignal::new(false));
    let trouble = RwSignal::new(None::<Trouble>);
    let idle = move || nothing.get() || name.with(|name| name.trim().is_empty());
    let keep = move |_| {
        if busy.get_untracked() || untrack(idle) {
            return;
        }
        busy.set(true);
        let (command, arguments) = wanted.run(name.with_untracked(|name| name.trim().to_owned()));
        spawn_local(async move {
            let answer = api::command(command, &arguments).await;
            busy.try_set(false);
            match answer {
                Ok(reply) => {
                    live.must_reach(reply.position);
                    name.try_set(String::new());
                    trouble.try_set(None);
                    done.try_run(reply);
                }
                Err(error) => {
                    trouble.try_set(Some(error));
                }
            }
        });
    };
    view! {
        <label class="field span-4 half">
            <span class="field-label">"Keep these for the team as"</span>
            <input class="control" maxlength="200" data-testid=testid bind:value=name/>
        </label>
        <div class="field span-3 half">
            // Beside the field, not beside its label.
            <span class="field-label" aria-hidden="true">"\u{a0}"</span>
            <span class="actions">
                <button
                    type="button"
                    class="button"
                    data-testid=format!("save-{testid}")
                    aria-disabled=move || (busy.get() || idle()).to_string()
                    on:click=keep
                >"Save set"</button>
            </span>
        </div>
        {move || trouble.get().map(|t| view! {
            <p role="alert" class="span-12"><span class="status" data-status="failed">{t.error.message}</span>" "<span class="meta">{t.error.hint}</span></p>
        })}
    }
    .into_any()
}
