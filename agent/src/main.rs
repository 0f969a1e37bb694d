//! The Benchtrail agent.

use std::io::IsTerminal;
use std::process::ExitCode;

use agent::cli::{Cli, Command};
use agent::daemon::{self, LockError};
use agent::doctor;
use agent::enrol::{self, AlreadyEnrolled, Enrolment};
use agent::identity::IdentityError;
use agent::policy::Policy;
use agent::state_dir::StateDir;
use clap::Parser;
use tracing_subscriber::EnvFilter;

fn main() -> ExitCode {
    let cli = Cli::parse();
    let filter = match EnvFilter::try_new(&cli.log) {
        Ok(filter) => filter,
        Err(error) => {
            eprintln!("error: --log {:?} is not a filter: {error}", cli.log);
            return ExitCode::from(2);
        }
    };
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_ansi(std::io::stderr().is_terminal())
        .init();
    // Two threads are enough for what it does, and leave the machine to the benchmark.
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    let runtime = match runtime {
        Ok(runtime) => runtime,
        Err(error) => {
            eprintln!("error: no runtime: {error}");
            return ExitCode::FAILURE;
        }
    };
    match runtime.block_on(dispatch(cli)) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::from(exit_code(&error))
        }
    }
}

async fn dispatch(cli: Cli) -> anyhow::Result<ExitCode> {
    let root = cli.state_dir.unwrap_or_else(StateDir::default_root);
    // The policy and the command lines that are reported name absolute paths.
    let state = StateDir::new(std::path::absolute(root)?);
    let policy_path = std::path::absolute(cli.config.unwrap_or_else(|| state.policy()))?;
    match cli.command {
        Command::Enrol(args) => {
            let ask = Enrolment {
                url: args.url,
                token: args.token,
                bin_dirs: args.bin_dirs,
                models: args.models,
                networks: args.networks,
                force: args.force,
                replace_policy: args.replace_policy,
            };
            enrol::enrol(&state, &policy_path, ask).await?;
        }
        Command::Run => {
            // Who is not enrolled has no policy either; the first thing to do comes first.
            agent::identity::Identity::load(&state.identity())?;
            let policy = Policy::load(&policy_path)?;
            agent::host::raise_open_files();
            // On a task, not on this thread: the kernel ties children to the thread that starts them.
            tokio::spawn(daemon::run(state, policy)).await??;
        }
        Command::Doctor => {
            let healthy = doctor::doctor(&state, &policy_path).await;
            return Ok(if healthy { ExitCode::SUCCESS } else { ExitCode::FAILURE });
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn exit_code(error: &anyhow::Error) -> u8 {
    if error.is::<AlreadyEnrolled>() || matches!(error.downcast_ref(), Some(IdentityError::Missing { .. })) {
        return 3;
    }
    match error.downcast_ref() {
        Some(LockError::Taken { .. }) => 4,
        _ => 1,
    }
}
