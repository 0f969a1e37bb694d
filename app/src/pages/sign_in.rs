//! Signing in.

use events::api::{OidcStarted, Session, SignIn, StartOidcSignIn};
use leptos::ev::SubmitEvent;
use leptos::prelude::*;
use wasm_bindgen_futures::spawn_local;

use crate::browser::api::{self, Trouble};
use crate::browser::page::Page;
use crate::browser::route::{Location, NavigateOptions, use_location, use_navigate};
use crate::state::query::Query;

/// Where one goes on after signing in: a path of ours.
fn next(location: Location) -> String {
    Query::parse(&location.search.get_untracked())
        .get("next")
        .filter(|n| n.starts_with('/') && !n.starts_with("//"))
        .unwrap_or("/")
        .to_owned()
}

/// The page to sign in.
#[component]
pub fn SignInPage() -> impl IntoView {
    let page = Page::expect();
    let navigate = use_navigate();
    let location = use_location();
    let (email, password) = (RwSignal::new(String::new()), RwSignal::new(String::new()));
    let trouble = RwSignal::new(None::<Trouble>);
    let busy = RwSignal::new(false);
    document().set_title("Sign in · Benchtrail");

    let submit = move |event: SubmitEvent| {
        event.prevent_default();
        if busy.get_untracked() {
            return;
        }
        busy.set(true);
        let navigate = navigate.clone();
        let next = next(location);
        spawn_local(async move {
            let arguments = SignIn { p_email: email.get_untracked(), p_password: password.get_untracked() };
            let answer = api::call::<Session>("sign_in", &arguments).await;
            busy.try_set(false);
            match answer {
                Ok(mut session) => {
                    page.live.restart();
                    page.live.begin(std::mem::take(&mut session.position));
                    page.session.try_set(Some(session));
                    navigate(&next, NavigateOptions::default());
                }
                Err(error) => {
                    trouble.try_set(Some(error));
                }
            }
        });
    };
    let provider = move |_| {
        let wanted = StartOidcSignIn { p_return_to: next(location), p_invitation: None };
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
    view! {
        <form class="sign-in" on:submit=submit data-testid="sign-in">
            <p class="rail-brand">"Benchtrail"</p>
            <h1>"Sign in"</h1>
            <p class="quiet">"Measures how AI models are served, and proves every number it shows."</p>
            <label class="field">
                <span class="field-label">"E-mail"</span>
                <input class="control" type="email" name="email" autocomplete="username" required autofocus data-testid="email" bind:value=email/>
            </label>
            <label class="field">
                <span class="field-label">"Password"</span>
                <input
                    class="control"
                    type="password"
                    name="password"
                    autocomplete="current-password"
                    required
                    data-testid="password"
                    bind:value=password
                />
            </label>
            <div role="alert" data-testid="sign-in-trouble">
                {move || {
                    trouble
                        .get()
                        .map(|t| {
                            view! {
                                <p>
                                    <span class="status" data-status="failed">{t.error.message}</span>
                                </p>
                                <p class="meta">{t.error.hint}</p>
                            }
                        })
                }}
            </div>
            <div class="actions">
                <button type="submit" class="button button-primary" aria-disabled=move || busy.get().to_string() data-testid="submit">
                    {move || if busy.get() { "Signing in" } else { "Sign in" }}
                </button>
                <a class="button button-quiet" href="/">"Look at what is public"</a>
            </div>
            {move || page.session.with(|s| s.as_ref().and_then(|s| s.oidc.clone())).map(|word| view! {
                <div class="actions"><button type="button" class="button" data-testid="oidc" on:click=provider>{word}</button></div>
            })}
        </form>
    }
    .into_any()
}
