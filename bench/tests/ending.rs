//! How a run ends when something is in the way: an interrupt at any moment, a full disk, a reader that went away, a clock
//! that is wrong.

mod support;

use std::io::Read;
use std::net::UdpSocket;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use bench::refserver::Options;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use support::{Bench, quick};

#[test]
fn an_interrupt_before_the_first_request_leaves_a_summary_too() {
    // The list of models never comes: the run is still being prepared.
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let bench = Bench::new(quick());
    let url = format!("http://{}", listener.local_addr().unwrap());
    let child = bench.command(&["--url", &url, "-n", "5"]).spawn().unwrap();
    let (mut connection, _) = listener.accept().unwrap();
    connection.read_exact(&mut [0; 4]).unwrap();
    kill(Pid::from_raw(child.id() as i32), Signal::SIGINT).unwrap();
    let run = bench.finished(child.wait_with_output().unwrap());
    assert_eq!(run.code, Some(130), "{}", run.stderr);
    let summary = run.summary();
    assert!(summary.cancelled && summary.partial);
    assert_eq!(summary.figures.requests.attempted, 0);
    assert!(run.line["response_time_ms"].is_null());
}

#[test]
fn an_interrupt_while_linked_images_are_fetched_ends_that_alone() {
    let bench = Bench::new(Options { shape: "stall".parse().unwrap(), ..quick() });
    let arguments = [
        ["--summary", "summary.jsonl"],
        ["--data-log", "requests.jsonl"],
        ["--progress-file", "progress.jsonl"],
        ["--response-format", "url"],
        ["--size", "16x16"],
    ]
    .concat();
    let child = bench.command_of(env!("CARGO_BIN_EXE_metrumbench-imagegen"), &arguments).spawn().unwrap();
    let began = Instant::now();
    while !std::fs::read_to_string(bench.file("progress.jsonl")).is_ok_and(|text| text.contains("\"drain\""))
    {
        assert!(began.elapsed() < Duration::from_secs(30), "the load does not end");
        std::thread::yield_now();
    }
    let interrupted = Instant::now();
    kill(Pid::from_raw(child.id() as i32), Signal::SIGINT).unwrap();
    let run = bench.finished(child.wait_with_output().unwrap());
    assert!(interrupted.elapsed() < Duration::from_secs(5));
    assert_eq!(run.code, Some(130), "{}", run.stderr);
    assert_eq!(run.summary().figures.requests.succeeded, 4);
    assert_eq!(run.line["artifact_errors"]["the run was interrupted before it was fetched"], 4);
    assert_eq!(bench.request_log().len(), 4);
}

/// The shell that runs the tool with files no larger than `blocks` × 512 bytes: what a full disk looks like to it.
fn with_little_room(bench: &Bench, blocks: u32, arguments: &str) -> support::Finished {
    let script = format!(
        "trap '' XFSZ; ulimit -f {blocks}; exec {} --url {} --skip-ntp-check --quiet {arguments}",
        env!("CARGO_BIN_EXE_metrumbench-llm"),
        bench.server.url()
    );
    let output = Command::new("sh").current_dir(bench.folder.path()).args(["-c", &script]).output().unwrap();
    bench.finished(output)
}

#[test]
fn a_full_disk_loses_nothing_that_was_written_and_is_told() {
    let bench = Bench::new(Options { ttft: Duration::ZERO, itl: Duration::ZERO, ..quick() });
    let run = with_little_room(&bench, 8, "-n 40 --request-log requests.jsonl --data-log -");
    assert_eq!(run.code, Some(1), "{}", run.stderr);
    assert!(run.stderr.contains("the request log is incomplete"), "{}", run.stderr);
    let summary: serde_json::Value = serde_json::from_str(&run.stdout).unwrap();
    assert_eq!(summary["requests"]["succeeded"], 40);
    let log = std::fs::read_to_string(bench.file("requests.jsonl")).unwrap();
    let whole: Vec<&str> = log.split_inclusive('\n').filter(|line| line.ends_with('\n')).collect();
    assert!(!whole.is_empty());
    for line in whole {
        serde_json::from_str::<serde_json::Value>(line).unwrap();
    }
}

#[test]
fn a_summary_that_finds_no_room_goes_to_standard_error() {
    let bench = Bench::new(quick());
    let run = with_little_room(&bench, 1, "-n 1 --data-log full.jsonl");
    assert_eq!(run.code, Some(1));
    let line = run.stderr.lines().find(|line| line.starts_with('{')).unwrap();
    assert_eq!(serde_json::from_str::<serde_json::Value>(line).unwrap()["requests"]["succeeded"], 1);
}

