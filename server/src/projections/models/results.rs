//! Results: `v_benchmark_results`, one row a job, whatever the tool; and the tools' own outputs ([`super::outputs`]).

mod fold;

use events::envelope::Recorded;
use events::job::{JobCreated, JobPhase};
use events::keys::{ImportKey, JobKey, StreamKey};
use events::telemetry::TelemetrySampled;
use events::tool_output::{ExternalOutputRecorded, ToolOutputImported};
use events::tools::ToolCode;
use events::{Event, Timestamp};

use super::access::{self, rights_table};
use super::counts::{CountRow, OfResults};
use super::energy::{energy_between, longest_step, same_gpus, total_power};
use super::external_outputs::{
    ExternalRow, GenaiPerf, Inferencex, KvCacheOffload, Kyai, of_genai_perf, of_inferencex, of_kv_cache,
    of_kyai,
};
use super::figure_counts::FigureCountRow;
use super::jobs::job_of;
use super::leaderboard::{self, BoardRow};
use super::outputs::{Asr, Imagegen, Llm, OutputRow, Vlm};
use super::result::{ResultRow, question_set};
use super::result_figures::ResultFigures;
use super::result_rows::{
    MINUTE_US, Measured, PowerRow, ResultJobRow, ResultServerRow, foreign_window_end, window_end,
};
use super::telemetry_series::start_of;
use crate::projections::FoldError;
use crate::projections::table::Table;

rights_table!(ResultRights, "result_rights");

/// Holds everything a result rests on: the job, its server, its power, the tool's summary, the doubts.
#[derive(Debug, Default)]
pub struct Results {
    rights: Table<ResultRights>,
    jobs: Table<ResultJobRow>,
    servers: Table<ResultServerRow>,
    power: Table<PowerRow>,
    llm: Table<OutputRow<Llm>>,
    vlm: Table<OutputRow<Vlm>>,
    asr: Table<OutputRow<Asr>>,
    imagegen: Table<OutputRow<Imagegen>>,
    inferencex: Table<ExternalRow<Inferencex>>,
    genai_perf: Table<ExternalRow<GenaiPerf>>,
    kv_cache: Table<ExternalRow<KvCacheOffload>>,
    kyai: Table<ExternalRow<Kyai>>,
    results: Table<ResultRow>,
    boards: Table<BoardRow>,
    counts: Table<CountRow<OfResults>>,
    figure_counts: Table<FigureCountRow>,
}

/// Where the leaderboard keeps a job's results.
fn place_of<'a>(key: &'a JobKey, config_code: &'a str, hostname: &'a str) -> [&'a str; 6] {
    [&key.org, &key.project, &key.workload, config_code, hostname, &key.scenario]
}

/// The minutes that hold a window's samples, its neighbours at both ends included.
fn minutes((from, to): (i64, i64)) -> impl Iterator<Item = Timestamp> {
    let first = from.div_euclid(MINUTE_US) - 1;
    let last = to.div_euclid(MINUTE_US) + 1;
    (first..=last).filter_map(|minute| Timestamp::from_micros(minute * MINUTE_US).ok())
}

/// The server that a job was served by, and the GPUs that it used there: neither where its endpoint is elsewhere.
fn what_served<'a>(
    servers: &'a Table<ResultServerRow>,
    job: &ResultJobRow,
) -> (Option<&'a ResultServerRow>, Option<i64>) {
    let server = servers.get(&job.server).filter(|_| !job.spec.layout.is_elsewhere());
    (server, job.spec.layout.on(server.and_then(|server| server.gpu_count)).gpus_used)
}

