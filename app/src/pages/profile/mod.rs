//! Profile: who is signed in, the password, sessions, API and Hugging Face tokens, notifications, signing out.

mod hf;
mod told;

use crate::browser::route::NavigateOptions;
use crate::browser::route::use_navigate;
use events::api::{ChangeName, ChangePassword, CreateApiToken, RevokeApiToken, RevokeSession};
use leptos::ev::SubmitEvent;
use leptos::prelude::*;
use serde_json::{Value, json};
use wasm_bindgen_futures::spawn_local;

use crate::browser::api::{self, Trouble};
use crate::browser::now_ms;
use crate::browser::page::Page;
use crate::browser::remote::{Rows, keep_live, use_rows};
use crate::format::{ABSENT, moment};
use crate::parts::states::{Empty, when_there};
use crate::parts::{CommandButton, CopyButton, Done, PageHead};
use crate::row::Row;
use crate::state::live;

/// The page.
#[component]
pub fn Profile() -> impl IntoView {
    let page = Page::expect();
    let navigate = use_navigate();
    if !untrack(|| page.signed_in()) {
        return view! {
            <PageHead title="Visitor"/>
            <Empty words="Sign in to see your organization's projects and to run benchmarks."/>
        }
        .into_any();
    }
    let session = page.session.get_untracked();
    let admin = session.as_ref().and_then(|s| s.role) == Some(events::access::Role::Admin);
    let role = session.as_ref().and_then(|s| s.role).map_or("", |r| r.as_str());
    let facts = [
        ("Account", session.as_ref().and_then(|s| s.user.clone()).unwrap_or_default()),
        ("Role", role.to_owned()),
        ("Control plane", session.as_ref().map(|s| s.version.clone()).unwrap_or_default()),
    ];
    let leave = move |command: &'static str| {
        let navigate = navigate.clone();
        move |_| {
            let navigate = navigate.clone();
            spawn_local(async move {
                // Whatever the answer, this page forgets who read.
                let _ = api::call::<Value>(command, &json!({})).await;
                page.live.restart();
                page.read_session();
                navigate("/sign-in", NavigateOptions::default());
            });
        }
    };
    let (sign_out, everywhere) = (leave("sign_out"), leave("sign_out_everywhere"));
    view! {
        <PageHead title=Signal::derive(move || page.session.with(|s| s.as_ref().and_then(|s| s.name.clone()).unwrap_or_else(|| "Profile".into())))>
            <button type="button" class="button" data-testid="sign-out" on:click=sign_out>"Sign out"</button>
        </PageHead>
        <div class="grid">
            <div class="span-8 stack">
                <Tokens/>
                <hf::HfTokens admin/>
                <told::Notifications admin/>
                <Sessions everywhere/>
            </div>
            <div class="span-4 stack">
                <section aria-labelledby="account">
                    <div class="section-head"><h2 id="account">"Account"</h2></div>
                    <dl class="definitions definitions-section">
                        <dt>"Organization"</dt><dd><a class="link key" href="/organization" data-testid="to-organization">{page.org_now()}</a></dd>
                        {facts.map(|(n, v)| view! { <dt>{n}</dt><dd>{v}</dd> }).collect_view()}
                    </dl>
                </section>
                <Name/>
                <Password/>
            </div>
        </div>
    }
    .into_any()
}

/// Keeps rows about the reader's own account live.
fn keep(rows: Rows) {
    let org = Page::expect().org_now();
    keep_live(rows, vec![format!("{org}:access")], |_, _| false, |e| live::kind(e) == "access");
}

fn said(trouble: RwSignal<Option<Trouble>>) -> impl Fn() -> Option<AnyView> + Copy {
    move || {
        trouble.get().map(|t| {
            view! { <p role="alert"><span class="status" data-status="failed">{t.error.message}</span>" "<span class="meta">{t.error.hint}</span></p> }
                .into_any()
        })
    }
}

#[component]
fn Name() -> impl IntoView {
    let page = Page::expect();
    let name = RwSignal::new(
        page.session.with_untracked(|s| s.as_ref().and_then(|s| s.name.clone()).unwrap_or_default()),
    );
    let arguments = Callback::new(move |()| ChangeName { p_name: name.get_untracked() });
    view! {
        <section aria-labelledby="name">
            <div class="section-head"><h2 id="name">"Name"</h2><span class="meta">"shown to others"</span></div>
            <div class="actions name-form">
                <input class="control" aria-label="Name" maxlength="200" data-testid="my-name" bind:value=name/>
                <CommandButton word="Change" command="change_name" arguments done=Done::new(move |_| page.read_session()) testid="change-name"/>
            </div>
        </section>
    }
    .into_any()
}

