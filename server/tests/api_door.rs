//! The one door for agents: what is taken, what is refused, and that nothing is ever half-written.

mod plane;

use events::access::Role;
use events::canonical::CanonicalJson;
use events::envelope::NewEvent;
use events::report::ItemOutcome;
use events::subjects::{self, IngestKind};
use futures::{FutureExt as _, StreamExt as _};
use plane::agent::{
    Agent, failed, lines, outcomes, project, rejected, running, serving, start_run, telemetry,
};
use plane::{ORG, Plane};
use serde_json::{Value, json};
use server::clock;
use server::log::{AppendOutcome, AppendRequest, Expected};
use sha2::{Digest, Sha256};
use uuid::Uuid;

#[tokio::test]
async fn an_attempt_is_reported_from_claim_to_end_and_the_run_goes_on() {
    let plane = Plane::start().await;
    let agent = Agent::enrol(&plane, "h1").await;
    let member = plane.client(Role::Member).await;
    project(&member, "p", 2).await;
    start_run(&member, &agent, "p").await;
    let held = agent.claim().await.expect("a job waits");
    assert!(agent.claim().await.is_none(), "an agent holds one job at a time");

    let now = clock::now();
    let outcomes = agent
        .report(&[
            (now, serving(&held)),
            (now, running(&held)),
            (now, telemetry(&held, 1, now)),
            (now, lines(&held, 1, &["one", "two"])),
            (now.plus_micros(1000), telemetry(&held, 2, now.plus_micros(1000))),
            (now.plus_micros(2000), failed(&held)),
        ])
        .await;
    assert!(outcomes.iter().all(|o| matches!(o, ItemOutcome::Accepted { .. })), "{outcomes:?}");

    // The end of the first job queues the second.
    let position = positions(&outcomes).into_iter().max().unwrap();
    plane.until_type_after(position, "job.queued").await;
    let second = agent.claim().await.expect("the next job waits");
    assert_ne!(second.job, held.job);
    plane.stop().await;
}

#[tokio::test]
async fn a_resend_is_recognised_and_a_changed_resend_is_refused() {
    let plane = Plane::start().await;
    let (agent, held) = plane.held("h1").await;
    let now = clock::now();
    let mut batch =
        agent.batch(&[(now, serving(&held)), (now, telemetry(&held, 1, now)), (now, failed(&held))]);
    let first = agent.send(&batch).await;
    let head = plane.settled_head().await;
    let again = agent.send(&batch).await;
    let duplicates: Vec<ItemOutcome> =
        positions(&first).into_iter().map(|position| ItemOutcome::Duplicate { position }).collect();
    assert_eq!(again, duplicates);
    assert_eq!(plane.head().await, head, "a resend writes nothing");

    batch["items"][1]["body"]["telemetry"]["samples"][0]["cpus"][0]["utilization"] = json!(0.75);
    assert_eq!(rejected(&agent.send(&batch).await[1]), "id_reused");
    plane.stop().await;
}

#[tokio::test]
async fn what_is_numbered_and_each_step_is_told_once_whatever_its_event_id() {
    let plane = Plane::start().await;
    let (agent, held, member) = plane.held_of("h1").await;
    let now = clock::now();
    let progress = json!({"kind": "progress", "job": held.job, "attempt": 1, "progress":
        {"seq": 1, "phase": "running", "done": 1, "failed": 0, "in_flight": 1, "elapsed_s": 1.0}});
    let told = [
        serving(&held),
        running(&held),
        telemetry(&held, 1, now),
        telemetry(&held, 3, now.plus_micros(2)),
        progress,
        lines(&held, 1, &["one", "two"]),
        lines(&held, 4, &["four"]),
    ];
    let batch =
        |bodies: &[Value]| bodies.iter().map(|body| (now.plus_micros(2), body.clone())).collect::<Vec<_>>();
    let first = agent.report(&batch(&told)).await;
    assert!(first.iter().all(|o| matches!(o, ItemOutcome::Accepted { .. })), "{first:?}");
    // All of it under other ids, in one batch and one by one; and twice in a batch.
    let again = agent.report(&batch(&told)).await;
    let codes: Vec<&str> = again.iter().map(rejected).collect();
    assert_eq!(codes[..2], ["already_reported"; 2]);
    assert_eq!(codes[2..], ["number_repeated"; 5]);
    for body in [telemetry(&held, 1, now.plus_micros(1)), lines(&held, 2, &["two", "three"])] {
        assert_eq!(rejected(&agent.report(&batch(&[body])).await[0]), "number_repeated");
    }
    let twice =
        agent.report(&batch(&[telemetry(&held, 4, now.plus_micros(1)), telemetry(&held, 4, now)])).await;
    assert!(matches!(twice[0], ItemOutcome::Accepted { .. }), "{twice:?}");
    assert_eq!(rejected(&twice[1]), "number_repeated");
    // What came late fills its hole.
    let late =
        agent.report(&batch(&[lines(&held, 3, &["three"]), telemetry(&held, 2, now.plus_micros(-1))])).await;
    assert!(late.iter().all(|o| matches!(o, ItemOutcome::Accepted { .. })), "{late:?}");
    let head = plane.head().await;
    let chunks = member
        .send(
            member
                .request(reqwest::Method::GET, "/api/v_telemetry_chunks?source=eq.cpu0&select=at")
                .header("prefer", format!("at-least={head}")),
        )
        .await
        .json();
    assert_eq!(chunks[0]["at"].as_array().map(Vec::len), Some(4), "{chunks}");
    plane.stop().await;
}

