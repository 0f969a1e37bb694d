//! What stands where there is nothing to show: loading, empty, in trouble.

use events::access::Role;
use events::first_page;
use leptos::prelude::*;

use crate::browser::api::Trouble;
use crate::browser::focus::Focus;
use crate::browser::page::Page;
use crate::browser::remote::{Rows, use_rows};
use crate::browser::route::use_location;
use crate::row::Row;
use crate::state::query::Query;

/// Grey bars of about the final size.
#[component]
pub fn Skeleton(
    /// How many.
    #[prop(default = 4)]
    lines: usize,
) -> impl IntoView {
    view! {
        <div aria-busy="true" data-testid="skeleton">
            <span class="visually-hidden">"Loading"</span>
            {(0..lines).map(|_| view! { <div class="skeleton"></div> }).collect_view()}
        </div>
    }
}

/// A page that is on its way: its heading, where the address alone says it, above grey bars. It stands where the page's own
/// will.
#[component]
pub fn Coming() -> impl IntoView {
    let head = first_page::head(&untrack(|| use_location().pathname.get()));
    view! {
        {head.map(|head| view! {
            <div class="page-head"><h1>{head.title}</h1><p class="meta">{head.words}</p></div>
        })}
        <Skeleton lines=6/>
    }
    .into_any()
}

/// Nothing here yet, and what to do next.
#[component]
pub fn Empty(
    /// What is not here.
    #[prop(into)]
    words: String,
    /// What to do next.
    #[prop(optional)]
    children: Option<Children>,
) -> impl IntoView {
    let page = Page::expect();
    let visitor = untrack(|| !page.signed_in());
    view! {
        <div class="empty" data-testid="empty">
            <p>{words}</p>
            {visitor.then(|| view! { <p><a class="button button-primary" href=sign_in_here()>"Sign in"</a>" You see what is public."</p> })}
            {children.map(|c| view! { <div class="actions">{c()}</div> })}
        </div>
    }
    .into_any()
}

/// What the reader may not do: what it takes, and who can give it.
#[component]
pub fn Forbidden(
    /// What it is: `make projects`.
    what: &'static str,
    /// The role it takes.
    role: Role,
) -> impl IntoView {
    let page = Page::expect();
    if !untrack(|| page.signed_in()) {
        return view! {
            <div class="empty" data-testid="forbidden">
                <p>{format!("Visitors see what is public. Sign in to {what}.")}</p>
                <div class="actions"><a class="button button-primary" href=sign_in_here()>"Sign in"</a></div>
            </div>
        }
        .into_any();
    }
    let words = format!("It takes the role {} to {what}.", role.as_str());
    view! {
        <div class="empty" data-testid="forbidden">
            <p><span class="status" data-status="failed">"not yours to do"</span></p>
            <p>{words}</p>
            <Administrators/>
            <div class="actions"><a class="button" href="/">"Dashboard"</a></div>
        </div>
    }
    .into_any()
}

/// The reader's own role, and who can change it.
#[component]
fn Administrators() -> impl IntoView {
    let page = Page::expect();
    let (org, role) = (page.org_now(), untrack(|| page.role()));
    let found = use_rows(|| Some("/api/v_members?role=eq.admin&order=since.asc&limit=5".to_owned()));
    let own = match role {
        Some(role) => format!("Yours in {org} is {}.", role.as_str()),
        None => "You have none here.".to_owned(),
    };
    let names = move || {
        let names: Vec<String> = found.all().iter().filter_map(|m| m.maybe_text("name")).collect();
        (!names.is_empty()).then(|| format!(" An administrator can give you another: {}.", names.join(", ")))
    };
    view! { <p data-testid="own-role">{own}{names}</p> }.into_any()
}

/// The address of the page to sign in, and back here.
pub fn sign_in_here() -> String {
    let location = window().location();
    let here = [location.pathname(), location.search()].map(Result::unwrap_or_default).concat();
    let mut query = Query::default();
    query.push("next", &here);
    format!("/sign-in{}", query.write())
}

/// An error: its code, what happened, what to do.
pub fn trouble_view(trouble: &Trouble, retry: impl Fn() + 'static) -> AnyView {
    let page = Page::expect();
    let error = trouble.error.clone();
    let sign_in = matches!(trouble.status, 401 | 403 | 404) && !untrack(|| page.signed_in());
    let passing = trouble.may_pass();
    // Refused to somebody who is known: their role, and who can change it.
    let role = (trouble.status == 403 && !sign_in).then(|| view! { <Administrators/> });
    view! {
        <div class="empty" role="alert" data-testid="trouble" data-code=error.code.clone()>
            <p>
                <span class="status" data-status="failed">{error.message.clone()}</span>
            </p>
            <p class="quiet">{error.details.clone()}</p>
            <p>{error.hint.clone()}</p>
            {role}
            <p class="meta">"code " <code>{error.code.clone()}</code></p>
            <div class="actions">
                <button type="button" class="button" on:click=move |_| retry()>"Try again"</button>
                {sign_in.then(|| view! { <a class="button button-primary" href=sign_in_here()>"Sign in"</a> })}
                {passing.then(|| view! { <span class="meta">"tried again by itself"</span> })}
            </div>
        </div>
    }
    .into_any()
}

/// Shows rows once they are there: a skeleton before, the error if there is one, `empty` for none.
/// `show` is called anew whenever the rows change; the keyboard stays where it was.
pub fn when_there(
    rows: Rows,
    lines: usize,
    empty: impl Fn() -> AnyView + Send + Sync + 'static,
    show: impl Fn(Vec<Row>) -> AnyView + Send + Sync + 'static,
) -> AnyView {
    (move || {
        if let Some(list) = rows.rows.get() {
            if let Some(focus) = Focus::held() {
                focus.give_back_soon();
            }
            return if list.is_empty() { empty() } else { show(list) };
        }
        match rows.trouble.get() {
            Some(trouble) => trouble_view(&trouble, move || rows.reload()),
            None => view! { <Skeleton lines/> }.into_any(),
        }
    })
    .into_any()
}

/// As [`when_there`], but built once: what is inside follows the rows by itself, so that focus and scroll stay.
pub fn once_there(
    rows: Rows,
    lines: usize,
    empty: impl Fn() -> AnyView + Send + Sync + 'static,
    show: impl Fn() -> AnyView + Send + Sync + 'static,
) -> AnyView {
    // 0 waiting, 1 empty, 2 there.
    let state =
        Memo::new(move |_| rows.rows.with(|r| r.as_ref().map_or(0, |r| if r.is_empty() { 1 } else { 2 })));
    (move || match state.get() {
        2 => show(),
        1 => empty(),
        _ => match rows.trouble.get() {
            Some(trouble) => trouble_view(&trouble, move || rows.reload()),
            None => view! { <Skeleton lines/> }.into_any(),
        },
    })
    .into_any()
}
