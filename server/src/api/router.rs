//! The route table: every path, its method, and who may use it. A test reads it, so a route without an entry fails.

use axum::Router;
use axum::extract::Request;
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodRouter, get, post, put};
use events::access::Role;
use events::api::{History, LiveEvent, Session};
use events::report::{
    AgentCredentials, ClaimReply, ClaimRequest, EnrolReply, EnrolRequest, Heartbeat, HeartbeatReply,
    ReportBatch, ReportReply, SecretsReply, SecretsRequest,
};
use http::Method;
use tower_http::catch_panic::CatchPanicLayer;
use tower_http::compression::CompressionLayer;

use super::contract::Contract;
use super::{
    agent, blobs, bootstrap, edge, error, health, history, limits, live, metrics, oidc, openapi, page,
    report, rpc, session, views,
};
use crate::auth::{Denied, Principal};
use crate::ingest;
use crate::state::AppState;

/// Who may use a route. What they then see is a matter of their `Visibility`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// Everybody, anonymous readers included; what is shown depends on who asks.
    Anyone,
    /// A person with at least this role, by session or token.
    Person(Role),
    /// A person by a session, not by a token: for what concerns the account itself.
    Session,
    /// An enrolled agent.
    Agent,
}

impl Access {
    /// Whether this principal may use the route.
    ///
    /// # Errors
    /// [`Denied`] says what is missing.
    pub fn allows(self, principal: &Principal) -> Result<(), Denied> {
        match (self, principal) {
            (Self::Anyone, _) | (Self::Agent, Principal::Agent { .. }) => Ok(()),
            (Self::Agent, _) => Err(Denied::OnlyAgents),
            (Self::Session, Principal::User { .. }) => Ok(()),
            (Self::Session, principal) => principal.require(Role::Viewer).and(Err(Denied::OnlySessions)),
            (Self::Person(role), principal) => principal.require(role).map(drop),
        }
    }
}

/// One route.
pub struct Route {
    /// The method.
    pub method: Method,
    /// The path's pattern.
    pub path: &'static str,
    /// Who may use it.
    pub access: Access,
    /// What it is for.
    pub about: &'static str,
    /// What it takes and gives, for the OpenAPI document.
    pub contract: Contract,
    handler: MethodRouter<AppState>,
}

fn read(
    path: &'static str,
    access: Access,
    about: &'static str,
    contract: Contract,
    handler: MethodRouter<AppState>,
) -> Route {
    Route { method: Method::GET, path, access, about, contract, handler }
}

fn write(
    path: &'static str,
    access: Access,
    about: &'static str,
    contract: Contract,
    handler: MethodRouter<AppState>,
) -> Route {
    Route { method: Method::POST, path, access, about, contract, handler }
}

