//! The organisation: who works in it, with what role; invitations; its name; the organisations of the reader.

use events::access::Role;
use events::api::{
    CreateInvitation, CreateOrganization, RemoveMember, RenameOrganization, RevokeInvitation, SetMemberRole,
    SwitchOrganization,
};
use leptos::ev::SubmitEvent;
use leptos::prelude::*;
use serde_json::Value;
use wasm_bindgen_futures::spawn_local;

use crate::browser::api::{self, Trouble};
use crate::browser::now_ms;
use crate::browser::page::Page;
use crate::browser::remote::{Rows, keep_live, use_rows};
use crate::format::{ABSENT, day, moment};
use crate::parts::states::{Empty, Forbidden, once_there, when_there};
use crate::parts::{CommandButton, CopyButton, Done, PageHead};
use crate::row::Row;
use crate::state::live;

/// The roles, in the order of what they may do, with what that is.
const ROLES: [(Role, &str); 3] = [
    (Role::Viewer, "reads what the organization may see"),
    (Role::Member, "also creates projects and executes runs"),
    (Role::Admin, "also manages servers, members and flags"),
];

fn role_of(word: &str) -> Role {
    ROLES.iter().map(|(role, _)| *role).find(|role| role.as_str() == word).unwrap_or(Role::Viewer)
}

/// The page.
#[component]
pub fn Organization() -> impl IntoView {
    let page = Page::expect();
    if !untrack(|| page.signed_in()) {
        return view! { <PageHead title="Organization"/><Forbidden what="see who works in an organization" role=Role::Viewer/> }.into_any();
    }
    let (me, admin) = page.session.with_untracked(|session| {
        let session = session.as_ref();
        let me = session.and_then(|s| s.user.clone()).unwrap_or_default();
        (me, session.and_then(|s| s.role) == Some(Role::Admin))
    });
    let org = page.org_now();
    let members = use_rows(|| Some("/api/v_members?order=since.asc&limit=1000".into()));
    let invitations =
        use_rows(move || admin.then(|| "/api/v_invitations?order=created_at.desc&limit=200".to_owned()));
    let organizations = use_rows(|| Some("/api/v_organizations?order=name.asc".into()));
    for rows in [members, invitations, organizations] {
        keep_live(rows, vec![format!("{org}:org")], |_, _| false, |e| live::kind(e) == "org");
    }
    let code = org.clone();
    let name = Memo::new(move |_| {
        organizations.all().iter().find(|o| o.text("org") == code).map(|o| o.text("name")).unwrap_or_default()
    });
    let title = org.clone();
    view! {
        <PageHead title=title meta=move || name.get().into_any()/>
        <div class="grid">
            <div class="span-8 stack">
                <section aria-labelledby="members">
                    <div class="section-head"><h2 id="members">"Members"</h2><span class="meta">{move || members.rows.with(|r| r.as_ref().map(Vec::len))}</span></div>
                    {once_there(members, 4, || ().into_any(), {
                        let me = me.clone();
                        move || view! { <Members members me=me.clone() admin/> }.into_any()
                    })}
                </section>
                {admin.then(|| view! { <Invitations invitations/> })}
            </div>
            <div class="span-4 stack">
                {admin.then(|| view! { <Rename name organizations/> })}
                <Organizations organizations here=org admin/>
            </div>
        </div>
    }
    .into_any()
}

#[component]
fn Members(members: Rows, me: String, admin: bool) -> impl IntoView {
    let trouble = RwSignal::new(None::<Trouble>);
    let keys = Memo::new(move |_| members.all().iter().map(|m| m.text("user_id")).collect::<Vec<_>>());
    view! {
        <table class="data-table" data-testid="members">
            <caption class="visually-hidden">"Members"</caption>
            <thead><tr><th scope="col">"Name"</th><th scope="col">"E-mail"</th><th scope="col">"Role"</th><th scope="col" class="number">"Since "<span class="unit">"UTC"</span></th><th scope="col"><span class="visually-hidden">"Remove"</span></th></tr></thead>
            <tbody>
                <For each=move || keys.get() key=Clone::clone let:user>
                    <Member members user me=me.clone() admin trouble/>
                </For>
            </tbody>
        </table>
        {move || trouble.get().map(|t| view! { <p role="alert"><span class="status" data-status="failed">{t.error.message}</span>" "<span class="meta">{t.error.hint}</span></p> })}
    }
    .into_any()
}

