//! `metrumbench-asr`: transcription over `/v1/audio/transcriptions`, its speed and its accuracy.

use std::collections::HashMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::{CommandFactory, FromArgMatches, Parser};
use events::summary::SUMMARY_SCHEMA;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::accuracy::{Normalizer, character_error_rate, word_error_rate};
use crate::answer::Measured;
use crate::balance::Strategy;
use crate::body::BodyReader;
use crate::cli::{Common, EXIT_CODES};
use crate::extra::{AsrExtra, Extra};
use crate::failure::{Failure, FailureKind};
use crate::http::simple;
use crate::prompts::count_words;
use crate::session::{self, Job, Refusal, measure};
use crate::workload::{Prepared, Workload};

const PATH: &str = "audio/transcriptions";

/// Measure how fast, and how well, an endpoint transcribes speech.
///
/// Uploads audio files to an OpenAI-compatible endpoint under a controlled load and measures response time, real-time
/// factor and throughput, and, given reference transcripts, word and character error rates.
#[derive(Parser, Clone, Debug)]
#[command(name = "metrumbench-asr", version, after_help = EXIT_CODES, max_term_width = 110, args_override_self = true)]
struct Cli {
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

/// The forms of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Format {
    #[value(name = "verbose_json")]
    VerboseJson,
    Json,
    Text,
    Srt,
    Vtt,
}

impl Format {
    fn name(self) -> &'static str {
        match self {
            Self::VerboseJson => "verbose_json",
            Self::Json => "json",
            Self::Text => "text",
            Self::Srt => "srt",
            Self::Vtt => "vtt",
        }
    }

    fn is_json(self) -> bool {
        matches!(self, Self::VerboseJson | Self::Json)
    }
}

/// A line of the manifest.
#[derive(Clone, Debug, Deserialize)]
struct Sample {
    id: String,
    #[serde(default)]
    path: Option<PathBuf>,
    #[serde(default)]
    url: Option<String>,
    #[serde(default)]
    format: Option<String>,
    #[serde(default)]
    duration: Option<f64>,
}

#[derive(Deserialize)]
struct Reference {
    id: String,
    transcript: String,
}

/// One audio file, on this machine.
#[derive(Clone, Debug)]
struct Audio {
    id: String,
    path: PathBuf,
    format: String,
    duration: Option<f64>,
    reference: Option<String>,
}

