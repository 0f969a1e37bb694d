//! A host gets its agent from the control plane: one command, every program checked, enrolled and heard.

mod plane;

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};

use events::access::Role;
use plane::{Client, Plane};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::process::Command;

/// The folder of the programs, as `scripts/build dev` leaves them.
fn built() -> PathBuf {
    let from_path = || std::env::current_exe().unwrap().parent().unwrap().parent().unwrap().to_owned();
    let dir = std::env::var_os("BENCHTRAIL_BIN_DIR").map_or_else(from_path, PathBuf::from);
    assert!(dir.join("benchtrail-agent").exists(), "{}: run `scripts/build dev` first", dir.display());
    dir
}

fn folder() -> TempDir {
    tempfile::Builder::new().prefix("btboot").tempdir_in("/tmp").unwrap()
}

/// A program that only says that it ran.
fn stand_in(dir: &Path, name: &str, text: &str) {
    std::fs::write(dir.join(name), format!("#!/bin/sh\n{text}\n")).unwrap();
    std::fs::set_permissions(dir.join(name), PermissionsExt::from_mode(0o755)).unwrap();
}

async fn register(admin: &Client) -> Value {
    let args = json!({"p_config_code": "local-cpu", "p_hostname": "gpu-07", "p_ip_address": "10.20.0.7",
        "p_bootstrap_script_filename": "gpu-07.sh", "p_comment": "rack 4"});
    admin.rpc("create_server_config_instance", &args).await.ok()
}

/// Runs a command on the "host": everything it writes goes into `host`.
async fn run(command: &str, token: &str, host: &Path) -> Output {
    Command::new("sh")
        .args(["-c", command])
        .current_dir(host)
        .env("BENCHTRAIL_ENROL_TOKEN", token)
        .env("BENCHTRAIL_BIN_DIR", host.join("bin"))
        .env("BENCHTRAIL_STATE_DIR", host.join("state"))
        .env("BENCHTRAIL_SERVICE", "no")
        .output()
        .await
        .unwrap()
}

