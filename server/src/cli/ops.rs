//! `benchtrail migrate`, `seed`, `rebuild` and `verify`.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context as _;
use clap::Args;
use events::merkle::{Checkpoint, Proof};
use events::proof_file::{Held, ProofFile, lead_to};
use serde::Deserialize;
use serde_json::{Value, json};

use super::DirArgs;
use super::locate::Located;
use crate::config::archive_dir;
use crate::log::{self, VerifyOptions, VerifyReport};
use crate::projections::rebuild::Differing;
use crate::projections::{ProjectionError, rebuild, registry};
use crate::seed::{self, Seeded};
use crate::state::AppState;

/// The exit code of `verify` when something does not fit.
const DOES_NOT_FIT: u8 = 3;
/// What `verify --proof` exits with where the events hold, and the figure takes more than they say.
const NOT_WORKED_OUT: u8 = 4;

/// Creates or upgrades the tables.
pub async fn migrate(args: &DirArgs) -> anyhow::Result<ExitCode> {
    let located = Located::find(&args.dir).await?;
    let done = log::migrate(&located.database_url).await;
    located.close().await;
    done?;
    println!("The tables are up to date.");
    Ok(ExitCode::SUCCESS)
}

/// Fills the catalogue.
pub async fn seed(args: &DirArgs) -> anyhow::Result<ExitCode> {
    let located = Located::find(&args.dir).await?;
    let done = async { seed_catalogue(&located.open(&args.dir).await?).await }.await;
    located.close().await;
    let Seeded { added, changed, unchanged, kept } = done?;
    println!(
        "The catalogue is up to date: {added} added, {changed} changed, {unchanged} as they were, {kept} kept as \
         somebody left them."
    );
    Ok(ExitCode::SUCCESS)
}

/// Puts what every installation has into the catalogue; what is there already stays.
pub async fn seed_catalogue(state: &AppState) -> anyhow::Result<Seeded> {
    Ok(seed::seed(&state.log).await?)
}

/// Make every view again from the log, with no downtime, and prove that the rows are the same.
///
/// The new tables are filled beside the live ones; the views flip in one transaction, and only when every rebuilt row
/// equals the live one (or the code that fills them has changed). Exits with 1 where rows differ and were not replaced.
#[derive(Debug, Args)]
pub struct Rebuild {
    #[command(flatten)]
    dir: DirArgs,
    /// Rebuild only this projection.
    #[arg(long, value_name = "NAME", value_parser = clap::builder::PossibleValuesParser::new(projection_names()))]
    projection: Option<String>,
    /// Let the rebuilt rows take the live ones' place although they differ: the log is the truth.
    #[arg(long)]
    replace: bool,
    /// Print the report as JSON.
    #[arg(long)]
    json: bool,
}

fn projection_names() -> Vec<&'static str> {
    registry().iter().map(|projection| projection.name()).collect()
}

impl Rebuild {
    pub async fn run(self) -> anyhow::Result<ExitCode> {
        let located = Located::find(&self.dir.dir).await?;
        let done = async {
            let state = located.open(&self.dir.dir).await?;
            let only = self.projection.as_deref();
            let differing = if self.replace { Differing::Replace } else { Differing::Refused };
            let reports = rebuild::rebuild_with(&state.pool, &state.log, only, differing, &state.stop).await;
            state.stop.cancel();
            anyhow::Ok(reports?)
        }
        .await;
        located.close().await;
        let reports = done?;
        if self.json {
            println!("{}", serde_json::to_string_pretty(&reports)?);
        } else {
            reports.iter().for_each(say_rebuilt);
        }
        let flipped = reports.iter().all(|report| report.flipped);
        Ok(if flipped { ExitCode::SUCCESS } else { ExitCode::FAILURE })
    }
}

/// Ends the program as clap does for what it finds by itself.
fn wrong_usage(what: &str) -> ! {
    clap::Error::raw(clap::error::ErrorKind::ValueValidation, format!("{what}\n")).exit()
}

