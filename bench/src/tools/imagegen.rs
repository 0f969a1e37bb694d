//! `metrumbench-imagegen`: image generation over `/v1/images/generations`, with every image checked.

use std::ffi::OsString;
use std::io::Cursor;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use base64::Engine;
use clap::{CommandFactory, FromArgMatches, Parser};
use events::summary::IMAGEGEN_SUMMARY_SCHEMA;
use rand::SeedableRng;
use rand::rngs::SmallRng;
use rand::seq::SliceRandom;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use sha2::Digest;

use super::llm::read_text;
use crate::answer::Measured;
use crate::balance::Strategy;
use crate::body::BodyReader;
use crate::cli::{Common, EXIT_CODES};
use crate::endpoints::{Endpoint, endpoint};
use crate::extra::{Artifact, Extra, ImagesExtra};
use crate::failure::{Failure, FailureKind};
use crate::http::simple;
use crate::images::parse_size;
use crate::openai::error_message;
use crate::prompts::count_words;
use crate::session::{self, Job, Refusal, measure};
use crate::workload::{Prepared, Workload};

const PATH: &str = "images/generations";

/// Measure how fast an endpoint generates images, and keep what it made.
///
/// --data-log gets a JSON line for each request, --summary a single JSON object for the run.
#[derive(Parser, Clone, Debug)]
#[command(name = "metrumbench-imagegen", version, after_help = EXIT_CODES, max_term_width = 110, args_override_self = true)]
struct Cli {
    #[command(flatten)]
    common: Common,
    /// An endpoint (repeatable); replaces --url.
    #[arg(long, value_name = "URL", help_heading = "Endpoint")]
    endpoint: Vec<String>,
    /// How requests are spread over endpoints. Default: by weight where a file gives weights, else in order.
    #[arg(long, value_enum, help_heading = "Endpoint")]
    load_balancing: Option<Strategy>,
    /// Ask each endpoint's /health first.
    #[arg(long, help_heading = "Endpoint")]
    health_check: bool,
    /// Further tries of a request that failed for a passing reason.
    #[arg(long, default_value_t = 0, help_heading = "Load")]
    retries: u32,
    /// Seconds before the first further try; doubled for each one after.
    #[arg(long, value_name = "SECONDS", default_value_t = 0.5, help_heading = "Load")]
    retry_backoff: f64,
    /// One prompt for all requests.
    #[arg(long, conflicts_with = "prompts", help_heading = "Images")]
    prompt: Option<String>,
    /// Prompts: a JSONL file or address, each line with prompt and optional size and negative_prompt.
    #[arg(long, value_name = "FILE|URL", help_heading = "Images")]
    prompts: Option<String>,
    /// Images in each request.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=64), help_heading = "Images")]
    n: u32,
    /// Size of each image.
    #[arg(long, value_name = "WIDTHxHEIGHT", default_value = "1024x1024", help_heading = "Images")]
    size: String,
    /// The images themselves, or links to them.
    #[arg(long, value_enum, default_value_t = Delivery::B64Json, help_heading = "Images")]
    response_format: Delivery,
    /// What not to show.
    #[arg(long, help_heading = "Images")]
    negative_prompt: Option<String>,
    /// Inference steps.
    #[arg(long, help_heading = "Images")]
    steps: Option<u32>,
    /// Guidance scale.
    #[arg(long, help_heading = "Images")]
    guidance_scale: Option<f64>,
    /// Save each image in this folder.
    #[arg(long, value_name = "FOLDER", help_heading = "Results")]
    artifact_dir: Option<PathBuf>,
    /// Save each raw answer there too.
    #[arg(long, requires = "artifact_dir", help_heading = "Results")]
    save_raw: bool,
    /// Where the summary goes. Default: metrumbench-imagegen.summary.json.
    #[arg(long, value_name = "FILE", help_heading = "Results")]
    summary: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Delivery {
    #[value(name = "b64_json")]
    B64Json,
    Url,
}

/// A line of the prompt file.
#[derive(Clone, Debug, Deserialize)]
struct Row {
    prompt: String,
    #[serde(default)]
    size: Option<String>,
    #[serde(default)]
    negative_prompt: Option<String>,
}

const BUILT_IN: [&str; 4] = [
    "A lighthouse on a rocky coast at dawn, soft light, wide angle",
    "A bowl of oranges on a wooden table, oil painting",
    "An old tram crossing a bridge in the rain at night, reflections",
    "A paper model of a mountain village, studio photograph",
];

/// The requests of one run.
struct ImagegenWorkload {
    rows: Vec<Row>,
    fixed: Map<String, Value>,
    n: u32,
    size: String,
    negative_prompt: Option<String>,
    artifacts: Arc<Folder>,
    run: String,
}

/// Where images are kept, if anywhere.
struct Folder {
    path: Option<PathBuf>,
    save_raw: bool,
}

impl Workload for ImagegenWorkload {
    type Reader = BodyReader;
    const TEXT: bool = false;