fn installed(host: &Path) -> Vec<String> {
    let Ok(found) = std::fs::read_dir(host.join("bin")) else { return Vec::new() };
    let mut names: Vec<String> =
        found.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[tokio::test]
async fn one_command_installs_enrols_and_the_server_comes_online() {
    let (offered, host) = (folder(), folder());
    for name in ["benchtrail-agent", "metrumbench-llm"] {
        std::fs::copy(built().join(name), offered.path().join(name)).unwrap();
    }
    let plane = Plane::start_with(|config| config.agent_dir = Some(offered.path().to_owned())).await;
    let admin = plane.client(Role::Admin).await;
    let made = register(&admin).await;
    // As the page shows it; this test is root already, or need not be.
    let command = made["bootstrap_command"].as_str().unwrap().replace("&& sudo env", "&& env");
    let output = run(&command, "", host.path()).await;
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{said}{}", String::from_utf8_lossy(&output.stderr));
    assert!(host.path().join("gpu-07.sh").exists(), "the script is left to be read: {command}");
    assert_eq!(installed(host.path()), ["benchtrail-agent", "metrumbench-llm"]);
    for name in ["benchtrail-agent", "metrumbench-llm"] {
        assert_eq!(
            std::fs::read(host.path().join("bin").join(name)).unwrap(),
            std::fs::read(built().join(name)).unwrap()
        );
    }

    // It says how to start it where there is no systemd; that is what is done here.
    let start = said.lines().last().unwrap().trim();
    assert!(start.ends_with(" run"), "{said}");
    let before = plane.head().await;
    let mut words = start.split(' ');
    let mut agent = Command::new(words.next().unwrap())
        .args(words)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    plane.until_type_after(before, "server.state_changed").await;
    let head = plane.head().await;
    let request =
        admin.request(reqwest::Method::GET, "/api/v_servers").header("prefer", format!("at-least={head}"));
    let servers = admin.send(request).await.ok();
    assert_eq!((&servers[0]["state"], &servers[0]["hostname"]), (&json!("online"), &json!("gpu-07")));
    assert_eq!((&servers[0]["ip_address"], &servers[0]["comment"]), (&json!("10.20.0.7"), &json!("rack 4")));
    agent.kill().await.unwrap();

    // The token was for one host.
    let second = folder();
    let output = run(&command, "", second.path()).await;
    assert!(!output.status.success());
    assert!(String::from_utf8_lossy(&output.stderr).contains("registration token"), "{output:?}");
    plane.stop().await;
}

#[tokio::test]
async fn a_program_that_is_not_the_one_the_script_names_is_not_installed() {
    let (offered, host) = (folder(), folder());
    stand_in(offered.path(), "benchtrail-agent", "echo enrolled");
    stand_in(offered.path(), "metrumbench-llm", "echo one");
    let plane = Plane::start_with(|config| config.agent_dir = Some(offered.path().to_owned())).await;
    let script = plane.anonymous().get("/api/agent/bootstrap.sh").await;
    assert_eq!(script.status.as_u16(), 200);
    let path = host.path().join("bootstrap.sh");
    std::fs::write(&path, &script.text).unwrap();
    stand_in(offered.path(), "metrumbench-llm", "echo another");
    let output = run(&format!("sh {}", path.display()), "bt_e_x", host.path()).await;
    assert!(!output.status.success());
    assert!(
        String::from_utf8_lossy(&output.stderr).contains("metrumbench-llm is not the program"),
        "{output:?}"
    );
    assert_eq!(installed(host.path()), Vec::<String>::new(), "nothing is half installed");
    plane.stop().await;
}

#[tokio::test]
async fn a_script_that_broke_off_does_nothing_and_one_without_a_token_says_so() {
    let (offered, host) = (folder(), folder());
    stand_in(offered.path(), "benchtrail-agent", "echo enrolled");
    let plane = Plane::start_with(|config| config.agent_dir = Some(offered.path().to_owned())).await;
    let script = plane.anonymous().get("/api/agent/bootstrap.sh").await;
    assert!(script.headers["content-type"].to_str().unwrap().starts_with("text/x-shellscript"));
    assert!(!script.text.contains("@URL@") && script.text.contains(&plane.url));
    for part in 1..script.text.len() / 40 {
        let path = host.path().join("part.sh");
        let end = (0..=part * 40).rev().find(|end| script.text.is_char_boundary(*end)).unwrap();
        std::fs::write(&path, &script.text[..end]).unwrap();
        run(&format!("sh {}", path.display()), "bt_e_x", host.path()).await;
        assert_eq!(installed(host.path()), Vec::<String>::new(), "the first {end} bytes");
    }
    let path = host.path().join("whole.sh");
    std::fs::write(&path, &script.text).unwrap();
    let output = run(&format!("sh {}", path.display()), "", host.path()).await;
    assert!(String::from_utf8_lossy(&output.stderr).contains("there is no token"), "{output:?}");
    plane.stop().await;
}

#[tokio::test]
async fn a_file_name_or_an_address_that_is_none_registers_nothing() {
    let plane = Plane::start().await;
    let admin = plane.client(Role::Admin).await;
    let before = plane.head().await;
    for (argument, value, code) in [
        ("p_bootstrap_script_filename", "x.sh; reboot", "bad_filename"),
        ("p_bootstrap_script_filename", "../x.sh", "bad_filename"),
        ("p_bootstrap_script_filename", "-rf", "bad_filename"),
        ("p_ip_address", "gpu-07.example", "bad_address"),
    ] {
        let args = json!({"p_config_code": "local-cpu", "p_hostname": "gpu-07", argument: value});
        let refused = admin.rpc("create_server_config_instance", &args).await.refused();
        assert_eq!(refused.code, code, "{value}");
    }
    assert_eq!(plane.head().await, before);
    let args = json!({"p_config_code": "local-cpu", "p_hostname": "gpu-07"});
    let made = admin.rpc("create_server_config_instance", &args).await.ok();
    let command = made["bootstrap_command"].as_str().unwrap();
    assert!(
        command.contains("-o agent-bootstrap.sh ") && command.ends_with(" sh agent-bootstrap.sh"),
        "{command}"
    );
    plane.stop().await;
}

#[tokio::test]
async fn only_programs_are_handed_out_and_none_where_there_are_none() {
    let offered = folder();
    stand_in(offered.path(), "benchtrail-agent", "echo agent");
    std::fs::write(offered.path().join("secret"), "s").unwrap();
    let plane = Plane::start_with(|config| config.agent_dir = Some(offered.path().to_owned())).await;
    let anonymous = plane.anonymous();
    for name in ["secret", "..%2F..%2Fetc%2Fpasswd", "benchtrail", "metrumbench-llm"] {
        let refused = anonymous.get(&format!("/api/agent/programs/{name}")).await.refused();
        assert_eq!(refused.code, "no_such_program", "{name}");
    }
    let program = anonymous.get("/api/agent/programs/benchtrail-agent").await;
    assert_eq!((program.status.as_u16(), program.text.as_str()), (200, "#!/bin/sh\necho agent\n"));
    plane.stop().await;
    let plane = Plane::start().await;
    assert_eq!(plane.anonymous().get("/api/agent/bootstrap.sh").await.refused().code, "no_agent_programs");
    plane.stop().await;
}

#[tokio::test]
async fn an_agent_that_is_too_old_gets_no_work_until_it_was_bootstrapped_again() {
    let plane = Plane::start_with(|config| config.timing.silence.oldest_agent = [0, 2, 0]).await;
    let agent = plane::agent::Agent::enrol_silent(&plane, "h1").await;
    agent.beat(&[]).await.ok();
    plane.until_type_after(0, "server.state_changed").await;
    let admin = plane.client(Role::Admin).await;
    let head = plane.head().await;
    let request =
        admin.request(reqwest::Method::GET, "/api/v_servers").header("prefer", format!("at-least={head}"));
    assert_eq!(admin.send(request).await.ok()[0]["state"], "requires_reonboarding");
    assert!(agent.claim().await.is_none());
    plane.stop().await;
}
