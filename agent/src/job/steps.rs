//! The steps of one attempt when nothing interrupts it: plan, serve, load, read the summary.

use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use events::job::JobRunning;
use events::tool_output::ToolInvocation;
use events::tools::FRAMEWORK_REFSERVER;
use nix::sys::signal::Signal;

use super::Place;
use super::attempt::{Execution, Outcome, Processes};
use super::plan::{Given, Plan, plan};
use super::progress::Follower;
use super::serve::{exit_of, read_rest_of};
use super::sources::{self, Sources};
use super::weights::{self, Weights};
use crate::logs::{Redactor, Secrets};
use crate::serving::{self, Process, version};
use crate::tools::{Measured, SummaryError, ToolFiles};

/// How long a tool may go on after its model server ended: it must still write its summary.
const AFTER_SERVER_EXIT: Duration = Duration::from_secs(30);
/// How long a tool has to write its summary after it was told to end.
const AFTER_INTERRUPT: Duration = Duration::from_secs(15);
/// How long `--version` may take.
const VERSION_TIMEOUT: Duration = Duration::from_secs(10);

impl Execution<'_> {
    /// What is done when nothing interrupts it.
    pub(super) async fn steps(&mut self, processes: &mut Processes) -> Outcome {
        match self.try_steps(processes).await {
            Ok(outcome) | Err(outcome) => outcome,
        }
    }

    async fn try_steps(&mut self, processes: &mut Processes) -> Result<Outcome, Outcome> {
        self.take_over(processes).await;
        if processes.served.is_none() && !self.job.commands.serve_argv.is_empty() {
            self.fetch_secrets().await;
        }
        let sources = self.sources().await?;
        let plan = self.plan(processes.served.as_ref().map(|served| served.port), sources.as_ref())?;
        let client = self.judge_addresses(&plan).await?;
        // Before anything is started: reading a large file would disturb what is measured.
        let before = self.weights().await;
        let ready = self.serve(&plan, processes, &client).await?;
        // A repository may only have come while the server was started.
        let weights = if before == Weights::default() { self.weights().await } else { before };
        let framework_version = self.framework_version(&plan, &client).await;
        let tool_version = self.tool_version(&plan).await?;
        let files = self.place.tool_files();
        plan.adapter
            .prepare(&files)
            .map_err(|e| Outcome::failed("agent_error", format!("the tool's files cannot be made: {e}")))?;
        self.write_endpoints(&plan).map_err(|e| {
            Outcome::failed("agent_error", format!("the endpoints' file cannot be made: {e}"))
        })?;
        let tool = Process::start(&plan.tool, &self.secrets, &self.logs.tool.1)?;
        self.remember(&tool);
        let tool = processes.tool.insert(tool);
        let argv = self.secrets.redact_all(&plan.tool.argv);
        self.say(format!("started the tool: {}", argv.join(" "))).await;
        self.reporter.running(JobRunning {
            attempt: self.job.attempt,
            tool_argv: argv.clone(),
            tool_version: tool_version.clone(),
            ready_after_s: ready.after_s,
            prompt_source_sha256: sources.map(|sources| sources.sha256),
            framework_version,
            served_models: self.secrets.redact_all(&ready.models),
            weights_revision: weights.revision,
            weights_sha256: weights.sha256,
        });

        let beside = processes.servers.iter_mut().chain(&mut processes.companions);
        let (status, server_exit) = self.load(&plan, tool, beside.collect()).await?;
        self.say(format!("the tool ended ({})", describe(Some(status)))).await;
        let invocation = ToolInvocation {
            tool_code: plan.adapter.code().into(),
            tool_version,
            argv,
            exit_code: status.code(),
            summary_sha256: String::new(),
        };
        let summary = self.report_summary(&plan, &files, invocation);
        self.queue_request_log(&plan);
        Ok(self.judge(status, server_exit, summary))
    }

    /// Makes the job's inputs ready, where they have a source.
    async fn sources(&self) -> Result<Option<Sources>, Outcome> {
        let Some(named) = &self.job.commands.prompt_source else { return Ok(None) };
        let folder = self.host.state.sources();
        let ready = sources::ready(&self.host.https, &self.host.policy, &folder, named).await;
        let ready = ready.map_err(|why| Outcome::failed("refused", why))?;
        self.say(format!("the inputs are {} with SHA-256 {}", named.code, ready.sha256)).await;
        Ok(Some(ready))
    }

    /// Which weights this host serves, where it serves any.
    async fn weights(&self) -> Weights {
        let commands = &self.job.commands;
        if commands.serve_argv.is_empty() || self.job.workload.framework_code == FRAMEWORK_REFSERVER {
            return Weights::default();
        }
        let code = &self.job.workload.model_code;
        let model = self.host.policy.models.get(code).or(commands.weights.as_ref()).unwrap_or(code);
        let asked = commands.engine_args.get("revision").and_then(|revision| revision.as_str());
        weights::weights(model, asked, &self.host.state.weights()).await
    }

    fn plan(&self, port: Option<u16>, sources: Option<&Sources>) -> Result<Plan, Outcome> {
        let port = match port {
            Some(port) => port,
            None => serving::free_ports(self.job.commands.replicas.max(1))
                .map_err(|e| Outcome::failed("agent_error", format!("no free port on this host: {e}")))?,
        };
        let given = Given {
            job: &self.job,
            policy: &self.host.policy,
            place: &self.place,
            port,
            gpus: u32::try_from(self.host.accelerators.gpus.len()).unwrap_or(0),
            marker: &self.record.marker,
            released: &self.released,
            sources,
        };
        Ok(plan(&given)?)
    }

    /// Writes the addresses down for a tool that spreads its load over several model servers.
    fn write_endpoints(&self, plan: &Plan) -> std::io::Result<()> {
        let endpoints: Vec<_> = plan
            .base_urls
            .iter()
            .enumerate()
            .map(|(index, url)| serde_json::json!({"url": url, "name": format!("replica-{index}")}))
            .collect();
        std::fs::write(self.place.endpoints_file(), serde_json::to_vec(&endpoints)?)
    }

    /// What the model server says that it is, where one of our own runs and its framework says so.
    async fn framework_version(&self, plan: &Plan, client: &reqwest::Client) -> Option<String> {
        let path = version::path_of(&self.job.workload.framework_code).filter(|_| !plan.serve.is_empty())?;
        let said = version::ask(client, &format!("{}{path}", plan.base_urls.first()?)).await?;
        self.say(format!("the model server says that it is {} {said}", self.job.workload.framework_code))
            .await;
        Some(said)
    }

    /// Asks the tool for its version: evidence beside its numbers.
    async fn tool_version(&self, plan: &Plan) -> Result<String, Outcome> {
        let program = plan.tool.argv.first().map(String::as_str).unwrap_or_default();
        let mut command = tokio::process::Command::new(program);
        command
            .args(plan.adapter.version_arguments())
            .env_clear()
            .envs(&plan.tool.env)
            .current_dir(&plan.tool.work_dir)
            .stdin(Stdio::null())
            .kill_on_drop(true);
        let failed = |why: String| Outcome::failed("spawn_failed", format!("{program} --version: {why}"));
        let output = tokio::time::timeout(VERSION_TIMEOUT, command.output())
            .await
            .map_err(|_| failed("no answer within 10 s".into()))?
            .map_err(|e| failed(e.to_string()))?;
        let text = String::from_utf8_lossy(&output.stdout);
        let line = text.lines().next().unwrap_or_default().trim();
        if !output.status.success() || line.is_empty() {
            return Err(failed(format!("{}, printed {line:?}", describe(Some(output.status)))));
        }
        Ok(self.secrets.redact(&line.chars().take(200).collect::<String>()))
    }

    /// Lets the tool run to its end, reporting its progress. Also gives the model server's exit, if that came first.
    async fn load(
        &self,
        plan: &Plan,
        tool: &mut Process,
        mut servers: Vec<&mut Process>,
    ) -> Result<(ExitStatus, Option<Outcome>), Outcome> {
        let mut seq = 0;
        let mut report = |line: &str| {
            if let Some(progress) = plan.adapter.progress(&self.secrets.redact(line), seq + 1) {
                seq += 1;
                self.reporter.progress(progress);
            }
        };
        let mut follower = Follower::new(self.place.tool_files().progress);
        let ended = tokio::select! {
            status = tool.wait() => Ok(status),
            status = exit_of(&mut servers) => Err(status),
            () = follower.follow(&mut report) => unreachable!("it follows for ever"),
        };
        let (status, server_exit) = match ended {
            Ok(status) => (status, None),
            Err(exit) => {
                read_rest_of(servers).await;
                let exited = self.server_exited(exit, "while the load ran");
                (end_tool(tool).await, Some(exited))
            }
        };
        follower.catch_up(&mut report);
        tool.read_rest().await;
        let status = status
            .map_err(|e| Outcome::failed("agent_error", format!("the tool's end is not known: {e}")))?;
        Ok((status, server_exit))
    }

    /// Reports the summary the tool wrote, whatever else went wrong: it is what was measured.
    fn report_summary(
        &self,
        plan: &Plan,
        files: &ToolFiles,
        mut invocation: ToolInvocation,
    ) -> Result<(), SummaryError> {
        let summary = plan.adapter.summary(files)?;
        invocation.summary_sha256 = summary.sha256;
        let clean = self.secrets.redact(&summary.line);
        let gpus = u32::try_from(self.host.accelerators.gpus.len()).unwrap_or(0);
        let measured = Measured { job: &self.job, gpus };
        let body = plan.adapter.metrics(&measured, invocation, &clean)?;
        self.reporter.output(body);
        // The blob of an unredacted line has the very hash that the event names.
        let path = self.place.log_dir.join("summary.json");
        match std::fs::write(&path, &clean) {
            Ok(()) => self.host.upload(&self.reporter, path, "tool_summary", "application/json"),
            Err(error) => tracing::warn!(%error, "the summary line could not be kept as a file"),
        }
        Ok(())
    }

    fn judge(
        &self,
        status: ExitStatus,
        server_exit: Option<Outcome>,
        summary: Result<(), SummaryError>,
    ) -> Outcome {
        if let Some(exited) = server_exit {
            return exited;
        }
        let tail = self.logs.tool.1.tail();
        match (status.success(), summary) {
            (true, Ok(())) => Outcome::Completed,
            (true, Err(error)) => Outcome::failed("no_summary", error),
            (false, Ok(())) => Outcome::failed(
                "tool_failed",
                format!(
                    "the tool ended with {} although it wrote a summary, which is kept. Its last lines:\n{tail}",
                    describe(Some(status))
                ),
            ),
            (false, Err(error)) => Outcome::failed(
                "tool_failed",
                format!("the tool ended with {}; {error}. Its last lines:\n{tail}", describe(Some(status))),
            ),
        }
    }

    fn queue_request_log(&self, plan: &Plan) {
        let Some(path) = plan.adapter.request_log(&plan.tool.argv) else { return };
        if path.metadata().is_ok_and(|meta| meta.len() > 0) {
            match redacted_copy(&path, &self.place, &self.secrets) {
                Ok(copy) => self.host.upload(&self.reporter, copy, "request_log", "application/x-ndjson"),
                Err(error) => tracing::error!(%error, "the request log cannot be redacted and stays here"),
            }
        }
    }
}

