use std::time::Duration;

use events::tool_output::LogSource;

use super::*;
use crate::logs::{LogLimits, LogWriter};

/// Starts a shell script (tests only: the agent itself never starts a shell) and gives the log's lines when it is over.
async fn with_script<T>(
    script: &str,
    env: &[(&str, &str)],
    then: impl AsyncFnOnce(Process) -> T,
) -> (T, String) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("log");
    let limits = LogLimits { live_lines: 0, file_bytes: 1 << 20 };
    let (writer, log) = LogWriter::start(LogSource::Tool, &path, limits, |_| {}).unwrap();
    let spec = ProcessSpec {
        name: "script",
        argv: vec!["/bin/sh".into(), "-c".into(), script.into()],
        env: env.iter().map(|(k, v)| (k.to_string(), v.to_string())).collect(),
        work_dir: folder.path().into(),
    };
    let process = Process::start(&spec, &Secrets::new(["s3cr3t-value".to_owned()]), &log).unwrap();
    drop(log);
    let outcome = then(process).await;
    writer.end().await.unwrap();
    (outcome, std::fs::read_to_string(&path).unwrap())
}

#[tokio::test]
async fn a_process_has_the_environment_it_was_given_and_no_other() {
    let (_, log) = with_script("/usr/bin/env", &[("ONLY", "this")], async |mut process| {
        process.wait().await.unwrap();
        process.stop(Duration::ZERO).await
    })
    .await;
    let names: Vec<&str> =
        log.lines().filter_map(|line| line.split_once('=')).map(|(name, _)| name).collect();
    assert!(names.contains(&"ONLY"), "{log}");
    assert!(!names.contains(&"HOME") && !names.contains(&"CARGO"), "{log}");
}

#[tokio::test]
async fn a_secret_in_the_output_does_not_reach_the_log() {
    let script = "printf 'key s3cr3t'; printf -- '-value end\\n'";
    let (status, log) = with_script(script, &[], async |mut process| {
        process.wait().await.unwrap();
        process.stop(Duration::ZERO).await
    })
    .await;
    assert!(status.unwrap().success());
    assert_eq!(log, "key [redacted] end\n");
}

#[tokio::test]
async fn a_process_that_ignores_sigterm_is_killed_with_its_children() {
    let script =
        "trap '' TERM; (trap '' TERM; while :; do sleep 1; done) & echo child $!; while :; do sleep 1; done";
    let (pid, _) = with_script(script, &[], async |process| {
        let pid = process.id().pid;
        process.stop(Duration::from_millis(100)).await.unwrap();
        pid
    })
    .await;
    assert!(!group_lives(pid));
}

#[tokio::test]
async fn a_process_that_ended_leaves_no_child_behind() {
    let (pid, _) = with_script("sleep 1000 & exit 3", &[], async |mut process| {
        let pid = process.id().pid;
        assert_eq!(process.wait().await.unwrap().code(), Some(3));
        assert!(group_lives(pid));
        process.stop(Duration::from_secs(5)).await;
        pid
    })
    .await;
    assert!(!group_lives(pid));
}

#[tokio::test]
async fn a_program_that_does_not_exist_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let limits = LogLimits { live_lines: 0, file_bytes: 0 };
    let (_writer, log) =
        LogWriter::start(LogSource::Tool, &folder.path().join("log"), limits, |_| {}).unwrap();
    let spec = ProcessSpec {
        name: "tool",
        argv: vec!["/no/such/program".into()],
        env: BTreeMap::new(),
        work_dir: folder.path().into(),
    };
    let error = Process::start(&spec, &Secrets::default(), &log).err().unwrap();
    assert!(error.to_string().contains("/no/such/program"), "{error}");
}
