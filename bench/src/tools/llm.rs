//! `metrumbench-llm`: text generation over `/v1/chat/completions` or `/v1/completions`.

use std::ffi::OsString;
use std::path::Path;
use std::time::Duration;

use clap::{Args, CommandFactory, FromArgMatches, Parser};
use events::summary::SUMMARY_SCHEMA;
use serde_json::{Map, Value, json};

use crate::answer::AnswerReader;
use crate::balance::Strategy;
use crate::cli::{Common, EXIT_CODES, parse_switch};
use crate::endpoints::Endpoint;
use crate::extra::Extra;
use crate::failure::{Failure, Redactor};
use crate::http::simple;
use crate::prompts::{self, Source, WORDS_PER_TOKEN};
use crate::session::{self, Job, Refusal, block_on, measure};
use crate::workload::{Prepared, Workload};

/// The system message of chat requests.
const SYSTEM_PROMPT: &str = "You are a helpful assistant.";

/// Measure how fast a language model endpoint generates text.
///
/// Sends requests to an OpenAI-compatible endpoint under a controlled load and measures response time, time to first
/// token, time per output token and throughput. Token counts are the server's own. One JSON line with every figure
/// and the whole configuration is appended to the data log, whatever happens.
#[derive(Parser, Clone, Debug)]
#[command(name = "metrumbench-llm", version, after_help = EXIT_CODES, max_term_width = 110, args_override_self = true)]
struct Cli {
    #[command(flatten)]
    common: Common,
    #[command(flatten)]
    text: TextOptions,
}

/// How text is asked for.
#[derive(Args, Clone, Debug)]
pub struct TextOptions {
    /// Prompts: a JSONL file or http(s) address, each line with a "prompt". Without it, made-up English, each prompt different.
    #[arg(long, value_name = "FILE|URL", help_heading = "Text")]
    pub prompts: Option<String>,
    /// Which API to use. Default: chat, or what the address says.
    #[arg(long, value_enum, help_heading = "Text")]
    pub mode: Option<Mode>,
    /// The system message; empty for none.
    #[arg(long, default_value = SYSTEM_PROMPT, help_heading = "Text")]
    pub system_prompt: String,
    /// Stream the answers (the default).
    #[arg(long, num_args = 0..=1, default_value_t = true, default_missing_value = "true", require_equals = true, value_parser = parse_switch, overrides_with = "no_streaming", help_heading = "Text")]
    pub streaming: bool,
    /// Ask for whole answers. TTFT then equals the response time.
    #[arg(long, overrides_with = "streaming", help_heading = "Text")]
    pub no_streaming: bool,
    /// The most tokens to generate. Default: --output-sequence-length, or 128.
    #[arg(long, help_heading = "Text")]
    pub max_tokens: Option<u32>,
    /// The fewest tokens to generate, where the server knows the field.
    #[arg(long, help_heading = "Text")]
    pub min_tokens: Option<u32>,
    /// Generate on past the end of the answer, where the server knows the field.
    #[arg(long, num_args = 0..=1, default_value_t = false, default_missing_value = "true", require_equals = true, value_parser = parse_switch, help_heading = "Text")]
    pub ignore_eos: bool,
    /// Sampling temperature.
    #[arg(long, default_value_t = 0.0, help_heading = "Text")]
    pub temperature: f64,
    /// Input tokens to aim at: samples the prompts by length, or sets the length of made-up ones.
    #[arg(long, alias = "isl", help_heading = "Text")]
    pub input_sequence_length: Option<u32>,
    /// Output tokens to ask for; a prompt's expected_output_tokens overrides it.
    #[arg(long, alias = "osl", help_heading = "Text")]
    pub output_sequence_length: Option<u32>,
    /// Words per token of the model's tokenizer, for lengths in tokens.
    #[arg(long, default_value_t = WORDS_PER_TOKEN, help_heading = "Text")]
    pub words_per_token: f64,
}

/// Which API is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Mode {
    /// `/v1/chat/completions`.
    Chat,
    /// `/v1/completions`.
    Completion,
}

