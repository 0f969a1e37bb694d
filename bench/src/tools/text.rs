//! Asking for text, with or without images: options and request bodies.

use clap::Args;
use serde_json::{Map, Value, json};

use super::calibrate::Calibration;
use crate::cli::{Common, parse_not_negative, parse_positive, parse_switch};
use crate::prompts::{Lengths, WORDS_PER_TOKEN};
use crate::setup::Refusal;

/// The system message of chat requests.
const SYSTEM_PROMPT: &str = "You are a helpful assistant.";

const DEFAULT_MAX_TOKENS: u32 = 128;

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
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..), help_heading = "Text")]
    pub max_tokens: Option<u32>,
    /// The fewest tokens to generate, where the server knows the field.
    #[arg(long, help_heading = "Text")]
    pub min_tokens: Option<u32>,
    /// Generate on past the end of the answer, where the server knows the field.
    #[arg(long, num_args = 0..=1, default_value_t = false, default_missing_value = "true", require_equals = true, value_parser = parse_switch, help_heading = "Text")]
    pub ignore_eos: bool,
    /// Sampling temperature.
    #[arg(long, default_value_t = 0.0, value_parser = parse_not_negative, help_heading = "Text")]
    pub temperature: f64,
    /// Input tokens to aim at: samples the prompts by length, or sets the length of made-up ones.
    #[arg(long, visible_alias = "isl", value_parser = clap::value_parser!(u32).range(1..), help_heading = "Text")]
    pub input_sequence_length: Option<u32>,
    /// Output tokens to ask for; a prompt's expected_output_tokens overrides it.
    #[arg(long, visible_alias = "osl", value_parser = clap::value_parser!(u32).range(1..), help_heading = "Text")]
    pub output_sequence_length: Option<u32>,
    /// Words per token of the model's tokenizer, for lengths in tokens.
    #[arg(long, default_value_t = WORDS_PER_TOKEN, value_parser = parse_positive, conflicts_with = "calibrate", help_heading = "Text")]
    pub words_per_token: f64,
    /// Tokens that the chat template adds to each prompt, for lengths in tokens.
    #[arg(long, default_value_t = 0.0, value_parser = parse_not_negative, conflicts_with = "calibrate", help_heading = "Text")]
    pub overhead_tokens: f64,
    /// Learn the words per token from the server first: a few requests of known length, in no figure.
    #[arg(long, help_heading = "Text")]
    pub calibrate: bool,
}

impl TextOptions {
    /// Refuses values no run can have.
    pub fn check(&self) -> Result<(), Refusal> {
        let most = self.max_tokens.or(self.output_sequence_length).unwrap_or(DEFAULT_MAX_TOKENS);
        match self.min_tokens {
            Some(least) if least > most => Err(Refusal::usage(format!(
                "--min-tokens {least} is more than the {most} tokens an answer may have; raise --max-tokens"
            ))),
            _ => Ok(()),
        }
    }

    /// How token lengths become word counts, as given or as learnt.
    pub fn lengths(&self, calibration: Option<&Calibration>) -> Lengths {
        let given = Lengths { words_per_token: self.words_per_token, overhead_tokens: self.overhead_tokens };
        calibration.map_or(given, |calibration| calibration.lengths)
    }
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
    pub fn of_address(address: &str) -> Option<Self> {
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

/// What all request bodies of a run share.
#[derive(Clone, Debug)]
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

    /// The same requests, for one token and a whole answer: what is asked is only how long the input is.
    pub fn for_counting(&self) -> Self {
        let mut body = Self { max_tokens: 1, min_tokens: None, streamed: false, ..self.clone() };
        for name in ["stream_options", "ignore_eos", "max_tokens", "max_completion_tokens", "min_tokens"] {
            body.fixed.remove(name);
        }
        body.fixed.insert("stream".into(), json!(false));
        body
    }

    /// Adds what the tool worked out to the configuration's echo.
    pub fn describe(&self, text: &TextOptions, derived: &mut Map<String, Value>) {
        if text.max_tokens.is_none() {
            derived.insert("max_tokens".into(), json!(self.max_tokens));
        }
        derived.insert("streaming".into(), json!(self.streamed));
    }

    /// The body of a request in `mode` for `prompt`.
    pub fn of_prompt(&self, mode: Mode, prompt: String, output_tokens: Option<u32>) -> Vec<u8> {
        match mode {
            Mode::Completion => self.with("prompt", Value::String(prompt), output_tokens),
            Mode::Chat => self.chat(Value::String(prompt), output_tokens),
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
