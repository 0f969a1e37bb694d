//! Notifications: a real mail server in a process of its own, a real receiver of webhooks.

mod plane;

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Lines};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use events::access::Role;
use events::quota::Resource;
use plane::agent::{Agent, failed, project, start_run};
use plane::{Client, ORG, PASSWORD, Plane};
use serde_json::{Value, json};
use server::auth::Principal;
use server::clock;
use server::commands::RequestMeta;
use server::commands::quotas::set_quotas;
use server::config::Config;
use server::notify::{self, Pace, SmtpConfig};
use server::secrets::Hidden;
use tokio::sync::mpsc;
use uuid::Uuid;

/// How long anything may take before it counts as never.
const PATIENCE: Duration = Duration::from_secs(30);

struct MailServer {
    child: Child,
    lines: Lines<BufReader<ChildStdout>>,
    port: u16,
}

impl Drop for MailServer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl MailServer {
    /// Answers the first messages with `refusals`, and accepts from then on.
    fn start(refusals: &[&str]) -> Self {
        let cache = std::env::var_os("BENCHTRAIL_CACHE").map(std::path::PathBuf::from);
        let home =
            || std::path::PathBuf::from(std::env::var_os("HOME").expect("HOME")).join(".cache/benchtrail");
        let python = cache.unwrap_or_else(home).join("venv-tools/bin/python");
        assert!(python.exists(), "run `scripts/setup test` first");
        let mut child = Command::new(python)
            .arg(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/notify/mail_server.py"))
            .args(refusals)
            .stdout(Stdio::piped())
            .spawn()
            .expect("python starts");
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let port = lines.next().unwrap().unwrap().parse().unwrap();
        Self { child, lines, port }
    }

    fn configure(&self, config: &mut Config) {
        let url = format!("smtp://127.0.0.1:{}", self.port);
        config.smtp =
            Some(SmtpConfig { url: Hidden::new(url), from: "Benchtrail <bench@example.org>".into() });
        config.notify = Pace {
            look: Duration::from_millis(50),
            first_retry: Duration::from_millis(20),
            longest_retry: Duration::from_millis(50),
            tries: 3,
        };
    }

    /// The next message it accepted. Only asked for when one is known to be there.
    fn next(&mut self) -> Value {
        serde_json::from_str(&self.lines.next().unwrap().unwrap()).unwrap()
    }

    /// Ends it and gives all that it accepted besides.
    fn rest(mut self) -> Vec<Value> {
        let _ = self.child.kill();
        self.lines.by_ref().map_while(Result::ok).map(|line| serde_json::from_str(&line).unwrap()).collect()
    }
}

async fn page(plane: &Plane, email: &str, role: Role) -> Client {
    plane.account(email, role).await;
    let mut page = plane.anonymous();
    page.sign_in(email, PASSWORD).await.ok();
    page
}

async fn rows(client: &Client, path: &str) -> Vec<Value> {
    client.get(path).await.ok().as_array().unwrap().clone()
}

/// A run that ends as failed: its one job fails as often as it may.
async fn failed_run(plane: &Plane, member: &Client, agent: &Agent, code: &str) {
    project(member, code, 1).await;
    let before = plane.head().await;
    start_run(member, agent, code).await;
    let held = agent.claim().await.expect("a job waits");
    agent.report(&[(clock::now(), failed(&held))]).await;
    plane.until_type_after(before, "run.finished").await;
}

#[tokio::test]
async fn a_failed_run_is_told_once_to_who_started_it_and_to_who_wants_to_hear_of_all() {
    let mut mail = MailServer::start(&[]);
    let plane = Plane::start_with(|config| mail.configure(config)).await;
    let bob = page(&plane, "bob@example.org", Role::Member).await;
    let curious = page(&plane, "curious@example.org", Role::Viewer).await;
    page(&plane, "indifferent@example.org", Role::Admin).await;
    curious.rpc("set_notification_preferences", &json!({"p_run_failed": "all"})).await.ok();
    let agent = Agent::enrol(&plane, "h1").await;
    failed_run(&plane, &bob, &agent, "p").await;

    plane.until_types_after(0, "notification.sent", 2).await;
    let messages = [mail.next(), mail.next()];
    let mut to: Vec<&Value> = messages.iter().map(|message| &message["to"][0]).collect();
    to.sort_by_key(|to| to.to_string());
    assert_eq!(to, [&json!("bob@example.org"), &json!("curious@example.org")]);
    for message in &messages {
        assert_eq!(message["subject"], "Benchtrail: p/w #1 failed");
        assert_eq!(message["from"], "Benchtrail <bench@example.org>");
        assert_eq!(message["auto"], "auto-generated");
        assert!(message["text"].as_str().unwrap().contains(&format!("{}/projects/acme/p/w/1", plane.url)));
        assert!(message["id"].as_str().unwrap().ends_with("@example.org>"));
    }
    assert_ne!(messages[0]["id"], messages[1]["id"]);
    let told = rows(&bob, "/api/v_notifications").await;
    assert_eq!((told.len(), &told[0]["state"], &told[0]["attempts"]), (1, &json!("sent"), &json!(1)));
    plane.stop().await;
    assert_eq!(mail.rest(), Vec::<Value>::new(), "nobody is told twice");
}

#[tokio::test]
async fn who_does_not_want_to_hear_of_it_does_not() {
    let mail = MailServer::start(&[]);
    let plane = Plane::start_with(|config| mail.configure(config)).await;
    let bob = page(&plane, "bob@example.org", Role::Member).await;
    let preferences = rows(&bob, "/api/v_notification_preferences").await;
    assert_eq!(
        preferences,
        [
            json!({"org": "acme", "run_completed": "own", "run_failed": "own", "weekly_summary": false, "quota": true})
        ]
    );
    bob.rpc("set_notification_preferences", &json!({"p_run_failed": "off"})).await.ok();
    let refused = bob.rpc("set_notification_preferences", &json!({"p_run_failed": "sometimes"})).await;
    assert_eq!(refused.refused().code, "bad_arguments");
    let agent = Agent::enrol(&plane, "h1").await;
    failed_run(&plane, &bob, &agent, "p").await;
    // A second message, which is sent, comes after the one that is not.
    bob.rpc("test_notification", &json!({})).await.ok();
    plane.until_type_after(0, "notification.sent").await;
    plane.stop().await;
    let messages = mail.rest();
    assert_eq!(messages.len(), 1);
    assert_eq!(messages[0]["subject"], "Benchtrail: a test");
}

#[tokio::test]
async fn a_mail_server_that_is_busy_is_tried_again_and_one_that_refuses_is_not() {
    let mut mail = MailServer::start(&["451", "421"]);
    let plane = Plane::start_with(|config| mail.configure(config)).await;
    let bob = page(&plane, "bob@example.org", Role::Member).await;
    bob.rpc("test_notification", &json!({})).await.ok();
    plane.until_type_after(0, "notification.sent").await;
    assert_eq!(mail.next()["subject"], "Benchtrail: a test");
    assert_eq!(rows(&bob, "/api/v_notifications").await[0]["attempts"], 3);
    plane.stop().await;
    assert_eq!(mail.rest().len(), 0);

    let mail = MailServer::start(&["550"]);
    let plane = Plane::start_with(|config| mail.configure(config)).await;
    let bob = page(&plane, "bob@example.org", Role::Member).await;
    bob.rpc("test_notification", &json!({})).await.ok();
    plane.until_type_after(0, "notification.abandoned").await;
    let told = rows(&bob, "/api/v_notifications").await;
    assert_eq!((&told[0]["state"], &told[0]["attempts"]), (&json!("given_up"), &json!(1)));
    assert!(told[0]["last_error"].as_str().unwrap().contains("550"), "{told:?}");
    plane.stop().await;
    assert_eq!(mail.rest().len(), 0);
}

#[tokio::test]
async fn two_that_deliver_at_the_same_time_send_a_message_once_and_what_was_sent_is_not_sent_again() {
    let mut mail = MailServer::start(&[]);
    let plane = Plane::start_with(|config| mail.configure(config)).await;
    let bob = page(&plane, "bob@example.org", Role::Member).await;
    for _ in 0..5 {
        bob.rpc("test_notification", &json!({})).await.ok();
    }
    let deliver = || async { while notify::deliver(&plane.state).await.unwrap() {} };
    tokio::join!(deliver(), deliver(), deliver());
    plane.until_types_after(0, "notification.sent", 5).await;
    for _ in 0..5 {
        mail.next();
    }
    // As after a crash between the mail server's answer and the end of the transaction: the row stands as unsent.
    sqlx::query("update vault.outbox set sent_at = null, due_at = now()")
        .execute(&plane.state.pool)
        .await
        .unwrap();
    while notify::deliver(&plane.state).await.unwrap() {}
    // The control plane delivers beside this: the last row may be in its hands.
    let settled = async {
        while rows(&bob, "/api/v_notifications?state=eq.sent").await.len() < 5 {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(20), settled).await.expect("every row is settled");
    // Nor is the log collected twice, wherever the cursor was.
    sqlx::query("update vault.notification_cursor set position = 0")
        .execute(&plane.state.pool)
        .await
        .unwrap();
    while notify::collect(&plane.state).await.unwrap() {}
    plane.stop().await;
    assert_eq!(mail.rest(), Vec::<Value>::new());
}

#[tokio::test]
async fn administrators_are_told_once_of_each_level_of_a_quota() {
    let mut mail = MailServer::start(&[]);
    let plane = Plane::start_with(|config| mail.configure(config)).await;
    let ann = page(&plane, "ann@example.org", Role::Admin).await;
    let quiet = page(&plane, "quiet@example.org", Role::Admin).await;
    quiet.rpc("set_notification_preferences", &json!({"p_quota": false})).await.ok();
    page(&plane, "bob@example.org", Role::Member).await;
    let meta = RequestMeta { correlation_id: Uuid::now_v7(), idempotency_key: None, now: clock::now() };
    let quotas = [(Resource::Projects, Some(20))].into();
    set_quotas(&plane.state, &Principal::operator(ORG), ORG, &quotas, meta).await.unwrap();
    let create = async |number: u32| {
        ann.rpc("create_project", &json!({"p_project_code": format!("p{number}"), "p_name": "p"})).await.ok();
    };
    for number in 1..=16 {
        create(number).await;
    }
    plane.until_type_after(0, "notification.sent").await;
    let message = mail.next();
    assert_eq!(message["to"], json!(["ann@example.org"]));
    assert_eq!(message["subject"], "Benchtrail: acme uses 80 % of its projects");
    assert!(message["text"].as_str().unwrap().contains("uses 16 of the 20 projects"), "{message}");
    // One fewer and one more: the level was not left.
    ann.rpc("archive_project", &json!({"p_project_code": "p4"})).await.ok();
    for number in 17..=20 {
        create(number).await;
    }
    plane.until_types_after(0, "notification.sent", 2).await;
    assert_eq!(mail.next()["subject"], "Benchtrail: acme uses 95 % of its projects");
    plane.stop().await;
    assert_eq!(mail.rest(), Vec::<Value>::new());
}

#[tokio::test]
async fn the_week_is_summed_up_once_for_who_wants_it() {
    let mut mail = MailServer::start(&[]);
    let plane = Plane::start_with(|config| mail.configure(config)).await;
    let bob = page(&plane, "bob@example.org", Role::Member).await;
    page(&plane, "indifferent@example.org", Role::Member).await;
    bob.rpc("set_notification_preferences", &json!({"p_weekly_summary": true, "p_run_failed": "off"}))
        .await
        .ok();
    let agent = Agent::enrol(&plane, "h1").await;
    failed_run(&plane, &bob, &agent, "p").await;
    while notify::collect(&plane.state).await.unwrap() {}
    let next_week = clock::now().plus_micros(7 * 86_400_000_000);
    notify::weekly(&plane.state, next_week).await.unwrap();
    notify::weekly(&plane.state, next_week).await.unwrap();
    plane.until_type_after(0, "notification.sent").await;
    let message = mail.next();
    assert!(message["subject"].as_str().unwrap().starts_with("Benchtrail: your week from "), "{message}");
    let text = message["text"].as_str().unwrap();
    for line in ["runs started     1", "runs failed      1", "runs completed   0", "jobs failed      1"] {
        assert!(text.contains(line), "{text}");
    }
    plane.stop().await;
    assert_eq!(mail.rest().len(), 0);
}

/// A receiver of webhooks.
struct Receiver {
    url: String,
    requests: mpsc::UnboundedReceiver<(HeaderMap, Bytes)>,
    answers: Arc<Mutex<Vec<u16>>>,
}

type Shared = (mpsc::UnboundedSender<(HeaderMap, Bytes)>, Arc<Mutex<Vec<u16>>>);

impl Receiver {
    /// Answers with `answers` first, with 200 from then on.
    async fn start(answers: &[u16]) -> Self {
        let (sender, requests) = mpsc::unbounded_channel();
        let answers = Arc::new(Mutex::new(answers.iter().rev().copied().collect::<Vec<_>>()));
        let shared: Shared = (sender, Arc::clone(&answers));
        let receive = async |State((sender, answers)): State<Shared>, headers: HeaderMap, body: Bytes| {
            let status = answers.lock().unwrap().pop().unwrap_or(200);
            sender.send((headers, body)).unwrap();
            StatusCode::from_u16(status).unwrap()
        };
        let router =
            axum::Router::new().route("/hook/{secret}", axum::routing::post(receive)).with_state(shared);
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/hook/a-secret-path", listener.local_addr().unwrap());
        tokio::spawn(async move { axum::serve(listener, router).await });
        Self { url, requests, answers }
    }

    async fn next(&mut self) -> (HeaderMap, Bytes) {
        tokio::time::timeout(PATIENCE, self.requests.recv()).await.expect("a webhook arrives").unwrap()
    }
}

fn allow_loopback(config: &mut Config) {
    config.outbound.networks = "127.0.0.0/8".parse().unwrap();
    config.notify = Pace {
        look: Duration::from_millis(50),
        first_retry: Duration::from_millis(20),
        longest_retry: Duration::from_millis(50),
        tries: 4,
    };
}

#[tokio::test]
async fn a_webhook_is_signed_tried_again_under_its_id_and_tells_of_the_run() {
    let mut receiver = Receiver::start(&[500, 302]).await;
    let plane = Plane::start_with(allow_loopback).await;
    let bob = page(&plane, "bob@example.org", Role::Member).await;
    let args = json!({"p_url": receiver.url, "p_kinds": ["run_failed"]});
    let made = bob.rpc("create_webhook", &args).await.ok();
    let secret = Hidden::new(made["secret"].as_str().unwrap());
    let agent = Agent::enrol(&plane, "h1").await;
    failed_run(&plane, &bob, &agent, "p").await;

    let mut ids = BTreeMap::new();
    for _ in 0..3 {
        let (headers, body) = receiver.next().await;
        let header = |name: &str| headers[name].to_str().unwrap().to_owned();
        let (id, at) = (header("webhook-id"), header("webhook-timestamp"));
        let text = std::str::from_utf8(&body).unwrap();
        assert_eq!(header("webhook-signature"), notify::sign(&secret, &id, at.parse().unwrap(), text));
        let message: Value = serde_json::from_str(text).unwrap();
        assert_eq!(
            (&message["type"], &message["data"]["run"]),
            (&json!("run_failed"), &json!("run/acme/p/w/1"))
        );
        *ids.entry(id).or_insert(0) += 1;
    }
    assert_eq!(ids.values().copied().collect::<Vec<_>>(), [3], "one message, three tries");
    plane.until_type_after(0, "notification.sent").await;
    assert!(receiver.answers.lock().unwrap().is_empty());

    // Of the address only the host is shown, and nothing of it stands in an event.
    let listed = rows(&bob, "/api/v_webhooks").await;
    assert_eq!((&listed[0]["host"], &listed[0]["kinds"]), (&json!("127.0.0.1"), &json!(["run_failed"])));
    assert!(!json!(listed).to_string().contains("a-secret-path"));
    let events = plane.state.log.read_all(0, 10_000).await.unwrap();
    assert!(
        events
            .iter()
            .all(|event| !event.payload.contains("a-secret-path") && !event.payload.contains("whsec_"))
    );
    let ann = page(&plane, "ann@example.org", Role::Admin).await;
    assert_eq!(rows(&ann, "/api/v_webhooks").await.len(), 0);
    let remove = json!({"p_webhook_id": made["webhook_id"]});
    assert_eq!(ann.rpc("remove_webhook", &remove).await.refused().code, "webhook_not_found");
    bob.rpc("remove_webhook", &remove).await.ok();
    assert_eq!(rows(&bob, "/api/v_webhooks").await.len(), 0);
    plane.stop().await;
}

#[tokio::test]
async fn a_receiver_that_is_gone_is_asked_no_more_and_one_that_stays_away_is_given_up() {
    let mut receiver = Receiver::start(&[410]).await;
    let plane = Plane::start_with(allow_loopback).await;
    let bob = page(&plane, "bob@example.org", Role::Member).await;
    let made =
        bob.rpc("create_webhook", &json!({"p_url": receiver.url, "p_kinds": ["run_failed"]})).await.ok();
    bob.rpc("test_notification", &json!({"p_webhook_id": made["webhook_id"]})).await.ok();
    receiver.next().await;
    plane.until_type_after(0, "notification.webhook_removed").await;
    plane.until_type_after(0, "notification.abandoned").await;
    let again = bob.rpc("test_notification", &json!({"p_webhook_id": made["webhook_id"]})).await;
    assert_eq!(again.refused().code, "webhook_not_found");

    let mut away = Receiver::start(&[500; 9]).await;
    let before = plane.head().await;
    let made = bob.rpc("create_webhook", &json!({"p_url": away.url, "p_kinds": ["run_failed"]})).await.ok();
    bob.rpc("test_notification", &json!({"p_webhook_id": made["webhook_id"]})).await.ok();
    for _ in 0..4 {
        away.next().await;
    }
    plane.until_type_after(before, "notification.abandoned").await;
    let given_up = rows(&bob, "/api/v_notifications?state=eq.given_up&order=created_at.desc&limit=1").await;
    assert_eq!(
        (&given_up[0]["attempts"], given_up[0]["last_error"].as_str().unwrap().contains("500")),
        (&json!(4), true)
    );
    plane.stop().await;
}

#[tokio::test]
async fn a_webhook_to_an_address_that_is_not_public_is_refused() {
    let plane = Plane::start().await;
    let bob = page(&plane, "bob@example.org", Role::Member).await;
    for url in [
        "http://127.0.0.1:1/",
        "https://127.1/",
        "https://localhost/hook",
        "https://169.254.169.254/latest/",
        "https://[::ffff:10.0.0.1]/",
        "https://10.0.0.1/",
        "ftp://example.org/",
        "https://user:pw@example.org/",
        "x",
    ] {
        let refused = bob.rpc("create_webhook", &json!({"p_url": url, "p_kinds": ["run_failed"]})).await;
        assert_eq!(refused.refused().code, "bad_address", "{url}");
    }
    let kinds =
        bob.rpc("create_webhook", &json!({"p_url": "https://127.0.0.1/", "p_kinds": ["everything"]})).await;
    assert_eq!(kinds.refused().code, "bad_kinds");
    let mail = bob.rpc("test_notification", &json!({})).await;
    assert_eq!((mail.status.as_u16(), mail.refused().code.as_str()), (422, "no_mail_server"));
    plane.stop().await;
}
