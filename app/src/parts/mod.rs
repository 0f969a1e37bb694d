//! Small parts that pages share.

mod as_of;
pub mod cancel;
pub mod cells;
mod column_chooser;
mod command_button;
mod copy_menu;
mod export_menu;
mod filter_chips;
pub mod row_html;
mod saved_views;
mod sort_head;
pub mod states;
pub mod tables;

use leptos::prelude::*;

pub use as_of::{AsOf, AsOfButton, AsOfSlider};
pub use column_chooser::{ChosenColumns, ColumnChoice, ColumnChooser};
pub use command_button::{CommandButton, Done};
pub use copy_menu::{Copied, CopyMenu};
pub use export_menu::ExportMenu;
pub use filter_chips::{ChosenFilters, FilterChips, Filtered};
pub use saved_views::SavedViews;
pub use sort_head::SortHead;

use crate::browser::focus_quietly;
use crate::browser::page::Page;
use crate::row::Row;
use crate::state::colours::{Colour, Kind};

/// The head of a page: sets the window's title, and moves the focus there when one navigates.
#[component]
pub fn PageHead(
    /// The heading.
    #[prop(into)]
    title: Signal<String>,
    /// What stands beside it, small.
    #[prop(into, optional)]
    meta: Option<ViewFn>,
    /// The status mark beside the heading.
    #[prop(into, optional)]
    status: Option<ViewFn>,
    /// Buttons.
    #[prop(optional)]
    children: Option<Children>,
) -> impl IntoView {
    let heading = NodeRef::<leptos::html::H1>::new();
    Effect::new(move |_| document().set_title(&format!("{} · Benchtrail", title.get())));
    Effect::new(move |first: Option<()>| {
        if let (None, Some(heading)) = (first, heading.get()) {
            // On the first page the browser's own focus stays.
            if window().history().and_then(|h| h.length()).unwrap_or(1) > 1 {
                focus_quietly(&heading);
            }
        }
    });
    let split = status.is_some();
    view! {
        <div class="page-head" class:split=split>
            <h1 tabindex="-1" node_ref=heading data-testid="title">{title}</h1>
            {status.map(|s| move || s.run())}
            <p class="meta">{meta.map(|m| move || m.run())}</p>
            <div class="actions">{children.map(|c| c())}</div>
        </div>
    }
    .into_any()
}

/// A job's or run's status, and whatever else is to be known of its numbers: marks and words.
#[component]
pub fn Status(
    /// The row.
    #[prop(into)]
    row: Signal<Row>,
) -> impl IntoView {
    view! {
        <span
            class="status"
            data-status=move || row.with(Row::mark)
            data-testid="status"
            title=move || row.with(|r| r.maybe_text("error_message").unwrap_or_default())
        >
            {move || row.with(crate::state::live::status_words)}
        </span>
        {move || row.with(further_marks)}
    }
    .into_any()
}

/// What else is to be known of a result beside its status: marks with words.
pub fn further_marks(row: &Row) -> Vec<AnyView> {
    let mark =
        |mark: &'static str| view! { " "<span class="status" data-status=mark>{mark}</span> }.into_any();
    row.further_marks().into_iter().map(mark).collect()
}

/// A server's state: a mark and a word.
pub fn server_state(state: &str) -> AnyView {
    let mark = match state {
        "online" => "completed",
        "stale" | "requires_reonboarding" => "flagged",
        "offline" => "failed",
        _ => "queued",
    };
    view! { <span class="status" data-status=mark>{state.replace('_', " ")}</span> }.into_any()
}

/// A bar of how much is done.
#[component]
pub fn Progress(
    /// 0 to 1; nothing when it cannot be told.
    #[prop(into)]
    share: Signal<Option<f64>>,
    /// What is done.
    #[prop(into)]
    label: String,
) -> impl IntoView {
    let percent = move || share.get().map(|s| (s * 100.0).floor());
    view! {
        <span
            class="progress"
            role="progressbar"
            aria-valuemin="0"
            aria-valuemax="100"
            aria-valuenow=move || percent().map(|p| p.to_string())
            aria-label=label
        >
            <svg aria-hidden="true"><rect width=move || format!("{}%", percent().unwrap_or(0.0)) height="100%"></rect></svg>
        </span>
    }
}

