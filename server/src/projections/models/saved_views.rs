//! Saved views: `v_saved_views`. A person's own are seen by that person, shared ones by the organisation.

use events::envelope::Recorded;
use events::saved_view::SHARED;
use events::{Event, Timestamp};
use serde::{Deserialize, Serialize};

use crate::projections::table::{Row, Table};
use crate::projections::text::{Column, Kind};
use crate::projections::{AnyTable, FoldError, Projection};

/// A saved view, as `v_saved_views` shows it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct SavedViewRow {
    org: String,
    view_code: String,
    saved_view: String,
    name: String,
    page: String,
    query: String,
    shared: bool,
    saved_by: String,
    removed: bool,
    saved_at: Timestamp,
    position: i64,
    visibility: String,
    owner: String,
}

impl Row for SavedViewRow {
    type Key = String;
    const TABLE: &'static str = "saved_views";
    const KEY: &'static [&'static str] = &["saved_view"];

    fn columns() -> Vec<Column> {
        use Kind::{Bool, Int, Text, Time};
        vec![
            Column::shown("org", Text),
            Column::shown("view_code", Text),
            Column::shown("saved_view", Text),
            Column::shown("name", Text),
            Column::shown("page", Text),
            Column::shown("query", Text),
            Column::shown("shared", Bool),
            Column::shown("saved_by", Text),
            Column::hidden("removed", Bool),
            Column::shown("saved_at", Time),
            Column::shown("position", Int),
            Column::hidden("visibility", Text),
            Column::hidden("owner", Text),
        ]
    }
    fn key(&self) -> Self::Key {
        self.saved_view.clone()
    }
}

/// Folds `saved_view.*`.
#[derive(Debug, Default)]
pub struct SavedViews {
    views: Table<SavedViewRow>,
}

impl Projection for SavedViews {
    fn name(&self) -> &'static str {
        "saved_views"
    }
    fn version(&self) -> i32 {
        1
    }
    fn interests(&self) -> &'static [&'static str] {
        &["saved_view.saved", "saved_view.removed"]
    }
    fn tables(&mut self) -> Vec<&mut dyn AnyTable> {
        vec![&mut self.views]
    }

    fn wants(&mut self, recorded: &Recorded, _: &Event) {
        self.views.want(recorded.stream.to_string());
    }

    fn fold(&mut self, recorded: &Recorded, event: &Event) -> Result<(), FoldError> {
        let position = recorded.position;
        match event {
            Event::ViewSaved(saved) => {
                let [org, owner, code]: [String; 3] = recorded
                    .stream
                    .parts()
                    .try_into()
                    .map_err(|_| FoldError(format!("{} is no saved view's stream", recorded.stream)))?;
                let shared = owner == SHARED;
                let (visibility, owner) =
                    if shared { ("organization", String::new()) } else { ("private", owner) };
                let row = SavedViewRow {
                    org,
                    view_code: code,
                    saved_view: recorded.stream.to_string(),
                    name: saved.name.clone(),
                    page: saved.page.clone(),
                    query: saved.query.clone(),
                    shared,
                    saved_by: recorded.actor.id.clone(),
                    removed: false,
                    saved_at: recorded.recorded_at,
                    position,
                    visibility: visibility.to_owned(),
                    owner,
                };
                self.views.put(row, position);
            }
            Event::ViewRemoved(_) => {
                let key = recorded.stream.to_string();
                let view = self
                    .views
                    .get_mut(&key, position)
                    .ok_or_else(|| FoldError(format!("{key} is not there")))?;
                view.removed = true;
                view.position = position;
            }
            _ => {}
        }
        Ok(())
    }
}
