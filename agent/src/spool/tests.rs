use std::fs::OpenOptions;
use std::io::Write;

use events::job::JobFailed;
use events::keys::JobKey;
use events::telemetry::{TelemetrySample, TelemetrySampled};
use events::tool_output::{LogLines, LogSource};
use tempfile::TempDir;

use super::*;
use crate::clock;

const PLENTY: u64 = 1 << 30;

fn job() -> JobKey {
    JobKey { org: "acme".into(), project: "p".into(), workload: "w".into(), run: 1, scenario: "c1".into() }
}

fn id() -> AttemptId {
    AttemptId { job: job(), attempt: 1 }
}

fn telemetry(seq: u64) -> ReportBody {
    let sample = TelemetrySample {
        at: clock::now(),
        gpus: vec![],
        cpus: vec![],
        tpus: vec![],
        system: Default::default(),
    };
    let telemetry = TelemetrySampled { seq, interval_ms: 1000, samples: vec![sample] };
    ReportBody::Telemetry { job: job(), attempt: 1, telemetry }
}

fn log(first_line: u64, lines: usize, line: &str) -> ReportBody {
    let log = LogLines { source: LogSource::Tool, first_line, lines: vec![line.into(); lines] };
    ReportBody::Log { job: job(), attempt: 1, log }
}

fn seqs(batch: &Batch) -> Vec<u64> {
    let seq = |item: &ReportItem| match &item.body {
        ReportBody::Telemetry { telemetry, .. } => telemetry.seq,
        _ => 0,
    };
    batch.items.iter().map(seq).collect()
}

/// Waits until the spool's oldest reports are durable and gives at most `items` of them.
fn batch(spool: &Spool, items: usize) -> Batch {
    let deadline = std::time::Instant::now() + Duration::from_secs(20);
    loop {
        let changes = spool.changes();
        let batch = spool.next_batch(items, 1 << 20);
        if batch.items.len() == items || std::time::Instant::now() > deadline {
            return batch;
        }
        while !changes.has_changed().unwrap() && std::time::Instant::now() < deadline {
            std::thread::yield_now();
        }
    }
}

/// A spool that was left as SIGKILL leaves it: nothing is told to it, its files stay as they are.
fn killed(spool: Spool) {
    std::mem::forget(spool);
}

fn open(folder: &TempDir) -> Spool {
    Spool::open(folder.path(), PLENTY).unwrap()
}

#[test]
fn reports_come_out_in_order_and_leave_only_when_they_are_settled() {
    let folder = tempfile::tempdir().unwrap();
    let spool = open(&folder);
    for seq in 1..=5 {
        spool.append(clock::now(), telemetry(seq));
    }
    let first = batch(&spool, 5);
    assert_eq!(seqs(&first), [1, 2, 3, 4, 5]);
    spool.settle(&first, 2);
    assert_eq!(spool.pending(), 3);
    assert_eq!(seqs(&batch(&spool, 3)), [3, 4, 5]);
}

#[test]
fn after_a_kill_what_was_not_settled_is_sent_again_under_the_same_ids() {
    let folder = tempfile::tempdir().unwrap();
    let spool = open(&folder);
    for seq in 1..=5 {
        spool.append(clock::now(), telemetry(seq));
    }
    let before = batch(&spool, 5);
    spool.settle(&before, 2);
    killed(spool);

    let spool = open(&folder);
    let after = batch(&spool, 3);
    assert_eq!(after.items, before.items[2..]);
    assert_eq!(spool.pending(), 3);
}

#[test]
fn a_line_that_a_crash_left_half_written_is_cut_off_and_the_rest_is_kept() {
    let folder = tempfile::tempdir().unwrap();
    let spool = open(&folder);
    spool.append(clock::now(), telemetry(1));
    batch(&spool, 1);
    killed(spool);
    let segment = folder.path().join("000000000001.seg");
    OpenOptions::new().append(true).open(segment).unwrap().write_all(b"{\"event_id\":\"0").unwrap();

    let spool = open(&folder);
    spool.append(clock::now(), telemetry(2));
    assert_eq!(seqs(&batch(&spool, 2)), [1, 2]);
}

#[test]
fn a_lost_note_of_what_is_settled_costs_a_resend_and_no_report() {
    let folder = tempfile::tempdir().unwrap();
    let spool = open(&folder);
    for seq in 1..=3 {
        spool.append(clock::now(), telemetry(seq));
    }
    spool.settle(&batch(&spool, 3), 2);
    killed(spool);
    std::fs::write(folder.path().join("settled.quick"), "{\"pla").unwrap();
    assert_eq!(seqs(&batch(&open(&folder), 3)), [1, 2, 3]);
}

#[test]
fn a_damaged_report_in_the_middle_does_not_hold_up_the_others() {
    let folder = tempfile::tempdir().unwrap();
    let spool = open(&folder);
    spool.append(clock::now(), telemetry(1));
    batch(&spool, 1);
    killed(spool);
    let segment = folder.path().join("000000000001.seg");
    OpenOptions::new().append(true).open(segment).unwrap().write_all(b"garbage\n").unwrap();

    let spool = open(&folder);
    spool.append(clock::now(), telemetry(2));
    let all = batch(&spool, 2);
    assert_eq!(seqs(&all), [1, 2]);
    spool.settle(&all, 2);
    assert_eq!((spool.pending(), batch(&spool, 0).items.len()), (0, 0));
}

