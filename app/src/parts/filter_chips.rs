//! Filters of a list: what is set, and every value there is as a chip, so that a filter is one click.

use leptos::prelude::*;

use crate::browser::remote::Rows;

/// Column of the view and its word, as in [`crate::state::report::FILTERS`].
pub type Filtered = (&'static str, &'static str);

/// A column offers at most this many values: more are no choice.
const MOST_VALUES: usize = 60;

/// The filters that are set, each with a button that takes it away.
#[component]
pub fn ChosenFilters(
    /// The columns.
    columns: &'static [Filtered],
    /// What is set: column and value.
    #[prop(into)]
    filters: Signal<Vec<(String, String)>>,
    /// Takes one away.
    remove: Callback<(String, String)>,
) -> impl IntoView {
    move || {
        let chosen = filters.get().into_iter().map(|(column, value)| {
            let word = columns.iter().find(|(c, _)| *c == column).map_or("", |(_, w)| *w);
            let shown = value.clone();
            view! {
                <span class="filter" data-testid="filter">
                    <b>{word}</b>
                    {shown}
                    " "
                    <button type="button" aria-label=format!("Remove {word}") on:click=move |_| remove.run((column.clone(), value.clone()))>"×"</button>
                </span>
            }
        });
        chosen.collect_view()
    }
}

/// Every value that rows have in these columns, where there is more than one.
#[component]
pub fn FilterChips(
    /// Rows with these columns.
    values: Rows,
    /// The columns.
    columns: Vec<Filtered>,
    /// What is set.
    #[prop(into)]
    filters: Signal<Vec<(String, String)>>,
    /// Sets one, or takes it away.
    toggle: Callback<(String, String)>,
) -> impl IntoView {
    move || {
        let rows = values.all();
        let choices = columns.iter().filter_map(|(column, word)| {
            let column = *column;
            let mut found: Vec<String> = rows.iter().filter_map(|r| r.maybe_text(column)).collect();
            found.sort_by_key(|v| (v.parse::<u64>().unwrap_or(u64::MAX), v.clone()));
            found.dedup();
            (found.len() > 1 && found.len() <= MOST_VALUES).then(|| {
                let chips = found.into_iter().map(|value| {
                    let (shown, asked) = (value.clone(), value.clone());
                    view! {
                        <label class="chip" data-testid="chip" data-column=column data-value=shown.clone()>
                            <input
                                type="checkbox"
                                prop:checked=move || filters.with(|f| f.iter().any(|(c, v)| c == column && *v == asked))
                                on:change=move |_| toggle.run((column.to_owned(), value.clone()))
                            />
                            {shown.clone()}
                        </label>
                    }
                });
                view! { <fieldset class="field"><legend class="field-label">{*word}</legend><div class="chips">{chips.collect_view()}</div></fieldset> }
            })
        });
        choices.collect_view()
    }
}
