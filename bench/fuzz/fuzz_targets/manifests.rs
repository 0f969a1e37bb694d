//! No manifest makes its reader panic.
#![no_main]

use bench::accuracy::{Normalizer, normalize};
use bench::tools::asr::manifest::{parse_manifest, parse_references};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    let _ = bench::prompts::parse_library(text);
    let _ = bench::endpoints::parse_file(text, "chat/completions", None);
    let _ = parse_manifest(text);
    let _ = parse_references(text);
    let _ = normalize(text, Normalizer::Basic);
    let _ = normalize(text, Normalizer::WhisperEnglish);
});
