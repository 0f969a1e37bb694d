//! The read models, one file each, and the list of them.

pub mod access;
pub mod artifacts;
pub mod catalogue;
pub mod counts;
pub mod energy;
pub mod external_outputs;
pub mod figure_counts;
pub mod jobs;
mod layout;
pub mod leaderboard;
pub mod logs;
pub mod outputs;
pub mod people;
pub mod projects;
pub mod prompt_sources;
pub mod quality_flags;
pub mod quotas;
pub mod result;
pub mod result_figures;
pub mod result_rows;
pub mod results;
pub mod runs;
pub mod saved_views;
pub mod scenarios;
pub mod servers;
mod setup;
pub mod telemetry;
pub mod telemetry_frame;
pub mod telemetry_series;
pub mod telemetry_summary;
pub mod tool_args_sets;
pub mod tpu_summary;
pub mod workloads;

use super::Projection;

/// Every projection, new and holding nothing. Adding a read model is one file and one line here.
pub fn registry() -> Vec<Box<dyn Projection>> {
    vec![
        Box::new(projects::Projects::default()),
        Box::new(runs::Runs::default()),
        Box::new(servers::Servers::default()),
        Box::new(catalogue::Catalogue::default()),
        Box::new(prompt_sources::PromptSources::default()),
        Box::new(results::Results::default()),
        Box::new(telemetry::Telemetry::default()),
        Box::new(logs::Logs::default()),
        Box::new(saved_views::SavedViews::default()),
        Box::new(tool_args_sets::ToolArgsSets::default()),
        Box::new(artifacts::Artifacts::default()),
        Box::new(people::People::default()),
        Box::new(quotas::Quotas::default()),
    ]
}