#[component]
fn Member(
    members: Rows,
    user: String,
    me: String,
    admin: bool,
    trouble: RwSignal<Option<Trouble>>,
) -> impl IntoView {
    let page = Page::expect();
    let live = page.live;
    let mine = user == me;
    let id = StoredValue::new(user.clone());
    let row = Memo::new(move |_| {
        id.with_value(|id| {
            members
                .rows
                .with(|r| r.iter().flatten().find(|m| m.text("user_id") == *id).cloned().unwrap_or_default())
        })
    });
    let name = move || row.with(|r| r.maybe_text("name").unwrap_or_else(|| r.text("user_id")));
    let choice = NodeRef::<leptos::html::Select>::new();
    let set = move |role: String| {
        let arguments = SetMemberRole { p_user_id: id.get_value(), p_role: role_of(&role) };
        spawn_local(async move {
            match api::command("set_member_role", &arguments).await {
                Ok(reply) => {
                    live.must_reach(reply.position);
                    trouble.try_set(None);
                }
                Err(error) => {
                    // Nothing changed: the choice shows again what holds.
                    if let (Some(Some(select)), Some(role)) =
                        (choice.try_get_untracked(), row.try_with_untracked(|r| r.text("role")))
                    {
                        select.set_value(&role);
                    }
                    trouble.try_set(Some(error));
                }
            }
            members.reload();
        });
    };
    let options = move || {
        let now = row.with(|r| r.text("role"));
        ROLES.map(|(role, about)| view! { <option value=role.as_str() title=about prop:selected=role.as_str() == now>{role.as_str()}</option> }).collect_view()
    };
    let remove = Callback::new(move |()| RemoveMember { p_user_id: id.get_value() });
    let done = Done::new(move |_| {
        members.reload();
        if mine {
            page.read_session();
        }
    });
    view! {
        <tr data-testid="member" data-user=user>
            <th scope="row" class="card-title">{name}{mine.then(|| view! { <span class="meta">" you"</span> })}</th>
            <td>{move || row.with(|r| r.maybe_text("email").unwrap_or_else(|| ABSENT.to_owned()))}</td>
            <td class="card-figure" data-label="Role">
                {if admin {
                    view! { <select node_ref=choice class="control control-role" aria-label=move || format!("Role of {}", name()) data-testid="member-role" on:change=move |e| set(event_target_value(&e))>{options}</select> }.into_any()
                } else {
                    view! { <span>{move || row.with(|r| r.text("role"))}</span> }.into_any()
                }}
            </td>
            <td class="number card-figure" data-label="Since">{move || row.with(|r| r.millis("since").map(|at| day(at, now_ms())))}</td>
            <td class="card-figure">
                {(admin || mine).then(|| view! {
                    <CommandButton word=if mine { "Leave" } else { "Remove" } sure="Nothing of what was made is lost. Sure?" command="remove_member" arguments=remove done testid="remove-member"/>
                })}
            </td>
        </tr>
    }
    .into_any()
}

#[component]
fn Invitations(invitations: Rows) -> impl IntoView {
    let live = Page::expect().live;
    let (role, email) = (RwSignal::new("member".to_owned()), RwSignal::new(String::new()));
    let made = RwSignal::new(None::<Result<String, Trouble>>);
    let submit = move |event: SubmitEvent| {
        event.prevent_default();
        let email = email.get_untracked();
        let wanted = CreateInvitation {
            p_role: role_of(&role.get_untracked()),
            p_expires_in_days: 7,
            p_email: (!email.trim().is_empty()).then(|| email.trim().to_owned()),
        };
        spawn_local(async move {
            let answer = api::command("create_invitation", &wanted).await;
            made.try_set(Some(answer.map(|reply| {
                live.must_reach(reply.position);
                invitations.reload();
                reply.keys.get("link").and_then(Value::as_str).unwrap_or_default().to_owned()
            })));
        });
    };
    view! {
        <section aria-labelledby="invitations" data-testid="invitations">
            <div class="section-head"><h2 id="invitations">"Invitations"</h2><span class="meta">"a link for one person, good for 7 days"</span></div>
            <form class="form-grid" on:submit=submit>
                <label class="field span-5"><span class="field-label">"For this e-mail only"</span><input class="control" type="email" placeholder="anybody with the link" data-testid="invite-email" bind:value=email/></label>
                <label class="field span-3"><span class="field-label">"Role"</span>
                    <select class="control" data-testid="invite-role" on:change=move |e| role.set(event_target_value(&e))>
                        {ROLES.map(|(r, about)| view! { <option value=r.as_str() title=about selected=r.as_str() == "member">{r.as_str()}</option> }).collect_view()}
                    </select>
                </label>
                <div class="field span-3"><span class="field-label">"\u{a0}"</span><button type="submit" class="button" data-testid="invite">"Make link"</button></div>
            </form>
            {move || made.get().map(|made| match made {
                Ok(link) => view! {
                    <div class="command-head"><span class="meta">"send it now; it is shown once"</span><CopyButton text=Signal::stored(link.clone())/></div>
                    <pre class="command" tabindex="0" data-testid="invitation-link">{link}</pre>
                }.into_any(),
                Err(t) => view! { <p role="alert"><span class="status" data-status="failed">{t.error.message}</span>" "<span class="meta">{t.error.hint}</span></p> }.into_any(),
            })}
            {when_there(invitations, 2, || view! { <p class="meta one-line">"Nobody was invited yet."</p> }.into_any(), move |list| invitation_rows(&list, invitations))}
        </section>
    }
    .into_any()
}

