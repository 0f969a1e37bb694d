//! The exact commands, the phases, and what the job ran on.

use leptos::prelude::*;

use super::View;
use crate::format::{clock, duration, maybe};
use crate::parts::{CopyButton, command, shell};
use crate::row::Row;

#[component]
pub(super) fn Commands(view: View) -> impl IntoView {
    // The final command lines as the agent ran them; until then, as they were resolved.
    let commands = Memo::new(move |_| {
        let job = view.job();
        let argv = |run: &str, resolved: &str| {
            let done = job.list(run);
            if done.is_empty() { (job.list(resolved), false) } else { (done, true) }
        };
        [
            ("Framework command", "serve", argv("serve_argv", "resolved_serve_argv")),
            ("Tool command", "tool", argv("tool_argv", "resolved_tool_argv")),
        ]
    });
    view! {
        <div class="grid below">
            {move || commands.get().map(|(title, id, (argv, ran))| {
                (!argv.is_empty()).then(|| {
                    let text = shell(&argv);
                    view! {
                        <section class="span-6" aria-labelledby=id data-testid=format!("command-{id}")>
                            <div class="section-head">
                                <h2 id=id>{title}</h2>
                                <span class="meta">{if ran { "as the agent ran it" } else { "as resolved and signed; the agent fills what is its own" }}</span>
                                <div class="actions"><CopyButton text=Signal::stored(text) class="button button-quiet"/></div>
                            </div>
                            {command(&argv)}
                        </section>
                    }
                })
            }).collect_view()}
        </div>
    }
    .into_any()
}

#[component]
pub(super) fn Phases(view: View) -> impl IntoView {
    let stages = [
        ("created_at", "created"),
        ("queued_at", "queued"),
        ("claimed_at", "claimed by the agent"),
        ("serving_at", "model server started"),
        ("running_at", "load generator started"),
        ("finished_at", "ended"),
    ];
    let lines = move || {
        let job = view.job();
        let known: Vec<(f64, &str)> =
            stages.iter().filter_map(|(column, word)| job.millis(column).map(|at| (at, *word))).collect();
        known
            .iter()
            .enumerate()
            .map(|(place, (at, word))| {
                let after = place.checked_sub(1).map(|p| duration((at - known[p].0) / 1000.0));
                view! { <tr><th scope="row">{*word}</th><td class="number">{clock(*at)}</td><td class="number">{after}</td></tr> }
            })
            .collect_view()
    };
    let facts = move || {
        let job = view.job();
        let server = view
            .servers
            .all()
            .into_iter()
            .find(|s| s.text("hostname") == job.text("hostname"))
            .unwrap_or_default();
        // What the result was measured on stands in it; before there is one, what the server has.
        let measured = view.results.first().filter(|result| result.whole("gpu_count").is_some());
        let gpu = gpus(measured.as_ref().unwrap_or(&server), server.maybe_text("driver_version"));
        let host = format!(
            "{} × {}, {} GB",
            maybe(server.number("cpu_sockets")),
            server.text("cpu_model"),
            maybe(server.number("ram_total_bytes").map(crate::format::gigabytes))
        );
        let pairs = [
            ("Model", job.text("model_code")),
            ("Framework", format!("{} {}", job.text("framework_code"), job.text("framework_version"))),
            ("GPU", gpu),
            ("Host", host),
            ("System", server.text("os")),
            ("Agent", server.text("agent_version")),
        ];
        pairs.map(|(name, value)| view! { <dt>{name}</dt><dd>{value}</dd> }).collect_view()
    };
    view! {
        <div class="grid below">
            <section class="span-6" aria-labelledby="phases" data-testid="phases">
                <div class="section-head"><h2 id="phases">"Phases"</h2></div>
                <table class="data-table keep-shape"><caption class="visually-hidden">"Phases"</caption><thead><tr><th scope="col">"Phase"</th><th scope="col" class="number">"Began "<span class="unit">"UTC"</span></th><th scope="col" class="number">"After the one before"</th></tr></thead><tbody>{lines}</tbody></table>
            </section>
            <section class="span-6" aria-labelledby="environment">
                <div class="section-head"><h2 id="environment">"Environment"</h2><span class="meta">"host, system and agent as the server is known now"</span></div>
                <dl class="definitions definitions-section">{facts}</dl>
            </section>
        </div>
    }
    .into_any()
}

/// GPUs in words, with their driver where it is known.
fn gpus(row: &Row, driver: Option<String>) -> String {
    match row.whole("gpu_count") {
        Some(n) if n > 0 => {
            let driver = driver.map(|driver| format!(", driver {driver}")).unwrap_or_default();
            format!("{n} × {}{driver}", row.text("gpu_name"))
        }
        _ => "none".to_owned(),
    }
}
