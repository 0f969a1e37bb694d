//! What stands where there is nothing to show: loading, empty, in trouble.

use leptos::prelude::*;

use crate::browser::api::Trouble;
use crate::browser::page::Page;
use crate::browser::remote::Rows;
use crate::row::Row;

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
    view! {
        <div class="empty" data-testid="empty">
            <p>{words}</p>
            {children.map(|c| view! { <div class="actions">{c()}</div> })}
        </div>
    }
}

/// What only those may do who are signed in.
#[component]
pub fn Forbidden(
    /// What they may do: `make projects`.
    what: &'static str,
) -> impl IntoView {
    view! {
        <div class="empty" data-testid="forbidden">
            <p>{format!("Visitors see what is public. Sign in to {what}.")}</p>
            <div class="actions"><a class="button button-primary" href="/sign-in">"Sign in"</a></div>
        </div>
    }
}

/// An error: its code, what happened, what to do.
pub fn trouble_view(trouble: &Trouble, retry: impl Fn() + 'static) -> AnyView {
    let page = Page::expect();
    let error = trouble.error.clone();
    let sign_in = matches!(trouble.status, 401 | 403 | 404) && !untrack(|| page.signed_in());
    let passing = trouble.may_pass();
    view! {
        <div class="empty" role="alert" data-testid="trouble" data-code=error.code.clone()>
            <p>
                <span class="status" data-status="failed">{error.message.clone()}</span>
            </p>
            <p class="quiet">{error.details.clone()}</p>
            <p>{error.hint.clone()}</p>
            <p class="meta">"code " <code>{error.code.clone()}</code></p>
            <div class="actions">
                <button type="button" class="button" on:click=move |_| retry()>"Try again"</button>
                {sign_in.then(|| view! { <a class="button button-primary" href="/sign-in">"Sign in"</a> })}
                {passing.then(|| view! { <span class="meta">"tried again by itself"</span> })}
            </div>
        </div>
    }
    .into_any()
}

/// Shows rows once they are there: a skeleton before, the error if there is one, `empty` for none.
/// `show` is called anew whenever the rows change.
pub fn when_there(
    rows: Rows,
    lines: usize,
    empty: impl Fn() -> AnyView + Send + Sync + 'static,
    show: impl Fn(Vec<Row>) -> AnyView + Send + Sync + 'static,
) -> AnyView {
    (move || {
        if let Some(list) = rows.rows.get() {
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
