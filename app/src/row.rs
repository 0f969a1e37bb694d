//! One row of a view, as it came: named columns, read leniently (a column that is missing is absent, never 0).

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

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

    /// The path of the job on the page, from its natural key.
    pub fn job_path(&self) -> String {
        self.path(&["org", "project_code", "workload_code", "run_number", "scenario_code"])
    }

    /// The path of the run on the page.
    pub fn run_path(&self) -> String {
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

    /// What the status mark shows: the job's or run's status, or that its result is doubted or simulated.
    pub fn mark(&self) -> &'static str {
        match self.text("status").as_str() {
            "running" | "claimed" | "serving" => "running",
            "failed" | "lost" => "failed",
            "cancelled" => "cancelled",
            "completed" if self.is("suspicious") || !self.list("flags").is_empty() => "flagged",
            "completed" if self.is("simulated") => "simulated",
            "completed" => "completed",
            _ => "queued",
        }
    }
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
    }
}
