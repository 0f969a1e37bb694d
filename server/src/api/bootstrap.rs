//! `GET /api/agent/bootstrap.sh` and `GET /api/agent/programs/<name>`: how a GPU host gets its agent from this control
//! plane and from nowhere else. The script names the SHA-256 of every program it fetches and installs nothing that
//! differs; it holds no secret: the one-time token comes with the command that runs it.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::{LazyLock, Mutex, PoisonError};
use std::time::SystemTime;

use axum::body::Body;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use http::{HeaderValue, header};
use sha2::{Digest, Sha256};
use tokio_util::io::ReaderStream;

use super::error::Failure;
use super::extract::ApiPath;
use crate::config::Config;
use crate::domain::Refusal;
use crate::state::AppState;

/// What an agent's host may fetch: the agent, the load generators, the reference server.
pub const PROGRAMS: &[&str] = &[
    "benchtrail-agent",
    "metrumbench-llm",
    "metrumbench-vlm",
    "metrumbench-asr",
    "metrumbench-imagegen",
    "benchtrail-refserver",
];

const TEMPLATE: &str = include_str!("bootstrap.sh");

/// Where the command saves the script, unless it is told otherwise.
const SCRIPT: &str = "agent-bootstrap.sh";

/// The file that the command saves the script to: a plain name, which a shell reads as one word.
///
/// # Errors
/// `bad_filename`.
pub fn script_filename(wanted: Option<&str>) -> Result<&str, Refusal> {
    let name = wanted.map(str::trim).filter(|name| !name.is_empty()).unwrap_or(SCRIPT);
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
    if name.len() > 100 || !name.chars().all(plain) || name.starts_with(['.', '-']) {
        return Err(Refusal::invalid("bad_filename", "p_bootstrap_script_filename is no plain file name")
            .hint("use letters, digits, '.', '_' and '-', for example agent-bootstrap.sh"));
    }
    Ok(name)
}

/// The command that a person runs on the host: one line, with the script left there to be read.
pub fn command(config: &Config, token: &str, file: &str) -> String {
    let url = config.public_url.as_str().trim_end_matches('/');
    format!(
        "curl -fsSL -o {file} {url}/api/agent/bootstrap.sh && sudo env BENCHTRAIL_ENROL_TOKEN={token} sh {file}"
    )
}

/// A program that is offered.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Program {
    name: &'static str,
    path: PathBuf,
    sha256: String,
}

type Hashed = HashMap<PathBuf, (SystemTime, u64, String)>;
static HASHED: LazyLock<Mutex<Hashed>> = LazyLock::new(Mutex::default);

/// The SHA-256 of a file, looked up again only when the file changed.
fn sha256_of(path: &Path) -> std::io::Result<String> {
    let meta = std::fs::metadata(path)?;
    let (modified, length) = (meta.modified()?, meta.len());
    let known = HASHED.lock().unwrap_or_else(PoisonError::into_inner).get(path).cloned();
    if let Some((at, of, sha256)) = known
        && at == modified
        && of == length
    {
        return Ok(sha256);
    }
    let mut hasher = Sha256::new();
    std::io::copy(&mut std::fs::File::open(path)?, &mut hasher)?;
    let sha256 = hex::encode(hasher.finalize());
    let mut hashed = HASHED.lock().unwrap_or_else(PoisonError::into_inner);
    hashed.insert(path.to_owned(), (modified, length, sha256.clone()));
    Ok(sha256)
}

/// The programs that lie in the configured folder. Hashing is work for a thread of its own.
async fn programs(config: &Config) -> Result<Vec<Program>, Failure> {
    let Some(dir) = config.agent_dir.clone() else { return Err(no_programs()) };
    let found = tokio::task::spawn_blocking(move || {
        PROGRAMS
            .iter()
            .map(|name| (*name, dir.join(name)))
            .filter(|(_, path)| path.is_file())
            .map(|(name, path)| Ok(Program { name, sha256: sha256_of(&path)?, path }))
            .collect::<std::io::Result<Vec<_>>>()
    });
    let found = found.await.map_err(|error| Failure::unavailable(&error))?;
    let found = found.map_err(|error| Failure::unavailable(&error))?;
    if found.iter().any(|program| program.name == "benchtrail-agent") {
        Ok(found)
    } else {
        Err(no_programs())
    }
}

fn no_programs() -> Failure {
    Failure::not_found(
        "no_agent_programs",
        "this control plane has no agent to hand out",
        "start it with --agent-dir and the folder of benchtrail-agent and the load generators",
    )
}

/// The script. It is a whole: a download that broke off defines functions and does nothing.
pub async fn script(State(state): State<AppState>) -> Result<Response, Failure> {
    let programs = programs(&state.config).await?;
    let mut lines = String::new();
    for program in &programs {
        let _ = writeln!(lines, "{} {}", program.sha256, program.name);
    }
    let url = state.config.public_url.as_str().trim_end_matches('/');
    let text = TEMPLATE
        .replace("@URL@", &quoted(url))
        .replace("@MACHINE@", std::env::consts::ARCH)
        .replace("@VERSION@", env!("CARGO_PKG_VERSION"))
        .replace("@PROGRAMS@", lines.trim_end());
    Ok(([(header::CONTENT_TYPE, HeaderValue::from_static("text/x-shellscript; charset=utf-8"))], text)
        .into_response())
}

/// A text as one word of the shell's.
fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "'\\''"))
}

/// One program.
pub async fn program(
    State(state): State<AppState>,
    ApiPath(name): ApiPath<String>,
) -> Result<Response, Failure> {
    let programs = programs(&state.config).await?;
    let program = programs.into_iter().find(|program| program.name == name).ok_or_else(|| {
        Failure::not_found(
            "no_such_program",
            "there is no such program here",
            format!("one of {}", PROGRAMS.join(", ")),
        )
    })?;
    let file = tokio::fs::File::open(&program.path).await.map_err(|error| Failure::unavailable(&error))?;
    let length = file.metadata().await.map_err(|error| Failure::unavailable(&error))?.len();
    let mut response = Body::from_stream(ReaderStream::with_capacity(file, 256 << 10)).into_response();
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/octet-stream"));
    headers.insert(header::CONTENT_LENGTH, HeaderValue::from(length));
    if let Ok(etag) = HeaderValue::from_str(&format!("\"{}\"", program.sha256)) {
        headers.insert(header::ETAG, etag);
    }
    Ok(response)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_one_word_of_the_shells() {
        assert_eq!(quoted("https://bench.example"), "'https://bench.example'");
        assert_eq!(quoted("a'; rm -rf / '"), "'a'\\''; rm -rf / '\\'''");
    }

    #[test]
    fn a_changed_file_has_another_hash() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("benchtrail-agent");
        std::fs::write(&path, "one").unwrap();
        let one = sha256_of(&path).unwrap();
        assert_eq!(one, hex::encode(Sha256::digest("one")));
        assert_eq!(sha256_of(&path).unwrap(), one);
        std::fs::write(&path, "another").unwrap();
        assert_eq!(sha256_of(&path).unwrap(), hex::encode(Sha256::digest("another")));
    }
}
