//! Which streams to look at: open runs and their jobs, workloads' scenarios, servers, and the catalogue's names.
//!
//! Folded in memory from the log, by every process for itself; never a decision's ground, only its map. A command that
//! needs the map complete waits until it holds the log's head (`WorkIndex::catch_up`). Memory is bounded by what is
//! open: a finished run leaves the map with its jobs.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Arc, RwLock};
use std::time::Duration;

use events::Event;
use events::envelope::Recorded;
use events::job::JobPhase;
use events::keys::{JobKey, PLATFORM_ORG, RunKey, ScenarioKey, ServerKey, StreamKey, WorkloadKey};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::{CommandError, load};
use crate::domain::quota::Usage;
use crate::domain::{Aggregate, Job, LoadError, Quota, Run, Server, decode};
use crate::log::{Log, LogError};

/// Events read at a time while the map follows the log.
const PAGE: i64 = 2000;
/// Positions looked at in one step until the map has reached the head for the first time.
const SPAN: i64 = 5000;
/// Nearly all of the log, and nothing in the map follows from it: left out on the way to the head.
const UNREAD: &[&str] = &["telemetry.sampled", "progress.reported", "log.lines"];
/// How long a command waits for the map to hold the head.
const PATIENCE: Duration = Duration::from_secs(10);

/// The map. Cheap to clone.
#[derive(Debug, Clone)]
pub struct WorkIndex {
    log: Log,
    index: Arc<RwLock<Index>>,
    position: watch::Receiver<i64>,
}

/// A job of an open run.
#[derive(Debug, Clone)]
pub struct OpenJob {
    /// The job, as far as the map has followed the log.
    pub job: Job,
    /// The position of the event that put it into the queue last.
    pub queued_position: i64,
}

/// What the map holds.
#[derive(Debug, Default)]
pub struct Index {
    scenarios: HashMap<WorkloadKey, Vec<String>>,
    last_run: HashMap<WorkloadKey, u32>,
    runs: BTreeMap<RunKey, Run>,
    jobs: BTreeMap<JobKey, OpenJob>,
    servers: BTreeMap<ServerKey, Server>,
    /// The catalogue's entries: kind, organisation, code. A framework's code stands once a version.
    catalogue: BTreeSet<(String, String, String)>,
    frameworks: BTreeMap<(String, String), BTreeSet<String>>,
    /// What quotas are about, by organisation.
    quotas: super::quota_index::QuotaIndex,
}

impl WorkIndex {
    /// Starts to follow the log, until `stop` is cancelled.
    pub fn start(log: Log, stop: CancellationToken) -> Self {
        let index = Arc::new(RwLock::new(Index::default()));
        let (reached, position) = watch::channel(0);
        tokio::spawn(follow(log.clone(), index.clone(), reached, stop));
        Self { log, index, position }
    }

    /// Looks at the map.
    pub fn read<T>(&self, look: impl FnOnce(&Index) -> T) -> T {
        look(&self.index.read().unwrap_or_else(std::sync::PoisonError::into_inner))
    }

    /// Waits until the map holds everything that was in the log when this was called, whoever appended it.
    ///
    /// # Errors
    /// The log does not answer, or the map did not come so far in time.
    pub async fn catch_up(&self) -> Result<(), CommandError> {
        let head = self.log.head().await?.position;
        let mut position = self.position.clone();
        match tokio::time::timeout(PATIENCE, position.wait_for(|reached| *reached >= head)).await {
            Ok(Ok(_)) => Ok(()),
            Ok(Err(_)) => Err(CommandError::unavailable(&"the control plane is stopping")),
            Err(_) => Err(CommandError::unavailable(&"the control plane has not read the whole log yet")),
        }
    }
}

/// What lies after a position: the events, the last position looked at, and whether there is more.
async fn page_after(
    log: &Log,
    after: i64,
    reached_head: bool,
) -> Result<(Vec<Recorded>, i64, bool), LogError> {
    if reached_head {
        let events = log.read_all(after, PAGE).await?;
        let last = events.last().map_or(after, |event| event.position);
        let more = events.len() as i64 == PAGE;
        return Ok((events, last, more));
    }
    let stretch = log.read_without(after, SPAN, UNREAD).await?;
    Ok((stretch.events, stretch.last, stretch.last < stretch.head))
}