/// The requests of one run.
struct AsrWorkload {
    audio: Vec<Audio>,
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
        if let Some(reference) = self
            .audio
            .iter()
            .find(|audio| audio.id == extra.sample)
            .and_then(|audio| audio.reference.as_deref())
        {
            extra.wer = word_error_rate(reference, &text, self.normalizer);
            extra.cer = character_error_rate(reference, &text, self.normalizer);
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

/// The text of an answer, and the server's processing time if it told.
fn transcript(body: &[u8], format: Format) -> Result<(String, Option<Duration>), Failure> {
    let text = String::from_utf8_lossy(body);
    if !format.is_json() {
        // Some servers answer in JSON whatever was asked.
        if let Ok(Value::Object(answer)) = serde_json::from_str::<Value>(&text)
            && let Some(Value::String(inner)) = answer.get("text")
        {
            return Ok((inner.clone(), None));
        }
        let plain = match format {
            Format::Srt | Format::Vtt => spoken_lines(&text),
            _ => text.into_owned(),
        };
        return Ok((plain, None));
    }
    let answer: Value = serde_json::from_str(&text)
        .map_err(|error| Failure::new(FailureKind::Decode, None, format!("not a JSON answer: {error}")))?;
    if answer.get("error").is_some_and(|error| !error.is_null()) {
        return Err(Failure::new(FailureKind::InBandError, None, crate::openai::error_message(body)));
    }
    let inference =
        answer["inference_time"].as_f64().and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    match answer.get("text").and_then(Value::as_str) {
        Some(text) => Ok((text.to_owned(), inference)),
        None => Err(Failure::new(FailureKind::Decode, None, "the answer has no text")),
    }
}

/// The text of subtitles: without numbers, times and headers.
fn spoken_lines(subtitles: &str) -> String {
    let mut spoken = Vec::new();
    for block in subtitles.replace("\r\n", "\n").split("\n\n") {
        let lines: Vec<&str> = block.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
        if let Some(times) = lines.iter().position(|line| line.contains("-->")) {
            spoken.extend(lines[times + 1..].iter().map(|line| (*line).to_owned()));
        }
    }
    spoken.join(" ")
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
    let command = Cli::command();
    let matches = match super::parse(&command, arguments) {
        Ok(matches) => matches,
        Err(code) => return code,
    };
    let mut cli = match Cli::from_arg_matches(&matches) {
        Ok(cli) => cli,
        Err(error) => return super::usage_error(&error),
    };
    let endpoints = session::endpoints(&cli.common, PATH);
    let redactor = session::redactor(&cli.common, endpoints.as_deref().unwrap_or_default());
    session::block_on(cli.common.threads, &redactor, async {
        let endpoints = endpoints?;
        let model = session::model(&cli.common, &endpoints, PATH).await?;
        let audio = read_manifest(&cli).await?;
        let mut derived = Map::new();
        derived.insert("model".into(), json!(model));
        derived.insert("samples".into(), json!(audio.len()));
        if cli.common.num_requests.is_none() && cli.common.duration.is_none() {
            cli.common.num_requests = Some(audio.len() as u64);
            derived.insert("num_requests".into(), json!(audio.len()));
        }
        let workload = workload(&cli, &model, audio);
        let job = Job {
            tool: "metrumbench-asr",
            common: &cli.common,
            command: &command,
            matches: &matches,
            derived,
            workload,
            endpoints,
            flags: Vec::new(),
            schema: SUMMARY_SCHEMA,
            summary_path: cli.common.data_log.clone().unwrap_or_else(|| "metrumbench-asr.jsonl".into()),
            request_log: cli.common.request_log.clone(),
            strategy: Strategy::Weighted,
            retries: (0, Duration::ZERO),
        };
        measure(job, redactor.clone()).await
    })
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
        audio,
        boundary,
        content_type,
        fields,
        format: cli.response_format,
        normalizer: cli.normalizer,
    }
}

fn read_lines<T: for<'de> Deserialize<'de>>(path: &Path) -> Result<Vec<T>, Refusal> {
    let refuse = |reason: String| Refusal::usage(format!("{}: {reason}", path.display()));
    let text = std::fs::read_to_string(path).map_err(|error| refuse(error.to_string()))?;
    let lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
    lines
        .map(|(index, line)| {
            serde_json::from_str(line).map_err(|error| refuse(format!("line {}: {error}", index + 1)))
        })
        .collect()
}

async fn read_manifest(cli: &Cli) -> Result<Vec<Audio>, Refusal> {
    let samples: Vec<Sample> = read_lines(&cli.input)?;
    if samples.is_empty() {
        return Err(Refusal::usage(format!("{}: no audio in it", cli.input.display())));
    }
    let references: HashMap<String, String> = match &cli.ground_truth {
        None => HashMap::new(),
        Some(path) => {
            read_lines::<Reference>(path)?.into_iter().map(|line| (line.id, line.transcript)).collect()
        }
    };
    let mut seen = std::collections::HashSet::new();
    let mut audio = Vec::new();
    for sample in samples {
        if !seen.insert(sample.id.clone()) {
            return Err(Refusal::usage(format!("{}: id {:?} twice", cli.input.display(), sample.id)));
        }
        let path = match (&sample.path, &sample.url) {
            (Some(path), _) => find(path, &cli.input),
            (None, Some(url)) => download(url, &sample, cli).await?,
            (None, None) => {
                return Err(Refusal::usage(format!(
                    "{}: {:?} has neither path nor url",
                    cli.input.display(),
                    sample.id
                )));
            }
        };
        let of_name = path.extension().map(|extension| extension.to_string_lossy().to_lowercase());
        let format =
            sample.format.map(|format| format.to_lowercase()).or(of_name).unwrap_or_else(|| "wav".into());
        let reference = references.get(&sample.id).cloned();
        audio.push(Audio { id: sample.id, path, format, duration: sample.duration, reference });
    }
    Ok(audio)
}

/// A path as given, or relative to the manifest.
fn find(path: &Path, manifest: &Path) -> PathBuf {
    match manifest.parent() {
        Some(folder) if path.is_relative() && !path.exists() => folder.join(path),
        _ => path.to_owned(),
    }
}

/// Fetches remote audio before the run, once: the name is a hash of its address.
async fn download(url: &str, sample: &Sample, cli: &Cli) -> Result<PathBuf, Refusal> {
    use sha2::Digest;
    let folder = cli.cache_dir.clone().unwrap_or_else(|| std::env::temp_dir().join("metrumbench-audio"));
    let extension = sample.format.clone().unwrap_or_else(|| "bin".into());
    let name =
        sha2::Sha256::digest(url.as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    let path = folder.join(format!("{name}.{}", extension.replace(['/', '\\', '.'], "_")));
    if path.exists() {
        return Ok(path);
    }
    let refuse = |reason: String| Refusal::usage(format!("audio {:?}: {reason}", sample.id));
    let address = url::Url::parse(url).map_err(|error| refuse(error.to_string()))?;
    let document =
        simple::get(&address, None, session::connect_options(&cli.common), Duration::from_secs(300))
            .await
            .map_err(|error| refuse(error.to_string()))?;
    std::fs::create_dir_all(&folder).map_err(|error| refuse(error.to_string()))?;
    let partial = path.with_extension(format!("part{}", std::process::id()));
    std::fs::write(&partial, &document.body)
        .and_then(|()| std::fs::rename(&partial, &path))
        .map_err(|error| refuse(error.to_string()))?;
    Ok(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn subtitles_are_read_for_what_is_said() {
        let srt =
            "1\n00:00:00,000 --> 00:00:01,000\nHello\nthere\n\n2\n00:00:01,000 --> 00:00:02,000\nworld\n";
        assert_eq!(spoken_lines(srt), "Hello there world");
        let vtt = "WEBVTT\r\n\r\n00:00.000 --> 00:01.000\r\nHello\r\n";
        assert_eq!(spoken_lines(vtt), "Hello");
    }

    #[test]
    fn the_servers_own_time_is_read() {
        let (text, inference) = transcript(br#"{"text":"a b","inference_time":0.25}"#, Format::Json).unwrap();
        assert_eq!((text.as_str(), inference), ("a b", Some(Duration::from_millis(250))));
    }

    #[test]
    fn answers_of_a_real_server_are_read() {
        for name in ["vllmwhisper-transcription-json", "vllmwhisper-transcription-verbose"] {
            let path = format!("{}/tests/data/{name}.txt", env!("CARGO_MANIFEST_DIR"));
            let bytes = std::fs::read(path).unwrap();
            let body = bytes.windows(2).position(|window| window == b"\n{").unwrap() + 1;
            assert!(transcript(&bytes[body..], Format::Json).is_ok(), "{name}");
        }
    }
}
