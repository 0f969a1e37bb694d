//! What the model servers of a run were started with, in words: what all of its jobs share, and what each scenario has.

use serde_json::Value;

use crate::row::Row;

/// The engine arguments of a run's jobs: those that are alike once, of the others every value that occurs, as
/// `ctx_size=512, 2048 by scenario`. Nothing where no job has any.
pub fn engine_words(jobs: &[Row]) -> Option<String> {
    let sets: Vec<_> = jobs.iter().map(|job| job.value("engine_args").and_then(Value::as_object)).collect();
    let mut keys: Vec<&String> = sets.iter().flatten().flat_map(|set| set.keys()).collect();
    keys.sort();
    keys.dedup();
    let written = |value: Option<&Value>| match value {
        Some(Value::String(text)) => text.clone(),
        Some(value) => value.to_string(),
        None => "the default".to_owned(),
    };
    let (mut alike, mut differing) = (Vec::new(), Vec::new());
    for key in keys {
        let mut values: Vec<String> = Vec::new();
        for set in &sets {
            let value = written(set.and_then(|set| set.get(key)));
            if !values.contains(&value) {
                values.push(value);
            }
        }
        match values.as_slice() {
            [value] => alike.push(format!("{key}={value}")),
            _ => differing.push(format!("{key}={} by scenario", values.join(", "))),
        }
    }
    let mut words = alike.join(" ");
    for differing in differing {
        if !words.is_empty() {
            words.push_str(" · ");
        }
        words.push_str(&differing);
    }
    (!words.is_empty()).then_some(words)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn jobs(sets: &[Value]) -> Vec<Row> {
        let row = |set: &Value| serde_json::from_value(json!({"engine_args": set})).expect("a row");
        sets.iter().map(row).collect()
    }

    #[test]
    fn what_differs_between_scenarios_is_not_said_of_all() {
        let two = jobs(&[
            json!({"ctx_size": 512, "parallel": 1, "flash_attn": "on"}),
            json!({"ctx_size": 2048, "parallel": 4, "flash_attn": "on"}),
        ]);
        assert_eq!(
            engine_words(&two).as_deref(),
            Some("flash_attn=on · ctx_size=512, 2048 by scenario · parallel=1, 4 by scenario")
        );
        assert_eq!(engine_words(&two[..1]).as_deref(), Some("ctx_size=512 flash_attn=on parallel=1"));
    }

    #[test]
    fn an_argument_that_one_job_lacks_is_the_default_there() {
        let jobs = jobs(&[json!({"mlock": true}), json!(null)]);
        assert_eq!(engine_words(&jobs).as_deref(), Some("mlock=true, the default by scenario"));
        assert_eq!(engine_words(&[]), None);
    }
}
