//! What goes with the page itself. The control plane answers what a page asks as it begins before it is asked, and says
//! which part of the program an address needs besides the first: the program then begins with answers, and its parts come
//! side by side. The heading of a page whose address alone says it stands in the HTML: it is painted before any of that.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::api::Session;

/// The id of the element that holds the [`FirstAnswers`], as JSON.
pub const ELEMENT: &str = "first-answers";

/// Who reads, and what the page asks first.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct FirstAnswers<Rows> {
    /// As `GET /api/session` says it. Every answer reaches its position.
    pub session: Session,
    /// The answers, by the path and query that they are asked with.
    pub answers: BTreeMap<String, FirstAnswer<Rows>>,
}

/// An answer of a view.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct FirstAnswer<Rows> {
    /// Its rows.
    pub rows: Rows,
    /// How many there are in all, where that was asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub total: Option<usize>,
}

/// What a page asks first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FirstRequest {
    /// Path and query.
    pub path: &'static str,
    /// Whether it asks how many rows there are in all.
    pub counted: bool,
}

impl FirstRequest {
    const fn rows(path: &'static str) -> Self {
        Self { path, counted: false }
    }

    const fn counted(path: &'static str) -> Self {
        Self { path, counted: true }
    }
}

/// A request for jobs, with what a strip or a line of a job shows and no more.
macro_rules! jobs {
    ($then:literal) => {
        concat!(
            "/api/v_jobs?select=job,org,project_code,workload_code,run_number,scenario_code,model_code,framework_code,config_code,\
             hostname,status,phase,attempt,flags,simulated,error_code,error_message,num_requests,progress_done,progress_total,\
             progress_phase,progress_tokens_per_second,claimed_at,running_at,finished_at&",
            $then
        )
    };
}

/// A request for results, with what the dashboard shows of one.
macro_rules! results {
    ($then:literal) => {
        concat!(
            "/api/v_benchmark_results?select=job,org,project_code,workload_code,run_number,scenario_code,status,flags,\
             suspicious,simulated,imported,requests_succeeded,output_tokens_per_second,ttft_p50_ms,finished_at&",
            $then
        )
    };
}

/// The dashboard: jobs that run or wait.
pub const RUNNING: FirstRequest = FirstRequest::rows(jobs!(
    "status=in.(queued,running)&order=claimed_at.asc.nullslast,position.asc&limit=100"
));
/// The dashboard: jobs that ended last.
pub const ENDED: FirstRequest = FirstRequest::rows(jobs!(
    "status=in.(completed,failed,cancelled)&order=finished_at.desc.nullslast&limit=14"
));
/// The dashboard: the newest results.
pub const RESULTS: FirstRequest = FirstRequest::rows(results!("order=finished_at.desc.nullslast&limit=20"));
/// The dashboard: the newest results that are doubted.
pub const DOUBTED: FirstRequest =
    FirstRequest::counted(results!("suspicious=is.true&order=finished_at.desc.nullslast&limit=5"));
/// The dashboard: what the newest doubts say.
pub const DOUBTS: FirstRequest = FirstRequest::rows(
    "/api/v_quality_flags?select=job,rule,message&cleared=is.false&order=flagged_at.desc&limit=30",
);
/// The dashboard: the servers.
pub const SERVERS: FirstRequest = FirstRequest::rows(
    "/api/v_servers?select=server,config_code,hostname,state,running_job,last_seen&removed=is.false&order=server.asc",
);
/// The dashboard: who leads, one request a category.
pub const LEADERS: [FirstRequest; 4] = [
    FirstRequest::rows("/api/v_leaderboard?category=eq.throughput&limit=1"),
    FirstRequest::rows("/api/v_leaderboard?category=eq.cost_efficiency&limit=1"),
    FirstRequest::rows("/api/v_leaderboard?category=eq.quality&limit=1"),
    FirstRequest::rows("/api/v_leaderboard?category=eq.sustainability&limit=1"),
];
/// Monitoring: jobs that run.
pub const WATCHED: FirstRequest =
    FirstRequest::rows(jobs!("status=eq.running&order=claimed_at.asc&limit=200"));
/// Reporting: the first page of its table, as it is set where the address says nothing.
pub const REPORTED: FirstRequest = FirstRequest::counted(
    "/api/v_benchmark_results?select=job,org,project_code,workload_code,run_number,scenario_code,model_code,framework_code,\
     framework_version,config_code,hostname,gpu_name,gpu_count,status,flags,suspicious,simulated,imported,\
     requests_succeeded,position,output_tokens_per_second,output_tokens_per_second_per_gpu,interactivity_tps,ttft_p50_ms,\
     ttft_p99_ms,output_tokens_per_joule,cost_per_million_output_tokens_usd,finished_at\
     &order=finished_at.desc.nullslast,job.asc&limit=50&offset=0",
);
/// Every page: how many projects there are, for the rail.
pub const PROJECTS: FirstRequest =
    FirstRequest::counted("/api/v_projects?select=project_code&archived=is.false&limit=1");
