//! Readiness while one types: every rule with its cures, the commands as they would run, the scenarios.

use events::api::{CheckReadiness, Readiness};
use events::tools::ToolCode;
use events::workload::ScenarioSpec;
use leptos::prelude::*;
use wasm_bindgen_futures::spawn_local;

use super::{Card, Form};
use crate::browser::api;
use crate::browser::remote::{Rows, use_rows};
use crate::format::{count, duration, maybe_count};
use crate::parts::{CopyButton, command, shell};
use crate::state::estimate::estimate;
use crate::state::report::percent;

/// Asks for readiness a moment after the last change.
pub(super) fn check_while_typing(form: Form, card: Card, servers: Rows) {
    let question = Memo::new(move |_| {
        let input = card.draft.with(|d| d.input().ok())?;
        let server = form.server.get();
        let row = servers.rows.with(|r| r.iter().flatten().find(|s| s.text("server") == server).cloned());
        Some(CheckReadiness {
            p_workload: input,
            p_config_code: row.as_ref().map(|r| r.text("config_code")),
            p_hostname: row.as_ref().map(|r| r.text("hostname")),
        })
    });
    let turn = StoredValue::new(0u32);
    Effect::new(move |_| {
        let Some(question) = question.get() else {
            card.readiness.set(None);
            card.checking.set(false);
            return;
        };
        card.checking.set(true);
        let mine = turn.try_update_value(|t| {
            *t += 1;
            *t
        });
        set_timeout(
            move || {
                if turn.try_get_value() != mine {
                    return;
                }
                spawn_local(async move {
                    let answer = api::call::<Readiness>("check_readiness", &question).await;
                    if turn.try_get_value() != mine {
                        return;
                    }
                    card.checking.try_set(false);
                    match answer {
                        Ok(readiness) => {
                            card.readiness.try_set(Some(readiness));
                            card.trouble.try_set(None);
                        }
                        Err(trouble) => {
                            card.readiness.try_set(None);
                            card.trouble.try_set(Some(trouble));
                        }
                    }
                });
            },
            std::time::Duration::from_millis(250),
        );
    });
}

#[component]
pub(super) fn Commands(card: Card) -> impl IntoView {
    let shown = move |title: &'static str, id: &'static str, argv: Vec<String>, note: String| {
        let text = shell(&argv);
        view! {
            <section aria-labelledby=id class="resolved">
                <div class="command-head">
                    <h3 id=id>{title}</h3>
                    <span class="meta">{note}</span>
                    <CopyButton text=Signal::stored(text)/>
                </div>
                {command(&argv)}
            </section>
        }
        .into_any()
    };
    move || {
        card.readiness.with(|r| r.as_ref().and_then(|r| r.commands.clone())).map(|commands| {
            let note = |n: usize| commands.templates.get(n).map_or_else(String::new, |t| format!("resolved from template {t}"));
            view! {
                <div data-testid="resolved-commands">
                    {(!commands.serve_argv.is_empty()).then(|| shown("Serve command", "serve-command", commands.serve_argv.clone(), note(0)))}
                    {shown("Tool command, first scenario", "tool-command", commands.tool_argv.clone(), note(usize::from(!commands.serve_argv.is_empty())))}
                </div>
            }
        })
    }
}

#[component]
pub(super) fn ReadinessPanel(form: Form, card: Card) -> impl IntoView {
    let verdict = move || {
        if card.checking.get() {
            return ("queued", "checking".to_owned());
        }
        card.readiness.with(|r| {
            let Some(r) = r else { return ("queued", "waiting".to_owned()) };
            let fails = r.checks.iter().filter(|c| c.result == "fails").count();
            let open = r.checks.iter().filter(|c| c.result == "unknown" || c.result == "warning").count();
            match (r.ready, fails, open) {
                (true, _, 0) => ("completed", "ready".to_owned()),
                (true, _, n) => ("flagged", format!("ready, {n} to look at")),
                (false, n, _) => {
                    ("failed", format!("{n} of {} {}", r.checks.len(), if n == 1 { "fails" } else { "fail" }))
                }
            }
        })
    };
    let missing = move || card.draft.with(|d| d.input().err().unwrap_or_default());
    view! {
        <section aria-labelledby="readiness" aria-live="polite" data-testid="readiness">
            <div class="section-head">
                <h2 id="readiness">"Readiness"</h2>
                {move || form.cards.with(|c| (c.len() > 1).then(|| c.iter().position(|c| c.id == card.id))).flatten().map(|n| view! { <span class="meta">{format!("of workload {}", n + 1)}</span> })}
                <span class="push">
                    <span class="status" data-status=move || verdict().0 data-testid="readiness-verdict">{move || verdict().1}</span>
                </span>
            </div>
            <ul class="checks">
                {move || missing().into_iter().map(|m| view! { <li><div class="checks-row"><span class="status" data-status="queued">"open"</span><span>{m}</span></div></li> }).collect_view()}
                {move || card.trouble.get().map(|t| view! {
                    <li data-testid="readiness-trouble">
                        <div class="checks-row">
                            <span class="status" data-status="failed">"error"</span>
                            <span>{t.error.message}</span>
                            <span class="meta">{t.error.hint}</span>
                        </div>
                    </li>
                })}
                {move || card.readiness.with(|r| r.iter().flat_map(|r| &r.checks).map(check_row).collect_view())}
            </ul>
        </section>
    }
    .into_any()
}

