//! `metrumbench-asr`: transcription over `/v1/audio/transcriptions`, its speed and its accuracy.

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;

use clap::Parser;
use serde_json::{Map, Value, json};

use self::manifest::{Audio, Places};
use self::transcript::{Format, transcript};
use super::Tool;
use crate::accuracy::{Normalizer, character_error_rate, word_error_rate};
use crate::answer::Measured;
use crate::body::BodyReader;
use crate::cli::{Common, EXIT_CODES};
use crate::endpoints::Endpoint;
use crate::extra::{AsrExtra, Extra};
use crate::failure::{Failure, FailureKind};
use crate::prompts::count_words;
use crate::session::Preparation;
use crate::setup::Refusal;
use crate::workload::{Prepared, Workload};

pub mod manifest;
mod transcript;

const PATH: &str = "audio/transcriptions";

const EXAMPLES: &str = "Examples:
  metrumbench-asr --url http://localhost:8000 --input test-clean.jsonl -c 8
      each file once, eight at a time; test-clean.jsonl: {\"id\": \"1\", \"path\": \"1.flac\", \"duration\": 12.5}, one a line
  metrumbench-asr --url http://localhost:8000 --input test-clean.jsonl --ground-truth texts.jsonl --normalizer whisper-english
      error rates as papers report them; texts.jsonl: {\"id\": \"1\", \"transcript\": \"…\"}, one a line

";

/// Measure how fast, and how well, an endpoint transcribes speech.
///
/// Uploads audio files to an OpenAI-compatible endpoint under a controlled load and measures response time, real-time
/// factor and throughput, and, given reference transcripts, word and character error rates.
#[derive(Parser, Clone, Debug)]
#[command(name = "metrumbench-asr", version, after_help = EXIT_CODES, after_long_help = format!("{EXAMPLES}{EXIT_CODES}"), max_term_width = 110, args_override_self = true)]
pub(super) struct Cli {
    #[command(flatten)]
    common: Common,
    /// The audio: JSONL, each line with id, path or url, format, duration (seconds).
    #[arg(long, value_name = "MANIFEST", help_heading = "Audio")]
    input: PathBuf,
    /// Reference transcripts: JSONL, each line with id and transcript.
    #[arg(long, value_name = "FILE", help_heading = "Audio")]
    ground_truth: Option<PathBuf>,
    /// The form of answers.
    #[arg(long, value_enum, default_value_t = Format::VerboseJson, help_heading = "Audio")]
    response_format: Format,
    /// The language spoken; empty to let the model find out.
    #[arg(long, default_value = "en", help_heading = "Audio")]
    language: String,
    /// Do not ask for word timestamps (JSON formats).
    #[arg(long, help_heading = "Audio")]
    no_word_timestamps: bool,
    /// What is evened out before transcripts are compared; letter case never counts.
    #[arg(long, value_enum, default_value_t = Normalizer::None, help_heading = "Audio")]
    normalizer: Normalizer,
    /// Where audio given by url is kept.
    #[arg(long, value_name = "FOLDER", help_heading = "Audio")]
    cache_dir: Option<PathBuf>,
}

/// The requests of one run.
pub(super) struct AsrWorkload {
    audio: Arc<[Audio]>,
    boundary: String,
    content_type: String,
    /// The form fields, which are the same for all.
    fields: Vec<u8>,
    format: Format,
    normalizer: Normalizer,
}

impl Workload for AsrWorkload {
    type Reader = BodyReader;
    const TEXT: bool = false;
    // Response time is "measured from before file read to after response receipt".
    const CLOCK_BEFORE_PREPARATION: bool = true;

    async fn prepare(&self, index: u64) -> Result<Prepared, Failure> {
        let audio = &self.audio[(index % self.audio.len() as u64) as usize];
        let file = tokio::fs::read(&audio.path).await.map_err(|error| {
            Failure::new(FailureKind::Request, None, format!("{}: {error}", audio.path.display()))
        })?;
        let extra = AsrExtra {
            sample: audio.id.clone(),
            audio_seconds: audio.duration,
            bytes_sent: file.len() as u64,
            format: audio.format.clone(),
            ..AsrExtra::default()
        };
        let part = format!(
            "--{}\r\nContent-Disposition: form-data; name=\"file\"; filename=\"audio.{}\"\r\nContent-Type: {}\r\n\r\n",
            self.boundary,
            audio.format,
            mime_type(&audio.format)
        );
        let end = format!("\r\n--{}--\r\n", self.boundary);
        let body = [self.fields.as_slice(), part.as_bytes(), &file, end.as_bytes()].concat();
        Ok(Prepared { body, extra: Extra::Asr(extra), ..Prepared::default() })
    }

    fn reader(&self, _: &Prepared) -> BodyReader {
        BodyReader::new(self.format.is_json())
    }

    async fn inspect(&self, _: u64, measured: &mut Measured, extra: Extra) -> (Extra, Option<Failure>) {
        let Extra::Asr(mut extra) = extra else { return (extra, None) };
        extra.bytes_received = measured.body.len() as u64;
        let (text, inference) = match transcript(&measured.body, self.format) {
            Ok(found) => found,
            Err(failure) => return (Extra::Asr(extra), Some(failure)),
        };
        extra.inference = inference;
        extra.words = count_words(&text);
        extra.characters = text.trim().chars().count() as u64;
        measured.words = extra.words;
        if extra.words == 0 {
            measured.first_output = None;
        }
        // The distance of two long texts takes processor time: not in the event loop.
        let (audio, sample, normalizer) = (Arc::clone(&self.audio), extra.sample.clone(), self.normalizer);
        let rates = tokio::task::spawn_blocking(move || {
            let reference = audio.iter().find(|audio| audio.id == sample)?.reference.as_deref()?;
            let wer = word_error_rate(reference, &text, normalizer);
            Some((wer, character_error_rate(reference, &text, normalizer)))
        });
        if let Ok(Some(rates)) = rates.await {
            (extra.wer, extra.cer) = rates;
        }
        (Extra::Asr(extra), None)
    }

    fn accept(&self) -> &str {
        "*/*"
    }

    fn content_type(&self) -> &str {
        &self.content_type
    }
}

fn mime_type(format: &str) -> &'static str {
    match format {
        "mp3" => "audio/mpeg",
        "wav" => "audio/wav",
        "webm" => "audio/webm",
        "ogg" | "oga" | "opus" => "audio/ogg",
        "m4a" | "mp4" => "audio/mp4",
        "flac" => "audio/flac",
        _ => "application/octet-stream",
    }
}

/// The whole program: parses `arguments`, runs, and returns the exit code.
pub fn main(arguments: impl IntoIterator<Item = OsString>) -> i32 {
    super::run::<Cli>(arguments)
}

impl Tool for Cli {
    type Workload = AsrWorkload;

    const NAME: &'static str = "metrumbench-asr";

    fn common(&self) -> &Common {
        &self.common
    }

    fn path(&self) -> &'static str {
        PATH
    }

    async fn prepare(&self, _: &[Endpoint], model: &str) -> Result<Preparation<AsrWorkload>, Refusal> {
        let places = Places {
            manifest: &self.input,
            ground_truth: self.ground_truth.as_deref(),
            cache: self.cache_dir.as_deref(),
        };
        let audio = places.audio(&self.common).await?;
        let samples = audio.len() as u64;
        let mut derived = Map::new();
        derived.insert("samples".into(), json!(samples));
        let workload = workload(self, model, audio);
        // Round robin over the samples is how the methodology has it: reuse is no reason for a flag.
        Ok(Preparation { workload, derived, default_requests: Some(samples), distinct: None })
    }
}

fn workload(cli: &Cli, model: &str, audio: Vec<Audio>) -> AsrWorkload {
    let boundary = format!("metrumbench-{}", uuid::Uuid::new_v4().simple());
    let mut fields = Vec::new();
    let mut add = |name: &str, value: &str| {
        let field =
            format!("--{boundary}\r\nContent-Disposition: form-data; name=\"{name}\"\r\n\r\n{value}\r\n");
        fields.extend_from_slice(field.as_bytes());
    };
    add("model", model);
    add("response_format", cli.response_format.name());
    if !cli.language.is_empty() {
        add("language", &cli.language);
    }
    if cli.response_format.is_json() && !cli.no_word_timestamps {
        add("timestamp_granularities[]", "word");
    }
    for (name, value) in cli.common.extra_body.iter().flatten() {
        match value {
            Value::String(text) => add(name, text),
            other => add(name, &other.to_string()),
        }
    }
    let content_type = format!("multipart/form-data; boundary={boundary}");
    AsrWorkload {
        audio: audio.into(),
        boundary,
        content_type,
        fields,
        format: cli.response_format,
        normalizer: cli.normalizer,
    }
}
