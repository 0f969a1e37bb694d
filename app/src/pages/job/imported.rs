//! A result that another tool measured elsewhere: it has figures and a file, and no job that could be watched.

use leptos::prelude::*;

use super::super::unknown_key;
use super::{figures, headline};
use crate::browser::now_ms;
use crate::browser::remote::{Rows, use_rows};
use crate::browser::route::use_location;
use crate::format::{ABSENT, maybe_count, moment};
use crate::frame::drawer_href;
use crate::parts::Status;
use crate::parts::states::once_there;
use crate::row::Row;
use crate::state::filters::percent;
use crate::state::result_key::path_of;

/// The imported result of a natural key, or that there is nothing of it.
#[component]
pub(super) fn OrUnknown(
    /// `org/project/import/number/scenario`.
    path: String,
) -> impl IntoView {
    let stream = format!("import/{path}");
    let results =
        use_rows(move || Some(format!("/api/v_benchmark_results?job=eq.{}&limit=1", percent(&stream))));
    once_there(
        results,
        8,
        move || unknown_key("job", &path),
        move || view! { <Imported results/> }.into_any(),
    )
}

#[component]
fn Imported(results: Rows) -> impl IntoView {
    let row = Signal::derive(move || results.first().unwrap_or_default());
    let location = use_location();
    let proof = move || {
        let job = row.with(|r| path_of(&r.text("job")).to_owned());
        let shown = [("drawer", "proof"), ("job", job.as_str()), ("metric", "output_tokens_per_second")];
        location.pathname.with(|at| location.search.with(|search| drawer_href(at, search, &shown)))
    };
    view! {
        <section data-testid="imported-result">
            <p class="notice notice-plain">
                <Status row/>" Another tool measured this, elsewhere, and a person brought its file here. Nobody here saw it being made: \
                there is no telemetry, no log and no command. The figures are the file’s, "
                <a class="link" href=proof data-noscroll="" data-testid="imported-proof">"with its hash and its place in the log"</a>"."
            </p>
            <headline::Headline results/>
            <figures::Figures results/>
            <dl class="definitions definitions-section">{move || row.with(facts)}</dl>
        </section>
    }
    .into_any()
}

fn facts(row: &Row) -> AnyView {
    let word = |column: &str| row.maybe_text(column).filter(|w| !w.is_empty());
    let known = |words: Option<String>| words.unwrap_or_else(|| "not said".to_owned());
    let framework = word("framework_code").map(|f| format!("{f} {}", row.text("framework_version")));
    let gpu = word("gpu_name").map(|gpu| match row.whole("gpu_count") {
        Some(n) => format!("{} × {gpu}", maybe_count(Some(n))),
        None => gpu,
    });
    let lengths = match (row.whole("input_sequence_length"), row.whole("output_sequence_length")) {
        (None, None) => None,
        (input, output) => Some(format!("{} in, {} out", maybe_count(input), maybe_count(output))),
    };
    let when =
        row.millis("recorded_at").map_or(ABSENT.to_owned(), |at| format!("{} UTC", moment(at, now_ms())));
    let pairs = [
        ("Model", row.text("model_code")),
        ("Framework", known(framework)),
        ("Quantization", known(word("quantization"))),
        ("GPU", known(gpu)),
        ("Tool", row.text("tool_code")),
        ("Concurrency", maybe_count(row.whole("concurrency"))),
        ("Tokens", known(lengths)),
        ("Imported", when),
    ];
    pairs.map(|(name, value)| view! { <dt>{name}</dt><dd>{value}</dd> }).collect_view().into_any()
}
