//! Where the product's programs and the real model are.

use std::path::{Path, PathBuf};

/// One of the product's programs, as built by `scripts/build dev`.
pub fn binary(name: &str) -> PathBuf {
    let dir = match std::env::var_os("BENCHTRAIL_BIN_DIR") {
        Some(dir) => PathBuf::from(dir),
        None => {
            // target/debug/deps/flow-… → target/debug
            let mut dir = std::env::current_exe().expect("this test's own path");
            dir.pop();
            if dir.ends_with("deps") {
                dir.pop();
            }
            dir
        }
    };
    let path = dir.join(name);
    assert!(path.exists(), "{} is missing: run scripts/build dev first", path.display());
    path
}

/// The repository's root.
pub fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("tests/ lies in the repository").to_owned()
}

/// The cache of downloads and builds.
pub fn cache() -> PathBuf {
    let home = || PathBuf::from(std::env::var_os("HOME").expect("HOME is set")).join(".cache/benchtrail");
    std::env::var_os("BENCHTRAIL_CACHE").map_or_else(home, PathBuf::from)
}

/// The real small model: Gemma 3 270M, installed by `scripts/setup run`.
pub fn gemma() -> PathBuf {
    let path = std::env::var_os("BENCHTRAIL_MODEL_FILE")
        .map_or_else(|| cache().join("models/gemma-3-270m-q4_k_m.gguf"), PathBuf::from);
    assert!(path.exists(), "{} is missing: run scripts/setup run first", path.display());
    path
}
