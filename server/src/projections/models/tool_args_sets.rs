//! Named sets of a tool's arguments: `v_tool_args_sets`, seen by the organisation that keeps them.

use events::envelope::Recorded;
use events::{Event, Timestamp};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::projections::table::{Row, Table};
use crate::projections::text::{Column, Kind};
use crate::projections::{AnyTable, FoldError, Projection};

/// A set, as `v_tool_args_sets` shows it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ToolArgsSetRow {
    org: String,
    tool_code: String,
    set_code: String,
    tool_args_set: String,
    name: String,
    tool_args: Value,
    notes: Option<String>,
    saved_by: String,
    removed: bool,
    saved_at: Timestamp,
    position: i64,
    visibility: String,
    owner: String,
}

impl Row for ToolArgsSetRow {
    type Key = String;
    const TABLE: &'static str = "tool_args_sets";
    const KEY: &'static [&'static str] = &["tool_args_set"];

    fn columns() -> Vec<Column> {
        use Kind::{Bool, Int, Json, Text, Time};
        vec![
            Column::shown("org", Text),
            Column::shown("tool_code", Text),
            Column::shown("set_code", Text),
            Column::shown("tool_args_set", Text),
            Column::shown("name", Text),
            Column::shown("tool_args", Json),
            Column::shown("notes", Text),
            Column::shown("saved_by", Text),
            Column::hidden("removed", Bool),
            Column::shown("saved_at", Time),
            Column::shown("position", Int),
            Column::hidden("visibility", Text),
            Column::hidden("owner", Text),
        ]
    }
    fn key(&self) -> Self::Key {
        self.tool_args_set.clone()
    }
}

/// Folds `tool_args_set.*`.
#[derive(Debug, Default)]
pub struct ToolArgsSets {
    sets: Table<ToolArgsSetRow>,
}

impl Projection for ToolArgsSets {
    fn name(&self) -> &'static str {
        "tool_args_sets"
    }
    fn version(&self) -> i32 {
        1
    }
    fn interests(&self) -> &'static [&'static str] {
        &["tool_args_set.saved", "tool_args_set.removed"]
    }
    fn tables(&mut self) -> Vec<&mut dyn AnyTable> {
        vec![&mut self.sets]
    }

    fn wants(&mut self, recorded: &Recorded, _: &Event) {
        self.sets.want(recorded.stream.to_string());
    }

    fn fold(&mut self, recorded: &Recorded, event: &Event) -> Result<(), FoldError> {
        let (key, position) = (recorded.stream.to_string(), recorded.position);
        match event {
            Event::ToolArgsSetSaved(saved) => {
                let [org, tool_code, set_code]: [String; 3] = recorded
                    .stream
                    .parts()
                    .try_into()
                    .map_err(|_| FoldError(format!("{key} is no stream of a set")))?;
                let tool_args = serde_json::to_value(&saved.values).map_err(|e| FoldError(e.to_string()))?;
                let row = ToolArgsSetRow {
                    org,
                    tool_code,
                    set_code,
                    tool_args_set: key,
                    name: saved.name.clone(),
                    tool_args,
                    notes: saved.notes.clone(),
                    saved_by: recorded.actor.id.clone(),
                    removed: false,
                    saved_at: recorded.recorded_at,
                    position,
                    visibility: "organization".to_owned(),
                    owner: String::new(),
                };
                self.sets.put(row, position);
            }
            Event::ToolArgsSetRemoved(_) => {
                let set = self
                    .sets
                    .get_mut(&key, position)
                    .ok_or_else(|| FoldError(format!("{key} is not there")))?;
                set.removed = true;
                set.position = position;
            }
            _ => {}
        }
        Ok(())
    }
}
