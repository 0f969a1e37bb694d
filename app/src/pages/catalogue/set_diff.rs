//! Two sets of engine arguments against each other, key by key.

use std::collections::BTreeMap;

use events::api_catalogue::{DiffEngineArgsSets, EngineArgsSetsDiff};
use leptos::prelude::*;
use serde_json::Value;
use wasm_bindgen_futures::spawn_local;

use super::Settings;
use crate::browser::api::{self, Trouble};
use crate::browser::remote::use_rows;
use crate::format::{ABSENT, counted};
use crate::parts::states::{Skeleton, trouble_view};
use crate::row::Row;
use crate::state::catalogue_view::Against;
use crate::state::filters::any_of;
use crate::state::set_diff::{Line, known, side_by_side};

/// Everything a set gives a value to, as the control plane names it.
pub(super) fn values_of(row: &Row) -> BTreeMap<String, Value> {
    let members = |value: Option<&Value>, prefix: &str| -> Vec<(String, Value)> {
        let Some(Value::Object(members)) = value else { return Vec::new() };
        members.iter().map(|(key, value)| (format!("{prefix}{key}"), value.clone())).collect()
    };
    let mut all: BTreeMap<String, Value> = members(row.value("engine_args"), "").into_iter().collect();
    all.extend(members(row.value("env"), "env."));
    if let Some(Value::Array(companions)) = row.value("companions") {
        for companion in companions {
            let code = companion.get("framework_code").and_then(Value::as_str).unwrap_or_default();
            all.extend(members(companion.get("values"), &format!("{code}.")));
        }
    }
    all
}

/// The frameworks of a set's sidecars.
fn sidecars_of(row: &Row) -> Vec<String> {
    let Some(Value::Array(companions)) = row.value("companions") else { return Vec::new() };
    let code = |companion: &Value| Some(companion.get("framework_code")?.as_str()?.to_owned());
    companions.iter().filter_map(code).collect()
}

/// The difference, asked of the control plane.
#[component]
pub(super) fn Diff(settings: Settings, row: StoredValue<Row>, against: Against) -> impl IntoView {
    let answer = RwSignal::new(None::<Result<EngineArgsSetsDiff, Trouble>>);
    let base = match &against {
        Against::Defaults => None,
        Against::Set(code) => Some(code.clone()),
    };
    let name = base.clone().unwrap_or_else(|| "defaults".to_owned());
    let wanted = StoredValue::new(DiffEngineArgsSets {
        p_set_code: row.with_value(|r| r.text("set_code")),
        p_base_set_code: base,
    });
    let ask = move || {
        answer.set(None);
        spawn_local(async move {
            let got = api::call("diff_engine_args_sets", &wanted.get_value()).await;
            answer.try_set(Some(got));
        });
    };
    ask();
    // What the arguments mean, also of those that are the same on both sides.
    let templates = use_rows(move || {
        let of = |diff: &EngineArgsSetsDiff| {
            let sidecars = row.with_value(sidecars_of);
            let frameworks: Vec<String> =
                std::iter::once(diff.framework_code.clone()).chain(sidecars).collect();
            format!(
                "/api/v_framework_engine_args_templates?{}&select=framework_code,framework_version,key,dangerous,meaning&order=position.asc",
                any_of("framework_code", &frameworks)
            )
        };
        answer.with(|answer| Some(of(answer.as_ref()?.as_ref().ok()?)))
    });
    move || match answer.get() {
        None => view! { <Skeleton lines=6/> }.into_any(),
        Some(Err(trouble)) => trouble_view(&trouble, ask),
        Some(Ok(diff)) => {
            let known = known(&templates.all(), &diff.framework_code, &diff.framework_version);
            let lines = side_by_side(&diff.differences, &row.with_value(values_of), &known);
            let all = settings.view.with(|v| v.all);
            shown(lines, &diff, &name, all)
        }
    }
}

fn shown(lines: Vec<Line>, diff: &EngineArgsSetsDiff, base: &str, all: bool) -> AnyView {
    let total = lines.len();
    let words = format!(
        "{} of {} · {} {}",
        counted(diff.differences.len() as i64, "difference"),
        counted(total as i64, "argument"),
        diff.framework_code,
        diff.framework_version
    );
    let body = lines.into_iter().filter(|line| all || line.change != "same").map(line_view).collect_view();
    let none = diff.differences.is_empty().then(|| view! { <p class="one-line">"They say the same."</p> });
    view! {
        <p class="meta one-line" data-testid="diff-words">{words}</p>
        {none}
        <div class="table-scroll">
            <table class="data-table" data-testid="set-diff">
                <caption class="visually-hidden">{format!("{} against {base}", diff.set_code)}</caption>
                <thead>
                    <tr>
                        <th scope="col">"Argument"</th>
                        <th scope="col" class="key">{base.to_owned()}</th>
                        <th scope="col" class="key">{diff.set_code.clone()}</th>
                        <th scope="col">"Change"</th>
                        <th scope="col">"What it does"</th>
                    </tr>
                </thead>
                <tbody>{body}</tbody>
            </table>
        </div>
    }
    .into_any()
}

fn line_view(line: Line) -> AnyView {
    let text = |value: Option<String>| value.unwrap_or_else(|| ABSENT.to_owned());
    let mark = line
        .dangerous
        .then(|| view! { " "<span class="status" data-status="flagged">"needs approval"</span> });
    let same = line.change == "same";
    view! {
        <tr data-testid="difference" data-key=line.key.clone() data-change=line.change.clone()>
            <th scope="row" class="card-title key">{line.key.clone()}{mark}</th>
            <td class="key wrap-any card-figure" data-label="Before" class:quiet=same>{text(line.base)}</td>
            <td class="key wrap-any card-figure" data-label="Here" class:strong=!same class:quiet=same>{text(line.value)}</td>
            <td class="card-figure" data-label="Change">{line.change.clone()}</td>
            <td class="wrap card-note" data-testid="meaning">{line.meaning.clone()}</td>
        </tr>
    }
    .into_any()
}
