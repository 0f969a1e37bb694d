//! Which events make results, and of which rows.

use events::Event;
use events::envelope::Recorded;
use events::keys::ImportKey;

use super::super::access;
use super::super::counts::{CountRow, OfResults};
use super::super::figure_counts::Places;
use super::super::jobs::job_of;
use super::super::result::ResultRow;
use super::super::result_rows::{ResultServerRow, foreign_window_end, window, window_end};
use super::super::servers::gpu_summary;
use super::super::telemetry_series::start_of;
use super::{MINUTE_US, Results};
use crate::projections::table::Table;
use crate::projections::{AnyTable, FoldError, Projection};

impl Projection for Results {
    fn name(&self) -> &'static str {
        "results"
    }
    fn version(&self) -> i32 {
        11
    }
    fn interests(&self) -> &'static [&'static str] {
        &[
            access::PROJECT_CREATED,
            access::VISIBILITY_CHANGED,
            "job.created",
            "job.queued",
            "job.claimed",
            "job.serving",
            "job.running",
            "job.completed",
            "job.failed",
            "job.cancelled",
            "job.lost",
            "job.retried",
            "tool_output.recorded",
            "tool_output.external",
            "tool_output.imported",
            "telemetry.sampled",
            "quality.flagged",
            "quality.cleared",
            "server.registered",
            "server.capabilities_reported",
        ]
    }
    fn tables(&mut self) -> Vec<&mut dyn AnyTable> {
        vec![
            &mut self.rights,
            &mut self.jobs,
            &mut self.servers,
            &mut self.power,
            &mut self.llm,
            &mut self.vlm,
            &mut self.asr,
            &mut self.imagegen,
            &mut self.inferencex,
            &mut self.genai_perf,
            &mut self.kv_cache,
            &mut self.kyai,
            &mut self.results,
            &mut self.boards,
            &mut self.counts,
            &mut self.figure_counts,
        ]
    }

    fn wants(&mut self, recorded: &Recorded, event: &Event) {
        access::wants(&mut self.rights, recorded, event);
        match recorded.stream.kind() {
            "server" => self.servers.want(recorded.stream.to_string()),
            "import" => {
                let Ok(key) = ImportKey::from_stream(&recorded.stream) else { return };
                access::want(&mut self.rights, &key.org, &key.project);
                self.results.want(recorded.stream.to_string());
                self.inferencex.want(recorded.stream.to_string());
            }
            "telemetry" => {
                let Event::TelemetrySampled(sampled) = event else { return };
                let Ok((key, job, attempt)) = job_of(&recorded.stream) else { return };
                for sample in &sampled.samples {
                    self.power.want((job.clone(), attempt, start_of(sample.at, MINUTE_US)));
                }
                self.results.want(job.clone());
                let waits = self.results.loaded(&job).filter(|r| r.energy_j.is_none());
                let window = waits.and_then(ResultRow::window);
                let server = waits.and_then(|r| r.setup.config_code.clone().zip(r.setup.hostname.clone()));
                self.want_power(&job, attempt, window);
                if let Some((config_code, hostname)) = server {
                    self.want_boards(&key, &config_code, &hostname);
                }
            }
            "job" => {
                let Ok((key, job, _)) = job_of(&recorded.stream) else { return };
                access::want(&mut self.rights, &key.org, &key.project);
                let known = self
                    .jobs
                    .loaded(&job)
                    .map(|j| (j.attempt, j.server.clone(), j.config_code.clone(), j.hostname.clone()));
                if let Some((attempt, server, config_code, hostname)) = known {
                    self.servers.want(server);
                    self.want_boards(&key, &config_code, &hostname);
                    let window = self.results.loaded(&job).and_then(ResultRow::window);
                    self.want_power(&job, attempt, window);
                }
                match event {
                    // Its server is looked at when the result comes, maybe in this very batch.
                    Event::JobCreated(created) => {
                        self.servers.want(created.server.stream().to_string());
                        self.want_boards(&key, &created.server.config, &created.server.hostname);
                    }
                    Event::ToolOutputRecorded(output) => {
                        let ended_at = window_end(output, recorded);
                        let window = window(output.summary.figures.window_s, ended_at);
                        self.want_power(&job, output.attempt, window);
                    }
                    Event::ExternalOutputRecorded(output) => {
                        let ended_at = foreign_window_end(output, recorded);
                        let window = ended_at.and_then(|at| window(output.figures.window_s, at));
                        self.want_power(&job, output.attempt, window);
                    }
                    _ => {}
                }
                self.jobs.want(job.clone());
                self.llm.want(job.clone());
                self.vlm.want(job.clone());
                self.asr.want(job.clone());
                self.imagegen.want(job.clone());
                self.inferencex.want(job.clone());
                self.genai_perf.want(job.clone());
                self.kv_cache.want(job.clone());
                self.kyai.want(job.clone());
                self.results.want(job);
            }
            _ => {}
        }
    }

    fn fold(&mut self, recorded: &Recorded, event: &Event) -> Result<(), FoldError> {
        if let Some((project, visibility)) = access::fold(&mut self.rights, recorded, event)? {
            let (org, code) = (&project.org, &project.project);
            self.jobs.set_visibility(org, code, &visibility);
            self.llm.set_visibility(org, code, &visibility);
            self.vlm.set_visibility(org, code, &visibility);
            self.asr.set_visibility(org, code, &visibility);
            self.imagegen.set_visibility(org, code, &visibility);
            self.inferencex.set_visibility(org, code, &visibility);
            self.genai_perf.set_visibility(org, code, &visibility);
            self.kv_cache.set_visibility(org, code, &visibility);
            self.kyai.set_visibility(org, code, &visibility);
            self.results.set_visibility(org, code, &visibility);
            self.boards.set_visibility(org, code, &visibility);
            self.counts.set_visibility(org, code, &visibility);
            self.figure_counts.set_visibility(org, code, &visibility);
            return Ok(());
        }
        let result = match recorded.stream.kind() {
            "job" | "import" => Some(recorded.stream.to_string()),
            "telemetry" => Some(job_of(&recorded.stream)?.1),
            _ => None,
        };
        let found = |results: &Table<ResultRow>| {
            let result = results.get(result.as_ref()?)?;
            Some((CountRow::<OfResults>::of(result), Places::of(result)))
        };
        let before = found(&self.results);
        self.fold_one(recorded, event)?;
        let after = found(&self.results);
        if let (Some(job), Some((row, _))) = (&result, &after)
            && self.results.get(job).is_some_and(|result| result.kind_no != row.kind_no)
            && let Some(result) = self.results.get_mut(job, recorded.position)
        {
            result.kind_no = row.kind_no;
        }
        if before != after {
            for (found, by) in [(before, -1), (after, 1)] {
                let Some((row, places)) = found else { continue };
                self.counts.add(row, by);
                places.rows().for_each(|row| self.figure_counts.add(row, by));
            }
        }
        Ok(())
    }
}

