//! The load generators, one file each, and what they share: from arguments to an exit code.

use std::ffi::OsString;
use std::io;
use std::time::Duration;

use clap::{ArgMatches, Command, CommandFactory, FromArgMatches};
use events::summary::SUMMARY_SCHEMA;

use crate::balance::Strategy;
use crate::cli::Common;
use crate::endpoints::Endpoint;
use crate::finish::{EXIT_OK, EXIT_USAGE, SummaryFile};
use crate::session::{Outputs, Preparation, Program, block_on, measure};
use crate::setup::{self, Refusal};
use crate::workload::Workload;

mod artifacts;
pub mod asr;
mod calibrate;
pub mod imagegen;
pub mod llm;
mod text;
pub mod vlm;

/// What one load generator is, beyond what all of them are.
trait Tool: CommandFactory + FromArgMatches {
    /// Its requests.
    type Workload: Workload;

    /// Its name.
    const NAME: &'static str;

    /// The shared options.
    fn common(&self) -> &Common;

    /// The path of its API below `/v1`.
    fn path(&self) -> &'static str;

    /// Where its requests go.
    fn endpoints(&self) -> Result<Vec<Endpoint>, Refusal> {
        setup::endpoints(self.common(), self.path())
    }

    /// Where its results go.
    fn outputs(&self) -> Outputs {
        let common = self.common();
        let path = common.data_log.clone().unwrap_or_else(|| format!("{}.jsonl", Self::NAME).into());
        Outputs {
            schema: SUMMARY_SCHEMA,
            summary: SummaryFile { path, is_log: true },
            request_log: common.request_log.clone(),
        }
    }

    /// How its endpoints are picked.
    fn strategy(&self) -> Strategy {
        Strategy::Weighted
    }

    /// Further tries of requests that failed for a passing reason, and the wait before the first.
    fn retries(&self) -> (u32, Duration) {
        (0, Duration::ZERO)
    }

    /// Refuses options that do not go together.
    fn check(&self) -> Result<(), Refusal> {
        Ok(())
    }

    /// Makes its requests: reads prompts and manifests, fetches what is remote.
    fn prepare(
        &self,
        endpoints: &[Endpoint],
        model: &str,
    ) -> impl Future<Output = Result<Preparation<Self::Workload>, Refusal>>;
}

/// The whole program: parses `arguments`, runs, and returns the exit code.
fn run<T: Tool>(arguments: impl IntoIterator<Item = OsString>) -> i32 {
    let command = T::command();
    let (matches, tool) = match parse::<T>(&command, arguments) {
        Ok(parsed) => parsed,
        Err(code) => return code,
    };
    let endpoints = tool.endpoints();
    let redactor = setup::redactor(tool.common(), endpoints.as_deref().unwrap_or_default());
    block_on(tool.common(), &redactor, async |control| {
        tool.check()?;
        let program = Program {
            tool: T::NAME,
            common: tool.common(),
            command: &command,
            matches: &matches,
            endpoints: endpoints?,
            path: tool.path(),
            outputs: tool.outputs(),
            strategy: tool.strategy(),
            retries: tool.retries(),
            redactor: redactor.clone(),
        };
        measure(&program, control, async |model| tool.prepare(&program.endpoints, model).await).await
    })
}

/// Parses a command line; the error is the exit code, after what had to be said.
fn parse<T: Tool>(
    command: &Command,
    arguments: impl IntoIterator<Item = OsString>,
) -> Result<(ArgMatches, T), i32> {
    let arguments: Vec<OsString> = arguments.into_iter().collect();
    if let Some(shell) = completions_for(&arguments) {
        return Err(print_completions(command.clone(), &shell));
    }
    let said = |error: clap::Error| {
        let _ = error.print();
        if error.use_stderr() { EXIT_USAGE } else { EXIT_OK }
    };
    let matches = command.clone().try_get_matches_from(arguments).map_err(said)?;
    let tool = T::from_arg_matches(&matches).map_err(said)?;
    Ok((matches, tool))
}

/// The shell whose completions are asked for. Looked for by hand, because whoever asks for them gives nothing else,
/// not even what is required.
fn completions_for(arguments: &[OsString]) -> Option<String> {
    let at = arguments.iter().position(|argument| {
        argument.to_str().is_some_and(|text| text == "--completions" || text.starts_with("--completions="))
    })?;
    let value = match arguments[at].to_str()?.split_once('=') {
        Some((_, shell)) => shell.to_owned(),
        None => arguments.get(at + 1)?.to_str()?.to_owned(),
    };
    Some(value)
}

fn print_completions(mut command: Command, shell: &str) -> i32 {
    use clap::ValueEnum;
    let Ok(shell) = clap_complete::Shell::from_str(shell, true) else {
        let known: Vec<String> =
            clap_complete::Shell::value_variants().iter().map(ToString::to_string).collect();
        eprintln!("error: --completions {shell}: no such shell; known are {}", known.join(", "));
        return EXIT_USAGE;
    };
    let name = command.get_name().to_owned();
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut command, name, &mut script);
    let _ = io::Write::write_all(&mut io::stdout(), &script);
    EXIT_OK
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_tool_completes_its_options() {
        for mut command in
            [llm::Cli::command(), vlm::Cli::command(), asr::Cli::command(), imagegen::Cli::command()]
        {
            let name = command.get_name().to_owned();
            let mut script = Vec::new();
            clap_complete::generate(clap_complete::Shell::Bash, &mut command, name, &mut script);
            assert!(String::from_utf8_lossy(&script).contains("--max-error-rate"));
        }
    }

    #[test]
    fn every_command_line_is_consistent() {
        for command in
            [llm::Cli::command(), vlm::Cli::command(), asr::Cli::command(), imagegen::Cli::command()]
        {
            command.debug_assert();
        }
    }

    #[test]
    fn the_image_generators_data_log_is_described_as_what_it_is() {
        let help = imagegen::Cli::command().render_help().to_string();
        assert!(help.contains("a JSON line for each request to this file. Default"), "{help}");
        assert!(!help.contains("Append the summary"), "{help}");
    }

    /// Command lines of the manual: what is indented there and begins with a tool's name.
    fn lines_of_the_manual() -> Vec<Vec<OsString>> {
        let manual = include_str!("../../README.md");
        let lines = manual.lines().filter_map(|line| line.strip_prefix("    metrumbench-"));
        lines
            .map(|line| {
                let words = line.split_whitespace().take_while(|word| *word != ">");
                let mut words: Vec<OsString> = words.map(OsString::from).collect();
                words[0] = format!("metrumbench-{}", words[0].display()).into();
                words
            })
            .collect()
    }

    #[test]
    fn every_command_line_of_the_manual_is_understood() {
        let lines = lines_of_the_manual();
        assert!(lines.len() > 7, "{lines:?}");
        for line in lines.into_iter().filter(|line| completions_for(line).is_none()) {
            let command = match line[0].to_str().unwrap() {
                "metrumbench-llm" => llm::Cli::command(),
                "metrumbench-vlm" => vlm::Cli::command(),
                "metrumbench-asr" => asr::Cli::command(),
                "metrumbench-imagegen" => imagegen::Cli::command(),
                other => panic!("{other}"),
            };
            let parsed = command.try_get_matches_from(&line);
            assert!(parsed.is_ok(), "{line:?}: {}", parsed.unwrap_err());
        }
    }
}
