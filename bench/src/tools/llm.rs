//! `metrumbench-llm`: text generation over `/v1/chat/completions` or `/v1/completions`.

use std::ffi::OsString;

use clap::Parser;
use serde_json::{Map, json};

use super::Tool;
use super::calibrate::{REQUESTS, calibrate};
use super::text::{Mode, TextBody, TextOptions};
use crate::answer::AnswerReader;
use crate::cli::{Common, EXIT_CODES};
use crate::endpoints::Endpoint;
use crate::extra::Extra;
use crate::failure::{Failure, Redactor};
use crate::prompts::{self, Lengths, Prompt, Source};
use crate::session::Preparation;
use crate::setup::{self, Refusal};
use crate::workload::{Prepared, Workload};

const EXAMPLES: &str = "Examples:
  metrumbench-llm --url http://localhost:8000 -c 16 -n 200
      200 requests, 16 at a time, of made-up prompts to the only model served there
  metrumbench-llm --url http://localhost:8000 -c 64 --isl 1024 --osl 256 --calibrate --ignore-eos --ramp-up-seconds 30
      1024 tokens in, 256 out, by this model's own tokenizer; what happens in the first half minute is left out
  metrumbench-llm --url http://localhost:8000 --request-rate 8 --duration 300 --slo ttft=500,tpot=40
      eight users a second for five minutes, whatever the answers do, and how many of them were served well
  metrumbench-llm --completions bash > ~/.local/share/bash-completion/completions/metrumbench-llm

";

/// Measure how fast a language model endpoint generates text.
///
/// Sends requests to an OpenAI-compatible endpoint under a controlled load and measures response time, time to first
/// token, time per output token and throughput. Token counts are the server's own. One JSON line with every figure
/// and the whole configuration is appended to the data log, whatever happens.
#[derive(Parser, Clone, Debug)]
#[command(name = "metrumbench-llm", version, after_help = EXIT_CODES, after_long_help = format!("{EXAMPLES}{EXIT_CODES}"), max_term_width = 110, args_override_self = true)]
pub(super) struct Cli {
    #[command(flatten)]
    common: Common,
    #[command(flatten)]
    text: TextOptions,
}

/// Input tokens of made-up prompts where nothing says otherwise.
const DEFAULT_INPUT_TOKENS: u32 = 128;

/// The made-up prompts sent to learn from: the longest about as long as the run's own, so that they fit where those fit.
fn prompts_to_learn_from(input_tokens: u32, seed: u64) -> Vec<Prompt> {
    let longest = Lengths::default().words(input_tokens).max(32.0);
    let words = |step: usize| (longest * step as f64 / REQUESTS as f64).round() as usize;
    prompts::synthetic_of_lengths(&(1..=REQUESTS).map(words).collect::<Vec<_>>(), seed)
}

/// The requests of one run.
pub(super) struct TextWorkload {
    source: Source,
    mode: Mode,
    body: TextBody,
}

impl Workload for TextWorkload {
    type Reader = AnswerReader;

    const TEXT: bool = true;

    async fn prepare(&self, index: u64) -> Result<Prepared, Failure> {
        let prompt = self.source.prompt(index);
        let prompt_words = Some(prompts::count_words(&prompt.prompt));
        let body = self.body.of_prompt(self.mode, prompt.prompt, prompt.expected_output_tokens);
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
    super::run::<Cli>(arguments)
}

impl Cli {
    fn mode(&self) -> Mode {
        self.text.mode.or_else(|| Mode::of_address(&self.common.url)).unwrap_or(Mode::Chat)
    }

    async fn library(&self) -> Result<Option<Vec<Prompt>>, Refusal> {
        let Some(place) = &self.text.prompts else { return Ok(None) };
        let text = setup::read_text("--prompts", place, &self.common).await?;
        let shown = Redactor::default().redact(place);
        prompts::parse_library(&text)
            .map(Some)
            .map_err(|error| Refusal::usage(format!("--prompts {shown}: {error}")))
    }
}

impl Tool for Cli {
    type Workload = TextWorkload;

    const NAME: &'static str = "metrumbench-llm";

    fn common(&self) -> &Common {
        &self.common
    }

    fn path(&self) -> &'static str {
        self.mode().path()
    }

    fn check(&self) -> Result<(), Refusal> {
        self.text.check()
    }

    async fn prepare(
        &self,
        endpoints: &[Endpoint],
        model: &str,
    ) -> Result<Preparation<TextWorkload>, Refusal> {
        let (text, seed, mode) = (&self.text, self.common.seed, self.mode());
        let input_tokens = text.input_sequence_length.unwrap_or(DEFAULT_INPUT_TOKENS);
        let body = TextBody::new(&self.common, text, model);
        let library = self.library().await?;
        let calibration = match text.calibrate {
            false => None,
            true => {
                let prompts = match &library {
                    Some(library) => prompts::spread_by_length(library, REQUESTS),
                    None => prompts_to_learn_from(input_tokens, seed),
                };
                Some(calibrate(&self.common, endpoints, mode, &body, prompts).await?)
            }
        };
        let lengths = text.lengths(calibration.as_ref());
        let mut derived = Map::new();
        if let Some(calibration) = &calibration {
            calibration.describe(&mut derived);
        }
        if library.is_none() {
            derived.insert("prompts".into(), json!("built-in synthetic English"));
        }
        if text.mode.is_none() {
            derived.insert("mode".into(), json!(if mode == Mode::Chat { "chat" } else { "completion" }));
        }
        body.describe(text, &mut derived);
        let source = match library {
            Some(library) => Source::library(library, text.input_sequence_length, lengths, seed),
            None => Source::synthetic(input_tokens, lengths, seed),
        };
        let distinct = source.distinct().map(|distinct| distinct as u64);
        let workload = TextWorkload { source, mode, body };
        Ok(Preparation { workload, derived, default_requests: None, distinct })
    }
}
