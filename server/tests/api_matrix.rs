//! Who sees what: everybody who may ask, in two organisations, against projects of every visibility, through every view,
//! its exports, the live stream, the history, the proofs, the reports, the files and the commands.
//!
//! Made from the tables of views, kinds of streams and commands: one that has no entry here fails.

mod common;
#[path = "matrix/world.rs"]
mod matrix;
mod plane;
mod reading;

use std::collections::BTreeSet;
use std::time::Duration;

use events::envelope::ActorKind;
use events::keys::{KINDS, PLATFORM_ORG, StreamKey};
use futures::StreamExt;
use matrix::{Caller, FILE_OF_ALL, Mark, ORGS, Project, UPLOADED, World};
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::RowAccessor;
use reqwest::Method;
use serde_json::{Map, Value, json};
use server::api::rpc::COMMANDS;
use server::projections::views::{self, ViewDef};
use sha2::{Digest, Sha256};

/// How long anything may take before it counts as never.
const PATIENCE: Duration = Duration::from_secs(60);

/// Who sees the rows of a view that are no project's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Rule {
    /// Everybody the platform's, an organisation its own too.
    Catalogue,
    /// Who works there.
    Members,
    /// Who administers it.
    Administrators,
    /// The person, and who administers the organisation.
    OwnOrAdministered,
    /// The person; what is nobody's, the organisation.
    OwnOrShared,
    /// The rule of the stream of each event, which the test of the streams has.
    Streams,
}

fn rule(view: &str) -> Rule {
    match view {
        "v_models"
        | "v_frameworks"
        | "v_accelerator_types"
        | "v_server_configs"
        | "v_tools"
        | "v_metric_catalogue"
        | "v_framework_engine_args_sets"
        | "v_framework_engine_args_templates"
        | "v_framework_engine_args_values"
        | "v_prompt_sources"
        | "v_prompt_libraries_with_prompt_count"
        | "v_prompt_source_calibrations" => Rule::Catalogue,
        "v_servers"
        | "v_dangerous_arg_approvals"
        | "v_tool_args_sets"
        | "v_members"
        | "v_organizations"
        | "v_quotas"
        | "v_notification_preferences" => Rule::Members,
        "v_invitations" => Rule::Administrators,
        "v_api_tokens" | "v_audit" => Rule::OwnOrAdministered,
        "v_saved_views" | "v_sessions" | "v_secrets" | "v_webhooks" | "v_notifications" => Rule::OwnOrShared,
        "v_events" => Rule::Streams,
        other => panic!("{other} has no entry: who sees its rows?"),
    }
}

impl Rule {
    fn lets(self, caller: &Caller, mark: &Mark) -> bool {
        let own = caller.org == Some(mark.org) && caller.user.is_some() && caller.user == mark.user;
        match self {
            Self::Catalogue | Self::Members => caller.org == Some(mark.org),
            Self::Administrators => caller.is_admin_of(mark.org),
            Self::OwnOrAdministered => own || caller.is_admin_of(mark.org),
            Self::OwnOrShared => own || (mark.user.is_none() && caller.org == Some(mark.org)),
            Self::Streams => unreachable!("judged by the stream"),
        }
    }
}

fn of_projects(view: &ViewDef) -> bool {
    view.columns.iter().any(|column| column.name == "project_code")
}

/// The rows of a view in a format; every row, whatever the page's size is.
async fn text(caller: &Caller, path: &str, accept: &str) -> String {
    let answer = caller.client.send(caller.client.request(Method::GET, path).header("accept", accept)).await;
    assert!(answer.status.is_success(), "{} at {path}: {}", caller.name, answer.text);
    answer.text
}

/// The projects whose rows are in an answer of `org` and `project_code` by line.
fn projects_of(lines: &str) -> BTreeSet<(String, String)> {
    let pair = |line: &str| {
        let row: Value = serde_json::from_str(line).unwrap();
        (row["org"].as_str().unwrap().to_owned(), row["project_code"].as_str().unwrap().to_owned())
    };
    lines.lines().map(pair).collect()
}

