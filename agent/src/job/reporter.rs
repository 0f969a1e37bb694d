//! Puts what happens in one attempt into the spool.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use events::job::{JobCancelled, JobCompleted, JobFailed, JobRunning, JobServing};
use events::keys::JobKey;
use events::report::{HeldAttempt, ReportBody};
use events::telemetry::TelemetrySampled;
use events::tool_output::{LogLines, ProgressReported};

use crate::clock;
use crate::spool::{AttemptId, Spool};
use crate::telemetry::Window;

/// Reports one attempt. Cheap to clone; every clone counts together.
#[derive(Clone)]
pub struct Reporter {
    spool: Arc<Spool>,
    job: JobKey,
    attempt: u32,
    telemetry_seq: Arc<AtomicU64>,
    telemetry_samples: Arc<AtomicU64>,
}

impl Reporter {
    /// A reporter for a new attempt.
    pub fn new(spool: Arc<Spool>, job: JobKey, attempt: u32) -> Self {
        Self { spool, job, attempt, telemetry_seq: Arc::default(), telemetry_samples: Arc::default() }
    }

    /// Whose attempt it is.
    pub fn held(&self) -> HeldAttempt {
        HeldAttempt { job: self.job.clone(), attempt: self.attempt }
    }

    /// The same, as the spool's bookkeeping names it.
    pub fn id(&self) -> AttemptId {
        AttemptId { job: self.job.clone(), attempt: self.attempt }
    }

    /// The job.
    pub fn job(&self) -> &JobKey {
        &self.job
    }

    /// The attempt's number.
    pub fn attempt(&self) -> u32 {
        self.attempt
    }

    /// The spool that everything goes into.
    pub fn spool(&self) -> &Arc<Spool> {
        &self.spool
    }

    /// Telemetry samples so far.
    pub fn telemetry_samples(&self) -> u64 {
        self.telemetry_samples.load(Ordering::SeqCst)
    }

    /// Samples were taken.
    pub fn telemetry(&self, window: Window) {
        let at = window.samples.last().map_or_else(clock::now, |sample| sample.at);
        self.telemetry_samples.fetch_add(window.samples.len() as u64, Ordering::SeqCst);
        let seq = self.telemetry_seq.fetch_add(1, Ordering::SeqCst) + 1;
        let telemetry = TelemetrySampled { seq, interval_ms: window.interval_ms, samples: window.samples };
        let body = ReportBody::Telemetry { job: self.job.clone(), attempt: self.attempt, telemetry };
        self.spool.append(at, body);
    }

    /// The tool said how far it is.
    pub fn progress(&self, progress: ProgressReported) {
        self.append(ReportBody::Progress { job: self.job.clone(), attempt: self.attempt, progress });
    }

    /// Lines of a log.
    pub fn log(&self, log: LogLines) {
        self.append(ReportBody::Log { job: self.job.clone(), attempt: self.attempt, log });
    }

    /// The model server was started, was kept from another job, or will be asked where it runs.
    pub fn serving(&self, serving: JobServing) {
        self.append(ReportBody::Serving { job: self.job.clone(), serving });
    }

    /// The tool was started.
    pub fn running(&self, running: JobRunning) {
        self.append(ReportBody::Running { job: self.job.clone(), running });
    }

    /// The tool's summary, as its adapter made it.
    pub fn output(&self, body: ReportBody) {
        self.append(body);
    }

    /// The attempt ended with a result.
    pub fn completed(&self, log_lines: u64) {
        let completed =
            JobCompleted { attempt: self.attempt, telemetry_samples: self.telemetry_samples(), log_lines };
        self.append(ReportBody::Completed { job: self.job.clone(), completed });
    }

    /// The attempt ended without one.
    pub fn failed(&self, code: &str, message: String, telemetry_samples: u64, log_lines: u64) {
        let failed =
            JobFailed { attempt: self.attempt, code: code.into(), message, telemetry_samples, log_lines };
        self.append(ReportBody::Failed { job: self.job.clone(), failed });
    }

    /// The attempt was stopped as asked.
    pub fn cancelled(&self) {
        let cancelled = JobCancelled { attempt: self.attempt };
        self.append(ReportBody::Cancelled { job: self.job.clone(), cancelled });
    }

    fn append(&self, body: ReportBody) {
        self.spool.append(clock::now(), body);
    }
}
