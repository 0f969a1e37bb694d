//! What can be done with a run afterwards: tried again, executed again, cloned, held back by maintenance, reported.

mod plane;

use events::access::Role;
use plane::agent::{Agent, CONFIG, Held, failed, project, running, serving, start_run};
use plane::{Client, Plane};
use serde_json::{Value, json};
use server::clock;

async fn rows(client: &Client, plane: &Plane, path: &str) -> Vec<Value> {
    let head = plane.head().await;
    let request = client.request(reqwest::Method::GET, path).header("prefer", format!("at-least={head}"));
    client.send(request).await.ok().as_array().unwrap().clone()
}

async fn fail(agent: &Agent, held: &Held) {
    for body in [serving(held), running(held), failed(held)] {
        agent.report(&[(clock::now(), body)]).await;
    }
}

/// The job fails, and its run has gone on to the next.
async fn fail_and_go_on(plane: &Plane, agent: &Agent, held: &Held) -> Held {
    let head = plane.head().await;
    fail(agent, held).await;
    plane.until_type_after(head, "job.queued").await;
    agent.claim().await.expect("the next job")
}

fn job(scenario: &str) -> Value {
    json!({"p_project_code": "p", "p_workload_code": "w", "p_run_number": 1, "p_scenario_code": scenario})
}

#[tokio::test]
async fn a_failed_job_is_tried_again_in_its_run_which_goes_on_and_finishes_anew() {
    let plane = Plane::start().await;
    let (agent, member) = (Agent::enrol(&plane, "h1").await, plane.client(Role::Member).await);
    project(&member, "p", 2).await;
    start_run(&member, &agent, "p").await;
    let first = agent.claim().await.expect("the first job");
    assert_eq!(member.rpc("retry_job", &job("c1-isl64-osl16")).await.refused().code, "job_not_failed");
    let second = fail_and_go_on(&plane, &agent, &first).await;
    // While the run goes on, its turn comes after the job that is on its way.
    member.rpc("retry_job", &job("c1-isl64-osl16")).await.ok();
    let jobs = rows(&member, &plane, "/api/v_jobs?order=ordinal&select=status").await;
    assert_eq!(jobs, [json!({"status": "pending"}), json!({"status": "running"})]);
    let again = fail_and_go_on(&plane, &agent, &second).await;
    assert_eq!((&again.job, again.attempt), (&first.job, 2));
    fail(&agent, &again).await;
    let head = plane.settled_head().await;
    let run = rows(&member, &plane, "/api/v_runs").await.remove(0);
    assert_eq!((&run["status"], &run["jobs_failed"]), (&json!("failed"), &json!(2)));

    // And after its end: it goes on.
    member.rpc("retry_job", &job("c2-isl64-osl16")).await.ok();
    let types = plane.types_after(head).await;
    assert_eq!(types, ["run.reopened", "job.retried", "job.queued"]);
    let run = rows(&member, &plane, "/api/v_runs").await.remove(0);
    assert_eq!((&run["status"], &run["finished_at"]), (&json!("running"), &json!(null)));
    let third = agent.claim().await.expect("the second job again");
    assert_eq!((&third.job, third.attempt), (&second.job, 2));
    let head = plane.head().await;
    fail(&agent, &third).await;
    plane.until_type_after(head, "run.finished").await;
    let run = rows(&member, &plane, "/api/v_runs").await.remove(0);
    assert_eq!(run["status"], "failed");
    assert_eq!(member.rpc("retry_job", &job("c9")).await.refused().code, "job_not_found");
    plane.stop().await;
}

