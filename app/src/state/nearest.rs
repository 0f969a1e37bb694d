//! The keys most like one that is not there: a typing mistake away, or beside it.

/// Up to `most` of the known keys, the most alike first; none that has little in common.
pub fn nearest(wanted: &str, known: impl IntoIterator<Item = String>, most: usize) -> Vec<String> {
    let mut found: Vec<(f64, String)> = known
        .into_iter()
        .filter(|key| key != wanted)
        .map(|key| (strsim::normalized_damerau_levenshtein(wanted, &key), key))
        .filter(|(alike, _)| *alike >= 0.5)
        .collect();
    found.sort_by(|a, b| b.0.total_cmp(&a.0).then_with(|| a.1.cmp(&b.1)));
    found.dedup_by(|a, b| a.1 == b.1);
    found.truncate(most);
    found.into_iter().map(|(_, key)| key).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_typing_mistake_finds_its_key_first() {
        let known =
            ["acme/sizing/w/1", "acme/sizing/w/2", "acme/latency/w/1", "other/thing"].map(str::to_owned);
        assert_eq!(nearest("acme/sizign/w/1", known, 2), ["acme/sizing/w/1", "acme/sizing/w/2"]);
    }

    #[test]
    fn what_has_nothing_in_common_is_not_offered() {
        assert!(nearest("acme/sizing", ["zzz".to_owned(), "acme/sizing".to_owned()], 3).is_empty());
    }
}
