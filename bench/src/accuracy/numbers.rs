//! Spelled-out numbers as digits, as the English normalizer of Whisper writes them.
//!
//! A port of `EnglishNumberNormalizer` of <https://github.com/openai/whisper> (MIT License, Copyright (c) 2022 OpenAI),
//! with its order of rules and its quirks, so that error rates agree with those others publish.

use std::sync::LazyLock;

use regex::{Captures, Regex};

use super::number_words::{Meaning, meaning};

/// The number under way: a whole number that arithmetic goes on with, or text that only grows.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Value {
    Whole(u128),
    Text(String),
}

impl Value {
    fn text(&self) -> String {
        match self {
            Self::Whole(number) => number.to_string(),
            Self::Text(text) => text.clone(),
        }
    }
}

/// Text that grows: zero as a whole number counts as nothing.
fn text_or_nothing(value: &Option<Value>) -> String {
    value.as_ref().filter(|value| **value != Value::Whole(0)).map(Value::text).unwrap_or_default()
}

/// `text` × `multiplier` where `text` is a decimal and the product a whole number.
fn whole_product(text: &str, multiplier: u128) -> Option<u128> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    if whole.is_empty() && fraction.is_empty() || !text.bytes().all(|b| b.is_ascii_digit() || b == b'.') {
        return None;
    }
    let digits = format!("{whole}{fraction}").parse::<u128>().ok()?;
    let product = digits.checked_mul(multiplier)?;
    let scale = 10u128.checked_pow(u32::try_from(fraction.len()).ok()?)?;
    product.is_multiple_of(scale).then(|| product / scale)
}

/// Digits, with or without decimals: `12`, `0.5`.
fn is_numeric(word: &str) -> bool {
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    match word.split_once('.') {
        Some((whole, fraction)) => digits(whole) && digits(fraction),
        None => digits(word),
    }
}

/// Writes the words of a text one by one.
#[derive(Default)]
struct Writer {
    out: Vec<String>,
    prefix: Option<String>,
    value: Option<Value>,
}

impl Writer {
    /// Puts out `text`, with the sign or currency that waits for it; the number under way is over.
    fn put(&mut self, text: &str) {
        let prefix = self.prefix.take().unwrap_or_default();
        self.value = None;
        self.out.push(format!("{prefix}{text}"));
    }

    fn put_value(&mut self) {
        if let Some(value) = self.value.take() {
            self.put(&value.text());
        }
    }

    fn put_with(&mut self, value: &str, suffix: &str) {
        self.put(&format!("{value}{suffix}"));
    }

    /// The number under way with `ones` (1 to 19) at its end.
    fn with_ones(&self, ones: u128, previous: Option<Meaning>) -> Value {
        let follows_one = matches!(previous, Some(Meaning::One(_)));
        match &self.value {
            None => Value::Whole(ones),
            Some(Value::Text(text)) if matches!(previous, Some(Meaning::Ten(_))) && ones < 10 => {
                // "twenty" put a zero at the end, which the digit replaces
                Value::Text(format!("{}{ones}", text.strip_suffix('0').unwrap_or(text)))
            }
            Some(Value::Whole(number)) if !follows_one => {
                let room = if ones < 10 { 10 } else { 100 };
                match number.checked_add(ones) {
                    Some(sum) if number.is_multiple_of(room) => Value::Whole(sum),
                    _ => Value::Text(format!("{number}{ones}")),
                }
            }
            Some(value) => Value::Text(format!("{}{ones}", value.text())),
        }
    }

    fn with_tens(&self, tens: u128) -> Value {
        match &self.value {
            None => Value::Whole(tens),
            Some(Value::Whole(number)) if number.is_multiple_of(100) => {
                number.checked_add(tens).map_or_else(|| Value::Text(format!("{number}{tens}")), Value::Whole)
            }
            Some(value) => Value::Text(format!("{}{tens}", value.text())),
        }
    }

    /// A whole number times a multiplier: only what is below a thousand is multiplied. None beyond what is counted.
    fn multiplied(number: u128, multiplier: u128) -> Option<u128> {
        (number / 1000 * 1000).checked_add((number % 1000).checked_mul(multiplier)?)
    }

