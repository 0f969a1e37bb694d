//! Profile: who is signed in, API tokens, signing out.

use events::api::CreateApiToken;
use leptos::ev::SubmitEvent;
use leptos::prelude::*;
use serde_json::{Value, json};
use wasm_bindgen_futures::spawn_local;

use crate::browser::api;
use crate::browser::page::Page;
use crate::browser::route::{NavigateOptions, use_navigate};
use crate::parts::states::Empty;
use crate::parts::{CopyButton, PageHead};

/// The page.
#[component]
pub fn Profile() -> impl IntoView {
    let page = Page::expect();
    let navigate = use_navigate();
    if !untrack(|| page.signed_in()) {
        return view! {
            <PageHead title="Visitor"/>
            <Empty words="You see what is public. Sign in to see your organisation's projects and to run benchmarks.">
                <a class="button button-primary" href="/sign-in">"Sign in"</a>
            </Empty>
        }
        .into_any();
    }
    let session = page.session.get_untracked();
    let role = session.as_ref().and_then(|s| s.role).map_or("", |r| r.as_str());
    let facts = [
        ("Name", session.as_ref().and_then(|s| s.name.clone()).unwrap_or_default()),
        ("Account", session.as_ref().and_then(|s| s.user.clone()).unwrap_or_default()),
        ("Organization", page.org_now()),
        ("Role", role.to_owned()),
        ("Control plane", session.as_ref().map(|s| s.version.clone()).unwrap_or_default()),
    ];
    let sign_out = move |_| {
        let navigate = navigate.clone();
        spawn_local(async move {
            // Whatever the answer, this page forgets who read.
            let _ = api::call::<Value>("sign_out", &json!({})).await;
            page.live.restart();
            page.read_session();
            navigate("/sign-in", NavigateOptions::default());
        });
    };
    view! {
        <PageHead title=page.session.with_untracked(|s| s.as_ref().and_then(|s| s.name.clone()).unwrap_or_else(|| "Profile".into()))>
            <button type="button" class="button" data-testid="sign-out" on:click=sign_out>"Sign out"</button>
        </PageHead>
        <dl class="definitions">{facts.map(|(n, v)| view! { <dt>{n}</dt><dd>{v}</dd> }).collect_view()}</dl>
        <Tokens/>
    }
    .into_any()
}

#[component]
fn Tokens() -> impl IntoView {
    let name = RwSignal::new(String::new());
    let scope = RwSignal::new("read".to_owned());
    let made = RwSignal::new(None::<Result<String, String>>);
    let submit = move |event: SubmitEvent| {
        event.prevent_default();
        spawn_local(async move {
            let request = CreateApiToken {
                p_name: name.get_untracked(),
                p_scopes: vec![scope.get_untracked()],
                p_expires_in_days: 90,
            };
            let answer = api::command("create_api_token", &request).await;
            made.try_set(Some(match answer {
                Ok(reply) => {
                    Ok(reply.keys.get("token").and_then(Value::as_str).unwrap_or_default().to_owned())
                }
                Err(trouble) => Err(trouble.error.message),
            }));
        });
    };
    view! {
        <section class="below" aria-labelledby="tokens">
            <div class="section-head"><h2 id="tokens">"API tokens"</h2><span class="meta">"for scripts; 90 days, shown once"</span></div>
            <form class="form-grid" on:submit=submit>
                <label class="field span-4"><span class="field-label">"What it is for"</span><input class="control" required bind:value=name/></label>
                <label class="field span-2"><span class="field-label">"May"</span>
                    <select class="control" on:change=move |e| scope.set(event_target_value(&e))>
                        <option value="read">"read"</option><option value="write">"read and write"</option><option value="admin">"administer"</option>
                    </select>
                </label>
                <div class="field span-2"><span class="field-label">"\u{a0}"</span><button type="submit" class="button">"Make token"</button></div>
            </form>
            {move || made.get().map(|made| match made {
                Ok(token) => view! {
                    <div class="command-head"><span class="meta">"copy it now; only its hash is kept"</span><CopyButton text=Signal::stored(token.clone())/></div>
                    <pre class="command" data-testid="token">{token}</pre>
                }.into_any(),
                Err(message) => view! { <p role="alert"><span class="status" data-status="failed">{message}</span></p> }.into_any(),
            })}
        </section>
    }
    .into_any()
}