/// Every route.
pub fn routes() -> Vec<Route> {
    use Access::{Agent, Anyone};
    let json = Contract::default;
    vec![
        // The process.
        read(
            "/healthz",
            Anyone,
            "The process is alive.",
            json().gives::<health::Health>(),
            get(health::healthz),
        ),
        read(
            "/readyz",
            Anyone,
            "It can do its work; how far the read tables are.",
            json().gives::<health::Readiness>(),
            get(health::readyz),
        ),
        read(
            "/metrics",
            Anyone,
            "Counters for Prometheus.",
            json().gives_text("text/plain"),
            get(metrics::metrics),
        ),
        // People.
        read("/api/session", Anyone, "Who is asking.", json().gives::<Session>(), get(session::session)),
        write(
            "/api/rpc/{command}",
            Anyone,
            "Every command; who may is in `rpc::COMMANDS`.",
            json(),
            post(rpc::call),
        ),
        read(
            "/api/blobs/{org}/{sha256}",
            Anyone,
            "A blob of a job in a project you may see.",
            json().gives_text("application/octet-stream").gives_text("text/plain"),
            get(blobs::get),
        ),
        Route {
            method: Method::PUT,
            path: "/api/uploads/{sha256}",
            access: Access::Person(Role::Member),
            about: "Uploads a file, named by its hash, for a command to name.",
            contract: json().takes_bytes("application/octet-stream").gives::<blobs::Uploaded>(),
            handler: put(blobs::upload),
        },
        // Reads.
        read("/api/{view}", Anyone, "The rows of a view that the caller may see.", json(), get(views::view)),
        read(
            "/api/history",
            Anyone,
            "The events of a stream, or behind a result.",
            json().query::<history::HistoryQuery>().gives::<History>(),
            get(history::history),
        ),
        read(
            "/api/proof",
            Anyone,
            "The proof that an event is in the log.",
            json().query::<history::ProofQuery>().gives::<crate::queries::history::Proved>(),
            get(history::proof),
        ),
        read(
            "/api/live",
            Anyone,
            "The log as it grows, as server-sent events.",
            json()
                .query::<live::LiveQuery>()
                .headers(&[("last-event-id", "The position of the last event that the client has.")])
                .gives_events::<LiveEvent>(),
            get(live::live),
        ),
        read(
            "/api/report/{*run}",
            Anyone,
            "Everything about a run in one piece, with the proofs.",
            json()
                .query::<report::ReportQuery>()
                .gives::<crate::queries::report::Report>()
                .gives_text("text/html"),
            get(report::get),
        ),
        // What this is.
        read(
            "/api/openapi.json",
            Anyone,
            "This API as an OpenAPI document.",
            json().gives::<serde_json::Value>(),
            get(openapi::openapi),
        ),
        read("/api/docs", Anyone, "The same for people.", json().gives_text("text/html"), get(openapi::docs)),
        read(
            "/api/oidc/callback",
            Anyone,
            "A browser comes back from the OpenID provider.",
            json().query::<crate::auth::oidc::Returned>(),
            get(oidc::callback),
        ),
        // Agents.
        read(
            "/api/agent/bootstrap.sh",
            Anyone,
            "The script that installs the agent on a host; holds no secret.",
            json().gives_text("text/x-shellscript"),
            get(bootstrap::script),
        ),
        read(
            "/api/agent/programs/{name}",
            Anyone,
            "A program for an agent's host, named with its SHA-256 in that script.",
            json().gives_text("application/octet-stream"),
            get(bootstrap::program),
        ),
        write(
            "/api/agent/secrets",
            Agent,
            "What the job that the agent holds needs.",
            json().takes::<SecretsRequest>().gives::<SecretsReply>(),
            post(agent::secrets),
        ),
        write(
            "/api/agent/enrol",
            Anyone,
            "A one-time token becomes an agent token.",
            json().takes::<EnrolRequest>().gives::<EnrolReply>(),
            post(agent::enrol),
        ),
        write(
            "/api/agent/credentials",
            Agent,
            "Short-lived NATS credentials.",
            json().gives::<AgentCredentials>(),
            post(agent::credentials),
        ),
        Route {
            method: Method::PUT,
            path: "/api/agent/blobs/{sha256}",
            access: Agent,
            about: "Uploads bytes, named by their hash.",
            contract: json().takes_bytes("application/octet-stream").gives::<blobs::Uploaded>(),
            handler: put(blobs::put),
        },
        read(
            "/api/agent/sources/{sha256}",
            Agent,
            "The rows of a prompt source of the agent's organisation.",
            json().gives_text("application/x-ndjson"),
            get(blobs::source),
        ),
        write(
            "/api/agent/reports",
            Agent,
            "A batch of reports.",
            json().takes::<ReportBatch>().gives::<ReportReply>(),
            post(ingest::http::reports),
        ),
        write(
            "/api/agent/heartbeat",
            Agent,
            "The agent is alive.",
            json().takes::<Heartbeat>().gives::<HeartbeatReply>(),
            post(ingest::http::heartbeat),
        ),
        write(
            "/api/agent/claim",
            Agent,
            "The agent asks for work.",
            json().takes::<ClaimRequest>().gives::<ClaimReply>(),
            post(ingest::http::claim),
        ),
    ]
}

async fn enforce(access: Access, principal: Principal, request: Request, next: Next) -> Response {
    match access.allows(&principal) {
        Ok(()) => next.run(request).await,
        Err(denied) => error::Failure::from(denied).into_response(),
    }
}

