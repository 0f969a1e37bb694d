//! The load generators, one file each.

use std::ffi::OsString;

use clap::{ArgMatches, Command};

use crate::finish::{EXIT_OK, EXIT_USAGE};

pub mod asr;
pub mod imagegen;
pub mod llm;
pub mod vlm;

/// Parses a command line; the error is the exit code, after what had to be said.
fn parse(command: &Command, arguments: impl IntoIterator<Item = OsString>) -> Result<ArgMatches, i32> {
    command.clone().try_get_matches_from(arguments).map_err(|error| usage_error(&error))
}

fn usage_error(error: &clap::Error) -> i32 {
    let _ = error.print();
    if error.use_stderr() { EXIT_USAGE } else { EXIT_OK }
}
