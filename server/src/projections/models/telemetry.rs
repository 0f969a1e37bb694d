//! Folds telemetry into chunks, buckets and summaries.

use events::Event;
use events::envelope::Recorded;
use events::keys::JobKey;
use events::telemetry::{TelemetrySample, TelemetrySampled};

use super::access::{self, rights_table};
use super::energy::longest_step;
use super::jobs::job_of;
use super::telemetry_series::{
    BUCKET_SECONDS, BUCKETS_A_ROW, CHUNK_US, ChunkRow, JobColumns, SegmentRow, readings, start_of,
};
use super::telemetry_summary::{GpuSummaryRow, JobSummaryRow};
use super::tpu_summary::TpuSummaryRow;
use crate::projections::table::Table;
use crate::projections::{AnyTable, FoldError, Projection};

rights_table!(TelemetryRights, "telemetry_rights");

/// Folds `telemetry.sampled` and the events that open and close a job's window.
#[derive(Debug, Default)]
pub struct Telemetry {
    rights: Table<TelemetryRights>,
    chunks: Table<ChunkRow>,
    segments: Table<SegmentRow>,
    jobs: Table<JobSummaryRow>,
    gpus: Table<GpuSummaryRow>,
    tpus: Table<TpuSummaryRow>,
}

/// The attempt an event of a job's stream is about, where it opens or closes a window.
fn attempt_of(event: &Event) -> Option<u32> {
    match event {
        Event::JobRunning(e) => Some(e.attempt),
        Event::JobCompleted(e) => Some(e.attempt),
        Event::JobFailed(e) => Some(e.attempt),
        Event::JobCancelled(e) => Some(e.attempt),
        _ => None,
    }
    .filter(|attempt| *attempt > 0)
}

impl Telemetry {
    fn columns(&self, key: JobKey, job: &str, attempt: u32) -> Result<JobColumns, FoldError> {
        let rights = access::rights(&self.rights, &key.org, &key.project)?;
        Ok(JobColumns {
            org: key.org,
            project_code: key.project,
            workload_code: key.workload,
            run_number: key.run,
            scenario_code: key.scenario,
            job: job.to_owned(),
            attempt,
            visibility: rights.visibility,
            owner: rights.owner,
        })
    }

    fn summary(&mut self, keys: &JobColumns, position: i64) -> &mut JobSummaryRow {
        let key = (keys.job.clone(), keys.attempt);
        let new = || JobSummaryRow::new(keys.clone(), position);
        let row = self.jobs.get_mut_or_put(key, position, new);
        row.frame.position = position;
        row
    }

    /// Whether something was said of a sample's moment before.
    fn is_known(&self, job: &str, attempt: u32, sample: &TelemetrySample) -> bool {
        let minute = start_of(sample.at, CHUNK_US);
        readings(sample).into_iter().any(|(source, _)| {
            let chunk = self.chunks.get(&(job.to_owned(), attempt, source, minute));
            chunk.is_some_and(|chunk| chunk.has(sample.at))
        })
    }

    fn sampled(&mut self, recorded: &Recorded, sampled: &TelemetrySampled) -> Result<(), FoldError> {
        let (key, job, attempt) = job_of(&recorded.stream)?;
        let keys = self.columns(key, &job, attempt)?;
        let position = recorded.position;
        let longest = longest_step(sampled.interval_ms);
        // Sent again under another number, a moment is what was said of it first.
        let samples: Vec<&TelemetrySample> =
            sampled.samples.iter().filter(|sample| !self.is_known(&job, attempt, sample)).collect();
        let summary = self.summary(&keys, position);
        summary.received(sampled.seq, samples.len() as u64, sampled.interval_ms);
        let (mut counted, mut of_tpus) = (Vec::new(), Vec::new());
        for &sample in &samples {
            if summary.counts(sample.at) {
                summary.take(sample, longest);
                counted.extend(&sample.gpus);
                of_tpus.extend((!sample.tpus.is_empty()).then_some(sample));
            }
        }
        summary.refresh();
        for sample in of_tpus {
            let new = || TpuSummaryRow::new(keys.clone(), sample.at, position);
            let row = self.tpus.get_mut_or_put((job.clone(), attempt), position, new);
            row.take(sample.at, &sample.tpus, position);
        }
        for gpu in counted {
            let new = || GpuSummaryRow::new(keys.clone(), gpu.gpu, position);
            self.gpus.get_mut_or_put((job.clone(), attempt, gpu.gpu), position, new).take(gpu, position);
        }
        for sample in samples {
            let minute = start_of(sample.at, CHUNK_US);
            for (source, reading) in readings(sample) {
                for (metric, value) in reading.metrics() {
                    for bucket_s in BUCKET_SECONDS {
                        let segment = start_of(sample.at, bucket_s * BUCKETS_A_ROW * 1_000_000);
                        let key =
                            (job.clone(), attempt, source.clone(), metric.to_owned(), bucket_s, segment);
                        let new = || SegmentRow::new(keys.clone(), source.clone(), metric, bucket_s, segment);
                        let row = self.segments.get_mut_or_put(key, position, new);
                        row.add(sample.at, value, position);
                    }
                }
                let key = (job.clone(), attempt, source.clone(), minute);
                let new = || ChunkRow::new(keys.clone(), source, minute);
                let row = self.chunks.get_mut_or_put(key, position, new);
                row.add(sample.at, &reading, position);
            }
        }
        Ok(())
    }
}