fn invitation_rows(list: &[Row], invitations: Rows) -> AnyView {
    let now = now_ms();
    let at =
        |row: &Row, column: &str| row.millis(column).map_or_else(|| ABSENT.to_owned(), |at| moment(at, now));
    let lines = list.iter().map(|row| {
        let id = StoredValue::new(row.text("invitation_id"));
        let open = row.text("state") == "open";
        let revoke = Callback::new(move |()| RevokeInvitation { p_invitation_id: id.get_value() });
        view! {
            <tr data-testid="invitation" data-state=row.text("state")>
                <th scope="row" class="card-title">{row.text("state")}</th>
                <td class="card-figure" data-label="Role">{row.text("role")}</td>
                <td>{row.maybe_text("created_by_name").unwrap_or_else(|| row.text("created_by"))}</td>
                <td>{row.maybe_text("accepted_by_name").unwrap_or_else(|| ABSENT.to_owned())}</td>
                <td class="number card-figure" data-label="Until">{at(row, "expires_at")}</td>
                <td>{open.then(|| view! { <CommandButton word="Withdraw" command="revoke_invitation" arguments=revoke done=Done::new(move |_| invitations.reload()) testid="revoke-invitation"/> })}</td>
            </tr>
        }
    });
    view! {
        <table class="data-table">
            <caption class="visually-hidden">"Invitations"</caption>
            <thead><tr><th scope="col">"State"</th><th scope="col">"Role"</th><th scope="col">"By"</th><th scope="col">"Accepted by"</th><th scope="col" class="number">"Until "<span class="unit">"UTC"</span></th><th scope="col"><span class="visually-hidden">"Withdraw"</span></th></tr></thead>
            <tbody>{lines.collect_view()}</tbody>
        </table>
    }
    .into_any()
}

#[component]
fn Rename(name: Memo<String>, organizations: Rows) -> impl IntoView {
    let typed = RwSignal::new(String::new());
    Effect::new(move |_| typed.set(name.get()));
    let arguments = Callback::new(move |()| RenameOrganization { p_name: typed.get_untracked() });
    view! {
        <section aria-labelledby="org-name">
            <div class="section-head"><h2 id="org-name">"Name"</h2></div>
            <div class="actions name-form">
                <input class="control" aria-label="Display name" maxlength="200" data-testid="org-name" bind:value=typed/>
                <CommandButton word="Rename" command="rename_organization" arguments done=Done::new(move |_| organizations.reload()) testid="rename-org"/>
            </div>
        </section>
    }
    .into_any()
}

/// The reader's organisations: one to work in, and for administrators a new one.
#[component]
fn Organizations(organizations: Rows, here: String, admin: bool) -> impl IntoView {
    let page = Page::expect();
    let made = RwSignal::new(String::new());
    let create = Callback::new(move |()| {
        let name = made.get_untracked();
        CreateOrganization { p_org_code: events::keys::code_from_name(&name), p_name: name }
    });
    let trouble = RwSignal::new(None::<Trouble>);
    let switch = move |org: String| {
        spawn_local(async move {
            match api::call::<Value>("switch_organization", &SwitchOrganization { p_org_code: org }).await {
                Ok(_) => {
                    page.live.restart();
                    page.read_session();
                }
                Err(error) => {
                    trouble.try_set(Some(error));
                }
            }
        });
    };
    view! {
        <section aria-labelledby="my-orgs" data-testid="organizations">
            <div class="section-head"><h2 id="my-orgs">"Your organizations"</h2></div>
            {when_there(organizations, 2, || view! { <Empty words="None."/> }.into_any(), move |list| {
                let lines = list.iter().map(|o| {
                    let code = o.text("org");
                    let now = code == here;
                    let to = code.clone();
                    let (name, role) = (o.text("name"), o.text("role"));
                    let words = if name == code { role } else { format!("{name} · {role}") };
                    view! {
                        <li class="view-entry" data-testid="organization" data-org=code.clone()>
                            <span><span class="key">{code.clone()}</span>" "<span class="meta">{words}</span></span>
                            {if now { view! { <span class="meta">"working here"</span> }.into_any() } else {
                                view! { <button type="button" class="figure-toggle" data-testid="switch-org" on:click=move |_| switch(to.clone())>"Work here"</button> }.into_any()
                            }}
                        </li>
                    }
                });
                view! { <ul class="plain-list">{lines.collect_view()}</ul> }.into_any()
            })}
            {move || trouble.get().map(|t| view! { <p role="alert"><span class="status" data-status="failed">{t.error.message}</span></p> })}
            {admin.then(|| view! {
                <div class="actions name-form">
                    <input class="control" aria-label="Name of a new organization" placeholder="A new organization" maxlength="200" data-testid="new-org-name" bind:value=made/>
                    <CommandButton word="Create" command="create_organization" arguments=create done=Done::new(move |_| { made.try_set(String::new()); organizations.reload(); }) testid="create-org"/>
                </div>
            })}
        </section>
    }
    .into_any()
}
