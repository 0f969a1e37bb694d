//! The inputs of a job: fetched from the control plane by their hash, or laid on this host by its owner.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use events::prompt_source::{PromptSourceRef, PromptSourceType};
use sha2::{Digest, Sha256};

use crate::control::Https;
use crate::policy::Policy;

/// Where a job's inputs lie on this host, proven.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Sources {
    /// The rows (`{agent.prompts}`).
    pub(super) prompts: PathBuf,
    /// The reference transcripts (`{agent.ground_truth}`), where there are such.
    pub(super) ground_truth: Option<PathBuf>,
    /// SHA-256 of the rows as they lie there.
    pub(super) sha256: String,
}

/// The files of a snapshot that the host's owner laid into a folder: rows, and transcripts.
pub fn snapshot_files(source_type: PromptSourceType) -> (&'static str, Option<&'static str>) {
    match source_type {
        PromptSourceType::MetrumbenchAsrSnapshot => ("manifest.jsonl", Some("transcripts.jsonl")),
        _ => ("prompts.jsonl", None),
    }
}

/// The snapshots of the policy that are there: folders with rows in them.
pub fn snapshots_present(snapshots: &BTreeMap<String, PathBuf>) -> Vec<String> {
    let there =
        |folder: &Path| ["manifest.jsonl", "prompts.jsonl"].iter().any(|name| folder.join(name).is_file());
    snapshots.iter().filter(|(_, folder)| there(folder)).map(|(code, _)| code.clone()).collect()
}

/// Makes the inputs ready: fetched once, kept by their hash in `folder`, and checked each time.
///
/// # Errors
/// What is missing, and what to do.
pub(super) async fn ready(
    https: &Https,
    policy: &Policy,
    folder: &Path,
    named: &PromptSourceRef,
) -> Result<Sources, String> {
    let Some(sha256) = &named.sha256 else { return of_host(policy, named).await };
    std::fs::create_dir_all(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let prompts = fetched(https, folder, sha256).await?;
    let ground_truth = match &named.ground_truth_sha256 {
        Some(sha256) => Some(fetched(https, folder, sha256).await?),
        None => None,
    };
    Ok(Sources { prompts, ground_truth, sha256: sha256.clone() })
}

/// A snapshot that the host's owner laid here.
async fn of_host(policy: &Policy, named: &PromptSourceRef) -> Result<Sources, String> {
    let code = &named.code;
    let folder = policy.snapshots.get(code).ok_or_else(|| {
        format!("the snapshot {code} is not on this host: lay it into a folder and name it under [snapshots] in agent.toml")
    })?;
    let (rows, transcripts) = snapshot_files(named.source_type);
    let prompts = folder.join(rows);
    let sha256 = hash(&prompts).await.map_err(|error| format!("{}: {error}", prompts.display()))?;
    let ground_truth = transcripts.map(|name| folder.join(name));
    if let Some(missing) = ground_truth.as_ref().filter(|path| !path.is_file()) {
        return Err(format!("the snapshot {code} has no {}", missing.display()));
    }
    Ok(Sources { prompts, ground_truth, sha256 })
}

/// A file of the control plane's, by its hash.
async fn fetched(https: &Https, folder: &Path, sha256: &str) -> Result<PathBuf, String> {
    let path = folder.join(format!("{sha256}.jsonl"));
    if hash(&path).await.is_ok_and(|found| found == sha256) {
        return Ok(path);
    }
    let partial = folder.join(format!("{sha256}.part"));
    https
        .download(sha256, &partial)
        .await
        .map_err(|error| format!("the prompt source {sha256} cannot be fetched: {error}"))?;
    let found = hash(&partial).await.map_err(|error| format!("{}: {error}", partial.display()))?;
    if found != sha256 {
        let _ = std::fs::remove_file(&partial);
        return Err(format!("the prompt source {sha256} arrived damaged, as {found}: run the job again"));
    }
    std::fs::rename(&partial, &path).map_err(|error| format!("{}: {error}", path.display()))?;
    Ok(path)
}

/// SHA-256 of a file, hexadecimal.
pub(super) async fn hash(path: &Path) -> io::Result<String> {
    let path = path.to_owned();
    let hashed = tokio::task::spawn_blocking(move || {
        let mut file = std::fs::File::open(path)?;
        let mut hasher = Sha256::new();
        io::copy(&mut file, &mut hasher)?;
        Ok(hex::encode(hasher.finalize()))
    });
    hashed.await.map_err(io::Error::other)?
}

#[cfg(test)]
mod tests {
    use super::*;

    fn policy(snapshots: &str) -> Policy {
        toml::from_str(&format!("work_dir='/w'\nlog_dir='/l'\n[snapshots]\n{snapshots}")).unwrap()
    }

    fn named(source_type: PromptSourceType) -> PromptSourceRef {
        PromptSourceRef {
            org: "_".into(),
            code: "librispeech-test-clean".into(),
            source_type,
            sha256: None,
            ground_truth_sha256: None,
        }
    }

    #[tokio::test]
    async fn a_snapshot_of_the_host_is_found_and_hashed() {
        let folder = tempfile::tempdir().unwrap();
        let named = named(PromptSourceType::MetrumbenchAsrSnapshot);
        let policy = policy(&format!("librispeech-test-clean = {:?}", folder.path()));
        assert!(of_host(&policy, &named).await.is_err(), "the folder is empty");
        assert_eq!(snapshots_present(&policy.snapshots), Vec::<String>::new());
        std::fs::write(folder.path().join("manifest.jsonl"), "abc").unwrap();
        let error = of_host(&policy, &named).await.unwrap_err();
        assert!(error.contains("transcripts.jsonl"), "{error}");
        std::fs::write(folder.path().join("transcripts.jsonl"), "").unwrap();
        let found = of_host(&policy, &named).await.unwrap();
        assert_eq!(found.sha256, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
        assert_eq!(snapshots_present(&policy.snapshots), ["librispeech-test-clean"]);
    }

    #[tokio::test]
    async fn a_snapshot_that_the_policy_does_not_name_says_what_to_do() {
        let error = of_host(&policy(""), &named(PromptSourceType::PromptLibrary)).await.unwrap_err();
        assert!(error.contains("[snapshots] in agent.toml"), "{error}");
    }
}
