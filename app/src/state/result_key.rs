//! What a result is called in an address: its job's path, or the whole stream key of one that was imported.

/// The kind of stream of imported results.
const IMPORT: &str = "import/";
/// Parts of such a key: `import/org/project/import/number/scenario`.
const PARTS: usize = 6;

/// The word in an address for a result of this stream: `org/project/workload/run/scenario` of a job.
pub fn path_of(stream: &str) -> &str {
    stream.strip_prefix("job/").unwrap_or(stream)
}

/// Whether the word in an address is an imported result's.
pub fn is_import(path: &str) -> bool {
    path.starts_with(IMPORT) && path.split('/').count() == PARTS
}

/// The stream of a result by its word in an address.
pub fn stream_of(path: &str) -> String {
    if is_import(path) { path.to_owned() } else { format!("job/{path}") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn an_organisation_may_be_called_import() {
        assert_eq!(stream_of("import/p/w/1/c8"), "job/import/p/w/1/c8");
        assert_eq!(stream_of("import/acme/p/i/1/c8"), "import/acme/p/i/1/c8");
    }

    proptest! {
        #[test]
        fn every_result_is_found_again(parts in proptest::collection::vec("[a-z0-9-]{1,8}", 5), imported: bool) {
            let stream = format!("{}/{}", if imported { "import" } else { "job" }, parts.join("/"));
            prop_assert_eq!(stream_of(path_of(&stream)), stream.clone());
            prop_assert_eq!(is_import(path_of(&stream)), imported);
        }
    }
}
