//! Engine arguments as a form writes them: text in, typed values out, as the framework's template of each says.

use std::collections::BTreeMap;

use serde_json::{Number, Value};

use crate::row::Row;

/// A value as a field and a table show it: words as they are, everything else as JSON.
pub fn written(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// Reads what was typed for an argument, by its row of the templates (`type`, `words`, `choices`); without a row, as JSON
/// where it is some, else as words.
///
/// # Errors
/// What is wrong with it, in words.
pub fn typed(text: &str, template: Option<&Row>) -> Result<Value, String> {
    let text = text.trim();
    let kind = template.map(|t| t.text("type")).unwrap_or_default();
    let words = template.map(|t| t.list("words")).unwrap_or_default();
    if words.iter().any(|word| word == text) {
        return Ok(Value::from(text));
    }
    match kind.as_str() {
        "int" => text.parse::<i64>().map(Value::from).map_err(|_| format!("{text:?} is no whole number")),
        "float" => text
            .parse::<f64>()
            .ok()
            .and_then(Number::from_f64)
            .map(Value::Number)
            .ok_or_else(|| format!("{text:?} is no number")),
        "bool" => match text {
            "true" | "on" => Ok(Value::from(true)),
            "false" | "off" => Ok(Value::from(false)),
            _ => Err(format!("{text:?} is neither true nor false")),
        },
        "json" => serde_json::from_str(text).map_err(|error| format!("no JSON: {error}")),
        "string" | "choice" => Ok(Value::from(text)),
        _ => Ok(serde_json::from_str(text).unwrap_or_else(|_| Value::from(text))),
    }
}

/// What an edited form changes: arguments with another value, and null for those whose field was emptied.
///
/// # Errors
/// The argument, and what is wrong with its value.
pub fn changes<'a>(
    before: &BTreeMap<String, Value>,
    edited: &BTreeMap<String, String>,
    template: impl Fn(&str) -> Option<&'a Row>,
) -> Result<BTreeMap<String, Value>, String> {
    let mut changes = BTreeMap::new();
    for (key, text) in edited {
        let old = before.get(key);
        if old.map(written).as_deref() == Some(text) {
            continue;
        }
        if text.trim().is_empty() {
            if old.is_some() {
                changes.insert(key.clone(), Value::Null);
            }
            continue;
        }
        let value = typed(text, template(key)).map_err(|what| format!("{key}: {what}"))?;
        if old != Some(&value) {
            changes.insert(key.clone(), value);
        }
    }
    Ok(changes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    fn template(kind: &str) -> Row {
        serde_json::from_value(json!({"type": kind, "words": ["auto"]})).expect("a row")
    }

    #[test]
    fn a_value_has_the_type_its_template_says() {
        for (kind, text, value) in [
            ("int", "8", json!(8)),
            ("int", "auto", json!("auto")),
            ("float", "0.9", json!(0.9)),
            ("bool", "on", json!(true)),
            ("string", "8", json!("8")),
            ("json", "{\"a\": 1}", json!({"a": 1})),
        ] {
            assert_eq!(typed(text, Some(&template(kind))), Ok(value), "{kind} {text}");
        }
        for (kind, text) in [("int", "8.5"), ("float", "x"), ("float", "inf"), ("bool", "1"), ("json", "{")] {
            assert!(typed(text, Some(&template(kind))).is_err(), "{kind} {text}");
        }
        assert_eq!((typed("8", None), typed("x", None)), (Ok(json!(8)), Ok(json!("x"))));
    }

    #[test]
    fn only_what_was_changed_is_sent_and_an_emptied_field_is_left_out() {
        let before: BTreeMap<String, Value> =
            serde_json::from_value(json!({"a": 1, "b": "x", "c": true})).expect("a map");
        let edited = [("a", "2"), ("b", "x"), ("c", ""), ("d", ""), ("e", "new")];
        let edited = edited.map(|(k, v)| (k.to_owned(), v.to_owned())).into_iter().collect();
        let found = changes(&before, &edited, |_| None).expect("values");
        assert_eq!(serde_json::to_value(found).expect("JSON"), json!({"a": 2, "c": null, "e": "new"}));
    }

    #[test]
    fn a_wrong_value_names_its_argument() {
        let row = template("int");
        let edited = [("tp_size".to_owned(), "four".to_owned())].into_iter().collect();
        let error = changes(&BTreeMap::new(), &edited, |_| Some(&row)).expect_err("four is no number");
        assert!(error.starts_with("tp_size: \"four\""), "{error}");
    }

    proptest! {
        #[test]
        fn an_untouched_form_changes_nothing(values in proptest::collection::btree_map("[a-z]{1,4}", prop_oneof![
            any::<i32>().prop_map(Value::from), any::<bool>().prop_map(Value::from), "\\PC{1,8}".prop_map(Value::from)], 0..6)) {
            let edited = values.iter().map(|(k, v)| (k.clone(), written(v))).collect();
            prop_assert_eq!(changes(&values, &edited, |_| None), Ok(BTreeMap::new()));
        }
    }
}
