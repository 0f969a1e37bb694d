//! The published JSON Schemas: what the tools write conforms to them, and every figure in them is in the metric catalogue.

mod support;

use std::path::PathBuf;

use bench::refserver::Options;
use events::metrics::metric;
use events::summary::{IMAGEGEN_SUMMARY_SCHEMA, SUMMARY_SCHEMA, json_schema};
use events::summary_columns::column_of;
use events::summary_requests::{IMAGEGEN_REQUEST_SCHEMA, imagegen_json_schema};
use serde_json::Value;
use support::{Bench, quick};

fn published(schema: &str) -> PathBuf {
    PathBuf::from(format!("{}/../docs/schemas/{schema}.schema.json", env!("CARGO_MANIFEST_DIR")))
}

fn schema_of_the_code(schema: &str) -> Value {
    if schema == IMAGEGEN_REQUEST_SCHEMA { imagegen_json_schema() } else { json_schema(schema) }
}

#[test]
fn the_published_schemas_are_those_of_the_code() {
    for schema in [SUMMARY_SCHEMA, IMAGEGEN_SUMMARY_SCHEMA, IMAGEGEN_REQUEST_SCHEMA] {
        let generated = serde_json::to_string_pretty(&schema_of_the_code(schema)).unwrap() + "\n";
        if std::env::var_os("UPDATE_SCHEMAS").is_some() {
            std::fs::write(published(schema), &generated).unwrap();
        }
        let written = std::fs::read_to_string(published(schema)).unwrap_or_default();
        assert!(
            written == generated,
            "docs/schemas/{schema}.schema.json is not what the code says: UPDATE_SCHEMAS=1 cargo nextest run -E 'test(schemas)'"
        );
    }
}

