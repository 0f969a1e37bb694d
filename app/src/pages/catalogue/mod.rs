//! Catalogue: what workloads are made of, with where each fact comes from, and what the figures mean. What is shown is in
//! the URL.

mod clone_form;
mod entry;
mod listing;
mod set;
mod set_diff;

use events::first_page;
use leptos::prelude::*;

use crate::browser::address::Address;
use crate::browser::page::Page;
use crate::browser::remote::{Rows, keep_live, use_rows, use_rows_counted};
use crate::format::count;
use crate::parts::PageHead;
use crate::parts::states::{Empty, once_there};
use crate::state::catalogue_view::{CatalogueView, LISTS, List, PAGE_SIZE};

/// The settings, read from the URL, and the way to change them.
#[derive(Clone, Copy)]
struct Settings {
    address: Address,
    view: Memo<CatalogueView>,
}

impl Settings {
    fn update(self, change: impl FnOnce(&mut CatalogueView)) {
        self.address.change(|query| {
            let mut view = CatalogueView::read(query);
            change(&mut view);
            view.write(query);
        });
    }

    /// Another choice among the entries: from the first page on.
    fn choose(self, change: impl FnOnce(&mut CatalogueView)) {
        self.update(|view| {
            change(view);
            view.page = 1;
        });
    }

    fn link(self, change: impl Fn(&mut CatalogueView) + Send + Sync + 'static) -> Signal<String> {
        self.address.link(move |query| {
            let mut view = CatalogueView::read(query);
            change(&mut view);
            view.write(query);
        })
    }

    fn is(self, word: &str) -> bool {
        self.view.with(|v| v.list.word == word)
    }
}

/// The page.
#[component]
pub fn Catalogue() -> impl IntoView {
    let address = Address::here();
    let settings = Settings { address, view: Memo::new(move |_| address.query.with(CatalogueView::read)) };
    let list = Memo::new(move |_| settings.view.with(|v| v.list));
    let tabs = LISTS.map(|list| {
        let href = address.link(move |query| CatalogueView::of_list(list).write(query));
        let here = move || settings.is(list.word).then_some("page");
        view! { <a href=href data-noscroll="" data-testid=format!("tab-{}", if list.word.is_empty() { "models" } else { list.word }) aria-current=here>{list.name}</a> }
    });
    view! {
        <PageHead title=first_page::CATALOGUE.title meta=|| first_page::CATALOGUE.words.into_any()/>
        <nav class="tabs tabs-page" aria-label="Catalogue">{tabs.collect_view()}</nav>
        {move || {
            let list = list.get();
            if list.view.is_empty() { listing::metrics(settings) } else { view! { <Listed settings list/> }.into_any() }
        }}
    }
    .into_any()
}

/// One list: what is looked for, the entry that is open, the entries.
#[component]
fn Listed(settings: Settings, list: List) -> impl IntoView {
    // The list is another when the tab is: what is asked meanwhile is of this one.
    let asked = move |ask: fn(&CatalogueView) -> Option<String>| {
        Memo::new(move |before: Option<&Option<String>>| {
            settings.view.with(|v| if v.list == list { ask(v) } else { before.cloned().flatten() })
        })
    };
    let (request, open) = (asked(CatalogueView::request), asked(CatalogueView::entry_request));
    let rows = use_rows_counted(move || request.get());
    let entry = use_rows(move || open.get());
    let org = Page::expect().org_now();
    if !org.is_empty() {
        // What the lists are made of, by the kinds of their streams.
        let kinds = "model+accelerator+framework+engine_args_set+config+tool+prompt_source";
        keep_live(rows, vec![format!("{org}:{kinds}")], |_, _| false, |_| true);
    }
    view! {
        <Filters settings list rows/>
        <Show when=move || settings.view.with(|v| v.entry.is_some())>
            {entry::panel(settings, list, entry)}
        </Show>
        {once_there(rows, 12, move || nothing(settings), move || listing::table(settings, list, rows))}
        <Foot settings rows/>
    }
    .into_any()
}

fn nothing(settings: Settings) -> AnyView {
    (move || {
        let narrowed = settings
            .view
            .with(|v| !v.find.is_empty() || !v.framework.is_empty() || !v.version.is_empty() || v.only);
        if narrowed {
            view! {
                <Empty words="Nothing in the catalogue fits.">
                    <button type="button" class="button" on:click=move |_| settings.choose(|v| {
                        *v = CatalogueView::of_list(v.list);
                    })>"Show all"</button>
                </Empty>
            }
            .into_any()
        } else {
            view! { <Empty words="Nothing of this kind in the catalogue yet."/> }.into_any()
        }
    })
    .into_any()
}