#[tokio::test]
async fn a_bad_item_is_refused_alone_recorded_and_changes_nothing_else() {
    let plane = Plane::start().await;
    let (agent, held) = plane.held("h1").await;
    let (other, others) = {
        let other = Agent::enrol(&plane, "h2").await;
        let member = plane.client(Role::Member).await;
        project(&member, "p2", 1).await;
        start_run(&member, &other, "p2").await;
        let held = other.claim().await.expect("a job waits");
        (other, held)
    };
    let _ = other;
    let now = clock::now();
    let hour = 3_600_000_000;
    let mut unknown = telemetry(&held, 1, now);
    unknown["job"]["project"] = json!("nowhere");
    let mut foreign = telemetry(&held, 1, now);
    foreign["job"]["org"] = json!("other");
    let mut later = telemetry(&held, 1, now);
    later["attempt"] = json!(7);
    let mut percent = telemetry(&held, 1, now);
    percent["telemetry"]["samples"][0]["cpus"][0]["utilization"] = json!(73.0);
    let mut nul = lines(&held, 1, &["x"]);
    nul["log"]["lines"][0] = json!("a\u{0}b");
    let mut extra = telemetry(&held, 1, now);
    extra["surprise"] = json!(1);
    let blob = json!({"kind": "blob", "job": held.job, "attempt": 1, "blob":
        {"sha256": "ab".repeat(32), "size": 3, "media_type": "text/plain", "purpose": "log"}});
    let table: Vec<(&str, events::Timestamp, Value)> = vec![
        ("not_your_job", now, telemetry(&others, 1, now)),
        ("not_your_job", now, serving(&others)),
        ("not_your_job", now, foreign),
        ("job_not_found", now, unknown),
        ("unknown_attempt", now, later),
        ("outside_window", held.claimed_at.plus_micros(-hour), telemetry(&held, 1, now)),
        ("outside_window", now, telemetry(&held, 1, held.claimed_at.plus_micros(-hour))),
        ("outside_window", now.plus_micros(hour), telemetry(&held, 1, now)),
        ("outside_window", now.plus_micros(hour), running(&held)),
        ("bad_value", now, percent),
        ("bad_value", now, telemetry(&held, 0, now)),
        ("bad_value", now, lines(&held, 1, &[])),
        ("bad_value", now, lines(&held, 1, &[&"x".repeat(20_000)])),
        ("bad_value", now, nul),
        ("event_too_large", now, lines(&held, 1, &[&*"x".repeat(15_000); 5])),
        ("malformed_item", now, extra),
        ("malformed_item", now, json!({"kind": "surprise"})),
        ("malformed_item", now, json!("text")),
        ("blob_missing", now, blob),
        (
            "cancel_not_requested",
            now,
            json!({"kind": "cancelled", "job": held.job, "cancelled": {"attempt": 1}}),
        ),
    ];
    for (number, (code, at, body)) in (1..).zip(&table) {
        let head = plane.head().await;
        let outcomes = agent.report(&[(*at, body.clone()), (now, lines(&held, number, &["fine"]))]).await;
        assert_eq!(rejected(&outcomes[0]), *code, "{body}");
        assert!(matches!(outcomes[1], ItemOutcome::Accepted { .. }), "{code}: the good item is taken");
        let types = plane.types_after(head).await;
        assert_eq!(types, ["log.lines", "report.rejected"], "{code}: nothing half-written");
    }
    plane.stop().await;
}

