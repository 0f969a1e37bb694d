//! The nearest known name to one that is not known, for hints.

/// The known name that a mistyped one most likely meant; nothing when none is near.
pub fn nearest<'a>(wanted: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    // A hint for a name of this length would be no hint, and the table would be large.
    if wanted.chars().count() > 100 {
        return None;
    }
    let wanted = wanted.to_lowercase();
    let most = (wanted.chars().count() / 3).max(1);
    known
        .into_iter()
        .map(|name| (distance(&wanted, &name.to_lowercase()), name))
        .filter(|(distance, _)| *distance <= most)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, name)| name)
}

/// How many letters must be inserted, deleted or replaced to make `a` of `b`.
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, from) in a.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, to) in b.iter().enumerate() {
            let replace = diagonal + usize::from(from != *to);
            diagonal = row[j + 1];
            row[j + 1] = replace.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_of_the_keys_is_recognised() {
        let known = ["tensor_parallel_size", "max_model_len", "parallel"];
        assert_eq!(nearest("max_model_length", known), Some("max_model_len"));
        assert_eq!(nearest("tensor-parallel-size", known), Some("tensor_parallel_size"));
        assert_eq!(nearest("paralel", known), Some("parallel"));
    }

    #[test]
    fn something_else_altogether_has_no_nearest() {
        assert_eq!(nearest("zzz", ["parallel"]), None);
    }

    #[test]
    fn the_distance_counts_letters() {
        assert_eq!(distance("kitten", "sitting"), 3);
        assert_eq!(distance("", "ab"), 2);
        assert_eq!(distance("same", "same"), 0);
    }
}
