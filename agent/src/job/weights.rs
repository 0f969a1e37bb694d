//! Which weights were served: evidence beside the model's code, as far as this host can tell.
//!
//! A file is hashed, once for as long as it stays the same; of a repository in the Hugging Face cache the commit is known.

use std::collections::BTreeMap;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::sources::hash;
use crate::state_dir::write_atomically;

/// What is known of the weights.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Weights {
    /// The commit of their repository.
    pub(super) revision: Option<String>,
    /// SHA-256 of the file they are in, hexadecimal.
    pub(super) sha256: Option<String>,
}

/// A file's hash, and what the file looked like then.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Known {
    bytes: u64,
    modified_ns: i128,
    inode: u64,
    sha256: String,
}

/// The weights that `model` names: a path on this host, or a repository's id. `asked` is the revision that the engine
/// was told to load. `cache` holds the hashes of files.
pub(super) async fn weights(model: &str, asked: Option<&str>, cache: &Path) -> Weights {
    if !model.starts_with('/') {
        let revision = hub().and_then(|hub| commit_of(&hub, model, asked.unwrap_or("main")));
        return Weights { revision, sha256: None };
    }
    let path = std::fs::canonicalize(model).unwrap_or_else(|_| PathBuf::from(model));
    let sha256 = match file_hash(&path, cache).await {
        Ok(sha256) => sha256,
        Err(error) => {
            tracing::warn!(%error, path = %path.display(), "the weights cannot be hashed");
            None
        }
    };
    // The path as it was written: what it leads to lies in `blobs`.
    Weights { revision: snapshot_of(Path::new(model)), sha256 }
}

/// The Hugging Face cache of this host, by the variables that its own programs look at.
fn hub() -> Option<PathBuf> {
    let of = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    of("HF_HUB_CACHE")
        .or_else(|| of("HF_HOME").map(|home| home.join("hub")))
        .or_else(|| of("HOME").map(|home| home.join(".cache/huggingface/hub")))
}

/// The commit that a branch, tag or commit of a repository stands for in a cache.
fn commit_of(hub: &Path, id: &str, asked: &str) -> Option<String> {
    let plain = |text: &str| !text.split('/').any(|part| part.is_empty() || part == "." || part == "..");
    if !plain(id) || !plain(asked) {
        return None;
    }
    let repository = hub.join(format!("models--{}", id.replace('/', "--")));
    if is_commit(asked) {
        return repository.join("snapshots").join(asked).is_dir().then(|| asked.to_owned());
    }
    let commit = std::fs::read_to_string(repository.join("refs").join(asked)).ok()?;
    Some(commit.trim().to_owned()).filter(|commit| is_commit(commit))
}

/// The commit in a path such as `…/snapshots/<commit>/model.gguf`.
fn snapshot_of(path: &Path) -> Option<String> {
    let mut parts = path.iter().filter_map(|part| part.to_str());
    parts.by_ref().find(|part| *part == "snapshots")?;
    parts.next().filter(|part| is_commit(part)).map(str::to_owned)
}

fn is_commit(text: &str) -> bool {
    text.len() == 40 && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// The hash of a file; nothing for a folder. A file that did not change since it was hashed is not read again.
async fn file_hash(path: &Path, cache: &Path) -> io::Result<Option<String>> {
    let meta = std::fs::metadata(path)?;
    if !meta.is_file() {
        return Ok(None);
    }
    let modified_ns = i128::from(meta.mtime()) * 1_000_000_000 + i128::from(meta.mtime_nsec());
    let is_of = |known: &Known| {
        known.bytes == meta.len() && known.modified_ns == modified_ns && known.inode == meta.ino()
    };
    let mut all: BTreeMap<PathBuf, Known> =
        std::fs::read(cache).ok().and_then(|bytes| serde_json::from_slice(&bytes).ok()).unwrap_or_default();
    if let Some(known) = all.get(path).filter(|known| is_of(known)) {
        return Ok(Some(known.sha256.clone()));
    }
    let sha256 = hash(path).await?;
    let known = Known { bytes: meta.len(), modified_ns, inode: meta.ino(), sha256: sha256.clone() };
    all.retain(|path, _| path.exists());
    all.insert(path.to_owned(), known);
    write_atomically(cache, &serde_json::to_vec(&all)?)?;
    Ok(Some(sha256))
}

#[cfg(test)]
mod tests {
    use super::*;

    const COMMIT: &str = "0123456789abcdef0123456789abcdef01234567";

    #[test]
    fn a_repository_in_the_cache_is_known_by_its_commit() {
        let hub = tempfile::tempdir().unwrap();
        let repository = hub.path().join("models--meta--llama");
        std::fs::create_dir_all(repository.join("refs")).unwrap();
        std::fs::create_dir_all(repository.join("snapshots").join(COMMIT)).unwrap();
        std::fs::write(repository.join("refs/main"), COMMIT).unwrap();
        assert_eq!(commit_of(hub.path(), "meta/llama", "main").as_deref(), Some(COMMIT));
        assert_eq!(commit_of(hub.path(), "meta/llama", COMMIT).as_deref(), Some(COMMIT));
        for (id, asked) in [
            ("meta/other", "main"),
            ("meta/llama", "v2"),
            ("../llama", "main"),
            ("meta/llama", "../refs/main"),
        ] {
            assert_eq!(commit_of(hub.path(), id, asked), None, "{id} {asked}");
        }
    }

    #[test]
    fn a_path_into_a_snapshot_names_its_commit() {
        let path = format!("/hub/models--a--b/snapshots/{COMMIT}/model.gguf");
        assert_eq!(snapshot_of(Path::new(&path)).as_deref(), Some(COMMIT));
        assert_eq!(snapshot_of(Path::new("/models/snapshots/newest/model.gguf")), None);
        assert_eq!(snapshot_of(Path::new("/models/model.gguf")), None);
    }

    #[tokio::test]
    async fn a_file_is_hashed_again_only_when_it_changed() {
        let folder = tempfile::tempdir().unwrap();
        let (path, cache) = (folder.path().join("m.gguf"), folder.path().join("weights.json"));
        std::fs::write(&path, "abc").unwrap();
        let of_abc = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        let found = weights(path.to_str().unwrap(), None, &cache).await;
        assert_eq!(found, Weights { revision: None, sha256: Some(of_abc.to_owned()) });
        // What is known is believed while the file looks as it did.
        let text = std::fs::read_to_string(&cache).unwrap();
        std::fs::write(&cache, text.replace(of_abc, "known")).unwrap();
        assert_eq!(weights(path.to_str().unwrap(), None, &cache).await.sha256.as_deref(), Some("known"));
        std::fs::write(&path, "abcd").unwrap();
        let changed = weights(path.to_str().unwrap(), None, &cache).await.sha256.unwrap();
        assert!(changed != "known" && changed != of_abc);
        assert_eq!(weights(folder.path().to_str().unwrap(), None, &cache).await, Weights::default());
    }
}
