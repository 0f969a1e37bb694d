//! After a crash: ends what the predecessor left running, and reports the end of its attempt.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use events::report::HeldAttempt;
use events::tool_output::{LogLines, LogSource};
use nix::sys::signal::{Signal, kill};
use nix::unistd::{Pid, getpgid};

use crate::job::{Host, Record, Reporter, stamped};
use crate::serving::{MARKER_ENV, kill_group, with_marker};
use crate::spool::Spool;

/// Cleans up. Gives the attempt that was under way, if there was one.
pub(super) async fn recover(host: &Host, spool: &Arc<Spool>) -> anyhow::Result<Option<HeldAttempt>> {
    let grace = Duration::from_secs(host.policy.stop_grace_s);
    let kept = host.state.kept_server();
    if let Some(record) = Record::load(&kept).context("the record of the model server that was kept is damaged: stop the server by hand and remove the file")? {
        reap(&record, grace).await;
        Record::remove(&kept);
    }
    let path = host.state.attempt();
    let Some(record) = Record::load(&path).context("the record of the attempt that was under way is damaged: stop its processes by hand and remove the file")?
    else {
        return Ok(None);
    };
    tracing::warn!(job = %record.held.job.stream(), attempt = record.held.attempt, "the agent ended in the middle of an attempt");
    reap(&record, grace).await;

    let reporter = Reporter::new(Arc::clone(spool), record.held.job.clone(), record.held.attempt);
    let tally = spool.tally(&reporter.id());
    if tally.ended {
        // Its end was reported; the crash came before the record was removed.
        Record::remove(&path);
        return Ok(Some(record.held));
    }
    let place = record.place();
    let line = stamped(
        "the agent ended in the middle of this attempt and was started again; what was left running was stopped",
    );
    reporter.log(LogLines {
        source: LogSource::Agent,
        first_line: tally.lines(LogSource::Agent) + 1,
        lines: vec![line],
    });
    let mut log_lines = tally.lines(LogSource::Agent) + 1;
    let logs = [
        (LogSource::Framework, place.framework_log(), "framework_log"),
        (LogSource::Tool, place.tool_log(), "tool_log"),
    ];
    for (source, file, purpose) in logs {
        let in_file = count_lines(&file);
        log_lines += in_file.max(tally.lines(source));
        if in_file > 0 {
            host.upload(&reporter, file, purpose, "text/plain; charset=utf-8");
        }
    }
    reporter.failed(
        "agent_restarted",
        "the agent on this host ended in the middle of the job and was started again; the measurement was not finished. Run the job again".into(),
        tally.telemetry_samples,
        log_lines,
    );
    record.close(&path, spool).await;
    Ok(Some(record.held))
}

/// Ends the predecessor's processes, and only those: a group is known by its leader's start, a stray by the marker in its environment.
async fn reap(record: &Record, grace: Duration) {
    if !record.is_of_this_boot() {
        return;
    }
    let mut groups: BTreeSet<i32> =
        record.processes.iter().filter(|process| process.exists()).map(|process| process.pid).collect();
    let own = nix::unistd::getpgrp();
    for pid in with_marker(MARKER_ENV, &record.marker) {
        match getpgid(Some(Pid::from_raw(pid))) {
            // Never our own group, in case somebody started the agent out of a job.
            Ok(group) if group != own => drop(groups.insert(group.as_raw())),
            _ => drop(kill(Pid::from_raw(pid), Signal::SIGKILL)),
        }
    }
    for group in groups {
        tracing::warn!(group, "stopping a process group that the agent left behind");
        kill_group(group, grace).await;
    }
}

fn count_lines(path: &Path) -> u64 {
    use std::io::BufRead;
    let Ok(file) = std::fs::File::open(path) else { return 0 };
    std::io::BufReader::new(file).split(b'\n').map_while(Result::ok).count() as u64
}
