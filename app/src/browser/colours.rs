//! The colours of natural keys on this page: learnt from the log's order, remembered in the browser.

use events::first_page;
use leptos::prelude::*;

use super::page::Page;
use super::remote::use_rows;
use super::{store, stored};
use crate::state::colours::{Colour, Kind, Slots};

/// The colours; nothing before it is known in which order keys came.
#[derive(Clone, Copy)]
pub struct Colours(RwSignal<Option<Slots>>);

/// Where the browser keeps them, each organisation's for itself.
fn place(org: &str) -> String {
    format!("colours:{org}")
}

impl Colours {
    /// Colours that are not known yet.
    pub fn new() -> Self {
        Self(RwSignal::new(None))
    }

    /// The colour of a key; grey until the order of keys is known. A key never seen before gets the next colour.
    pub fn of(self, kind: Kind, key: &str) -> Colour {
        self.0.track();
        let found = self.0.try_update_untracked(|slots| slots.as_mut().map(|slots| slots.colour(kind, key)));
        let Some(Some((colour, new))) = found else { return Colour::default() };
        if new {
            self.remember();
        }
        colour
    }

    fn remember(self) {
        let org = Page::expect().org_now();
        self.0.with_untracked(|slots| {
            if let Some(slots) = slots {
                store(&place(&org), Some(&slots.write()));
            }
        });
    }

    /// Learns which models and servers there are, in the order of the log, once it is known who reads.
    pub fn learn(self) {
        let page = Page::expect();
        let org =
            Memo::new(move |_| page.session.with(|s| s.as_ref().map(|s| s.org.clone().unwrap_or_default())));
        let ask = move |request: &'static str| move || org.get().map(|_| request.to_owned());
        let workloads = use_rows(ask(first_page::MODELS.path));
        let servers = use_rows(ask(first_page::HOSTS.path));
        Effect::new(move |_| {
            let Some(org) = org.get() else { return };
            // Where one of the two cannot be read, the colours go by what the page shows.
            let read = |rows: super::remote::Rows| {
                rows.rows.with(Option::is_some) || rows.trouble.with(Option::is_some)
            };
            if !read(workloads) || !read(servers) {
                return;
            }
            let mut slots = stored(&place(&org)).map(|text| Slots::read(&text)).unwrap_or_default();
            let models: Vec<String> = workloads.all().iter().map(|w| w.text("model_code")).collect();
            let hosts: Vec<String> = servers
                .all()
                .iter()
                .map(|s| format!("{}/{}", s.text("config_code"), s.text("hostname")))
                .collect();
            slots.learn(Kind::Model, models.iter().map(String::as_str));
            slots.learn(Kind::Server, hosts.iter().map(String::as_str));
            self.0.set(Some(slots));
            self.remember();
        });
    }
}

impl Default for Colours {
    fn default() -> Self {
        Self::new()
    }
}
