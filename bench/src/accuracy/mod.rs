//! Word and character error rates of transcripts.

mod number_words;
mod numbers;
mod whisper;

/// What is evened out before two texts are compared. Letter case never counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Normalizer {
    /// Only letter case and the white space around the text.
    None,
    /// Whisper's basic normalizer: what stands in brackets, symbols, punctuation and repeated spaces too.
    Basic,
    /// Whisper's English normalizer: contractions, numbers, British spellings and fillers too.
    WhisperEnglish,
}

/// `text` as it is compared.
pub fn normalize(text: &str, normalizer: Normalizer) -> String {
    match normalizer {
        Normalizer::None => text.to_lowercase().trim().to_owned(),
        Normalizer::Basic => whisper::basic(text),
        Normalizer::WhisperEnglish => whisper::english(text),
    }
}

/// Word error rate in percent: edits / reference words. None when the reference has no words.
pub fn word_error_rate(reference: &str, transcript: &str, normalizer: Normalizer) -> Option<f64> {
    let (reference, transcript) = (normalize(reference, normalizer), normalize(transcript, normalizer));
    let words = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    rate(&words(&reference), &words(&transcript))
}

/// Character error rate in percent: edits / reference characters, spaces included. None when the reference is empty.
pub fn character_error_rate(reference: &str, transcript: &str, normalizer: Normalizer) -> Option<f64> {
    let (reference, transcript) = (normalize(reference, normalizer), normalize(transcript, normalizer));
    rate(&reference.chars().collect::<Vec<_>>(), &transcript.chars().collect::<Vec<_>>())
}

fn rate<T: PartialEq>(reference: &[T], transcript: &[T]) -> Option<f64> {
    (!reference.is_empty()).then(|| 100.0 * edits(reference, transcript) as f64 / reference.len() as f64)
}

/// Levenshtein distance: the fewest substitutions, insertions and deletions.
fn edits<T: PartialEq>(reference: &[T], transcript: &[T]) -> usize {
    let mut row: Vec<usize> = (0..=transcript.len()).collect();
    for (i, expected) in reference.iter().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, found) in transcript.iter().enumerate() {
            let substitution = diagonal + usize::from(expected != found);
            diagonal = row[j + 1];
            row[j + 1] = substitution.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[transcript.len()]
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn wer(reference: &str, transcript: &str) -> Option<f64> {
        word_error_rate(reference, transcript, Normalizer::None)
    }

    #[test]
    fn substitutions_insertions_and_deletions_count_one_each() {
        assert_eq!(wer("a b c d", "a x c d"), Some(25.0));
        assert_eq!(wer("a b c d", "a b c d e"), Some(25.0));
        assert_eq!(wer("a b c d", "a c d"), Some(25.0));
        assert_eq!(wer("a b c d", ""), Some(100.0));
    }

    #[test]
    fn many_insertions_exceed_a_hundred_percent() {
        assert_eq!(wer("a", "b c d"), Some(300.0));
    }

    #[test]
    fn letter_case_does_not_count() {
        assert_eq!(wer("Hello World", "hello world"), Some(0.0));
    }

    #[test]
    fn punctuation_counts_unless_normalized() {
        assert_eq!(wer("hello, world", "hello world"), Some(50.0));
        assert_eq!(word_error_rate("Hello, world! It's", "hello world it’s", Normalizer::Basic), Some(0.0));
        assert_eq!(normalize("[noise] Café, «no»!", Normalizer::Basic), "café no");
    }

    #[test]
    fn english_is_evened_out_as_whisper_does() {
        let even = |text| normalize(text, Normalizer::WhisperEnglish);
        assert_eq!(
            even("Mr. Smith won't pay twenty-five dollars, uh, in colour."),
            "mister smith will not pay $25 in color"
        );
        assert_eq!(even("two hundred and five per cent"), "205%");
    }

    #[test]
    fn characters_are_compared_one_by_one() {
        assert_eq!(character_error_rate("kitten", "sitting", Normalizer::None), Some(50.0));
    }

    #[test]
    fn an_empty_reference_has_no_rate() {
        assert_eq!(wer("", "a"), None);
    }

    proptest! {
        #[test]
        fn no_text_panics(text in any::<String>(), words in prop::collection::vec(prop::sample::select(vec![
            "one", "o", "twenty", "hundred", "million", "decillion", "double", "point", "and", "a", "half", "minus", "dollars",
            "per", "cent", "percent", "second", "9", "$4", "0.50", "1.", "99999999999999999999999999999999999999", "x's",
        ]), 0..12)) {
            for text in [text, words.join(" ")] {
                normalize(&text, Normalizer::Basic);
                normalize(&text, Normalizer::WhisperEnglish);
            }
        }

        #[test]
        fn the_distance_is_a_metric(a in "[ab]{0,8}", b in "[ab]{0,8}", c in "[ab]{0,8}") {
            let of = |x: &str, y: &str| edits(x.as_bytes(), y.as_bytes());
            prop_assert_eq!(of(&a, &a), 0);
            prop_assert_eq!(of(&a, &b), of(&b, &a));
            prop_assert!(of(&a, &c) <= of(&a, &b) + of(&b, &c));
            prop_assert!(of(&a, &b) >= a.len().abs_diff(b.len()));
        }
    }
}
