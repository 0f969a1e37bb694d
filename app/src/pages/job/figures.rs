//! Every figure that the tool of a result has beside those at the page's head.

use leptos::prelude::*;

use crate::browser::remote::{Rows, use_rows};
use crate::browser::route::use_location;
use crate::format::{count, full, significant};
use crate::frame::drawer_href;
use crate::metrics::headline;
use crate::row::Row;
use crate::state::filters::percent;
use crate::state::own_figures::{own_figures, own_settings, own_view};

/// More figures than these are shown when they are asked for.
const MOST_OPEN: usize = 60;

/// What the tool's own view says of a result; nothing where there is none.
#[component]
pub(super) fn Figures(
    /// The result.
    results: Rows,
) -> impl IntoView {
    let request = Memo::new(move |_| {
        let result = results.first()?;
        let view = own_view(&result.text("tool_code"))?;
        // Another attempt has other figures: its place in the log makes it another question.
        let recorded = result.whole("output_position")?;
        Some(format!(
            "/api/{view}?job=eq.{}&output_position=eq.{recorded}&limit=1",
            percent(&result.text("job"))
        ))
    });
    let own = use_rows(move || request.get());
    move || own.first().map(|row| section(&row))
}

fn section(row: &Row) -> AnyView {
    let figures = own_figures(row, headline(&row.text("tool_code")));
    if figures.is_empty() {
        return ().into_any();
    }
    let location = use_location();
    let recorded = row.whole("output_position");
    let event = move || {
        let position = recorded.map(|at| at.to_string()).unwrap_or_default();
        let shown = [("drawer", "event"), ("position", position.as_str())];
        location.pathname.with(|at| location.search.with(|search| drawer_href(at, search, &shown)))
    };
    let settings = own_settings(row).into_iter().map(|(name, value)| format!("{name}: {value}"));
    let settings = settings.collect::<Vec<_>>().join(" · ");
    let number = figures.len();
    let lines = figures.into_iter().map(|figure| {
        view! {
            <div title=figure.definition>
                <dt>{figure.head}</dt>
                <dd data-testid="own-figure" data-column=figure.column data-value=full(figure.value) title=full(figure.value)>{significant(figure.value)}</dd>
                <dd class="meta">{figure.unit}</dd>
            </div>
        }
    });
    view! {
        <section aria-labelledby="own-figures" class="below" data-testid="own-figures">
            <div class="section-head">
                <h2 id="own-figures">"All figures"</h2>
                <span class="meta">
                    {format!("{number} of {}, recorded at position ", row.text("tool_code"))}
                    <a class="link" href=event data-noscroll="">{recorded.map(count)}</a>
                </span>
            </div>
            {(!settings.is_empty()).then(|| view! { <p class="meta">{settings}</p> })}
            <details open={number <= MOST_OPEN}>
                <summary>"Every figure with its unit"</summary>
                <dl class="own-figures">{lines.collect_view()}</dl>
            </details>
        </section>
    }
    .into_any()
}
