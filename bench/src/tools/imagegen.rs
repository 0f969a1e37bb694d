//! `metrumbench-imagegen`: image generation over `/v1/images/generations`, with every image checked.

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use clap::Parser;
use events::summary::IMAGEGEN_SUMMARY_SCHEMA;
use rand::SeedableRng;
use rand::rngs::SmallRng;
use rand::seq::SliceRandom;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::Tool;
use super::artifacts::{Folder, inspect_answer, shown};
use crate::answer::Measured;
use crate::balance::Strategy;
use crate::body::BodyReader;
use crate::cli::{Common, EXIT_CODES, parse_not_negative, parse_seconds};
use crate::endpoints::{Endpoint, endpoint};
use crate::extra::{Artifact, Extra, ImagesExtra, is_unfinished};
use crate::failure::{Failure, FailureKind};
use crate::finish::SummaryFile;
use crate::http::simple::{self, Limits};
use crate::images::parse_size;
use crate::jsonl;
use crate::links::{self, Follower};
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

const DATA_LOG: &str =
    "Append a JSON line for each request to this file. Default: metrumbench-imagegen.jsonl.";

/// Measure how fast an endpoint generates images, and keep what it made.
///
/// --data-log gets a JSON line for each request (metrumbench-imagegen.jsonl), --summary a single JSON object for the run
/// (metrumbench-imagegen.summary.json).
#[derive(Parser, Clone, Debug)]
#[command(name = "metrumbench-imagegen", version, after_help = EXIT_CODES, after_long_help = format!("{EXAMPLES}{EXIT_CODES}"), max_term_width = 110, args_override_self = true)]
#[command(mut_arg("data_log", |arg| arg.help(DATA_LOG)), mut_arg("request_log", |arg| arg.help("The same as --data-log.")))]
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
    #[arg(long, value_name = "SECONDS", default_value = "0.5", value_parser = parse_seconds, help_heading = "Load")]
    retry_backoff: Duration,
    /// One prompt for all requests.
    #[arg(long, conflicts_with = "prompts", value_parser = clap::builder::NonEmptyStringValueParser::new(), help_heading = "Images")]
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
    /// Seconds to fetch linked images in, after the load, for their size, SHA-256 and dimensions; 0: do not fetch them.
    #[arg(long, value_name = "SECONDS", default_value = "300", value_parser = parse_seconds, help_heading = "Images")]
    fetch_timeout: Duration,
    /// What not to show.
    #[arg(long, help_heading = "Images")]
    negative_prompt: Option<String>,
    /// Inference steps.
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..), help_heading = "Images")]
    steps: Option<u32>,
    /// Guidance scale.
    #[arg(long, value_parser = parse_not_negative, help_heading = "Images")]
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
    /// Follow links, by endpoint.
    links: Vec<Follower>,
    fetch_timeout: Duration,
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
        let (folder, name) = (Arc::clone(&self.artifacts), self.name_of(index));
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

    fn is_unfinished(&self, extra: &Extra) -> bool {
        matches!(extra, Extra::Images(images) if images.is_unfinished())
    }

    fn completion_limit(&self) -> Duration {
        self.fetch_timeout
    }

    async fn complete(&self, endpoint: usize, index: u64, extra: &mut Extra) {
        let Extra::Images(images) = extra else { return };
        for artifact in images.artifacts.iter_mut().filter(|artifact| is_unfinished(artifact)) {
            if let Err(reason) = self.follow(endpoint, index, artifact).await {
                artifact.unknown_reason = Some(reason);
            }
            artifact.url = artifact.url.take().map(|link| shown(&link));
        }
    }

    fn give_up(&self, extra: &mut Extra, reason: &str) {
        let Extra::Images(images) = extra else { return };
        for artifact in images.artifacts.iter_mut().filter(|artifact| is_unfinished(artifact)) {
            artifact.unknown_reason = Some(reason.to_owned());
            artifact.url = artifact.url.take().map(|link| shown(&link));
        }
    }

    fn accept(&self) -> &str {
        "application/json"
    }
}

impl ImagegenWorkload {
    /// What files of a request are called.
    fn name_of(&self, index: u64) -> String {
        format!("{}-{index:06}", self.run)
    }

    /// Fetches the image behind a link, describes it, and keeps it where images are kept.
    async fn follow(&self, endpoint: usize, index: u64, artifact: &mut Artifact) -> Result<(), String> {
        if self.fetch_timeout.is_zero() {
            return Err("not fetched (--fetch-timeout 0)".to_owned());
        }
        let (follower, link) = (self.links.get(endpoint), artifact.url.as_deref().unwrap_or_default());
        let follower = follower.ok_or("the endpoint is not known")?;
        let bytes = follower.fetch(&follower.target(link)?).await?;
        let (folder, name) = (Arc::clone(&self.artifacts), self.name_of(index));
        let mut described = artifact.clone();
        let describing = tokio::task::spawn_blocking(move || {
            links::describe(&bytes, &mut described);
            if described.mime_type.is_some() {
                // The image was had and measured: that it cannot be kept is another matter.
                described.unknown_reason =
                    folder.keep(&name, &bytes, &mut described).err().map(|f| f.message);
            }
            described
        });
        *artifact = describing.await.map_err(|error| error.to_string())?;
        Ok(())
    }
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
        let log = self.common.data_log.clone().or_else(|| self.common.request_log.clone());
        Outputs {
            schema: IMAGEGEN_SUMMARY_SCHEMA,
            summary: SummaryFile { path, is_log: false },
            request_log: Some(log.unwrap_or_else(|| "metrumbench-imagegen.jsonl".into())),
        }
    }

    fn strategy(&self) -> Strategy {
        let by_file =
            if self.common.endpoints_file.is_some() { Strategy::Weighted } else { Strategy::RoundRobin };
        self.load_balancing.unwrap_or(by_file)
    }

    fn retries(&self) -> (u32, Duration) {
        (self.retries, self.retry_backoff)
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
        let options = setup::connect_options(&self.common);
        let links = endpoints.iter().map(|endpoint| Follower::of(endpoint, options.clone()));
        // Also where links were not asked for: some servers answer with them all the same.
        let links = futures::future::join_all(links).await;
        let workload = ImagegenWorkload {
            rows,
            fixed: self.fixed_members(model),
            n: self.n,
            size: self.size.clone(),
            negative_prompt: self.negative_prompt.clone(),
            artifacts: Arc::new(Folder { path: self.artifact_dir.clone(), save_raw: self.save_raw }),
            run: uuid::Uuid::now_v7().simple().to_string(),
            links,
            fetch_timeout: self.fetch_timeout,
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
            simple::get(&url, endpoint.authorization().as_deref(), &options, &Limits::within(limit))
                .await
                .map_err(|error| {
                    Refusal::usage(format!(
                        "endpoint {} is not healthy: {error}; start it, or leave --health-check out",
                        endpoint.name
                    ))
                })?;
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
