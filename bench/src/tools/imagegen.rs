//! `metrumbench-imagegen`: image generation over `/v1/images/generations`, with every image checked.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use base64::Engine;
use clap::Parser;
use events::summary::IMAGEGEN_SUMMARY_SCHEMA;
use rand::SeedableRng;
use rand::rngs::SmallRng;
use rand::seq::SliceRandom;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use sha2::Digest;

use super::Tool;
use crate::answer::Measured;
use crate::balance::Strategy;
use crate::body::BodyReader;
use crate::cli::{Common, EXIT_CODES};
use crate::endpoints::{Endpoint, endpoint};
use crate::extra::{Artifact, Extra, ImagesExtra};
use crate::failure::{Failure, FailureKind};
use crate::finish::SummaryFile;
use crate::http::simple;
use crate::images::{self, parse_size};
use crate::jsonl;
use crate::openai::error_message;
use crate::prompts::count_words;
use crate::session::{Outputs, Preparation};
use crate::setup::{self, Refusal};
use crate::workload::{Prepared, Workload};

const PATH: &str = "images/generations";

const EXAMPLES: &str = "Examples:
  metrumbench-imagegen --url http://localhost:8000 -c 2 --prompt 'A lighthouse at dawn' --size 512x512
      eight requests, two at a time; each image is decoded and hashed
  metrumbench-imagegen --endpoint http://a:8000 --endpoint http://b:8000 --load-balancing least-in-flight \\
      --prompts prompts.jsonl --artifact-dir images --data-log requests.jsonl --summary summary.json
      prompts.jsonl: {\"prompt\": \"…\", \"size\": \"768x768\", \"negative_prompt\": \"…\"}, one a line

";

/// Measure how fast an endpoint generates images, and keep what it made.
///
/// --data-log gets a JSON line for each request, --summary a single JSON object for the run.
#[derive(Parser, Clone, Debug)]
#[command(name = "metrumbench-imagegen", version, after_help = EXIT_CODES, after_long_help = format!("{EXAMPLES}{EXIT_CODES}"), max_term_width = 110, args_override_self = true)]
pub(super) struct Cli {
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
pub(super) struct ImagegenWorkload {
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
    let image = images::check(bytes).map_err(|reason| {
        Failure::new(FailureKind::ImageData, None, format!("image {}: {reason}", artifact.index))
    })?;
    artifact.sha256 = Some(sha2::Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect());
    artifact.size_bytes = Some(bytes.len() as u64);
    (artifact.width, artifact.height) = (Some(image.width), Some(image.height));
    artifact.mime_type = Some(image.mime_type.to_owned());
    Ok(())
}

fn save(path: &Path, bytes: &[u8]) -> Result<(), Failure> {
    std::fs::write(path, bytes)
        .map_err(|error| Failure::new(FailureKind::Artifact, None, format!("{}: {error}", path.display())))
}

/// The whole program: parses `arguments`, runs, and returns the exit code.
pub fn main(arguments: impl IntoIterator<Item = OsString>) -> i32 {
    super::run::<Cli>(arguments)
}

impl Tool for Cli {
    type Workload = ImagegenWorkload;

    const NAME: &'static str = "metrumbench-imagegen";

    fn common(&self) -> &Common {
        &self.common
    }

    fn path(&self) -> &'static str {
        PATH
    }

    fn endpoints(&self) -> Result<Vec<Endpoint>, Refusal> {
        if self.endpoint.is_empty() {
            return setup::endpoints(&self.common, PATH);
        }
        let key = setup::api_key(&self.common)?;
        self.endpoint
            .iter()
            .map(|text| endpoint(text, PATH, key.clone(), None, 1).map_err(Refusal::usage))
            .collect()
    }

    fn outputs(&self) -> Outputs {
        let path = self.summary.clone().unwrap_or_else(|| "metrumbench-imagegen.summary.json".into());
        Outputs {
            schema: IMAGEGEN_SUMMARY_SCHEMA,
            summary: SummaryFile { path, is_log: false },
            request_log: self.common.data_log.clone().or_else(|| self.common.request_log.clone()),
        }
    }

    fn strategy(&self) -> Strategy {
        let by_file =
            if self.common.endpoints_file.is_some() { Strategy::Weighted } else { Strategy::RoundRobin };
        self.load_balancing.unwrap_or(by_file)
    }

    fn retries(&self) -> Result<(u32, Duration), Refusal> {
        let backoff = Duration::try_from_secs_f64(self.retry_backoff)
            .map_err(|error| Refusal::usage(format!("--retry-backoff: {error}")))?;
        Ok((self.retries, backoff))
    }

    fn check(&self) -> Result<(), Refusal> {
        parse_size(&self.size)
            .map(drop)
            .map_err(|reason| Refusal::usage(format!("--size {}: {reason}", self.size)))
    }

    async fn prepare(
        &self,
        endpoints: &[Endpoint],
        model: &str,
    ) -> Result<Preparation<ImagegenWorkload>, Refusal> {
        if self.health_check {
            self.check_health(endpoints).await?;
        }
        let rows = self.rows().await?;
        if let Some(folder) = &self.artifact_dir {
            std::fs::create_dir_all(folder)
                .map_err(|error| Refusal::usage(format!("--artifact-dir {}: {error}", folder.display())))?;
        }
        let workload = ImagegenWorkload {
            rows,
            fixed: self.fixed_members(model),
            n: self.n,
            size: self.size.clone(),
            negative_prompt: self.negative_prompt.clone(),
            artifacts: Arc::new(Folder { path: self.artifact_dir.clone(), save_raw: self.save_raw }),
            run: uuid::Uuid::now_v7().simple().to_string(),
        };
        let requests = u64::from(self.common.concurrency).saturating_mul(4).max(4);
        Ok(Preparation { workload, derived: Map::new(), default_requests: Some(requests), distinct: None })
    }
}

impl Cli {
    async fn check_health(&self, endpoints: &[Endpoint]) -> Result<(), Refusal> {
        for endpoint in endpoints {
            let mut url = endpoint.url.clone();
            url.set_path("/health");
            let limit = self.common.connect_timeout.min(Duration::from_secs(10));
            let options = setup::connect_options(&self.common);
            simple::get(&url, endpoint.authorization().as_deref(), &options, limit).await.map_err(
                |error| {
                    Refusal::usage(format!(
                        "endpoint {} is not healthy: {error}; start it, or leave --health-check out",
                        endpoint.name
                    ))
                },
            )?;
        }
        Ok(())
    }

    async fn rows(&self) -> Result<Vec<Row>, Refusal> {
        let row = |prompt: &str| Row { prompt: prompt.to_owned(), size: None, negative_prompt: None };
        let mut rows = match (&self.prompt, &self.prompts) {
            (Some(prompt), _) => vec![row(prompt)],
            (None, Some(place)) => {
                let text = setup::read_text("--prompts", place, &self.common).await?;
                jsonl::rows(&text, "a \"prompt\" and, if wanted, size and negative_prompt")
                    .map_err(|error| Refusal::usage(format!("--prompts: {error}")))?
            }
            (None, None) => BUILT_IN.iter().map(|prompt| row(prompt)).collect(),
        };
        rows.shuffle(&mut SmallRng::seed_from_u64(self.common.seed));
        Ok(rows)
    }

    /// Members that are the same in all requests.
    fn fixed_members(&self, model: &str) -> Map<String, Value> {
        let mut fixed = Map::new();
        fixed.insert("model".into(), json!(model));
        let delivery = if self.response_format == Delivery::Url { "url" } else { "b64_json" };
        fixed.insert("response_format".into(), json!(delivery));
        if let Some(steps) = self.steps {
            fixed.insert("num_inference_steps".into(), json!(steps));
        }
        if let Some(scale) = self.guidance_scale {
            fixed.insert("guidance_scale".into(), json!(scale));
        }
        for (key, value) in self.common.extra_body.iter().flatten() {
            fixed.insert(key.clone(), value.clone());
        }
        fixed
    }
}
