//! Log lines: `v_log_lines`.

use events::envelope::Recorded;
use events::{Event, Timestamp};
use serde::{Deserialize, Serialize};

use super::access::{self, rights_table};
use super::jobs::job_of;
use crate::projections::table::{Access, Row, Table};
use crate::projections::text::{Column, Kind};
use crate::projections::{AnyTable, FoldError, Projection};

rights_table!(LogRights, "log_rights");

/// A line of one of a job's logs.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct LogLineRow {
    org: String,
    project_code: String,
    workload_code: String,
    run_number: u32,
    scenario_code: String,
    job: String,
    attempt: u32,
    source: String,
    line_number: u64,
    line: String,
    at: Timestamp,
    position: i64,
    visibility: String,
    owner: String,
}

impl Row for LogLineRow {
    type Key = (String, u32, String, u64);
    const TABLE: &'static str = "log_lines";
    const KEY: &'static [&'static str] = &["job", "attempt", "source", "line_number"];

    fn columns() -> Vec<Column> {
        use Kind::{Int, Text, Time};
        let mut columns = access::job_columns();
        columns.extend([
            Column::shown("attempt", Int),
            Column::shown("source", Text),
            Column::shown("line_number", Int),
            Column::shown("line", Text),
            Column::shown("at", Time),
            Column::shown("position", Int),
        ]);
        columns.extend(access::columns());
        columns
    }
    fn key(&self) -> Self::Key {
        (self.job.clone(), self.attempt, self.source.clone(), self.line_number)
    }
    fn access(&mut self) -> Option<Access<'_>> {
        access::access(&self.org, &self.project_code, &mut self.visibility)
    }
}

/// Folds `log.lines`.
#[derive(Debug, Default)]
pub struct Logs {
    rights: Table<LogRights>,
    lines: Table<LogLineRow>,
}

impl Projection for Logs {
    fn name(&self) -> &'static str {
        "logs"
    }
    fn version(&self) -> i32 {
        2
    }
    fn interests(&self) -> &'static [&'static str] {
        &[access::PROJECT_CREATED, access::VISIBILITY_CHANGED, "log.lines"]
    }
    fn tables(&mut self) -> Vec<&mut dyn AnyTable> {
        vec![&mut self.rights, &mut self.lines]
    }

    fn wants(&mut self, recorded: &Recorded, event: &Event) {
        access::wants(&mut self.rights, recorded, event);
        if let Event::LogLines(lines) = event
            && let Ok((key, job, attempt)) = job_of(&recorded.stream)
        {
            access::want(&mut self.rights, &key.org, &key.project);
            for number in (lines.first_line..).take(lines.lines.len()) {
                self.lines.want((job.clone(), attempt, lines.source.as_str().to_owned(), number));
            }
        }
    }

    fn fold(&mut self, recorded: &Recorded, event: &Event) -> Result<(), FoldError> {
        if let Some((project, visibility)) = access::fold(&mut self.rights, recorded, event)? {
            self.lines.set_visibility(&project.org, &project.project, &visibility);
            return Ok(());
        }
        let Event::LogLines(lines) = event else { return Ok(()) };
        let (key, job, attempt) = job_of(&recorded.stream)?;
        let rights = access::rights(&self.rights, &key.org, &key.project)?;
        for (nth, line) in lines.lines.iter().enumerate() {
            let line_number = lines
                .first_line
                .checked_add(nth as u64)
                .ok_or_else(|| FoldError(format!("line {} is beyond counting", lines.first_line)))?;
            // What was said of a line first stands.
            if self
                .lines
                .get(&(job.clone(), attempt, lines.source.as_str().to_owned(), line_number))
                .is_some()
            {
                continue;
            }
            self.lines.put(
                LogLineRow {
                    org: key.org.clone(),
                    project_code: key.project.clone(),
                    workload_code: key.workload.clone(),
                    run_number: key.run,
                    scenario_code: key.scenario.clone(),
                    job: job.clone(),
                    attempt,
                    source: lines.source.as_str().to_owned(),
                    line_number,
                    line: line.clone(),
                    at: recorded.occurred_at,
                    position: recorded.position,
                    visibility: rights.visibility.clone(),
                    owner: rights.owner.clone(),
                },
                recorded.position,
            );
        }
        Ok(())
    }
}