/// The mark of a natural key, in its colour.
pub fn swatch(kind: Kind, key: &str) -> AnyView {
    let (colours, key) = (Page::expect().colours, key.to_owned());
    view! { <span class=move || format!("swatch {}", colours.of(kind, &key).class())></span> }.into_any()
}

/// The mark of a line of a chart, in its colour.
pub fn swatch_of(colour: Colour) -> AnyView {
    view! { <span class=format!("swatch {}", colour.class())></span> }.into_any()
}

/// A line of the last values, drawn without axes.
#[component]
pub fn Spark(
    /// The values, oldest first.
    #[prop(into)]
    values: Signal<Vec<f64>>,
    /// Its colour.
    #[prop(into)]
    colour: Signal<Colour>,
) -> impl IntoView {
    let points = move || {
        values.with(|values| {
            let most = values.iter().copied().fold(1e-9, f64::max);
            let step = 180.0 / (values.len().max(2) - 1) as f64;
            let point =
                |(i, v): (usize, &f64)| format!("{:.1},{:.1}", i as f64 * step, 30.0 - v / most * 28.0);
            values.iter().enumerate().map(point).collect::<Vec<_>>().join(" ")
        })
    };
    view! {
        <svg
            class=move || format!("spark {}", colour.get().class())
            viewBox="0 0 180 32"
            width="100%"
            height="32"
            preserveAspectRatio="none"
            aria-hidden="true"
        >
            <polyline points=points></polyline>
        </svg>
    }
}

/// A command line, its flags kept in one piece, its values standing out.
pub fn command(argv: &[String]) -> AnyView {
    let Some((program, rest)) = argv.split_first() else { return ().into_any() };
    let mut parts: Vec<AnyView> = vec![view! { <b>{program.clone()}</b> }.into_any()];
    let mut words = rest.iter().peekable();
    while let Some(word) = words.next() {
        if let Some((flag, value)) = word.split_once('=').filter(|(flag, _)| flag.starts_with('-')) {
            let (flag, value) = (format!("{flag}="), value.to_owned());
            // What is short stays in one piece.
            parts.push(if word.len() < 44 {
                view! { " "<span>{flag}<b>{value}</b></span> }.into_any()
            } else {
                view! { " "{flag}<b>{value}</b> }.into_any()
            });
        } else if word.starts_with('-') {
            match words.next_if(|next| !next.starts_with('-') || next[1..].parse::<f64>().is_ok()) {
                Some(value) if value.len() < 32 => {
                    parts.push(
                        view! { " "<span>{format!("{word} ")}<b>{value.clone()}</b></span> }.into_any(),
                    );
                }
                Some(value) => parts.push(view! { " "{format!("{word} ")}<b>{value.clone()}</b> }.into_any()),
                None => parts.push(view! { " "<span>{word.clone()}</span> }.into_any()),
            }
        } else {
            parts.push(view! { " "<b>{word.clone()}</b> }.into_any());
        }
    }
    view! { <pre class="command" tabindex="0">{parts}</pre> }.into_any()
}

/// A command line as a shell takes it, for copying.
pub fn shell(argv: &[String]) -> String {
    let quoted = argv.iter().map(|word| {
        let plain =
            !word.is_empty() && word.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_=./:,@+%".contains(&b));
        if plain { word.clone() } else { format!("'{}'", word.replace('\'', "'\\''")) }
    });
    quoted.collect::<Vec<_>>().join(" ")
}

/// A button that copies a text and says so.
#[component]
pub fn CopyButton(
    /// The text.
    #[prop(into)]
    text: Signal<String>,
    /// The word on it.
    #[prop(default = "Copy")]
    word: &'static str,
    /// `figure-toggle` or `button`.
    #[prop(default = "figure-toggle")]
    class: &'static str,
) -> impl IntoView {
    let done = RwSignal::new(false);
    view! {
        <button
            type="button"
            class=class
            on:click=move |_| {
                crate::browser::copy(&text.get_untracked());
                done.set(true);
                set_timeout(move || { done.try_set(false); }, std::time::Duration::from_secs(2));
            }
        >
            {move || if done.get() { "Copied" } else { word }}
        </button>
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copied_command_runs_in_a_shell() {
        let argv = ["llama-server", "--model", "/a b/c.gguf", "--ctx-size=4096", "it's"].map(String::from);
        assert_eq!(shell(&argv), r"llama-server --model '/a b/c.gguf' --ctx-size=4096 'it'\''s'");
    }
}
