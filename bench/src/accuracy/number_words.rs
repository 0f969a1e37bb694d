//! The words that numbers are made of, as the English normalizer of Whisper knows them.

const ONES: [&str; 19] = [
    "one",
    "two",
    "three",
    "four",
    "five",
    "six",
    "seven",
    "eight",
    "nine",
    "ten",
    "eleven",
    "twelve",
    "thirteen",
    "fourteen",
    "fifteen",
    "sixteen",
    "seventeen",
    "eighteen",
    "nineteen",
];
const ONES_ORDINAL: [&str; 19] = [
    "first",
    "second",
    "third",
    "fourth",
    "fifth",
    "sixth",
    "seventh",
    "eighth",
    "nineth",
    "tenth",
    "eleventh",
    "twelfth",
    "thirteenth",
    "fourteenth",
    "fifteenth",
    "sixteenth",
    "seventeenth",
    "eighteenth",
    "nineteenth",
];
const TENS: [&str; 8] = ["twent", "thirt", "fort", "fift", "sixt", "sevent", "eight", "ninet"];
const MULTIPLIERS: [&str; 12] = [
    "hundred",
    "thousand",
    "million",
    "billion",
    "trillion",
    "quadrillion",
    "quintillion",
    "sextillion",
    "septillion",
    "octillion",
    "nonillion",
    "decillion",
];

/// What a word means in a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Meaning {
    Zero,
    One(u128),
    OneWithSuffix(u128, &'static str),
    Ten(u128),
    TenWithSuffix(u128, &'static str),
    Multiplier(u128),
    MultiplierWithSuffix(u128, &'static str),
    /// A sign before a number.
    Before(&'static str),
    /// A currency after a number, written before it.
    After(&'static str),
    Per,
    Percent,
    And,
    Double(usize),
    Point,
}

fn ordinal_suffix(value: u128) -> &'static str {
    match value {
        1 => "st",
        2 => "nd",
        3 => "rd",
        _ => "th",
    }
}

/// What `word` (lower case) means in a number; none where it is no part of one.
pub(super) fn meaning(word: &str) -> Option<Meaning> {
    let found = match word {
        "o" | "oh" | "zero" => Meaning::Zero,
        "zeroth" => Meaning::OneWithSuffix(0, "th"),
        "sixes" => Meaning::OneWithSuffix(6, "s"),
        "sixs" => return None,
        "minus" | "negative" => Meaning::Before("-"),
        "plus" | "positive" => Meaning::Before("+"),
        "pound" | "pounds" => Meaning::After("£"),
        "euro" | "euros" => Meaning::After("€"),
        "dollar" | "dollars" => Meaning::After("$"),
        "cent" | "cents" => Meaning::After("¢"),
        "per" => Meaning::Per,
        "percent" => Meaning::Percent,
        "and" => Meaning::And,
        "double" => Meaning::Double(2),
        "triple" => Meaning::Double(3),
        "point" => Meaning::Point,
        _ => return ones(word).or_else(|| tens(word)).or_else(|| multiplier(word)),
    };
    Some(found)
}

fn position(list: &[&str], word: &str) -> Option<u128> {
    list.iter().position(|known| *known == word).map(|index| index as u128 + 1)
}

fn ones(word: &str) -> Option<Meaning> {
    if let Some(value) = position(&ONES, word) {
        return Some(Meaning::One(value));
    }
    if let Some(value) = position(&ONES_ORDINAL, word) {
        return Some(Meaning::OneWithSuffix(value, ordinal_suffix(value)));
    }
    let value = position(&ONES, word.strip_suffix('s')?)?;
    Some(Meaning::OneWithSuffix(value, "s"))
}

fn tens(word: &str) -> Option<Meaning> {
    let of = |stem: &str| position(&TENS, stem).map(|value| (value + 1) * 10);
    if let Some(value) = word.strip_suffix('y').and_then(of) {
        return Some(Meaning::Ten(value));
    }
    if let Some(value) = word.strip_suffix("ies").and_then(of) {
        return Some(Meaning::TenWithSuffix(value, "s"));
    }
    word.strip_suffix("ieth").and_then(of).map(|value| Meaning::TenWithSuffix(value, "th"))
}

fn multiplier(word: &str) -> Option<Meaning> {
    let of = |word: &str| {
        position(&MULTIPLIERS, word).map(|n| if n == 1 { 100 } else { 10u128.pow(3 * (n as u32 - 1)) })
    };
    if let Some(value) = of(word) {
        return Some(Meaning::Multiplier(value));
    }
    if let Some(value) = word.strip_suffix('s').and_then(of) {
        return Some(Meaning::MultiplierWithSuffix(value, "s"));
    }
    word.strip_suffix("th").and_then(of).map(|value| Meaning::MultiplierWithSuffix(value, "th"))
}