    async fn prepare(&self, index: u64) -> Result<Prepared, Failure> {
        let row = &self.rows[(index % self.rows.len() as u64) as usize];
        let size = row.size.clone().unwrap_or_else(|| self.size.clone());
        let mut body = Map::new();
        body.insert("prompt".into(), json!(row.prompt));
        body.insert("n".into(), json!(self.n));
        body.insert("size".into(), json!(size));
        if let Some(negative) = row.negative_prompt.as_ref().or(self.negative_prompt.as_ref()) {
            body.insert("negative_prompt".into(), json!(negative));
        }
        body.extend(self.fixed.iter().map(|(key, value)| (key.clone(), value.clone())));
        let requested = body.get("n").and_then(Value::as_u64).unwrap_or(self.n.into());
        let prompt = row.prompt.clone();
        let prompt_words = Some(count_words(&prompt));
        let extra = ImagesExtra { requested, prompt, size, ..ImagesExtra::default() };
        let body = serde_json::to_vec(&body).unwrap_or_default();
        Ok(Prepared { body, prompt_words, streamed: false, extra: Extra::Images(extra) })
    }

    fn reader(&self, _: &Prepared) -> BodyReader {
        BodyReader::new(true)
    }

    async fn inspect(&self, index: u64, measured: &mut Measured, extra: Extra) -> (Extra, Option<Failure>) {
        let Extra::Images(mut images) = extra else { return (extra, None) };
        let body = std::mem::take(&mut measured.body);
        images.response_bytes = body.len() as u64;
        let (folder, name) = (Arc::clone(&self.artifacts), format!("{}-{index:06}", self.run));
        let inspected = tokio::task::spawn_blocking(move || {
            let result = inspect_answer(&body, &folder, &name, &mut images);
            (images, result.err())
        });
        match inspected.await {
            Ok((images, failure)) => (Extra::Images(images), failure),
            Err(error) => (
                Extra::Images(ImagesExtra::default()),
                Some(Failure::new(FailureKind::ImageData, None, error.to_string())),
            ),
        }
    }

