//! The stable views: what the API calls them, their columns, and the tables they are made of.

mod invocations;
mod kyai;
mod leaderboard;
mod people;
mod telemetry;

use std::collections::{BTreeSet, HashMap};
use std::sync::LazyLock;

use super::catalogue_views;
use super::models::artifacts::ArtifactRow;
use super::models::counts::{CountRow, OfJobs, OfResults};
use super::models::external_outputs::{ExternalRow, GenaiPerf, Inferencex, KvCacheOffload, Kyai};
use super::models::figure_counts::FigureCountRow;
use super::models::jobs::JobRow;
use super::models::logs::LogLineRow;
use super::models::outputs::{Asr, Imagegen, Llm, OutputRow, Vlm};
use super::models::projects::ProjectRow;
use super::models::prompt_sources::{CalibrationRow, PromptSourceRow};
use super::models::quality_flags::FlagRow;
use super::models::quotas::QuotaRow;
use super::models::registry;
use super::models::result::ResultRow;
use super::models::runs::RunRow;
use super::models::saved_views::SavedViewRow;
use super::models::scenarios::ScenarioRow;
use super::models::servers::ServerRow;
use super::models::telemetry_series::ChunkRow;
use super::models::tool_args_sets::ToolArgsSetRow;
use super::models::workloads::WorkloadRow;
use super::table::Row;
use super::text::{Column, Kind};

pub use leaderboard::RANK_COLUMNS;

/// The columns every view has for the rule of who may see a row; not all of them are shown.
const ACCESS: [&str; 3] = ["org", "visibility", "owner"];

/// How a view answers for an earlier position.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum History {
    /// By this view, over all versions of the rows.
    Versions(&'static str),
    /// By the same query over its tables as they were, see [`crate::queries::past`].
    Folded,
}

/// One view.
#[derive(Debug, Clone)]
pub struct ViewDef {
    /// Its name in SQL and in the API.
    pub name: &'static str,
    /// The columns the API shows and filters by.
    pub columns: Vec<Column>,
    /// The tables it reads, which stand in `select` in braces.
    pub tables: Vec<&'static str>,
    /// Its query.
    pub select: String,
    /// Whether it reads with the reader's rights, row policies included. Otherwise its own query holds the rule.
    pub invoker: bool,
    /// How `as_of` is answered, where it is.
    pub history: Option<History>,
    /// Whether the API serves it under its own name.
    pub served: bool,
    /// Whether its rows are ranked among those that a query leaves, see [`crate::queries::leaderboard`].
    pub ranked: bool,
}

impl ViewDef {
    /// Whether it shows people by name, for which the reader has to bring the names.
    pub fn names_people(&self) -> bool {
        self.select.contains("app.people")
    }
}

/// Every view.
pub fn all() -> &'static [ViewDef] {
    static VIEWS: LazyLock<Vec<ViewDef>> = LazyLock::new(build);
    &VIEWS
}

/// The view the API serves under this name.
pub fn served(name: &str) -> Option<&'static ViewDef> {
    named(name).filter(|view| view.served)
}

/// The view whose rows say in their column `n` how many rows this view has of each kind, where there is one.
pub fn counts_of(view: &ViewDef) -> Option<&'static ViewDef> {
    named(match view.name {
        "v_benchmark_results" => "v_benchmark_result_counts",
        "v_jobs" => "v_job_counts",
        _ => return None,
    })
}

/// The view that has the rows of this one with the kind that each is counted as (`kind_no`), where there is one.
pub fn by_kind(view: &ViewDef) -> Option<&'static ViewDef> {
    (view.name == "v_benchmark_results").then(|| named("v_benchmark_results_by_kind"))?
}

/// The view whose rows say in their column `n` how many rows of this view have a figure within a stretch of values, where
/// there is one. See [`super::models::figure_counts`].
pub fn figure_counts_of(view: &ViewDef) -> Option<&'static ViewDef> {
    (view.name == "v_benchmark_results").then(|| named("v_benchmark_result_figure_counts"))?
}