#[component]
fn Filters(settings: Settings, list: List, rows: Rows) -> impl IntoView {
    let of_framework = matches!(list.word, "arguments" | "sets");
    let frameworks = use_rows(move || {
        of_framework.then(|| "/api/v_frameworks?select=framework_code,framework_version&order=framework_code.asc,framework_version.asc&limit=500".to_owned())
    });
    let codes = move || {
        let mut codes: Vec<String> = frameworks.all().iter().map(|r| r.text("framework_code")).collect();
        codes.dedup();
        codes
    };
    let versions = move || {
        let framework = settings.view.with(|v| v.framework.clone());
        let of = |r: &crate::row::Row| {
            (r.text("framework_code") == framework).then(|| r.text("framework_version"))
        };
        frameworks.all().iter().filter_map(of).collect::<Vec<String>>()
    };
    let only = if list.word == "sets" { "Verified" } else { "Needs approval" };
    let counts = move || {
        rows.total.get().map(|n| format!("{} {}", count(n as i64), if n == 1 { "entry" } else { "entries" }))
    };
    view! {
        <div class="filters" role="group" aria-label="Filters" data-testid="filters">
            <label class="filter"><b>"find"</b>
                <input class="filter-input" type="search" data-testid="find" aria-label="Find" prop:value=move || settings.view.with(|v| v.find.clone()) on:change=move |e| { let text = event_target_value(&e); settings.choose(|v| v.find = text) }/>
            </label>
            {of_framework.then(|| view! {
                <label class="filter"><b>"framework"</b>
                    <select class="filter-input" data-testid="framework" on:change=move |e| { let code = event_target_value(&e); settings.choose(|v| { v.framework = code; v.version.clear(); }) }>
                        <option value="" selected=move || settings.view.with(|v| v.framework.is_empty())>"any"</option>
                        {move || codes().into_iter().map(|code| { let is = code.clone(); view! { <option value=code.clone() selected=move || settings.view.with(|v| v.framework == is)>{code.clone()}</option> } }).collect_view()}
                    </select>
                </label>
                <button type="button" class="button" data-testid="only" aria-pressed=move || settings.view.with(|v| v.only).to_string() on:click=move |_| settings.choose(|v| v.only = !v.only)>{only}</button>
            })}
            {(list.word == "arguments").then(|| view! {
                <label class="filter"><b>"version"</b>
                    <select class="filter-input" data-testid="version" on:change=move |e| { let version = event_target_value(&e); settings.choose(|v| v.version = version) }>
                        <option value="" selected=move || settings.view.with(|v| v.version.is_empty())>"any"</option>
                        {move || versions().into_iter().map(|version| { let is = version.clone(); view! { <option value=version.clone() selected=move || settings.view.with(|v| v.version == is)>{version.clone()}</option> } }).collect_view()}
                    </select>
                </label>
            })}
            <span class="push meta" data-testid="result-count">{counts}</span>
        </div>
    }
    .into_any()
}

#[component]
fn Foot(settings: Settings, rows: Rows) -> impl IntoView {
    let page = move || settings.view.with(|v| v.page);
    let total = move || rows.total.get().unwrap_or(0);
    let words = move || {
        let shown = rows.rows.with(|r| r.as_ref().map_or(0, Vec::len));
        let first = (page() - 1) * PAGE_SIZE;
        (shown > 0).then(|| {
            format!(
                "{}–{} of {}",
                count(first as i64 + 1),
                count((first + shown) as i64),
                count(total().max(first + shown) as i64)
            )
        })
    };
    let go = move |step: isize| settings.update(|v| v.page = v.page.saturating_add_signed(step).max(1));
    let pages = move || total().div_ceil(PAGE_SIZE).max(1);
    view! {
        <p class="table-foot">
            <span data-testid="row-range">{words}</span>
            <Show when=move || { pages() > 1 }>
                <button type="button" class="figure-toggle" disabled=move || page() == 1 on:click=move |_| go(-1)>"Previous"</button>
                <button type="button" class="figure-toggle" data-testid="next" disabled=move || { page() >= pages() } on:click=move |_| go(1)>"Next"</button>
            </Show>
        </p>
    }
    .into_any()
}
