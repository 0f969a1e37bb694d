//! Readiness while one types: every rule with its cures, the commands as they would run, the scenarios.

use events::api::{CheckReadiness, Readiness, ReadinessCheck};
use events::workload::ScenarioSpec;
use leptos::prelude::*;
use serde_json::Value;
use wasm_bindgen_futures::spawn_local;

use super::cures::check_row;
use super::workload::Choices;
use super::{Card, Form};
use crate::browser::api;
use crate::browser::remote::{Rows, use_rows};
use crate::format::{ABSENT, count, counted, duration, maybe_count};
use crate::parts::{CopyButton, command, shell};
use crate::state::estimate::{Estimate, estimate};
use crate::state::filters::percent;

/// Asks for readiness a moment after the last change.
pub(super) fn check_while_typing(card: Card, servers: Rows) {
    let question = Memo::new(move |_| {
        let input = card.draft.with(|d| d.input().ok())?;
        let server = card.draft.with(|d| d.server.clone());
        let row = servers.rows.with(|r| r.iter().flatten().find(|s| s.text("server") == server).cloned());
        Some(CheckReadiness {
            p_workload: input,
            p_config_code: row.as_ref().map(|r| r.text("config_code")),
            p_hostname: row.as_ref().map(|r| r.text("hostname")),
        })
    });
    let turn = StoredValue::new(0u32);
    Effect::new(move |_| {
        card.again.track();
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
pub(super) fn ReadinessPanel(form: Form, card: Card, choices: Choices, servers: Rows) -> impl IntoView {
    let verdict = Memo::new(move |_| {
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
    });
    let missing = move || card.draft.with(|d| d.input().err().unwrap_or_default());
    let heading = NodeRef::<leptos::html::H2>::new();
    // A cure that is a button changes the form; the button goes with its check, and the focus to the heading.
    let set = Callback::new(move |(field, value): (String, Option<Value>)| {
        choices.change(card, servers, |draft| {
            draft.set(&field, value);
        });
        if let Some(heading) = heading.get_untracked() {
            let _ = heading.focus();
        }
    });
    let of = move || {
        let place = form.cards.with(|c| (c.len() > 1).then(|| c.iter().position(|c| c.id == card.id)));
        place.flatten().map(|n| view! { <span class="meta">{format!("of workload {}", n + 1)}</span> })
    };
    // What stands in the way comes first; the order of the rules otherwise.
    let checks = move || {
        let mut checks = card.readiness.with(|r| r.as_ref().map(|r| r.checks.clone()).unwrap_or_default());
        checks.sort_by_key(|c| match c.result.as_str() {
            "fails" => 0,
            "warning" => 1,
            _ => 2,
        });
        checks
    };
    // One that says the same as before stays where it is, with the focus on it.
    let key = |c: &ReadinessCheck| serde_json::to_string(c).unwrap_or_else(|_| c.rule.clone());
    view! {
        <section aria-labelledby="readiness" data-testid="readiness">
            <div class="section-head">
                <h2 id="readiness" tabindex="-1" node_ref=heading>"Readiness"</h2>
                {of}
                <span class="push" role="status">
                    <span class="status" data-status=move || verdict.get().0 data-testid="readiness-verdict">{move || verdict.get().1}</span>
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
                <For each=checks key=key let:check>{check_row(&check, card, set)}</For>
            </ul>
        </section>
    }
    .into_any()
}

/// What a run will take, from what ran before on the same server.
fn use_estimate(card: Card, servers: Rows, rolled: Memo<Vec<ScenarioSpec>>) -> Memo<Option<Estimate>> {
    let request = Memo::new(move |_| {
        let chosen = card.draft.with(|d| d.server.clone());
        let server =
            servers.rows.with(|r| r.iter().flatten().find(|s| s.text("server") == chosen).cloned())?;
        card.draft.with(|d| {
            (!d.model.is_empty()).then(|| {
                format!(
                    "/api/v_benchmark_results?model_code=eq.{}&framework_code=eq.{}&tool_code=eq.{}&config_code=eq.{}&hostname=eq.{}&status=eq.completed\
                     &select=concurrency,input_sequence_length,output_sequence_length,num_images_batch,image_size,requests_per_second\
                     &order=finished_at.desc.nullslast&limit=500",
                    percent(&d.model),
                    percent(&d.framework),
                    percent(&d.tool),
                    percent(&server.text("config_code")),
                    percent(&server.text("hostname"))
                )
            })
        })
    });
    let past = use_rows(move || request.get());
    Memo::new(move |_| rolled.with(|scenarios| past.rows.with(|rows| estimate(scenarios, rows.as_deref()?))))
}

/// The estimate in words.
fn estimate_words(found: &Estimate) -> String {
    let all = if found.known == found.each.len() {
        String::new()
    } else {
        format!(" for {} of {} scenarios; nothing like the others ran here", found.known, found.each.len())
    };
    format!("about {}{all}, from past results on this server", duration(found.seconds))
}

#[component]
pub(super) fn Scenarios(card: Card, servers: Rows) -> impl IntoView {
    let rolled = Memo::new(move |_| {
        card.draft.with(|d| d.input().map(|i| i.p_scenarios.roll_out(d.tool())).unwrap_or_default())
    });
    let estimate = use_estimate(card, servers, rolled);
    // The axes that have several values, multiplied.
    let product = move || {
        let input = card.draft.with(|d| d.input().map(|i| i.p_scenarios)).ok()?;
        let sizes = [
            input.p_image_detail.len(),
            input.p_image_size.len(),
            input.p_num_images_batch.len(),
            input.p_num_rounds.len(),
            input.p_input_sequence_length.len(),
            input.p_output_sequence_length.len(),
            input.p_concurrency.len(),
        ];
        let several: Vec<String> = sizes.iter().filter(|n| **n > 1).map(ToString::to_string).collect();
        (several.len() > 1).then(|| several.join(" × "))
    };
    let tokens = Memo::new(move |_| card.draft.with(|d| d.tool().axes().lengths));
    let row = move |n: usize, s: &ScenarioSpec| {
        let context =
            s.input_sequence_length.zip(s.output_sequence_length).map(|(i, o)| i64::from(i) + i64::from(o));
        let time = estimate.with(|e| e.as_ref().and_then(|e| e.each.get(n).copied().flatten())).map(duration);
        view! {
            <tr>
                <th scope="row" class="key">{s.code()}</th>
                <td class="number">{count(i64::from(s.num_requests))}</td>
                {tokens.get().then(|| view! { <td class="number">{maybe_count(context)}</td> })}
                <td class="number">{time.unwrap_or_else(|| ABSENT.to_owned())}</td>
            </tr>
        }
    };
    view! {
        <section aria-labelledby="scenarios" data-testid="scenarios">
            <div class="section-head">
                <h2 id="scenarios">{move || counted(rolled.with(Vec::len) as i64, "scenario")}</h2>
                <span class="meta">{product}</span>
            </div>
            <p class="meta one-line" data-testid="estimate">{move || estimate.with(|e| e.as_ref().map(estimate_words)).unwrap_or_else(|| "no past result on this server to estimate the time from".to_owned())}</p>
            <div class="scenario-scroll" tabindex="0" role="region" aria-label="Scenarios as they will run">
                <table class="data-table keep-shape">
                    <caption class="visually-hidden">"Scenarios"</caption>
                    <thead>
                        <tr>
                            <th scope="col">"Scenario"</th>
                            <th scope="col" class="number">"Requests"</th>
                            {move || tokens.get().then(|| view! { <th scope="col" class="number">"Context"</th> })}
                            <th scope="col" class="number">"Estimate"</th>
                        </tr>
                    </thead>
                    <tbody>
                        {move || rolled.with(|list| list.iter().enumerate().map(|(n, s)| row(n, s)).collect_view())}
                    </tbody>
                </table>
            </div>
        </section>
    }
    .into_any()
}
