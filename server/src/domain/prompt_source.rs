//! Prompt sources: what may be in one, judged line by line.

use std::collections::{BTreeMap, BTreeSet};

use events::Event;
use events::envelope::Recorded;
use events::prompt_source::{PromptSourceCalibrated, PromptSourceCreated, PromptSourceType, WordCounts};
use events::tools::{ToolCode, image_size};
use events::workload::is_remote;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use super::{LoadError, Refusal, decode, wrong_beginning};

/// The most rows a source may have.
pub const MAX_ROWS: usize = 1_000_000;
/// The longest line, bytes.
const MAX_LINE: usize = 1 << 20;
/// How many faults of a file are named.
const NAMED_FAULTS: usize = 20;

/// A source as its stream's events made it.
#[derive(Debug, Clone, PartialEq)]
pub struct PromptSource {
    /// What it is.
    pub facts: PromptSourceCreated,
    /// What was learnt of it, by model.
    pub calibrations: BTreeMap<String, PromptSourceCalibrated>,
    /// The version of its stream.
    pub version: i64,
}

impl PromptSource {
    /// The source its stream's events make; nothing for an empty stream.
    ///
    /// # Errors
    /// An event cannot be read, or the stream does not begin with `prompt_source.created`.
    pub fn load(events: &[Recorded]) -> Result<Option<Self>, LoadError> {
        let Some((first, rest)) = events.split_first() else { return Ok(None) };
        let Event::PromptSourceCreated(facts) = decode(first)? else {
            return Err(wrong_beginning(first, "prompt_source", "prompt_source.created"));
        };
        let mut source = Self { facts: *facts, calibrations: BTreeMap::new(), version: 1 };
        for recorded in rest {
            source.version += 1;
            match decode(recorded)? {
                Event::PromptSourceCalibrated(calibrated) => {
                    source.calibrations.insert(calibrated.model_code.clone(), calibrated);
                }
                // A source of the platform's whose facts were written anew.
                Event::PromptSourceCreated(facts) => source.facts = *facts,
                _ => {}
            }
        }
        Ok(Some(source))
    }
}

/// The tools that take a source of a type.
pub fn takes(tool: ToolCode, source_type: PromptSourceType) -> bool {
    tool.prompt_source_type() == Some(source_type)
}

/// A fault of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// The line, from 1; 0 for the file as a whole.
    pub line: usize,
    /// What is wrong.
    pub message: String,
}

/// A file that was read.
#[derive(Debug, Clone, PartialEq)]
pub struct Content {
    /// Its rows as JSONL: what the tools read.
    pub jsonl: String,
    /// How many.
    pub rows: u64,
    /// Their words.
    pub words: Option<WordCounts>,
    /// Seconds of audio.
    pub audio_s: Option<f64>,
    /// Whether rows name files of the host's.
    pub local_paths: bool,
    /// The rows' ids, where they have such.
    pub ids: BTreeSet<String>,
}

#[derive(Deserialize)]
struct TextRow {
    prompt: String,
    #[serde(default)]
    expected_output_tokens: Option<u32>,
}

#[derive(Deserialize)]
struct VlmRow {
    prompt: String,
    image_urls: Vec<String>,
    #[serde(default)]
    expected_output_tokens: Option<u32>,
}

#[derive(Deserialize)]
struct AudioRow {
    id: String,
    #[serde(default)]
    path: Option<String>,
    #[serde(default)]
    url: Option<String>,
    #[serde(default)]
    format: Option<String>,
    #[serde(default)]
    duration: Option<f64>,
}

#[derive(Deserialize)]
struct ImageRow {
    prompt: String,
    #[serde(default)]
    size: Option<String>,
    #[serde(default)]
    negative_prompt: Option<String>,
}

#[derive(Deserialize)]
struct QuestionRow {
    instruction: String,
    ground_truth_response: String,
}

#[derive(Deserialize)]
struct TranscriptRow {
    id: String,
    transcript: String,
}

/// Audio formats that a transcription endpoint takes.
const AUDIO_FORMATS: &[&str] = &["mp3", "wav", "webm", "ogg", "m4a", "mp4", "flac"];

/// What one row says of itself.
#[derive(Default)]
struct Row {
    text: String,
    local: bool,
    id: Option<String>,
    seconds: Option<f64>,
}

fn filled(name: &str, text: &str) -> Result<(), String> {
    if text.trim().is_empty() { Err(format!("{name} is empty")) } else { Ok(()) }
}

fn tokens(value: Option<u32>) -> Result<(), String> {
    if value == Some(0) { Err("expected_output_tokens must be at least 1".to_owned()) } else { Ok(()) }
}

/// Whether a reference is to a file of the host's rather than an address.
fn is_local(reference: &str) -> bool {
    !(is_remote(reference) || reference.starts_with("data:"))
}

