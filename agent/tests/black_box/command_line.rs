//! The agent's command line: what it prints and how it ends.

use std::path::Path;

use agent::policy::Policy;

use crate::support::agent::Agent;
use crate::support::control_plane::ControlPlane;

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[tokio::test]
async fn an_agent_that_is_not_enrolled_says_what_to_do() {
    let agent = Agent::new();
    let output = agent.command(&["run"], &[]).await;
    assert_eq!(output.status.code(), Some(3));
    assert!(text(&output.stderr).contains("benchtrail-agent enrol --url"), "{}", text(&output.stderr));
}

#[tokio::test]
async fn an_unknown_token_is_refused_in_the_control_planes_words() {
    let plane = ControlPlane::start().await;
    let agent = Agent::new();
    let output = agent.command(&["enrol", "--url", &plane.url, "--token", "bt_e_bad"], &[]).await;
    assert_eq!(output.status.code(), Some(1));
    let error = text(&output.stderr);
    assert!(error.contains("no such token") && error.contains("make a new one"), "{error}");
    assert!(!agent.state().join("identity.json").exists());
}

#[tokio::test]
async fn the_identity_is_for_its_owner_only_and_enrolling_twice_needs_a_word() {
    use std::os::unix::fs::PermissionsExt;
    let plane = ControlPlane::start().await;
    let agent = Agent::enrolled(&plane, "", "").await;
    let mode = agent.state().join("identity.json").metadata().unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let again = agent.command(&["enrol", "--url", &plane.url, "--token", "bt_e_good"], &[]).await;
    assert_eq!(again.status.code(), Some(3));
    let forced = agent.command(&["enrol", "--force", "--url", &plane.url, "--token", "bt_e_good"], &[]).await;
    assert!(forced.status.success());
    assert!(text(&forced.stdout).contains("kept as it was"));
}

#[tokio::test]
async fn a_second_agent_on_the_same_folder_does_not_start() {
    let plane = ControlPlane::start().await;
    let mut agent = Agent::enrolled(&plane, "", "").await;
    agent.run();
    plane.until("a heartbeat", |kept| (kept.heartbeats > 0).then_some(())).await;
    let second = agent.command(&["run"], &[]).await;
    assert_eq!(second.status.code(), Some(4));
    assert!(text(&second.stderr).contains(&agent.pid().to_string()));
}

#[tokio::test]
async fn doctor_names_what_is_missing_and_its_cure() {
    let plane = ControlPlane::start().await;
    let agent = Agent::enrolled(&plane, "#!/bin/sh\necho metrumbench-llm 1.2.3\n", "#!/bin/sh\n").await;
    let healthy = agent.command(&["doctor"], &[]).await;
    let table = text(&healthy.stdout);
    assert!(healthy.status.success(), "{table}");
    assert!(table.contains("metrumbench-llm 1.2.3") && table.contains("This host is ready."), "{table}");

    std::fs::remove_file(agent.folder().join("bin/metrumbench-llm")).unwrap();
    let broken = agent.command(&["doctor"], &[]).await;
    let table = text(&broken.stdout);
    assert_eq!(broken.status.code(), Some(1));
    assert!(table.contains("FAILS") && table.contains("metrumbench-llm: not found"), "{table}");
}

#[tokio::test]
async fn the_policy_of_make_run_follows_a_folder_and_a_model_that_were_moved() {
    let plane = ControlPlane::start().await;
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let model = |cache: &str| format!("google/gemma-3-270m={}", at(cache).join("gemma.gguf").display());
    let enrolled = tokio::process::Command::new(env!("CARGO_BIN_EXE_benchtrail-agent"))
        .args(["enrol", "--url", &plane.url, "--token", "bt_e_good", "--model", &model("old-cache")])
        .arg("--state-dir")
        .arg(at("old/agent"))
        .arg("--bin-dir")
        .arg(at("old/bin"))
        .output()
        .await
        .unwrap();
    assert!(enrolled.status.success(), "{}", text(&enrolled.stderr));

    std::fs::rename(at("old"), at("new")).unwrap();
    std::fs::create_dir(at("new-cache")).unwrap();
    std::fs::write(at("new-cache/gemma.gguf"), "GGUF").unwrap();
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../scripts/mend_policy.py");
    let mend = async || {
        let mended = tokio::process::Command::new("python3")
            .args([script.as_os_str(), at("new").as_os_str(), model("new-cache").as_ref()])
            .output()
            .await
            .unwrap();
        assert!(mended.status.success(), "{}", text(&mended.stderr));
        (text(&mended.stdout), std::fs::read_to_string(at("new/agent/agent.toml")).unwrap())
    };
    let (said, mended) = mend().await;
    assert!(said.contains("set right"), "{said}");
    let policy = Policy::load(&at("new/agent/agent.toml")).unwrap();
    assert_eq!(policy.work_dir, at("new/agent/work"));
    assert_eq!(policy.log_dir, at("new/agent/logs"));
    assert_eq!(policy.search_dirs, [at("new/bin")]);
    assert_eq!(Path::new(&policy.models["google/gemma-3-270m"]), at("new-cache/gemma.gguf"));
    assert_eq!(mend().await, (String::new(), mended), "what is right is left alone");
}
