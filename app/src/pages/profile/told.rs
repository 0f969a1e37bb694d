//! What one is told: e-mails, and receivers of one's own for webhooks.

use std::collections::BTreeSet;

use events::api::{
    CreateWebhook, RemoveWebhook, RunsTold, SetNotificationPreferences, TestNotification, WebhookRuns,
};
use leptos::ev::SubmitEvent;
use leptos::prelude::*;
use serde_json::Value;
use wasm_bindgen_futures::spawn_local;

use super::said;
use crate::browser::api::{self, Trouble};
use crate::browser::now_ms;
use crate::browser::page::Page;
use crate::browser::remote::{Rows, use_rows};
use crate::format::{ABSENT, moment};
use crate::parts::states::when_there;
use crate::parts::{CommandButton, CopyButton, Done};
use crate::row::Row;

const TOLD: [(RunsTold, &str); 3] =
    [(RunsTold::Off, "none"), (RunsTold::Own, "runs I started"), (RunsTold::All, "all I may see")];

fn told_of(word: &str) -> RunsTold {
    TOLD.iter().map(|(told, _)| *told).find(|told| told.as_str() == word).unwrap_or(RunsTold::Off)
}

/// The panel.
#[component]
pub(super) fn Notifications(admin: bool) -> impl IntoView {
    let live = Page::expect().live;
    let preferences = use_rows(|| Some("/api/v_notification_preferences?limit=1".into()));
    let trouble = RwSignal::new(None::<Trouble>);
    let set = move |wanted: SetNotificationPreferences| {
        spawn_local(async move {
            match api::command("set_notification_preferences", &wanted).await {
                Ok(reply) => {
                    live.must_reach(reply.position);
                    trouble.try_set(None);
                }
                Err(error) => {
                    trouble.try_set(Some(error));
                }
            }
            preferences.reload();
        });
    };
    let row = Memo::new(move |_| preferences.first().unwrap_or_default());
    let runs = move |name: &'static str,
                     label: &'static str,
                     wanted: fn(RunsTold) -> SetNotificationPreferences| {
        let options = move || {
            let now = row.with(|r| r.text(name));
            TOLD.map(|(told, words)| view! { <option value=told.as_str() prop:selected=told.as_str() == now>{words}</option> }).collect_view()
        };
        view! {
            <label class="field span-6">
                <span class="field-label">{label}</span>
                <select class="control" data-testid=format!("notify-{name}") on:change=move |e| set(wanted(told_of(&event_target_value(&e))))>{options}</select>
            </label>
        }
    };
    let switch = move |name: &'static str,
                       label: &'static str,
                       wanted: fn(bool) -> SetNotificationPreferences| {
        view! {
            <label class="check">
                <input type="checkbox" data-testid=format!("notify-{name}") prop:checked=move || row.with(|r| r.is(name)) on:change=move |e| set(wanted(event_target_checked(&e)))/>
                {format!(" {label}")}
            </label>
        }
    };
    view! {
        <section aria-labelledby="notifications" data-testid="notifications">
            <div class="section-head">
                <h2 id="notifications">"Notifications"</h2><span class="meta">"by e-mail, for this organization"</span>
                <div class="push">
                    <CommandButton word="Send a test" command="test_notification" arguments=Callback::new(move |()| TestNotification { p_webhook_id: None }) done=Done::new(|_| ()) testid="test-notification"/>
                </div>
            </div>
            <div class="form-grid">
                {runs("run_completed", "When a run completed", |told| SetNotificationPreferences { p_run_completed: Some(told), ..Default::default() })}
                {runs("run_failed", "When a run failed", |told| SetNotificationPreferences { p_run_failed: Some(told), ..Default::default() })}
            </div>
            {switch("weekly_summary", "on Mondays, about the week", |on| SetNotificationPreferences { p_weekly_summary: Some(on), ..Default::default() })}
            {admin.then(|| switch("quota", "when a quota is nearly used up", |on| SetNotificationPreferences { p_quota: Some(on), ..Default::default() }))}
            {said(trouble)}
            <Webhooks admin/>
            <Recent/>
        </section>
    }
    .into_any()
}

/// What a webhook can be sent, and the words for it; the last is for administrators.
const KINDS: [(&str, &str); 3] = [
    ("run_completed", "a run completed"),
    ("run_failed", "a run failed"),
    ("quota", "a quota is nearly used up"),
];

/// What was sent lately, waits, or was given up, and why.
#[component]
fn Recent() -> impl IntoView {
    let sent = use_rows(|| Some("/api/v_notifications?order=created_at.desc&limit=5".into()));
    super::keep(sent);
    let lines = |list: &[Row]| {
        list.iter()
            .map(|row| {
                let (mark, word) = match row.text("state").as_str() {
                    "sent" => ("completed", "sent"),
                    "given_up" => ("failed", "given up"),
                    _ => ("queued", "waiting"),
                };
                let by = if row.maybe_text("webhook_id").is_some_and(|w| !w.is_empty()) { "webhook" } else { "e-mail" };
                let attempts = row.whole("attempts").unwrap_or(0);
                let why = row.maybe_text("last_error").filter(|_| word != "sent").unwrap_or_default();
                view! {
                    <tr data-testid="notification" data-state=row.text("state") data-kind=row.text("kind")>
                        <th scope="row" class="card-title">{row.text("kind").replace('_', " ")}</th>
                        <td class="card-figure" data-label="By">{by}</td>
                        <td class="card-figure" data-label="State"><span class="status" data-status=mark>{word}</span></td>
                        <td class="number">{at(row, "created_at")}</td>
                        <td class="wrap">{(attempts > 1).then(|| format!("{attempts} attempts. "))}{why}</td>
                    </tr>
                }
            })
            .collect_view()
    };
    when_there(
        sent,
        1,
        || ().into_any(),
        move |list| {
            view! {
            <h3 class="below">"Lately"</h3>
            <table class="data-table" data-testid="sent">
                <caption class="visually-hidden">"Notifications lately"</caption>
                <thead><tr><th scope="col">"About"</th><th scope="col">"By"</th><th scope="col">"State"</th><th scope="col" class="number">"Since "<span class="unit">"UTC"</span></th><th scope="col">"Why not"</th></tr></thead>
                <tbody>{lines(&list)}</tbody>
            </table>
        }
        .into_any()
        },
    )
}