async fn follow(log: Log, index: Arc<RwLock<Index>>, reached: watch::Sender<i64>, stop: CancellationToken) {
    let mut head = log.watch();
    let (mut after, mut reached_head) = (0, false);
    loop {
        head.mark_unchanged();
        let page = tokio::select! {
            () = stop.cancelled() => return,
            page = page_after(&log, after, reached_head) => page,
        };
        let (page, last, more) = match page {
            Ok(page) => page,
            Err(error) => {
                tracing::warn!(%error, "the work index cannot read the log; it will try again");
                tokio::select! {
                    () = stop.cancelled() => return,
                    () = tokio::time::sleep(Duration::from_secs(1)) => continue,
                }
            }
        };
        let reopened = match reopened_in(&log, &page).await {
            Ok(reopened) => reopened,
            Err(error) => {
                tracing::warn!(%error, "the work index cannot read a run that goes on; it will try again");
                tokio::select! {
                    () = stop.cancelled() => return,
                    () = tokio::time::sleep(Duration::from_secs(1)) => continue,
                }
            }
        };
        if !page.is_empty() {
            let mut index = index.write().unwrap_or_else(std::sync::PoisonError::into_inner);
            for recorded in &page {
                if let Some(reopened) = reopened.get(&recorded.position) {
                    index.restore(reopened);
                }
                if let Err(error) = index.apply(recorded) {
                    tracing::error!(%error, "the work index skips an event it cannot read");
                }
            }
        }
        after = last;
        reached.send_replace(after);
        if !more {
            reached_head = true;
            tokio::select! {
                () = stop.cancelled() => return,
                changed = head.changed() => if changed.is_err() { return },
            }
        }
    }
}

/// A finished run that goes on, with its jobs, as they stood before the event that says so.
#[derive(Debug, Clone)]
struct Reopened {
    key: RunKey,
    run: Run,
    jobs: Vec<(JobKey, OpenJob)>,
}

/// The runs that this stretch of the log reopens, by the position that does: the map has let go of them.
async fn reopened_in(log: &Log, page: &[Recorded]) -> Result<HashMap<i64, Reopened>, CommandError> {
    let mut found = HashMap::new();
    for recorded in page.iter().filter(|recorded| recorded.event_type == "run.reopened") {
        let Ok(key) = RunKey::from_stream(&recorded.stream) else { continue };
        let before = async |stream: &StreamKey| -> Result<Vec<Recorded>, CommandError> {
            let mut events = load::stream(log, stream).await?;
            events.retain(|event| event.position < recorded.position);
            Ok(events)
        };
        let Some(run) = Run::load(&before(&recorded.stream).await?)? else { continue };
        let mut jobs = Vec::new();
        for code in &run.scenario_codes {
            let job_key = key.job(code);
            let events = before(&job_key.stream()).await?;
            let Some(job) = Job::load(&events)? else { continue };
            let queued = events.iter().rev().find(|event| event.event_type == "job.queued");
            let queued_position = queued.map_or(0, |event| event.position);
            jobs.push((job_key, OpenJob { job, queued_position }));
        }
        found.insert(recorded.position, Reopened { key, run, jobs });
    }
    Ok(found)
}

impl Index {
    /// Takes a finished run back, where it has let go of it.
    fn restore(&mut self, reopened: &Reopened) {
        self.runs.entry(reopened.key.clone()).or_insert_with(|| reopened.run.clone());
        for (key, job) in &reopened.jobs {
            self.jobs.entry(key.clone()).or_insert_with(|| job.clone());
        }
    }