fn say_rebuilt(report: &rebuild::RebuildReport) {
    let per_second = if report.fold_s > 0.0 { report.events as f64 / report.fold_s } else { 0.0 };
    println!(
        "{}: {} events in {:.2} s ({per_second:.0} a second), generation {} → {}{}",
        report.projection,
        report.events,
        report.fold_s,
        report.from_generation,
        report.to_generation,
        if report.flipped { "" } else { ", not flipped" }
    );
    for table in &report.tables {
        let verdict = if table.equal { "equal" } else { "DIFFERS" };
        println!(
            "  {:<40} {verdict}  {} rows live, {} rebuilt, sha256 {}",
            table.table, table.rows_live, table.rows_rebuilt, table.sha256_rebuilt
        );
    }
    if report.being_read {
        println!("  {}", ProjectionError::BeingRead(report.projection.clone()));
    } else if !report.flipped {
        println!(
            "  The live tables are not what the log gives, and are still shown. Once you have looked into it (the rebuilt \
             ones are kept in the schema `read`, generation {}, until the next rebuild), put the log's in their place: \
             benchtrail rebuild --projection {} --replace",
            report.to_generation, report.projection
        );
    }
}

/// Walk the log's hash chain and name the first position that does not fit.
///
/// Looked at: every position is there, each event's content gives its hash, each stream's versions go up by one, and
/// every signed checkpoint holds. A checkpoint that was kept elsewhere (--checkpoint) finds even a log that was
/// rewritten as a whole. Exits with 3 when something does not fit.
#[derive(Debug, Args)]
pub struct Verify {
    #[command(flatten)]
    dir: DirArgs,
    /// The first position to look at; the hash before it is taken on trust.
    #[arg(long, default_value_t = 1, value_name = "POSITION")]
    from: i64,
    /// The last position to look at; the head by default.
    #[arg(long, value_name = "POSITION")]
    to: Option<i64>,
    /// A signed checkpoint in JSON, as `POST /api/rpc/create_checkpoint` answered it.
    #[arg(long, value_name = "FILE")]
    checkpoint: Option<PathBuf>,
    /// Accept only checkpoints signed with this public key (hexadecimal). May be given several times.
    #[arg(long = "key", value_name = "HEX", value_parser = public_key)]
    keys: Vec<[u8; 32]>,
    /// Check a figure's proof instead, as the page saved it, or the events of a run's report in JSON: alone, without a log
    /// or a database. Exits with 4 where the events hold, but a figure takes more than they say.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["from", "to", "checkpoint"])]
    proof: Option<PathBuf>,
    /// The file whose line the proof is about, where it is too long to be in the proof itself: a job's request log.
    #[arg(long, value_name = "FILE", requires = "proof")]
    file: Option<PathBuf>,
    /// Print the report as JSON.
    #[arg(long)]
    json: bool,
}

impl Verify {
    pub async fn run(self) -> anyhow::Result<ExitCode> {
        if let Some(path) = &self.proof {
            return self.check_proof(path);
        }
        let options = self.options()?;
        let located = Located::find(&self.dir.dir).await?;
        let done = async {
            let pool = sqlx::PgPool::connect(&located.database_url).await?;
            let archive = log::Archive::open(&archive_dir(&self.dir.dir))?;
            let report = log::verify(&pool, &VerifyOptions { archive, ..options }, |_| {}).await?;
            pool.close().await;
            anyhow::Ok(report)
        }
        .await;
        located.close().await;
        let report = done?;
        if self.json {
            println!("{}", serde_json::to_string_pretty(&verify_json(&report))?);
        } else {
            say_verified(&report);
        }
        Ok(if report.fault.is_none() { ExitCode::SUCCESS } else { ExitCode::from(DOES_NOT_FIT) })
    }

    /// Checks a saved proof: content, paths, signatures and, where the summary gives it, the figure itself.
    fn check_proof(&self, path: &Path) -> anyhow::Result<ExitCode> {
        let text = std::fs::read_to_string(path).with_context(|| format!("reading {}", path.display()))?;
        if let Ok(report) = serde_json::from_str::<ReportProofs>(&text) {
            return self.check_report(&report);
        }
        let file: ProofFile = serde_json::from_str(&text).with_context(|| {
            format!(
                "{} holds neither a figure's proof, as the page saves it, nor a run's report (GET /api/report/RUN, as JSON)",
                path.display()
            )
        })?;
        let beside = match &self.file {
            None => None,
            Some(path) => Some(std::fs::read(path).with_context(|| format!("reading {}", path.display()))?),
        };
        let held = file
            .check_with(beside.as_deref())
            .map_err(|doubt| doubt.to_string())
            .and_then(|held| self.signed(&file.proofs).map(|()| held));
        let fits = held.is_ok();
        if self.json {
            let report = json!({
                "fits": fits, "result": file.result, "metric": file.metric, "value": file.value, "unit": file.unit,
                "events": held.as_ref().ok().map(|held| held.events),
                "checkpoint": held.as_ref().ok().map(|held| held.checkpoint),
                "key": held.as_ref().ok().map(|held| held.key.clone()),
                "figures_at": held.as_ref().ok().map(|held| held.figures_at),
                "value_checked": held.as_ref().ok().map(|held| held.value_checked),
                "fault": held.as_ref().err(),
            });
            println!("{}", serde_json::to_string_pretty(&report)?);
        } else {
            say_proved(&file, &held, !self.keys.is_empty());
        }
        Ok(match &held {
            Err(_) => ExitCode::from(DOES_NOT_FIT),
            Ok(held) if !held.value_checked => ExitCode::from(NOT_WORKED_OUT),
            Ok(_) => ExitCode::SUCCESS,
        })
    }

