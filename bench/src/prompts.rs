//! Where prompts come from: a JSONL library, or a built-in source of distinct English-like text.

use rand::rngs::SmallRng;
use rand::seq::SliceRandom;
use rand::{Rng, SeedableRng};
use serde::Deserialize;

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

/// Why a prompt library could not be used.
#[derive(Debug, thiserror::Error)]
pub enum PromptError {
    /// A line is not what it should be.
    #[error("line {line}: {reason}; each line must be a JSON object with a \"prompt\" field")]
    Line {
        /// 1-based.
        line: usize,
        /// What is wrong.
        reason: String,
    },
    /// Nothing in it.
    #[error("no prompts in it")]
    Empty,
}

/// Reads a prompt library. Empty lines are skipped.
pub fn parse_library(text: &str) -> Result<Vec<Prompt>, PromptError> {
    let mut prompts = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let line = line.trim().trim_start_matches('\u{feff}');
        if line.is_empty() {
            continue;
        }
        let prompt: Prompt = serde_json::from_str(line)
            .map_err(|error| PromptError::Line { line: index + 1, reason: error.to_string() })?;
        prompts.push(prompt);
    }
    if prompts.is_empty() { Err(PromptError::Empty) } else { Ok(prompts) }
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
    pub fn library(
        mut prompts: Vec<Prompt>,
        input_tokens: Option<u32>,
        words_per_token: f64,
        seed: u64,
    ) -> Self {
        if let Some(tokens) = input_tokens {
            prompts = nearest_in_length(prompts, f64::from(tokens) * words_per_token);
        }
        prompts.shuffle(&mut SmallRng::seed_from_u64(seed));
        Self::Library(prompts)
    }

    /// Made-up prompts of about `input_tokens` tokens.
    pub fn synthetic(input_tokens: u32, words_per_token: f64, seed: u64) -> Self {
        Self::Synthetic { seed, words: ((f64::from(input_tokens) * words_per_token).round() as usize).max(1) }
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

/// The prompts within a tenth of the wanted length; where there are fewer than 16 of them, the 16 nearest.
fn nearest_in_length(mut prompts: Vec<Prompt>, wanted_words: f64) -> Vec<Prompt> {
    let off = |prompt: &Prompt| (count_words(&prompt.prompt) as f64 - wanted_words).abs();
    prompts.sort_by(|a, b| off(a).total_cmp(&off(b)));
    let close = prompts.iter().take_while(|prompt| off(prompt) <= wanted_words * 0.1).count();
    prompts.truncate(close.max(16));
    prompts
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
        let source = Source::synthetic(512, WORDS_PER_TOKEN, 7);
        let (first, second) = (source.prompt(0).prompt, source.prompt(1).prompt);
        assert_eq!(count_words(&first), 384);
        assert_ne!(first[..24], second[..24]);
    }

    #[test]
    fn the_same_seed_gives_the_same_prompts() {
        let text = |seed| Source::synthetic(64, WORDS_PER_TOKEN, seed).prompt(5).prompt;
        assert_eq!(text(1), text(1));
        assert_ne!(text(1), text(2));
    }

    #[test]
    fn a_library_is_shuffled_then_cycled() {
        let library: String = (0..20).map(|i| format!("{{\"prompt\":\"p{i}\"}}\n")).collect();
        let source = Source::library(parse_library(&library).unwrap(), None, WORDS_PER_TOKEN, 3);
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
        let Source::Library(kept) = Source::library(prompts, Some(200), WORDS_PER_TOKEN, 0) else {
            unreachable!()
        };
        assert!(kept.iter().all(|prompt| (135..=165).contains(&count_words(&prompt.prompt))));
    }

    #[test]
    fn a_bad_line_is_named() {
        let error = parse_library("{\"prompt\":\"a\"}\n{\"text\":\"b\"}\n").unwrap_err();
        assert!(error.to_string().starts_with("line 2:"), "{error}");
    }
}