#[tokio::test]
async fn one_job_is_cancelled_and_its_run_goes_on_without_it() {
    let plane = Plane::start().await;
    let (agent, member) = (Agent::enrol(&plane, "h1").await, plane.client(Role::Member).await);
    project(&member, "p", 3).await;
    start_run(&member, &agent, "p").await;
    let first = agent.claim().await.expect("the first job");
    let viewer = plane.client(Role::Viewer).await;
    assert_eq!(viewer.rpc("cancel_job", &job("c2-isl64-osl16")).await.status, 403);
    assert_eq!(member.rpc("cancel_job", &job("c9")).await.refused().code, "job_not_found");
    // One that waits is cancelled at once, one that an agent holds when the agent has stopped it.
    member.rpc("cancel_job", &job("c2-isl64-osl16")).await.ok();
    assert_eq!(member.rpc("cancel_job", &job("c2-isl64-osl16")).await.refused().code, "job_ended");
    member.rpc("cancel_job", &job("c1-isl64-osl16")).await.ok();
    assert_eq!(member.rpc("cancel_job", &job("c1-isl64-osl16")).await.refused().code, "cancel_requested");
    let asked = agent.beat(&[&first]).await.ok()["stop"].clone();
    assert_eq!(asked.as_array().map(Vec::len), Some(1), "the agent is asked to stop: {asked}");
    let head = plane.head().await;
    let cancelled = json!({"kind": "cancelled", "job": first.job, "cancelled": {"attempt": first.attempt}});
    agent.report(&[(clock::now(), cancelled)]).await;
    plane.until_type_after(head, "job.queued").await;
    let third = agent.claim().await.expect("the third job");
    assert_eq!(third.job.scenario, "c3-isl64-osl16");
    let head = plane.head().await;
    fail(&agent, &third).await;
    plane.until_type_after(head, "run.finished").await;
    let jobs = rows(&member, &plane, "/api/v_jobs?order=ordinal&select=status").await;
    let statuses: Vec<&str> = jobs.iter().filter_map(|job| job["status"].as_str()).collect();
    assert_eq!(statuses, ["cancelled", "cancelled", "failed"]);
    plane.stop().await;
}

#[tokio::test]
async fn a_run_is_executed_again_whole_or_where_it_failed() {
    let plane = Plane::start().await;
    let (agent, member) = (Agent::enrol(&plane, "h1").await, plane.client(Role::Member).await);
    project(&member, "p", 2).await;
    start_run(&member, &agent, "p").await;
    let args = json!({"p_project_code": "p", "p_workload_code": "w", "p_run_number": 1});
    let mut only_failed = args.clone();
    only_failed["p_only_failed"] = json!(true);
    assert_eq!(member.rpc("rerun", &only_failed).await.refused().code, "no_failed_jobs");
    let held = agent.claim().await.expect("a job");
    fail(&agent, &held).await;
    let reply = member.rpc("rerun", &only_failed).await.ok();
    assert_eq!(
        (&reply["run_number"], &reply["job_keys"]),
        (&json!(2), &json!(["job/acme/p/w/2/c1-isl64-osl16"]))
    );
    let reply = member.rpc("rerun", &args).await.ok();
    assert_eq!(reply["job_keys"].as_array().unwrap().len(), 2);
    let runs =
        rows(&member, &plane, "/api/v_runs?order=run_number&select=run_number,rerun_of,hostname").await;
    assert_eq!(runs[0]["rerun_of"], json!(null));
    assert_eq!(runs[2], json!({"run_number": 3, "rerun_of": 1, "hostname": "h1"}));
    let mut elsewhere = args.clone();
    elsewhere["p_hostname"] = json!("nowhere");
    assert_eq!(member.rpc("rerun", &elsewhere).await.refused().code, "server_not_found");
    plane.stop().await;
}

#[tokio::test]
async fn a_workload_is_cloned_with_its_scenarios() {
    let plane = Plane::start().await;
    let (member, other) = (plane.client(Role::Member).await, plane.client(Role::Member).await);
    project(&member, "p", 2).await;
    project(&other, "q", 1).await;
    let args = json!({"p_project_code": "p", "p_workload_code": "w", "p_new_workload_code": "w2", "p_name": "Again"});
    let reply = member.rpc("clone_workload", &args).await.ok();
    assert_eq!(reply["scenario_codes"], json!(["c1-isl64-osl16", "c2-isl64-osl16"]));
    let workloads = rows(
        &member,
        &plane,
        "/api/v_workloads?project_code=eq.p&order=workload_code&select=name,model_code,scenarios,tool_args",
    )
    .await;
    assert_eq!(workloads[1]["name"], "Again");
    assert_eq!(
        (&workloads[0]["model_code"], &workloads[0]["scenarios"]),
        (&workloads[1]["model_code"], &workloads[1]["scenarios"])
    );
    assert_eq!(member.rpc("clone_workload", &args).await.refused().code, "workload_exists");
    // Into another project of the organisation, from one that may be seen.
    let across = json!({"p_project_code": "p", "p_workload_code": "w", "p_new_workload_code": "w9", "p_target_project_code": "q"});
    assert_eq!(other.rpc("clone_workload", &across).await.ok()["project_code"], "q");
    let hide = json!({"p_project_code": "p", "p_visibility": "private"});
    member.rpc("set_project_visibility", &hide).await.ok();
    let mut hidden = across.clone();
    hidden["p_new_workload_code"] = json!("w10");
    assert_eq!(other.rpc("clone_workload", &hidden).await.refused().code, "project_not_found");
    plane.stop().await;
}

