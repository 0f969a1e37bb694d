//! One row of a view, as it came: named columns, read leniently (a column that is missing is absent, never 0).

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::format::ABSENT;
use crate::state::result_key::{is_import, path_of};

/// One row of a view.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Row(pub Map<String, Value>);

impl Row {
    /// The column as it came.
    pub fn value(&self, column: &str) -> Option<&Value> {
        self.0.get(column).filter(|v| !v.is_null())
    }

    /// The column as text; nothing when it is absent.
    pub fn maybe_text(&self, column: &str) -> Option<String> {
        match self.value(column)? {
            Value::String(text) => Some(text.clone()),
            other => Some(other.to_string()),
        }
    }

    /// The column as text; empty when it is absent.
    pub fn text(&self, column: &str) -> String {
        self.maybe_text(column).unwrap_or_default()
    }

    /// The column as a number. Databases send decimals as text.
    pub fn number(&self, column: &str) -> Option<f64> {
        match self.value(column)? {
            Value::Number(number) => number.as_f64(),
            Value::String(text) => text.parse().ok(),
            _ => None,
        }
    }

    /// The column as a whole number.
    pub fn whole(&self, column: &str) -> Option<i64> {
        match self.value(column)? {
            Value::Number(number) => number.as_i64().or_else(|| number.as_f64().map(|f| f as i64)),
            Value::String(text) => text.parse().ok(),
            _ => None,
        }
    }

    /// Whether the column is true.
    pub fn is(&self, column: &str) -> bool {
        self.value(column).and_then(Value::as_bool).unwrap_or(false)
    }

    /// The column as a list of texts: a JSON array of texts, or of objects with a `rule` or `code`.
    pub fn list(&self, column: &str) -> Vec<String> {
        let Some(Value::Array(items)) = self.value(column) else { return Vec::new() };
        items
            .iter()
            .map(|item| match item {
                Value::String(text) => text.clone(),
                Value::Object(fields) => fields
                    .get("rule")
                    .or_else(|| fields.get("code"))
                    .and_then(Value::as_str)
                    .map_or_else(|| item.to_string(), str::to_owned),
                other => other.to_string(),
            })
            .collect()
    }

    /// Milliseconds since 1970 of a time column.
    pub fn millis(&self, column: &str) -> Option<f64> {
        crate::format::millis(&self.maybe_text(column)?)
    }

    /// Sets a column.
    pub fn set(&mut self, column: &str, value: impl Into<Value>) {
        self.0.insert(column.to_owned(), value.into());
    }

    /// The path of the job on the page, from its natural key. What was imported has no job, and a page there all the same.
    pub fn job_path(&self) -> String {
        if self.is("imported") {
            return imported_path(&self.text("job"));
        }
        self.path(&["org", "project_code", "workload_code", "run_number", "scenario_code"])
    }

    /// The path of the run on the page; of what was imported, the results of the same file.
    pub fn run_path(&self) -> String {
        if self.is("imported") {
            let of = |column: &str| crate::state::query::encode(&self.text(column));
            return format!("/reporting?project={}&workload={}", of("project_code"), of("workload_code"));
        }
        self.path(&["org", "project_code", "workload_code", "run_number"])
    }

    /// The path of the project on the page.
    pub fn project_path(&self) -> String {
        self.path(&["org", "project_code"])
    }

    fn path(&self, columns: &[&str]) -> String {
        let parts: Vec<String> = columns.iter().map(|c| self.text(c)).collect();
        format!("/projects/{}", parts.join("/"))
    }

    /// What served: `8×H200`, `CPU` on a host of processors alone, `–` where nothing is known (an endpoint elsewhere, a file
    /// that does not say it).
    pub fn hardware(&self) -> String {
        match (self.whole("gpu_count"), self.maybe_text("gpu_name")) {
            (Some(0), _) => "CPU".to_owned(),
            (Some(n), Some(name)) => format!("{n}×{}", name.trim_start_matches("NVIDIA ")),
            _ => ABSENT.to_owned(),
        }
    }

    /// Whether its numbers are no model's: the reference server made them, or makes them now.
    pub fn is_simulated(&self) -> bool {
        self.is("simulated") || self.text("framework_code") == events::tools::FRAMEWORK_REFSERVER
    }