#[tokio::test]
async fn an_agent_cannot_speak_for_another_over_https_or_nats() {
    let plane = Plane::start().await;
    let one = Agent::enrol(&plane, "h1").await;
    let two = Agent::enrol(&plane, "h2").await;
    let batch = two.batch(&[]);
    let head = plane.head().await;

    let refused = one.client.post("/api/agent/reports", &batch).await;
    assert_eq!((refused.status.as_u16(), refused.refused().code.as_str()), (403, "identity_mismatch"));
    let nats = one.nats().await;
    let reply = one.ask(&nats, IngestKind::Reports, &batch).await;
    assert_eq!(reply["error"]["code"], "identity_mismatch");
    assert_eq!(plane.types_after(head).await, ["report.rejected", "report.rejected"]);

    // The NATS server itself refuses another's subject: no answer comes.
    let subject = subjects::ingest_subject(ORG, &two.name(), IngestKind::Reports);
    let asked = nats.request(subject, two.batch(&[]).to_string().into());
    let answered = tokio::time::timeout(std::time::Duration::from_secs(2), asked).await;
    assert!(!matches!(answered, Ok(Ok(_))), "another agent's subject was open");
    plane.stop().await;
}

#[tokio::test]
async fn the_door_over_nats_is_the_door_over_https() {
    let plane = Plane::start().await;
    let (agent, held) = plane.held("h1").await;
    let nats = agent.nats().await;
    let now = clock::now();
    let batch = agent.batch(&[(now, serving(&held)), (now, telemetry(&held, 1, now))]);
    let first = outcomes(&agent.ask(&nats, IngestKind::Reports, &batch).await);
    assert!(first.iter().all(|o| matches!(o, ItemOutcome::Accepted { .. })), "{first:?}");
    let again = agent.send(&batch).await;
    assert!(again.iter().all(|o| matches!(o, ItemOutcome::Duplicate { .. })), "{again:?}");

    let beat = json!({"at": now, "holding": [{"job": held.job, "attempt": held.attempt}]});
    let reply = agent.ask(&nats, IngestKind::Heartbeat, &beat).await;
    assert_eq!((&reply["error"], &reply["stop"]), (&Value::Null, &json!([])));
    let reply = agent.ask(&nats, IngestKind::Claim, &json!({"claim_id": Uuid::now_v7()})).await;
    assert_eq!((&reply["error"], &reply["job"]), (&Value::Null, &Value::Null));
    let reply = agent.ask(&nats, IngestKind::Claim, &json!({"claim": 1})).await;
    assert_eq!(reply["error"]["code"], "bad_arguments");
    plane.stop().await;
}

#[tokio::test]
async fn an_agent_whose_host_has_a_dotted_name_reports_over_nats() {
    let plane = Plane::start().await;
    let agent = Agent::enrol(&plane, "gpu1.example.com").await;
    let nats = agent.nats().await;
    let beat = json!({"at": clock::now(), "holding": []});
    let reply = agent.ask(&nats, IngestKind::Heartbeat, &beat).await;
    assert_eq!((&reply["error"], &reply["stop"]), (&Value::Null, &json!([])));
    plane.stop().await;
}

