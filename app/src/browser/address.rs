//! The address of the view: read as a query, changed in place.

use leptos::prelude::*;

use crate::browser::route::{NavigateOptions, use_location, use_navigate};
use crate::state::query::Query;

type Go = Box<dyn Fn(&str, NavigateOptions)>;

/// The address; copied freely.
#[derive(Clone, Copy)]
pub struct Address {
    /// The part after the `?`.
    pub query: Memo<Query>,
    path: Memo<String>,
    go: StoredValue<Go, LocalStorage>,
}

impl Address {
    /// The address of the component that asks.
    pub fn here() -> Self {
        let location = use_location();
        let navigate = use_navigate();
        Self {
            query: Memo::new(move |_| location.search.with(|s| Query::parse(s))),
            path: location.pathname,
            go: StoredValue::new_local(Box::new(move |to, options| navigate(to, options))),
        }
    }

    /// Changes the address; the way back leads to the one before.
    pub fn change(self, change: impl FnOnce(&mut Query)) {
        self.go(change, false);
    }

    /// Changes the address in place: for what changes often, such as zoom and selection.
    pub fn replace(self, change: impl FnOnce(&mut Query)) {
        self.go(change, true);
    }

    fn go(self, change: impl FnOnce(&mut Query), replace: bool) {
        let before = self.query.get_untracked();
        let mut query = before.clone();
        change(&mut query);
        if query == before {
            return;
        }
        let to = format!("{}{}", self.path.get_untracked(), query.write());
        let options = NavigateOptions { scroll: false, replace };
        self.go.with_value(|go| go(&to, options));
    }

    /// The link to this view with a change.
    pub fn link(self, change: impl Fn(&mut Query) + Send + Sync + 'static) -> Signal<String> {
        Signal::derive(move || {
            let mut query = self.query.get();
            change(&mut query);
            format!("{}{}", self.path.get(), query.write())
        })
    }
}