#[component]
fn Webhooks(admin: bool) -> impl IntoView {
    let webhooks = use_rows(|| Some("/api/v_webhooks?order=created_at.desc&limit=100".into()));
    super::keep(webhooks);
    let (url, runs) = (RwSignal::new(String::new()), RwSignal::new("own".to_owned()));
    let kinds = RwSignal::new(BTreeSet::from(["run_completed", "run_failed"]));
    let offered = KINDS.iter().take(if admin { 3 } else { 2 }).map(|&(kind, words)| {
        let flip = move |on: bool| kinds.update(|k| if on { k.insert(kind); } else { k.remove(kind); });
        view! {
            <label class="check">
                <input type="checkbox" data-testid=format!("webhook-{kind}") prop:checked=move || kinds.with(|k| k.contains(kind)) on:change=move |e| flip(event_target_checked(&e))/>
                {format!(" {words}")}
            </label>
        }
    }).collect_view();
    let made = RwSignal::new(None::<String>);
    let trouble = RwSignal::new(None::<Trouble>);
    let submit = move |event: SubmitEvent| {
        event.prevent_default();
        trouble.set(None);
        let wanted = CreateWebhook {
            p_url: url.get_untracked().trim().to_owned(),
            p_kinds: kinds.with_untracked(|k| k.iter().map(|kind| (*kind).to_owned()).collect()),
            p_runs: if runs.get_untracked() == "all" { WebhookRuns::All } else { WebhookRuns::Own },
        };
        spawn_local(async move {
            match api::command("create_webhook", &wanted).await {
                Ok(reply) => {
                    made.try_set(reply.keys.get("secret").and_then(Value::as_str).map(str::to_owned));
                    url.try_set(String::new());
                    webhooks.reload();
                }
                Err(error) => {
                    trouble.try_set(Some(error));
                }
            }
        });
    };
    view! {
        <h3 class="below">"Webhooks"</h3>
        <form class="form-grid" on:submit=submit>
            <label class="field span-6"><span class="field-label">"Address"</span><input class="control key" type="url" required placeholder="https://" data-testid="webhook-url" bind:value=url/></label>
            <label class="field span-3"><span class="field-label">"Of"</span>
                <select class="control" data-testid="webhook-runs" on:change=move |e| runs.set(event_target_value(&e))><option value="own">"runs I started"</option><option value="all">"all I may see"</option></select>
            </label>
            <div class="field span-3"><span class="field-label">"\u{a0}"</span><button type="submit" class="button" data-testid="add-webhook">"Add"</button></div>
            <fieldset class="field span-12 checks-line"><legend class="visually-hidden">"When"</legend>{offered}</fieldset>
        </form>
        {said(trouble)}
        {move || made.get().map(|secret| view! {
            <div class="command-head"><span class="meta">"the secret that signs its messages; shown once"</span><CopyButton text=Signal::stored(secret.clone())/></div>
            <pre class="command" tabindex="0" data-testid="webhook-secret">{secret}</pre>
        })}
        {when_there(webhooks, 1, || ().into_any(), move |list| webhook_rows(&list, webhooks))}
    }
    .into_any()
}

fn webhook_rows(list: &[Row], webhooks: Rows) -> AnyView {
    let now = now_ms();
    let lines = list.iter().map(|row| {
        let id = StoredValue::new(row.text("webhook_id"));
        let state = row.millis("disabled_at").map_or("in use".to_owned(), |at| format!("off since {}", moment(at, now)));
        view! {
            <tr data-testid="webhook">
                <th scope="row" class="card-title key">{row.text("host")}</th>
                <td class="card-figure" data-label="For">{row.list("kinds").join(", ").replace('_', " ")}</td>
                <td class="card-figure" data-label="Of">{row.text("runs")}</td>
                <td>{state}</td>
                <td>
                    <CommandButton word="Test" command="test_notification" arguments=Callback::new(move |()| TestNotification { p_webhook_id: Some(id.get_value()) }) done=Done::new(|_| ()) testid="test-webhook"/>
                    <CommandButton word="Remove" command="remove_webhook" arguments=Callback::new(move |()| RemoveWebhook { p_webhook_id: id.get_value() }) done=Done::new(move |_| webhooks.reload()) testid="remove-webhook"/>
                </td>
            </tr>
        }
    });
    view! {
        <table class="data-table">
            <caption class="visually-hidden">"Webhooks"</caption>
            <thead><tr><th scope="col">"To"</th><th scope="col">"For"</th><th scope="col">"Of"</th><th scope="col">"State"</th><th scope="col"><span class="visually-hidden">"Test or remove"</span></th></tr></thead>
            <tbody>{lines.collect_view()}</tbody>
        </table>
    }
    .into_any()
}

/// When something was, or the sign for nothing.
pub(super) fn at(row: &Row, column: &str) -> String {
    row.millis(column).map_or_else(|| ABSENT.to_owned(), |at| moment(at, now_ms()))
}
