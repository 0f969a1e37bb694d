//! Copies a table as text: for a spreadsheet or for a write-up.

use std::future::Future;
use std::pin::Pin;

use leptos::prelude::*;
use wasm_bindgen_futures::spawn_local;

use crate::browser::api::Trouble;
use crate::state::copied::Form;

/// A table's text, which may have to be read first.
pub type Copied = Pin<Box<dyn Future<Output = Result<String, Trouble>>>>;

/// A menu of the forms a table can be copied in.
#[component]
pub fn CopyMenu(
    /// The table in a form.
    text: Callback<Form, Copied>,
) -> impl IntoView {
    let done = RwSignal::new(None::<Form>);
    let trouble = RwSignal::new(None::<Trouble>);
    let copy = move |form: Form| {
        let text = text.run(form);
        spawn_local(async move {
            match text.await {
                Ok(text) => {
                    crate::browser::copy(&text);
                    trouble.try_set(None);
                    done.try_set(Some(form));
                    set_timeout(
                        move || {
                            done.try_set(None);
                        },
                        std::time::Duration::from_secs(2),
                    );
                }
                Err(error) => {
                    trouble.try_set(Some(error));
                }
            }
        });
    };
    let entry = move |form: Form, word: &'static str, testid: &'static str| {
        view! {
            <button type="button" class="menu-entry" data-testid=testid on:click=move |_| copy(form)>
                {move || if done.get() == Some(form) { "Copied" } else { word }}
            </button>
        }
    };
    view! {
        <details class="menu" data-testid="copy-table">
            <summary class="button">"Copy"</summary>
            <div class="menu-box">
                {entry(Form::Tsv, "For a spreadsheet (TSV)", "copy-tsv")}
                {entry(Form::Markdown, "As Markdown", "copy-markdown")}
                {move || trouble.get().map(|t| view! { <p role="alert"><span class="status" data-status="failed">{t.error.message}</span></p> })}
            </div>
        </details>
    }
    .into_any()
}