    /// Follows one event.
    ///
    /// # Errors
    /// The event cannot be read.
    pub fn apply(&mut self, recorded: &Recorded) -> Result<(), LoadError> {
        // Telemetry, progress and logs are nearly all of the log, and nothing here follows from them.
        match recorded.stream.kind() {
            "project" | "blob" | "quota" => self.quotas.apply(recorded)?,
            "scenario" => {
                if let Ok(key) = ScenarioKey::from_stream(&recorded.stream) {
                    self.scenarios.entry(key.workload_key()).or_default().push(key.scenario);
                }
            }
            "run" => {
                if let Ok(key) = RunKey::from_stream(&recorded.stream) {
                    self.apply_run(key, &decode(recorded)?);
                }
            }
            "job" => {
                if let Ok(key) = JobKey::from_stream(&recorded.stream) {
                    self.apply_job(key, recorded)?;
                }
            }
            "server" => {
                if let Ok(key) = ServerKey::from_stream(&recorded.stream) {
                    self.apply_server(key, &decode(recorded)?);
                }
            }
            "model" | "framework" | "tool" | "config" | "accelerator" | "engine_args_set" => {
                self.apply_catalogue(&recorded.stream);
            }
            _ => {}
        }
        Ok(())
    }

    fn apply_run(&mut self, key: RunKey, event: &Event) {
        match event {
            Event::RunCreated(created) => {
                let last = self.last_run.entry(key.workload_key()).or_default();
                *last = key.run.max(*last);
                self.runs.insert(key, Run::created(created));
            }
            Event::RunFinished(_) => {
                self.runs.remove(&key);
                self.jobs.retain(|job, _| job.run_key() != key);
            }
            other => {
                if let Some(run) = self.runs.get_mut(&key) {
                    run.evolve(other);
                }
            }
        }
    }

    fn apply_job(&mut self, key: JobKey, recorded: &Recorded) -> Result<(), LoadError> {
        if recorded.event_type == "job.created" {
            if let Event::JobCreated(created) = decode(recorded)? {
                self.jobs.insert(key, OpenJob { job: Job::created(&created), queued_position: 0 });
            }
            return Ok(());
        }
        let Some(open) = self.jobs.get_mut(&key) else { return Ok(()) };
        open.job.evolve(&decode(recorded)?, recorded.occurred_at);
        if recorded.event_type == "job.queued" {
            open.queued_position = recorded.position;
        }
        Ok(())
    }

    fn apply_server(&mut self, key: ServerKey, event: &Event) {
        match (self.servers.get_mut(&key), event) {
            (Some(server), event) => server.evolve(event),
            (None, Event::ServerRegistered(registered)) => {
                self.servers.insert(key, Server::registered(registered));
            }
            (None, _) => {}
        }
    }

    fn apply_catalogue(&mut self, stream: &StreamKey) {
        let parts = stream.parts();
        let [org, code, rest @ ..] = parts.as_slice() else { return };
        self.catalogue.insert((stream.kind().to_owned(), org.clone(), code.clone()));
        if let [version] = rest {
            self.frameworks.entry((org.clone(), code.clone())).or_default().insert(version.clone());
        }
    }

    /// An organisation's quotas, where the operator set some.
    pub fn quota(&self, org: &str) -> Option<&Quota> {
        self.quotas.of(org)
    }

    /// How much an organisation uses.
    pub fn usage(&self, org: &str) -> Usage {
        let open = self.runs.iter().filter(|(key, _)| key.org == org);
        let open_jobs = open.map(|(_, run)| run.scenario_codes.len() as u64).sum();
        self.quotas.usage(org, open_jobs)
    }

    /// The organisations that reached or left a level of their quotas.
    pub fn near_a_level(&self) -> Vec<String> {
        let changes = |(org, quota): &(&String, &Quota)| !quota.observe(&self.usage(org)).is_empty();
        self.quotas.all().filter(changes).map(|(org, _)| org.clone()).collect()
    }

    /// The codes of a workload's scenarios, in the order in which they were defined.
    pub fn scenarios_of(&self, workload: &WorkloadKey) -> Vec<String> {
        self.scenarios.get(workload).cloned().unwrap_or_default()
    }

    /// The number of a workload's last run; 0 where it has none.
    pub fn last_run_of(&self, workload: &WorkloadKey) -> u32 {
        self.last_run.get(workload).copied().unwrap_or(0)
    }