fn named(name: &str) -> Option<&'static ViewDef> {
    all().iter().find(|view| view.name == name)
}

/// The projections that fill a view's tables.
pub fn fed_by(view: &ViewDef) -> Vec<&'static str> {
    let names: BTreeSet<&str> = view.tables.iter().filter_map(|table| filled_by(table)).collect();
    names.into_iter().collect()
}

/// The projection that fills a table.
pub fn filled_by(table: &str) -> Option<&'static str> {
    static FILLS: LazyLock<HashMap<&'static str, &'static str>> = LazyLock::new(|| {
        let mut fills = HashMap::new();
        for mut projection in registry() {
            let name = projection.name();
            fills.extend(projection.tables().iter().map(|table| (table.name(), name)));
        }
        fills
    });
    FILLS.get(table).copied()
}

pub(super) fn shown(columns: Vec<Column>) -> Vec<Column> {
    columns.into_iter().filter(|c| !c.hidden).collect()
}

pub(super) fn column(name: &str, kind: Kind) -> Column {
    Column::shown(name, kind)
}

/// The names a view selects: what it shows, and what the rule needs.
pub(super) fn selected(columns: &[Column], prefix: &str) -> String {
    let mut names: Vec<String> = columns.iter().map(|c| format!("{prefix}{}", c.name)).collect();
    for name in ACCESS {
        if !columns.iter().any(|c| c.name == name) {
            names.push(format!("{prefix}{name}"));
        }
    }
    names.join(", ")
}

/// A view of one table as it is.
pub(super) fn plain<R: Row>(name: &'static str) -> ViewDef {
    let columns = shown(R::columns());
    ViewDef {
        name,
        select: format!("select {} from {{{}}}", selected(&columns, ""), R::TABLE),
        columns,
        tables: vec![R::TABLE],
        invoker: true,
        history: None,
        served: true,
        ranked: false,
    }
}

/// Two views of a table whose old versions are kept: the rows as they are now, and all of them.
fn versioned<R: Row>(name: &'static str, history: &'static str) -> [ViewDef; 2] {
    let all = ViewDef { name: history, served: false, ..plain::<R>(name) };
    let now = ViewDef {
        select: format!("{} where valid_to is null", all.select),
        history: Some(History::Versions(history)),
        ..plain::<R>(name)
    };
    [all, now]
}

/// A view that is answered for an earlier position by its tables as they were.
fn folded(view: ViewDef) -> ViewDef {
    ViewDef { history: Some(History::Folded), ..view }
}

