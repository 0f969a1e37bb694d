//! What results are called where several stand side by side: as short as tells them apart.

use crate::row::Row;

/// How the results of a chart or a comparison are named: with their project where there are several.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Naming {
    projects: bool,
}

impl Naming {
    /// The names of these rows.
    pub fn of<'a>(rows: impl IntoIterator<Item = &'a Row>) -> Self {
        let mut rows = rows.into_iter();
        let Some(first) = rows.next() else { return Self { projects: false } };
        Self {
            projects: rows
                .any(|row| ["org", "project_code"].iter().any(|key| row.text(key) != first.text(key))),
        }
    }

    /// `workload`, with its project before it where there are several.
    pub fn workload(self, row: &Row) -> String {
        let workload = row.text("workload_code");
        if self.projects { format!("{} / {workload}", row.text("project_code")) } else { workload }
    }

    /// `workload / run`.
    pub fn run(self, row: &Row) -> String {
        format!("{} / {}", self.workload(row), row.text("run_number"))
    }

    /// `workload / run · scenario`.
    pub fn result(self, row: &Row) -> String {
        format!("{} · {}", self.run(row), row.text("scenario_code"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn namesakes_of_two_projects_are_told_apart() {
        let row = |project: &str| -> Row {
            let row = json!({"org": "o", "project_code": project, "workload_code": "w", "run_number": 2, "scenario_code": "c8"});
            serde_json::from_value(row).expect("a row")
        };
        let (a, b) = (row("a"), row("b"));
        assert_eq!(Naming::of([&a, &a]).result(&a), "w / 2 · c8");
        assert_eq!(Naming::of([&a, &b]).result(&b), "b / w / 2 · c8");
        assert_eq!(Naming::of([]).run(&a), "w / 2");
    }
}