impl Results {
    fn job_created(&mut self, recorded: &Recorded, created: &JobCreated) -> Result<(), FoldError> {
        let key = JobKey::from_stream(&recorded.stream)?;
        let rights = access::rights(&self.rights, &key.org, &key.project)?;
        self.jobs.put(
            ResultJobRow {
                run: key.run_key().stream().to_string(),
                org: key.org,
                project_code: key.project,
                workload_code: key.workload,
                run_number: key.run,
                scenario_code: key.scenario,
                job: recorded.stream.to_string(),
                server: created.server.stream().to_string(),
                config_code: created.server.config.clone(),
                hostname: created.server.hostname.clone(),
                spec: Measured::of(created),
                phase: JobPhase::Pending.as_str().to_owned(),
                attempt: 0,
                flags: Vec::new(),
                visibility: rights.visibility,
                owner: rights.owner,
            },
            recorded.position,
        );
        Ok(())
    }

    fn job_event(&mut self, recorded: &Recorded, event: &Event) -> Result<(), FoldError> {
        let (job, position) = (recorded.stream.to_string(), recorded.position);
        let row =
            self.jobs.get_mut(&job, position).ok_or_else(|| FoldError(format!("{job} is not there")))?;
        let before = row.standing();
        let after = before.after(event);
        row.phase = after.phase.as_str().to_owned();
        row.attempt = after.attempt;
        match event {
            Event::QualityFlagged(e) if !row.flags.contains(&e.rule) => {
                row.flags.push(e.rule.clone());
                row.flags.sort();
            }
            Event::QualityCleared(e) => row.flags.retain(|rule| *rule != e.rule),
            // What the host really sent.
            Event::JobRunning(e) if e.attempt == after.attempt && e.prompt_source_sha256.is_some() => {
                row.spec.prompt_source_sha256.clone_from(&e.prompt_source_sha256);
            }
            _ => {}
        }
        let row = row.clone();
        match event {
            Event::ToolOutputRecorded(output) if output.attempt == after.attempt => {
                let (server, gpus) = what_served(&self.servers, &row);
                let figures = ResultFigures::of_summary(&output.summary, gpus);
                let ended_at = Some(window_end(output, recorded));
                let result = ResultRow::new(&row, server, output.attempt, figures, ended_at, recorded);
                match ToolCode::of(&output.summary.tool) {
                    Some(ToolCode::MetrumbenchLlm) => {
                        self.llm.put(OutputRow::new(&row, server, output, recorded), position)
                    }
                    Some(ToolCode::MetrumbenchVlm) => {
                        self.vlm.put(OutputRow::new(&row, server, output, recorded), position)
                    }
                    Some(ToolCode::MetrumbenchAsr) => {
                        self.asr.put(OutputRow::new(&row, server, output, recorded), position)
                    }
                    Some(ToolCode::MetrumbenchImagegen) => {
                        self.imagegen.put(OutputRow::new(&row, server, output, recorded), position);
                    }
                    _ => {}
                }
                self.results.put(result, position);
                self.measure_energy(&job, after.attempt, position);
            }
            Event::ExternalOutputRecorded(output) if output.attempt == after.attempt => {
                self.external_output(&row, output, recorded);
                self.measure_energy(&job, after.attempt, position);
            }
            // A newer attempt supersedes the result of the one before.
            Event::JobClaimed(_) => {
                self.llm.close(&job, position);
                self.vlm.close(&job, position);
                self.asr.close(&job, position);
                self.imagegen.close(&job, position);
                self.inferencex.close(&job, position);
                self.genai_perf.close(&job, position);
                self.kv_cache.close(&job, position);
                self.kyai.close(&job, position);
                self.results.close(&job, position);
            }
            _ => {
                let doubts = matches!(event, Event::QualityFlagged(_) | Event::QualityCleared(_));
                if after.phase == before.phase && !doubts {
                    return Ok(());
                }
                if let Some(result) = self.results.get_mut(&job, position) {
                    result.status = after.phase.status().to_owned();
                    result.suspicious = !row.flags.is_empty();
                    result.flags = row.flags;
                    result.position = position;
                    if after.phase != before.phase {
                        result.finished_at = after.phase.is_terminal().then_some(recorded.occurred_at);
                        self.measure_energy(&job, after.attempt, position);
                    }
                }
            }
        }
        Ok(())
    }