#[tokio::test]
async fn a_server_in_maintenance_gets_no_job_until_it_ends() {
    let plane = Plane::start().await;
    let (agent, member, admin) =
        (Agent::enrol(&plane, "h1").await, plane.client(Role::Member).await, plane.client(Role::Admin).await);
    project(&member, "p", 1).await;
    let set = async |on: bool, reason: Option<&str>| {
        let args = json!({"p_config_code": CONFIG, "p_hostname": "h1", "p_on": on, "p_reason": reason});
        admin.rpc("set_server_maintenance", &args).await
    };
    assert_eq!(set(true, None).await.refused().code, "reason_missing");
    set(true, Some("a new fan")).await.ok();
    let server = rows(&member, &plane, "/api/v_servers?select=maintenance,maintenance_reason").await;
    assert_eq!(server, [json!({"maintenance": true, "maintenance_reason": "a new fan"})]);
    start_run(&member, &agent, "p").await;
    assert!(agent.claim().await.is_none());
    assert_eq!(agent.beat(&[]).await.ok()["work_waiting"], false);
    let job = rows(&member, &plane, "/api/v_jobs?select=status").await;
    assert_eq!(job, [json!({"status": "queued"})], "what waits keeps waiting");
    set(false, None).await.ok();
    let head = plane.head().await;
    set(false, None).await.ok();
    assert_eq!(plane.head().await, head, "ending what has ended says nothing new");
    assert_eq!(agent.beat(&[]).await.ok()["work_waiting"], true);
    assert!(agent.claim().await.is_some());
    plane.stop().await;
}

#[tokio::test]
async fn a_run_has_a_report_for_those_who_may_see_it() {
    let plane = Plane::start().await;
    let (agent, held, member) = plane.held_of("h1").await;
    let bytes = b"{\"request\":1}\n".repeat(40);
    let sha256 = hex::encode(<sha2::Sha256 as sha2::Digest>::digest(&bytes));
    let path = format!("/api/agent/blobs/{sha256}");
    let upload = agent.client.request(reqwest::Method::PUT, &path).body(bytes.clone());
    agent.client.send(upload).await.ok();
    let blob = json!({"kind": "blob", "job": held.job, "attempt": held.attempt, "blob": {
        "sha256": sha256, "size": bytes.len(), "media_type": "application/x-ndjson", "purpose": "request_log",
        "job": held.job.stream()}});
    agent.report(&[(clock::now(), blob)]).await;
    fail(&agent, &held).await;
    let head = plane.settled_head().await;
    let artifacts = rows(&member, &plane, "/api/v_job_artifacts?select=job,kind,sha256,bytes,erased").await;
    assert_eq!(
        artifacts,
        [
            json!({"job": held.job.stream(), "kind": "request_log", "sha256": sha256, "bytes": bytes.len(), "erased": false})
        ]
    );
    assert_eq!(member.get(&format!("/api/blobs/acme/{sha256}")).await.text.as_bytes(), bytes);
    // A browser has it compressed, to its end: a body that breaks off is no answer.
    let squeezed = member
        .request(reqwest::Method::GET, &format!("/api/blobs/acme/{sha256}"))
        .header("accept-encoding", "gzip");
    let answer = member.send(squeezed).await;
    assert_eq!((answer.status.as_u16(), answer.headers["content-encoding"] == "gzip"), (200, true));

    let wait =
        member.request(reqwest::Method::GET, "/api/v_jobs").header("prefer", format!("at-least={head}"));
    member.send(wait).await.ok();
    let report = member.get("/api/report/acme/p/w/1").await.ok();
    assert_eq!(
        (&report["format"], &report["run_key"]),
        (&json!("benchtrail.report.v1"), &json!("run/acme/p/w/1"))
    );
    assert_eq!((&report["run"]["status"], &report["server"]["hostname"]), (&json!("failed"), &json!("h1")));
    let job = &report["jobs"][0];
    assert_eq!((&job["job"]["error_code"], &job["result"]), (&json!("tool_failed"), &json!(null)));
    assert_eq!(job["artifacts"][0]["sha256"], sha256.as_str());
    assert_eq!(report["events"][0]["type"], "run.created");
    // Every event of the chain is there with its proof, and each proof holds.
    let proofs: Vec<events::merkle::Proof> = serde_json::from_value(report["proofs"].clone()).unwrap();
    for link in job["chain"].as_array().unwrap() {
        let proof = proofs.iter().find(|proof| json!(proof.event.position) == link["position"]).unwrap();
        assert_eq!(hex::encode(proof.event.hash), link["hash"].as_str().unwrap());
    }
    let page = member.request(reqwest::Method::GET, "/api/report/run/acme/p/w/1?format=html");
    let page = member.send(page).await;
    assert!(page.headers["content-security-policy"].to_str().unwrap().contains("style-src 'sha256-"));
    assert!(page.text.contains("c1-isl64-osl16") && page.text.contains("tool_failed"), "{}", page.text);
    assert!(!page.text.contains("<script"));

    assert_eq!(plane.anonymous().get("/api/report/acme/p/w/1").await.refused().code, "not_found");
    assert_eq!(member.get("/api/report/acme/p/w/9").await.refused().code, "not_found");
    assert_eq!(member.get("/api/report/acme").await.refused().code, "bad_key");
    let elsewhere = plane.account_in("other", "eve@example.org", Role::Admin).await;
    let eve = plane.token_of(elsewhere, "other", Role::Admin, &["read"], clock::now()).await;
    let eve = Client::with_token(&plane.url, &eve);
    assert_eq!(eve.get("/api/report/acme/p/w/1").await.refused().code, "not_found");
    assert!(rows(&eve, &plane, "/api/v_job_artifacts").await.is_empty());
    plane.stop().await;
}

