//! Natural keys: the identity of everything, and at the same time the names of the log's streams.
//!
//! A stream key is `kind/part/part…`. A part is percent-encoded where it holds `/` or `%` (model codes do);
//! in a NATS subject also where it holds `.`, `*`, `>` or a space (see [`crate::subjects`]).
//! Codes are immutable; renaming a thing changes only its display name.

mod entity;
mod stream;

pub use entity::{ImportKey, JobKey, ProjectKey, RunKey, ScenarioKey, ServerKey, WorkloadKey};
pub use stream::StreamKey;

/// The organisation of platform-wide streams (frameworks, models, tools, accounts).
pub const PLATFORM_ORG: &str = "_";

/// What was wrong with a key or a code.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum KeyError {
    /// The code is empty, too long or holds a character that codes may not hold.
    #[error(
        "{what} {value:?} is not a valid code: use 1 to {max} characters of a-z, 0-9, '.', '_' and '-', starting with a letter or digit"
    )]
    Code {
        /// What the code names, for example `project code`.
        what: &'static str,
        /// The offending value.
        value: String,
        /// The longest code allowed.
        max: usize,
    },
    /// The stream key has another shape than its kind asks for.
    #[error("{key:?} is not a {kind} key: expected {expected}")]
    Shape {
        /// The offending key.
        key: String,
        /// The kind that was expected.
        kind: &'static str,
        /// The shape that was expected.
        expected: &'static str,
    },
}

/// The longest code: project, workload, organisation and the like.
pub const MAX_CODE: usize = 100;

/// Checks a user-made code (organisation, project, workload, server configuration, hostname).
///
/// # Errors
/// [`KeyError::Code`] names the rule that was broken.
pub fn check_code(what: &'static str, value: &str) -> Result<(), KeyError> {
    let fine = !value.is_empty()
        && value.len() <= MAX_CODE
        && value.bytes().next().is_some_and(|b| b.is_ascii_lowercase() || b.is_ascii_digit())
        && value.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b"._-".contains(&b));
    if fine { Ok(()) } else { Err(KeyError::Code { what, value: value.to_owned(), max: MAX_CODE }) }
}

/// Makes a code out of a display name: lower case, runs of other characters become one `-`.
pub fn code_from_name(name: &str) -> String {
    let mut code = String::with_capacity(name.len());
    for c in name.chars() {
        let c = c.to_ascii_lowercase();
        if c.is_ascii_lowercase() || c.is_ascii_digit() || c == '.' || c == '_' {
            code.push(c);
        } else if !code.ends_with('-') && !code.is_empty() {
            code.push('-');
        }
    }
    code.truncate(MAX_CODE);
    code.trim_matches(['-', '.', '_']).to_owned()
}

/// The kinds of stream the log holds.
pub const KINDS: &[&str] = &[
    "project",
    "workload",
    "scenario",
    "run",
    "job",
    "telemetry",
    "progress",
    "logs",
    "import",
    "prompt_source",
    "server",
    "config",
    "model",
    "framework",
    "tool",
    "accelerator",
    "engine_args_set",
    "tool_args_set",
    "approval",
    "org",
    "quota",
    "user",
    "access",
    "saved_view",
    "blob",
    "system",
];

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_job_key_survives_its_stream() {
        let job = JobKey {
            org: "acme".into(),
            project: "p".into(),
            workload: "w".into(),
            run: 3,
            scenario: "c8-isl512-osl256".into(),
        };
        assert_eq!(job.stream().as_str(), "job/acme/p/w/3/c8-isl512-osl256");
        assert_eq!(JobKey::from_stream(&job.stream()), Ok(job.clone()));
        assert_eq!(JobKey::with_attempt(&job.telemetry_stream(2)), Ok((job, Some(2))));
    }

    #[test]
    fn a_key_has_one_spelling() {
        assert!("model/_/meta-llama%2FLlama-3.1-8B".parse::<StreamKey>().is_ok());
        assert!("model/_/meta%2DLlama".parse::<StreamKey>().is_err());
        assert!("job/a/b/c/03/d".parse::<StreamKey>().is_ok_and(|k| JobKey::from_stream(&k).is_err()));
    }

    #[test]
    fn a_name_becomes_a_code() {
        assert_eq!(code_from_name("  Llama 3.3, 70B (fp8)! "), "llama-3.3-70b-fp8");
    }

    proptest! {
        #[test]
        fn parts_survive_encoding(parts in proptest::collection::vec("[^\\p{C}]{1,20}", 1..6)) {
            let key = StreamKey::new("model", &parts.iter().map(String::as_str).collect::<Vec<_>>());
            prop_assert_eq!(key.parts(), parts);
            prop_assert_eq!(key.as_str().parse::<StreamKey>(), Ok(key.clone()));
        }

        #[test]
        fn no_text_panics(text in ".{0,80}") {
            let _ = text.parse::<StreamKey>();
        }
    }
}
