//! What every part of the page shares: who reads, the live stream, the theme.

use events::access::Role;
use events::api::Session;
use leptos::prelude::*;
use wasm_bindgen_futures::spawn_local;

use super::api::{self, Trouble};
use super::colours::Colours;
use super::first::First;
use super::live::Live;
use super::{store, stored};

/// The shared state; copied freely.
#[derive(Clone, Copy)]
pub struct Page {
    /// Who reads; nothing before the first answer.
    pub session: RwSignal<Option<Session>>,
    /// Why the session could not be read.
    pub trouble: RwSignal<Option<Trouble>>,
    /// The live stream.
    pub live: Live,
    /// The theme chosen here: `light` or `dark`; nothing follows the system.
    pub theme: RwSignal<Option<String>>,
    /// Whether the rail is narrow by choice; nothing follows the width.
    pub narrow: RwSignal<Option<bool>>,
    /// Whether the drawer is open.
    pub drawer_open: RwSignal<bool>,
    /// The command that a button asks once more about, with its arguments: a list that is drawn anew meanwhile asks on.
    pub asking: RwSignal<Option<String>>,
    /// The colours of natural keys.
    pub colours: Colours,
    /// What the page would ask first, answered with it.
    pub first: First,
}

impl Page {
    /// Makes the shared state and hands it to everything below.
    pub fn provide() -> Self {
        let page = Self {
            session: RwSignal::new(None),
            trouble: RwSignal::new(None),
            live: Live::new(),
            theme: RwSignal::new(stored("theme").filter(|t| t == "light" || t == "dark")),
            narrow: RwSignal::new(stored("rail").map(|r| r == "narrow")),
            drawer_open: RwSignal::new(false),
            asking: RwSignal::new(None),
            colours: Colours::new(),
            first: First::read(),
        };
        provide_context(page);
        match page.first.session() {
            Some(session) => page.take_session(session),
            None => page.read_session(),
        }
        page.colours.learn();
        Effect::new(move |_| {
            if page.live.doubted.get() > 0 {
                page.read_session();
            }
        });
        page
    }

    /// The shared state.
    ///
    /// # Panics
    /// Outside the page: a mistake in the program.
    pub fn expect() -> Self {
        expect_context()
    }

    /// Asks who reads.
    pub fn read_session(self) {
        self.first.forget();
        spawn_local(async move {
            match api::get::<Session>("/api/session", 0).await {
                Ok(session) => {
                    self.trouble.try_set(None);
                    self.take_session(session);
                }
                Err(trouble) => {
                    let again = trouble.may_pass();
                    self.trouble.try_set(Some(trouble));
                    if again {
                        set_timeout(move || self.read_session(), std::time::Duration::from_secs(2));
                    }
                }
            }
        });
    }

    fn take_session(self, mut session: Session) {
        self.live.begin(std::mem::take(&mut session.position));
        if self.session.try_get_untracked().flatten().as_ref() != Some(&session) {
            self.session.try_set(Some(session));
        }
    }

    /// The organisation worked in; empty for anonymous readers.
    pub fn org(self) -> String {
        self.session.with(|s| s.as_ref().and_then(|s| s.org.clone())).unwrap_or_default()
    }

    /// The organisation worked in, for a component that is made anew when the reader changes.
    pub fn org_now(self) -> String {
        untrack(|| self.org())
    }

    /// Whether somebody is signed in.
    pub fn signed_in(self) -> bool {
        self.session.with(|s| s.as_ref().is_some_and(|s| s.user.is_some()))
    }

    /// The role in the organisation worked in; nothing for anonymous readers.
    pub fn role(self) -> Option<Role> {
        self.session.with(|s| s.as_ref().and_then(|s| s.role))
    }

    /// Whether the reader has a role, or one above it, for a component that is made anew when the reader changes.
    pub fn may(self, role: Role) -> bool {
        untrack(|| self.role()).is_some_and(|own| own >= role)
    }

    /// Goes from light to dark and back, and keeps that.
    pub fn switch_theme(self) {
        let dark = match self.theme.get_untracked().as_deref() {
            Some(theme) => theme == "dark",
            None => window()
                .match_media("(prefers-color-scheme: dark)")
                .ok()
                .flatten()
                .is_some_and(|m| m.matches()),
        };
        let theme = if dark { "light" } else { "dark" };
        store("theme", Some(theme));
        self.theme.set(Some(theme.to_owned()));
    }
}