fn build() -> Vec<ViewDef> {
    let mut views = vec![
        plain::<ProjectRow>("v_projects"),
        plain::<WorkloadRow>("v_workloads"),
        folded(plain::<ScenarioRow>("v_scenarios")),
        folded(plain::<RunRow>("v_runs")),
        folded(plain::<JobRow>("v_jobs")),
        folded(plain::<FlagRow>("v_quality_flags")),
        plain::<LogLineRow>("v_log_lines"),
        plain::<ArtifactRow>("v_job_artifacts"),
        plain::<PromptSourceRow>("v_prompt_sources"),
        plain::<CalibrationRow>("v_prompt_source_calibrations"),
        prompt_libraries(),
        plain::<ChunkRow>("v_telemetry_chunks"),
        plain::<QuotaRow>("v_quotas"),
        unremoved::<SavedViewRow>("v_saved_views"),
        unremoved::<ToolArgsSetRow>("v_tool_args_sets"),
        servers(),
        folded(telemetry::job_summary()),
        folded(telemetry::gpu_summary()),
        folded(telemetry::tpu_summary()),
        folded(telemetry::job_with_telemetry()),
        telemetry::series(),
        telemetry::buckets(),
        events(),
        leaderboard::leaderboard(),
    ];
    views.extend(invocations::invocations());
    views.extend(catalogue_views::all());
    views.extend(versioned::<OutputRow<Llm>>(
        "v_metrumbench_llm_outputs",
        "v_metrumbench_llm_outputs_history",
    ));
    views.extend(versioned::<OutputRow<Vlm>>(
        "v_metrumbench_vlm_outputs",
        "v_metrumbench_vlm_outputs_history",
    ));
    views.extend(versioned::<OutputRow<Asr>>(
        "v_metrumbench_asr_outputs",
        "v_metrumbench_asr_outputs_history",
    ));
    views.extend(versioned::<OutputRow<Imagegen>>(
        "v_metrumbench_imagegen_outputs",
        "v_metrumbench_imagegen_outputs_history",
    ));
    views
        .extend(versioned::<ExternalRow<Inferencex>>("v_inferencex_outputs", "v_inferencex_outputs_history"));
    views.extend(versioned::<ExternalRow<GenaiPerf>>("v_genai_perf_outputs", "v_genai_perf_outputs_history"));
    views.extend(versioned::<ExternalRow<KvCacheOffload>>(
        "v_kv_cache_offload_outputs",
        "v_kv_cache_offload_outputs_history",
    ));
    views.extend(versioned::<ExternalRow<Kyai>>("v_kyai_outputs", "v_kyai_outputs_history"));
    views.extend(kyai::leaderboard());
    views.extend(versioned::<ResultRow>("v_benchmark_results", "v_benchmark_results_history"));
    views.push(results_by_kind());
    views.push(ViewDef { served: false, ..plain::<CountRow<OfResults>>("v_benchmark_result_counts") });
    views.push(ViewDef { served: false, ..plain::<FigureCountRow>("v_benchmark_result_figure_counts") });
    views.push(ViewDef { served: false, ..plain::<CountRow<OfJobs>>("v_job_counts") });
    views.extend(people::views());
    views
}

/// Results with the kind that each is counted as.
fn results_by_kind() -> ViewDef {
    let view = plain::<ResultRow>("v_benchmark_results_by_kind");
    let select = format!(
        "select {}, kind_no from {{{}}} where valid_to is null",
        selected(&view.columns, ""),
        ResultRow::TABLE
    );
    ViewDef { select, served: false, ..view }
}

/// Servers, with what is no event: when the agent was last heard, and which job it runs, where the reader may see that.
fn servers() -> ViewDef {
    let own = shown(ServerRow::columns());
    let mut columns = own.clone();
    columns.extend([column("last_seen", Kind::Time), column("running_job", Kind::Text)]);
    ViewDef {
        name: "v_servers",
        select: format!(
            "select {}, p.last_seen,
                    (select j.job from {{jobs}} j where j.server = s.server and j.status = 'running'
                      order by j.position desc limit 1) as running_job
               from {{servers}} s
               left join public.presence p on p.agent_org = s.org and p.agent = s.config_code || '~' || s.hostname",
            selected(&own, "s.")
        ),
        columns,
        tables: vec!["servers", "jobs"],
        invoker: true,
        history: None,
        served: true,
        ranked: false,
    }
}

/// A view of what people keep and remove.
fn unremoved<R: Row>(name: &'static str) -> ViewDef {
    let view = plain::<R>(name);
    ViewDef { select: format!("{} where not removed", view.select), ..view }
}

/// The prompt libraries alone.
fn prompt_libraries() -> ViewDef {
    let view = plain::<PromptSourceRow>("v_prompt_libraries_with_prompt_count");
    ViewDef { select: format!("{} where source_type = 'prompt_library'", view.select), ..view }
}