    fn digits(&mut self, word: &str, bare: &str) {
        if let Some(value) = &mut self.value {
            match value {
                // decimals, or the parts of an address
                Value::Text(text) if text.ends_with('.') => return text.push_str(word),
                _ => self.put_value(),
            }
        }
        if bare.len() < word.len() {
            self.prefix = word.chars().next().map(String::from);
        }
        self.value = Some(match bare.split_once('.') {
            Some((whole, fraction)) if fraction.bytes().all(|digit| digit == b'0') => of_digits(whole),
            Some(_) => Value::Text(bare.to_owned()),
            None => of_digits(bare),
        });
    }

    fn multiplier(&mut self, multiplier: u128) {
        self.value = match self.value.clone() {
            None => Some(Value::Whole(multiplier)),
            Some(Value::Whole(number)) if number > 0 => match Self::multiplied(number, multiplier) {
                Some(product) => Some(Value::Whole(product)),
                None => {
                    self.put_value();
                    Some(Value::Whole(multiplier))
                }
            },
            Some(value) => match whole_product(&value.text(), multiplier) {
                Some(product) => Some(Value::Whole(product)),
                None => {
                    self.put_value();
                    Some(Value::Whole(multiplier))
                }
            },
        };
    }

    fn multiplier_with_suffix(&mut self, multiplier: u128, suffix: &str) {
        let product = match &self.value {
            None => Some(multiplier),
            Some(Value::Whole(number)) => Self::multiplied(*number, multiplier),
            Some(Value::Text(text)) => whole_product(text, multiplier),
        };
        match product {
            Some(product) => self.put_with(&product.to_string(), suffix),
            None => {
                self.put_value();
                self.put_with(&multiplier.to_string(), suffix);
            }
        }
    }
}

fn of_digits(digits: &str) -> Value {
    // Beyond 38 digits nobody counts: kept as they are.
    digits.parse().map_or_else(|_| Value::Text(digits.to_owned()), Value::Whole)
}

fn process(words: &[&str]) -> Vec<String> {
    let mut writer = Writer::default();
    let mut skip = false;
    for (index, &word) in words.iter().enumerate() {
        if std::mem::take(&mut skip) {
            continue;
        }
        let previous = index.checked_sub(1).and_then(|before| meaning(words[before]));
        let next = words.get(index + 1).copied();
        let next_meaning = next.and_then(meaning);
        let next_may_be_number = next_meaning.is_some() || next.is_some_and(is_numeric);
        let bare = word.strip_prefix(['-', '+', '£', '€', '$', '¢']).unwrap_or(word);
        if is_numeric(bare) {
            writer.digits(word, bare);
            continue;
        }
        let Some(meaning) = meaning(word) else {
            writer.put_value();
            writer.put(word);
            continue;
        };
        match meaning {
            Meaning::Zero => writer.value = Some(Value::Text(text_or_nothing(&writer.value) + "0")),
            Meaning::One(ones) => writer.value = Some(writer.with_ones(ones, previous)),
            Meaning::OneWithSuffix(ones, suffix) => {
                let value = writer.with_ones(ones, previous).text();
                writer.put_with(&value, suffix);
            }
            Meaning::Ten(tens) => writer.value = Some(writer.with_tens(tens)),
            Meaning::TenWithSuffix(tens, suffix) => {
                let value = writer.with_tens(tens).text();
                writer.put_with(&value, suffix);
            }
            Meaning::Multiplier(multiplier) => writer.multiplier(multiplier),
            Meaning::MultiplierWithSuffix(multiplier, suffix) => {
                writer.multiplier_with_suffix(multiplier, suffix);
            }
            Meaning::Before(sign) => {
                writer.put_value();
                match next_may_be_number {
                    true => writer.prefix = Some(sign.to_owned()),
                    false => writer.put(word),
                }
            }
            Meaning::After(currency) => match writer.value {
                Some(_) => {
                    writer.prefix = Some(currency.to_owned());
                    writer.put_value();
                }
                None => writer.put(word),
            },
            Meaning::Percent => match writer.value.take() {
                Some(value) => writer.put_with(&value.text(), "%"),
                None => writer.put(word),
            },
            Meaning::Per => match writer.value.take() {
                Some(value) if next == Some("cent") => {
                    writer.put_with(&value.text(), "%");
                    skip = true;
                }
                Some(value) => {
                    writer.put(&value.text());
                    writer.put(word);
                }
                None => writer.put(word),
            },
            Meaning::And | Meaning::Double(_) | Meaning::Point if !next_may_be_number => {
                writer.put_value();
                writer.put(word);
            }
            Meaning::And if matches!(previous, Some(Meaning::Multiplier(_))) => {} // "hundred and five"
            Meaning::Double(times) if matches!(next_meaning, Some(Meaning::One(_) | Meaning::Zero)) => {
                let digit = if let Some(Meaning::One(ones)) = next_meaning { ones } else { 0 };
                let repeated = digit.to_string().repeat(times);
                writer.value = Some(Value::Text(text_or_nothing(&writer.value) + &repeated));
                skip = true;
            }
            Meaning::Point => {
                let is_decimal =
                    matches!(next_meaning, Some(Meaning::One(_) | Meaning::Ten(_) | Meaning::Zero));
                if is_decimal || next.is_some_and(is_numeric) {
                    writer.value = Some(Value::Text(text_or_nothing(&writer.value) + "."));
                }
            }
            Meaning::And | Meaning::Double(_) => {
                writer.put_value();
                writer.put(word);
            }
        }
    }
    writer.put_value();
    writer.out
}

