//! The catalogue's tables: the columns of each list, and how a cell is written.

use leptos::prelude::*;
use serde_json::Value;

use super::Settings;
use crate::browser::remote::Rows;
use crate::format::{ABSENT, maybe, maybe_count};
use crate::row::Row;
use crate::state::args_edit::written;
use crate::state::catalogue_view::List;

/// How a cell is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Key,
    Text,
    Number,
    Count,
    List,
    /// Whether an entry is proved by a source.
    Verified,
    /// The values an argument takes.
    Range,
    /// Whether an argument loads code or reads paths.
    Danger,
    Bytes,
    /// How many a JSON object holds.
    Members,
}

/// A column: the view's, its head, its unit, how it is written.
type Column = (&'static str, &'static str, &'static str, Kind);

fn columns(list: List) -> &'static [Column] {
    use Kind::{Bytes, Count, Danger, Key, List, Members, Number, Range, Text, Verified};
    match list.word {
        "accelerators" => &[
            ("accelerator_code", "Accelerator", "", Key),
            ("display_name", "Name", "", Text),
            ("memory_gb", "Memory", "GB", Number),
            ("bandwidth_gb_s", "Bandwidth", "GB/s", Number),
            ("tdp_w", "Power", "W", Number),
            ("precisions", "Precisions", "", List),
            ("price_per_hour_usd", "Price", "$/h", Number),
            ("launch_year", "Launched", "", Text),
            ("verified", "Facts", "", Verified),
        ],
        "frameworks" => &[
            ("framework_code", "Framework", "", Key),
            ("framework_version", "Version", "", Key),
            ("display_name", "Name", "", Text),
            ("vendors", "Runs on", "", List),
            ("modalities", "Serves", "", List),
            ("engine_args", "Arguments", "", Members),
            ("support_level", "Support", "", Text),
            ("readiness_path", "Readiness", "", Key),
        ],
        "arguments" => &[
            ("key", "Argument", "", Key),
            ("cli_flag", "Flag", "", Key),
            ("framework_code", "Framework", "", Key),
            ("framework_version", "Version", "", Key),
            ("type", "Type", "", Key),
            ("default", "Default", "", Key),
            ("range", "Values", "", Range),
            ("dangerous", "Approval", "", Danger),
            ("meaning", "What it does", "", Text),
        ],
        "sets" => &[
            ("set_code", "Set", "", Key),
            ("framework_code", "Framework", "", Key),
            ("model", "Model", "", Text),
            ("precision", "Precision", "", Key),
            ("accelerator_codes", "Accelerators", "", List),
            ("gpu_count", "GPUs", "", Count),
            ("engine_args", "Arguments", "", Members),
            ("verified", "Source", "", Verified),
        ],
        "configurations" => &[
            ("config_code", "Configuration", "", Key),
            ("display_name", "Name", "", Text),
            ("accelerator_code", "Accelerator", "", Key),
            ("gpu_count", "Accelerators a host", "", Count),
            ("gpu_memory_gb", "Memory of each", "GB", Number),
        ],
        "tools" => &[
            ("tool_code", "Tool", "", Key),
            ("display_name", "Name", "", Text),
            ("modality", "Measures", "", Text),
            ("args", "Arguments", "", Members),
            ("frameworks", "Frameworks", "", List),
            ("argv", "Command template", "", List),
        ],
        "prompts" => &[
            ("prompt_source_code", "Source", "", Key),
            ("name", "Name", "", Text),
            ("source_type", "Kind", "", Text),
            ("prompt_count", "Prompts", "", Count),
            ("size_bytes", "Size", "", Bytes),
            ("sha256", "SHA-256", "", Key),
            ("description", "What it is", "", Text),
        ],
        _ => &[
            ("model_code", "Model", "", Key),
            ("display_name", "Name", "", Text),
            ("modality", "Kind", "", Text),
            ("params_b_total", "Parameters", "10⁹", Number),
            ("max_context", "Context", "tokens", Count),
            ("default_precision", "Published in", "", Key),
            ("license", "Licence", "", Text),
            ("verified", "Facts", "", Verified),
        ],
    }
}

/// The key of an entry, as its address has it.
pub(super) fn entry_of(list: List, row: &Row) -> String {
    list.key.iter().map(|column| row.text(column)).collect::<Vec<_>>().join(" ")
}

