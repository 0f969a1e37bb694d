//! `metrumbench-vlm`: questions about images over `/v1/chat/completions`.

use std::collections::{HashMap, HashSet};
use std::ffi::OsString;
use std::sync::Arc;
use std::time::{Duration, Instant};

use clap::{CommandFactory, FromArgMatches, Parser};
use events::summary::SUMMARY_SCHEMA;
use rand::SeedableRng;
use rand::rngs::SmallRng;
use rand::seq::SliceRandom;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::llm::{Mode, TextBody, TextOptions, read_text};
use crate::answer::AnswerReader;
use crate::balance::Strategy;
use crate::cli::{Common, EXIT_CODES};
use crate::extra::{Extra, VlmExtra};
use crate::failure::{Failure, FailureKind};
use crate::http::simple;
use crate::images::{Source, Store, parse_size};
use crate::prompts::count_words;
use crate::session::{self, Job, Refusal, measure};
use crate::workload::{Prepared, Workload};

/// Measure how fast a vision-language model endpoint answers questions about images.
///
/// As metrumbench-llm, with images in the requests. Prompts are JSONL lines with a prompt and image_urls (addresses,
/// paths or file:// addresses); without a file, made-up images, each different.
#[derive(Parser, Clone, Debug)]
#[command(name = "metrumbench-vlm", version, after_help = EXIT_CODES, max_term_width = 110, args_override_self = true)]
struct Cli {
    #[command(flatten)]
    common: Common,
    #[command(flatten)]
    text: TextOptions,
    /// How closely the model shall look.
    #[arg(long, value_enum, default_value_t = Detail::High, help_heading = "Images")]
    image_detail: Detail,
    /// Make images smaller that are larger than so many pixels either way.
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..), help_heading = "Images")]
    max_image_dimension: Option<u32>,
    /// Images in each request. Default: those of its prompt.
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=64), help_heading = "Images")]
    num_images_batch: Option<u32>,
    /// Send the images themselves, or addresses the server fetches.
    #[arg(long, value_enum, default_value_t = Transport::Base64, help_heading = "Images")]
    image_transport: Transport,
    /// The size of made-up images.
    #[arg(long, value_name = "WIDTHxHEIGHT", default_value = "640x480", value_parser = parse_size, help_heading = "Images")]
    synthetic_image: (u32, u32),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Detail {
    Low,
    High,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Transport {
    Base64,
    Url,
}

/// A line of the prompt file.
#[derive(Clone, Debug, Deserialize)]
struct Row {
    prompt: String,
    image_urls: Vec<String>,
    #[serde(default)]
    expected_output_tokens: Option<u32>,
}

const SYNTHETIC_PROMPT: &str =
    "Describe this image: its colours, how they change, and anything that stands out.";

/// The requests of one run.
struct VlmWorkload {
    /// Empty: made-up images.
    rows: Vec<Row>,
    synthetic: (u32, u32),
    seed: u64,
    images: Arc<Store>,
    per_request: Option<u32>,
    detail: Detail,
    transport: Transport,
    body: TextBody,
}

impl VlmWorkload {
    /// The prompt of request `index`, its output length, and its images: where it has too few, those of the next rows.
    fn request(&self, index: u64) -> (String, Option<u32>, Vec<Source>) {
        if self.rows.is_empty() {
            let count = u64::from(self.per_request.unwrap_or(1));
            let (width, height) = self.synthetic;
            let number = |image: u64| self.seed.wrapping_add(index.wrapping_mul(64)).wrapping_add(image);
            let images = (0..count).map(|image| Source::Synthetic { width, height, number: number(image) });
            return (SYNTHETIC_PROMPT.to_owned(), None, images.collect());
        }
        let length = self.rows.len() as u64;
        let row = &self.rows[(index % length) as usize];
        let wanted = self.per_request.map_or(row.image_urls.len(), |count| count as usize);
        let references =
            (0..length).flat_map(|step| &self.rows[((index + step) % length) as usize].image_urls);
        let images =
            references.cycle().take(wanted).map(|reference| Source::of_reference(reference)).collect();
        (row.prompt.clone(), row.expected_output_tokens, images)
    }
}

impl Workload for VlmWorkload {
    type Reader = AnswerReader;

    const TEXT: bool = true;

    async fn prepare(&self, index: u64) -> Result<Prepared, Failure> {
        let (prompt, output_tokens, sources) = self.request(index);
        let prompt_words = Some(count_words(&prompt));
        let detail = if self.detail == Detail::Low { "low" } else { "high" };
        let began = Instant::now();
        let mut content = vec![json!({"type": "text", "text": prompt})];
        let mut extra = VlmExtra::default();
        for source in sources {
            let address = match (&source, self.transport) {
                (Source::Remote(url), Transport::Url) => url.clone(),
                _ => {
                    let image = match self.images.ready(&source) {
                        Some(image) => image,
                        None => {
                            let images = Arc::clone(&self.images);
                            tokio::task::spawn_blocking(move || images.prepare(&source))
                                .await
                                .map_err(|error| Failure::new(FailureKind::Request, None, error.to_string()))?
                                .map_err(|error| Failure::new(FailureKind::Request, None, error))?
                        }
                    };
                    extra.bytes += image.bytes;
                    extra.dimensions.push((image.width, image.height));
                    image.data_url.clone()
                }
            };
            content.push(json!({"type": "image_url", "image_url": {"url": address, "detail": detail}}));
        }
        let body = self.body.chat(Value::Array(content), output_tokens);
        extra.processing = began.elapsed();
        Ok(Prepared { body, prompt_words, streamed: self.body.streamed, extra: Extra::Vlm(extra) })
    }

    fn reader(&self, prepared: &Prepared) -> AnswerReader {
        AnswerReader::new(prepared.streamed)
    }

    fn accept(&self) -> &str {
        self.body.accept()
    }
}

/// The whole program: parses `arguments`, runs, and returns the exit code.
pub fn main(arguments: impl IntoIterator<Item = OsString>) -> i32 {
    let command = Cli::command();
    let matches = match super::parse(&command, arguments) {
        Ok(matches) => matches,
        Err(code) => return code,
    };
    let cli = match Cli::from_arg_matches(&matches) {
        Ok(cli) => cli,
        Err(error) => return super::usage_error(&error),
    };
    let path = Mode::Chat.path();
    let endpoints = session::endpoints(&cli.common, path);
    let redactor = session::redactor(&cli.common, endpoints.as_deref().unwrap_or_default());
    session::block_on(cli.common.threads, &redactor, async {
        let endpoints = endpoints?;
        if cli.text.mode == Some(Mode::Completion) {
            return Err(Refusal::usage("images need --mode chat"));
        }
        let model = session::model(&cli.common, &endpoints, path).await?;
        let workload = workload(&cli, &model).await?;
        let mut derived = Map::new();
        derived.insert("model".into(), json!(model));
        derived.insert("max_tokens".into(), json!(workload.body.max_tokens));
        derived.insert("streaming".into(), json!(workload.body.streamed));
        let mut flags = Vec::new();
        if !workload.rows.is_empty() {
            derived.insert("distinct_prompts".into(), json!(workload.rows.len()));
            let distinct = workload.rows.len() as u64;
            if cli.common.requests_to_measure().is_none_or(|requests| requests > distinct) {
                flags.push("prompts_reused".to_owned());
            }
        }
        let job = Job {
            tool: "metrumbench-vlm",
            common: &cli.common,
            command: &command,
            matches: &matches,
            derived,
            workload,
            endpoints,
            flags,
            schema: SUMMARY_SCHEMA,
            summary_path: cli.common.data_log.clone().unwrap_or_else(|| "metrumbench-vlm.jsonl".into()),
            request_log: cli.common.request_log.clone(),
            strategy: Strategy::Weighted,
            retries: (0, Duration::ZERO),
        };
        measure(job, redactor.clone()).await
    })
}

async fn workload(cli: &Cli, model: &str) -> Result<VlmWorkload, Refusal> {
    let mut rows = match &cli.text.prompts {
        None => Vec::new(),
        Some(place) => parse_rows(&read_text(place, &cli.common).await?)?,
    };
    rows.shuffle(&mut SmallRng::seed_from_u64(cli.common.seed));
    let remote = match cli.image_transport {
        Transport::Url => HashMap::new(),
        Transport::Base64 => fetch_all(&rows, &cli.common).await?,
    };
    Ok(VlmWorkload {
        rows,
        synthetic: cli.synthetic_image,
        seed: cli.common.seed.wrapping_mul(1 << 20),
        images: Arc::new(Store::new(cli.max_image_dimension, remote)),
        per_request: cli.num_images_batch,
        detail: cli.image_detail,
        transport: cli.image_transport,
        body: TextBody::new(&cli.common, &cli.text, model),
    })
}

fn parse_rows(text: &str) -> Result<Vec<Row>, Refusal> {
    let lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
    let rows = lines
        .map(|(index, line)| match serde_json::from_str::<Row>(line) {
            Ok(row) if row.image_urls.is_empty() => {
                Err(Refusal::usage(format!("--prompts: line {}: no image_urls", index + 1)))
            }
            Ok(row) => Ok(row),
            Err(error) => Err(Refusal::usage(format!("--prompts: line {}: {error}", index + 1))),
        })
        .collect::<Result<Vec<_>, _>>()?;
    if rows.is_empty() { Err(Refusal::usage("--prompts: no prompts in it")) } else { Ok(rows) }
}

/// Fetches every remote image once, before anything is measured.
async fn fetch_all(rows: &[Row], common: &Common) -> Result<HashMap<String, Vec<u8>>, Refusal> {
    let references: HashSet<&String> = rows.iter().flat_map(|row| &row.image_urls).collect();
    let mut fetched = HashMap::new();
    for reference in references {
        let Source::Remote(address) = Source::of_reference(reference) else { continue };
        let refuse = |reason: String| Refusal::usage(format!("image {address}: {reason}"));
        let url = url::Url::parse(&address).map_err(|error| refuse(error.to_string()))?;
        let document = simple::get(&url, None, session::connect_options(common), Duration::from_secs(120))
            .await
            .map_err(|error| refuse(error.to_string()))?;
        fetched.insert(address, document.body);
    }
    Ok(fetched)
}
