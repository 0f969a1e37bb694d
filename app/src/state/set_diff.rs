//! Two sets of engine arguments side by side, key by key. What differs, the control plane says; what is the same on both
//! sides is read from the set itself.

use std::collections::BTreeMap;

use events::api_catalogue::EngineArgDifference;
use serde_json::Value;

use super::args_edit::written;
use crate::row::Row;

/// One argument of either side.
#[derive(Debug, Clone, PartialEq)]
pub struct Line {
    /// Its key; `env.<NAME>` for an environment variable, `<sidecar>.<key>` for a sidecar's.
    pub key: String,
    /// `added`, `removed`, `changed`, or `same`.
    pub change: String,
    /// What the other side has; nothing where it does not name it.
    pub base: Option<String>,
    /// What the set has.
    pub value: Option<String>,
    /// Whether it needs an administrator's approval.
    pub dangerous: bool,
    /// What it does, where that is known.
    pub meaning: String,
}

/// What is known of an argument, by the templates of its framework's version.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Known {
    /// Whether it needs an administrator's approval.
    pub dangerous: bool,
    /// What it does.
    pub meaning: String,
}

/// What rows of `v_framework_engine_args_templates` say of the arguments of a framework's version, and of its sidecars'
/// in whatever version they are known.
pub fn known(templates: &[Row], framework: &str, version: &str) -> BTreeMap<String, Known> {
    let of = |row: &Row| {
        let key = match row.text("framework_code") {
            own if own == framework => (row.text("framework_version") == version).then(|| row.text("key"))?,
            sidecar => format!("{sidecar}.{}", row.text("key")),
        };
        Some((key, Known { dangerous: row.is("dangerous"), meaning: row.text("meaning") }))
    };
    templates.iter().filter_map(of).collect()
}

/// Every argument of either side, in the order of their keys.
pub fn side_by_side(
    differences: &[EngineArgDifference],
    set: &BTreeMap<String, Value>,
    known: &BTreeMap<String, Known>,
) -> Vec<Line> {
    let of = |key: &str| known.get(key).cloned().unwrap_or_default();
    let there = |value: &Value| (!value.is_null()).then(|| written(value));
    let mut lines: BTreeMap<String, Line> = set
        .iter()
        .map(|(key, value)| {
            let (base, value) = (there(value), there(value));
            let Known { dangerous, meaning } = of(key);
            (key.clone(), Line { key: key.clone(), change: "same".into(), base, value, dangerous, meaning })
        })
        .collect();
    for d in differences {
        let line = Line {
            key: d.key.clone(),
            change: d.change.clone(),
            base: there(&d.base),
            value: there(&d.value),
            dangerous: d.dangerous || of(&d.key).dangerous,
            meaning: d.meaning.clone().unwrap_or_else(|| of(&d.key).meaning),
        };
        lines.insert(d.key.clone(), line);
    }
    lines.into_values().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    fn difference(key: &str, change: &str, base: Value, value: Value) -> EngineArgDifference {
        EngineArgDifference {
            key: key.into(),
            change: change.into(),
            base,
            value,
            dangerous: key == "load_format",
            meaning: Some("what it does".into()),
        }
    }

    #[test]
    fn each_key_stands_once_with_both_sides() {
        let set = serde_json::from_value(json!({"a": 1, "b": 2, "d": "x"})).expect("a map");
        let differences = [
            difference("b", "changed", json!(3), json!(2)),
            difference("c", "removed", json!(true), Value::Null),
            difference("d", "added", Value::Null, json!("x")),
        ];
        let lines = side_by_side(&differences, &set, &BTreeMap::new());
        let shown: Vec<(&str, &str, Option<&str>, Option<&str>)> = lines
            .iter()
            .map(|l| (l.key.as_str(), l.change.as_str(), l.base.as_deref(), l.value.as_deref()))
            .collect();
        assert_eq!(
            shown,
            [
                ("a", "same", Some("1"), Some("1")),
                ("b", "changed", Some("3"), Some("2")),
                ("c", "removed", Some("true"), None),
                ("d", "added", None, Some("x")),
            ]
        );
    }

    #[test]
    fn what_is_the_same_on_both_sides_is_explained_and_marked_too() {
        let row = |framework: &str, version: &str, key: &str, dangerous: bool| -> Row {
            let row = json!({"framework_code": framework, "framework_version": version, "key": key,
                "dangerous": dangerous, "meaning": format!("{framework} {version} {key}")});
            serde_json::from_value(row).expect("a row")
        };
        let templates =
            [row("vllm", "0.9", "a", false), row("vllm", "0.10", "a", true), row("lmcache", "1", "a", false)];
        let known = known(&templates, "vllm", "0.10");
        let set = serde_json::from_value(json!({"a": 1, "lmcache.a": 2})).expect("a map");
        let lines = side_by_side(&[], &set, &known);
        let shown: Vec<(&str, bool, &str)> =
            lines.iter().map(|l| (l.key.as_str(), l.dangerous, l.meaning.as_str())).collect();
        assert_eq!(shown, [("a", true, "vllm 0.10 a"), ("lmcache.a", false, "lmcache 1 a")]);
    }

    proptest! {
        #[test]
        fn no_key_is_lost_or_doubled(set in proptest::collection::btree_map("[a-c]{1,2}", 0..9i32, 0..6), removed in proptest::collection::btree_set("[d-f]{1,2}", 0..4)) {
            let set: BTreeMap<String, Value> = set.into_iter().map(|(k, v)| (k, json!(v))).collect();
            let differences: Vec<_> = removed.iter().map(|k| difference(k, "removed", json!(1), Value::Null)).collect();
            let keys: Vec<String> = side_by_side(&differences, &set, &BTreeMap::new()).into_iter().map(|l| l.key).collect();
            let mut wanted: Vec<String> = set.keys().cloned().chain(removed).collect();
            wanted.sort();
            prop_assert_eq!(keys, wanted);
        }
    }
}
