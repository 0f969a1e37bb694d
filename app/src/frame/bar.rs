//! The top bar: where one is, by natural keys; jump to a key; whether the page is live; the theme.

use leptos::prelude::*;

use crate::browser::live::Status;
use crate::browser::page::Page;
use crate::browser::route::{NavigateOptions, use_location, use_navigate};
use crate::format::count;
use crate::parts::states::sign_in_here;
use crate::state::query::{Query, encode};

/// The top bar.
#[component]
pub fn Bar() -> impl IntoView {
    let page = Page::expect();
    view! {
        <header class="bar">
            <Crumbs/>
            <Jump/>
            <Indicator/>
            <SignIn/>
            <button type="button" class="button button-quiet" data-testid="theme" on:click=move |_| page.switch_theme()>
                "Theme"
            </button>
        </header>
    }
    .into_any()
}

/// For visitors: the way in, and back here.
#[component]
fn SignIn() -> impl IntoView {
    let page = Page::expect();
    let location = use_location();
    let visitor = Memo::new(move |_| page.session.with(Option::is_some) && !page.signed_in());
    let href = move || {
        location.pathname.track();
        location.search.track();
        sign_in_here()
    };
    view! {
        <Show when=move || visitor.get()>
            <a class="button button-primary sign-in-here" href=href data-testid="sign-in-here">"Sign in"</a>
        </Show>
    }
    .into_any()
}

/// The steps from the organisation to here: word and link.
pub fn crumbs(org: &str, path: &str) -> Vec<(String, String)> {
    let parts: Vec<&str> = path.split('/').filter(|p| !p.is_empty()).collect();
    let mut crumbs =
        vec![(if org.is_empty() { "benchtrail".to_owned() } else { org.to_owned() }, "/".to_owned())];
    match parts.as_slice() {
        [] => crumbs.push(("dashboard".to_owned(), "/".to_owned())),
        ["projects", page @ ("new" | "import")] => {
            crumbs.push(("projects".to_owned(), "/projects".to_owned()));
            crumbs.push(((*page).to_owned(), path.to_owned()));
        }
        ["projects", owner, rest @ ..] if !rest.is_empty() => {
            crumbs[0] = ((*owner).to_owned(), "/projects".to_owned());
            for (place, part) in rest.iter().enumerate() {
                let word = if place == 2 { format!("run {part}") } else { (*part).to_owned() };
                crumbs.push((word, format!("/projects/{owner}/{}", rest[..=place].join("/"))));
            }
        }
        [first, ..] => crumbs.push(((*first).to_owned(), format!("/{first}"))),
    }
    crumbs
}

#[component]
fn Crumbs() -> impl IntoView {
    let page = Page::expect();
    let location = use_location();
    view! {
        <nav class="crumbs" aria-label="Breadcrumb" data-testid="crumbs">
            <ol>
                {move || {
                    let crumbs = crumbs(&page.org(), &location.pathname.get());
                    let last = crumbs.len() - 1;
                    crumbs
                        .into_iter()
                        .enumerate()
                        .map(|(place, (word, href))| {
                            if place == last {
                                view! { <li class="key" aria-current="page">{word}</li> }.into_any()
                            } else {
                                view! { <li class="key"><a href=href>{word}</a></li> }.into_any()
                            }
                        })
                        .collect_view()
                }}
            </ol>
        </nav>
    }
}

/// Where a typed key leads: a job, a run, a project, a position; other words go to the list of projects.
pub fn jump_target(typed: &str) -> Option<String> {
    let typed = typed.trim().trim_matches('/');
    if typed.is_empty() {
        return None;
    }
    let digits: String = typed.chars().filter(|c| !c.is_whitespace()).collect();
    if digits.chars().all(|c| c.is_ascii_digit()) {
        return Some(format!("/audit?drawer=event&position={digits}"));
    }
    let parts: Vec<&str> = typed.split('/').map(str::trim).collect();
    let path = match parts.as_slice() {
        ["project", rest @ ..] | ["workload", rest @ ..] | ["run", rest @ ..] | ["job", rest @ ..]
            if rest.len() > 1 =>
        {
            rest.to_vec()
        }
        ["server", ..] => return Some("/hardware".to_owned()),
        [first, rest @ ..] if !rest.is_empty() && !first.is_empty() => parts.clone(),
        _ => return Some(format!("/projects?q={}", encode(typed))),
    };
    Some(format!("/projects/{}", path.join("/")))
}

