//! What is doubted about a result, by a rule or by a person; doubting it, and clearing a doubt with a reason.

use events::api::{ClearFlag, FlagResult};
use leptos::ev::SubmitEvent;
use leptos::prelude::*;
use serde::Serialize;
use wasm_bindgen_futures::spawn_local;

use crate::browser::api::{self, Trouble};
use crate::browser::now_ms;
use crate::browser::page::Page;
use crate::browser::remote::{Rows, keep_live, use_rows};
use crate::format::moment;
use crate::row::Row;
use crate::state::filters::percent;
use crate::state::live::kind;

/// A job's path in its parts: project, workload, run, scenario.
pub fn parts(job: &str) -> Option<(String, String, u32, String)> {
    let parts: Vec<&str> = job.split('/').collect();
    match parts.as_slice() {
        [_, project, workload, run, scenario] => {
            Some(((*project).to_owned(), (*workload).to_owned(), run.parse().ok()?, (*scenario).to_owned()))
        }
        _ => None,
    }
}

/// What the parts share: the flags, what went wrong last, and whether the form is open.
#[derive(Clone, Copy)]
struct Doubting {
    flags: Rows,
    trouble: RwSignal<Option<Trouble>>,
    open: RwSignal<bool>,
}

impl Doubting {
    /// Gives a command and reads the flags again.
    fn give(self, command: &'static str, arguments: impl Serialize + 'static) {
        let live = Page::expect().live;
        self.trouble.set(None);
        spawn_local(async move {
            match api::command(command, &arguments).await {
                Ok(reply) => {
                    live.must_reach(reply.position);
                    self.open.try_set(false);
                    self.flags.reload();
                }
                Err(error) => {
                    self.trouble.try_set(Some(error));
                }
            }
        });
    }
}

/// The doubts about a job's result.
#[component]
pub(super) fn Doubts(
    /// The job's path.
    job: String,
) -> impl IntoView {
    let page = Page::expect();
    let request =
        format!("/api/v_quality_flags?job=eq.{}&order=flagged_at.asc", percent(&format!("job/{job}")));
    let doubting = Doubting {
        flags: use_rows(move || Some(request.clone())),
        trouble: RwSignal::new(None),
        open: RwSignal::new(false),
    };
    keep_live(
        doubting.flags,
        vec![format!("{job}:job")],
        |_, _| false,
        |e| kind(e) == "job" && e.event_type.starts_with("quality."),
    );
    let rules = Memo::new(move |_| doubting.flags.all().iter().map(|f| f.text("rule")).collect::<Vec<_>>());
    let asked = job.clone();
    let may = untrack(|| page.signed_in());
    view! {
        <section data-testid="doubts">
            <div class="command-head">
                <h3>"Doubts"</h3>
                {may.then(|| view! {
                    <button type="button" class="figure-toggle" data-testid="doubt" aria-expanded=move || doubting.open.get().to_string() on:click=move |_| doubting.open.update(|o| *o = !*o)>
                        "Doubt this result"
                    </button>
                })}
            </div>
            <Show when=move || rules.with(Vec::is_empty) && !doubting.open.get()>
                <p class="quiet">"Nobody and no rule doubts it."</p>
            </Show>
            <ul class="flag-list">
                <For each=move || rules.get() key=Clone::clone let:rule>
                    <Doubt doubting job=job.clone() rule may/>
                </For>
            </ul>
            <Show when=move || doubting.open.get()>
                <DoubtForm doubting job=asked.clone()/>
            </Show>
            <div role="alert">
                {move || doubting.trouble.get().map(|t| view! { <p><span class="status" data-status="failed">{t.error.message}</span>" "<span class="meta">{t.error.hint}</span></p> })}
            </div>
        </section>
    }
    .into_any()
}