#[component]
fn Password() -> impl IntoView {
    let (now, next, again) =
        (RwSignal::new(String::new()), RwSignal::new(String::new()), RwSignal::new(String::new()));
    let (done, trouble) = (RwSignal::new(false), RwSignal::new(None::<Trouble>));
    let differs = Memo::new(move |_| again.with(|a| !a.is_empty() && next.with(|n| n != a)));
    let submit = move |event: SubmitEvent| {
        event.prevent_default();
        if differs.get_untracked() || next.with_untracked(|n| again.with_untracked(|a| a != n)) {
            return;
        }
        done.set(false);
        trouble.set(None);
        let wanted =
            ChangePassword { p_current_password: now.get_untracked(), p_new_password: next.get_untracked() };
        spawn_local(async move {
            match api::call::<Value>("change_password", &wanted).await {
                Ok(_) => {
                    for field in [now, next, again] {
                        field.try_set(String::new());
                    }
                    done.try_set(true);
                }
                Err(error) => {
                    trouble.try_set(Some(error));
                }
            }
        });
    };
    view! {
        <section aria-labelledby="password">
            <div class="section-head"><h2 id="password">"Password"</h2><span class="meta">"other sessions end"</span></div>
            <form class="stack-form" on:submit=submit>
                <label class="field"><span class="field-label">"Current password"</span><input class="control" type="password" required autocomplete="current-password" data-testid="password-now" bind:value=now/></label>
                <label class="field"><span class="field-label">"New password"</span><input class="control" type="password" required minlength="10" autocomplete="new-password" data-testid="password-next" bind:value=next/></label>
                <label class="field"><span class="field-label">"New password again"</span><input class="control" type="password" required autocomplete="new-password" data-testid="password-again" aria-invalid=move || differs.get().to_string() bind:value=again/></label>
                <div class="actions">
                    <button type="submit" class="button" data-testid="change-password" aria-disabled=move || differs.get().to_string()>"Change password"</button>
                    <span class="meta" role="status" data-testid="password-words">{move || if differs.get() { "the two differ" } else if done.get() { "changed" } else { "" }}</span>
                </div>
                {said(trouble)}
            </form>
        </section>
    }
    .into_any()
}

#[component]
fn Sessions(everywhere: impl Fn(leptos::ev::MouseEvent) + 'static) -> impl IntoView {
    let page = Page::expect();
    let sessions =
        use_rows(|| Some("/api/v_sessions?order=last_used_at.desc.nullslast,created_at.desc".into()));
    keep(sessions);
    view! {
        <section aria-labelledby="sessions" data-testid="sessions">
            <div class="section-head">
                <h2 id="sessions">"Sessions"</h2><span class="meta">"where you are signed in; ending the one you use signs you out"</span>
                <div class="actions push"><button type="button" class="figure-toggle" data-testid="sign-out-everywhere" on:click=everywhere>"Sign out everywhere"</button></div>
            </div>
            {when_there(sessions, 2, || ().into_any(), move |list| session_rows(&list, sessions, page))}
        </section>
    }
    .into_any()
}

fn session_rows(list: &[Row], sessions: Rows, page: Page) -> AnyView {
    let now = now_ms();
    let at =
        |row: &Row, column: &str| row.millis(column).map_or_else(|| ABSENT.to_owned(), |at| moment(at, now));
    let own = page.session.with(|s| s.as_ref().and_then(|s| s.session_id.clone()));
    let lines = list.iter().map(|row| {
        let here = row.maybe_text("session_id") == own;
        let id = StoredValue::new(row.text("session_id"));
        let arguments = Callback::new(move |()| RevokeSession { p_session_id: id.get_value() });
        view! {
            <tr data-testid="session" data-session=row.text("session_id")>
                <th scope="row" class="card-title number">{at(row, "created_at")}{here.then(|| view! { " "<span class="status" data-status="running" data-testid="this-browser">"this browser"</span> })}</th>
                <td class="number card-figure" data-label="Last used">{at(row, "last_used_at")}</td>
                <td class="card-figure" data-label="Signed in by">{row.text("method")}</td>
                <td class="key">{row.text("org")}</td>
                <td class="number">{at(row, "expires_at")}</td>
                <td><CommandButton word="End" command="revoke_session" arguments done=Done::new(move |_| { sessions.reload(); page.read_session(); }) testid="end-session"/></td>
            </tr>
        }
    });
    view! {
        <table class="data-table">
            <caption class="visually-hidden">"Sessions"</caption>
            <thead><tr><th scope="col" class="number">"Since "<span class="unit">"UTC"</span></th><th scope="col" class="number">"Last used "<span class="unit">"UTC"</span></th><th scope="col">"By"</th><th scope="col">"Organization"</th><th scope="col" class="number">"Until "<span class="unit">"UTC"</span></th><th scope="col"><span class="visually-hidden">"End"</span></th></tr></thead>
            <tbody>{lines.collect_view()}</tbody>
        </table>
    }
    .into_any()
}

