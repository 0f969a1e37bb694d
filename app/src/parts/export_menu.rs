//! Exports exactly what is filtered, every column of it, as a file.

use leptos::prelude::*;
use wasm_bindgen_futures::spawn_local;

use crate::browser::api::{self, Trouble};
use crate::browser::save_blob;

/// What an export can be: media type, ending, word.
const EXPORTS: [(&str, &str, &str); 3] = [
    ("text/csv", "csv", "CSV"),
    ("application/x-ndjson", "ndjson", "NDJSON, a row a line"),
    ("application/vnd.apache.parquet", "parquet", "Parquet, with its own types"),
];

/// A menu of the files that rows can be exported as.
#[component]
pub fn ExportMenu(
    /// The request for the rows: a view with its filters, without columns and limit.
    request: Callback<(), String>,
    /// What the file is called, without its ending.
    name: &'static str,
) -> impl IntoView {
    // The ending of what is being read, and why the last export failed.
    let busy = RwSignal::new(None::<&'static str>);
    let trouble = RwSignal::new(None::<Trouble>);
    let start = move |media_type: &'static str, ending: &'static str| {
        if busy.get_untracked().is_some() {
            return;
        }
        busy.set(Some(ending));
        trouble.set(None);
        let request = request.run(());
        spawn_local(async move {
            match api::export(&request, media_type).await {
                Ok(file) => save_blob(&format!("{name}.{ending}"), &file),
                Err(error) => {
                    trouble.try_set(Some(error));
                }
            }
            busy.try_set(None);
        });
    };
    let entries = EXPORTS.map(|(media_type, ending, word)| {
        view! {
            <button type="button" class="menu-entry" data-testid=format!("export-{ending}") on:click=move |_| start(media_type, ending)>
                {move || if busy.get() == Some(ending) { "Exporting" } else { word }}
            </button>
        }
    });
    view! {
        <details class="menu" data-testid="export">
            <summary class="button" title="exactly what is filtered, every column">"Export"</summary>
            <div class="menu-box">
                {entries.collect_view()}
                {move || trouble.get().map(|t| view! { <p role="alert"><span class="status" data-status="failed">{t.error.message}</span></p> })}
            </div>
        </details>
    }
    .into_any()
}