fn read<T: DeserializeOwned>(line: &str) -> Result<T, String> {
    // serde counts lines of the one line it sees.
    serde_json::from_str(line).map_err(|error| error.to_string().replace("at line 1 column", "at column"))
}

/// What a policy says of an address that a row names.
pub type Judge<'a> = &'a dyn Fn(&str) -> Result<(), String>;

fn row(source_type: PromptSourceType, line: &str, judge: Judge<'_>) -> Result<Row, String> {
    match source_type {
        PromptSourceType::PromptLibrary => {
            let row: TextRow = read(line)?;
            filled("prompt", &row.prompt)?;
            tokens(row.expected_output_tokens)?;
            Ok(Row { text: row.prompt, ..Row::default() })
        }
        PromptSourceType::MetrumbenchVlmSnapshot => {
            let row: VlmRow = read(line)?;
            filled("prompt", &row.prompt)?;
            tokens(row.expected_output_tokens)?;
            if row.image_urls.is_empty() || row.image_urls.iter().any(|url| url.trim().is_empty()) {
                return Err("image_urls must name at least one image, none of them empty".to_owned());
            }
            let local = row.image_urls.iter().any(|url| is_local(url));
            row.image_urls
                .iter()
                .filter(|url| is_remote(url))
                .try_for_each(|url| judge(url).map_err(|why| format!("image_urls: {why}")))?;
            Ok(Row { text: row.prompt, local, ..Row::default() })
        }
        PromptSourceType::MetrumbenchAsrSnapshot => {
            let row: AudioRow = read(line)?;
            filled("id", &row.id)?;
            let local = match (&row.path, &row.url) {
                (Some(path), None) => filled("path", path).map(|()| true)?,
                (None, Some(url)) if is_local(url) => {
                    return Err("url must begin with http:// or https://".to_owned());
                }
                (None, Some(url)) => judge(url).map(|()| false).map_err(|why| format!("url: {why}"))?,
                _ => return Err("either path or url must be there".to_owned()),
            };
            if row.format.as_ref().is_some_and(|f| !AUDIO_FORMATS.contains(&f.to_lowercase().as_str())) {
                return Err(format!("format must be one of {}", AUDIO_FORMATS.join(", ")));
            }
            if row.duration.is_some_and(|seconds| !seconds.is_finite() || seconds <= 0.0) {
                return Err("duration must be above 0 seconds".to_owned());
            }
            Ok(Row { local, id: Some(row.id), seconds: row.duration, ..Row::default() })
        }
        PromptSourceType::MetrumbenchImagegenSnapshot => {
            let row: ImageRow = read(line)?;
            filled("prompt", &row.prompt)?;
            if row.size.as_ref().is_some_and(|size| image_size(size).is_none()) {
                return Err("size must be WIDTHxHEIGHT, each 1 to 16384".to_owned());
            }
            row.negative_prompt.as_deref().map_or(Ok(()), |text| filled("negative_prompt", text))?;
            Ok(Row { text: row.prompt, ..Row::default() })
        }
        PromptSourceType::KyaiDataset => {
            let row: QuestionRow = read(line)?;
            filled("instruction", &row.instruction)?;
            filled("ground_truth_response", &row.ground_truth_response)?;
            Ok(Row { text: row.instruction, ..Row::default() })
        }
    }
}

/// Reads JSONL line by line; `judge` says which addresses it may name.
///
/// # Errors
/// Every faulty line, by its number; the first twenty.
pub fn read_jsonl(
    source_type: PromptSourceType,
    text: &str,
    judge: Judge<'_>,
) -> Result<Content, Vec<Fault>> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut content = Content {
        jsonl: String::new(),
        rows: 0,
        words: None,
        audio_s: Some(0.0),
        local_paths: false,
        ids: BTreeSet::new(),
    };
    let mut faults = Vec::new();
    for (line, text) in (1usize..).zip(text.lines()) {
        if text.trim().is_empty() {
            continue;
        }
        let found = if text.len() > MAX_LINE {
            Err(format!("the line has {} bytes, at most {MAX_LINE} are taken", text.len()))
        } else {
            row(source_type, text, judge)
        };
        let taken = found.and_then(|row| content.take(row));
        match taken {
            Ok(()) => {
                content.jsonl.push_str(text.trim());
                content.jsonl.push('\n');
            }
            Err(message) => faults.push(Fault { line, message }),
        }
        if faults.len() == NAMED_FAULTS {
            break;
        }
    }
    if faults.is_empty() && content.rows == 0 {
        faults.push(Fault { line: 0, message: "there is no row in it".to_owned() });
    }
    if source_type != PromptSourceType::MetrumbenchAsrSnapshot {
        content.audio_s = None;
    }
    if faults.is_empty() { Ok(content) } else { Err(faults) }
}