/// The audit trail: every event's envelope. Reads the log itself, so the rule stands in the view: what belongs to a
/// project follows the project, accounts see their own doings, the catalogue is everyone's, the rest is the
/// organisation's.
fn events() -> ViewDef {
    ViewDef {
        name: "v_events",
        select: "
            select e.position, s.stream_key as stream, e.version, e.event_type as type, e.schema_version, k.org,
                   e.actor_kind, e.actor_id, p.known -> e.actor_id ->> 'n' as actor_name, e.occurred_at, e.recorded_at, e.event_id::text as event_id,
                   e.causation_id::text as causation_id, e.correlation_id::text as correlation_id,
                   encode(e.hash, 'hex') as hash, a.visibility, a.owner
              from public.events e
              join public.streams s on s.stream_no = e.stream_no
              cross join (
                   select coalesce(nullif(current_setting('app.people', true), ''), '{}')::jsonb as known) p
              cross join lateral (
                   select split_part(s.stream_key, '/', 1) as kind, split_part(s.stream_key, '/', 2) as org,
                          split_part(s.stream_key, '/', 3) as second) k
              cross join lateral (
                   select p.visibility, p.owner from {projects} p
                    where k.kind in ('project', 'workload', 'scenario', 'run', 'job', 'telemetry', 'progress', 'logs',
                                    'import')
                      and p.org = k.org and p.project_code = k.second
                   union all
                   select 'public', ''
                    where k.kind in ('model', 'framework', 'config', 'tool', 'accelerator', 'engine_args_set',
                                     'prompt_source') and k.org = '_'
                   union all
                   select case when (select current_setting('app.role', true)) = 'admin' then 'organization'
                               else 'private' end, k.second where k.kind = 'access'
                   union all
                   select case when k.second = '_' then 'organization' else 'private' end, k.second
                    where k.kind = 'saved_view'
                   union all
                   select 'organization', '' where k.kind in ('server', 'org', 'quota', 'approval', 'tool_args_set')
                       or (k.kind in ('model', 'framework', 'config', 'tool', 'accelerator', 'engine_args_set',
                                     'prompt_source')
                           and k.org <> '_')) a
             where a.visibility = 'public'
                or (a.visibility = 'organization' and k.org = (select current_setting('app.org', true)))
                or (a.visibility = 'private' and a.owner <> ''
                    and a.owner = (select current_setting('app.user', true))
                    and k.org = (select current_setting('app.org', true)))"
            .to_owned(),
        columns: vec![
            column("position", Kind::Int),
            column("stream", Kind::Text),
            column("version", Kind::Int),
            column("type", Kind::Text),
            column("schema_version", Kind::Int),
            column("org", Kind::Text),
            column("actor_kind", Kind::Text),
            column("actor_id", Kind::Text),
            column("actor_name", Kind::Text),
            column("occurred_at", Kind::Time),
            column("recorded_at", Kind::Time),
            column("event_id", Kind::Text),
            column("causation_id", Kind::Text),
            column("correlation_id", Kind::Text),
            column("hash", Kind::Text),
        ],
        tables: vec!["projects"],
        invoker: false,
        history: None,
        served: true,
        ranked: false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_view_shows_who_owns_a_row_but_that_of_projects() {
        for view in all().iter().filter(|v| v.name != "v_projects") {
            assert!(!view.columns.iter().any(|c| c.name == "owner"), "{}", view.name);
        }
    }

    #[test]
    fn every_view_is_fed_by_the_projections_of_its_tables() {
        let of = |name: &str| fed_by(served(name).unwrap());
        assert_eq!(of("v_benchmark_results"), ["results"]);
        assert_eq!(of("v_job_with_telemetry"), ["runs", "telemetry"]);
        for view in all().iter().filter(|view| !view.tables.is_empty()) {
            assert!(!fed_by(view).is_empty(), "{}", view.name);
        }
    }

    #[test]
    fn no_view_shows_a_column_twice() {
        for view in all() {
            let names: BTreeSet<&str> = view.columns.iter().map(|c| c.name.as_str()).collect();
            assert_eq!(names.len(), view.columns.len(), "{}", view.name);
        }
    }
}
