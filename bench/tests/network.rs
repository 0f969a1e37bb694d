//! The ways to a server: TLS, HTTP/2, a proxy, and what becomes of connections.

mod support;

use std::time::Duration;

use bench::refserver::Options;
use support::network::{Proxy, tls_front};
use support::{Bench, quick};

fn fast() -> Options {
    Options { ttft: Duration::from_millis(5), itl: Duration::from_millis(1), ..quick() }
}

#[test]
fn http2_carries_many_requests_on_one_connection() {
    let bench = Bench::new(fast());
    let run = bench.run(&["-n", "40", "-c", "8", "--http2"]);
    assert_eq!(run.code, Some(0), "{}{}", run.stdout, run.stderr);
    let summary = run.summary();
    assert_eq!(summary.figures.requests.succeeded, 40);
    assert_eq!(summary.client.connections_opened, 1);
    assert_eq!(run.line["completion_tokens"]["total"], 40 * 8);
}

#[test]
fn more_streams_than_a_connection_takes_need_another() {
    let bench = Bench::new(Options { ttft: Duration::from_millis(300), tokens: Some(1), ..quick() });
    let run = bench.run(&["-n", "150", "-c", "150", "--http2"]);
    assert_eq!(run.summary().figures.requests.succeeded, 150, "{}", run.stdout);
    assert!(run.summary().client.connections_opened >= 2, "a hundred streams are allowed on each");
}

#[test]
fn times_mean_the_same_over_http2() {
    let bench = Bench::new(quick());
    let run = bench.run(&["-n", "4", "--http2"]);
    let truth = bench.truth();
    for line in bench.request_log() {
        let truth = truth.iter().find(|truth| line["request_id"] == truth.request_id.as_str()).unwrap();
        let first = line["first_output_unix_ns"].as_u64().unwrap();
        assert!(first + 50_000 >= truth.chunks_unix_ns[0], "a token seen before it was written");
        assert_eq!(line["chunks"], truth.chunks_unix_ns.len() as u64);
    }
    assert!(run.line["ttft_ms"]["min"].as_f64().unwrap() >= 19.0);
}

#[test]
fn faults_have_the_same_names_over_http2() {
    for (shape, kind) in [
        ("cut", "stream_cut"),
        ("refuse", "connection"),
        ("in-band-error", "in_band_error"),
        ("missing-finish", "missing_finish"),
        ("html", "wrong_content_type"),
        ("status-503", "server_error"),
    ] {
        let bench = Bench::new(Options { shape: shape.parse().unwrap(), ..fast() });
        let run = bench.run(&["-n", "2", "-m", "x", "--http2"]);
        assert_eq!(run.line["errors"]["by_type"][kind], 2, "{shape}: {}", run.line["errors"]);
    }
}

#[test]
fn a_stream_that_stays_open_after_its_answer_is_a_success_over_http2() {
    let bench = Bench::new(Options { shape: "open-after-done".parse().unwrap(), ..fast() });
    assert_eq!(bench.run(&["-n", "3", "--http2"]).summary().figures.requests.succeeded, 3);
}

#[test]
fn a_server_without_http2_is_told_so() {
    let bench = Bench::new(fast());
    let front = tls_front(bench.server.address, &["http/1.1"]);
    let run = bench.run(&["--url", &front, "-m", "x", "-n", "1", "--insecure", "--http2"]);
    assert_eq!(run.code, Some(3));
    let message = run.line["errors"]["samples"][0]["message"].to_string();
    assert!(message.contains("TLS") || message.contains("HTTP/2"), "{message}");
}

#[test]
fn a_server_that_speaks_something_else_is_no_http2_server() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let _ = std::io::Write::write_all(
                &mut stream,
                b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n",
            );
            let _ = std::io::Read::read_to_end(&mut stream, &mut Vec::new());
        }
    });
    let bench = Bench::new(fast());
    let run = bench.run(&["--url", &url, "-m", "x", "-n", "1", "--http2"]);
    assert_eq!(run.line["errors"]["by_type"]["connection"], 1);
    assert!(run.line["errors"]["samples"][0]["message"].to_string().contains("leave --http2 out"));
}