#[test]
fn a_line_that_broke_off_does_not_swallow_the_next() {
    let bench = Bench::new(quick());
    std::fs::write(bench.file("summary.jsonl"), "{\"broke\": \"of").unwrap();
    let run = bench.run(&["-n", "1"]);
    assert_eq!(run.summary().figures.requests.succeeded, 1);
    let text = std::fs::read_to_string(bench.file("summary.jsonl")).unwrap();
    assert_eq!(text.lines().count(), 2);
}

#[test]
fn a_reader_that_goes_away_ends_nothing() {
    let bench = Bench::new(quick());
    let script = format!(
        "{} --url {} --skip-ntp-check -n 20 --data-log summary.jsonl --progress-fd 3 3>&1 >/dev/null | head -n 1",
        env!("CARGO_BIN_EXE_metrumbench-llm"),
        bench.server.url()
    );
    let output = Command::new("sh").current_dir(bench.folder.path()).args(["-c", &script]).output().unwrap();
    assert!(String::from_utf8_lossy(&output.stdout).contains("\"phase\""), "{output:?}");
    let run = bench.finished(output);
    assert_eq!(run.summary().figures.requests.succeeded, 20);
}

#[test]
fn a_closed_standard_output_is_an_error_but_the_summary_is_in_its_file() {
    let bench = Bench::new(quick());
    let mut child = bench.command(&["-n", "2", "--json"]).stdout(Stdio::piped()).spawn().unwrap();
    drop(child.stdout.take());
    let run = bench.finished(child.wait_with_output().unwrap());
    assert_eq!(run.code, Some(1));
    assert_eq!(run.summary().figures.requests.succeeded, 2);
}

/// A time server whose clock is `ahead` of this machine's.
fn time_server(ahead: Duration) -> String {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    let address = socket.local_addr().unwrap();
    std::thread::spawn(move || {
        let mut question = [0; 48];
        while let Ok((_, from)) = socket.recv_from(&mut question) {
            let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap() + ahead;
            let stamp = ((now.as_secs() + 2_208_988_800) << 32)
                | ((f64::from(now.subsec_nanos()) / 1e9 * 4_294_967_296.0) as u64);
            let mut answer = [0; 48];
            (answer[0], answer[1]) = (0b00_100_100, 2);
            answer[24..32].copy_from_slice(&question[40..48]);
            answer[32..40].copy_from_slice(&stamp.to_be_bytes());
            answer[40..48].copy_from_slice(&stamp.to_be_bytes());
            let _ = socket.send_to(&answer, from);
        }
    });
    address.to_string()
}

/// The tool, with the clock checked against `server`.
fn checked_against(server: &str) -> support::Finished {
    let bench = Bench::new(quick());
    let mut command = Command::new(env!("CARGO_BIN_EXE_metrumbench-llm"));
    command
        .current_dir(bench.folder.path())
        .args([
            "--url",
            &bench.server.url(),
            "-n",
            "1",
            "--data-log",
            "summary.jsonl",
            "--ntp-server",
            server,
        ])
        .env_clear();
    bench.finished(command.output().unwrap())
}

#[test]
fn a_clock_that_is_right_is_told_with_its_offset() {
    let run = checked_against(&time_server(Duration::from_millis(200)));
    let offset = run.line["host"]["clock_offset_ms"].as_f64().unwrap();
    assert!((50.0..350.0).contains(&offset), "{offset}");
    assert!(!run.summary().flags.iter().any(|flag| flag.starts_with("clock")));
}

#[test]
fn a_clock_that_is_off_stops_the_run() {
    let run = checked_against(&time_server(Duration::from_secs(30)));
    assert_eq!(run.code, Some(4));
    let told = run.stderr.split("off by ").nth(1).and_then(|rest| rest.split(' ').next()).unwrap_or_default();
    let off: f64 = told.parse().unwrap_or_else(|_| panic!("{}", run.stderr));
    assert!((29_000.0..31_000.0).contains(&off), "{off} ms");
    assert!(run.summary.is_none());
}

#[test]
fn time_servers_that_do_not_answer_are_a_warning_and_a_flag() {
    // Bound, so that nobody else answers there; and silent.
    let silent = UdpSocket::bind("127.0.0.1:0").unwrap();
    let began = Instant::now();
    let run = checked_against(&silent.local_addr().unwrap().to_string());
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    assert!(run.stderr.contains("not verified"), "{}", run.stderr);
    assert!(run.summary().flags.contains(&"clock_unverified".to_owned()));
    assert!(began.elapsed() < Duration::from_secs(30));
}

#[test]
fn the_environment_can_skip_the_clock() {
    let bench = Bench::new(quick());
    let output = Command::new(env!("CARGO_BIN_EXE_metrumbench-llm"))
        .current_dir(bench.folder.path())
        .args(["--url", &bench.server.url(), "-n", "1", "--data-log", "summary.jsonl"])
        .env("METRUM_SKIP_NTP_CHECK", "true")
        .output()
        .unwrap();
    assert!(bench.finished(output).summary().flags.contains(&"clock_unchecked".to_owned()));
}
