//! An invitation's link: what it leads to, and accepting it, with an account that exists or a new one. The link's secret
//! stands behind the `#` and reaches no server's log.

use crate::browser::route::NavigateOptions;
use crate::browser::route::use_navigate;
use events::api::{AcceptInvitation, DescribeInvitation, InvitationShown, OidcStarted, StartOidcSignIn};
use leptos::ev::SubmitEvent;
use leptos::prelude::*;
use serde_json::Value;
use wasm_bindgen_futures::spawn_local;

use crate::browser::api::{self, Trouble};
use crate::browser::now_ms;
use crate::browser::page::Page;
use crate::format::{millis, moment};
use crate::parts::PageHead;
use crate::parts::states::{Empty, Skeleton, trouble_view};

/// The page.
#[component]
pub fn Invitation() -> impl IntoView {
    let token = window().location().hash().unwrap_or_default().trim_start_matches('#').to_owned();
    if token.is_empty() {
        return view! {
            <PageHead title="Invitation"/>
            <Empty words="An invitation's link ends in # and a secret: open it as it was sent."/>
        }
        .into_any();
    }
    let shown = RwSignal::new(None::<Result<InvitationShown, Trouble>>);
    let token = StoredValue::new(token);
    let ask = move || {
        shown.set(None);
        spawn_local(async move {
            let asked = DescribeInvitation { p_token: token.get_value() };
            let answer = api::call::<InvitationShown>("describe_invitation", &asked).await;
            shown.try_set(Some(answer));
        });
    };
    ask();
    view! {
        <PageHead title="Invitation"/>
        {move || match shown.get() {
            None => view! { <Skeleton lines=3/> }.into_any(),
            Some(Err(trouble)) => trouble_view(&trouble, ask),
            Some(Ok(found)) => view! { <Accept found token/> }.into_any(),
        }}
    }
    .into_any()
}

#[component]
fn Accept(found: InvitationShown, token: StoredValue<String>) -> impl IntoView {
    let page = Page::expect();
    let navigate = use_navigate();
    let signed_in = untrack(|| page.signed_in());
    let (email, password, name) =
        (RwSignal::new(String::new()), RwSignal::new(String::new()), RwSignal::new(String::new()));
    let (busy, trouble) = (RwSignal::new(false), RwSignal::new(None::<Trouble>));
    let submit = move |event: SubmitEvent| {
        event.prevent_default();
        if busy.get_untracked() {
            return;
        }
        busy.set(true);
        trouble.set(None);
        let word = |signal: RwSignal<String>| {
            let text = signal.get_untracked();
            (!signed_in && !text.trim().is_empty()).then_some(text)
        };
        let wanted = AcceptInvitation {
            p_token: token.get_value(),
            p_email: word(email),
            p_password: word(password),
            p_name: word(name),
        };
        let navigate = navigate.clone();
        spawn_local(async move {
            let answer = api::call::<Value>("accept_invitation", &wanted).await;
            busy.try_set(false);
            match answer {
                Ok(_) => {
                    page.live.restart();
                    page.read_session();
                    navigate("/", NavigateOptions::default());
                }
                Err(error) => {
                    trouble.try_set(Some(error));
                }
            }
        });
    };
    let provider = move |_| {
        let wanted = StartOidcSignIn { p_return_to: "/".to_owned(), p_invitation: Some(token.get_value()) };
        spawn_local(async move {
            match api::call::<OidcStarted>("start_oidc_sign_in", &wanted).await {
                Ok(started) => {
                    let _ = window().location().set_href(&started.authorization_url);
                }
                Err(error) => {
                    trouble.try_set(Some(error));
                }
            }
        });
    };
    let until = millis(&found.expires_at.to_string()).map(|at| moment(at, now_ms())).unwrap_or_default();
    view! {
        <form class="sign-in" data-testid="invitation-form" on:submit=submit>
            <p>"You are invited to "<b>{found.org_name.clone()}</b>{(found.org != found.org_name).then(|| view! { " "<span class="key">{found.org.clone()}</span> })}" as "<b>{found.role.as_str()}</b>"."</p>
            <p class="meta">{format!("Good until {until} UTC, once.")}</p>
            {(!signed_in).then(|| view! {
                <label class="field"><span class="field-label">"E-mail"</span><input class="control" type="email" required autocomplete="email" data-testid="email" bind:value=email/></label>
                <label class="field"><span class="field-label">"Password"</span><input class="control" type="password" required autocomplete="current-password" data-testid="password" bind:value=password/><small>"of your account; a new account gets it, 10 characters at least"</small></label>
                <label class="field"><span class="field-label">"Name"</span><input class="control" autocomplete="name" data-testid="name" bind:value=name/><small>"for a new account"</small></label>
            })}
            <div class="actions">
                <button type="submit" class="button button-primary" data-testid="accept" aria-disabled=move || busy.get().to_string()>"Accept"</button>
                {(!signed_in).then(|| page.session.with_untracked(|s| s.as_ref().and_then(|s| s.oidc.clone()))).flatten().map(|word| view! {
                    <button type="button" class="button" data-testid="oidc" on:click=provider>{word}</button>
                })}
            </div>
            {move || trouble.get().map(|t| view! { <p role="alert"><span class="status" data-status="failed">{t.error.message}</span>" "<span class="meta">{t.error.hint}</span></p> })}
        </form>
    }
    .into_any()
}