impl Results {
    fn fold_one(&mut self, recorded: &Recorded, event: &Event) -> Result<(), FoldError> {
        let position = recorded.position;
        match event {
            Event::ProjectCreated(_) => Ok(()),
            Event::JobCreated(created) => self.job_created(recorded, created),
            Event::ToolOutputImported(output) => self.imported(recorded, output),
            Event::TelemetrySampled(sampled) => self.sampled(&recorded.stream, sampled, position),
            Event::ServerRegistered(registered) => {
                let server = recorded.stream.to_string();
                // Registered again, it has the GPUs it had.
                if let Some(row) = self.servers.get_mut(&server, position) {
                    row.cost_per_hour_usd = registered.cost_per_hour_usd;
                    return Ok(());
                }
                let row = ResultServerRow {
                    server,
                    gpu_name: None,
                    gpu_count: None,
                    cost_per_hour_usd: registered.cost_per_hour_usd,
                };
                self.servers.put(row, position);
                Ok(())
            }
            Event::ServerCapabilitiesReported(reported) => {
                let server = recorded.stream.to_string();
                let row = self
                    .servers
                    .get_mut(&server, position)
                    .ok_or_else(|| FoldError(format!("{server} is not there")))?;
                let (name, count, _) = gpu_summary(&reported.capabilities);
                (row.gpu_name, row.gpu_count) = (name, Some(count));
                Ok(())
            }
            _ => {
                self.job_event(recorded, event)?;
                let (key, job, _) = job_of(&recorded.stream)?;
                let server = self.jobs.get(&job).map(|j| (j.config_code.clone(), j.hostname.clone()));
                if let Some((config_code, hostname)) = server {
                    self.follow(&key, &job, (&config_code, &hostname), position);
                }
                Ok(())
            }
        }
    }
}
