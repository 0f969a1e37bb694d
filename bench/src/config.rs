//! The configuration as it is echoed into the summary: every setting, its source, no secret.

use clap::parser::ValueSource;
use clap::{ArgMatches, Command};
use serde_json::{Map, Value, json};

use crate::failure::{REDACTED, Redactor};

/// Settings that are text even where they look like a number.
const TEXT: &[&str] =
    &["model", "scenario", "url", "prompts", "system_prompt", "slo", "data_log", "request_log", "header"];

/// Headers that may be shown; the value of any other may be a secret.
const SHOWN_HEADERS: &[&str] =
    &["accept", "content-type", "user-agent", "x-request-id", "accept-encoding", "accept-language"];

/// Every setting of `command` as `matches` has it. `derived` settings (those the tool worked out itself) replace it.
pub fn echo(
    command: &Command,
    matches: &ArgMatches,
    derived: Map<String, Value>,
    redactor: &Redactor,
) -> Value {
    let mut config = Map::new();
    let mut sources = Map::new();
    for argument in command.get_arguments() {
        let id = argument.get_id().as_str();
        if matches!(id, "help" | "version" | "completions") {
            continue;
        }
        let values: Vec<String> = match matches.try_get_raw(id) {
            Ok(Some(values)) => values.map(|value| value.to_string_lossy().into_owned()).collect(),
            _ => Vec::new(),
        };
        let source = match matches.value_source(id) {
            Some(ValueSource::CommandLine) => "command line",
            Some(ValueSource::EnvVariable) => "environment",
            _ => "default",
        };
        let shown: Vec<Value> = values.iter().map(|value| show(id, value, redactor)).collect();
        let value = match argument.get_action() {
            clap::ArgAction::Append => Value::Array(shown),
            _ => shown.into_iter().next().unwrap_or(Value::Null),
        };
        config.insert(id.to_owned(), value);
        sources.insert(id.to_owned(), json!(source));
    }
    for (id, value) in derived {
        sources.insert(id.clone(), json!("derived"));
        config.insert(id, value);
    }
    config.insert("sources".into(), Value::Object(sources));
    Value::Object(config)
}

fn show(id: &str, value: &str, redactor: &Redactor) -> Value {
    if id == "api_key" {
        return json!(REDACTED);
    }
    if id == "header" {
        let name = value.split(':').next().unwrap_or_default().trim();
        if !SHOWN_HEADERS.contains(&name.to_ascii_lowercase().as_str()) {
            return json!(format!("{name}: {REDACTED}"));
        }
    }
    if matches!(id, "url" | "endpoint" | "proxy") {
        // Whatever stands before the host may be a password, with or without a scheme.
        let (scheme, rest) = value.split_once("://").unwrap_or(("", value));
        let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
        if let Some(at) = authority.rfind('@') {
            let scheme = if scheme.is_empty() { String::new() } else { format!("{scheme}://") };
            return show("scenario", &format!("{scheme}{}", &rest[at + 1..]), redactor);
        }
    }
    if !TEXT.contains(&id) {
        match serde_json::from_str::<Value>(value) {
            Ok(typed @ (Value::Number(_) | Value::Bool(_))) => return typed,
            Ok(Value::Object(_)) => {
                return serde_json::from_str(&redactor.redact(value)).unwrap_or_else(|_| json!(REDACTED));
            }
            _ => {}
        }
    }
    let url = url::Url::parse(value).ok().filter(|url| url.has_host());
    match url {
        Some(url) => json!(redactor.redact(&crate::http::simple::without_credentials(&url))),
        None => json!(redactor.redact(value)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_shown_without_user_and_password() {
        let shown = |id, value| show(id, value, &Redactor::default());
        assert_eq!(shown("proxy", "me:pw@proxy:3128"), "proxy:3128");
        assert_eq!(shown("proxy", "http://me:p@ss@proxy:3128"), "http://proxy:3128/");
        assert_eq!(shown("url", "me:pw@host:8000/v1"), "host:8000/v1");
        assert_eq!(shown("url", "http://host:8000/v1"), "http://host:8000/v1");
    }

    #[test]
    fn a_header_is_shown_by_its_name() {
        let shown = show("header", "X-Token: abc", &Redactor::default());
        assert_eq!(shown, format!("X-Token: {REDACTED}"));
    }
}
