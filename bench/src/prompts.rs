//! Where prompts come from: a JSONL library, or a built-in source of distinct English-like text.

use rand::rngs::SmallRng;
use rand::seq::SliceRandom;
use rand::{Rng, SeedableRng};
use serde::Deserialize;

use crate::jsonl::{self, JsonlError};

/// Words per token where nothing better is known.
pub const WORDS_PER_TOKEN: f64 = 0.75;

/// One prompt.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Prompt {
    /// The text.
    pub prompt: String,
    /// Overrides the output length for this prompt.
    #[serde(default)]
    pub expected_output_tokens: Option<u32>,
}

/// Reads a prompt library. Empty lines are skipped.
pub fn parse_library(text: &str) -> Result<Vec<Prompt>, JsonlError> {
    jsonl::rows(text, "a \"prompt\" and, if wanted, expected_output_tokens")
}

/// How lengths in tokens become words.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Lengths {
    /// Words a token.
    pub words_per_token: f64,
    /// Tokens that are added to each prompt: by the chat template and the system message.
    pub overhead_tokens: f64,
}

impl Default for Lengths {
    fn default() -> Self {
        Self { words_per_token: WORDS_PER_TOKEN, overhead_tokens: 0.0 }
    }
}

impl Lengths {
    /// Words of a prompt of `tokens` tokens.
    pub fn words(&self, tokens: u32) -> f64 {
        ((f64::from(tokens) - self.overhead_tokens) * self.words_per_token).max(1.0)
    }
}

/// `count` prompts of a library, from its shortest to its longest.
pub fn spread_by_length(library: &[Prompt], count: usize) -> Vec<Prompt> {
    let mut sorted: Vec<&Prompt> = library.iter().collect();
    sorted.sort_by_key(|prompt| count_words(&prompt.prompt));
    let count = count.min(sorted.len());
    let at = |index: usize| index * (sorted.len() - 1) / count.saturating_sub(1).max(1);
    (0..count).map(|index| sorted[at(index)].clone()).collect()
}

/// Made-up prompts of these numbers of words.
pub fn synthetic_of_lengths(words: &[usize], seed: u64) -> Vec<Prompt> {
    let text = |(index, words): (usize, &usize)| {
        synthetic_text(seed.wrapping_add(index as u64) ^ 0xCA11_B8A7, *words)
    };
    words.iter().enumerate().map(|one| Prompt { prompt: text(one), expected_output_tokens: None }).collect()
}

/// Words of `text`, split at white space.
pub fn count_words(text: &str) -> u64 {
    text.split_whitespace().count() as u64
}

/// A source of prompts, the same for the same seed.
#[derive(Debug)]
pub enum Source {
    /// Shuffled once, then cycled.
    Library(Vec<Prompt>),
    /// Made on demand, each different from every other.
    Synthetic {
        /// The run's seed.
        seed: u64,
        /// Words of each prompt.
        words: usize,
    },
}

impl Source {
    /// A library, sampled by length when `input_tokens` is given and shuffled by `seed`.
    pub fn library(mut prompts: Vec<Prompt>, input_tokens: Option<u32>, lengths: Lengths, seed: u64) -> Self {
        if let Some(tokens) = input_tokens {
            prompts = nearest_in_length(prompts, |prompt| &prompt.prompt, lengths.words(tokens));
        }
        prompts.shuffle(&mut SmallRng::seed_from_u64(seed));
        Self::Library(prompts)
    }

    /// Made-up prompts of about `input_tokens` tokens.
    pub fn synthetic(input_tokens: u32, lengths: Lengths, seed: u64) -> Self {
        Self::Synthetic { seed, words: lengths.words(input_tokens).round() as usize }
    }

    /// How many prompts before they repeat; none when they never do.
    pub fn distinct(&self) -> Option<usize> {
        match self {
            Self::Library(prompts) => Some(prompts.len()),
            Self::Synthetic { .. } => None,
        }
    }

    /// The prompt of request `index`.
    pub fn prompt(&self, index: u64) -> Prompt {
        match self {
            Self::Library(prompts) => prompts[(index % prompts.len() as u64) as usize].clone(),
            Self::Synthetic { seed, words } => {
                let mixed = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15)
                    ^ index.wrapping_add(1).wrapping_mul(0xD1B5_4A32_D192_ED03);
                Prompt { prompt: synthetic_text(mixed, *words), expected_output_tokens: None }
            }
        }
    }
}

/// The rows whose prompt is within a tenth of the wanted length; where there are fewer than 16 of them, the 16 nearest.
pub fn nearest_in_length<T>(mut rows: Vec<T>, prompt: impl Fn(&T) -> &str, wanted_words: f64) -> Vec<T> {
    let off = |row: &T| (count_words(prompt(row)) as f64 - wanted_words).abs();
    rows.sort_by(|a, b| off(a).total_cmp(&off(b)));
    let close = rows.iter().take_while(|row| off(row) <= wanted_words * 0.1).count();
    rows.truncate(close.max(16));
    rows
}

