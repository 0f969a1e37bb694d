//! What Whisper evens out before it compares two texts.
//!
//! A port of `BasicTextNormalizer` and `EnglishTextNormalizer` of <https://github.com/openai/whisper> (MIT License,
//! Copyright (c) 2022 OpenAI): appendix C of "Robust Speech Recognition via Large-Scale Weak Supervision". Tests compare
//! both with the Python package `whisper-normalizer`.

use std::collections::HashMap;
use std::sync::LazyLock;

use regex::Regex;
use unicode_normalization::UnicodeNormalization;
use unicode_properties::{GeneralCategory, GeneralCategoryGroup, UnicodeGeneralCategory};

use super::numbers;

/// Patterns and what takes their place, in order.
type Replacements = Vec<(Regex, &'static str)>;

fn replacements(rules: &[(&'static str, &'static str)]) -> Replacements {
    let compile = |pattern: &str| Regex::new(pattern).unwrap_or_else(|error| panic!("{pattern}: {error}"));
    rules.iter().map(|(pattern, replacement)| (compile(pattern), *replacement)).collect()
}

fn replace_all(text: String, replacements: &Replacements) -> String {
    replacements.iter().fold(text, |text, (pattern, replacement)| {
        match pattern.replace_all(&text, *replacement) {
            std::borrow::Cow::Borrowed(_) => text,
            std::borrow::Cow::Owned(changed) => changed,
        }
    })
}

/// What stands in brackets or parentheses was not said.
static ASIDES: LazyLock<Replacements> =
    LazyLock::new(|| replacements(&[(r"[<\[][^>\]]*[>\]]", ""), (r"\(([^)]+?)\)", "")]));

static ENGLISH: LazyLock<Replacements> = LazyLock::new(|| {
    replacements(&[
        (r"\b(hmm|mm|mhm|mmm|uh|um)\b", ""),
        (r"\s+'", "'"),
        // contractions
        (r"\bwon't\b", "will not"),
        (r"\bcan't\b", "can not"),
        (r"\blet's\b", "let us"),
        (r"\bain't\b", "aint"),
        (r"\by'all\b", "you all"),
        (r"\bwanna\b", "want to"),
        (r"\bkinda\b", "kind of"),
        (r"\bsorta\b", "sort of"),
        (r"\bdunno\b", "do not know"),
        (r"\bgotta\b", "got to"),
        (r"\bgonna\b", "going to"),
        (r"\bi'ma\b", "i am going to"),
        (r"\bimma\b", "i am going to"),
        (r"\bwoulda\b", "would have"),
        (r"\bcoulda\b", "could have"),
        (r"\bshoulda\b", "should have"),
        (r"\bcause\b", "because"),
        (r"\bma'am\b", "madam"),
        // titles
        (r"\bmr\b", "mister "),
        (r"\bmrs\b", "missus "),
        (r"\bst\b", "saint "),
        (r"\bdr\b", "doctor "),
        (r"\bprof\b", "professor "),
        (r"\bcapt\b", "captain "),
        (r"\bgov\b", "governor "),
        (r"\bald\b", "alderman "),
        (r"\bgen\b", "general "),
        (r"\bsen\b", "senator "),
        (r"\brep\b", "representative "),
        (r"\bpres\b", "president "),
        (r"\brev\b", "reverend "),
        (r"\bhon\b", "honorable "),
        (r"\basst\b", "assistant "),
        (r"\bassoc\b", "associate "),
        (r"\blt\b", "lieutenant "),
        (r"\bcol\b", "colonel "),
        (r"\bjr\b", "junior "),
        (r"\bsr\b", "senior "),
        (r"\besq\b", "esquire "),
        // perfect tenses
        (r"'d been\b", " had been"),
        (r"'s been\b", " has been"),
        (r"'d gone\b", " had gone"),
        (r"'s gone\b", " has gone"),
        (r"'d done\b", " had done"),
        (r"'s got\b", " has got"),
        // what else is contracted
        (r"n't\b", " not"),
        (r"'re\b", " are"),
        (r"'s\b", " is"),
        (r"'d\b", " would"),
        (r"'ll\b", " will"),
        (r"'t\b", " not"),
        (r"'ve\b", " have"),
        (r"'m\b", " am"),
        // commas between digits, full stops before anything else
        (r"(\d),(\d)", "${1}${2}"),
        (r"\.([^0-9]|$)", " ${1}"),
    ])
});

/// Signs that turned out to stand beside no number.
static SIGNS: LazyLock<Replacements> =
    LazyLock::new(|| replacements(&[(r"[.$¢€£]([^0-9])", " ${1}"), (r"([^0-9])%", "${1} ")]));

static SPELLINGS: LazyLock<HashMap<&'static str, &'static str>> = LazyLock::new(|| {
    let lines = include_str!("../../data/british-to-american.tsv").lines();
    lines.filter(|line| !line.starts_with('#')).filter_map(|line| line.split_once('\t')).collect()
});

/// Letters with a stroke or of two parts, which decomposition leaves whole.
fn plain_letters(letter: char) -> Option<&'static str> {
    Some(match letter {
        'œ' => "oe",
        'Œ' => "OE",
        'ø' => "o",
        'Ø' => "O",
        'æ' => "ae",
        'Æ' => "AE",
        'ß' => "ss",
        'ẞ' => "SS",
        'đ' | 'ð' => "d",
        'Đ' | 'Ð' => "D",
        'þ' | 'Þ' => "th",
        'ł' => "l",
        'Ł' => "L",
        _ => return None,
    })
}

fn is_mark_symbol_or_punctuation(c: char) -> bool {
    matches!(
        c.general_category_group(),
        GeneralCategoryGroup::Mark | GeneralCategoryGroup::Symbol | GeneralCategoryGroup::Punctuation
    )
}

fn one_space(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Lower case, without asides, marks, symbols and punctuation.
pub(super) fn basic(text: &str) -> String {
    let text = replace_all(text.to_lowercase(), &ASIDES);
    let spaced: String =
        text.nfkc().map(|c| if is_mark_symbol_or_punctuation(c) { ' ' } else { c }).collect();
    one_space(&spaced.to_lowercase())
}

/// As [`basic`], and contractions written out, numbers as digits, spelling American, fillers left out.
pub(super) fn english(text: &str) -> String {
    let text = replace_all(text.to_lowercase(), &ASIDES);
    let text = replace_all(text, &ENGLISH);
    let mut plain = String::with_capacity(text.len());
    for c in text.nfkd() {
        match c {
            '.' | '%' | '$' | '¢' | '€' | '£' => plain.push(c),
            _ if plain_letters(c).is_some() => plain.push_str(plain_letters(c).unwrap_or_default()),
            _ if c.general_category() == GeneralCategory::NonspacingMark => {}
            _ if is_mark_symbol_or_punctuation(c) => plain.push(' '),
            _ => plain.push(c),
        }
    }
    let numbered = numbers::standardize(&plain);
    let american: Vec<&str> =
        numbered.split_whitespace().map(|word| SPELLINGS.get(word).copied().unwrap_or(word)).collect();
    one_space(&replace_all(american.join(" "), &SIGNS))
}