    /// Checks the events of a run's report: content, paths and signatures.
    fn check_report(&self, report: &ReportProofs) -> anyhow::Result<ExitCode> {
        let held = lead_to(&report.proofs)
            .map_err(|doubt| doubt.to_string())
            .and_then(|held| self.signed(&report.proofs).map(|()| held));
        if self.json {
            let (checkpoint, key) = held.clone().ok().unzip();
            let answer = json!({
                "fits": held.is_ok(), "events": report.proofs.len(), "checkpoint": checkpoint, "key": key,
                "fault": held.as_ref().err(),
            });
            println!("{}", serde_json::to_string_pretty(&answer)?);
        } else {
            match &held {
                Err(fault) => println!("The report of {} does not hold: {fault}", report.run_key),
                Ok((checkpoint, key)) => {
                    println!("The events of the report of {} hold.", report.run_key);
                    say_signed(report.proofs.len(), *checkpoint, key, !self.keys.is_empty());
                    println!("  its figures are not worked out again: save a figure's own proof for that");
                }
            }
        }
        Ok(if held.is_ok() { ExitCode::SUCCESS } else { ExitCode::from(DOES_NOT_FIT) })
    }

    /// Whether every checkpoint that events lead to is signed, and by a key that is trusted.
    fn signed(&self, proofs: &[Proof]) -> Result<(), String> {
        let mut checkpoints = proofs.iter().map(|proof| &proof.checkpoint);
        checkpoints.find_map(|checkpoint| log::signature_fault(checkpoint, &self.keys)).map_or(Ok(()), Err)
    }

    fn options(&self) -> anyhow::Result<VerifyOptions> {
        let checkpoint: Option<Checkpoint> = match &self.checkpoint {
            None => None,
            Some(path) => {
                let text =
                    std::fs::read_to_string(path).with_context(|| format!("reading {}", path.display()))?;
                let read = serde_json::from_str(&text);
                Some(read.with_context(|| format!("{} does not hold a checkpoint", path.display()))?)
            }
        };
        if self.to.is_some_and(|to| to < self.from) || self.from < 0 {
            let to = self.to.unwrap_or_default();
            wrong_usage(&format!("--from {} --to {to} is not a range of positions", self.from));
        }
        if let Some(at) = checkpoint.as_ref().map(|checkpoint| checkpoint.position)
            && (self.from > at || self.to.is_some_and(|to| to < at))
        {
            wrong_usage(&format!(
                "the checkpoint is of position {at}, which the range leaves out: nothing would be compared with it. \
                 Leave out --from and --to, or choose them around {at}"
            ));
        }
        Ok(VerifyOptions {
            from: self.from,
            to: self.to,
            checkpoint,
            trusted_keys: self.keys.clone(),
            ..VerifyOptions::default()
        })
    }
}

/// Copy every full partition of the log into compressed files that read and verify without the database.
///
/// A partition is a million events. Each becomes a file and its manifest (range, count, chain hash, SHA-256) in
/// FOLDER/archive; those that are there already stay. The database keeps its rows: once you have copied the files to
/// where they are safe, its owner may detach the partition, and reading and verifying go on from the files.
#[derive(Debug, Args)]
pub struct Archive {
    #[command(flatten)]
    dir: DirArgs,
    /// Print the new manifests as JSON.
    #[arg(long)]
    json: bool,
}

