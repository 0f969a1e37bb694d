//! What `?` lists: loaded with the drawer's part of the program, which the first page does without.

use leptos::html::Button;
use leptos::prelude::*;

const KEYS: [(&str, &[(&str, &str)]); 4] = [
    (
        "Anywhere",
        &[
            ("/ or Ctrl K", "jump to any key"),
            ("Esc", "close the drawer or this list"),
            ("t", "light or dark"),
            ("?", "these keys"),
        ],
    ),
    (
        "Go to",
        &[
            ("g d", "dashboard"),
            ("g p", "projects"),
            ("g r", "reporting"),
            ("g m", "monitoring"),
            ("g l", "leaderboard"),
            ("g h", "hardware"),
            ("g c", "catalogue"),
            ("g a", "audit"),
        ],
    ),
    ("In tables", &[("j k", "next row, row before"), ("Enter", "open the row")]),
    (
        "In Reporting",
        &[
            ("x", "pick the row for comparison"),
            ("b", "pin the row as the baseline"),
            ("c", "go to the comparison"),
        ],
    ),
];

/// The list; `close` is the button that makes `shown` false.
pub fn show(shown: RwSignal<bool>, close: NodeRef<Button>) -> AnyView {
    view! {
        <div class="section-head">
            <h2>"Keys"</h2>
            <div class="actions">
                <button type="button" class="button button-quiet" data-testid="close-keys" node_ref=close on:click=move |_| shown.set(false)>"Close"</button>
            </div>
        </div>
        {KEYS.map(|(group, keys)| {
            let keys = keys.iter().map(|(key, what)| view! { <dt><kbd>{*key}</kbd></dt><dd>{*what}</dd> });
            view! { <h3>{group}</h3><dl class="definitions">{keys.collect_view()}</dl> }
        }).collect_view()}
    }
    .into_any()
}
