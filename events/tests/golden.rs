//! Every event version ever shipped must still decode; `docs/EVENTS.md` says what there is.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use events::catalog::{EVENT_TYPES, Event, current_schema_version, stream_kind};
use serde_json::Value;

fn golden_dir() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden")
}

fn golden(event_type: &str, version: u16) -> String {
    let path = golden_dir().join(format!("{event_type}.v{version}.json"));
    fs::read_to_string(&path)
        .unwrap_or_else(|e| panic!("{}: {e}. Every version needs a golden file.", path.display()))
}

#[test]
fn every_version_ever_shipped_decodes() {
    for &event_type in EVENT_TYPES {
        for version in 1..=current_schema_version(event_type) {
            let event = Event::decode(event_type, version, &golden(event_type, version))
                .unwrap_or_else(|e| panic!("{event_type} v{version}: {e}"));
            assert_eq!(event.event_type(), event_type);
        }
    }
}

#[test]
fn todays_version_writes_back_what_it_read() {
    for &event_type in EVENT_TYPES {
        let version = current_schema_version(event_type);
        let text = golden(event_type, version);
        let written = Event::decode(event_type, version, &text).expect("decodes").payload().expect("writes");
        let read: Value = serde_json::from_str(&text).expect("is JSON");
        assert_eq!(written, read, "{event_type}: a field of the golden file is lost or changed");
    }
}

#[test]
fn no_golden_file_is_without_its_event() {
    let known: BTreeSet<String> = EVENT_TYPES
        .iter()
        .flat_map(|t| (1..=current_schema_version(t)).map(move |v| format!("{t}.v{v}.json")))
        .collect();
    for entry in fs::read_dir(golden_dir()).expect("golden files") {
        let name = entry.expect("readable").file_name().into_string().expect("UTF-8");
        assert!(known.contains(&name), "{name} has no event: events are never removed from the catalogue");
    }
}

#[test]
fn an_event_of_a_newer_version_is_refused_by_name() {
    let error = Event::decode("job.claimed", 99, "{}").expect_err("newer than known").to_string();
    assert!(error.contains("job.claimed") && error.contains("99") && error.contains("upgrade"), "{error}");
    let error = Event::decode("job.teleported", 1, "{}").expect_err("unknown").to_string();
    assert!(error.contains("job.teleported"), "{error}");
}

#[test]
fn the_documentation_lists_every_event() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/EVENTS.md");
    let expected = documentation();
    if std::env::var_os("UPDATE_DOCS").is_some() {
        fs::write(&path, &expected).expect("docs/EVENTS.md is writable");
    }
    let found = fs::read_to_string(&path).unwrap_or_default();
    assert!(
        found == expected,
        "docs/EVENTS.md is out of date: UPDATE_DOCS=1 cargo test -p benchtrail-events"
    );
}

/// The catalogue as a page: type, version, stream, what it says (its payload's doc comment) and its fields.
fn documentation() -> String {
    let mut page = String::from(
        "# Events\n\nGenerated from the catalogue in `events/`; do not edit. \
         `UPDATE_DOCS=1 cargo test -p benchtrail-events` writes it, the tests check it.\n\n\
         Every event is immutable. Its payload is canonical JSON of at most 64 KiB; what is bulkier is a blob named by its hash.\n\n\
         | type | version | stream | what it says | fields |\n|---|---|---|---|---|\n",
    );
    let sources = sources();
    for &event_type in EVENT_TYPES {
        let version = current_schema_version(event_type);
        let value: Value = serde_json::from_str(&golden(event_type, version)).expect("is JSON");
        let fields: Vec<String> =
            value.as_object().map(|o| o.keys().map(|k| format!("`{k}`")).collect()).unwrap_or_default();
        page.push_str(&format!(
            "| `{event_type}` | {version} | `{}` | {} | {} |\n",
            stream_kind(event_type).expect("every type has a kind of stream"),
            doc_comment(&sources, event_type),
            if fields.is_empty() { "–".to_owned() } else { fields.join(", ") },
        ));
    }
    page
}

fn sources() -> String {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let files = fs::read_dir(dir).expect("src").map(|e| e.expect("readable").path());
    // Events are declared in files of this folder itself.
    let mut names: Vec<PathBuf> = files.filter(|path| path.is_file()).collect();
    names.sort();
    names.iter().map(|p| fs::read_to_string(p).expect("UTF-8")).collect()
}

/// The doc comment of the payload struct behind an event type, in one line.
fn doc_comment(sources: &str, event_type: &str) -> String {
    // `JobCreated(Box<job::JobCreated>) = "job.created",`
    let end = format!(" = \"{event_type}\",");
    let line = sources.lines().find(|line| line.ends_with(&end));
    let line = line.unwrap_or_else(|| panic!("{event_type} is not in the catalogue"));
    let payload = line.split_once('(').and_then(|(_, rest)| rest.rsplit_once(')')).expect("a payload").0;
    let name = payload.rsplit("::").next().expect("a name").trim_end_matches('>');
    let lines: Vec<&str> = sources.lines().collect();
    let at = lines
        .iter()
        .position(|l| *l == format!("pub struct {name} {{") || *l == format!("pub struct {name} {{}}"))
        .unwrap_or_else(|| panic!("struct {name} not found"));
    let mut comment: Vec<&str> = lines[..at]
        .iter()
        .rev()
        .skip_while(|l| l.starts_with("#["))
        .take_while(|l| l.starts_with("///"))
        .map(|l| l.trim_start_matches("///").trim())
        .collect();
    comment.reverse();
    comment.join(" ").replace('|', "\\|")
}