#[tokio::test]
async fn tpu_telemetry_is_summed_up_a_row_a_job() {
    let plane = Plane::start().await;
    let (agent, held, member) = plane.held_of("h1").await;
    for body in [serving(&held), running(&held)] {
        agent.report(&[(clock::now(), body)]).await;
    }
    let tpu = |chip: u32, duty: f64, hbm: u64| {
        json!({"chip": chip, "duty_cycle_pct": duty, "tensor_core_utilization_pct": duty / 2.0,
        "hbm_used_bytes": hbm, "hbm_total_bytes": 100})
    };
    for (seq, duty) in [(1, 40.0), (2, 80.0)] {
        let at = clock::now();
        let body = json!({"kind": "telemetry", "job": held.job, "attempt": held.attempt, "telemetry": {
            "seq": seq, "interval_ms": 1000,
            "samples": [{"at": at, "tpus": [tpu(0, duty, 10), tpu(1, duty + 10.0, 20)]}]}});
        let outcomes = agent.report(&[(at, body)]).await;
        assert!(matches!(outcomes[0], events::report::ItemOutcome::Accepted { .. }), "{outcomes:?}");
    }
    let odd = json!({"kind": "telemetry", "job": held.job, "attempt": held.attempt, "telemetry": {
        "seq": 3, "interval_ms": 1000, "samples": [{"at": clock::now(), "tpus": [tpu(0, 180.0, 10)]}]}});
    let outcomes = agent.report(&[(clock::now(), odd)]).await;
    assert_eq!(plane::agent::rejected(&outcomes[0]), "bad_value");
    let found = rows(&member, &plane, "/api/v_tpu_telemetry_job_summary").await.remove(0);
    for (column, value) in [
        ("sample_count", json!(2)),
        ("tpu_count", json!(2)),
        ("avg_tpu_duty_cycle_pct", json!(65)),
        ("peak_tpu_duty_cycle_pct", json!(90)),
        ("avg_tensor_core_utilization_pct", json!(32.5)),
        ("peak_tensor_core_utilization_pct", json!(45)),
        ("avg_hbm_used_bytes", json!(30)),
        ("max_hbm_used_bytes", json!(30)),
        ("hbm_total_bytes", json!(200)),
    ] {
        assert_eq!(found[column], value, "{column}");
    }
    plane.stop().await;
}

#[tokio::test]
async fn the_api_describes_itself() {
    let plane = Plane::start().await;
    let document = plane.anonymous().get("/api/openapi.json").await.ok();
    assert_eq!(document["openapi"], "3.1.0");
    assert!(document["paths"]["/api/rpc/retry_job"]["post"].is_object());
    assert!(document["paths"]["/api/v_leaderboard"]["get"].is_object());
    let page = plane.anonymous().get("/api/docs").await;
    let policy = page.headers["content-security-policy"].to_str().unwrap();
    assert!(
        policy.starts_with("default-src 'none'; style-src 'sha256-") && !policy.contains("unsafe"),
        "{policy}"
    );
    assert!(page.text.contains("/api/rpc/retry_job"));
    plane.stop().await;
}