#[test]
fn tls_works_and_http2_is_agreed_on_there() {
    let bench = Bench::new(fast());
    let front = tls_front(bench.server.address, &["h2", "http/1.1"]);
    for more in [&[][..], &["--http2"]] {
        let arguments = [&["--url", &front, "-m", "x", "-n", "4", "-c", "2", "--insecure"], more].concat();
        let run = bench.run(&arguments);
        assert_eq!(run.code, Some(0), "{more:?}: {}{}", run.stdout, run.stderr);
        assert_eq!(run.line["completion_tokens"]["total"], 32, "{more:?}");
    }
}

#[test]
fn a_certificate_nobody_vouches_for_is_refused_unless_told_otherwise() {
    let bench = Bench::new(fast());
    let front = tls_front(bench.server.address, &["http/1.1"]);
    let run = bench.run(&["--url", &front, "-m", "x", "-n", "1"]);
    assert_eq!(run.line["errors"]["by_type"]["connection"], 1);
    assert!(run.line["errors"]["samples"][0]["message"].to_string().contains("certificate"));
}

#[test]
fn a_proxy_passes_plain_requests_on() {
    let (bench, proxy) = (Bench::new(fast()), Proxy::start());
    let through = format!("http://me:hunter2secret@{}", proxy.address);
    let run = bench.run(&["-n", "3", "-m", "x", "--proxy", &through]);
    assert_eq!(run.code, Some(0), "{}{}", run.stdout, run.stderr);
    let seen = proxy.seen.lock().unwrap().clone();
    assert!(seen[0].0.starts_with(&format!("POST {}/v1/chat/completions ", bench.server.url())), "{seen:?}");
    assert!(seen[0].1.as_ref().unwrap().starts_with("Basic "));
    let summary = run.line.to_string();
    assert!(!summary.contains("hunter2secret"), "{summary}");
}

#[test]
fn tls_and_http2_go_through_a_tunnel() {
    let (bench, proxy) = (Bench::new(fast()), Proxy::start());
    let front = tls_front(bench.server.address, &["http/1.1"]);
    let through = format!("http://{}", proxy.address);
    let secured = bench.run(&["--url", &front, "-m", "x", "-n", "2", "--insecure", "--proxy", &through]);
    assert_eq!(secured.code, Some(0), "{}{}", secured.stdout, secured.stderr);
    let multiplexed = bench.run(&["-m", "x", "-n", "2", "--http2", "--proxy", &through]);
    assert_eq!(multiplexed.code, Some(0), "{}{}", multiplexed.stdout, multiplexed.stderr);
    assert!(proxy.first_lines().iter().all(|line| line.starts_with("CONNECT ")), "{:?}", proxy.first_lines());
}

#[test]
fn a_proxy_that_is_not_there_is_an_error_and_one_of_another_kind_is_refused() {
    let bench = Bench::new(fast());
    let dead = bench.run(&["-n", "1", "-m", "x", "--proxy", "http://127.0.0.1:1"]);
    assert_eq!(dead.line["errors"]["by_type"]["connection"], 1);
    assert_eq!(bench.run(&["-n", "1", "--proxy", "socks5://127.0.0.1:1"]).code, Some(2));
}

/// Local ports of connections to `server` that rest for a minute after they were closed from this side.
fn resting_ports(server: std::net::SocketAddr) -> usize {
    let table = std::fs::read_to_string("/proc/net/tcp").unwrap();
    let remote = format!("0100007F:{:04X}", server.port());
    let is_resting = |line: &&str| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        fields.get(2) == Some(&remote.as_str()) && fields.get(3) == Some(&"06")
    };
    table.lines().filter(is_resting).count()
}

#[test]
fn a_connection_given_up_in_an_answer_frees_its_port_at_once() {
    let bench = Bench::new(Options { shape: "stall".parse().unwrap(), ..fast() });
    let run = bench.run(&["-n", "30", "-c", "10", "-m", "x", "--request-timeout", "0.1"]);
    assert_eq!(run.line["errors"]["by_type"]["timeout"], 30);
    assert_eq!(resting_ports(bench.server.address), 0);
}

#[test]
fn a_thousand_requests_on_pooled_connections_all_succeed_against_a_server_that_closes_them() {
    let options = Options { ttft: Duration::ZERO, itl: Duration::ZERO, tokens: Some(2), ..quick() };
    let bench = Bench::new(Options { close_after_stream: true, ..options });
    let run = bench.run(&["-n", "1000", "-c", "16"]);
    assert_eq!(run.summary().figures.requests.succeeded, 1000, "{}", run.stdout);
    assert_eq!(run.summary().figures.requests.failed, 0);
}
