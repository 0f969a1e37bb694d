//! Saved views: what the page is set to, under a name, for oneself or for the organisation.

use events::api::{RemoveView, SaveView};
use leptos::ev::SubmitEvent;
use leptos::prelude::*;
use wasm_bindgen_futures::spawn_local;

use crate::browser::api::{self, Trouble};
use crate::browser::page::Page;
use crate::browser::remote::{Rows, keep_live, use_rows};
use crate::browser::route::use_location;
use crate::frame::DRAWER_KEYS;
use crate::row::Row;
use crate::state::live;
use crate::state::query::Query;

/// The views saved of a page, and the present one to be saved. For those who are signed in.
#[component]
pub fn SavedViews(
    /// The page's path: `/reporting`.
    path: &'static str,
) -> impl IntoView {
    let page = Page::expect();
    let org = page.org_now();
    if org.is_empty() || !untrack(|| page.signed_in()) {
        return ().into_any();
    }
    let views = use_rows(move || {
        Some(format!("/api/v_saved_views?page=eq.{path}&order=name.asc,position.asc&limit=200"))
    });
    keep_live(views, vec![format!("{org}:saved_view")], |_, _| false, |e| live::kind(e) == "saved_view");
    let location = use_location();
    let here = Memo::new(move |_| location.search.with(|search| kept(search)));
    let trouble = RwSignal::new(None::<Trouble>);
    let of = move |shared: bool, title: &'static str| {
        let keys = Memo::new(move |_| {
            let all = views.all();
            all.iter().filter(|v| v.is("shared") == shared).map(|v| v.text("saved_view")).collect::<Vec<_>>()
        });
        view! {
            <Show when=move || keys.with(|k| !k.is_empty())>
                <h3 class="field-label">{title}</h3>
                <ul>
                    <For each=move || keys.get() key=Clone::clone let:key>
                        <Entry views key path here trouble/>
                    </For>
                </ul>
            </Show>
        }
    };
    view! {
        <details class="menu" data-testid="views">
            <summary class="button">
                "Views"
                {move || views.rows.with(|r| r.as_ref().map(Vec::len).filter(|n| *n > 0)).map(|n| format!(" {n}"))}
            </summary>
            <div class="menu-box views-box">
                {of(false, "Mine")}
                {of(true, "The organization’s")}
                <SaveForm path here trouble/>
                {move || trouble.get().map(|t| view! {
                    <p role="alert"><span class="status" data-status="failed">{t.error.message}</span>" "<span class="meta">{t.error.hint}</span></p>
                })}
            </div>
        </details>
    }
    .into_any()
}

/// What of an address is saved: everything but the drawer, which explains one number.
fn kept(search: &str) -> String {
    let mut query = Query::parse(search);
    for key in DRAWER_KEYS {
        query.set(key, None);
    }
    query.write().trim_start_matches('?').to_owned()
}

#[component]
fn Entry(
    views: Rows,
    key: String,
    path: &'static str,
    here: Memo<String>,
    trouble: RwSignal<Option<Trouble>>,
) -> impl IntoView {
    let live = Page::expect().live;
    let row = Memo::new(move |_| {
        views
            .rows
            .with(|r| r.iter().flatten().find(|v| v.text("saved_view") == key).cloned().unwrap_or_default())
    });
    let href = move || {
        row.with(|v| {
            let query = v.text("query");
            if query.is_empty() { path.to_owned() } else { format!("{path}?{query}") }
        })
    };
    let open = move || row.with(|v| here.with(|h| *h == v.text("query")));
    let remove = move |_| {
        let (p_view_code, p_shared) = row.with_untracked(|v: &Row| (v.text("view_code"), v.is("shared")));
        spawn_local(async move {
            let answer = api::command("remove_view", &RemoveView { p_view_code, p_shared }).await;
            take(answer.map(|reply| reply.position), live, views, trouble);
        });
    };
    view! {
        <li class="view-entry" data-testid="saved-view" data-code=row.with_untracked(|v| v.text("view_code"))>
            <a class="menu-entry" href=href data-noscroll="" aria-current=move || open().then_some("true")>{move || row.with(|v| v.text("name"))}</a>
            <button type="button" class="figure-toggle" data-testid="remove-view" aria-label=move || format!("Remove the view {}", row.with(|v| v.text("name"))) on:click=remove>"Remove"</button>
        </li>
    }
    .into_any()
}

#[component]
fn SaveForm(path: &'static str, here: Memo<String>, trouble: RwSignal<Option<Trouble>>) -> impl IntoView {
    let live = Page::expect().live;
    let (name, shared, busy) = (RwSignal::new(String::new()), RwSignal::new(false), RwSignal::new(false));
    let submit = move |event: SubmitEvent| {
        event.prevent_default();
        let p_name = name.with_untracked(|n| n.trim().to_owned());
        if p_name.is_empty() || busy.get_untracked() {
            return;
        }
        busy.set(true);
        let wanted = SaveView {
            p_name,
            p_view_code: None,
            p_page: path.to_owned(),
            p_query: here.get_untracked(),
            p_shared: shared.get_untracked(),
        };
        spawn_local(async move {
            let answer = api::command("save_view", &wanted).await;
            busy.try_set(false);
            match answer {
                Ok(reply) => {
                    live.must_reach(reply.position);
                    name.try_set(String::new());
                    trouble.try_set(None);
                }
                Err(error) => {
                    trouble.try_set(Some(error));
                }
            }
        });
    };
    view! {
        <form class="view-form" on:submit=submit>
            <label class="field"><span class="field-label">"Save this view as"</span>
                <input class="control" maxlength="200" data-testid="view-name" bind:value=name/>
            </label>
            <label class="check"><input type="checkbox" data-testid="view-shared" bind:checked=shared/>" for the whole organization"</label>
            <button type="submit" class="button" data-testid="save-view" aria-disabled=move || (busy.get() || name.with(|n| n.trim().is_empty())).to_string()>"Save view"</button>
        </form>
    }
    .into_any()
}

fn take(
    answer: Result<i64, Trouble>,
    live: crate::browser::live::Live,
    views: Rows,
    trouble: RwSignal<Option<Trouble>>,
) {
    match answer {
        Ok(position) => {
            live.must_reach(position);
            views.reload();
            trouble.try_set(None);
        }
        Err(error) => {
            trouble.try_set(Some(error));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::kept;

    #[test]
    fn a_view_is_saved_without_its_drawer() {
        assert_eq!(
            kept("?sort=ttft_p99_ms&drawer=proof&job=a/b/c/1/d&metric=x&tab=cost"),
            "sort=ttft_p99_ms&tab=cost"
        );
        assert_eq!(kept(""), "");
    }
}