#[test]
fn settled_segments_are_deleted_and_their_tally_is_kept() {
    let folder = tempfile::tempdir().unwrap();
    let spool = open(&folder);
    let line = "x".repeat(20_000);
    for n in 0..300 {
        spool.append(clock::now(), log(n + 1, 1, &line));
    }
    spool.append(clock::now(), telemetry(1));
    while spool.pending() > 0 {
        let some = batch(&spool, usize::try_from(spool.pending().min(40)).unwrap());
        spool.settle(&some, some.items.len());
    }
    let bytes: u64 =
        std::fs::read_dir(folder.path()).unwrap().map(|e| e.unwrap().metadata().unwrap().len()).sum();
    assert!(bytes < 100_000, "{bytes} bytes are left");
    killed(spool);
    // As a power cut leaves a file that was renamed before it was on the disk.
    std::fs::write(folder.path().join("settled.quick"), "").unwrap();
    let tally = open(&folder).tally(&id());
    assert_eq!((tally.tool_lines, tally.telemetry_samples, tally.ended), (300, 1, false));
}

#[test]
fn the_tally_survives_a_kill_with_reports_unsent() {
    let folder = tempfile::tempdir().unwrap();
    let spool = open(&folder);
    spool.append(clock::now(), telemetry(1));
    spool.append(clock::now(), log(1, 3, "line"));
    let failed = JobFailed {
        attempt: 1,
        code: "timeout".into(),
        message: String::new(),
        telemetry_samples: 1,
        log_lines: 3,
    };
    spool.append(clock::now(), ReportBody::Failed { job: job(), failed });
    batch(&spool, 3);
    killed(spool);
    let tally = open(&folder).tally(&id());
    assert_eq!((tally.telemetry_samples, tally.tool_lines, tally.ended), (1, 3, true));
}

#[test]
fn a_full_disk_keeps_reports_in_memory_in_order_and_writes_none_by_half() {
    let folder = tempfile::tempdir().unwrap();
    let spool = Spool::open(folder.path(), 900).unwrap();
    for seq in 1..=10 {
        spool.append(clock::now(), telemetry(seq));
    }
    assert_eq!(spool.pending(), 10);
    let mut seen = Vec::new();
    while spool.pending() > 0 {
        let some = batch(&spool, 1);
        seen.extend(seqs(&some));
        spool.settle(&some, 1);
    }
    assert_eq!(seen, (1..=10).collect::<Vec<u64>>());
    for entry in std::fs::read_dir(folder.path()).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|e| e == "seg") {
            let text = std::fs::read_to_string(path).unwrap();
            assert!(text.is_empty() || text.ends_with('\n'));
        }
    }
}

#[test]
fn a_batch_stays_within_its_bytes_but_always_moves_on() {
    let folder = tempfile::tempdir().unwrap();
    let spool = open(&folder);
    for n in 0..4 {
        spool.append(clock::now(), log(n + 1, 1, &"y".repeat(1_000)));
    }
    batch(&spool, 4);
    assert_eq!(spool.next_batch(500, 2_700).items.len(), 2);
    assert_eq!(spool.next_batch(500, 10).items.len(), 1);
}

#[tokio::test]
async fn a_report_is_durable_when_it_is_said_to_be_or_when_it_is_settled() {
    let folder = tempfile::tempdir().unwrap();
    let spool = open(&folder);
    assert!(spool.durable(Duration::ZERO).await);
    spool.append(clock::now(), telemetry(1));
    assert!(spool.durable(Duration::from_secs(20)).await);
    assert_eq!(seqs(&spool.next_batch(1, 1 << 20)), [1]);

    let tiny = tempfile::tempdir().unwrap();
    let spool = Spool::open(tiny.path(), 10).unwrap();
    spool.append(clock::now(), telemetry(1));
    assert!(!spool.durable(Duration::from_millis(20)).await, "it is in memory only");
    spool.settle(&batch(&spool, 1), 1);
    assert!(spool.durable(Duration::ZERO).await);
}

#[test]
fn what_was_rejected_is_kept_within_bounds_and_said_not_to_be_when_the_disk_does_not_take_it() {
    let folder = tempfile::tempdir().unwrap();
    let spool = open(&folder);
    let item = ReportItem { event_id: Uuid::now_v7(), at: clock::now(), body: telemetry(1) };
    for part in 0..7 {
        spool.set_aside([(&item, format!("{part}{}", "x".repeat(6 << 20)))]).unwrap();
    }
    let read = |name: &str| std::fs::read_to_string(folder.path().join(name)).unwrap();
    let parts = |text: &str| {
        let why = |line: &str| serde_json::from_str::<serde_json::Value>(line).unwrap()["why"].to_string();
        text.lines().map(|line| why(line)[1..2].to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(parts(&read("rejected.1.jsonl")), ["3", "4", "5"]);
    assert_eq!(parts(&read("rejected.jsonl")), ["6"]);

    std::fs::remove_file(folder.path().join("rejected.jsonl")).unwrap();
    std::fs::create_dir(folder.path().join("rejected.jsonl")).unwrap();
    assert!(spool.set_aside([(&item, "why".to_owned())]).is_err());
}

#[tokio::test]
async fn whoever_waits_for_an_empty_spool_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let spool = open(&folder);
    assert!(spool.drained(Duration::from_secs(5)).await);
    spool.append(clock::now(), telemetry(1));
    assert!(!spool.drained(Duration::ZERO).await);
    let all = batch(&spool, 1);
    spool.settle(&all, 1);
    assert!(spool.drained(Duration::from_secs(5)).await);
}