impl Projection for Telemetry {
    fn name(&self) -> &'static str {
        "telemetry"
    }
    fn version(&self) -> i32 {
        6
    }
    fn interests(&self) -> &'static [&'static str] {
        &[
            access::PROJECT_CREATED,
            access::VISIBILITY_CHANGED,
            "job.claimed",
            "job.running",
            "job.completed",
            "job.failed",
            "job.cancelled",
            "telemetry.sampled",
        ]
    }
    fn tables(&mut self) -> Vec<&mut dyn AnyTable> {
        vec![
            &mut self.rights,
            &mut self.chunks,
            &mut self.segments,
            &mut self.jobs,
            &mut self.gpus,
            &mut self.tpus,
        ]
    }

    fn wants(&mut self, recorded: &Recorded, event: &Event) {
        access::wants(&mut self.rights, recorded, event);
        if !matches!(recorded.stream.kind(), "job" | "telemetry") {
            return;
        }
        let Ok((key, job, attempt)) = job_of(&recorded.stream) else { return };
        access::want(&mut self.rights, &key.org, &key.project);
        if let Event::JobClaimed(claimed) = event {
            self.jobs.want((job.clone(), claimed.attempt.saturating_sub(1)));
        }
        if let Some(attempt) = attempt_of(event) {
            self.jobs.want((job.clone(), attempt));
        }
        let Event::TelemetrySampled(sampled) = event else { return };
        self.jobs.want((job.clone(), attempt));
        if sampled.samples.iter().any(|sample| !sample.tpus.is_empty()) {
            self.tpus.want((job.clone(), attempt));
        }
        for sample in &sampled.samples {
            let minute = start_of(sample.at, CHUNK_US);
            for gpu in &sample.gpus {
                self.gpus.want((job.clone(), attempt, gpu.gpu));
            }
            for (source, reading) in readings(sample) {
                for (metric, _) in reading.metrics() {
                    for bucket_s in BUCKET_SECONDS {
                        let segment = start_of(sample.at, bucket_s * BUCKETS_A_ROW * 1_000_000);
                        let metric = metric.to_owned();
                        self.segments.want((job.clone(), attempt, source.clone(), metric, bucket_s, segment));
                    }
                }
                self.chunks.want((job.clone(), attempt, source, minute));
            }
        }
    }

    fn fold(&mut self, recorded: &Recorded, event: &Event) -> Result<(), FoldError> {
        if let Some((project, visibility)) = access::fold(&mut self.rights, recorded, event)? {
            let (org, code) = (&project.org, &project.project);
            self.chunks.set_visibility(org, code, &visibility);
            self.segments.set_visibility(org, code, &visibility);
            self.jobs.set_visibility(org, code, &visibility);
            self.gpus.set_visibility(org, code, &visibility);
            self.tpus.set_visibility(org, code, &visibility);
            return Ok(());
        }
        let position = recorded.position;
        match event {
            Event::TelemetrySampled(sampled) => self.sampled(recorded, sampled),
            Event::JobClaimed(claimed) => {
                let (_, job, _) = job_of(&recorded.stream)?;
                let before = claimed.attempt.saturating_sub(1);
                if let Some(row) = self.jobs.get_mut(&(job, before), position) {
                    row.superseded = true;
                    row.frame.position = position;
                }
                Ok(())
            }
            _ => {
                let Some(attempt) = attempt_of(event) else { return Ok(()) };
                let (key, job, _) = job_of(&recorded.stream)?;
                let keys = self.columns(key, &job, attempt)?;
                let at = recorded.occurred_at;
                let row = self.summary(&keys, position);
                match event {
                    Event::JobRunning(_) => row.running(at),
                    Event::JobCompleted(e) => row.ended(at, Some(e.telemetry_samples)),
                    Event::JobFailed(e) => row.ended(at, Some(e.telemetry_samples)),
                    _ => row.ended(at, None),
                }
                Ok(())
            }
        }
    }
}
