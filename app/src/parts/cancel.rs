//! The button that stops a run or a job.

use leptos::prelude::*;
use serde::Serialize;
use wasm_bindgen_futures::spawn_local;

use crate::browser::api::{self, Trouble};
use crate::browser::page::Page;
use crate::browser::remote::Rows;

/// Stops what the first row is about, while it can be stopped.
#[component]
pub fn Cancel<A>(
    /// `run` or `job`: the command is `cancel_run` or `cancel_job`.
    what: &'static str,
    /// The row of the run or the job.
    rows: Rows,
    /// The command's arguments.
    arguments: A,
) -> impl IntoView
where
    A: Serialize + Clone + Send + Sync + 'static,
{
    let page = Page::expect();
    let asked = RwSignal::new(false);
    let trouble = RwSignal::new(None::<Trouble>);
    let open = Memo::new(move |_| {
        page.signed_in()
            && rows
                .first()
                .is_some_and(|r| matches!(r.text("status").as_str(), "pending" | "queued" | "running"))
    });
    let stopping = Memo::new(move |_| asked.get() || rows.first().is_some_and(|r| r.is("cancel_requested")));
    let arguments = StoredValue::new(arguments);
    let cancel = move |_| {
        if stopping.get_untracked() {
            return;
        }
        asked.set(true);
        trouble.set(None);
        spawn_local(async move {
            match api::command(&format!("cancel_{what}"), &arguments.get_value()).await {
                Ok(reply) => page.live.must_reach(reply.position),
                Err(error) => {
                    asked.try_set(false);
                    trouble.try_set(Some(error));
                }
            }
        });
    };
    view! {
        <Show when=move || open.get()>
            {move || trouble.get().map(|t| view! { <span role="alert" class="status" data-status="failed" title=t.error.hint>{t.error.message}</span> })}
            <button type="button" class="button" data-testid=format!("cancel-{what}") aria-disabled=move || stopping.get().to_string() on:click=cancel>
                {move || if stopping.get() { "Cancelling".to_owned() } else { format!("Cancel {what}") }}
            </button>
        </Show>
    }
    .into_any()
}