impl Content {
    fn take(&mut self, row: Row) -> Result<(), String> {
        if self.rows as usize == MAX_ROWS {
            return Err(format!("more than {MAX_ROWS} rows"));
        }
        if let Some(id) = row.id
            && !self.ids.insert(id.clone())
        {
            return Err(format!("the id {id:?} occurs twice"));
        }
        self.rows += 1;
        self.local_paths |= row.local;
        self.audio_s = self.audio_s.zip(row.seconds).map(|(all, seconds)| all + seconds);
        if !row.text.is_empty() {
            let words = row.text.split_whitespace().count() as u64;
            let counts = self.words.get_or_insert(WordCounts { total: 0, min: words, max: words });
            counts.total += words;
            counts.min = counts.min.min(words);
            counts.max = counts.max.max(words);
        }
        Ok(())
    }
}

/// Reads questions from CSV with a header, into the same rows as JSONL. Line numbers are the file's.
///
/// # Errors
/// As [`read_jsonl`].
pub fn read_csv(text: &str) -> Result<Content, Vec<Fault>> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut reader = csv::ReaderBuilder::new().flexible(false).from_reader(text.as_bytes());
    let fault =
        |line: u64, message: String| Fault { line: usize::try_from(line).unwrap_or(usize::MAX), message };
    let of_error = |error: &csv::Error| {
        let line = error.position().map_or(1, csv::Position::line);
        fault(line, error.to_string())
    };
    let headers = reader.headers().map_err(|error| vec![of_error(&error)])?.clone();
    for wanted in ["instruction", "ground_truth_response"] {
        if headers.iter().filter(|header| header.trim() == wanted).count() != 1 {
            return Err(vec![fault(1, format!("the header must have one column {wanted}"))]);
        }
    }
    let mut jsonl = String::new();
    // Which line of the file a row of the JSONL comes from.
    let mut lines: Vec<u64> = Vec::new();
    let mut faults = Vec::new();
    for record in reader.records() {
        match record {
            Ok(record) => {
                let row: Map<String, Value> = headers
                    .iter()
                    .zip(record.iter())
                    .map(|(header, field)| (header.trim().to_owned(), Value::from(field)))
                    .collect();
                lines.push(record.position().map_or(0, csv::Position::line));
                jsonl.push_str(&Value::Object(row).to_string());
                jsonl.push('\n');
            }
            Err(error) => faults.push(of_error(&error)),
        }
        if faults.len() == NAMED_FAULTS {
            break;
        }
    }
    if !faults.is_empty() {
        return Err(faults);
    }
    // Questions name no address.
    read_jsonl(PromptSourceType::KyaiDataset, &jsonl, &|_| Ok(())).map_err(|faults| {
        let real = |line: usize| line.checked_sub(1).and_then(|row| lines.get(row)).copied().unwrap_or(0);
        faults.into_iter().map(|found| fault(real(found.line), found.message)).collect()
    })
}

/// Reads reference transcripts, whose ids must be those of audio files.
///
/// # Errors
/// As [`read_jsonl`].
pub fn read_transcripts(text: &str, ids: &BTreeSet<String>) -> Result<(), Vec<Fault>> {
    let mut faults = Vec::new();
    let mut seen = BTreeSet::new();
    for (line, text) in (1usize..).zip(text.strip_prefix('\u{feff}').unwrap_or(text).lines()) {
        if text.trim().is_empty() {
            continue;
        }
        let judged = read::<TranscriptRow>(text).and_then(|row| {
            filled("transcript", &row.transcript)?;
            if !ids.contains(&row.id) {
                return Err(format!("no audio file has the id {:?}", row.id));
            }
            if seen.insert(row.id.clone()) {
                Ok(())
            } else {
                Err(format!("the id {:?} occurs twice", row.id))
            }
        });
        if let Err(message) = judged {
            faults.push(Fault { line, message });
        }
        if faults.len() == NAMED_FAULTS {
            break;
        }
    }
    if faults.is_empty() && seen.is_empty() {
        faults.push(Fault { line: 0, message: "there is no transcript in it".to_owned() });
    }
    if faults.is_empty() { Ok(()) } else { Err(faults) }
}

/// The refusal of a faulty file: the first fault in the message, all of them in the details.
pub fn refuse(what: &str, faults: &[Fault]) -> Refusal {
    let place = |fault: &Fault| match fault.line {
        0 => fault.message.clone(),
        line => format!("line {line}: {}", fault.message),
    };
    let first = faults.first().map(place).unwrap_or_default();
    let all: Vec<String> = faults.iter().map(place).collect();
    Refusal::invalid("bad_rows", format!("{what}: {first}"))
        .because(all.join("; "))
        .hint("correct the lines, then send the whole file again; nothing was kept")
}

#[cfg(test)]
#[path = "prompt_source_tests.rs"]
mod tests;