#[tokio::test]
async fn an_agent_is_answered_in_its_own_inbox_and_nowhere_else() {
    let plane = Plane::start().await;
    let (one, two) = (Agent::enrol(&plane, "h1").await, Agent::enrol(&plane, "h2").await);
    let (nats, ours) = (one.nats().await, plane.state.nats.clone().unwrap());
    let foreign = [
        subjects::command_subject(ORG, &two.name()),
        format!("{}.abc", subjects::inbox_prefix(ORG, &two.name())),
        "events.acme.job.forged".to_owned(),
    ];
    let mut heard = Vec::new();
    for subject in &foreign {
        heard.push(ours.subscribe(subject.clone()).await.unwrap());
    }
    ours.flush().await.unwrap();
    let beat = json!({"at": clock::now(), "holding": []});
    let own = subjects::ingest_subject(ORG, &one.name(), IngestKind::Heartbeat);
    for subject in &foreign {
        nats.publish_with_reply(own.clone(), subject.clone(), beat.to_string().into()).await.unwrap();
    }
    // What is asked for properly afterwards is answered; by then the others would have been too.
    for _ in 0..3 {
        assert_eq!(one.ask(&nats, IngestKind::Heartbeat, &beat).await["error"], Value::Null);
    }
    ours.flush().await.unwrap();
    for (subject, messages) in foreign.iter().zip(&mut heard) {
        assert!(messages.next().now_or_never().is_none(), "an answer went to {subject}");
    }
    plane.stop().await;
}

#[tokio::test]
async fn numbers_that_cannot_be_are_refused_and_the_tables_stay_whole() {
    let plane = Plane::start().await;
    let (agent, held) = plane.held("h1").await;
    let now = clock::now();
    let mut too_much = telemetry(&held, 1, now);
    too_much["telemetry"]["samples"][0]["system"]["ram_used_bytes"] = json!(u64::MAX);
    let mut twice = telemetry(&held, 1, now);
    let cpu = twice["telemetry"]["samples"][0]["cpus"][0].clone();
    twice["telemetry"]["samples"][0]["cpus"].as_array_mut().unwrap().push(cpu);
    let mut lines = lines(&held, 1, &["one"]);
    lines["log"]["first_line"] = json!(u64::MAX);
    let mut running = running(&held);
    running["running"]["ready_after_s"] = json!(-5.0);
    for (what, body) in [("telemetry", too_much), ("twice", twice), ("lines", lines), ("running", running)] {
        let outcomes = agent.report(&[(now, body)]).await;
        assert_eq!(rejected(&outcomes[0]), "bad_value", "{what}");
    }
    plane.stop().await;
}

#[tokio::test]
async fn an_agent_is_told_to_stop_what_it_does_not_hold_and_what_was_cancelled() {
    let plane = Plane::start().await;
    let (agent, held) = plane.held("h1").await;
    assert_eq!(agent.beat(&[&held]).await.ok()["stop"], json!([]));
    let member = plane.client(Role::Member).await;
    let cancel = json!({"p_project_code": "p", "p_workload_code": "w", "p_run_number": 1});
    member.rpc("cancel_run", &cancel).await.ok();
    let held_json = json!([{"job": held.job, "attempt": held.attempt}]);
    assert_eq!(agent.beat(&[&held]).await.ok()["stop"], held_json);
    let outcomes = agent
        .report(&[(clock::now(), json!({"kind": "cancelled", "job": held.job, "cancelled": {"attempt": 1}}))])
        .await;
    assert!(matches!(outcomes[0], ItemOutcome::Accepted { .. }), "{outcomes:?}");
    plane.stop().await;
}

#[tokio::test]
async fn a_registration_token_works_once_and_a_used_one_says_what_to_do() {
    let plane = Plane::start().await;
    let admin = plane.client(Role::Admin).await;
    let args = json!({"p_config_code": "local-cpu", "p_hostname": "h1"});
    let token = admin.rpc("create_server_config_instance", &args).await.ok()["enrol_token"].clone();
    let key = nkeys::KeyPair::new_user().public_key();
    let anonymous = plane.anonymous();
    let enrol = |token: Value, key: Value| {
        let body = json!({"token": token, "nats_public_key": key, "agent_version": "0.1.0"});
        let anonymous = anonymous.clone();
        async move { anonymous.post("/api/agent/enrol", &body).await }
    };
    assert_eq!(enrol(token.clone(), json!("UNOTAKEY")).await.refused().code, "bad_nats_key");
    enrol(token.clone(), json!(key)).await.ok();
    let used = enrol(token, json!(key)).await;
    assert_eq!((used.status.as_u16(), used.refused().code.as_str()), (401, "bad_token"));
    let made_up = enrol(json!(format!("bt_e_{}", "A".repeat(43))), json!(key)).await;
    assert_eq!(made_up.text, used.text, "an unknown token and a used one look the same");
    plane.stop().await;
}