fn check_row(check: &events::api::ReadinessCheck) -> AnyView {
    let (mark, word) = match check.result.as_str() {
        "ok" => ("completed", "ok"),
        "fails" => ("failed", "fails"),
        "warning" => ("flagged", "look"),
        _ => ("queued", "open"),
    };
    let cures = check.cures.iter().map(|c| view! { <li>{c.clone()}</li> }).collect_view();
    view! {
        <li data-rule=check.rule.clone() data-result=check.result.clone()>
            <div class="checks-row">
                <span class="status" data-status=mark>{word}</span>
                <span>{check.title.clone()}</span>
                <span class="meta">{check.message.clone()}</span>
            </div>
            {(!check.cures.is_empty()).then(|| view! { <ul class="cure-list">{cures}</ul> })}
        </li>
    }
    .into_any()
}

/// What a run will take, from what ran before on the same server.
fn use_estimate(
    form: Form,
    card: Card,
    servers: Rows,
    rolled: Memo<Vec<ScenarioSpec>>,
) -> Memo<Option<String>> {
    let request = Memo::new(move |_| {
        let chosen = form.server.get();
        let server =
            servers.rows.with(|r| r.iter().flatten().find(|s| s.text("server") == chosen).cloned())?;
        card.draft.with(|d| {
            (!d.model.is_empty()).then(|| {
                format!(
                    "/api/v_benchmark_results?model_code=eq.{}&framework_code=eq.{}&config_code=eq.{}&hostname=eq.{}&status=eq.completed\
                     &select=concurrency,input_sequence_length,output_sequence_length,requests_per_second&order=finished_at.desc.nullslast&limit=500",
                    percent(&d.model),
                    percent(&d.framework),
                    percent(&server.text("config_code")),
                    percent(&server.text("hostname"))
                )
            })
        })
    });
    let past = use_rows(move || request.get());
    Memo::new(move |_| {
        let found = rolled.with(|scenarios| past.rows.with(|rows| estimate(scenarios, rows.as_deref()?)))?;
        let all = if found.known == found.scenarios {
            String::new()
        } else {
            format!(" for {} of {} scenarios; nothing like the others ran here", found.known, found.scenarios)
        };
        Some(format!("about {}{all}, from past results on this server", duration(found.seconds)))
    })
}

#[component]
pub(super) fn Scenarios(form: Form, card: Card, servers: Rows) -> impl IntoView {
    let rolled = Memo::new(move |_| {
        card.draft.with(|d| {
            let Ok(input) = d.input() else { return Vec::new() };
            let tool =
                input.p_tool_code.as_deref().and_then(ToolCode::of).unwrap_or(ToolCode::MetrumbenchLlm);
            input.p_scenarios.roll_out(tool)
        })
    });
    let estimate = use_estimate(form, card, servers, rolled);
    let product = move || {
        card.draft.with(|d| {
            [d.concurrency.len(), d.isl.len().max(1), d.osl.len().max(1)].map(|n| n.to_string()).join(" × ")
        })
    };
    view! {
        <section aria-labelledby="scenarios" data-testid="scenarios">
            <div class="section-head">
                <h2 id="scenarios">{move || match rolled.with(Vec::len) { 1 => "1 scenario".to_owned(), n => format!("{n} scenarios") }}</h2>
                <span class="meta">{product}</span>
            </div>
            <p class="meta one-line" data-testid="estimate">{move || estimate.get().unwrap_or_else(|| "no past result on this server to estimate the time from".to_owned())}</p>
            <div class="scenario-scroll">
                <table class="data-table keep-shape">
                    <caption class="visually-hidden">"Scenarios"</caption>
                    <thead>
                        <tr>
                            <th scope="col">"Scenario"</th>
                            <th scope="col" class="number">"Requests"</th>
                            <th scope="col" class="number">"Context"</th>
                        </tr>
                    </thead>
                    <tbody>
                        {move || rolled.with(|list| list.iter().map(|s| {
                            let context = s.input_sequence_length.zip(s.output_sequence_length).map(|(i, o)| i64::from(i) + i64::from(o));
                            view! {
                                <tr>
                                    <th scope="row" class="key">{s.code()}</th>
                                    <td class="number">{count(i64::from(s.num_requests))}</td>
                                    <td class="number">{maybe_count(context)}</td>
                                </tr>
                            }
                        }).collect_view())}
                    </tbody>
                </table>
            </div>
        </section>
    }
    .into_any()
}
