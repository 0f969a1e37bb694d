//! What must be settled before a run: where requests go, with which secrets, and whether this machine is fit to measure.

use std::collections::HashSet;
use std::fs::OpenOptions;
use std::io::{self, Write};
use std::path::Path;
use std::time::Duration;

use serde_json::Value;

use crate::cli::Common;
use crate::endpoints::{Endpoint, endpoint, parse_file};
use crate::failure::Redactor;
use crate::finish::{EXIT_UNFIT, EXIT_USAGE};
use crate::http::connect::ConnectOptions;
use crate::http::simple::{self, Limits};
use crate::preflight::{self, Clock, MAX_OFFSET};
use crate::stats::round;

/// Why a run could not start.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub struct Refusal {
    /// What is wrong, and what to do.
    pub message: String,
    /// The exit code.
    pub code: i32,
}

impl Refusal {
    /// Something about the command line, a file or an address.
    pub fn usage(message: impl ToString) -> Self {
        Self { message: message.to_string(), code: EXIT_USAGE }
    }

    /// Something about the machine.
    pub fn unfit(message: impl ToString) -> Self {
        Self { message: message.to_string(), code: EXIT_UNFIT }
    }
}

/// The endpoints of a run: those of a file, or the one of `--url`.
pub fn endpoints(common: &Common, path: &str) -> Result<Vec<Endpoint>, Refusal> {
    let key = api_key(common)?;
    match &common.endpoints_file {
        None => {
            endpoint(&common.url, path, key, None, 1).map(|endpoint| vec![endpoint]).map_err(Refusal::usage)
        }
        Some(file) => {
            let text = std::fs::read_to_string(file)
                .map_err(|error| Refusal::usage(format!("{}: {error}", file.display())))?;
            parse_file(&text, path, key.as_deref()).map_err(Refusal::usage)
        }
    }
}

/// The API key given, if it is one.
pub fn api_key(common: &Common) -> Result<Option<String>, Refusal> {
    let key = common.api_key.as_deref().map(str::trim).filter(|key| !key.is_empty());
    if key.is_some_and(|key| key.chars().any(char::is_control)) {
        return Err(Refusal::usage("the API key contains control characters"));
    }
    Ok(key.map(str::to_owned))
}

/// A redactor for all secrets of a run.
pub fn redactor(common: &Common, endpoints: &[Endpoint]) -> Redactor {
    let sensitive = |name: &str| {
        let name = name.to_ascii_lowercase();
        ["auth", "key", "token", "cookie", "secret", "password"].iter().any(|word| name.contains(word))
    };
    let headers = common.header.iter().filter(|(name, _)| sensitive(name)).map(|(_, value)| value.clone());
    let keys = common.api_key.iter().map(|key| key.trim().to_owned());
    let proxy = common.proxy.iter().filter_map(|proxy| proxy.secret.clone());
    Redactor::new(keys.chain(headers).chain(proxy).chain(endpoints.iter().flat_map(Endpoint::secrets)))
}

/// How connections of a run are opened.
pub fn connect_options(common: &Common) -> ConnectOptions {
    ConnectOptions {
        connect_timeout: common.connect_timeout,
        tcp_keepalive: common.tcp_keepalive,
        insecure: common.insecure,
        http2: common.http2,
        proxy: common.proxy.clone(),
        networks: common.allowed_networks.clone(),
    }
}

/// The model to ask for: the one given, or the only one the first endpoint lists.
pub async fn model(common: &Common, endpoints: &[Endpoint], path: &str) -> Result<String, Refusal> {
    if let Some(model) = &common.model {
        return Ok(model.clone());
    }
    let first = endpoints.first().ok_or_else(|| Refusal::usage("no endpoint"))?;
    let mut url = first.url.clone();
    let base = url.path().trim_end_matches(path).to_owned();
    url.set_path(&format!("{base}models"));
    let limit = common.request_timeout.min(Duration::from_secs(10));
    let advice = "name the model with --model";
    let document =
        simple::get(&url, first.authorization().as_deref(), &connect_options(common), &Limits::within(limit))
            .await
            .map_err(|error| Refusal::usage(format!("cannot list models: {error}; {advice}")))?;
    only_model(&document.body).map_err(|reason| Refusal::usage(format!("{reason}; {advice}")))
}

