//! The answers that came with the page: what it would ask first. They hold until the page knows of anything later, and for
//! a few seconds at most.

use std::time::Duration;

use events::api::Session;
use events::first_page::{ELEMENT, FirstAnswers};
use leptos::prelude::*;

use crate::row::Row;

/// By then the page has begun: what is opened later is asked for.
const HOLDS: Duration = Duration::from_secs(10);

/// Rows, and how many there are in all where that was asked.
pub type Brought = (Vec<Row>, Option<usize>);

/// The answers that came with the page; copied freely.
#[derive(Clone, Copy)]
pub struct First(StoredValue<Option<FirstAnswers<Vec<Row>>>, LocalStorage>);

impl First {
    /// Reads what came with the page; nothing where nothing did.
    pub fn read() -> Self {
        let element = document().get_element_by_id(ELEMENT);
        let json = element.as_ref().and_then(|element| element.text_content());
        let answers = json.and_then(|json| serde_json::from_str(&json).ok());
        if let Some(element) = element {
            element.remove();
        }
        let first = Self(StoredValue::new_local(answers));
        set_timeout(move || first.forget(), HOLDS);
        first
    }

    /// Who reads.
    pub fn session(self) -> Option<Session> {
        self.0.with_value(|answers| answers.as_ref().map(|answers| answers.session.clone()))
    }

    /// Nothing that came with the page holds any more: it may be another who reads.
    pub fn forget(self) {
        self.0.try_set_value(None);
    }

    /// An answer, where it is late enough.
    pub fn answer(self, path: &str, counted: bool, at_least: i64) -> Option<Brought> {
        let found = self.0.try_with_value(|answers| {
            let answers = answers.as_ref().filter(|answers| at_least <= answers.session.position)?;
            let answer = answers.answers.get(path)?;
            (answer.total.is_some() || !counted).then(|| (answer.rows.clone(), answer.total))
        });
        found.flatten()
    }
}