impl Mode {
    /// The path below `/v1`.
    pub fn path(self) -> &'static str {
        match self {
            Self::Chat => "chat/completions",
            Self::Completion => "completions",
        }
    }

    /// What an address that ends in a known path says.
    fn of_address(address: &str) -> Option<Self> {
        let path = address.split(['?', '#']).next().unwrap_or_default().trim_end_matches('/');
        if path.ends_with("/chat/completions") {
            Some(Self::Chat)
        } else if path.ends_with("/completions") {
            Some(Self::Completion)
        } else {
            None
        }
    }
}

/// Input tokens of made-up prompts where nothing says otherwise.
const DEFAULT_INPUT_TOKENS: u32 = 128;
const DEFAULT_MAX_TOKENS: u32 = 128;

/// The requests of one run.
pub struct TextWorkload {
    source: Source,
    mode: Mode,
    body: TextBody,
}

/// What all request bodies of a run share.
pub struct TextBody {
    /// Members that are the same for all.
    fixed: Map<String, Value>,
    system_prompt: String,
    /// The most tokens, where a prompt does not say otherwise.
    pub max_tokens: u32,
    min_tokens: Option<u32>,
    /// Whether answers are streamed.
    pub streamed: bool,
}

impl TextBody {
    /// Works out the members of a run's requests.
    pub fn new(common: &Common, text: &TextOptions, model: &str) -> Self {
        let mut streamed = text.streaming && !text.no_streaming;
        if let Some(Value::Bool(wish)) = common.extra_body.as_ref().and_then(|members| members.get("stream"))
        {
            streamed = *wish;
        }
        let mut fixed = Map::new();
        fixed.insert("model".into(), json!(model));
        fixed.insert("temperature".into(), json!(text.temperature));
        fixed.insert("stream".into(), json!(streamed));
        if streamed {
            fixed.insert("stream_options".into(), json!({"include_usage": true}));
        }
        if text.ignore_eos {
            fixed.insert("ignore_eos".into(), json!(true));
        }
        for (key, value) in common.extra_body.iter().flatten() {
            fixed.insert(key.clone(), value.clone());
        }
        let max_tokens = text.max_tokens.or(text.output_sequence_length).unwrap_or(DEFAULT_MAX_TOKENS);
        Self {
            fixed,
            system_prompt: text.system_prompt.clone(),
            max_tokens,
            min_tokens: text.min_tokens,
            streamed,
        }
    }

    /// The body of a chat request whose user message is `content`.
    pub fn chat(&self, content: Value, output_tokens: Option<u32>) -> Vec<u8> {
        let user = json!({"role": "user", "content": content});
        let messages = match self.system_prompt.is_empty() {
            true => vec![user],
            false => vec![json!({"role": "system", "content": self.system_prompt}), user],
        };
        self.with("messages", Value::Array(messages), output_tokens)
    }

    /// The body of a completion request.
    pub fn completion(&self, prompt: String, output_tokens: Option<u32>) -> Vec<u8> {
        self.with("prompt", Value::String(prompt), output_tokens)
    }

    fn with(&self, name: &str, input: Value, output_tokens: Option<u32>) -> Vec<u8> {
        let mut body = Map::new();
        body.insert(name.into(), input);
        body.insert("max_tokens".into(), json!(output_tokens.unwrap_or(self.max_tokens)));
        if let Some(least) = self.min_tokens {
            body.insert("min_tokens".into(), json!(output_tokens.map_or(least, |own| own.min(least))));
        }
        body.extend(self.fixed.iter().map(|(key, value)| (key.clone(), value.clone())));
        serde_json::to_vec(&body).unwrap_or_default()
    }

    /// The `Accept` header.
    pub fn accept(&self) -> &'static str {
        if self.streamed { "text/event-stream" } else { "application/json" }
    }
}

impl Workload for TextWorkload {
    type Reader = AnswerReader;

    const TEXT: bool = true;