/// The only model of a list of models.
fn only_model(list: &[u8]) -> Result<String, String> {
    let listed: Value = serde_json::from_slice(list)
        .map_err(|error| format!("the endpoint's list of models is no JSON: {error}"))?;
    let ids: Vec<&str> =
        listed["data"].as_array().into_iter().flatten().filter_map(|model| model["id"].as_str()).collect();
    match ids.as_slice() {
        [only] => Ok((*only).to_owned()),
        [] => Err("the endpoint lists no model".to_owned()),
        several => Err(format!("the endpoint serves {}", several.join(", "))),
    }
}

/// Reads a file or an http(s) address given as `option`.
pub async fn read_text(option: &str, place: &str, common: &Common) -> Result<String, Refusal> {
    let shown = Redactor::default().redact(place);
    let refuse = |reason: String| Refusal::usage(format!("{option} {shown}: {reason}"));
    if !(place.starts_with("http://") || place.starts_with("https://")) {
        return std::fs::read_to_string(place).map_err(|error| refuse(error.to_string()));
    }
    let url = url::Url::parse(place).map_err(|error| refuse(error.to_string()))?;
    let document = simple::get(&url, None, &connect_options(common), &Limits::within(FETCH_LIMIT))
        .await
        .map_err(|error| Refusal::usage(format!("{option}: {error}")))?;
    Ok(String::from_utf8_lossy(&document.body).into_owned())
}

/// The longest that fetching one file before a run may take.
pub const FETCH_LIMIT: Duration = Duration::from_secs(300);

/// Compares the clock with time servers, unless told not to: the offset in milliseconds, where it is known.
pub async fn check_clock(common: &Common, flags: &mut Vec<String>) -> Result<Option<f64>, Refusal> {
    if common.skip_ntp_check {
        flags.push("clock_unchecked".into());
        return Ok(None);
    }
    match preflight::check_clock(&common.ntp_server).await {
        Clock::Offset(offset) if offset.abs() > MAX_OFFSET.as_secs_f64() * 1e3 => {
            Err(Refusal::unfit(format!(
                "this machine's clock is off by {offset:.0} ms; set it, or pass --skip-ntp-check to measure all the same"
            )))
        }
        Clock::Offset(offset) => Ok(Some(round(offset))),
        Clock::Unreachable => {
            let _ = writeln!(
                io::stderr(),
                "warning: no time server answered, the clock is not verified (--skip-ntp-check skips this)"
            );
            flags.push("clock_unverified".into());
            Ok(None)
        }
    }
}

/// Refuses a result file that cannot be written, before anything is measured for it.
pub fn check_writable(path: &Path) -> Result<(), Refusal> {
    if path.as_os_str() == "-" {
        return Ok(());
    }
    OpenOptions::new()
        .create(true)
        .append(true)
        .open(path)
        .map(drop)
        .map_err(|error| Refusal::usage(format!("{}: {error}", path.display())))
}

/// Fetches each of these remote files once, before anything is measured.
pub async fn fetch_all<'a>(
    what: &str,
    addresses: impl Iterator<Item = &'a str>,
    common: &Common,
) -> Result<Vec<(String, Vec<u8>)>, Refusal> {
    let distinct: HashSet<&str> = addresses.collect();
    let mut fetched = Vec::new();
    for address in distinct {
        fetched.push((address.to_owned(), fetch(what, address, common).await?));
    }
    Ok(fetched)
}

/// Fetches one remote file.
pub async fn fetch(what: &str, address: &str, common: &Common) -> Result<Vec<u8>, Refusal> {
    let shown = Redactor::default().redact(address);
    let refuse = |reason: String| Refusal::usage(format!("{what} {shown}: {reason}"));
    let url = url::Url::parse(address).map_err(|error| refuse(error.to_string()))?;
    let document = simple::get(&url, None, &connect_options(common), &Limits::within(FETCH_LIMIT))
        .await
        .map_err(|error| refuse(error.to_string()))?;
    Ok(document.body)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_only_model_of_real_servers_is_found() {
        for (name, model) in [("llamacpp-models", "gemma-3-270m"), ("vllm-models", "tiny-llama")] {
            let path = format!("{}/tests/data/{name}.txt", env!("CARGO_MANIFEST_DIR"));
            let bytes = std::fs::read(path).unwrap();
            let body = bytes.windows(2).position(|window| window == b"\n{").unwrap() + 1;
            assert!(only_model(&bytes[body..]).unwrap().contains(model), "{name}");
        }
    }

    #[test]
    fn one_of_several_models_must_be_named() {
        assert_eq!(
            only_model(br#"{"data":[{"id":"a"},{"id":"b"}]}"#).unwrap_err(),
            "the endpoint serves a, b"
        );
        assert!(only_model(b"<html>").unwrap_err().contains("no JSON"));
    }
}
