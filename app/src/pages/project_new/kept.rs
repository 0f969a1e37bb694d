//! What was typed and not saved yet: kept in this browser, so that a reload or a closed tab loses nothing.

use std::time::Duration;

use events::project::ProjectVisibility;
use leptos::prelude::*;
use serde::{Deserialize, Serialize};

use super::Form;
use super::draft::Draft;
use crate::browser::{store, stored};

/// The form as it is kept.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Typed {
    name: String,
    visibility: ProjectVisibility,
    workloads: Vec<Draft>,
}

/// What is kept of a form; copied freely.
#[derive(Clone, Copy)]
pub(super) struct Kept {
    form: Form,
    /// Where; nothing for a form that is not kept.
    place: Option<StoredValue<String>>,
    /// The form holds what was kept.
    restored: RwSignal<bool>,
    /// The form is filled: from now on what changes was typed.
    began: RwSignal<bool>,
}

impl Kept {
    /// Fills the form with what was kept, and keeps what is typed from now on. A form that begins as a copy of
    /// something (`copies`) is not kept: its address makes it again.
    pub(super) fn of(form: Form, org: &str, copies: bool) -> Self {
        let place = (!copies).then(|| {
            let project = form.existing.map(|code| format!("/{}", code.get_value())).unwrap_or_default();
            StoredValue::new(format!("draft:{org}{project}"))
        });
        let kept = Self { form, place, restored: RwSignal::new(false), began: RwSignal::new(false) };
        let found = place
            .and_then(|place| stored(&place.get_value()))
            .and_then(|text| serde_json::from_str::<Typed>(&text).ok())
            .filter(|typed| !typed.workloads.is_empty());
        if let Some(typed) = found {
            kept.fill(typed);
            kept.restored.set(true);
        }
        let keep = debounce(Duration::from_millis(400), move |typed: Typed| kept.keep(&typed));
        let keep = StoredValue::new_local(keep);
        Effect::new(move |before: Option<Option<Typed>>| {
            let typed = kept.typed();
            if !kept.began.get() {
                return None;
            }
            // The first is what the form was filled with.
            if before.flatten().is_some_and(|before| before != typed) {
                keep.update_value(|keep| keep(typed.clone()));
            }
            Some(typed)
        });
        kept
    }

    fn typed(self) -> Typed {
        let form = self.form;
        Typed {
            name: form.name.get(),
            visibility: form.visibility.get(),
            workloads: form.cards.with(|cards| cards.iter().map(|c| c.draft.get()).collect()),
        }
    }

    fn fill(self, typed: Typed) {
        self.form.name.set(typed.name);
        self.form.visibility.set(typed.visibility);
        // Cards of their own: one with the number of another would be taken for it, and show what that one holds.
        let first = self.form.cards.with_untracked(|c| c.iter().map(|c| c.id).max().unwrap_or(0)) + 1;
        let cards =
            typed.workloads.into_iter().zip(first..).map(|(draft, id)| self.form.card(id, draft)).collect();
        self.form.cards.set(cards);
        self.form.active.set(first);
    }

    fn keep(self, typed: &Typed) {
        if let (Some(place), Ok(text)) = (self.place, serde_json::to_string(typed)) {
            store(&place.get_value(), Some(&text));
        }
    }

    /// The form is filled.
    pub(super) fn begin(self) {
        if !self.began.get_untracked() {
            self.began.set(true);
        }
    }

    /// Nothing is kept any more: it was saved, or is not wanted.
    pub(super) fn forget(self) {
        self.began.try_set(false);
        self.restored.try_set(false);
        if let Some(place) = self.place {
            store(&place.get_value(), None);
        }
    }

    fn start_afresh(self) {
        self.forget();
        self.fill(Typed {
            name: self.form.existing.map(|code| code.get_value()).unwrap_or_default(),
            visibility: ProjectVisibility::Organization,
            workloads: vec![Draft::default()],
        });
    }
}

/// Says that the form holds what was typed last time.
#[component]
pub(super) fn Restored(kept: Kept) -> impl IntoView {
    view! {
        <Show when=move || kept.restored.get()>
            <p class="notice" role="status" data-testid="restored">
                "What you typed last time is back; it is kept in this browser alone until you save. "
                <button type="button" class="figure-toggle" data-testid="start-afresh" on:click=move |_| kept.start_afresh()>"Start afresh"</button>
            </p>
        </Show>
    }
}