    /// Works out the energy over the measurement window from the samples that are there.
    fn measure_energy(&mut self, job: &str, attempt: u32, position: i64) {
        // Of an endpoint on another machine the power is not known: the host that sends the load is not what serves.
        let measured = self.results.get(&job.to_owned()).filter(|result| !result.layout.is_elsewhere());
        let Some(window) = measured.and_then(ResultRow::window) else { return };
        let mut samples: Vec<(i64, Option<f64>)> = Vec::new();
        let mut gpus: Vec<i64> = Vec::new();
        let mut interval_ms = 0;
        for minute in minutes(window) {
            if let Some(row) = self.power.get(&(job.to_owned(), attempt, minute)) {
                samples.extend(row.at_us.iter().copied().zip(row.watts.iter().copied()));
                gpus.extend(&row.gpus);
                interval_ms = row.interval_ms;
            }
        }
        let step = longest_step(interval_ms);
        let near = (window.0 - step)..=(window.1 + step);
        let counts = samples.iter().zip(gpus).filter(|((at, _), _)| near.contains(at)).map(|(_, gpus)| gpus);
        let joules = same_gpus(counts).then(|| energy_between(&samples, window.0, window.1, step)).flatten();
        let known = self.results.get(&job.to_owned()).and_then(|r| r.energy_j);
        if joules != known
            && let Some(result) = self.results.get_mut(&job.to_owned(), position)
        {
            result.set_energy(joules);
            result.position = position;
        }
    }

    fn sampled(
        &mut self,
        stream: &StreamKey,
        sampled: &TelemetrySampled,
        position: i64,
    ) -> Result<(), FoldError> {
        let (key, job, attempt) = job_of(stream)?;
        for sample in &sampled.samples {
            let (at, watts) = (sample.at.as_micros(), total_power(sample));
            let gpus = i64::try_from(sample.gpus.len()).unwrap_or(i64::MAX);
            let minute = start_of(sample.at, MINUTE_US);
            let key = (job.clone(), attempt, minute);
            if let Some(row) = self.power.get_mut(&key, position) {
                let place = row.at_us.partition_point(|t| *t < at);
                // A moment has one power: what was said of it first.
                if row.at_us.get(place) != Some(&at) {
                    row.at_us.insert(place, at);
                    row.watts.insert(place, watts);
                    row.gpus.insert(place, gpus);
                    row.interval_ms = sampled.interval_ms;
                }
            } else {
                let row = PowerRow {
                    job: job.clone(),
                    attempt,
                    minute,
                    interval_ms: sampled.interval_ms,
                    at_us: vec![at],
                    watts: vec![watts],
                    gpus: vec![gpus],
                };
                self.power.put(row, position);
            }
        }
        // Samples that come after the result complete its energy.
        if let Some(result) = self.results.get(&job)
            && result.attempt == attempt
            && result.energy_j.is_none()
            && result.window().is_some_and(|(from, to)| {
                sampled.samples.iter().any(|s| (from..=to).contains(&s.at.as_micros()))
            })
        {
            self.measure_energy(&job, attempt, position);
            let server = self
                .results
                .get(&job)
                .and_then(|r| r.setup.config_code.clone().zip(r.setup.hostname.clone()));
            if let Some((config_code, hostname)) = server {
                self.follow(&key, &job, (&config_code, &hostname), position);
            }
        }
        Ok(())
    }

    /// Lets the leaderboard follow a job's result, as it stands or stands no more.
    fn follow(&mut self, key: &JobKey, job: &str, (config_code, hostname): (&str, &str), position: i64) {
        let result = self.results.get(&job.to_owned());
        for simulated in [false, true] {
            let counted = result.filter(|r| r.figures.simulated == simulated && r.status == "completed");
            let place = place_of(key, config_code, hostname);
            let entry = leaderboard::entry(place, simulated);
            match (self.boards.get(&entry), counted) {
                (None, None) => continue,
                (None, Some(result)) => self.boards.put(BoardRow::new(result), position),
                (Some(row), counted) if row.holds(key.run, counted) => continue,
                (Some(_), _) => {}
            }
            if let Some(row) = self.boards.get_mut(&entry, position) {
                row.count(key.run, counted, position);
            }
        }
    }

