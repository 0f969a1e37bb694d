//! Accept: the only door. Authenticated reports are judged against the log, appended, and answered after the commit.

use std::collections::{BTreeMap, HashMap, HashSet};

use events::envelope::Recorded;
use events::keys::JobKey;
use events::report::{ItemOutcome, MAX_BATCH_ITEMS, ReportBatch, ReportBody, ReportItem, ReportReply};
use events::timestamp::Timestamp;
use uuid::Uuid;

use super::jobs::{self, Jobs, LoadedServer};
use super::judge::{About, Judged, check_item, envelope, judge, natural};
use super::numbers::Told;
use super::request::Requests;
use super::{Refused, Retry, follow_up, rejections};
use crate::auth::AgentIdentity;
use crate::domain::Refusal;
use crate::log::{AppendOutcome, Expected};
use crate::state::AppState;

/// How often a batch is judged again because a job changed meanwhile.
const ROUNDS: usize = 3;

/// Accepts a batch of reports of an authenticated agent. Every item gets its own outcome, in order.
pub async fn accept(
    state: &AppState,
    identity: &AgentIdentity,
    batch: ReportBatch,
    now: Timestamp,
) -> ReportReply {
    if let Err(refused) = check_batch(identity, &batch.org, &batch.agent, batch.items.len()) {
        return refuse_batch(state, identity, batch.items.len(), refused, now).await;
    }
    let mut door =
        Door { state, identity, items: &batch.items, now, outcomes: vec![None; batch.items.len()] };
    let mut ended = BTreeMap::new();
    if let Err(Retry(message)) = door.run(&mut ended).await {
        door.fill(&message);
    }
    let results: Vec<ItemOutcome> = door.outcomes.into_iter().flatten().collect();
    debug_assert_eq!(results.len(), batch.items.len());
    record_rejections(state, identity, &batch.items, &results, now).await;
    count(state, &results);
    for (job, event_id) in ended {
        follow_up::job_ended(state, job, event_id);
    }
    ReportReply { results, error: None }
}

/// Whether a batch may be looked at: it says who it is from, and is not too long.
///
/// # Errors
/// `identity_mismatch`, `too_many_items`.
pub(super) fn check_batch(
    identity: &AgentIdentity,
    org: &str,
    agent: &str,
    items: usize,
) -> Result<(), Refused> {
    if org != identity.org() || agent != identity.agent {
        let clip = |text: &str| text.chars().take(100).collect::<String>();
        return Err(Refused::new(
            "identity_mismatch",
            format!(
                "the batch says it is from {:?} of {:?}, but it came from {:?} of {:?}",
                clip(agent),
                clip(org),
                identity.agent,
                identity.org()
            ),
            "an agent reports in its own name; enrol each agent with a token of its own",
        ));
    }
    if items > MAX_BATCH_ITEMS {
        return Err(Refused::new(
            "too_many_items",
            format!("the batch holds {items} items, at most {MAX_BATCH_ITEMS} are taken at once"),
            "send them in several batches, oldest first",
        ));
    }
    Ok(())
}

/// Refuses a batch as a whole, and records that.
pub(super) async fn refuse_batch(
    state: &AppState,
    identity: &AgentIdentity,
    items: usize,
    refused: Refused,
    now: Timestamp,
) -> ReportReply {
    let about = rejections::About { event_id: Uuid::nil(), kind: "batch", refused: &refused };
    rejections::record(state, identity, &[about], now).await;
    state.metrics.count_reports("rejected", items as u64);
    ReportReply { results: Vec::new(), error: Some(refused.api_error()) }
}

async fn record_rejections(
    state: &AppState,
    identity: &AgentIdentity,
    items: &[ReportItem],
    results: &[ItemOutcome],
    now: Timestamp,
) {
    let refused: Vec<(&ReportItem, Refused)> = items
        .iter()
        .zip(results)
        .filter_map(|(item, outcome)| match outcome {
            ItemOutcome::Rejected { code, message, hint } => Some((item, Refused::new(code, message, hint))),
            _ => None,
        })
        .collect();
    let about: Vec<rejections::About<'_>> = refused
        .iter()
        .map(|(item, refused)| rejections::About { event_id: item.event_id, kind: item.body.kind(), refused })
        .collect();
    if !about.is_empty() {
        rejections::record(state, identity, &about, now).await;
    }
}

fn count(state: &AppState, results: &[ItemOutcome]) {
    let mut by: HashMap<&'static str, u64> = HashMap::new();
    for outcome in results {
        let word = match outcome {
            ItemOutcome::Accepted { .. } => "accepted",
            ItemOutcome::Duplicate { .. } => "duplicate",
            ItemOutcome::Rejected { .. } => "rejected",
            ItemOutcome::Retry { .. } => "retry",
        };
        *by.entry(word).or_default() += 1;
    }
    by.into_iter().for_each(|(word, items)| state.metrics.count_reports(word, items));
}