impl Archive {
    pub async fn run(self) -> anyhow::Result<ExitCode> {
        let folder = archive_dir(&self.dir.dir);
        let located = Located::find(&self.dir.dir).await?;
        let done = async {
            let pool = sqlx::PgPool::connect(&located.database_url).await?;
            let made = log::archive_sealed(&pool, &folder).await?;
            pool.close().await;
            anyhow::Ok(made)
        }
        .await;
        located.close().await;
        let made = done?;
        if self.json {
            println!("{}", serde_json::to_string_pretty(&made)?);
            return Ok(ExitCode::SUCCESS);
        }
        for manifest in &made {
            println!(
                "{}: positions {} to {}, {} bytes, sha256 {}",
                manifest.file,
                manifest.first,
                manifest.last,
                manifest.bytes,
                hex::encode(manifest.sha256)
            );
        }
        if made.is_empty() {
            println!("No further partition is full. What is archived lies in {}.", folder.display());
        }
        Ok(ExitCode::SUCCESS)
    }
}

fn public_key(text: &str) -> Result<[u8; 32], String> {
    let bytes = hex::decode(text).ok().and_then(|bytes| bytes.try_into().ok());
    bytes.ok_or_else(|| format!("{text:?} is not a public key: 64 hexadecimal digits"))
}

fn say_proved(file: &ProofFile, held: &Result<Held, String>, trusted: bool) {
    let value = file.value.map_or_else(|| "no value".to_owned(), |value| format!("{value} {}", file.unit));
    match held {
        Err(fault) => println!("The proof of {} of {} does not hold: {fault}", file.metric, file.result),
        Ok(held) if held.value_checked => {
            println!("The proof holds: {} of {} is {value}.", file.metric, file.result);
            match (&file.samples, &file.line) {
                (Some(samples), _) => {
                    println!("  the mean of {} at {} to {}", samples.source, samples.from, samples.to)
                }
                (None, Some(line)) => {
                    println!("  by line {} of the file of SHA-256 {}", line.number, line.sha256)
                }
                (None, None) => println!("  by the summary at position {}", held.figures_at),
            }
            say_signed(held.events, held.checkpoint, &held.key, trusted);
        }
        Ok(held) => {
            println!("The events behind {} of {} hold.", file.metric, file.result);
            say_signed(held.events, held.checkpoint, &held.key, trusted);
            match &file.line {
                Some(line) => println!(
                    "  NOT CHECKED: that it is {value}, in line {} of the file of SHA-256 {}, which is not in the proof: \
                     give it with --file",
                    line.number, line.sha256
                ),
                None => println!(
                    "  NOT CHECKED: that it is {value}. This figure takes more than the summary at position {}: prices, telemetry or \
                     a third-party tool's own arithmetic. `benchtrail rebuild` works all of them out from the log",
                    held.figures_at
                ),
            }
        }
    }
}

/// Says which checkpoint events lead to, and who signed it.
fn say_signed(events: usize, checkpoint: i64, key: &str, trusted: bool) {
    let whose = if trusted { "a key you gave" } else { "its own key; compare it with one you trust (--key)" };
    println!("  {events} events lead to the checkpoint at position {checkpoint}");
    println!("  signed by {key}, {whose}");
}

/// What is checked of a run's report.
#[derive(Deserialize)]
struct ReportProofs {
    run_key: String,
    proofs: Vec<Proof>,
}

/// A verification's report as JSON.
pub fn verify_json(report: &VerifyReport) -> Value {
    json!({
        "fits": report.fault.is_none(),
        "from": report.from,
        "to": report.to,
        "events": report.events,
        "checkpoints": report.checkpoints,
        "keys": report.keys.iter().map(hex::encode).collect::<Vec<_>>(),
        "external_checkpoint": report.external_checkpoint,
        "fault": report.fault.as_ref().map(|fault| json!({"position": fault.position, "what": fault.what})),
    })
}

fn say_verified(report: &VerifyReport) {
    match &report.fault {
        None => {
            let kept = if report.external_checkpoint { ", and the checkpoint kept elsewhere" } else { "" };
            println!(
                "The log fits: {} events (positions {} to {}) and {} checkpoint{}{kept}.",
                report.events,
                report.from,
                report.to,
                report.checkpoints,
                if report.checkpoints == 1 { "" } else { "s" }
            );
        }
        Some(fault) => println!("The log does not fit at position {}: {}", fault.position, fault.what),
    }
    for key in &report.keys {
        println!("  signed by {}", hex::encode(key));
    }
}