    fn want_boards(&mut self, key: &JobKey, config_code: &str, hostname: &str) {
        for simulated in [false, true] {
            let place = place_of(key, config_code, hostname);
            self.boards.want(leaderboard::entry(place, simulated));
        }
    }

    /// A third-party tool's result, in its own table and beside the others.
    fn external_output(&mut self, job: &ResultJobRow, output: &ExternalOutputRecorded, recorded: &Recorded) {
        let position = recorded.position;
        let (server, gpus) = what_served(&self.servers, job);
        let simulated = output.simulated_on(&job.spec.framework_code);
        let figures = ResultFigures::of_foreign(
            &output.figures,
            output.inferencex.as_ref(),
            output.kyai.as_ref().map(|kyai| kyai.score),
            gpus,
            simulated,
        );
        let ended_at = foreign_window_end(output, recorded);
        let mut result = ResultRow::new(job, server, output.attempt, figures, ended_at, recorded);
        // Built-in questions and conversations are no sources of the catalogue; the runner says which it took.
        if let Some(kyai) = &output.kyai {
            result.cite(&kyai.dataset, Some(&kyai.dataset_sha256));
            result.question_set = Some(question_set(kyai));
        } else if let Some(cache) = &output.kv_cache {
            result.cite(&cache.dataset, cache.dataset_sha256.as_deref());
        }
        match ToolCode::of(&output.invocation.tool_code) {
            Some(ToolCode::Inferencex) => {
                let mut inferencex = output.inferencex.clone().unwrap_or_default();
                // What the agent does not know of its own run.
                let dimensions = &mut inferencex.dimensions;
                dimensions.hardware = dimensions.hardware.take().or_else(|| server?.gpu_name.clone());
                dimensions.image = dimensions.image.take().or_else(|| job.spec.container_image.clone());
                let own = of_inferencex(&output.figures, &inferencex, &output.load.model_id);
                self.inferencex
                    .put(ExternalRow::of_job(job, server, output, simulated, own, recorded), position);
            }
            Some(ToolCode::GenaiPerf) => {
                let own = of_genai_perf(&output.figures);
                self.genai_perf
                    .put(ExternalRow::of_job(job, server, output, simulated, own, recorded), position);
            }
            Some(ToolCode::KvCacheOffload) => {
                let own = of_kv_cache(output, job.spec.num_rounds);
                self.kv_cache
                    .put(ExternalRow::of_job(job, server, output, simulated, own, recorded), position);
            }
            Some(ToolCode::Kyai) => {
                let own = of_kyai(output);
                self.kyai.put(ExternalRow::of_job(job, server, output, simulated, own, recorded), position);
            }
            _ => {}
        }
        self.results.put(result, position);
    }

    /// A result that was measured elsewhere.
    fn imported(&mut self, recorded: &Recorded, output: &ToolOutputImported) -> Result<(), FoldError> {
        let key = ImportKey::from_stream(&recorded.stream)?;
        let rights = access::rights(&self.rights, &key.org, &key.project)?;
        let position = recorded.position;
        self.results.put(ResultRow::of_import(&key, output, rights.clone(), recorded), position);
        if let Some(inferencex) = &output.inferencex {
            let own = of_inferencex(&output.figures, inferencex, &output.load.model_id);
            self.inferencex.put(ExternalRow::of_import(key, output, own, rights, recorded), position);
        }
        Ok(())
    }

    fn want_power(&mut self, job: &str, attempt: u32, window: Option<(i64, i64)>) {
        for minute in window.into_iter().flat_map(minutes) {
            self.power.want((job.to_owned(), attempt, minute));
        }
    }
}