/// One line of each tool, successes and failures in it.
fn lines() -> Vec<(&'static str, Value)> {
    let bench = Bench::new(Options { reasoning_tokens: 2, ..quick() });
    let failing = bench.file("failing.json");
    let endpoints =
        format!(r#"[{{"url":"{0}"}},{{"url":"{0}/no/v1/chat/completions"}}]"#, bench.server.url());
    std::fs::write(&failing, endpoints).unwrap();
    std::fs::write(bench.file("a.wav"), [7u8; 100]).unwrap();
    std::fs::write(bench.file("m.jsonl"), r#"{"id":"a","path":"a.wav","duration":2.0}"#).unwrap();
    std::fs::write(bench.file("t.jsonl"), r#"{"id":"a","transcript":"the quick brown fox"}"#).unwrap();
    let llm = bench.run(&[
        "-n",
        "6",
        "-c",
        "2",
        "--request-rate",
        "100",
        "--slo",
        "ttft=100",
        "--endpoints-file",
        "failing.json",
    ]);
    let vlm = bench.run_tool(env!("CARGO_BIN_EXE_metrumbench-vlm"), &["-n", "2"]);
    let asr = bench.run_tool(
        env!("CARGO_BIN_EXE_metrumbench-asr"),
        &["--input", "m.jsonl", "--ground-truth", "t.jsonl"],
    );
    let imagegen = bench.run_tool(
        env!("CARGO_BIN_EXE_metrumbench-imagegen"),
        &["--size", "16x16", "--summary", "summary.jsonl", "--data-log", "data.jsonl"],
    );
    [llm, vlm, asr, imagegen]
        .into_iter()
        .map(|run| {
            let schema =
                if run.line["schema"] == SUMMARY_SCHEMA { SUMMARY_SCHEMA } else { IMAGEGEN_SUMMARY_SCHEMA };
            (schema, run.line)
        })
        .collect()
}

/// Lines of the image generator's data log: good ones, with images and with links, failed ones, tried again, cut short.
fn image_request_lines() -> Vec<Value> {
    let runs: [(&str, &[&str]); 6] = [
        ("ok", &["--artifact-dir", "images", "--save-raw", "--warmup-requests", "1"]),
        ("ok", &["--response-format", "url", "--request-rate", "200"]),
        ("cut", &["--response-format", "url"]),
        ("bad-json", &[]),
        ("status-503", &["--retries", "1", "--retry-backoff", "0.01"]),
        ("stall-before-head", &["--request-timeout", "0.05"]),
    ];
    let mut lines = Vec::new();
    for (shape, arguments) in runs {
        let bench = Bench::new(Options { shape: shape.parse().unwrap(), ..quick() });
        let files = ["--size", "16x16", "--summary", "summary.jsonl", "--data-log", "requests.jsonl"];
        bench.run_tool(env!("CARGO_BIN_EXE_metrumbench-imagegen"), &[&files, arguments].concat());
        let written = bench.request_log();
        assert!(written.len() >= 4, "{shape}: {}", written.len());
        lines.extend(written);
    }
    lines
}

fn assert_conforms(document: &Value, line: &Value) {
    let validator = jsonschema::validator_for(document).unwrap();
    let errors: Vec<String> =
        validator.iter_errors(line).map(|error| format!("{}: {error}", error.instance_path)).collect();
    assert!(errors.is_empty(), "{line}: {errors:?}");
    let unpublished = unpublished(document, document, line, "");
    assert!(unpublished.is_empty(), "{line}: {unpublished:?}");
}

fn document(schema: &str) -> Value {
    serde_json::from_str(&std::fs::read_to_string(published(schema)).unwrap()).unwrap()
}

#[test]
fn what_the_tools_write_conforms_and_holds_nothing_unpublished() {
    for (schema, line) in lines() {
        assert_conforms(&document(schema), &line);
    }
}

#[test]
fn each_line_of_an_image_runs_data_log_conforms_and_holds_nothing_unpublished() {
    let document = document(IMAGEGEN_REQUEST_SCHEMA);
    let lines = image_request_lines();
    for line in &lines {
        assert_conforms(&document, line);
    }
    let validator = jsonschema::validator_for(&document).unwrap();
    for change in [
        |line: &mut Value| drop(line.as_object_mut().unwrap().remove("artifacts")),
        |line: &mut Value| line["images_returned"] = "1".into(),
        |line: &mut Value| line["schema"] = "another".into(),
    ] {
        let mut changed = lines[0].clone();
        change(&mut changed);
        assert!(!validator.is_valid(&changed));
    }
}

#[test]
fn a_line_with_a_field_missing_or_of_another_type_does_not_conform() {
    let (schema, line) = lines().swap_remove(0);
    let validator = jsonschema::validator_for(&json_schema(schema)).unwrap();
    for change in [
        |line: &mut Value| drop(line.as_object_mut().unwrap().remove("ttft_ms")),
        |line: &mut Value| line["requests"]["succeeded"] = "6".into(),
        |line: &mut Value| line["schema"] = "another".into(),
    ] {
        let mut changed = line.clone();
        change(&mut changed);
        assert!(!validator.is_valid(&changed));
    }
}

/// Members of `value` that the schema does not name. `config` is free: each tool has settings of its own.
fn unpublished(root: &Value, schema: &Value, value: &Value, path: &str) -> Vec<String> {
    let schema = resolve(root, schema);
    match value {
        Value::Object(members) => members
            .iter()
            .flat_map(|(name, value)| {
                let path = format!("{path}/{name}");
                match schema["properties"].get(name).or_else(|| schema.get("additionalProperties")) {
                    Some(_) if path == "/config" => Vec::new(),
                    Some(inner) => unpublished(root, inner, value, &path),
                    None => vec![path],
                }
            })
            .collect(),
        Value::Array(items) => {
            items.iter().flat_map(|item| unpublished(root, &schema["items"], item, path)).collect()
        }
        _ => Vec::new(),
    }
}

/// Follows a reference, and what is behind "this or null".
fn resolve<'a>(root: &'a Value, schema: &'a Value) -> &'a Value {
    if let Some(reference) = schema["$ref"].as_str() {
        return resolve(root, root.pointer(reference.trim_start_matches('#')).unwrap());
    }
    match schema["anyOf"].as_array() {
        Some(choices) => resolve(root, choices.iter().find(|choice| choice["type"] != "null").unwrap()),
        None => schema,
    }
}

/// The paths of all figures of a schema: numbers, truth values, and maps of numbers.
fn figures(root: &Value, schema: &Value, path: &[&str], found: &mut Vec<Vec<String>>) {
    let schema = resolve(root, schema);
    let is = |kind: &str| match &schema["type"] {
        Value::String(one) => one == kind,
        Value::Array(several) => several.iter().any(|one| one == kind),
        _ => false,
    };
    if let Some(properties) = schema["properties"].as_object() {
        for (name, inner) in properties {
            figures(root, inner, &[path, &[name.as_str()]].concat(), found);
        }
    } else if is("array") {
        figures(root, &schema["items"], path, found);
    } else if is("object") {
        figures(root, &schema["additionalProperties"], path, found);
    } else if is("number") || is("integer") || is("boolean") {
        found.push(path.iter().map(|part| (*part).to_owned()).collect());
    }
}

#[test]
fn every_figure_has_a_definition_a_unit_and_a_direction() {
    let document = json_schema(SUMMARY_SCHEMA);
    let mut found = Vec::new();
    figures(&document, &document, &[], &mut found);
    // What a run is, rather than what it measured; and what says how a distribution is to be read.
    let facts = ["simulated", "partial", "cancelled"];
    found.retain(|path| {
        path.last().is_some_and(|last| last != "binned")
            && !(path.len() == 1 && facts.contains(&path[0].as_str()))
    });
    assert!(found.len() > 300, "only {} figures were found in the schema", found.len());
    let unknown: Vec<String> = found
        .iter()
        // An endpoint has the figures of the run.
        .map(|path| path.iter().map(String::as_str).filter(|part| *part != "endpoints").collect::<Vec<_>>())
        .map(|path| column_of(&path))
        .filter(|column| {
            metric(column).is_none_or(|metric| metric.definition.is_empty() || metric.label.is_empty())
        })
        .collect();
    assert_eq!(unknown, Vec::<String>::new());
}