/// The whole service.
pub fn router(state: AppState) -> Router {
    let mut router = Router::new();
    for route in routes() {
        let access = route.access;
        let guarded = route.handler.route_layer(middleware::from_fn(
            move |principal: Principal, request: Request, next: Next| {
                enforce(access, principal, request, next)
            },
        ));
        router = router.route(route.path, guarded);
    }
    // The last layer is the outermost.
    router
        .fallback(page::fallback)
        .method_not_allowed_fallback(error::wrong_method)
        .layer(middleware::from_fn_with_state(state.clone(), limits::limit))
        .layer(middleware::from_fn_with_state(state.clone(), edge::authenticate))
        .layer(CatchPanicLayer::custom(error::panicked))
        .layer(middleware::from_fn_with_state(state.clone(), edge::secure))
        // Leaves server-sent events alone: a compressed stream is a buffered one.
        .layer(CompressionLayer::new())
        .layer(middleware::from_fn_with_state(state.clone(), edge::observe))
        .with_state(state)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::rpc::COMMANDS;
    use crate::projections::views::History;
    use std::fmt::Write as _;

    fn who(access: Access) -> &'static str {
        match access {
            Access::Anyone => "everybody",
            Access::Agent => "an agent",
            Access::Session => "a person, by session",
            Access::Person(Role::Viewer) => "viewer",
            Access::Person(Role::Member) => "member",
            Access::Person(Role::Admin) => "admin",
        }
    }

    fn docs() -> String {
        let mut out = String::from(
            "# The API\n\n\
             Generated from the route table (`server/src/api/router.rs`) and the commands (`server/src/api/commands.rs`): \
             `UPDATE_DOCS=1 cargo test -p benchtrail-server api_docs`. A running control plane shows the same with every \
             argument, column and type at `/api/docs`, as OpenAPI at `/api/openapi.json`.\n\n\
             Every error is JSON: `{code, message, details, hint}`. People send a session cookie (changes then need \
             `x-benchtrail-csrf: 1`) or `Authorization: Bearer bt_u_…`, agents `Authorization: Bearer bt_a_…`. \
             Commands take `Idempotency-Key`; reads take `Prefer: at-least=<position>`.\n\n\
             ## Routes\n\n| Method | Path | Who | What |\n| --- | --- | --- | --- |\n",
        );
        for route in routes() {
            let Route { method, path, access, about, .. } = route;
            let _ = writeln!(out, "| {method} | `{path}` | {} | {about} |", who(access));
        }
        out.push_str(
            "\n## Commands\n\n`POST /api/rpc/<command>`\n\n| Command | Who | What |\n| --- | --- | --- |\n",
        );
        for command in COMMANDS {
            let _ = writeln!(out, "| `{}` | {} | {} |", command.name, who(command.access), command.about);
        }
        out.push_str(
            "\n## Views\n\n`GET /api/<view>`, in PostgREST's dialect. `as_of=<position or time>` answers as things stood \
             then, to those who may see them now. Results keep every version of a row. Of jobs, runs, scenarios, doubts and \
             telemetry in short, what has changed since is folded again from the log: at most 1,000 rows of a table, so \
             ask with a filter by project, workload, run or job where more was going on. A position or a time that is not there yet \
             is refused (`position_ahead`), as is `as_of` on a view that cannot answer it (`no_history`).\n\n\
             An export holds every value as it is: a text that begins with `=`, `+`, `-` or `@` stands in a CSV unchanged, so \
             import such a file as text where a spreadsheet would take it for a formula. A file that breaks off is not whole: \
             its transfer ends with an error, also where the client took nothing for a minute.\n\n\
             | View | `as_of` |\n| --- | --- |\n",
        );
        for view in crate::projections::views::all().iter().filter(|view| view.served) {
            let past = match view.history {
                Some(History::Versions(_)) => "by versions",
                Some(History::Folded) => "by folding",
                None => "",
            };
            let _ = writeln!(out, "| `{}` | {past} |", view.name);
        }
        out
    }

    #[test]
    fn the_api_docs_are_those_of_the_route_table() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/API.md");
        if std::env::var_os("UPDATE_DOCS").is_some() {
            std::fs::write(path, docs()).unwrap();
        }
        let written = std::fs::read_to_string(path).unwrap_or_default();
        assert!(
            written == docs(),
            "docs/API.md is out of date: UPDATE_DOCS=1 cargo test -p benchtrail-server api_docs"
        );
    }

    #[test]
    fn a_path_and_method_occur_once() {
        let mut seen = std::collections::HashSet::new();
        for route in routes() {
            assert!(seen.insert((route.method.clone(), route.path)), "{} {}", route.method, route.path);
        }
    }
}