/// The table of a list's page.
pub(super) fn table(settings: Settings, list: List, rows: Rows) -> AnyView {
    let columns = columns(list);
    let heads = columns.iter().map(|(_, name, unit, kind)| {
        view! { <th scope="col" class:number=is_number(*kind)>{*name}" "{(!unit.is_empty()).then(|| view! { <span class="unit">{*unit}</span> })}</th> }
    });
    let key = move |row: &Row| format!("{}{}", entry_of(list, row), row.whole("position").unwrap_or(0));
    view! {
        <div class="table-scroll">
            <table class="data-table" data-testid="catalogue">
                <caption class="visually-hidden">{list.name}</caption>
                <thead><tr>{heads.collect_view()}</tr></thead>
                <tbody>
                    <For each=move || rows.all() key=key let:row>
                        {line(settings, list, columns, &row)}
                    </For>
                </tbody>
            </table>
        </div>
    }
    .into_any()
}

fn line(settings: Settings, list: List, columns: &'static [Column], row: &Row) -> AnyView {
    let entry = entry_of(list, row);
    let (opened, shown) = (entry.clone(), entry.clone());
    let href = settings.link(move |v| v.open(Some(opened.clone())));
    let is_open = move || settings.view.with(|v| v.entry.as_deref() == Some(shown.as_str())).to_string();
    let custom = row.is("custom").then(|| view! { " "<span class="meta">"(custom)"</span> });
    let mut custom = Some(custom);
    let cells = columns
        .iter()
        .enumerate()
        .map(|(place, column)| {
            if place == 0 {
                let text = row.text(column.0);
                return view! { <th scope="row" class="card-title key"><a class="key" href=href data-noscroll="" data-testid="entry-link">{text}</a>{custom.take()}</th> }.into_any();
            }
            cell(row, column, (1..4).contains(&place))
        })
        .collect_view();
    view! { <tr data-testid="catalogue-entry" data-entry=entry data-href=move || href.get() tabindex="-1" aria-selected=is_open>{cells}</tr> }.into_any()
}

fn is_number(kind: Kind) -> bool {
    matches!(kind, Kind::Number | Kind::Count | Kind::Bytes | Kind::Members)
}

fn cell(row: &Row, (key, name, _, kind): &'static Column, on_card: bool) -> AnyView {
    let label = on_card.then_some(*name);
    let text = match kind {
        Kind::Verified => {
            return view! { <td class:card-figure=on_card data-label=label>{verified(row)}</td> }.into_any();
        }
        Kind::Danger => {
            return view! { <td class:card-figure=on_card data-label=label>{danger(row)}</td> }.into_any();
        }
        Kind::Number => maybe(row.number(key)),
        Kind::Count => maybe_count(row.whole(key)),
        Kind::Bytes => row
            .number(key)
            .map_or_else(|| ABSENT.to_owned(), |bytes| format!("{} kB", maybe(Some(bytes / 1e3)))),
        Kind::Members => match row.value(key) {
            Some(Value::Object(members)) => maybe_count(i64::try_from(members.len()).ok()),
            _ => ABSENT.to_owned(),
        },
        Kind::List => words_or_absent(row.list(key).join(if *key == "argv" { " " } else { ", " })),
        Kind::Range => words_or_absent(range(row)),
        Kind::Key | Kind::Text => match *key {
            "default" => row.value(key).map_or_else(|| ABSENT.to_owned(), written),
            "model" => words_or_absent(model_of(row)),
            _ => row.maybe_text(key).unwrap_or_else(|| ABSENT.to_owned()),
        },
    };
    let clipped = matches!(*key, "argv" | "meaning" | "description" | "sha256");
    view! {
        <td class:card-figure=on_card class:key=*kind == Kind::Key class:number=is_number(*kind) class:clip=clipped data-label=label title=clipped.then(|| text.clone())>{text.clone()}</td>
    }
    .into_any()
}

fn words_or_absent(text: String) -> String {
    if text.is_empty() { ABSENT.to_owned() } else { text }
}

/// The model a set is for: its entry here, else what its source calls it.
fn model_of(row: &Row) -> String {
    ["model_code", "model_id", "model_family"].iter().find_map(|key| row.maybe_text(key)).unwrap_or_default()
}