#[component]
fn Doubt(doubting: Doubting, job: String, rule: String, may: bool) -> impl IntoView {
    let key = rule.clone();
    let flag = Memo::new(move |_| {
        doubting.flags.all().into_iter().find(|f| f.text("rule") == key).unwrap_or_else(Row::default)
    });
    let cleared = Memo::new(move |_| flag.with(|f| f.is("cleared")));
    let clearing = RwSignal::new(false);
    let reason = RwSignal::new(String::new());
    let when = |flag: &Row, at: &str| flag.millis(at).map(|at| moment(at, now_ms())).unwrap_or_default();
    let named = rule.clone();
    let submit = move |event: SubmitEvent| {
        event.prevent_default();
        let Some((project, workload, run, scenario)) = parts(&job) else { return };
        let arguments = ClearFlag {
            p_project_code: project,
            p_workload_code: workload,
            p_run_number: run,
            p_scenario_code: scenario,
            p_rule: rule.clone(),
            p_reason: reason.get_untracked(),
        };
        clearing.set(false);
        doubting.give("clear_flag", arguments);
    };
    let submit = StoredValue::new_local(submit);
    view! {
        <li data-testid="flag" data-rule=named.clone() data-cleared=move || cleared.get().to_string()>
            <p class="command-head">
                <span class="status" data-status=move || if cleared.get() { "completed" } else { "flagged" }>{named.replace('_', " ")}</span>
                <span class="meta">{move || flag.with(|f| format!("{} · {}", when(f, "flagged_at"), short_actor(&f.text("flagged_by"))))}</span>
            </p>
            <p>{move || flag.with(|f| f.text("message"))}</p>
            {move || cleared.get().then(|| flag.with(|f| view! { <p class="meta">{format!("cleared {}: {}", when(f, "cleared_at"), f.text("cleared_reason"))}</p> }))}
            <Show when=move || may && !cleared.get() && !clearing.get()>
                <button type="button" class="figure-toggle" data-testid="clear-flag" on:click=move |_| clearing.set(true)>"Clear, with a reason"</button>
            </Show>
            <Show when=move || clearing.get()>
                <form class="doubt-form" on:submit=move |event| submit.with_value(|submit| submit(event))>
                    <label class="field">
                        <span class="field-label">"Why it can be trusted"</span>
                        <input class="control" required data-testid="clear-reason" bind:value=reason/>
                    </label>
                    <button type="submit" class="button" data-testid="clear-submit">"Clear"</button>
                </form>
            </Show>
        </li>
    }
    .into_any()
}

#[component]
fn DoubtForm(doubting: Doubting, job: String) -> impl IntoView {
    let message = RwSignal::new(String::new());
    let submit = move |event: SubmitEvent| {
        event.prevent_default();
        let Some((project, workload, run, scenario)) = parts(&job) else { return };
        let arguments = FlagResult {
            p_project_code: project,
            p_workload_code: workload,
            p_run_number: run,
            p_scenario_code: scenario,
            p_rule: None,
            p_message: message.get_untracked(),
        };
        doubting.give("flag_result", arguments);
    };
    view! {
        <form class="doubt-form" on:submit=submit>
            <label class="field">
                <span class="field-label">"What is odd about it; it stays visible, marked as doubted"</span>
                <input class="control" required data-testid="doubt-message" bind:value=message/>
            </label>
            <button type="submit" class="button" data-testid="doubt-submit">"Doubt"</button>
        </form>
    }
    .into_any()
}

/// Who it was: a service by its name, a person by the beginning of the id.
fn short_actor(actor: &str) -> String {
    match actor.split_once('-') {
        Some((begin, _)) if actor.len() == 36 => format!("person {begin}"),
        _ => actor.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_person_is_named_by_the_beginning_of_the_id() {
        assert_eq!(short_actor("01a22c1f-1f5d-714f-90fc-0d5eaf5af4b7"), "person 01a22c1f");
        assert_eq!(short_actor("control-plane"), "control-plane");
    }

    #[test]
    fn a_jobs_path_is_read_in_its_parts() {
        assert_eq!(parts("acme/p/w/3/c8-isl1"), Some(("p".into(), "w".into(), 3, "c8-isl1".into())));
        assert_eq!(parts("acme/p/w/x/c8"), None);
        assert_eq!(parts("acme/p"), None);
    }
}
