//! Error rates beside those of the Python packages `jiwer` and `whisper-normalizer`; `data/error_rates.py` made the pairs.

use bench::accuracy::{Normalizer, character_error_rate, normalize, word_error_rate};
use serde_json::Value;

fn pairs() -> Vec<Value> {
    let path = format!("{}/tests/data/error-rates.jsonl", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(path).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn same(ours: Option<f64>, theirs: &Value) -> bool {
    match (ours, theirs.as_f64()) {
        (Some(ours), Some(theirs)) => (ours - theirs).abs() < 1e-9 * theirs.max(1.0),
        (ours, theirs) => ours == theirs,
    }
}

fn text<'a>(row: &'a Value, name: &str) -> &'a str {
    row[name].as_str().unwrap()
}

#[test]
fn error_rates_agree_with_jiwer() {
    let pairs = pairs();
    assert_eq!(pairs.len(), 400);
    for row in &pairs {
        let (reference, hypothesis) = (text(row, "reference"), text(row, "hypothesis"));
        for (name, normalizer) in [
            ("none", Normalizer::None),
            ("basic", Normalizer::Basic),
            ("whisper-english", Normalizer::WhisperEnglish),
        ] {
            let (wer, cer) = (
                word_error_rate(reference, hypothesis, normalizer),
                character_error_rate(reference, hypothesis, normalizer),
            );
            assert!(same(wer, &row[name]["wer"]), "{name}: {wer:?} for {row}");
            assert!(same(cer, &row[name]["cer"]), "{name}: {cer:?} for {row}");
        }
    }
}

#[test]
fn texts_are_evened_out_as_the_whisper_package_does() {
    for row in &pairs() {
        for (name, normalizer) in
            [("basic", Normalizer::Basic), ("whisper-english", Normalizer::WhisperEnglish)]
        {
            for side in ["reference", "hypothesis"] {
                assert_eq!(
                    normalize(text(row, side), normalizer),
                    text(&row[name], side),
                    "{name} of {}",
                    row[side]
                );
            }
        }
    }
}