/// One batch on its way through.
struct Door<'a> {
    state: &'a AppState,
    identity: &'a AgentIdentity,
    items: &'a [ReportItem],
    now: Timestamp,
    outcomes: Vec<Option<ItemOutcome>>,
}

/// What came of appending a round's requests.
enum Round {
    /// Everything has its outcome.
    Done,
    /// A job changed meanwhile: judge what is left again.
    Again,
    /// The log refused a request of several events: try them one by one.
    OneByOne,
}

impl Door<'_> {
    async fn run(&mut self, ended: &mut BTreeMap<JobKey, Uuid>) -> Result<(), Retry> {
        let mut one_by_one = false;
        for round in 0..ROUNDS {
            self.find_duplicates().await?;
            let (mut requests, mut told) = (Requests::new(one_by_one), Told::new(round > 0));
            let refused = self.judge_all(&mut requests, &mut told).await?;
            if told.must_look_again() {
                continue;
            }
            match self.append_all(requests, ended).await? {
                Round::Done => {
                    told.remember(&self.state.log, &self.outcomes);
                    // Only now: what was refused may have been refused for an item that was not appended after all.
                    for (index, refused) in refused {
                        self.outcomes[index] = Some(refused.outcome());
                    }
                    return Ok(());
                }
                Round::Again => {}
                Round::OneByOne => one_by_one = true,
            }
        }
        self.fill("the job changed at the same time, again and again");
        Ok(())
    }

    /// What has no outcome yet is to be sent again.
    fn fill(&mut self, message: &str) {
        for outcome in self.outcomes.iter_mut().filter(|outcome| outcome.is_none()) {
            *outcome = Some(ItemOutcome::Retry { message: message.to_owned() });
        }
    }

    /// A resend is recognised by its id, and must be the same report.
    async fn find_duplicates(&mut self) -> Result<(), Retry> {
        let open = |index: &usize| self.outcomes[*index].is_none();
        let open: Vec<usize> = (0..self.items.len()).filter(open).collect();
        let ids: Vec<Uuid> = open.iter().map(|index| self.items[*index].event_id).collect();
        let known = self.state.log.positions_of(&ids).await?;
        let mut seen = HashSet::new();
        for index in open {
            let item = &self.items[index];
            if !seen.insert(item.event_id) {
                let message = "the same event_id stands twice in the batch".to_owned();
                self.outcomes[index] = Some(ItemOutcome::Retry { message });
                continue;
            }
            if !known.contains_key(&item.event_id) {
                continue;
            }
            let Some(there) = self.state.log.event_by_id(item.event_id).await? else { continue };
            self.outcomes[index] = Some(self.same(item, &there));
        }
        Ok(())
    }

    fn same(&self, item: &ReportItem, there: &Recorded) -> ItemOutcome {
        let (stream, event) = natural(self.identity, &item.body);
        let of_this_agent = there.actor == self.identity.actor() && there.org == self.identity.org();
        // A completion without a summary was recorded as a failure, see `Job::report`.
        let turned = matches!(item.body, ReportBody::Completed { .. }) && there.event_type == "job.failed";
        let same_payload = || {
            let value = event.payload().ok()?;
            let payload = events::canonical::canonical_json(&value).ok()?;
            Some(payload == there.payload)
        };
        let same = of_this_agent
            && there.stream == stream
            && there.occurred_at == item.at
            && (turned || (there.event_type == event.event_type() && same_payload() == Some(true)));
        if same {
            return ItemOutcome::Duplicate { position: there.position };
        }
        Refused::new(
            "id_reused",
            format!("event_id {} is in the log with other content", item.event_id),
            "make a uuid v7 for each report, once, and keep it for every resend",
        )
        .outcome()
    }

    /// Judges everything that has no outcome, each item after those before it.
    async fn judge_all(
        &mut self,
        requests: &mut Requests,
        told: &mut Told,
    ) -> Result<Vec<(usize, Refused)>, Retry> {
        let mut jobs = Jobs::default();
        let mut server = None;
        let mut refused = Vec::new();
        for (index, item) in self.items.iter().enumerate() {
            if self.outcomes[index].is_some() {
                continue;
            }
            let judged = match check_item(item, self.state.config.max_blob_bytes) {
                Err(no) => Err(no),
                Ok(()) => match item.body.job() {
                    Some((key, attempt)) => {
                        self.judge_job(index, (key, attempt), &mut jobs, requests, told).await?
                    }
                    None => self.judge_server(index, &mut server, requests).await?,
                },
            };
            if let Err(no) = judged {
                refused.push((index, no));
            }
        }
        Ok(refused)
    }

    async fn judge_job(
        &self,
        index: usize,
        (key, attempt): (&JobKey, u32),
        jobs: &mut Jobs,
        requests: &mut Requests,
        told: &mut Told,
    ) -> Result<Result<(), Refused>, Retry> {
        let item = &self.items[index];
        if key.org == self.identity.org() {
            jobs.get(&self.state.log, key).await?;
        }
        if let ReportBody::Blob { blob, .. } = &item.body
            && self.state.blobs.size(self.identity.org(), &blob.sha256).await? != Some(blob.size)
        {
            return Ok(Err(Refused::new(
                "blob_missing",
                format!("there is no blob {} of {} bytes", blob.sha256, blob.size),
                "upload it first: PUT /api/agent/blobs/<sha256>",
            )));
        }
        let about = About { key, attempt, loaded: jobs.known(key) };
        let judged = match judge(self.identity, item, &about, self.now) {
            Ok(judged) => judged,
            Err(no) => return Ok(Err(no)),
        };
        let (version, causation, correlation) = about.loaded.map_or((0, None, None), |loaded| {
            (loaded.job.version, loaded.claims.get(&attempt).copied(), loaded.correlation_id)
        });
        let event = match envelope(self.identity, item, &judged, causation, correlation) {
            Ok(event) => event,
            Err(no) => return Ok(Err(no)),
        };
        let Judged { stream, decides, event: decided } = judged;
        let expected = match decides {
            true => Expected::Exact(version),
            false => match told.take(&self.state.log, &stream, &decided, index).await? {
                Ok(expected) => expected,
                Err(no) => return Ok(Err(no)),
            },
        };
        requests.push(stream, expected, decides, event, index);
        if decides && let Some(loaded) = jobs.get(&self.state.log, key).await? {
            loaded.job.evolve(&decided, item.at);
        }
        Ok(Ok(()))
    }

    async fn judge_server(
        &mut self,
        index: usize,
        server: &mut Option<LoadedServer>,
        requests: &mut Requests,
    ) -> Result<Result<(), Refused>, Retry> {
        let item = &self.items[index];
        let ReportBody::Capabilities { capabilities } = &item.body else { return Ok(Ok(())) };
        if server.is_none() {
            *server = jobs::server(&self.state.log, &self.identity.server).await?;
        }
        let Some(LoadedServer { server, position }) = server.as_mut().filter(|loaded| !loaded.server.removed)
        else {
            return Ok(Err(Refusal::not_found("server_not_registered", "this server is not registered")
                .hint("register it again, then enrol with the new token")
                .into()));
        };
        let Some(event) = server.report_capabilities(capabilities).pop() else {
            // Nothing has changed since they were reported last.
            self.outcomes[index] = Some(ItemOutcome::Duplicate { position: *position });
            return Ok(Ok(()));
        };
        server.evolve(&event);
        let stream = self.identity.server.stream();
        let judged = Judged { stream: stream.clone(), decides: false, event };
        match envelope(self.identity, item, &judged, None, None) {
            Ok(event) => requests.push(stream, Expected::Any, false, event, index),
            Err(no) => return Ok(Err(no)),
        }
        Ok(Ok(()))
    }

    /// Appends the requests in order and notes each item's outcome.
    async fn append_all(
        &mut self,
        requests: Requests,
        ended: &mut BTreeMap<JobKey, Uuid>,
    ) -> Result<Round, Retry> {
        for (request, indices) in requests.finish() {
            match self.state.log.append(request).await? {
                AppendOutcome::Appended { events, .. } => {
                    for (index, placed) in indices.into_iter().zip(events) {
                        self.outcomes[index] = Some(ItemOutcome::Accepted { position: placed.position });
                        let item = &self.items[index];
                        ended.extend(ended_by(&item.body).map(|job| (job.clone(), item.event_id)));
                    }
                }
                AppendOutcome::AlreadyAppended { positions } => {
                    for (index, position) in indices.into_iter().zip(positions) {
                        self.outcomes[index] = Some(ItemOutcome::Duplicate { position });
                    }
                }
                AppendOutcome::VersionConflict { .. } => return Ok(Round::Again),
                AppendOutcome::Rejected { reason } => match indices.as_slice() {
                    [index] => {
                        let refused = Refused::new("refused_by_log", reason, "correct the report");
                        self.outcomes[*index] = Some(refused.outcome());
                    }
                    _ => return Ok(Round::OneByOne),
                },
            }
        }
        Ok(Round::Done)
    }
}

/// The job that a report ends.
fn ended_by(body: &ReportBody) -> Option<&JobKey> {
    match body {
        ReportBody::Completed { job, .. }
        | ReportBody::Failed { job, .. }
        | ReportBody::Cancelled { job, .. } => Some(job),
        _ => None,
    }
}