#[component]
fn Tokens() -> impl IntoView {
    let tokens = use_rows(|| Some("/api/v_api_tokens?order=created_at.desc&limit=200".into()));
    keep(tokens);
    let name = RwSignal::new(String::new());
    let scope = RwSignal::new("read".to_owned());
    let days = RwSignal::new("90".to_owned());
    let made = RwSignal::new(None::<String>);
    let trouble = RwSignal::new(None::<Trouble>);
    let submit = move |event: SubmitEvent| {
        event.prevent_default();
        trouble.set(None);
        let request = CreateApiToken {
            p_name: name.get_untracked(),
            p_scopes: vec![scope.get_untracked()],
            p_expires_in_days: days.get_untracked().parse().unwrap_or(90),
        };
        spawn_local(async move {
            match api::command("create_api_token", &request).await {
                Ok(reply) => {
                    let token =
                        reply.keys.get("token").and_then(Value::as_str).unwrap_or_default().to_owned();
                    made.try_set(Some(token));
                    name.try_set(String::new());
                    tokens.reload();
                }
                Err(error) => {
                    made.try_set(None);
                    trouble.try_set(Some(error));
                }
            }
        });
    };
    view! {
        <section aria-labelledby="tokens" data-testid="tokens">
            <div class="section-head"><h2 id="tokens">"API tokens"</h2><span class="meta">"for scripts; a token is shown once"</span></div>
            <form class="form-grid" on:submit=submit>
                <label class="field span-5"><span class="field-label">"What it is for"</span><input class="control" required maxlength="200" data-testid="token-name" bind:value=name/></label>
                <label class="field span-3"><span class="field-label">"May"</span>
                    <select class="control" data-testid="token-scope" on:change=move |e| scope.set(event_target_value(&e))>
                        <option value="read">"read"</option><option value="write">"read and write"</option><option value="admin">"administer"</option>
                    </select>
                </label>
                <label class="field span-2"><span class="field-label">"Days"</span><input class="control" inputmode="numeric" data-testid="token-days" bind:value=days/></label>
                <div class="field span-2"><span class="field-label">"\u{a0}"</span><button type="submit" class="button" data-testid="make-token">"Make token"</button></div>
            </form>
            {said(trouble)}
            {move || made.get().map(|token| view! {
                <div class="command-head"><span class="meta">"copy it now; only its hash is kept"</span><CopyButton text=Signal::stored(token.clone())/></div>
                <pre class="command" tabindex="0" data-testid="token">{token}</pre>
            })}
            {when_there(tokens, 2, || view! { <p class="meta one-line">"No token yet."</p> }.into_any(), move |list| token_rows(&list, tokens))}
        </section>
    }
    .into_any()
}

fn token_rows(list: &[Row], tokens: Rows) -> AnyView {
    let now = now_ms();
    let at =
        |row: &Row, column: &str| row.millis(column).map_or_else(|| ABSENT.to_owned(), |at| moment(at, now));
    let lines = list.iter().map(|row| {
        let id = StoredValue::new(row.text("token_id"));
        let good = row.text("state") == "good";
        let arguments = Callback::new(move |()| RevokeApiToken { p_token_id: id.get_value() });
        view! {
            <tr data-testid="api-token" data-state=row.text("state")>
                <th scope="row" class="card-title">{row.text("name")}</th>
                <td class="card-figure" data-label="May">{row.list("scopes").join(", ")}</td>
                <td>{row.maybe_text("user_name").unwrap_or_else(|| ABSENT.to_owned())}</td>
                <td class="card-figure" data-label="State">{row.text("state")}</td>
                <td class="number">{at(row, "last_used_at")}</td>
                <td class="number card-figure" data-label="Until">{at(row, "expires_at")}</td>
                <td>{good.then(|| view! { <CommandButton word="Revoke" sure="Scripts that use it stop working. Sure?" command="revoke_api_token" arguments done=Done::new(move |_| tokens.reload()) testid="revoke-token"/> })}</td>
            </tr>
        }
    });
    view! {
        <table class="data-table">
            <caption class="visually-hidden">"API tokens"</caption>
            <thead><tr><th scope="col">"For"</th><th scope="col">"May"</th><th scope="col">"Whose"</th><th scope="col">"State"</th><th scope="col" class="number">"Last used "<span class="unit">"UTC"</span></th><th scope="col" class="number">"Until "<span class="unit">"UTC"</span></th><th scope="col"><span class="visually-hidden">"Revoke"</span></th></tr></thead>
            <tbody>{lines.collect_view()}</tbody>
        </table>
    }
    .into_any()
}