/// Waits for a tool whose server is gone, and in the end tells it to stop: it writes its summary then.
async fn end_tool(tool: &mut Process) -> std::io::Result<ExitStatus> {
    if let Ok(status) = tokio::time::timeout(AFTER_SERVER_EXIT, tool.wait()).await {
        return status;
    }
    tool.signal(Signal::SIGINT);
    match tokio::time::timeout(AFTER_INTERRUPT, tool.wait()).await {
        Ok(status) => status,
        Err(_) => {
            tool.signal(Signal::SIGKILL);
            tool.wait().await
        }
    }
}

/// An exit status in words.
pub(super) fn describe(status: Option<ExitStatus>) -> String {
    let Some(status) = status else { return "no exit status".into() };
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("exit code {code}"),
        (None, Some(number)) => match Signal::try_from(number) {
            Ok(signal) => format!("killed by {signal}"),
            Err(_) => format!("killed by signal {number}"),
        },
        (None, None) => "no exit status".into(),
    }
}

/// The file itself, or a copy without secrets where this host has any.
fn redacted_copy(path: &Path, place: &Place, secrets: &Secrets) -> std::io::Result<PathBuf> {
    use std::io::{Read, Write};
    if secrets.is_empty() {
        return Ok(path.to_owned());
    }
    let copy = place.log_dir.join("requests.redacted.jsonl");
    let (mut input, mut output) = (std::fs::File::open(path)?, std::fs::File::create(&copy)?);
    let mut redactor = Redactor::new(secrets.clone());
    let mut chunk = vec![0; 64 << 10];
    loop {
        let read = input.read(&mut chunk)?;
        if read == 0 {
            break;
        }
        output.write_all(&redactor.push(&chunk[..read]))?;
    }
    output.write_all(&redactor.finish())?;
    Ok(copy)
}
