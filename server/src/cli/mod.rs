//! The command line: `benchtrail <command>`.

mod connect;
mod locate;
mod ops;
mod people;
mod quota;
mod serve;

pub use ops::verify_json;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, Parser, Subcommand};

/// The organisation of the first account.
const DEFAULT_ORG: &str = "main";
/// The e-mail of the first account.
const DEFAULT_ADMIN: &str = "admin@benchtrail.local";

/// The control plane of Benchtrail: the event log, its views, the API, the live stream and the page.
#[derive(Debug, Parser)]
#[command(name = "benchtrail", version, max_term_width = 100)]
#[command(after_help = "\
Start here:
  benchtrail up                       everything on this machine, data in ./var
  benchtrail token enrol --config cpu --hostname $(hostname)
                                      a one-time token for `benchtrail-agent enrol`
  benchtrail verify                   is the log what it was?

Exit codes: 0 done, 1 failed, 2 wrong usage, 3 (verify) the log or the proof does not fit, 4 (verify --proof) the events
hold but do not give the figure by themselves.
Environment: DATABASE_URL and NATS_URL name services of your own; RUST_LOG sets the log's detail (default: info).")]
pub struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Start everything on this machine: a private PostgreSQL and NATS, the control plane and the page.
    Up(serve::Up),
    /// Start the control plane on a PostgreSQL and NATS of your own (DATABASE_URL, NATS_URL).
    Serve(serve::Serve),
    /// Create or upgrade the tables. Safe to repeat; `up` does it by itself.
    Migrate(DirArgs),
    /// Put models, frameworks, server configurations and tools into the catalogue. Safe to repeat.
    Seed(DirArgs),
    /// Make every view again from the log, with no downtime, and prove that the rows are the same.
    Rebuild(ops::Rebuild),
    /// Walk the log's hash chain and name the first position that does not fit.
    Verify(ops::Verify),
    /// Copy every full partition of the log into compressed files that read and verify without the database.
    Archive(ops::Archive),
    /// Make tokens: for a person's scripts, or for an agent's enrolment.
    #[command(subcommand)]
    Token(people::Token),
    /// Make accounts.
    #[command(subcommand)]
    User(people::User),
    /// Limit what an organisation may have, and show what it uses.
    Quota(quota::SetQuota),
}

/// Where the data is.
#[derive(Debug, Clone, Args)]
pub struct DirArgs {
    /// The folder for data, keys and logs.
    #[arg(
        long,
        visible_alias = "var",
        default_value = "./var",
        env = "BENCHTRAIL_DIR",
        value_name = "FOLDER"
    )]
    pub dir: PathBuf,
}

/// Reads the command line, does what it says, and gives the exit code.
pub async fn main() -> ExitCode {
    let cli = Cli::parse();
    init_tracing();
    let done = match cli.command {
        Command::Up(up) => up.run().await,
        Command::Serve(serve) => serve.run().await,
        Command::Migrate(dir) => ops::migrate(&dir).await,
        Command::Seed(dir) => ops::seed(&dir).await,
        Command::Rebuild(rebuild) => rebuild.run().await,
        Command::Verify(verify) => verify.run().await,
        Command::Archive(archive) => archive.run().await,
        Command::Token(token) => token.run().await,
        Command::User(user) => user.run().await,
        Command::Quota(quota) => quota.run().await,
    };
    match done {
        Ok(code) => code,
        Err(error) => {
            eprintln!("benchtrail: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn init_tracing() {
    use std::io::IsTerminal as _;
    let filter = tracing_subscriber::EnvFilter::try_from_default_env()
        .unwrap_or_else(|_| tracing_subscriber::EnvFilter::new("info,sqlx=warn,async_nats=warn"));
    let builder = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr);
    if std::env::var("BENCHTRAIL_LOG_FORMAT").is_ok_and(|format| format == "json") {
        builder.json().init();
    } else {
        builder.with_ansi(std::io::stderr().is_terminal()).with_target(false).init();
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::Cli;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn every_command_and_argument_says_what_it_is_for() {
        fn check(command: &clap::Command) {
            assert!(command.get_about().is_some(), "{} has no help", command.get_name());
            for argument in command.get_arguments() {
                let named = argument.get_id().as_str();
                assert!(argument.get_help().is_some(), "{}: {named} has no help", command.get_name());
            }
            command.get_subcommands().for_each(check);
        }
        let mut command = Cli::command();
        command.build();
        command.get_subcommands().filter(|c| c.get_name() != "help").for_each(check);
    }
}