#[component]
fn Jump() -> impl IntoView {
    let navigate = use_navigate();
    let input = NodeRef::<leptos::html::Input>::new();
    let handle = window_event_listener(leptos::ev::keydown, move |event| {
        let plain = event.key() == "/" && !super::keys::is_typing();
        let chord = event.key() == "k" && (event.ctrl_key() || event.meta_key());
        if plain || chord {
            event.prevent_default();
            if let Some(input) = input.get_untracked() {
                let _ = input.focus();
            }
        }
    });
    on_cleanup(move || handle.remove());
    view! {
        <label class="jump">
            <span class="visually-hidden">"Jump to any key"</span>
            <input
                type="search"
                placeholder="Jump to any key"
                data-testid="jump"
                node_ref=input
                on:keydown=move |event| {
                    if event.key() != "Enter" {
                        return;
                    }
                    if let Some(target) = jump_target(&event_target_value(&event)) {
                        navigate(&target, NavigateOptions::default());
                    }
                }
            />
            <kbd>"/"</kbd>
        </label>
    }
}

#[component]
fn Indicator() -> impl IntoView {
    let live = Page::expect().live;
    let state = move || match live.status.get() {
        Status::AtHead => "live",
        Status::CatchingUp | Status::Connecting => "behind",
        Status::Reconnecting(_) | Status::Refused(_) => "broken",
    };
    let words = move || match live.status.get() {
        Status::AtHead => "Live at".to_owned(),
        Status::CatchingUp => "Catching up to".to_owned(),
        Status::Connecting => "Connecting".to_owned(),
        Status::Reconnecting(tries) => format!("Reconnecting, try {tries}"),
        Status::Refused(status) => refused_words(status).0.to_owned(),
    };
    let title = move || match live.status.get() {
        Status::AtHead => "At the head of the log: everything that happened is on the page",
        Status::CatchingUp => "Behind the head of the log: events are coming in",
        Status::Connecting => "Waiting for the live stream",
        Status::Reconnecting(_) => {
            "The live stream broke: what you see may be old. It resumes where it stopped."
        }
        Status::Refused(status) => refused_words(status).1,
    };
    let position = move || {
        let shown = matches!(live.status.get(), Status::AtHead | Status::CatchingUp) && live.head.get() > 0;
        shown.then(|| count(live.head.get()))
    };
    view! {
        <p class="live" data-testid="live" data-state=state title=title role="status" aria-live="off">
            <span>{words}</span>
            " "
            <b data-testid="live-position">{position}</b>
        </p>
    }
}

/// What a refused stream is called, and what it means.
fn refused_words(status: u16) -> (&'static str, &'static str) {
    match status {
        401 | 403 => (
            "Not signed in",
            "The control plane refuses the live stream to whom it does not know: what you see may be old. Sign in again.",
        ),
        429 => (
            "Asked to wait",
            "Too many streams or requests: what you see may be old. It is asked again when the control plane allows it.",
        ),
        _ => (
            "Refused, trying again",
            "The control plane cannot serve the live stream now: what you see may be old. It resumes where it stopped.",
        ),
    }
}

/// The address of this view with the drawer set so; the rest of the address stays.
pub fn drawer_href(path: &str, search: &str, pairs: &[(&str, &str)]) -> String {
    let mut query = Query::parse(search);
    for key in DRAWER_KEYS {
        query.set(key, None);
    }
    for (key, value) in pairs {
        query.set(key, Some(value));
    }
    format!("{path}{}", query.write())
}

/// The keys of the address that belong to the drawer.
pub const DRAWER_KEYS: [&str; 10] =
    ["drawer", "job", "metric", "position", "attempt", "source", "from-ms", "to-ms", "line", "mean"];

#[cfg(test)]
mod tests {
    use super::*;

    fn words(path: &str) -> Vec<String> {
        crumbs("acme", path).into_iter().map(|(word, _)| word).collect()
    }

    #[test]
    fn crumbs_are_natural_keys() {
        assert_eq!(
            words("/projects/acme/p1/w1/3/c8-isl512-osl256"),
            ["acme", "p1", "w1", "run 3", "c8-isl512-osl256"]
        );
        assert_eq!(words("/"), ["acme", "dashboard"]);
        assert_eq!(words("/projects/new"), ["acme", "projects", "new"]);
    }

    #[test]
    fn any_key_can_be_jumped_to() {
        assert_eq!(jump_target("job/acme/p/w/3/c8").as_deref(), Some("/projects/acme/p/w/3/c8"));
        assert_eq!(jump_target("acme/p/w").as_deref(), Some("/projects/acme/p/w"));
        assert_eq!(jump_target("184\u{202f}066").as_deref(), Some("/audit?drawer=event&position=184066"));
        assert_eq!(jump_target("llama").as_deref(), Some("/projects?q=llama"));
        assert_eq!(jump_target("  "), None);
    }

    #[test]
    fn the_drawer_leaves_the_rest_of_the_address_alone() {
        assert_eq!(
            drawer_href(
                "/reporting",
                "?status=completed&drawer=logs&source=tool",
                &[("drawer", "proof"), ("metric", "ttft_p50_ms")]
            ),
            "/reporting?status=completed&drawer=proof&metric=ttft_p50_ms"
        );
    }
}