fn regex(pattern: &str) -> Regex {
    Regex::new(pattern).unwrap_or_else(|error| panic!("{pattern}: {error}"))
}

struct Rules {
    half: Regex,
    letter_digit: Regex,
    digit_letter: Regex,
    suffix: Regex,
    dollars_and_cents: Regex,
    only_cents: Regex,
    one: Regex,
}

static RULES: LazyLock<Rules> = LazyLock::new(|| Rules {
    half: regex(r"\band\s+a\s+half\b"),
    letter_digit: regex("([a-z])([0-9])"),
    digit_letter: regex("([0-9])([a-z])"),
    suffix: regex(r"([0-9])\s+(st|nd|rd|th|s)\b"),
    dollars_and_cents: regex(r"([€£$])([0-9]+) (?:and )?¢([0-9]{1,2})\b"),
    only_cents: regex(r"[€£$]0.([0-9]{1,2})\b"),
    one: regex(r"\b1(s?)\b"),
});

/// `text` (lower case, without punctuation but `.%$¢€£`) with its spelled-out numbers as digits.
pub(super) fn standardize(text: &str) -> String {
    let text = prepare(text);
    let words: Vec<&str> = text.split_whitespace().collect();
    let text = process(&words).join(" ");
    // "$2 and ¢7" is "$2.07"
    let text = RULES
        .dollars_and_cents
        .replace_all(&text, |found: &Captures<'_>| format!("{}{}.{:0>2}", &found[1], &found[2], &found[3]));
    let text = RULES.only_cents.replace_all(&text, |found: &Captures<'_>| {
        format!("¢{}", found[1].parse::<u32>().unwrap_or_default())
    });
    RULES.one.replace_all(&text, "one${1}").into_owned()
}

fn prepare(text: &str) -> String {
    let mut parts: Vec<String> = Vec::new();
    let segments: Vec<&str> = RULES.half.split(text).collect();
    for (index, segment) in segments.iter().enumerate() {
        if segment.trim().is_empty() {
            continue;
        }
        parts.push((*segment).to_owned());
        if index + 1 < segments.len() {
            let last = segment.split_whitespace().next_back().and_then(meaning);
            let counts = matches!(
                last,
                Some(Meaning::One(_) | Meaning::Ten(_) | Meaning::Zero | Meaning::Multiplier(_))
            );
            parts.push(if counts { "point five" } else { "and a half" }.to_owned());
        }
    }
    let text = parts.join(" ");
    let text = RULES.letter_digit.replace_all(&text, "${1} ${2}");
    let text = RULES.digit_letter.replace_all(&text, "${1} ${2}");
    RULES.suffix.replace_all(&text, "${1}${2}").into_owned()
}
