//! A set of engine arguments: what it sets, where that comes from, how it differs from another, and its clone.

use leptos::prelude::*;

use super::entry::{facts, sources};
use super::{Settings, clone_form, set_diff};
use crate::browser::page::Page;
use crate::browser::remote::use_rows;
use crate::row::Row;
use crate::state::catalogue_view::Against;
use crate::state::filters::percent;

/// The open set.
#[component]
pub(super) fn Set(settings: Settings, row: Row) -> impl IntoView {
    let row = StoredValue::new(row);
    let against = Memo::new(move |_| settings.view.with(|v| v.against.clone()));
    let cloning = Memo::new(move |_| settings.view.with(|v| v.cloning));
    let signed_in = untrack(|| Page::expect().signed_in());
    view! {
        <div class="actions one-line">
            <Choice settings row/>
            <Show when=move || against.get().is_some()>
                <label class="meta">
                    <input type="checkbox" data-testid="only-differing" prop:checked=move || settings.view.with(|v| !v.all) on:change=move |e| { let all = !event_target_checked(&e); settings.update(|v| v.all = all) }/>
                    " only what differs"
                </label>
            </Show>
            {signed_in.then(|| view! {
                <button type="button" class="button" data-testid="clone-set" aria-pressed=move || cloning.get().to_string() on:click=move |_| settings.update(|v| v.cloning = !v.cloning)>"Clone"</button>
            })}
        </div>
        <Show when=move || cloning.get()>
            <clone_form::CloneForm settings row/>
        </Show>
        {move || against.get().map(|against| view! { <set_diff::Diff settings row against/> })}
        {row.with_value(|row| view! { {facts(row)}{sources(row)} })}
    }
    .into_any()
}

/// What the set is compared with: the defaults, or any set of the same framework.
#[component]
fn Choice(settings: Settings, row: StoredValue<Row>) -> impl IntoView {
    let (framework, own) = row.with_value(|r| (r.text("framework_code"), r.text("set_code")));
    let request = format!(
        "/api/v_framework_engine_args_sets?framework_code=eq.{}&archived=is.false&select=set_code&order=set_code.asc&limit=2000",
        percent(&framework)
    );
    let sets = use_rows(move || Some(request.clone()));
    let is = move |wanted: Option<Against>| settings.view.with(|v| v.against == wanted);
    let choose = move |event: leptos::ev::Event| {
        let value = event_target_value(&event);
        settings.update(|v| {
            v.against = match value.as_str() {
                "" => None,
                "~defaults" => Some(Against::Defaults),
                code => Some(Against::Set(code.to_owned())),
            };
        });
    };
    let options = move || {
        let own = own.clone();
        sets.all()
            .iter()
            .map(|r| r.text("set_code"))
            .filter(move |code| *code != own)
            .map(|code| {
                let wanted = code.clone();
                view! { <option value=code.clone() selected=move || is(Some(Against::Set(wanted.clone())))>{code.clone()}</option> }
            })
            .collect_view()
    };
    view! {
        <label class="chart-axis">
            <span class="meta">"Compare with"</span>
            <select class="control control-inline" data-testid="against" on:change=choose>
                <option value="" selected=move || is(None)>"nothing"</option>
                <option value="~defaults" selected=move || is(Some(Against::Defaults))>"the framework's defaults"</option>
                {options}
            </select>
        </label>
    }
    .into_any()
}
