//! `metrumbench-vlm`: questions about images over `/v1/chat/completions`.

use std::collections::HashMap;
use std::ffi::OsString;
use std::sync::Arc;
use std::time::{Duration, Instant};

use clap::Parser;
use rand::SeedableRng;
use rand::rngs::SmallRng;
use rand::seq::SliceRandom;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::Tool;
use super::calibrate::{REQUESTS, calibrate};
use super::text::{Mode, TextBody, TextOptions};
use crate::answer::AnswerReader;
use crate::cli::{Common, EXIT_CODES, parse_seconds};
use crate::endpoints::Endpoint;
use crate::extra::{Extra, VlmExtra};
use crate::failure::{Failure, FailureKind};
use crate::images::{Source, Store, parse_size};
use crate::jsonl;
use crate::links::{self, Remote};
use crate::prompts::{Prompt, count_words, nearest_in_length, spread_by_length};
use crate::session::Preparation;
use crate::setup::{Refusal, connect_options, fetch_all, read_text};
use crate::workload::{Prepared, Workload};

const EXAMPLES: &str = "Examples:
  metrumbench-vlm --url http://localhost:8000 -c 8 --synthetic-image 1024x768
      made-up images, each different, so that no cache helps
  metrumbench-vlm --url http://localhost:8000 --prompts photos.jsonl --max-image-dimension 1024 --num-images-batch 2
      photos.jsonl: {\"prompt\": \"What is shown?\", \"image_urls\": [\"photos/1.jpg\"]}, one a line

";

/// Measure how fast a vision-language model endpoint answers questions about images.
///
/// As metrumbench-llm, with images in the requests. Prompts are JSONL lines with a prompt and image_urls (addresses,
/// paths or file:// addresses); without a file, made-up images, each different.
#[derive(Parser, Clone, Debug)]
#[command(name = "metrumbench-vlm", version, after_help = EXIT_CODES, after_long_help = format!("{EXAMPLES}{EXIT_CODES}"), max_term_width = 110, args_override_self = true)]
pub(super) struct Cli {
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
    /// Seconds to fetch the images in before the run where the server gets addresses, to know their size and
    /// dimensions; 0: do not fetch them.
    #[arg(long, value_name = "SECONDS", default_value = "300", value_parser = parse_seconds, help_heading = "Images")]
    fetch_timeout: Duration,
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

impl Row {
    fn without_images(&self) -> Prompt {
        Prompt { prompt: self.prompt.clone(), expected_output_tokens: None }
    }
}

const SYNTHETIC_PROMPT: &str =
    "Describe this image: its colours, how they change, and anything that stands out.";

/// The requests of one run.
pub(super) struct VlmWorkload {
    /// Empty: made-up images.
    rows: Vec<Row>,
    synthetic: (u32, u32),
    seed: u64,
    images: Arc<Store>,
    per_request: Option<u32>,
    detail: Detail,
    transport: Transport,
    /// What is known of images that the server fetches itself, by address.
    remote: HashMap<String, Result<Remote, String>>,
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
        let mut extra = VlmExtra { bytes: Some(0), ..VlmExtra::default() };
        for source in sources {
            let address = match (&source, self.transport) {
                (Source::Remote(url), Transport::Url) => {
                    match self.remote.get(url) {
                        Some(Ok(image)) => extra.add(image.bytes, image.dimensions),
                        Some(Err(reason)) => extra.add_unknown(reason),
                        None => extra.add_unknown("not fetched (--fetch-timeout 0)"),
                    }
                    url.clone()
                }
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
                    extra.add(image.bytes, (image.width, image.height));
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
    super::run::<Cli>(arguments)
}

impl Tool for Cli {
    type Workload = VlmWorkload;

    const NAME: &'static str = "metrumbench-vlm";

    fn common(&self) -> &Common {
        &self.common
    }

    fn path(&self) -> &'static str {
        Mode::Chat.path()
    }

    fn check(&self) -> Result<(), Refusal> {
        if self.text.mode == Some(Mode::Completion) {
            return Err(Refusal::usage("images need --mode chat"));
        }
        if self.text.calibrate && self.text.prompts.is_none() {
            return Err(Refusal::usage(
                "--calibrate needs --prompts: made-up images all have the same prompt",
            ));
        }
        self.text.check()
    }

    async fn prepare(
        &self,
        endpoints: &[Endpoint],
        model: &str,
    ) -> Result<Preparation<VlmWorkload>, Refusal> {
        let (text, seed) = (&self.text, self.common.seed);
        let mut rows = self.rows().await?;
        let body = TextBody::new(&self.common, text, model);
        let mut derived = Map::new();
        let mut lengths = text.lengths(None);
        if text.calibrate {
            let prompts: Vec<Prompt> = rows.iter().map(Row::without_images).collect();
            let prompts = spread_by_length(&prompts, REQUESTS);
            let calibration = calibrate(&self.common, endpoints, Mode::Chat, &body, prompts).await?;
            calibration.describe(&mut derived);
            lengths = calibration.lengths;
        }
        if let Some(tokens) = text.input_sequence_length.filter(|_| !rows.is_empty()) {
            rows = nearest_in_length(rows, |row| &row.prompt, lengths.words(tokens));
        }
        rows.shuffle(&mut SmallRng::seed_from_u64(seed));
        body.describe(text, &mut derived);
        let addresses = rows
            .iter()
            .flat_map(|row| &row.image_urls)
            .filter(|reference| matches!(Source::of_reference(reference), Source::Remote(_)))
            .map(String::as_str);
        let options = connect_options(&self.common);
        if self.image_transport == Transport::Url {
            // The model server fetches them: what this host may not ask, it must not have asked either.
            links::check_networks(addresses.clone(), &options)
                .await
                .map_err(|(address, why)| Refusal::usage(format!("image {address}: {why}")))?;
        }
        let (mut images, mut remote) = (HashMap::new(), HashMap::new());
        match self.image_transport {
            Transport::Base64 => {
                images = fetch_all("image", addresses, &self.common).await?.into_iter().collect()
            }
            Transport::Url if self.fetch_timeout.is_zero() => {}
            Transport::Url => {
                remote = links::look_at(addresses, &options, self.fetch_timeout).await;
            }
        }
        let distinct = (!rows.is_empty()).then_some(rows.len() as u64);
        let workload = VlmWorkload {
            rows,
            synthetic: self.synthetic_image,
            seed: seed.wrapping_mul(1 << 20),
            images: Arc::new(Store::new(self.max_image_dimension, images)),
            per_request: self.num_images_batch,
            detail: self.image_detail,
            transport: self.image_transport,
            remote,
            body,
        };
        Ok(Preparation { workload, derived, default_requests: None, distinct })
    }
}

impl Cli {
    async fn rows(&self) -> Result<Vec<Row>, Refusal> {
        let Some(place) = &self.text.prompts else { return Ok(Vec::new()) };
        let text = read_text("--prompts", place, &self.common).await?;
        parse_rows(&text).map_err(|reason| Refusal::usage(format!("--prompts: {reason}")))
    }
}

fn parse_rows(text: &str) -> Result<Vec<Row>, String> {
    let wanted = "a \"prompt\" and \"image_urls\", a list of addresses or paths";
    let rows: Vec<Row> = jsonl::rows(text, wanted).map_err(|error| error.to_string())?;
    match rows.iter().position(|row| row.image_urls.is_empty()) {
        Some(index) => Err(format!("prompt {} has no image_urls", index + 1)),
        None => Ok(rows),
    }
}
