//! A file of another tool's results, read before it is sent: what it holds, or every fault with its line. The reader is
//! the control plane's own.

use events::foreign::{self, ForeignError, ForeignResult, Format};
use sha2::{Digest, Sha256};

/// A file that was chosen.
#[derive(Debug, Clone, PartialEq)]
pub struct Chosen {
    /// Its name.
    pub name: String,
    /// How many bytes it has.
    pub size: usize,
    /// Its SHA-256, hexadecimal.
    pub sha256: String,
    /// The format it was read as.
    pub format: Format,
    /// Its results; none where it has faults.
    pub results: Vec<ForeignResult>,
    /// What is wrong with it.
    pub faults: Vec<ForeignError>,
}

impl Chosen {
    /// Reads a file; as the format it is in, where none is given.
    pub fn read(name: &str, bytes: &[u8], format: Option<Format>) -> Self {
        let format = format.unwrap_or_else(|| recognised(bytes).unwrap_or(Format::ALL[0]));
        let (results, faults) = match foreign::read(format, bytes) {
            Ok(results) => (results, Vec::new()),
            Err(_) => (Vec::new(), foreign::faults(format, bytes)),
        };
        Self {
            name: name.to_owned(),
            size: bytes.len(),
            sha256: events::hexadecimal::encode(&Sha256::digest(bytes)),
            format,
            results,
            faults,
        }
    }

    /// Whether it can be sent.
    pub fn is_good(&self) -> bool {
        self.faults.is_empty() && !self.results.is_empty()
    }
}

/// The first format that takes the file. Where none does, our own for lines that name our schema: its faults are told
/// by line.
pub fn recognised(bytes: &[u8]) -> Option<Format> {
    let taken = Format::ALL.iter().copied().find(|format| foreign::read(*format, bytes).is_ok());
    taken.or_else(|| {
        let ours = bytes
            .split(|b| *b == b'\n')
            .any(|line| line.first() == Some(&b'{') && line.windows(12).any(|part| part == b"metrumbench-"));
        ours.then_some(Format::Metrumbench)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn vllm() -> Vec<u8> {
        json!({"duration": 10.0, "completed": 100, "failed": 0, "total_input_tokens": 6400, "total_output_tokens": 12800,
            "request_throughput": 10.0, "output_throughput": 1280.0, "max_concurrency": 8})
        .to_string()
        .into_bytes()
    }

    fn ours() -> String {
        let golden = include_str!("../../../events/tests/golden/tool_output.recorded.v1.json");
        let recorded: Value = serde_json::from_str(golden).expect("a golden file");
        recorded["summary"].to_string()
    }

    #[test]
    fn a_file_is_recognised_by_what_reads_it() {
        let chosen = Chosen::read("a.json", &vllm(), None);
        assert_eq!(
            (chosen.format, chosen.results.len(), chosen.is_good()),
            (Format::VllmBenchServe, 1, true)
        );
        assert_eq!(chosen.results[0].load.concurrency, Some(8));
        let chosen = Chosen::read("a.jsonl", ours().as_bytes(), None);
        assert_eq!((chosen.format, chosen.is_good()), (Format::Metrumbench, true));
    }

    #[test]
    fn every_line_that_is_wrong_is_told() {
        let text = format!("{}\nx\n{}\n{{}}\n", ours(), ours());
        let chosen = Chosen::read("a.jsonl", text.as_bytes(), None);
        let places: Vec<&str> = chosen.faults.iter().map(|f| f.place.as_str()).collect();
        assert_eq!((chosen.format, places), (Format::Metrumbench, vec!["line 2", "line 4"]));
        assert!(!chosen.is_good());
    }

    #[test]
    fn a_format_that_is_said_is_kept() {
        let chosen = Chosen::read("a.json", &vllm(), Some(Format::Guidellm));
        assert_eq!((chosen.format, chosen.faults.len()), (Format::Guidellm, 1));
    }
}