/// What an argument may be: its ends, its choices, the words it takes instead.
pub(super) fn range(row: &Row) -> String {
    let ends = match (row.number("min"), row.number("max")) {
        (Some(least), Some(most)) => format!("{least} to {most}"),
        (Some(least), None) => format!("from {least}"),
        (None, Some(most)) => format!("to {most}"),
        (None, None) => String::new(),
    };
    let mut parts: Vec<String> = vec![ends];
    parts.extend(row.list("choices"));
    parts.extend(row.list("words"));
    parts.retain(|part| !part.is_empty());
    parts.join(", ")
}

/// Whether an entry's facts were found in a source: a mark and a word, and which were not.
pub(super) fn verified(row: &Row) -> AnyView {
    let missing = row.list("unverified");
    let is_set = row.value("verified").is_some();
    if is_set && !row.is("verified") {
        return view! { <span class="status" data-status="queued" data-testid="unverified" title="not transcribed from a published recipe as it stands">"not verified"</span> }.into_any();
    }
    if missing.is_empty() {
        return view! { <span class="status" data-status="completed" data-testid="verified">"verified"</span> }.into_any();
    }
    view! { <span class="status" data-status="queued" data-testid="unverified" title=format!("not found in a source: {}", missing.join(", "))>{format!("{} unsourced", missing.len())}</span> }
        .into_any()
}

/// Whether an argument needs an administrator's approval.
pub(super) fn danger(row: &Row) -> AnyView {
    if row.is("dangerous") {
        view! { <span class="status" data-status="flagged" data-testid="dangerous" title="loads code or reads paths: an administrator approves its exact value, and the agent's own policy has the last word">"needs approval"</span> }.into_any()
    } else {
        view! { <span class="quiet">"none"</span> }.into_any()
    }
}

/// What every figure means.
pub(super) fn metrics(settings: Settings) -> AnyView {
    let found = move || {
        let text = settings.view.with(|v| v.find.to_lowercase());
        events::metrics::all()
            .into_iter()
            .filter(|m| {
                [m.label.as_str(), &m.column, &m.definition]
                    .iter()
                    .any(|words| words.to_lowercase().contains(&text))
            })
            .collect::<Vec<_>>()
    };
    let lines = move || {
        found()
            .into_iter()
            .map(|m| {
                view! {
                    <tr>
                        <th scope="row" class="card-title">{m.label}" "{m.direction.arrow()}</th>
                        <td class="card-figure" data-label="Unit">{m.unit}</td>
                        <td class="key">{m.column}</td>
                        <td class="wrap card-title">{m.definition}</td>
                    </tr>
                }
            })
            .collect_view()
    };
    view! {
        <div class="filters" role="group" aria-label="Filters">
            <label class="filter"><b>"find"</b>
                <input class="filter-input" type="search" data-testid="find" aria-label="Find" prop:value=move || settings.view.with(|v| v.find.clone()) on:change=move |e| { let text = event_target_value(&e); settings.choose(|v| v.find = text) }/>
            </label>
            <span class="push meta" data-testid="result-count">{move || format!("{} metrics", found().len())}</span>
        </div>
        <table class="data-table" data-testid="catalogue">
            <caption class="visually-hidden">"Metrics"</caption>
            <thead><tr><th scope="col">"Metric"</th><th scope="col">"Unit"</th><th scope="col">"Column"</th><th scope="col">"Definition"</th></tr></thead>
            <tbody>{lines}</tbody>
        </table>
    }
    .into_any()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::state::catalogue_view::LISTS;
    use serde_json::json;

    #[test]
    fn every_list_has_columns_and_the_first_names_the_entry() {
        for list in LISTS.into_iter().filter(|l| !l.view.is_empty()) {
            assert!(list.key.contains(&columns(list)[0].0), "{}", list.name);
        }
    }

    #[test]
    fn the_values_an_argument_takes_are_written_out() {
        let row = |value: Value| serde_json::from_value::<Row>(value).expect("a row");
        assert_eq!(range(&row(json!({"min": 0, "max": 1}))), "0 to 1");
        assert_eq!(range(&row(json!({"min": 1, "words": ["auto"]}))), "from 1, auto");
        assert_eq!(range(&row(json!({"choices": ["fp8", "auto"]}))), "fp8, auto");
        assert_eq!(range(&row(json!({}))), "");
    }
}