    /// The jobs that wait for a server, the one that waits longest first.
    pub fn queued_for(&self, server: &ServerKey) -> Vec<JobKey> {
        let mut waiting: Vec<(i64, &JobKey)> = self
            .jobs
            .iter()
            .filter(|(_, open)| open.job.phase == JobPhase::Queued && open.job.server == *server)
            .map(|(key, open)| (open.queued_position, key))
            .collect();
        waiting.sort_unstable_by_key(|(position, _)| *position);
        waiting.into_iter().map(|(_, key)| key.clone()).collect()
    }

    /// Whether a server is in maintenance: it gets no new job.
    pub fn in_maintenance(&self, server: &ServerKey) -> bool {
        self.servers.get(server).is_some_and(|server| server.maintenance.is_some())
    }

    /// Whether a job waits for a server and would be given to it: what a heartbeat's answer says.
    pub fn work_waits_for(&self, server: &ServerKey) -> bool {
        !self.in_maintenance(server)
            && self.jobs.values().any(|open| open.job.phase == JobPhase::Queued && open.job.server == *server)
    }

    /// The jobs that agents hold: all of them, or a server's.
    pub fn held(&self, server: Option<&ServerKey>) -> Vec<(JobKey, Job)> {
        self.jobs
            .iter()
            .filter(|(_, open)| open.job.is_held() && server.is_none_or(|server| open.job.server == *server))
            .map(|(key, open)| (key.clone(), open.job.clone()))
            .collect()
    }

    /// A job of an open run.
    pub fn open_job(&self, key: &JobKey) -> Option<&Job> {
        self.jobs.get(key).map(|open| &open.job)
    }

    /// The runs that are not finished.
    pub fn open_runs(&self) -> Vec<(RunKey, Run)> {
        self.runs.iter().map(|(key, run)| (key.clone(), run.clone())).collect()
    }

    /// Open runs of which no job is on its way: they wait for [`super::advance_run`].
    pub fn idle_runs(&self) -> Vec<RunKey> {
        let busy: BTreeSet<RunKey> = self
            .jobs
            .iter()
            .filter(|(_, open)| !open.job.phase.is_terminal() && open.job.phase != JobPhase::Pending)
            .map(|(key, _)| key.run_key())
            .collect();
        self.runs.keys().filter(|key| !busy.contains(key)).cloned().collect()
    }

    /// Jobs with a result whose run is still open: of all runs, or of one.
    pub fn completed_jobs(&self, run: Option<&RunKey>) -> Vec<JobKey> {
        self.jobs
            .iter()
            .filter(|(_, open)| open.job.phase == JobPhase::Completed)
            .filter(|(key, _)| run.is_none_or(|run| key.run_key() == *run))
            .map(|(key, _)| key.clone())
            .collect()
    }

    /// A server, removed ones included.
    pub fn server(&self, key: &ServerKey) -> Option<&Server> {
        self.servers.get(key)
    }

    /// Every server, removed ones included.
    pub fn servers(&self) -> Vec<(ServerKey, Server)> {
        self.servers.iter().map(|(key, server)| (key.clone(), server.clone())).collect()
    }

    /// The codes of the catalogue's entries of a kind (`model`, `framework`, `tool`, `config`, `accelerator`,
    /// `engine_args_set`) that an organisation may use: the platform's and its own.
    pub fn catalogue_codes(&self, kind: &str, org: &str) -> Vec<String> {
        let codes: BTreeSet<&String> = self
            .catalogue
            .iter()
            .filter(|(k, o, _)| k == kind && (o == PLATFORM_ORG || o == org))
            .map(|(_, _, code)| code)
            .collect();
        codes.into_iter().cloned().collect()
    }

    /// The versions of a framework that an organisation may use.
    pub fn framework_versions(&self, org: &str, code: &str) -> Vec<String> {
        let of = |org: &str| self.frameworks.get(&(org.to_owned(), code.to_owned())).into_iter().flatten();
        let versions: BTreeSet<&String> = of(PLATFORM_ORG).chain(of(org)).collect();
        versions.into_iter().cloned().collect()
    }
}

#[cfg(test)]
mod tests;
