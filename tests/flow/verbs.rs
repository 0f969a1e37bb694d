//! One telemetry sample of a run that ended, followed through the ten verbs in their order.

use std::time::Duration;

use async_nats::jetstream;
use events::api::EventView;
use events::subjects::{EVENTS_STREAM, event_subject};
use events::timestamp::Timestamp;
use futures::StreamExt;
use serde_json::{Value, json};
use support::api::Api;
use support::browser::{Browser, DESKTOP};
use support::control_plane::ControlPlane;
use support::live::Live;
use support::{PATIENCE, database, plant_nats};

/// Follows the last sample of a job from the host it was taken on to the line on the page. `job` is the job's path, `seen`
/// what the live stream showed of its run.
pub async fn walk(plane: &ControlPlane, admin: &Api, seen: &[EventView], job: &str) {
    let of_job = |kind: &str| format!("{kind}/{job}");
    let telemetry = of_job("telemetry");
    let event = seen.iter().rfind(|e| e.stream.starts_with(&telemetry)).expect("telemetry");

    // sample: once a second, on the host, at a moment of its own.
    let samples = event.payload["samples"].as_array().expect("samples");
    let sample = samples.last().expect("a sample");
    assert_eq!(event.payload["interval_ms"], json!(1000));
    let taken_at: Timestamp = serde_json::from_value(sample["at"].clone()).expect("a time");
    let busy = sample["cpus"][0]["utilization"].as_f64().expect("how busy the first socket was");
    assert!((0.0..=1.0).contains(&busy), "{sample}");

    // report: the agent's, numbered, in the order in which they were taken.
    assert_eq!(event.actor_kind, "agent");
    let seq = event.payload["seq"].as_u64().expect("a number");
    let reports: Vec<u64> =
        seen.iter().filter(|e| e.stream == event.stream).filter_map(|e| e.payload["seq"].as_u64()).collect();
    assert_eq!(reports, (1..=seq).collect::<Vec<_>>());

    // accept: by the one door, within the attempt's window.
    let phase = |event_type: &str| {
        seen.iter().find(|e| e.stream == of_job("job") && e.event_type == event_type).expect("a phase")
    };
    let (claimed, completed) = (phase("job.claimed"), phase("job.completed"));
    assert!(claimed.recorded_at <= taken_at && taken_at <= completed.recorded_at, "{sample}");

    // decide: the job's end names what was taken, and was decided after the last of it was in.
    assert!(completed.payload["telemetry_samples"].as_u64() >= Some(reports.len() as u64));
    assert!(completed.position > event.position);

    // append: at its position, as the next version of its stream, in the chain.
    let pool = database::open(&plane.database_url()).await;
    let (stream, version, hash): (String, i64, Vec<u8>) = sqlx::query_as(
        "select s.stream_key, e.version, e.hash from events e join streams s using (stream_no) where e.position = $1",
    )
    .bind(event.position)
    .fetch_one(&pool)
    .await
    .expect("the event's row");
    assert_eq!((stream.as_str(), version), (event.stream.as_str(), event.version));
    let hash: String = hash.iter().map(|byte| format!("{byte:02x}")).collect();
    assert_eq!(hash, event.hash);

    // relay: the same event, at its position, from JetStream.
    assert_eq!(&relayed(plane, event).await, event);

    // project: the sample in its minute's chunk.
    let path = format!(
        "/api/v_telemetry_chunks?job=eq.{}&source=eq.cpu0&order=minute.desc&limit=1",
        of_job("job").replace('/', "%2F")
    );
    let chunk = admin.rows_at_least(&path, event.position).await.remove(0);
    let column = |name: &str| chunk[name].as_array().cloned().unwrap_or_else(|| panic!("{name} in {chunk}"));
    let place = column("at").iter().position(|at| *at == sample["at"]).expect("the sample's moment");
    assert_eq!(column("utilization")[place].as_f64(), Some(busy));

    // query: what the sample went into, worked out from all that were taken under load.
    let path = format!("/api/v_telemetry_job_summary?job=eq.{}", of_job("job").replace('/', "%2F"));
    let summary = admin.rows_at_least(&path, completed.position).await.remove(0);
    let running = phase("job.running").occurred_at;
    let all: Vec<&Value> = seen
        .iter()
        .filter(|e| e.stream == event.stream)
        .flat_map(|e| e.payload["samples"].as_array().into_iter().flatten())
        .collect();
    let under_load: Vec<f64> = all
        .iter()
        .filter(|s| serde_json::from_value::<Timestamp>(s["at"].clone()).expect("a time") >= running)
        .map(|s| {
            let memory = |name: &str| s["system"][name].as_f64().expect("memory");
            memory("ram_used_bytes") / memory("ram_total_bytes") * 100.0
        })
        .collect();
    assert_eq!(summary["sample_count"].as_u64(), Some(under_load.len() as u64), "{summary}");
    let mean = under_load.iter().sum::<f64>() / under_load.len() as f64;
    let shown = summary["avg_system_ram_pct"].as_f64().expect("a mean");
    assert!((shown - mean).abs() < 1e-6, "{shown} is shown, {mean} was sampled");

    // stream: to whoever listens from just before it.
    let run = job.rsplit_once('/').expect("a job's path").0;
    let mut live = Live::open(admin, run, event.position - 1).await;
    let first = live.until("the same event", |e| e.stream == event.stream).await;
    assert_eq!(first.last(), Some(event));

    // draw: as a point of the line on the job's page.
    let browser = Browser::open(&plane.url, DESKTOP).await;
    let (email, password) = plane.first_sign_in();
    browser.sign_in(&email, &password).await;
    browser.goto(&format!("/projects/{job}")).await;
    let drawn = "const p = document.querySelector('[data-testid=chart-cpu] .figure-plot'); \
        return (p && p.data && p.data[0] && p.data[0].y && p.data[0].y.length) ? p.data[0].y.map(Number) : null";
    let drawn = browser.until("the CPU's line", drawn).await;
    let close = |value: &Value| value.as_f64().is_some_and(|percent| (percent - busy * 100.0).abs() < 0.01);
    assert!(drawn.as_array().is_some_and(|line| line.iter().any(close)), "{busy} in {drawn}");
    browser.close().await;
}

/// The event as the relay's stream has it.
async fn relayed(plane: &ControlPlane, event: &EventView) -> EventView {
    let context = jetstream::new(plant_nats::connect(&plane.dir()).await);
    let stream = context.get_stream(EVENTS_STREAM).await.expect("the relay's stream");
    let subject = event_subject(&event.stream.parse().expect("a stream key"));
    let config = jetstream::consumer::pull::OrderedConfig { filter_subject: subject, ..Default::default() };
    let mut messages =
        stream.create_consumer(config).await.expect("a consumer").messages().await.expect("messages");
    let found = async {
        loop {
            let message = messages.next().await.expect("the stream goes on").expect("a message");
            let view: EventView = serde_json::from_slice(&message.payload).expect("an event");
            if view.position == event.position {
                return view;
            }
        }
    };
    tokio::time::timeout(PATIENCE.min(Duration::from_secs(60)), found).await.expect("the relay has it")
}