/// Every page: how many results there are, whatever the filters; for the rail and for Reporting.
pub const EVERYTHING: FirstRequest = FirstRequest::counted("/api/v_benchmark_results?select=job&limit=1");
/// Every page: how many jobs run, for the rail.
pub const JOBS: FirstRequest = FirstRequest::counted("/api/v_jobs?select=job&status=eq.running&limit=1");
/// Every page: how many servers are in which state, for the rail.
pub const STATES: FirstRequest = FirstRequest::rows("/api/v_servers?select=state,server");
/// Every page: models in the order in which they came, which their colours go by.
pub const MODELS: FirstRequest = FirstRequest::rows(
    "/api/v_workloads?select=model_code&order=created_at.asc,workload_code.asc&limit=5000",
);
/// Every page: servers in the order in which they came, which their colours go by.
pub const HOSTS: FirstRequest =
    FirstRequest::rows("/api/v_servers?select=config_code,hostname&order=created_at.asc,server.asc");

/// What the page at an address asks first, as far as that is known without its program.
pub fn requests(path: &str, query: &str) -> Vec<FirstRequest> {
    let mut all = vec![PROJECTS, EVERYTHING, JOBS, STATES, MODELS, HOSTS];
    match (path, query) {
        ("/", _) => {
            all.extend([RUNNING, ENDED, RESULTS, DOUBTED, DOUBTS, SERVERS].into_iter().chain(LEADERS))
        }
        ("/monitoring", _) => all.push(WATCHED),
        ("/reporting", "") => all.push(REPORTED),
        _ => {}
    }
    all
}

/// How a page is headed, where that depends on nothing but its address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Head {
    /// The heading.
    pub title: &'static str,
    /// The sentence beside it; empty where the page says something of what it holds there.
    pub words: &'static str,
}

impl Head {
    const fn of(title: &'static str, words: &'static str) -> Self {
        Self { title, words }
    }
}

/// The heading of Reporting. Its sentence is the largest text of the page, so that nothing larger is painted later.
pub const REPORTING: Head =
    Head::of("Reporting", "every number opens its proof · underlined percentiles rest on few requests");
/// The heading of Monitoring.
pub const MONITORING: Head = Head::of("Monitoring", "jobs as they run; open one for its telemetry and logs");
/// The heading of the catalogue.
pub const CATALOGUE: Head = Head::of(
    "Catalogue",
    "what workloads are made of, where each fact comes from, and what the figures mean",
);
/// The heading of the dashboard.
pub const DASHBOARD: Head = Head::of("Dashboard", "");
/// The heading of the list of projects.
pub const PROJECTS_HEAD: Head = Head::of("Projects", "");
/// The heading of the ranking.
pub const LEADERBOARD: Head = Head::of("Leaderboard", "");
/// The heading of Hardware.
pub const HARDWARE: Head = Head::of("Hardware", "");
/// The heading of the log.
pub const AUDIT: Head = Head::of("Audit", "");

/// How the page at an address is headed, as far as that is known without its program.
pub fn head(path: &str) -> Option<Head> {
    Some(match path {
        "/" => DASHBOARD,
        "/projects" => PROJECTS_HEAD,
        "/reporting" => REPORTING,
        "/monitoring" => MONITORING,
        "/leaderboard" => LEADERBOARD,
        "/hardware" => HARDWARE,
        "/catalogue" => CATALOGUE,
        "/audit" => AUDIT,
        _ => return None,
    })
}

/// The part of the program that an address needs besides the first; nothing where the first is enough.
pub fn part(path: &str) -> Option<&'static str> {
    let words: Vec<&str> = path.split('/').filter(|word| !word.is_empty()).collect();
    match words.as_slice() {
        [] => None,
        ["projects", "import"] => Some("manage"),
        ["projects"] | ["projects", "new"] => Some("plan"),
        ["projects", rest @ ..] => match rest.len() {
            2 | 3 => Some("plan"),
            4 | 5 => Some("work"),
            _ => Some("manage"),
        },
        ["monitoring"] => Some("work"),
        ["reporting" | "leaderboard"] => Some("compare"),
        _ => Some("manage"),
    }
}
