//! Hugging Face tokens: for gated models. Sealed where they are kept, given to the agent of a job that needs one, and
//! never shown again.

use events::access::SecretScope;
use events::api::{RemoveHfToken, SetHfToken};
use leptos::ev::SubmitEvent;
use leptos::prelude::*;
use wasm_bindgen_futures::spawn_local;

use super::said;
use super::told::at;
use crate::browser::api::{self, Trouble};
use crate::browser::page::Page;
use crate::browser::remote::{Rows, use_rows};
use crate::format::ABSENT;
use crate::parts::states::when_there;
use crate::parts::{CommandButton, Done};
use crate::row::Row;

/// The panel.
#[component]
pub(super) fn HfTokens(admin: bool) -> impl IntoView {
    let live = Page::expect().live;
    let secrets = use_rows(|| Some("/api/v_secrets?order=scope.asc&limit=100".into()));
    super::keep(secrets);
    let (token, scope) = (RwSignal::new(String::new()), RwSignal::new("user".to_owned()));
    let trouble = RwSignal::new(None::<Trouble>);
    let submit = move |event: SubmitEvent| {
        event.prevent_default();
        trouble.set(None);
        let wanted = SetHfToken {
            p_token: token.get_untracked().trim().to_owned(),
            p_scope: if scope.get_untracked() == "organization" {
                SecretScope::Organization
            } else {
                SecretScope::User
            },
        };
        spawn_local(async move {
            match api::command("set_hf_token", &wanted).await {
                Ok(reply) => {
                    live.must_reach(reply.position);
                    token.try_set(String::new());
                    secrets.reload();
                }
                Err(error) => {
                    trouble.try_set(Some(error));
                }
            }
        });
    };
    view! {
        <section aria-labelledby="hf" data-testid="hf-tokens">
            <div class="section-head"><h2 id="hf">"Hugging Face tokens"</h2><span class="meta">"for gated models; sealed, never shown again"</span></div>
            <form class="form-grid" on:submit=submit>
                <label class="field span-6"><span class="field-label">"Token"</span><input class="control key" type="password" required autocomplete="off" placeholder="hf_…" data-testid="hf-token" bind:value=token/></label>
                <label class="field span-3"><span class="field-label">"For"</span>
                    <select class="control" data-testid="hf-scope" on:change=move |e| scope.set(event_target_value(&e))>
                        <option value="user">"my runs"</option>
                        {admin.then(|| view! { <option value="organization">"everybody’s runs"</option> })}
                    </select>
                </label>
                <div class="field span-3"><span class="field-label">"\u{a0}"</span><button type="submit" class="button" data-testid="save-hf">"Keep"</button></div>
            </form>
            {said(trouble)}
            {when_there(secrets, 1, || view! { <p class="meta one-line">"None yet: models that ask for a licence to be accepted need one."</p> }.into_any(), move |list| rows(&list, secrets, admin))}
        </section>
    }
    .into_any()
}

fn rows(list: &[Row], secrets: Rows, admin: bool) -> AnyView {
    let lines = list.iter().map(|row| {
        let shared = row.text("scope") == "organization";
        let p_scope = if shared { SecretScope::Organization } else { SecretScope::User };
        view! {
            <tr data-testid="hf-kept" data-scope=row.text("scope")>
                <th scope="row" class="card-title">{if shared { "everybody’s runs" } else { "my runs" }}</th>
                <td class="key card-figure" data-label="Fingerprint">{row.text("fingerprint")}</td>
                <td>{row.maybe_text("created_by_name").unwrap_or_else(|| ABSENT.to_owned())}</td>
                <td class="number">{at(row, "created_at")}</td>
                <td class="number card-figure" data-label="Last used">{at(row, "last_released_at")}</td>
                <td>{(admin || !shared).then(|| view! { <CommandButton word="Remove" sure="Runs of gated models stop working. Sure?" command="remove_hf_token" arguments=Callback::new(move |()| RemoveHfToken { p_scope }) done=Done::new(move |_| secrets.reload()) testid="remove-hf"/> })}</td>
            </tr>
        }
    });
    view! {
        <table class="data-table">
            <caption class="visually-hidden">"Hugging Face tokens"</caption>
            <thead><tr><th scope="col">"For"</th><th scope="col">"Fingerprint"</th><th scope="col">"By"</th><th scope="col" class="number">"Since "<span class="unit">"UTC"</span></th><th scope="col" class="number">"Last used "<span class="unit">"UTC"</span></th><th scope="col"><span class="visually-hidden">"Remove"</span></th></tr></thead>
            <tbody>{lines.collect_view()}</tbody>
        </table>
    }
    .into_any()
}