    /// What the status mark shows: the job's or run's status, or that its result is doubted or simulated.
    pub fn mark(&self) -> &'static str {
        match self.text("status").as_str() {
            "running" | "claimed" | "serving" => "running",
            "failed" | "lost" => "failed",
            "cancelled" => "cancelled",
            "completed" if self.is("suspicious") || !self.list("flags").is_empty() => "flagged",
            "completed" if self.is_simulated() => "simulated",
            "completed" if self.is("imported") => "imported",
            "completed" => "completed",
            _ => "queued",
        }
    }

    /// What else is to be known of a result beside its [`Self::mark`]: a doubted one may be simulated or imported too.
    pub fn further_marks(&self) -> Vec<&'static str> {
        let shown = self.mark();
        let doubted = self.is("suspicious") || !self.list("flags").is_empty();
        [("flagged", doubted), ("simulated", self.is_simulated()), ("imported", self.is("imported"))]
            .into_iter()
            .filter(|(mark, is)| *is && *mark != shown)
            .map(|(mark, _)| mark)
            .collect()
    }

    /// The run, as it is told from every other: `project / workload / 3`.
    pub fn run_key(&self) -> String {
        ["project_code", "workload_code", "run_number"].map(|column| self.text(column)).join(" / ")
    }

    /// The page of the job that a row names as `job/org/project/workload/run/scenario`.
    pub fn named_job_path(&self) -> String {
        let job = self.text("job");
        let path = path_of(&job);
        if is_import(path) { imported_path(path) } else { format!("/projects/{path}") }
    }
}

/// The page of an imported result, from its natural key.
fn imported_path(stream: &str) -> String {
    format!("/projects/{}", stream.strip_prefix("import/").unwrap_or(stream))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn row(value: Value) -> Row {
        serde_json::from_value(value).expect("an object")
    }

    #[test]
    fn a_missing_number_is_absent_not_zero() {
        let row = row(json!({"a": null, "b": "12.5", "c": 3}));
        assert_eq!(
            (row.number("a"), row.number("b"), row.number("c"), row.number("d")),
            (None, Some(12.5), Some(3.0), None)
        );
    }

    #[test]
    fn a_doubted_result_is_marked_before_a_simulated_one() {
        assert_eq!(
            row(json!({"status": "completed", "simulated": true, "flags": ["few_requests"]})).mark(),
            "flagged"
        );
        assert_eq!(row(json!({"status": "completed", "simulated": true, "flags": []})).mark(), "simulated");
        assert_eq!(row(json!({"status": "pending"})).mark(), "queued");
        assert_eq!(row(json!({"status": "completed", "imported": true})).mark(), "imported");
    }

    #[test]
    fn what_was_imported_has_a_page_and_no_run() {
        let of = |imported: bool, job: &str| {
            row(
                json!({"imported": imported, "job": job, "org": "a", "project_code": "p", "workload_code": "w",
                "run_number": 1, "scenario_code": "c8"}),
            )
        };
        let (measured, imported) = (of(false, "job/a/p/w/1/c8"), of(true, "import/a/p/w/1/c8"));
        assert_eq!(measured.job_path(), "/projects/a/p/w/1/c8");
        assert_eq!(measured.named_job_path(), "/projects/a/p/w/1/c8");
        let page = "/projects/a/p/w/1/c8";
        assert_eq!((imported.job_path().as_str(), imported.named_job_path().as_str()), (page, page));
        assert_eq!(imported.run_path(), "/reporting?project=p&workload=w");
    }

    #[test]
    fn whatever_else_is_to_be_known_of_a_result_is_said_too() {
        let all = row(json!({"status": "completed", "simulated": true, "imported": true, "flags": ["odd"]}));
        assert_eq!((all.mark(), all.further_marks()), ("flagged", vec!["simulated", "imported"]));
        assert!(row(json!({"status": "completed", "simulated": true})).further_marks().is_empty());
        let running = row(json!({"status": "running", "framework_code": "refserver"}));
        assert_eq!((running.mark(), running.further_marks()), ("running", vec!["simulated"]));
    }
}