fn expected(world: &World, caller: &Caller) -> BTreeSet<(String, String)> {
    let seen = world.projects.iter().filter(|project| caller.sees(project));
    seen.map(|project| (project.org.to_owned(), project.code.clone())).collect()
}

async fn parquet(caller: &Caller, path: &str) -> BTreeSet<(String, String)> {
    let request = caller.client.request(Method::GET, path).header("accept", "application/vnd.apache.parquet");
    let response = request.send().await.unwrap();
    assert_eq!(response.status(), 200, "{} at {path}", caller.name);
    let file = SerializedFileReader::new(response.bytes().await.unwrap()).unwrap();
    let rows = file.get_row_iter(None).unwrap().map(|row| row.unwrap());
    rows.map(|row| (row.get_string(0).unwrap().clone(), row.get_string(1).unwrap().clone())).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_view_shows_and_exports_what_is_the_readers_and_nothing_else() {
    let world = World::make().await;
    let head = world.plane.head().await;
    for view in views::all().iter().filter(|view| view.served) {
        let name = view.name;
        if !of_projects(view) {
            if rule(name) != Rule::Streams {
                marks(&world, name).await;
            }
            continue;
        }
        for caller in &world.callers {
            let wanted = expected(&world, caller);
            let path = format!("/api/{name}?select=org,project_code");
            let lines = text(caller, &path, "application/x-ndjson").await;
            assert_eq!(projects_of(&lines), wanted, "{} at {name}", caller.name);
            let csv = text(caller, &path, "text/csv").await;
            let pairs = csv.lines().skip(1).map(|line| line.split_once(',').unwrap());
            let found: BTreeSet<_> = pairs.map(|(org, code)| (org.to_owned(), code.to_owned())).collect();
            assert_eq!(found, wanted, "{} at {name}, as CSV", caller.name);
            assert_eq!(parquet(caller, &path).await, wanted, "{} at {name}, as Parquet", caller.name);
            // A filter opens nothing: neither by the project's name nor by everything but the reader's own.
            for project in world.projects.iter().filter(|project| !caller.sees(project)) {
                let path = format!("{path}&or=(project_code.eq.{},org.eq.{})", project.code, project.org);
                let found = projects_of(&text(caller, &path, "application/x-ndjson").await);
                assert!(found.is_subset(&wanted), "{} at {path}: {found:?}", caller.name);
            }
            if view.history.is_some() {
                let path = format!("{path}&as_of={head}");
                let found = projects_of(&text(caller, &path, "application/x-ndjson").await);
                assert_eq!(found, wanted, "{} at {name}, as of {head}", caller.name);
            }
        }
    }
    world.plane.stop().await;
}

/// A view that is no project's: each mark is seen by those whom the rule names.
async fn marks(world: &World, view: &'static str) {
    let of_view: Vec<&Mark> = world.marks.iter().filter(|mark| mark.view == view).collect();
    let platforms_alone = ["v_tools", "v_metric_catalogue"].contains(&view);
    assert_eq!(of_view.is_empty(), platforms_alone, "the world holds nothing to be seen in {view}");
    // The position that an export is of moves with every export, which is an event.
    let path = format!("/api/{view}?provenance=none");
    let anonymous = text(&world.callers[0], &path, "application/x-ndjson").await;
    for caller in &world.callers {
        let answer = text(caller, &path, "application/x-ndjson").await;
        for mark in &of_view {
            let lets = rule(view).lets(caller, mark);
            assert_eq!(answer.contains(&mark.text), lets, "{} at {view}: {}", caller.name, mark.text);
        }
        if platforms_alone || (rule(view) == Rule::Catalogue && caller.org.is_none()) {
            assert_eq!(answer, anonymous, "{} at {view}", caller.name);
        }
        if rule(view) != Rule::Catalogue && caller.org.is_none() {
            assert_eq!(answer, "", "{} at {view}", caller.name);
        }
    }
}

/// Whether the caller may see the events of a stream.
fn sees_stream(world: &World, caller: &Caller, stream: &StreamKey) -> bool {
    let second = stream.parts().into_iter().nth(1).unwrap_or_default();
    let member = caller.org == Some(stream.org());
    let own = member && caller.user.as_deref() == Some(second.as_str());
    match stream.kind() {
        "project" | "workload" | "scenario" | "run" | "job" | "telemetry" | "progress" | "logs"
        | "import" => {
            world.projects.iter().any(|p| p.org == stream.org() && p.code == second && caller.sees(p))
        }
        "config" | "model" | "framework" | "tool" | "accelerator" | "engine_args_set" | "prompt_source" => {
            member || stream.org() == PLATFORM_ORG
        }
        "server" | "org" | "quota" | "approval" | "tool_args_set" => member,
        // The same bytes may be a file of several projects; whoever sees one of them sees that.
        "blob" if second == hex::encode(Sha256::digest(UPLOADED)) => {
            caller.name == format!("owner of {}", stream.org())
        }
        "blob" => match second == FILE_OF_ALL {
            true => world.projects.iter().any(|p| p.org == stream.org() && caller.sees(p)),
            false => match world.projects.iter().find(|project| project.blob == second) {
                Some(project) => caller.sees(project),
                None => member,
            },
        },
        "saved_view" => own || (member && second == "_"),
        // An account is in no organisation.
        "user" => caller.user.as_deref() == Some(second.as_str()),
        "access" => own || caller.is_admin_of(stream.org()),
        "system" => caller.org.is_some(),
        other => panic!("streams of kind {other} have no entry: who sees their events?"),
    }
}

/// One stream of each kind in each project, and in each organisation where the kind is no project's; every person's.
async fn streams(world: &World) -> Vec<StreamKey> {
    let sql = "select stream_key from public.streams order by stream_no";
    let keys: Vec<String> = sqlx::query_scalar(sql).fetch_all(&world.plane.state.pool).await.unwrap();
    let streams = keys.into_iter().map(|key| key.parse::<StreamKey>().unwrap());
    let mut known = BTreeSet::new();
    let stands_for_others = |stream: &StreamKey| {
        let everybodys = stream.org() == PLATFORM_ORG && stream.kind() != "user";
        let second = stream.parts().into_iter().nth(1).filter(|_| !everybodys);
        (stream.kind().to_owned(), stream.org().to_owned(), second)
    };
    streams.filter(|stream| known.insert(stands_for_others(stream))).collect()
}

/// The streams of the events that the live stream gives a caller who asks for everything, up to a position whose event
/// everybody sees; and all that these say.
async fn live(caller: &Caller, last: i64) -> (BTreeSet<String>, String) {
    let topics = [PLATFORM_ORG].into_iter().chain(ORGS).collect::<Vec<_>>().join(",");
    let request = caller.client.request(Method::GET, &format!("/api/live?topics={topics}&after=0"));
    let response = request.send().await.unwrap();
    assert_eq!(response.status(), 200);
    let mut bytes = response.bytes_stream();
    let (mut buffer, mut seen, mut told) = (Vec::new(), BTreeSet::new(), String::new());
    let reading = async {
        while let Some(chunk) = bytes.next().await {
            buffer.extend_from_slice(&chunk.unwrap());
            while let Some(end) = buffer.windows(2).position(|pair| pair == b"\n\n") {
                let message = String::from_utf8(buffer.drain(..end + 2).collect()).unwrap();
                let field =
                    |name: &str| message.lines().find_map(|line| line.strip_prefix(name)).map(str::trim);
                let Some(data) = field("data:").filter(|_| field("event:") != Some("head")) else { continue };
                let event: Value = serde_json::from_str(data).unwrap();
                let Some(stream) = event["stream"].as_str() else { continue };
                seen.insert(stream.to_owned());
                told.push_str(data);
                if event["position"].as_i64() >= Some(last) {
                    return;
                }
            }
        }
    };
    tokio::time::timeout(PATIENCE, reading).await.expect("the last event comes");
    (seen, told)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_stream_is_shown_live_in_its_history_in_the_trail_and_by_proof_to_the_same_people() {
    let world = World::make().await;
    let owner = &world.caller("owner of acme").client;
    // The last event is one that everybody sees.
    let args = json!({"p_project_code": "public-of-acme", "p_name": "Renamed"});
    let last = owner.rpc("rename_project", &args).await.ok()["position"].as_i64().unwrap();
    world.caller("admin of acme").client.rpc("create_checkpoint", &json!({})).await.ok();
    let streams = streams(&world).await;
    let missing: Vec<&&str> =
        KINDS.iter().filter(|kind| !streams.iter().any(|s| s.kind() == **kind)).collect();
    assert_eq!(missing, Vec::<&&str>::new(), "the world holds no stream of these kinds");
    let mut positions = Vec::new();
    for stream in &streams {
        let sql = "select max(e.position) from public.events e join public.streams s using (stream_no) where s.stream_key = $1";
        let position: i64 = sqlx::query_scalar(sql)
            .bind(stream.to_string())
            .fetch_one(&world.plane.state.pool)
            .await
            .unwrap();
        positions.push(position);
    }
    for caller in &world.callers {
        let (live, told) = live(caller, last).await;
        for hidden in world.projects.iter().filter(|project| !caller.sees(project)) {
            // Nor does an event of a stream that more people read name what is hidden.
            let named = told.find(&hidden.code).map(|at| &told[at.saturating_sub(300)..at + 60]);
            assert_eq!(named, None, "{} is told of {}", caller.name, hidden.code);
        }
        let lines = text(caller, "/api/v_events?select=stream", "application/x-ndjson").await;
        let trail: BTreeSet<String> = lines
            .lines()
            .map(|line| serde_json::from_str::<Value>(line).unwrap()["stream"].as_str().unwrap().to_owned())
            .collect();
        for (stream, position) in streams.iter().zip(&positions) {
            let (key, sees) = (stream.to_string(), sees_stream(&world, caller, stream));
            let at = |what: &str| format!("{} at {key}, {what}", caller.name);
            let query: String = url::form_urlencoded::byte_serialize(key.as_bytes()).collect();
            let history = caller.client.get(&format!("/api/history?stream={query}")).await;
            // A file's events are judged one by one: whoever sees none of them finds nothing.
            assert_eq!(history.status.as_u16(), if sees { 200 } else { 404 }, "{}", at("history"));
            let proof = caller.client.get(&format!("/api/proof?position={position}")).await;
            assert_eq!(proof.status.as_u16(), if sees { 200 } else { 404 }, "{}", at("proof"));
            if *position <= last {
                assert_eq!(live.contains(&key), sees, "{}", at("live"));
            }
            // Files and accounts are not in the trail of events; the accounts' own is `v_audit`.
            let told = !["blob", "user", "system"].contains(&stream.kind());
            assert_eq!(trail.contains(&key), sees && told, "{}", at("trail"));
        }
        let known: BTreeSet<&str> = streams.iter().map(StreamKey::kind).collect();
        assert_eq!(known.len(), KINDS.len());
    }
    world.plane.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_results_history_its_report_and_its_files_are_for_those_who_see_the_project() {
    let world = World::make().await;
    for caller in &world.callers {
        for project in &world.projects {
            let wanted = if caller.sees(project) { 200 } else { 404 };
            let Project { org, code, blob, .. } = project;
            let run = format!("{org}/{code}/w1/1");
            for path in [
                format!("/api/history?result=job/{run}/c8-isl512-osl256"),
                format!("/api/report/run/{run}?format=json"),
                format!("/api/report/run/{run}?format=html"),
                format!("/api/blobs/{org}/{blob}"),
            ] {
                let answer = caller.client.get(&path).await;
                assert_eq!(answer.status.as_u16(), wanted, "{} at {path}: {}", caller.name, answer.text);
                if wanted == 404 {
                    // What is hidden is answered as what is not there.
                    let absent =
                        path.replace(code.as_str(), "no-such-project").replace(blob, &"0a".repeat(32));
                    let nothing = caller.client.get(&absent).await.refused();
                    assert_eq!(answer.refused().code, nothing.code, "{} at {path}", caller.name);
                }
            }
        }
    }
    world.plane.stop().await;
}

/// The least that a schema takes: what is required, of the right types.
fn least(document: &Value, schema: &Value) -> Value {
    if let Some(name) = schema["$ref"].as_str() {
        return least(document, document.pointer(name.trim_start_matches('#')).unwrap());
    }
    for choice in ["anyOf", "oneOf", "allOf"] {
        if let Some(choices) = schema[choice].as_array() {
            return least(document, &choices[0]);
        }
    }
    if let Some(one) = schema.get("const").or_else(|| schema["enum"].get(0)) {
        return one.clone();
    }
    let kind = schema["type"].as_str().or_else(|| schema["type"][0].as_str());
    match kind {
        Some("object") => {
            let required = schema["required"].as_array().cloned().unwrap_or_default();
            let field = |name: &Value| {
                let name = name.as_str().unwrap();
                (name.to_owned(), least(document, &schema["properties"][name]))
            };
            Value::Object(required.iter().map(field).collect::<Map<String, Value>>())
        }
        Some("array") => json!([least(document, &schema["items"])]),
        Some("integer" | "number") => json!(schema["minimum"].as_i64().unwrap_or(1).max(1)),
        Some("boolean") => json!(false),
        _ => json!("x"),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_command_on_a_project_one_may_not_see_answers_as_on_one_that_is_not_there() {
    let world = World::make().await;
    let document = world.callers[0].client.get("/api/openapi.json").await.ok();
    let head = world.plane.head().await;
    let mut tried = 0;
    for command in COMMANDS {
        let path = format!("/api/rpc/{}", command.name);
        let schema =
            &document["paths"][&path]["post"]["requestBody"]["content"]["application/json"]["schema"];
        assert!(!schema.is_null(), "{path} is not in the document");
        let resolved = match schema["$ref"].as_str() {
            Some(name) => document.pointer(name.trim_start_matches('#')).unwrap(),
            None => schema,
        };
        // Where a project is made, the name is a wish.
        if resolved["properties"].get("p_project_code").is_none() || command.name == "create_project" {
            continue;
        }
        tried += 1;
        let mut body = least(&document, schema);
        for (name, value) in [
            ("p_workload_code", json!("w1")),
            ("p_run_number", json!(1)),
            ("p_scenario_code", json!("c8-isl512-osl256")),
        ] {
            if resolved["properties"].get(name).is_some() {
                body[name] = value;
            }
        }
        for caller in world.callers.iter().filter(|caller| caller.org.is_some()) {
            for project in world
                .projects
                .iter()
                .filter(|project| !caller.sees(project) && caller.org == Some(project.org))
            {
                body["p_project_code"] = json!(project.code);
                let hidden = caller.client.rpc(command.name, &body).await;
                body["p_project_code"] = json!("no-such-project");
                let absent = caller.client.rpc(command.name, &body).await;
                let at = format!("{} at {}: {}", caller.name, command.name, hidden.text);
                assert_eq!(hidden.status, absent.status, "{at}");
                let told = hidden.refused();
                assert_eq!(told.code, absent.refused().code, "{at}");
                assert!(!told.message.contains(&project.owner), "{at}");
            }
        }
    }
    assert!(tried >= 12, "{tried} commands take a project");
    // Nor does any of it happen: what the control plane itself appends meanwhile is not theirs.
    let changed: Vec<String> = world
        .plane
        .state
        .log
        .read_all(head, 1000)
        .await
        .unwrap()
        .into_iter()
        .filter(|event| event.actor.kind == ActorKind::User)
        .map(|event| event.event_type)
        .collect();
    assert_eq!(changed, Vec::<String>::new());
    world.plane.stop().await;
}
