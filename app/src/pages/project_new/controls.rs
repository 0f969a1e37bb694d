//! Controls of the form: a choice among codes, a field with suggestions, the values of an axis as chips.

use std::collections::BTreeSet;
use std::fmt::Display;

use leptos::prelude::*;

/// A choice among codes, each with the words it is shown by.
pub(super) fn select(
    testid: &'static str,
    label: &'static str,
    class: &'static str,
    value: impl Fn() -> String + Copy + Send + Sync + 'static,
    options: impl Fn() -> Vec<(String, String)> + Copy + Send + Sync + 'static,
    set: impl Fn(String) + Copy + 'static,
) -> AnyView {
    let class = format!("field {class}");
    // What is chosen is said by each option, after the options are there: a value set before them would choose nothing.
    let shown = move || {
        let chosen = value();
        let mut list = options();
        // What was chosen before its entry went is shown, not silently another.
        if !chosen.is_empty() && !list.iter().any(|(code, _)| *code == chosen) {
            list.push((chosen.clone(), chosen.clone()));
        }
        list.into_iter()
            .map(|(code, word)| view! { <option value=code.clone() prop:selected=code == chosen>{word}</option> })
            .collect_view()
    };
    view! {
        <label class=class>
            <span class="field-label">{label}</span>
            <select class="control" data-testid=testid on:change=move |event| set(event_target_value(&event))>{shown}</select>
        </label>
    }
    .into_any()
}

/// A field for a word, with words that are known; `id` is the list's.
pub(super) fn suggested(
    testid: &'static str,
    id: String,
    label: &'static str,
    placeholder: &'static str,
    value: impl Fn() -> String + Copy + Send + Sync + 'static,
    known: Memo<Vec<String>>,
    set: impl Fn(String) + Copy + 'static,
) -> AnyView {
    let words =
        move || known.get().into_iter().map(|word| view! { <option value=word></option> }).collect_view();
    view! {
        <label class="field span-3 half">
            <span class="field-label">{label}</span>
            <input class="control" list=id.clone() placeholder=placeholder data-testid=testid prop:value=value on:change=move |event| set(event_target_value(&event))/>
            <datalist id=id>{words}</datalist>
        </label>
    }
    .into_any()
}

/// Takes a value in, or out.
pub(super) fn flip<T: Ord + Clone>(set: &mut BTreeSet<T>, value: &T) {
    if !set.remove(value) {
        set.insert(value.clone());
    }
}

/// The chips of one axis.
#[component]
pub(super) fn Chips<T>(
    label: &'static str,
    name: &'static str,
    usual: Vec<T>,
    set: Signal<BTreeSet<T>>,
    toggle: impl Fn(&T) + Copy + Send + Sync + 'static,
    /// Reads another value that is typed; nothing for what is none. Without it these are all there are.
    #[prop(optional)]
    another: Option<fn(&str) -> Option<T>>,
    /// What is said of a value that is none.
    #[prop(optional)]
    none: &'static str,
) -> impl IntoView
where
    T: Ord + Clone + Display + Send + Sync + 'static,
{
    let shown = Memo::new(move |_| {
        let mut values: Vec<T> = usual.iter().cloned().chain(set.get()).collect();
        values.sort_unstable();
        values.dedup();
        values
    });
    let refused = RwSignal::new(None::<String>);
    let chip = move |value: T| {
        let (text, has) = (value.to_string(), value.clone());
        view! {
            <label class="chip" data-value=text.clone()>
                <input type="checkbox" prop:checked=move || set.with(|s| s.contains(&has)) on:change=move |_| toggle(&value)/>
                {text.clone()}
            </label>
        }
    };
    view! {
        <fieldset class="field" data-testid=format!("chips-{name}")>
            <legend class="field-label">{label}</legend>
            <div class="chips">
                <For each=move || shown.get() key=ToString::to_string let:value>
                    {chip(value)}
                </For>
                {another.map(|another| view! {
                    <input
                        class="chip-input"
                        placeholder="+"
                        aria-label=format!("Another value of {label}")
                        on:change=move |event| {
                            let text = event_target_value(&event).trim().to_owned();
                            let Some(value) = another(&text) else {
                                // What was typed stays, to be mended.
                                refused.set((!text.is_empty()).then(|| format!("“{text}” was not taken: {none}.")));
                                return;
                            };
                            if !set.with_untracked(|s| s.contains(&value)) {
                                toggle(&value);
                            }
                            refused.set(None);
                            if let Some(input) = event.target().map(wasm_bindgen::JsCast::unchecked_into::<web_sys::HtmlInputElement>) {
                                input.set_value("");
                            }
                        }
                    />
                })}
            </div>
            <small role="alert" data-testid=format!("refused-{name}")>{move || refused.get()}</small>
        </fieldset>
    }
    .into_any()
}