#[tokio::test]
async fn a_blob_is_durable_before_it_is_named_and_shown_only_to_those_who_may_see_its_job() {
    let plane = Plane::start().await;
    let (agent, held, owner) = plane.held_of("h1").await;
    let bytes = b"a log file\n".repeat(1000);
    let sha256 = hex::encode(Sha256::digest(&bytes));
    let path = format!("/api/agent/blobs/{sha256}");
    let upload = |path: String, body: Vec<u8>| {
        let request = agent.client.request(reqwest::Method::PUT, &path).body(body);
        async { agent.client.send(request).await }
    };
    assert_eq!(upload(path.clone(), b"other".to_vec()).await.refused().code, "wrong_hash");
    assert_eq!(upload("/api/agent/blobs/nothex".into(), bytes.clone()).await.refused().code, "bad_blob_name");
    assert_eq!(upload(path, bytes.clone()).await.ok()["size"], json!(bytes.len()));

    let report = json!({"kind": "blob", "job": held.job, "attempt": 1, "blob": {
        "sha256": sha256, "size": bytes.len(), "media_type": "text/plain", "purpose": "framework_log",
        "job": held.job.stream(),
    }});
    let outcomes = agent.report(&[(clock::now(), report)]).await;
    assert!(matches!(outcomes[0], ItemOutcome::Accepted { .. }), "{outcomes:?}");

    let url = format!("/api/blobs/{ORG}/{sha256}");
    let member = plane.client(Role::Viewer).await;
    let shown = member.get(&url).await;
    assert_eq!((shown.status.as_u16(), shown.text.as_bytes()), (200, bytes.as_slice()));
    assert_eq!(plane.anonymous().get(&url).await.refused().code, "no_such_blob");
    let stranger = plane.account_in("other", "s@other.org", Role::Admin).await;
    let stranger = plane.token_of(stranger, "other", Role::Admin, &["admin"], clock::now()).await;
    let stranger = plane::Client::with_token(&plane.url, &stranger);
    assert_eq!(stranger.get(&url).await.refused().code, "no_such_blob");

    // What is said of it follows its job too: in the history, and as a proof.
    let position = positions(&outcomes)[0];
    let said =
        [format!("/api/history?stream=blob/{ORG}/{sha256}"), format!("/api/proof?position={position}")];
    for path in &said {
        member.get(path).await.ok();
        assert_eq!(stranger.get(path).await.refused().code, "not_found", "{path}");
    }
    // However much was said of the project before.
    let name = json!({"p_project_code": held.job.project, "p_name": "Renamed"});
    owner.rpc("rename_project", &name).await.ok();
    let stream = held.job.run_key().workload_key().project_key().stream();
    let last = plane.state.log.read_stream(&stream, 2, 1).await.unwrap().remove(0);
    let again = |_| NewEvent {
        event_id: Uuid::now_v7(),
        event_type: last.event_type.clone(),
        schema_version: last.schema_version,
        org: ORG.into(),
        actor: last.actor.clone(),
        causation_id: None,
        correlation_id: None,
        occurred_at: last.occurred_at,
        payload: CanonicalJson::parse(&last.payload).unwrap(),
    };
    let many = AppendRequest::one(stream, Expected::Any, (0..1000).map(again).collect());
    assert!(matches!(plane.state.log.append(many).await.unwrap(), AppendOutcome::Appended { .. }));
    let project = json!({"p_project_code": held.job.project, "p_visibility": "private"});
    owner.rpc("set_project_visibility", &project).await.ok();
    let head = plane.head().await;
    let mut hub = plane.state.hub.watch();
    hub.wait_for(|position| *position >= head).await.unwrap();
    for path in &said {
        owner.get(path).await.ok();
        assert_eq!(member.get(path).await.refused().code, "not_found", "{path}");
    }
    assert_eq!(owner.get(&url).await.status.as_u16(), 200);
    assert_eq!(member.get(&url).await.refused().code, "no_such_blob");
    plane.stop().await;
}

fn positions(outcomes: &[ItemOutcome]) -> Vec<i64> {
    let position = |outcome: &ItemOutcome| match outcome {
        ItemOutcome::Accepted { position } | ItemOutcome::Duplicate { position } => *position,
        other => panic!("{other:?}"),
    };
    outcomes.iter().map(position).collect()
}
