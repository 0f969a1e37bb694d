//! Serving: what a job's load is sent to, taken over, started or found, and awaited.

use std::process::ExitStatus;
use std::time::Duration;

use events::job::JobServing;
use events::report::SecretsRequest;
use events::workload::addresses_in;

use super::Record;
use super::attempt::{Execution, Outcome, Processes, stop_all};
use super::kept::Served;
use super::plan::Plan;
use super::steps::describe;
use crate::control::ControlError;
use crate::network;
use crate::serving::{self, NotReady, Process};

/// What to do about a server that was started and did not become ready in time.
const SERVER_ADVICE: &str = "Raise the readiness time limit if the model loads slowly.";
/// What to do about an endpoint that runs already, and does not answer as it should.
const ENDPOINT_ADVICE: &str =
    "Check that the endpoint runs, that its address is right, and that this host may reach it.";

impl Execution<'_> {
    /// Takes the model server over that the job before left running, where it is what this one asks for. Another one
    /// is stopped: it would disturb what is measured.
    pub(super) async fn take_over(&mut self, processes: &mut Processes) {
        let kept = self.host.kept.lock().await.take();
        let Some(mut kept) = kept else { return };
        if !kept.serves(&self.job) {
            stop_all(kept.processes, Duration::from_secs(self.host.policy.stop_grace_s)).await;
            Record::remove(&self.host.state.kept_server());
            self.say(format!(
                "the model server kept from {} was stopped: this job needs another",
                kept.served.started_for
            ))
            .await;
            return;
        }
        // A successor must find them by the marker in their environment.
        self.record.marker = kept.record.marker;
        for process in &kept.processes {
            process.log_to(Some(&self.logs.framework.1));
            self.remember(process);
        }
        Record::remove(&self.host.state.kept_server());
        processes.companions = kept.processes.split_off(kept.served.servers.min(kept.processes.len()));
        processes.servers = kept.processes;
        processes.served = Some(kept.served);
    }

    /// Asks for what the model server needs and must not stand in its command. Without an answer it is started all the
    /// same: a gated model then says itself that it wants a token.
    pub(super) async fn fetch_secrets(&mut self) {
        let request = SecretsRequest { job: self.job.job.clone(), attempt: self.job.attempt };
        match self.host.https.secrets(&request).await {
            Ok(reply) => {
                self.secrets = self.host.secrets.and(reply.env.values().cloned());
                self.released = reply.env;
            }
            // A control plane from before there were secrets.
            Err(ControlError::Refused { status: 404 | 405, .. }) => {}
            Err(error) => {
                self.say(format!("the job's secrets cannot be had, going on without: {error}")).await
            }
        }
    }

    /// Judges every address that the job names by this host's policy, before anything is started. The answer is the
    /// client that asks whether the endpoint is ready: where it is a foreign one, pinned to what was judged.
    pub(super) async fn judge_addresses(&self, plan: &Plan) -> Result<reqwest::Client, Outcome> {
        let networks = &self.host.policy.allowed_networks;
        let refused = |why: String| Outcome::failed("refused", format!("the job names {why}"));
        let in_force = addresses_in("engine argument", &self.job.commands.engine_args);
        for (field, url) in self.job.workload.addresses().into_iter().chain(in_force) {
            network::judge(url, networks).await.map_err(|why| refused(format!("{field}: {why}")))?;
        }
        // What will be asked, whatever the workload says.
        let Some(url) = plan.base_urls.first().filter(|_| plan.serve.is_empty()) else {
            return Ok(self.host.http.clone());
        };
        let judged =
            network::judge(url, networks).await.map_err(|why| refused(format!("its endpoint: {why}")))?;
        judged.client().map_err(|error| Outcome::failed("agent_error", error))
    }

    /// Starts the model servers, unless there is none to start or they were kept, and waits until all of them answer.
    pub(super) async fn serve(
        &mut self,
        plan: &Plan,
        processes: &mut Processes,
        client: &reqwest::Client,
    ) -> Result<serving::Ready, Outcome> {
        let mut serving = JobServing {
            attempt: self.job.attempt,
            serve_argv: Vec::new(),
            endpoint_urls: plan.base_urls.clone(),
            kept_from: None,
            further_argv: Vec::new(),
            gpu_sets: plan.gpu_sets.clone(),
        };
        match (plan.serve.is_empty(), &processes.served) {
            (false, Some(served)) => {
                serving.serve_argv.clone_from(&served.argv);
                serving.further_argv.clone_from(&served.further_argv);
                serving.kept_from = Some(served.started_for.clone());
                self.say(format!(
                    "using the model server kept from {}: {}",
                    served.started_for,
                    served.argv.join(" ")
                ))
                .await;
            }
            (false, None) => {
                self.start_servers(plan, processes, &mut serving, client).await?;
                self.fetch_models(plan, processes, client).await?;
            }
            (true, _) => self.say(format!("using the endpoint {}", plan.base_urls.join(", "))).await,
        }
        self.reporter.serving(serving);

        let advice = if plan.serve.is_empty() { ENDPOINT_ADVICE } else { SERVER_ADVICE };
        let looks = plan
            .endpoints
            .iter()
            .map(|endpoint| serving::wait_until_ready(client, endpoint, plan.ready_within));
        let ready = futures::future::try_join_all(looks);
        let mut started = processes.all();
        let ready = tokio::select! {
            ready = ready => ready.map_err(|e| self.not_ready(&e, advice))?,
            status = exit_of(&mut started) => {
                read_rest_of(started).await;
                return Err(self.server_exited(status, "before it was ready"));
            }
        };
        // Ready is when the last of them is.
        let after_s = ready.iter().map(|ready| ready.after_s).fold(0.0, f64::max);
        let models = ready.into_iter().next().map(|ready| ready.models).unwrap_or_default();
        self.say(format!("the model server is ready after {after_s:.1} s and serves {}", models.join(", ")))
            .await;
        Ok(serving::Ready { after_s, models })
    }

    /// Starts what runs beside the model servers, then the model servers.
    pub(super) async fn start_servers(
        &mut self,
        plan: &Plan,
        processes: &mut Processes,
        serving: &mut JobServing,
        client: &reqwest::Client,
    ) -> Result<(), Outcome> {
        for (spec, ready) in &plan.companions {
            let companion = Process::start(spec, &self.secrets, &self.logs.framework.1)?;
            self.remember(&companion);
            processes.companions.push(companion);
            let argv = self.secrets.redact_all(&spec.argv);
            self.say(format!("started beside the model server: {}", argv.join(" "))).await;
            serving.further_argv.push(argv);
            let Some((url, within)) = ready else { continue };
            let mut started: Vec<&mut Process> = processes.companions.iter_mut().collect();
            tokio::select! {
                ready = serving::wait_until_answered(client, url, *within) => ready.map_err(|error| {
                    let last = format!("what runs beside it is not: {}", error.last);
                    self.not_ready(&NotReady { last, ..error }, SERVER_ADVICE)
                })?,
                status = exit_of(&mut started) => {
                    read_rest_of(started).await;
                    return Err(self.server_exited(status, "beside which it runs, before it was started"));
                }
            }
        }
        for (index, spec) in plan.serve.iter().enumerate() {
            let server = Process::start(spec, &self.secrets, &self.logs.framework.1)?;
            self.remember(&server);
            processes.servers.push(server);
            let argv = self.secrets.redact_all(&spec.argv);
            let gpus = plan.gpu_sets.get(index).map(|gpus| format!(" on GPUs {gpus}")).unwrap_or_default();
            self.say(format!("started the model server{gpus}: {}", argv.join(" "))).await;
            if index == 0 { serving.serve_argv = argv } else { serving.further_argv.push(argv) }
        }
        processes.served = Some(Served::by(
            &self.job,
            serving.serve_argv.clone(),
            serving.further_argv.clone(),
            processes.servers.len(),
            plan.port,
        ));
        Ok(())
    }

    /// Fetches the model into each server that does not list it, once that answers.
    async fn fetch_models(
        &mut self,
        plan: &Plan,
        processes: &mut Processes,
        client: &reqwest::Client,
    ) -> Result<(), Outcome> {
        for (spec, endpoint) in plan.fetch.iter().zip(&plan.endpoints) {
            let mut started: Vec<&mut Process> = processes.all();
            let models = tokio::select! {
                models = serving::wait_until_up(client, endpoint, plan.ready_within) => {
                    models.map_err(|error| self.not_ready(&error, SERVER_ADVICE))?
                }
                status = exit_of(&mut started) => {
                    read_rest_of(started).await;
                    return Err(self.server_exited(status, "before it was ready"));
                }
            };
            // A name without a tag is that of the newest.
            let named = |model: &String, wanted: &String| {
                model == wanted || model.strip_suffix(":latest") == Some(wanted.as_str())
            };
            if endpoint.model.as_ref().is_some_and(|wanted| models.iter().any(|model| named(model, wanted))) {
                continue;
            }
            let argv = self.secrets.redact_all(&spec.argv);
            self.say(format!(
                "the model server does not have the model yet, fetching it: {}",
                argv.join(" ")
            ))
            .await;
            let mut fetch = Process::start(spec, &self.secrets, &self.logs.framework.1)?;
            self.remember(&fetch);
            let ended = tokio::time::timeout(plan.ready_within, fetch.wait()).await;
            let done = matches!(&ended, Ok(Ok(status)) if status.success());
            let status = fetch.stop(Duration::from_secs(self.host.policy.stop_grace_s)).await;
            if !done {
                let tail = self.logs.framework.1.tail();
                let message = format!(
                    "the model could not be fetched ({}): fetch it on the host beforehand, or raise the readiness time limit. Its last lines:\n{tail}",
                    describe(status)
                );
                return Err(Outcome::failed("server_not_ready", self.secrets.redact(&message)));
            }
        }
        Ok(())
    }

    fn not_ready(&self, error: &NotReady, advice: &str) -> Outcome {
        let tail = self.logs.framework.1.tail();
        let shown = if tail.is_empty() { String::new() } else { format!("\nIts last lines:\n{tail}") };
        let message = format!("{error}. {advice}{shown}");
        Outcome::failed("server_not_ready", self.secrets.redact(&message))
    }

    pub(super) fn server_exited(&self, status: Option<ExitStatus>, when: &str) -> Outcome {
        let tail = self.logs.framework.1.tail();
        Outcome::failed(
            "server_exited",
            format!("the model server ended {when} ({}). Its last lines:\n{tail}", describe(status)),
        )
    }
}

/// Waits until one of the processes ends; for ever when there is none.
pub(super) async fn exit_of(processes: &mut [&mut Process]) -> Option<ExitStatus> {
    if processes.is_empty() {
        return std::future::pending().await;
    }
    let waits = processes.iter_mut().map(|process| Box::pin(process.wait()));
    futures::future::select_all(waits).await.0.ok()
}

/// Reads what the ended among processes said last, so that an error message can show it.
pub(super) async fn read_rest_of(processes: Vec<&mut Process>) {
    for process in processes {
        if process.has_ended() {
            process.read_rest().await;
        }
    }
}
