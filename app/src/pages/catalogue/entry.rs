//! The entry that is open: every fact of it, and where it comes from.

use leptos::prelude::*;
use serde_json::Value;

use super::listing::{danger, range, verified};
use super::{Settings, set};
use crate::browser::remote::Rows;
use crate::parts::CopyButton;
use crate::parts::states::{Empty, when_there};
use crate::row::Row;
use crate::state::args_edit::written;
use crate::state::catalogue_view::List;

/// What is said elsewhere in the panel, or of no use to a reader.
const LEFT_OUT: [&str; 10] = [
    "position",
    "registered_at",
    "custom",
    "sources",
    "source",
    "source_url",
    "reference",
    "unverified",
    "verified",
    "dangerous",
];

/// The panel; nothing where no entry is open.
pub(super) fn panel(settings: Settings, list: List, entry: Rows) -> AnyView {
    let name = move || settings.view.with(|v| v.entry.clone()).unwrap_or_default();
    view! {
        <section class="panel" aria-labelledby="entry-title" data-testid="entry">
            <div class="section-head">
                <h2 id="entry-title" class="key">{name}</h2>
                <div class="actions">
                    <button type="button" class="button button-quiet" data-testid="close-entry" on:click=move |_| settings.update(|v| v.open(None))>"Close"</button>
                </div>
            </div>
            {when_there(
                entry,
                6,
                || view! { <Empty words="The catalogue has no such entry."/> }.into_any(),
                move |rows| match rows.first() {
                    Some(row) if list.word == "sets" => view! { <set::Set settings row=row.clone()/> }.into_any(),
                    Some(row) => view! { {facts(row)}{sources(row)} }.into_any(),
                    None => ().into_any(),
                },
            )}
        </section>
    }
    .into_any()
}

/// Every fact of an entry.
pub(super) fn facts(row: &Row) -> AnyView {
    let marks = (row.value("unverified").is_some() || row.value("verified").is_some())
        .then(|| fact("Facts", verified(row)));
    let approval = row.value("dangerous").is_some().then(|| fact("Approval", danger(row)));
    let values = row
        .value("type")
        .is_some()
        .then(|| range(row))
        .filter(|r| !r.is_empty())
        .map(|r| fact("Values", r.into_any()));
    let all = row.0.iter().filter(|(key, value)| !LEFT_OUT.contains(&key.as_str()) && !is_empty(value)).map(|(key, value)| {
        let name = key.replace('_', " ");
        let shown = match value {
            Value::Array(items) if items.iter().all(Value::is_string) => view! { <span class="key">{items.iter().map(written).collect::<Vec<_>>().join(", ")}</span> }.into_any(),
            Value::Object(members) => members_of(members),
            Value::Array(_) => view! { <pre class="json">{serde_json::to_string_pretty(value).unwrap_or_default()}</pre> }.into_any(),
            other => view! { <span class:key=key.ends_with("_code")>{written(other)}</span> }.into_any(),
        };
        view! { <dt>{name}</dt><dd>{shown}</dd> }
    });
    view! { <dl class="definitions definitions-section">{marks}{approval}{values}{all.collect_view()}</dl> }
        .into_any()
}

fn fact(name: &'static str, value: AnyView) -> AnyView {
    view! { <dt>{name}</dt><dd>{value}</dd> }.into_any()
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(false) => true,
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(members) => members.is_empty(),
        _ => false,
    }
}

/// A JSON object a line a member; what is nested by its own key alone.
fn members_of(members: &serde_json::Map<String, Value>) -> AnyView {
    let line = |(key, value): (&String, &Value)| match value {
        Value::Object(_) => view! { <li><code>{key.clone()}</code></li> }.into_any(),
        other => view! { <li><code>{format!("{key} = {}", written(other))}</code></li> }.into_any(),
    };
    view! { <ul class="members">{members.iter().map(line).collect_view()}</ul> }.into_any()
}

/// Where an entry's facts come from: links where they are some.
pub(super) fn sources(row: &Row) -> AnyView {
    let mut all = row.list("sources");
    all.extend(["source", "source_url", "reference"].iter().filter_map(|key| row.maybe_text(key)));
    all.dedup();
    if all.is_empty() {
        return view! { <p class="one-line quiet" data-testid="sources">"No source is recorded for this entry."</p> }.into_any();
    }
    let copied = all.join("\n");
    let lines = all.into_iter().map(|source| {
        if source.starts_with("https://") || source.starts_with("http://") {
            view! { <li><a class="link" href=source.clone() target="_blank" rel="external noopener noreferrer">{source.clone()}</a></li> }.into_any()
        } else {
            view! { <li>{source}</li> }.into_any()
        }
    });
    view! {
        <div class="command-head below"><h3>"Sources"</h3><CopyButton text=Signal::stored(copied)/></div>
        <ul class="sources" data-testid="sources">{lines.collect_view()}</ul>
    }
    .into_any()
}