    fn accept(&self) -> &str {
        "application/json"
    }
}

/// Reads an answer, decodes and checks each image, and saves it.
fn inspect_answer(body: &[u8], folder: &Folder, name: &str, images: &mut ImagesExtra) -> Result<(), Failure> {
    let schema = |message: String| Failure::new(FailureKind::Decode, None, message);
    if let (Some(path), true) = (&folder.path, folder.save_raw) {
        let raw = path.join(format!("{name}.json"));
        save(&raw, body)?;
        images.raw_path = Some(raw.display().to_string());
    }
    let answer: Value = serde_json::from_slice(body).map_err(|error| schema(format!("not JSON: {error}")))?;
    if answer.get("error").is_some_and(|error| !error.is_null()) {
        return Err(Failure::new(FailureKind::InBandError, None, error_message(body)));
    }
    let items = answer["data"].as_array().ok_or_else(|| schema("the answer has no data array".into()))?;
    images.returned = items.len() as u64;
    if items.is_empty() {
        return Err(schema("the answer holds no image".into()));
    }
    for (index, item) in items.iter().enumerate() {
        let mut artifact = Artifact { index: index as u64, ..Artifact::default() };
        match (item["b64_json"].as_str(), item["url"].as_str()) {
            (Some(text), _) => {
                let text = text.rsplit_once("base64,").map_or(text, |(_, data)| data);
                let bytes =
                    base64::engine::general_purpose::STANDARD.decode(text.trim()).map_err(|error| {
                        Failure::new(FailureKind::ImageData, None, format!("image {index}: {error}"))
                    })?;
                check_image(&bytes, &mut artifact)?;
                if let Some(path) = &folder.path {
                    let extension = artifact.mime_type.as_deref().and_then(|mime| mime.rsplit('/').next());
                    let file = path.join(format!("{name}-{index}.{}", extension.unwrap_or("bin")));
                    save(&file, &bytes)?;
                    artifact.path = Some(file.display().to_string());
                }
            }
            (None, Some(url)) => artifact.url = Some(url.to_owned()),
            (None, None) => return Err(schema(format!("image {index} has neither b64_json nor url"))),
        }
        images.artifacts.push(artifact);
    }
    Ok(())
}

fn check_image(bytes: &[u8], artifact: &mut Artifact) -> Result<(), Failure> {
    let bad = |error: image::ImageError| {
        Failure::new(FailureKind::ImageData, None, format!("image {}: {error}", artifact.index))
    };
    let format = image::guess_format(bytes).map_err(bad)?;
    let dimensions =
        image::ImageReader::with_format(Cursor::new(bytes), format).into_dimensions().map_err(bad)?;
    artifact.sha256 = Some(sha2::Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect());
    artifact.size_bytes = Some(bytes.len() as u64);
    (artifact.width, artifact.height) = (Some(dimensions.0), Some(dimensions.1));
    artifact.mime_type = Some(format.to_mime_type().to_owned());
    Ok(())
}

fn save(path: &Path, bytes: &[u8]) -> Result<(), Failure> {
    std::fs::write(path, bytes)
        .map_err(|error| Failure::new(FailureKind::Artifact, None, format!("{}: {error}", path.display())))
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
    let endpoints = endpoints(&cli);
    let redactor = session::redactor(&cli.common, endpoints.as_deref().unwrap_or_default());
    session::block_on(cli.common.threads, &redactor, async {
        let endpoints = endpoints?;
        parse_size(&cli.size).map_err(|reason| Refusal::usage(format!("--size {}: {reason}", cli.size)))?;
        let backoff = Duration::try_from_secs_f64(cli.retry_backoff)
            .map_err(|error| Refusal::usage(format!("--retry-backoff: {error}")))?;
        if cli.health_check {
            check_health(&cli, &endpoints).await?;
        }
        let model = session::model(&cli.common, &endpoints, PATH).await?;
        let workload = workload(&cli, &model).await?;
        let mut derived = Map::new();
        derived.insert("model".into(), json!(model));
        if cli.common.num_requests.is_none() && cli.common.duration.is_none() {
            let requests = u64::from(cli.common.concurrency).saturating_mul(4).max(4);
            cli.common.num_requests = Some(requests);
            derived.insert("num_requests".into(), json!(requests));
        }
        let by_file =
            if cli.common.endpoints_file.is_some() { Strategy::Weighted } else { Strategy::RoundRobin };
        let job = Job {
            tool: "metrumbench-imagegen",
            common: &cli.common,
            command: &command,
            matches: &matches,
            derived,
            workload,
            endpoints,
            flags: Vec::new(),
            schema: IMAGEGEN_SUMMARY_SCHEMA,
            summary_path: cli.summary.clone().unwrap_or_else(|| "metrumbench-imagegen.summary.json".into()),
            request_log: cli.common.data_log.clone().or_else(|| cli.common.request_log.clone()),
            strategy: cli.load_balancing.unwrap_or(by_file),
            retries: (cli.retries, backoff),
        };
        measure(job, redactor.clone()).await
    })
}

fn endpoints(cli: &Cli) -> Result<Vec<Endpoint>, Refusal> {
    if cli.endpoint.is_empty() {
        return session::endpoints(&cli.common, PATH);
    }
    let key = cli.common.api_key.as_deref().map(|key| key.trim().to_owned()).filter(|key| !key.is_empty());
    cli.endpoint
        .iter()
        .map(|text| endpoint(text, PATH, key.clone(), None, 1).map_err(Refusal::usage))
        .collect()
}

async fn check_health(cli: &Cli, endpoints: &[Endpoint]) -> Result<(), Refusal> {
    for endpoint in endpoints {
        let mut url = endpoint.url.clone();
        url.set_path("/health");
        let limit = cli.common.connect_timeout.min(Duration::from_secs(10));
        simple::get(&url, endpoint.authorization().as_deref(), session::connect_options(&cli.common), limit)
            .await
            .map_err(|error| Refusal::usage(format!("endpoint {} is not healthy: {error}", endpoint.name)))?;
    }
    Ok(())
}

async fn workload(cli: &Cli, model: &str) -> Result<ImagegenWorkload, Refusal> {
    let row = |prompt: &str| Row { prompt: prompt.to_owned(), size: None, negative_prompt: None };
    let mut rows = match (&cli.prompt, &cli.prompts) {
        (Some(prompt), _) => vec![row(prompt)],
        (None, Some(place)) => parse_rows(&read_text(place, &cli.common).await?)?,
        (None, None) => BUILT_IN.iter().map(|prompt| row(prompt)).collect(),
    };
    rows.shuffle(&mut SmallRng::seed_from_u64(cli.common.seed));
    if let Some(folder) = &cli.artifact_dir {
        std::fs::create_dir_all(folder)
            .map_err(|error| Refusal::usage(format!("--artifact-dir {}: {error}", folder.display())))?;
    }
    let mut fixed = Map::new();
    fixed.insert("model".into(), json!(model));
    let delivery = if cli.response_format == Delivery::Url { "url" } else { "b64_json" };
    fixed.insert("response_format".into(), json!(delivery));
    if let Some(steps) = cli.steps {
        fixed.insert("num_inference_steps".into(), json!(steps));
    }
    if let Some(scale) = cli.guidance_scale {
        fixed.insert("guidance_scale".into(), json!(scale));
    }
    for (key, value) in cli.common.extra_body.iter().flatten() {
        fixed.insert(key.clone(), value.clone());
    }
    Ok(ImagegenWorkload {
        rows,
        fixed,
        n: cli.n,
        size: cli.size.clone(),
        negative_prompt: cli.negative_prompt.clone(),
        artifacts: Arc::new(Folder { path: cli.artifact_dir.clone(), save_raw: cli.save_raw }),
        run: uuid::Uuid::now_v7().simple().to_string(),
    })
}

fn parse_rows(text: &str) -> Result<Vec<Row>, Refusal> {
    let lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
    let rows = lines
        .map(|(index, line)| {
            serde_json::from_str::<Row>(line)
                .map_err(|error| Refusal::usage(format!("--prompts: line {}: {error}", index + 1)))
        })
        .collect::<Result<Vec<_>, _>>()?;
    if rows.is_empty() { Err(Refusal::usage("--prompts: no prompts in it")) } else { Ok(rows) }
}
