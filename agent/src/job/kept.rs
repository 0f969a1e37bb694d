//! A model server that a job left running for the next job of its run, where the workload asks to keep it.

use std::collections::BTreeMap;

use events::job::CompanionCommand;
use events::keys::RunKey;
use events::report::AssignedJob;

use super::Record;
use crate::serving::Process;

/// What a model server was started with: whether it fits another job follows from this.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Served {
    run: RunKey,
    signed_argv: Vec<String>,
    env: BTreeMap<String, String>,
    replicas: u32,
    gpus_per_replica: Option<u32>,
    companions: Vec<CompanionCommand>,
    /// The job it was started for, as its stream key.
    pub(super) started_for: String,
    /// The final command line of the first replica, without secrets.
    pub(super) argv: Vec<String>,
    /// Those of the further replicas and of what runs beside them.
    pub(super) further_argv: Vec<Vec<String>>,
    /// How many of the processes are model servers; the rest runs beside them.
    pub(super) servers: usize,
    /// The port the first replica listens on.
    pub(super) port: u16,
}

impl Served {
    /// What is started for a job.
    pub(super) fn by(
        job: &AssignedJob,
        argv: Vec<String>,
        further_argv: Vec<Vec<String>>,
        servers: usize,
        port: u16,
    ) -> Self {
        Self {
            run: job.job.run_key(),
            signed_argv: job.commands.serve_argv.clone(),
            env: job.commands.serve_env.clone(),
            replicas: job.commands.replicas,
            gpus_per_replica: job.commands.gpus_per_replica,
            companions: job.commands.companions.clone(),
            started_for: job.job.stream().to_string(),
            argv,
            further_argv,
            servers,
            port,
        }
    }

    /// Whether it is what this job asks for: kept, of the same run, and by the very same signed command.
    fn fits(&self, job: &AssignedJob) -> bool {
        job.workload.keep_server
            && job.job.run_key() == self.run
            && job.commands.serve_argv == self.signed_argv
            && job.commands.serve_env == self.env
            && job.commands.replicas == self.replicas
            && job.commands.gpus_per_replica == self.gpus_per_replica
            && job.commands.companions == self.companions
    }
}

/// A model server that waits for the next job.
pub struct Kept {
    pub(super) served: Served,
    /// The model servers, and after them what runs beside them.
    pub(super) processes: Vec<Process>,
    /// Of the job before: its marker is in the server's environment.
    pub(super) record: Record,
}

impl Kept {
    /// Whether it can serve this job.
    pub(super) fn serves(&mut self, job: &AssignedJob) -> bool {
        self.served.fits(job) && !self.processes.iter_mut().any(Process::has_ended)
    }
}
