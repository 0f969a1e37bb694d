//! Copies a table as text: for a spreadsheet or for a write-up.

use leptos::prelude::*;

use crate::state::copied::Form;

/// A menu of the forms a table can be copied in.
#[component]
pub fn CopyMenu(
    /// The table in a form.
    text: Callback<Form, String>,
) -> impl IntoView {
    let done = RwSignal::new(None::<Form>);
    let copy = move |form: Form| {
        crate::browser::copy(&text.run(form));
        done.set(Some(form));
        set_timeout(
            move || {
                done.try_set(None);
            },
            std::time::Duration::from_secs(2),
        );
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
            </div>
        </details>
    }
    .into_any()
}
