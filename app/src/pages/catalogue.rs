//! Catalogue: models, frameworks, tools, and what every metric means.

use leptos::prelude::*;

use crate::browser::remote::use_rows;
use crate::browser::route::use_location;
use crate::format::{ABSENT, maybe, maybe_count};
use crate::parts::PageHead;
use crate::parts::states::{Empty, when_there};
use crate::state::query::Query;

const TABS: [(&str, &str); 4] =
    [("", "Models"), ("frameworks", "Frameworks"), ("tools", "Tools"), ("metrics", "Metrics")];

/// The page.
#[component]
pub fn Catalogue() -> impl IntoView {
    let location = use_location();
    let tab = Memo::new(move |_| {
        location.search.with(|s| Query::parse(s).get("tab").unwrap_or_default().to_owned())
    });
    let tabs = TABS.map(|(word, name)| {
        let href = if word.is_empty() { "/catalogue".to_owned() } else { format!("/catalogue?tab={word}") };
        view! { <a href=href data-noscroll="" aria-current=move || tab.with(|t| t == word).then_some("page")>{name}</a> }
    });
    view! {
        <PageHead title="Catalogue" meta=|| "what workloads are made of, and what the figures mean".into_any()/>
        <nav class="tabs tabs-page" aria-label="Catalogue">{tabs.collect_view()}</nav>
        {move || match tab.get().as_str() {
            "frameworks" => listing("/api/v_frameworks?order=framework_code.asc&limit=500", &[("framework_code", "Framework"), ("framework_version", "Version"), ("version", "Version"), ("display_name", "Name"), ("serve_argv", "Command template"), ("readiness_path", "Readiness")]),
            "tools" => listing("/api/v_tools?order=tool_code.asc", &[("tool_code", "Tool"), ("display_name", "Name"), ("modality", "Measures"), ("argv", "Command template")]),
            "metrics" => metrics(),
            _ => listing("/api/v_models?order=model_code.asc&limit=1000", &[("model_code", "Model"), ("display_name", "Name"), ("modality", "Kind"), ("family", "Family"), ("params_b_total", "Parameters, 10⁹"), ("max_context", "Context, tokens"), ("default_precision", "Published in"), ("license", "Licence")]),
        }}
    }
    .into_any()
}

fn listing(request: &'static str, columns: &'static [(&'static str, &'static str)]) -> AnyView {
    let rows = use_rows(move || Some(request.to_owned()));
    when_there(
        rows,
        8,
        || view! { <Empty words="Nothing in the catalogue yet: benchtrail seed fills it."/> }.into_any(),
        move |list| {
            // Only the columns that the view has.
            let shown: Vec<_> =
                columns.iter().filter(|(key, _)| list.iter().any(|r| r.value(key).is_some())).collect();
            let heads = shown
                .iter()
                .map(|(key, name)| view! { <th scope="col" class:number=is_number(key)>{*name}</th> })
                .collect_view();
            let lines = list.iter().map(|row| {
            let cells = shown.iter().enumerate().map(|(place, (key, name))| {
                let text = match *key {
                    "params_b_total" => maybe(row.number(key)),
                    "max_context" => maybe_count(row.whole(key)),
                    "serve_argv" | "argv" => row.list(key).join(" "),
                    _ => row.maybe_text(key).unwrap_or_else(|| ABSENT.to_owned()),
                };
                let key_like = key.ends_with("_code") || key.ends_with("argv") || key.ends_with("version") || *key == "readiness_path";
                match place {
                    0 => view! { <th scope="row" class="card-title key">{text}</th> }.into_any(),
                    1..4 => view! { <td class="card-figure" class:key=key_like class:number=is_number(key) data-label=*name>{text}</td> }.into_any(),
                    _ => view! { <td class:key=key_like class:clip=key.ends_with("argv") class:number=is_number(key) title=text.clone()>{text.clone()}</td> }.into_any(),
                }
            });
            view! { <tr>{cells.collect_view()}</tr> }
        });
            view! {
            <div class="table-scroll">
                <table class="data-table" data-testid="catalogue"><caption class="visually-hidden">"Catalogue"</caption><thead><tr>{heads}</tr></thead><tbody>{lines.collect_view()}</tbody></table>
            </div>
            <p class="table-foot">{format!("1–{0} of {0}", list.len())}</p>
        }
        .into_any()
        },
    )
}

fn is_number(key: &str) -> bool {
    matches!(key, "params_b_total" | "max_context")
}

fn metrics() -> AnyView {
    let lines = events::metrics::all().into_iter().map(|m| {
        view! {
            <tr>
                <th scope="row" class="card-title">{m.label}" "{m.direction.arrow()}</th>
                <td class="card-figure" data-label="Unit">{m.unit}</td>
                <td class="key">{m.column}</td>
                <td class="wrap card-title">{m.definition}</td>
            </tr>
        }
    });
    view! {
        <table class="data-table" data-testid="catalogue">
            <caption class="visually-hidden">"Metrics"</caption>
            <thead><tr><th scope="col">"Metric"</th><th scope="col">"Unit"</th><th scope="col">"Column"</th><th scope="col">"Definition"</th></tr></thead>
            <tbody>{lines.collect_view()}</tbody>
        </table>
    }
    .into_any()
}
