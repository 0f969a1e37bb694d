//! The answers that came with the page: what it would ask first. They hold until the page knows of anything later, and for
//! a few seconds at most.

use std::time::Duration;

use events::api::Session;
use events::first_page::ELEMENT;
use leptos::prelude::*;
use serde_json::{Map, Value};

use crate::row::Row;

/// By then the page has begun: what is opened later is asked for.
const HOLDS: Duration = Duration::from_secs(10);

/// Rows, and how many there are in all where that was asked.
pub type Brought = (Vec<Row>, Option<usize>);

/// What came: [`events::first_page::FirstAnswers`], the answers as they are written. Types of their own would be some more
/// kilobytes of the first program.
struct Came {
    session: Session,
    answers: Map<String, Value>,
}

impl Came {
    fn read(json: &str) -> Option<Self> {
        let mut came = serde_json::from_str::<Value>(json).ok()?;
        let session = serde_json::from_str(&came.get("session")?.to_string()).ok()?;
        match came.get_mut("answers")?.take() {
            Value::Object(answers) => Some(Self { session, answers }),
            _ => None,
        }
    }

    fn answer(&self, path: &str, counted: bool) -> Option<Brought> {
        let answer = self.answers.get(path)?;
        let total = answer.get("total").and_then(Value::as_u64).map(|total| total as usize);
        let rows = answer.get("rows")?.as_array()?.iter();
        let rows = rows.map(|row| row.as_object().cloned().map(Row)).collect::<Option<Vec<Row>>>()?;
        (total.is_some() || !counted).then_some((rows, total))
    }
}

/// The answers that came with the page; copied freely.
#[derive(Clone, Copy)]
pub struct First(StoredValue<Option<Came>, LocalStorage>);

impl First {
    /// Reads what came with the page; nothing where nothing did.
    pub fn read() -> Self {
        let element = document().get_element_by_id(ELEMENT);
        let json = element.as_ref().and_then(|element| element.text_content());
        let came = json.and_then(|json| Came::read(&json));
        if let Some(element) = element {
            element.remove();
        }
        let first = Self(StoredValue::new_local(came));
        set_timeout(move || first.forget(), HOLDS);
        first
    }

    /// Who reads.
    pub fn session(self) -> Option<Session> {
        self.0.with_value(|came| came.as_ref().map(|came| came.session.clone()))
    }

    /// Nothing that came with the page holds any more: it may be another who reads.
    pub fn forget(self) {
        self.0.try_set_value(None);
    }

    /// An answer, where it is late enough.
    pub fn answer(self, path: &str, counted: bool, at_least: i64) -> Option<Brought> {
        let found = self.0.try_with_value(|came| {
            let came = came.as_ref().filter(|came| at_least <= came.session.position)?;
            came.answer(path, counted)
        });
        found.flatten()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use events::first_page::{FirstAnswer, FirstAnswers};
    use serde_json::json;

    #[test]
    fn what_the_control_plane_writes_is_read() {
        let session: Session =
            serde_json::from_value(json!({"org": "acme", "position": 7, "version": "1"})).expect("a session");
        let of = |rows: Value, total| FirstAnswer { rows, total };
        let answers = [
            ("/api/a".to_owned(), of(json!([{"job": "x"}]), None)),
            ("/api/b".to_owned(), of(json!([]), Some(3))),
        ];
        let written = FirstAnswers { session, answers: answers.into() };
        let came = Came::read(&serde_json::to_string(&written).expect("JSON")).expect("answers");
        assert_eq!((came.session.org.as_deref(), came.session.position), (Some("acme"), 7));
        let (rows, total) = came.answer("/api/a", false).expect("an answer");
        assert_eq!((rows[0].text("job").as_str(), total), ("x", None));
        assert_eq!(came.answer("/api/a", true), None, "it was not counted");
        assert_eq!(came.answer("/api/b", true), Some((vec![], Some(3))));
        assert_eq!(came.answer("/api/c", false), None);
        assert!(Came::read("[]").is_none() && Came::read("").is_none());
    }
}
