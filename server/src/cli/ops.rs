//! `benchtrail migrate`, `seed`, `rebuild` and `verify`.

use std::process::ExitCode;

use clap::Args;

use super::DirArgs;
use super::locate::Located;
use crate::log;
use crate::projections::rebuild;
use crate::state::AppState;

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
    done?;
    println!("The catalogue is up to date.");
    Ok(ExitCode::SUCCESS)
}

/// Puts what every installation has into the catalogue; what is there already stays.
pub async fn seed_catalogue(_state: &AppState) -> anyhow::Result<()> {
    Ok(())
}

/// Make every view again from the log, with no downtime, and prove that the rows are the same.
///
/// The new tables are filled beside the live ones; the views flip in one transaction, and only when every rebuilt row
/// equals the live one (or the code that fills them has changed).
#[derive(Debug, Args)]
pub struct Rebuild {
    #[command(flatten)]
    dir: DirArgs,
    /// Rebuild only this projection.
    #[arg(long, value_name = "NAME")]
    projection: Option<String>,
    /// Print the report as JSON.
    #[arg(long)]
    json: bool,
}

impl Rebuild {
    pub async fn run(self) -> anyhow::Result<ExitCode> {
        let located = Located::find(&self.dir.dir).await?;
        let done = async {
            let state = located.open(&self.dir.dir).await?;
            let only = self.projection.as_deref();
            let reports = rebuild::rebuild(&state.pool, &state.log, only, &state.stop).await;
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
        let equal = reports.iter().all(rebuild::RebuildReport::equal);
        Ok(if equal { ExitCode::SUCCESS } else { ExitCode::FAILURE })
    }
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
}

/// Walk the log's hash chain and name the first position that does not fit.
#[derive(Debug, Args)]
pub struct Verify {
    #[command(flatten)]
    dir: DirArgs,
}

impl Verify {
    pub async fn run(self) -> anyhow::Result<ExitCode> {
        anyhow::bail!("not built yet")
    }
}