/// Short common words: most tokenizers give each one or two tokens.
const VOCABULARY: &[&str] = &[
    "the", "river", "table", "of", "and", "light", "in", "a", "small", "house", "that", "winter", "is",
    "for", "green", "market", "with", "on", "people", "carry", "old", "paper", "to", "open", "window",
    "from", "morning", "music", "they", "write", "about", "stone", "bridge", "over", "quiet", "water", "and",
    "letter", "between", "garden", "city", "remember", "summer", "story", "under", "night", "travel",
    "north", "measure", "engine", "simple", "answer", "question", "before", "teacher", "number", "island",
    "after", "silver", "road", "across", "field", "winter", "bread", "color", "student", "history",
    "machine", "weather", "build", "careful", "long", "village", "science", "doctor", "present", "change",
    "reason", "little", "forest", "during", "evening", "kitchen", "horse", "picture", "voice", "never",
    "always", "cold", "warm", "bright", "distance", "memory", "ship", "harbor", "clock", "coffee", "farmer",
    "library", "mountain", "learn", "season",
];

/// `words` words. The first ones are picked from all the vocabulary, so that no two prompts share a prefix a server could cache.
fn synthetic_text(seed: u64, words: usize) -> String {
    let mut random = SmallRng::seed_from_u64(seed);
    let mut text = String::with_capacity(words * 7);
    let mut in_sentence = 0;
    for index in 0..words {
        if index > 0 {
            text.push(' ');
        }
        let word = VOCABULARY[random.random_range(0..VOCABULARY.len())];
        if in_sentence == 0 {
            let mut letters = word.chars();
            text.extend(letters.next().map(|first| first.to_ascii_uppercase()));
            text.push_str(letters.as_str());
        } else {
            text.push_str(word);
        }
        in_sentence += 1;
        if index + 1 == words || in_sentence >= 8 && random.random_range(0..6) == 0 {
            text.push('.');
            in_sentence = 0;
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn synthetic_prompts_have_the_wanted_length_and_differ() {
        let source = Source::synthetic(512, Lengths::default(), 7);
        let (first, second) = (source.prompt(0).prompt, source.prompt(1).prompt);
        assert_eq!(count_words(&first), 384);
        assert_ne!(first[..24], second[..24]);
    }

    #[test]
    fn the_same_seed_gives_the_same_prompts() {
        let text = |seed| Source::synthetic(64, Lengths::default(), seed).prompt(5).prompt;
        assert_eq!(text(1), text(1));
        assert_ne!(text(1), text(2));
    }

    #[test]
    fn a_library_is_shuffled_then_cycled() {
        let library: String = (0..20).map(|i| format!("{{\"prompt\":\"p{i}\"}}\n")).collect();
        let source = Source::library(parse_library(&library).unwrap(), None, Lengths::default(), 3);
        assert_eq!(source.prompt(0), source.prompt(20));
        assert_ne!(
            (0..20).map(|i| source.prompt(i).prompt).collect::<Vec<_>>(),
            (0..20).map(|i| format!("p{i}")).collect::<Vec<_>>()
        );
    }

    #[test]
    fn a_library_is_sampled_by_length() {
        let prompts =
            (1..=200).map(|n| Prompt { prompt: "w ".repeat(n), expected_output_tokens: None }).collect();
        let Source::Library(kept) = Source::library(prompts, Some(200), Lengths::default(), 0) else {
            unreachable!()
        };
        assert!(kept.iter().all(|prompt| (135..=165).contains(&count_words(&prompt.prompt))));
    }

    #[test]
    fn prompts_to_learn_from_span_the_librarys_lengths() {
        let prompts: Vec<Prompt> =
            (1..=50).map(|n| Prompt { prompt: "w ".repeat(n), expected_output_tokens: None }).collect();
        let words: Vec<u64> =
            spread_by_length(&prompts, 8).iter().map(|prompt| count_words(&prompt.prompt)).collect();
        assert_eq!(words, [1, 8, 15, 22, 29, 36, 43, 50]);
    }

    #[test]
    fn the_template_around_a_prompt_counts_towards_its_length() {
        let lengths = Lengths { words_per_token: 0.5, overhead_tokens: 20.0 };
        assert_eq!(lengths.words(120), 50.0);
        assert_eq!(lengths.words(4), 1.0);
    }

    #[test]
    fn a_bad_line_is_named() {
        let error = parse_library("{\"prompt\":\"a\"}\n{\"text\":\"b\"}\n").unwrap_err();
        assert!(error.to_string().starts_with("line 2:"), "{error}");
    }
}