    async fn prepare(&self, index: u64) -> Result<Prepared, Failure> {
        let prompt = self.source.prompt(index);
        let prompt_words = Some(prompts::count_words(&prompt.prompt));
        let body = match self.mode {
            Mode::Completion => self.body.completion(prompt.prompt, prompt.expected_output_tokens),
            Mode::Chat => self.body.chat(Value::String(prompt.prompt), prompt.expected_output_tokens),
        };
        Ok(Prepared { body, prompt_words, streamed: self.body.streamed, extra: Extra::None })
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
    let mode = cli.text.mode.or_else(|| Mode::of_address(&cli.common.url)).unwrap_or(Mode::Chat);
    let endpoints = session::endpoints(&cli.common, mode.path());
    let redactor = session::redactor(&cli.common, endpoints.as_deref().unwrap_or_default());
    block_on(cli.common.threads, &redactor, async {
        let endpoints = endpoints?;
        let (workload, derived, flags) = prepare(&cli, mode, &endpoints).await?;
        let job = Job {
            tool: "metrumbench-llm",
            common: &cli.common,
            command: &command,
            matches: &matches,
            derived,
            workload,
            endpoints,
            flags,
            schema: SUMMARY_SCHEMA,
            summary_path: cli.common.data_log.clone().unwrap_or_else(|| "metrumbench-llm.jsonl".into()),
            request_log: cli.common.request_log.clone(),
            strategy: Strategy::Weighted,
            retries: (0, Duration::ZERO),
        };
        measure(job, redactor.clone()).await
    })
}

type Preparation = (TextWorkload, Map<String, Value>, Vec<String>);

async fn prepare(cli: &Cli, mode: Mode, endpoints: &[Endpoint]) -> Result<Preparation, Refusal> {
    let text = &cli.text;
    if !(text.words_per_token.is_finite() && text.words_per_token > 0.0) {
        return Err(Refusal::usage("--words-per-token must be above 0"));
    }
    let model = session::model(&cli.common, endpoints, mode.path()).await?;
    let source = match &text.prompts {
        None => {
            let tokens = text.input_sequence_length.unwrap_or(DEFAULT_INPUT_TOKENS);
            Source::synthetic(tokens, text.words_per_token, cli.common.seed)
        }
        Some(place) => {
            let library = read_library(place, &cli.common).await?;
            Source::library(library, text.input_sequence_length, text.words_per_token, cli.common.seed)
        }
    };
    let mut derived = Map::new();
    let mut flags = Vec::new();
    if let Some(distinct) = source.distinct() {
        derived.insert("distinct_prompts".into(), json!(distinct));
        if cli.common.requests_to_measure().is_none_or(|requests| requests > distinct as u64) {
            flags.push("prompts_reused".to_owned());
        }
    }
    let workload = TextWorkload { source, mode, body: TextBody::new(&cli.common, text, &model) };
    if cli.common.model.is_none() {
        derived.insert("model".into(), json!(model));
    }
    if text.mode.is_none() {
        derived.insert("mode".into(), json!(if mode == Mode::Chat { "chat" } else { "completion" }));
    }
    if text.max_tokens.is_none() {
        derived.insert("max_tokens".into(), json!(workload.body.max_tokens));
    }
    derived.insert("streaming".into(), json!(workload.body.streamed));
    if text.prompts.is_none() {
        derived.insert("prompts".into(), json!("built-in synthetic English"));
    }
    Ok((workload, derived, flags))
}

async fn read_library(place: &str, common: &Common) -> Result<Vec<prompts::Prompt>, Refusal> {
    let text = read_text(place, common).await?;
    let shown = Redactor::default().redact(place);
    prompts::parse_library(&text).map_err(|error| Refusal::usage(format!("--prompts {shown}: {error}")))
}

/// Reads a file or an http(s) address given as `--prompts`.
pub async fn read_text(place: &str, common: &Common) -> Result<String, Refusal> {
    let shown = Redactor::default().redact(place);
    if place.starts_with("http://") || place.starts_with("https://") {
        let url =
            url::Url::parse(place).map_err(|error| Refusal::usage(format!("--prompts {shown}: {error}")))?;
        let document = simple::get(&url, None, session::connect_options(common), Duration::from_secs(300))
            .await
            .map_err(|error| Refusal::usage(format!("--prompts: {error}")))?;
        Ok(String::from_utf8_lossy(&document.body).into_owned())
    } else {
        std::fs::read_to_string(Path::new(place))
            .map_err(|error| Refusal::usage(format!("--prompts {shown}: {error}")))
    }
}
