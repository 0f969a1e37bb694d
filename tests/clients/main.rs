//! Programs that others wrote, unchanged: PostgREST's clients for Python and JavaScript read and command, and
//! schemathesis holds the API to its own OpenAPI document.

use std::path::PathBuf;

use serde_json::{Value, json};
use support::agent::Agent;
use support::api::Api;
use support::binaries::{cache, repository};
use support::control_plane::ControlPlane;
use support::live::Live;
use support::workloads;

/// A control plane with a finished run of three jobs, and a token that may do everything.
struct Scene {
    plane: ControlPlane,
    _agent: Agent,
    admin: Api,
    token: String,
    run: String,
}

impl Scene {
    async fn set() -> Self {
        let plane = ControlPlane::start().await;
        let admin = plane.admin().await;
        let agent = Agent::start(&plane, &admin, "client-host").await;
        let mut server = Live::open(&admin, "main:server", 0).await;
        server.until("the server online", |e| e.payload["state"] == "online").await;
        let (run, _) = agent.execute(&admin, "clients", workloads::refserver(&[1, 2, 4], 5, 8)).await;
        let mut live = Live::open(&admin, run.trim_start_matches("run/"), 0).await;
        let events = live.until("the end of the run", |e| e.event_type == "run.finished").await;
        let finished = events.last().expect("the one that was waited for");
        assert_eq!(finished.payload["outcome"], "completed", "{finished:?}");
        admin.rows_at_least("/api/v_jobs?limit=1", finished.position).await;
        let args = json!({"p_name": "clients", "p_scopes": ["admin"], "p_expires_in_days": 1});
        let reply = admin.command("create_api_token", &args).await;
        let token = reply.keys["token"].as_str().expect("a token").to_owned();
        Self { plane, _agent: agent, admin, token, run }
    }

    fn api(&self) -> String {
        format!("{}/api", self.plane.url)
    }
}

fn client_program(name: &str) -> PathBuf {
    let path = cache().join("venv-clients/bin").join(name);
    assert!(path.exists(), "{} is missing: run scripts/setup test first", path.display());
    path
}

async fn run_to_success(what: &str, command: &mut tokio::process::Command) -> String {
    let output = command.kill_on_drop(true).output().await.unwrap_or_else(|e| panic!("{what}: {e}"));
    let text = [output.stdout, output.stderr].map(|t| String::from_utf8_lossy(&t).into_owned()).concat();
    assert!(output.status.success(), "{what}:\n{text}");
    text
}

#[tokio::test]
async fn postgrests_clients_work_unchanged() {
    let scene = Scene::set().await;
    let scripts = repository().join("tests/clients");
    let mut python = tokio::process::Command::new(client_program("python"));
    python.arg(scripts.join("postgrest_client.py")).args([&scene.api(), &scene.token, &scene.run]);
    run_to_success("PyPI's postgrest", &mut python).await;

    let folder = cache().join("npm");
    assert!(folder.join("node_modules/@supabase/postgrest-js").exists(), "run scripts/setup test first");
    let mut node = tokio::process::Command::new("node");
    node.arg(scripts.join("postgrest_client.mjs")).args([&scene.api(), &scene.token, &scene.run]);
    run_to_success("npm's @supabase/postgrest-js", node.env("NPM_FOLDER", folder)).await;

    let projects: Vec<Value> =
        scene.admin.rows("/api/v_projects?select=project_code&order=project_code").await;
    let codes: Vec<&str> = projects.iter().filter_map(|row| row["project_code"].as_str()).collect();
    assert_eq!(codes, ["by-javascript", "by-python", "clients"]);
}

#[tokio::test]
async fn schemathesis_finds_no_fault() {
    let scene = Scene::set().await;
    let examples = std::env::var("SCHEMATHESIS_EXAMPLES").unwrap_or_else(|_| "10".to_owned());
    let mut command = tokio::process::Command::new(client_program("schemathesis"));
    command
        .current_dir(scene.plane.dir())
        .arg("--config-file")
        .arg(repository().join("tests/clients/schemathesis.toml"))
        .arg("run")
        .arg(format!("{}/openapi.json", scene.api()))
        .args(["--header", &format!("Authorization: Bearer {}", scene.token)])
        .args(["--max-examples", &examples]);
    let said = run_to_success("schemathesis", &mut command).await;
    // It ends well with warnings too: keys of things that are not there are refused, and agents' doors are shut to people.
    let counted =
        said.lines().find_map(|line| line.trim().split_once(" generated, ")).expect("a count of test cases");
    let (generated, rest) = counted;
    assert!(generated.parse::<u32>().is_ok_and(|n| n > 500), "{said}");
    assert!(rest.starts_with(&format!("{generated} passed")), "{said}");
    let metrics = scene.admin.get("/metrics").await;
    assert!(!metrics.text.contains("status=\"500\""), "a handler panicked");
}
