//! The query dialect against a real PostgreSQL, and the live stream over a real log.

mod common;
mod reading;

use std::pin::pin;

use axum::body::Body;
use axum::response::IntoResponse;
use axum::response::sse::Sse;
use common::Cluster;
use events::api::{LiveEvent, LiveHead};
use events::project::ProjectVisibility;
use futures::StreamExt;
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;
use reading::{Read, Story, anonymous, person};
use serde_json::{Value, json};
use server::auth::Visibility;
use server::live::stream::{Client, stream};
use server::live::{Hub, Topics};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pages_ranges_counts_and_formats_are_postgrests() {
    let cluster = Cluster::start().await;
    let read = Read::start(&cluster, "dialect").await;
    Story { concurrencies: vec![1, 2, 4, 8, 16], seconds: 3, ..Story::default() }.tell(&read).await;
    let head = read.settle().await;
    let ada = person("acme", "ada");
    let query = "select=c:concurrency&order=concurrency";
    let (status, headers, body) =
        read.ask(&ada, "v_jobs", query, &[("range", "1-2"), ("prefer", "count=exact")]).await;
    assert_eq!((status, headers["content-range"].to_str().unwrap()), (206, "1-2/5"));
    assert_eq!(serde_json::from_str::<Value>(&body).unwrap(), json!([{"c": 2}, {"c": 4}]));
    let (status, headers, _) = read.ask(&ada, "v_jobs", "limit=0", &[]).await;
    assert_eq!((status, headers["content-range"].to_str().unwrap()), (200, "*/*"));
    let (status, _, _) = read.ask(&ada, "v_jobs", "offset=9", &[("prefer", "count=exact")]).await;
    assert_eq!(status, 416);
    let (_, headers, csv) =
        read.ask(&ada, "v_jobs", &format!("{query}&concurrency=in.(4,16)"), &[("accept", "text/csv")]).await;
    assert_eq!(csv, "c\r\n4\r\n16\r\n");
    assert!(headers["content-type"].to_str().unwrap().starts_with("text/csv"));
    let (_, _, lines) =
        read.ask(&ada, "v_jobs", "select=flags&limit=2", &[("accept", "application/x-ndjson")]).await;
    assert_eq!(lines, "{\"flags\":[\"few_requests\"]}\n{\"flags\":[\"few_requests\"]}\n");
    let object = [("accept", "application/vnd.pgrst.object+json")];
    assert_eq!(read.ask(&ada, "v_projects", "select=name", &object).await.2, "{\"name\":\"A project\"}");
    assert_eq!(read.ask(&ada, "v_jobs", "", &object).await.0, 406);
    let (status, _, _) = read.ask(&ada, "v_jobs", "", &[("prefer", &format!("at-least={head}"))]).await;
    assert_eq!(status, 200);
    let or = "or=(concurrency.eq.1,and(concurrency.gt.4,hostname.not.is.null))&select=concurrency&order=concurrency.desc";
    let rows = read.rows(&ada, "v_jobs", or).await;
    assert_eq!(rows, [json!({"concurrency": 16}), json!({"concurrency": 8}), json!({"concurrency": 1})]);
    assert_eq!(read.rows(&ada, "v_jobs", "flags=cs.[\"few_requests\"]").await.len(), 5);
    assert_eq!(read.rows(&ada, "v_jobs", "created_at=gt.2020-01-01&job=ilike.*C16-*").await.len(), 1);
    assert_eq!(read.ask(&ada, "v_projects", "as_of=1", &[]).await.0, 400);
}

fn headers(pairs: &[(&'static str, &'static str)]) -> http::HeaderMap {
    let field = |(name, value): &(&'static str, &'static str)| {
        (http::HeaderName::from_static(name), http::HeaderValue::from_static(value))
    };
    pairs.iter().map(field).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn counts_are_exact_planned_or_estimated_and_a_head_says_them_without_rows() {
    let cluster = Cluster::start().await;
    let read = Read::start(&cluster, "counts").await;
    Story { concurrencies: (1..=40).collect(), seconds: 2, ..Story::default() }.tell(&read).await;
    read.settle().await;
    let ada = person("acme", "ada");
    sqlx::raw_sql("analyze").execute(&read.pool).await.unwrap();
    let total = async |prefer: &'static str, query: &str, method: http::Method| {
        let (status, answer, body) =
            read.bytes(&ada, "v_jobs", query, &headers(&[("prefer", prefer)]), &method).await;
        let applied = answer.get("preference-applied").map(|v| v.to_str().unwrap().to_owned());
        let range = answer["content-range"].to_str().unwrap().to_owned();
        (status, range, applied.unwrap_or_default(), body.len())
    };
    for method in [http::Method::GET, http::Method::HEAD] {
        let head = method == http::Method::HEAD;
        let (status, range, applied, bytes) = total("count=exact", "limit=7", method.clone()).await;
        assert_eq!((status, range.as_str(), applied.as_str()), (206, "0-6/40", "count=exact"), "{method}");
        assert_eq!(bytes == 0, head, "{method}");
        let (status, range, ..) = total("count=estimated", "concurrency=lte.5", method.clone()).await;
        assert_eq!((status, range.as_str()), (200, "0-4/5"), "few are counted, {method}");
        let (_, range, applied, _) = total("count=planned", "offset=3&limit=2", method.clone()).await;
        let planned: i64 = range.strip_prefix("3-4/").unwrap().parse().unwrap();
        assert!(planned == 40 && applied == "count=planned", "few are counted: {planned}, {method}");
        let (status, range, applied, _) = total("tx=rollback", "offset=38", method.clone()).await;
        assert_eq!((status, range.as_str(), applied.as_str()), (200, "38-39/*", ""), "{method}");
        assert_eq!(total("count=exact", "concurrency=gt.99", method.clone()).await.1, "*/0");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_guess_tells_nothing_of_what_others_have() {
    let cluster = Cluster::start().await;
    let read = Read::start(&cluster, "guesses").await;
    for project in ["p1", "p2"] {
        let story = Story {
            project: project.into(),
            concurrencies: (1..=40).collect(),
            seconds: 2,
            ..Story::default()
        };
        story.tell(&read).await;
    }
    read.settle().await;
    sqlx::raw_sql("analyze").execute(&read.pool).await.unwrap();
    for who in [person("other", "carol"), anonymous()] {
        for view in ["v_jobs", "v_benchmark_results", "v_runs", "v_scenarios", "v_telemetry_job_summary"] {
            for query in
                ["", "project_code=eq.p1", "project_code=eq.none", "not.or=(project_code.eq.p1,org.eq.x)"]
            {
                for prefer in ["count=planned", "count=estimated", "count=exact"] {
                    let (_, headers, _) = read.ask(&who, view, query, &[("prefer", prefer)]).await;
                    assert_eq!(headers["content-range"], "*/0", "{view}?{query}, {prefer}");
                }
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nulls_come_first_or_last_as_asked() {
    let cluster = Cluster::start().await;
    let read = Read::start(&cluster, "nulls").await;
    let story = Story { concurrencies: vec![1, 2, 4], seconds: 2, ..Story::default() };
    story.prologue(&read).await;
    story.begin_job(&read, 2).await;
    read.settle().await;
    let ada = person("acme", "ada");
    let order = async |order: &str| {
        let rows =
            read.rows(&ada, "v_jobs", &format!("select=c:concurrency&order={order},concurrency")).await;
        rows.iter().map(|row| row["c"].as_i64().unwrap()).collect::<Vec<_>>()
    };
    assert_eq!(order("ready_after_s.asc.nullsfirst").await, [1, 4, 2]);
    assert_eq!(order("ready_after_s.asc.nullslast").await, [2, 1, 4]);
    assert_eq!(order("ready_after_s.desc.nullsfirst").await, [1, 4, 2]);
    assert_eq!(order("ready_after_s.desc.nullslast").await, [2, 1, 4]);
}

/// The rows of a Parquet file, as another reader sees them.
fn parquet_rows(file: Vec<u8>) -> (Vec<parquet::file::metadata::KeyValue>, Vec<Value>) {
    use parquet::file::reader::{FileReader, SerializedFileReader};
    use parquet::record::{Field, Row};

    fn value(field: &Field) -> Value {
        match field {
            Field::Null => Value::Null,
            Field::Bool(v) => json!(v),
            Field::Long(v) | Field::TimestampMicros(v) => json!(v),
            Field::Double(v) => json!(v),
            Field::Str(v) => json!(v),
            Field::Bytes(v) => json!(v.as_utf8().unwrap()),
            Field::ListInternal(list) => list.elements().iter().map(value).collect(),
            other => panic!("{other:?}"),
        }
    }
    let reader = SerializedFileReader::new(bytes::Bytes::from(file)).unwrap();
    let facts = reader.metadata().file_metadata().key_value_metadata().cloned().unwrap_or_default();
    let row = |row: Row| row.get_column_iter().map(|(name, field)| (name.clone(), value(field))).collect();
    let rows = reader.get_row_iter(None).unwrap().map(|found| Value::Object(row(found.unwrap()))).collect();
    (facts, rows)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_three_exports_hold_the_same_rows_and_no_others() {
    let cluster = Cluster::start().await;
    let read = Read::start(&cluster, "exports").await;
    Story { concurrencies: (1..=30).collect(), seconds: 2, ..Story::default() }.tell(&read).await;
    read.settle().await;
    let ada = person("acme", "ada");
    let query = "concurrency=gte.10&order=concurrency.desc&\
                 select=concurrency,n:scenario_code,flags,suspicious,energy_j,output_tokens_per_second,recorded_at,imported";
    let export = async |accept: &'static str, view: &str, query: &str| {
        let (status, answer, body) =
            read.bytes(&ada, view, query, &headers(&[("accept", accept)]), &http::Method::GET).await;
        assert_eq!(status, 200, "{}", String::from_utf8_lossy(&body));
        assert!(answer["content-type"].to_str().unwrap().starts_with(accept));
        body
    };
    let lines = export("application/x-ndjson", "v_benchmark_results", query).await;
    let lines: Vec<Value> =
        String::from_utf8(lines).unwrap().lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines.len(), 21);
    let csv = String::from_utf8(export("text/csv", "v_benchmark_results", query).await).unwrap();
    assert_eq!(csv.lines().count(), 22);
    let file = export("application/vnd.apache.parquet", "v_benchmark_results", query).await;
    let (facts, rows) = parquet_rows(file);
    let fact = |key: &str| facts.iter().find(|f| f.key == key).unwrap().value.clone().unwrap();
    assert_eq!(fact("benchtrail.query"), query);
    assert!(fact("benchtrail.log_position").parse::<i64>().unwrap() > 0);
    assert_eq!(rows.len(), 21);
    for (parquet, line) in rows.iter().zip(&lines) {
        for column in ["concurrency", "n", "suspicious", "energy_j", "output_tokens_per_second", "imported"] {
            assert_eq!(parquet[column], line[column], "{column}");
        }
        // JSON is text in the file.
        assert_eq!(parquet["flags"].as_str().unwrap(), line["flags"].to_string());
        let time: events::Timestamp = line["recorded_at"].as_str().unwrap().parse().unwrap();
        assert_eq!(parquet["recorded_at"], time.as_micros());
    }
    // Lists, with their own levels.
    let query = "select=counts:count,bucket_start,max&order=job,source,metric,bucket_s,segment&limit=20";
    let lines = export("application/x-ndjson", "v_telemetry_series", query).await;
    let file = export("application/vnd.apache.parquet", "v_telemetry_series", query).await;
    let (_, rows) = parquet_rows(file);
    let lines: Vec<Value> =
        String::from_utf8(lines).unwrap().lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(rows.len(), lines.len());
    for (parquet, line) in rows.iter().zip(&lines) {
        assert_eq!(parquet["counts"], line["counts"]);
        let numbers = |list: &Value| list.as_array().unwrap().iter().map(Value::as_f64).collect::<Vec<_>>();
        assert_eq!(numbers(&parquet["max"]), numbers(&line["max"]));
    }
    // Nothing is a file too.
    let file = export("application/vnd.apache.parquet", "v_jobs", "concurrency=gt.99").await;
    assert_eq!(parquet_rows(file).1, Vec::<Value>::new());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_row_of_an_export_can_be_verified_by_itself() {
    let cluster = Cluster::start().await;
    let read = Read::start(&cluster, "provenance").await;
    Story { concurrencies: vec![1, 8], seconds: 2, ..Story::default() }.tell(&read).await;
    let head = read.settle().await;
    let ada = person("acme", "ada");
    let ndjson = async |query: &str| -> Vec<Value> {
        let (status, _, lines) =
            read.ask(&ada, "v_benchmark_results", query, &[("accept", "application/x-ndjson")]).await;
        assert_eq!(status, 200, "{lines}");
        lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    };
    let rows = ndjson("order=concurrency").await;
    assert_eq!(rows.len(), 2);
    for row in &rows {
        // The row names an event of the log, by its place in the chain and its hash there: that event holds its figures.
        let position = row["output_position"].as_i64().unwrap();
        let event = read.log.read_all(position - 1, 1).await.unwrap().remove(0);
        assert_eq!(row["output_hash"], hex::encode(event.hash));
        assert_eq!(
            (&*event.event_type, event.stream.as_str()),
            ("tool_output.recorded", row["job"].as_str().unwrap())
        );
        let payload: Value = serde_json::from_str(&event.payload).unwrap();
        assert_eq!(payload["summary"]["window_s"].as_f64(), row["window_s"].as_f64());
        assert!(
            row["job"]
                .as_str()
                .unwrap()
                .starts_with(&row["run"].as_str().unwrap().replacen("run/", "job/", 1))
        );
        assert_eq!(row["as_of_position"], head);
    }
    // What is asked for as of that position is the same.
    let again = ndjson(&format!("order=concurrency&as_of={head}")).await;
    assert_eq!(again, rows);
    let before = rows[0]["output_position"].as_i64().unwrap();
    let then = ndjson(&format!("as_of={before}&select=concurrency&provenance=columns")).await;
    assert_eq!((then.len(), &then[0]["as_of_position"]), (1, &json!(before)));
    assert_eq!(then[0]["output_hash"], rows[0]["output_hash"]);

    // Who names the columns gets these, in every format.
    let csv =
        async |query: &str| read.ask(&ada, "v_benchmark_results", query, &[("accept", "text/csv")]).await.2;
    assert_eq!(csv("select=concurrency&order=concurrency").await, "concurrency\r\n1\r\n8\r\n");
    let header = csv("select=c:concurrency,job&provenance=columns").await;
    assert_eq!(
        header.lines().next().unwrap(),
        "c,job,run,output_position,output_hash,position,as_of_position"
    );
    assert!(!csv("provenance=none").await.lines().next().unwrap().contains("as_of_position"));
    let file = read
        .bytes(
            &ada,
            "v_metrumbench_llm_outputs",
            "",
            &headers(&[("accept", "application/vnd.apache.parquet")]),
            &http::Method::GET,
        )
        .await
        .2;
    let (facts, parquet) = parquet_rows(file);
    assert_eq!((&parquet[0]["as_of_position"], parquet.len()), (&json!(head), 2));
    assert!(rows.iter().any(|row| row["output_hash"] == parquet[0]["output_hash"]));
    let said = facts.iter().find(|fact| fact.key == "benchtrail.log_position").unwrap();
    assert_eq!(said.value.as_deref(), Some(head.to_string().as_str()));
    let board = read.ask(&ada, "v_leaderboard", "simulated=is.false", &[("accept", "text/csv")]).await.2;
    assert!(board.lines().next().unwrap().ends_with(",as_of_position"), "{board}");
    assert_eq!(read.ask(&ada, "v_jobs", "provenance=maybe", &[]).await.0, 400);
    plain_json_has_no_position_of_its_own(&read).await;
}

async fn plain_json_has_no_position_of_its_own(read: &Read) {
    let rows = read.rows(&person("acme", "ada"), "v_benchmark_results", "limit=1").await;
    assert!(rows[0].get("as_of_position").is_none() && rows[0].get("output_hash").is_some());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn as_of_takes_a_time_as_well_as_a_position() {
    let cluster = Cluster::start().await;
    let read = Read::start(&cluster, "times").await;
    let story = Story { concurrencies: vec![1], seconds: 2, ..Story::default() };
    story.tell(&read).await;
    read.settle().await;
    let ada = person("acme", "ada");
    let flagged = read.rows(&ada, "v_benchmark_results", "select=position,recorded_at").await;
    let position = flagged[0]["position"].as_i64().unwrap();
    let at = |position: i64| {
        let log = read.log.clone();
        async move { log.read_all(position - 1, 1).await.unwrap()[0].recorded_at }
    };
    for as_of in [position, position - 1] {
        let time = at(as_of).await.to_string();
        let by_time = server::queries::as_of::position_at(&read.log, time.parse().unwrap()).await.unwrap();
        assert_eq!(at(by_time).await.to_string(), time);
        let query = |as_of: &str| format!("select=flags&as_of={}", encoded(as_of));
        assert_eq!(
            read.rows(&ada, "v_benchmark_results", &query(&time)).await,
            read.rows(&ada, "v_benchmark_results", &query(&by_time.to_string())).await,
        );
    }
    let before = read.rows(&ada, "v_benchmark_results", "as_of=2020-01-01").await;
    assert!(before.is_empty(), "nothing was there then");
    assert_eq!(read.ask(&ada, "v_benchmark_results", "as_of=soon", &[]).await.0, 400);
    let (status, _, body) = read.ask(&ada, "v_benchmark_results", "as_of=9999-12-31T00:00:00Z", &[]).await;
    assert!(status == 400 && body.contains("yet to come"), "{body}");
}

/// Queries as a client might write them, well and badly.
fn any_query(columns: Vec<String>) -> impl Strategy<Value = String> {
    let column = prop_oneof![6 => proptest::sample::select(columns), 1 => "[a-z_'\";]{1,8}"];
    let value = prop_oneof![
        Just("1".to_owned()),
        Just("true".to_owned()),
        Just("2026-01-01".to_owned()),
        Just("null".to_owned()),
        Just("'; drop table read.jobs_v1; --".to_owned()),
        Just("(1,2,\"a,b\")".to_owned()),
        Just("9223372036854775808".to_owned()),
        Just("1e400".to_owned()),
        "[%_\\\\*(){}\"',.a-z0-9 ]{0,12}",
        ".{0,8}"
    ];
    let operator = "(not\\.)?(eq|neq|gt|gte|lt|lte|in|is|like|ilike|cs|fts|)";
    let test = (column.clone(), operator, value.clone());
    let one = test.clone().prop_map(|(c, o, v)| format!("{}={}", encoded(&c), encoded(&format!("{o}.{v}"))));
    let group = (prop_oneof![Just("or"), Just("and"), Just("not.or")], proptest::collection::vec(test, 1..4))
        .prop_map(|(word, tests)| {
            let list: Vec<String> = tests.into_iter().map(|(c, o, v)| format!("{c}.{o}.{v}")).collect();
            format!("{word}={}", encoded(&format!("({})", list.join(","))))
        });
    let order = (column.clone(), "(\\.asc|\\.desc)?(\\.nullslast|\\.nullsfirst)?")
        .prop_map(|(c, d)| format!("order={}", encoded(&format!("{c}{d}"))));
    let select = (column, ".{0,6}").prop_map(|(c, a)| format!("select={}", encoded(&format!("{a}:{c}"))));
    let number = value.prop_map(|v| format!("limit={}", encoded(&v)));
    proptest::collection::vec(prop_oneof![4 => one, 3 => group, 1 => order, 1 => select, 1 => number], 1..4)
        .prop_map(|parts| parts.join("&"))
}

fn encoded(text: &str) -> String {
    url::form_urlencoded::byte_serialize(text.as_bytes()).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_query_is_answered_or_refused_and_none_breaks_anything() {
    let cluster = Cluster::start().await;
    let read = Read::start(&cluster, "fuzz").await;
    Story { seconds: 3, visibility: ProjectVisibility::Private, ..Story::default() }.tell(&read).await;
    read.settle().await;
    let (ada, bob) = (person("acme", "ada"), person("acme", "bob"));
    let mut runner = TestRunner::deterministic();
    let (mut answered, mut refused) = (0, 0);
    let columns = ["concurrency", "status", "streaming", "created_at", "ready_after_s", "flags"];
    let queries = any_query(columns.map(str::to_owned).to_vec());
    for _ in 0..1500 {
        let query = queries.new_tree(&mut runner).unwrap().current();
        let (status, _, body) = read.ask(&ada, "v_jobs", &query, &[]).await;
        match status {
            200 => answered += 1,
            400..500 => {
                let error: events::api::ApiError = serde_json::from_str(&body).unwrap();
                assert!(error.hint.is_some(), "{query}: {body}");
                refused += 1;
            }
            other => panic!("{other} for {query}: {body}"),
        }
        let (status, _, body) = read.ask(&bob, "v_jobs", &query, &[]).await;
        assert!(status != 200 || body == "[]", "{query} shows bob {body}");
    }
    assert!(answered > 50 && refused > 150, "{answered} answered, {refused} refused");
    assert_eq!(read.rows(&ada, "v_jobs", "").await.len(), 2, "everything is still there");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_view_is_broken_into() {
    let cluster = Cluster::start().await;
    let read = Read::start(&cluster, "break_in").await;
    let story = Story { seconds: 3, visibility: ProjectVisibility::Private, ..Story::default() };
    story.tell(&read).await;
    let head = read.settle().await;
    let bob = person("acme", "bob");
    let attacks = [
        "' or '1'='1",
        "x') or true --",
        "1; drop table read.jobs_v1; --",
        "\\'; select pg_sleep(5); --",
        "$1::text) or (true",
        "(select owner from read.v_projects limit 1)",
        "\"visibility\" = \"visibility\"",
        "eq.1 union select 1",
        "%00",
        "\u{0}",
    ];
    let mut runner = TestRunner::deterministic();
    for view in server::projections::views::all().iter().filter(|view| view.served) {
        let columns: Vec<String> = view.columns.iter().map(|column| column.name.clone()).collect();
        let mut queries: Vec<String> = attacks
            .iter()
            .flat_map(|attack| {
                let (attack, column) = (encoded(attack), &columns[0]);
                [
                    format!("{column}=eq.{attack}"),
                    format!("{column}=in.({attack})"),
                    format!("{column}=like.{attack}"),
                    format!("or=({column}.eq.{attack},{column}.is.null)"),
                    format!("{attack}=eq.1"),
                    format!("select={attack}"),
                    format!("select={attack}:{column}"),
                    format!("order={attack}"),
                    format!("limit={attack}"),
                    format!("as_of={attack}"),
                ]
            })
            .collect();
        let any = any_query(columns);
        queries.extend((0..60).map(|_| any.new_tree(&mut runner).unwrap().current()));
        for query in queries {
            let (status, _, body) = read.ask(&bob, view.name, &query, &[]).await;
            assert!(status < 500, "{} {query}: {status} {body}", view.name);
            assert!(
                !body.contains("p1/w1") && !body.contains("A project"),
                "{} {query} shows {body}",
                view.name
            );
        }
    }
    assert_eq!(read.log.head().await.unwrap().position, head, "nothing was written");
    assert_eq!(read.rows(&person("acme", "ada"), "v_jobs", "").await.len(), 2, "everything is still there");
}

/// What a client of the live stream gets until `last`.
async fn listen(
    read: &Read,
    hub: &Hub,
    who: &Visibility,
    topics: &str,
    after: i64,
    last: i64,
) -> (Vec<i64>, Vec<Value>) {
    let client = Client {
        hub: hub.clone(),
        reader: who.clone(),
        still_allowed: None,
        topics: Topics::parse(topics).unwrap(),
        after,
        too_far: server::live::stream::TOO_FAR,
        stop: read.stop.clone(),
    };
    let body: Body = Sse::new(stream(client)).into_response().into_body();
    let mut chunks = pin!(body.into_data_stream());
    let (mut positions, mut payloads, mut text, mut previous) =
        (Vec::new(), Vec::new(), String::new(), after);
    loop {
        while let Some(end) = text.find("\n\n") {
            let message: String = text.drain(..end + 2).collect();
            let field = |name: &str| message.lines().find_map(|l| l.strip_prefix(name)).map(str::trim);
            match field("event:").unwrap() {
                "event" => {
                    let event: LiveEvent = serde_json::from_str(field("data:").unwrap()).unwrap();
                    assert_eq!(event.previous, previous, "arithmetic shows a hole");
                    previous = event.event.position;
                    positions.push(previous);
                    payloads.push(event.event.payload);
                }
                "head" => {
                    let head: LiveHead = serde_json::from_str(field("data:").unwrap()).unwrap();
                    assert!(head.position <= last && head.previous <= head.position);
                    if head.position > after {
                        assert!(positions.last().is_none_or(|p| *p <= head.position));
                    }
                }
                other => panic!("{other}"),
            }
        }
        let waits = positions.last().copied().unwrap_or(after) < last;
        // Whoever has nothing to wait for hears nothing more: the head comes after 15 s.
        let next = tokio::time::timeout(
            std::time::Duration::from_millis(if waits { 5000 } else { 50 }),
            chunks.next(),
        );
        match next.await {
            Ok(Some(chunk)) => text.push_str(&String::from_utf8_lossy(&chunk.unwrap())),
            _ => return (positions, payloads),
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn resuming_at_every_position_gives_each_event_once() {
    let cluster = Cluster::start().await;
    let read = Read::start(&cluster, "resume").await;
    let story = Story { concurrencies: vec![1], seconds: 5, ..Story::default() };
    story.prologue(&read).await;
    let hub = Hub::start(read.log.clone(), None, read.stop.clone()).await.unwrap();
    let last = Story { project: "p2".into(), ..story.clone() }.tell(&read).await;
    hub.watch().wait_for(|head| *head >= last).await.unwrap();
    let ada = person("acme", "ada");
    let topics = "acme/p2/w1/1";
    let (all, _) = listen(&read, &hub, &ada, topics, 0, last).await;
    assert!(all.len() > 15, "{all:?}");
    for after in 0..last {
        let (positions, _) = listen(&read, &hub, &ada, topics, after, last).await;
        let expected: Vec<i64> = all.iter().copied().filter(|p| *p > after).collect();
        assert_eq!(positions, expected, "after {after}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_rights_there_is_nothing_to_hear_replayed_or_live() {
    let cluster = Cluster::start().await;
    let read = Read::start(&cluster, "rights").await;
    let hub = Hub::start(read.log.clone(), None, read.stop.clone()).await.unwrap();
    let story = Story { visibility: ProjectVisibility::Private, seconds: 3, ..Story::default() };
    let last = story.tell(&read).await;
    hub.watch().wait_for(|head| *head >= last).await.unwrap();
    let quick = async |who: &Visibility| listen(&read, &hub, who, "acme/p1", last - 30, last - 30).await.0;
    assert!(!quick(&person("acme", "ada")).await.is_empty());
    for who in [person("acme", "bob"), person("other", "ada"), anonymous()] {
        assert_eq!(quick(&who).await, Vec::<i64>::new());
    }
    // The rights of now decide, also over what happened before.
    let last = story.show(&read, ProjectVisibility::Public).await;
    hub.watch().wait_for(|head| *head >= last).await.unwrap();
    assert!(!quick(&anonymous()).await.is_empty());
    let last = story.show(&read, ProjectVisibility::Private).await;
    hub.watch().wait_for(|head| *head >= last).await.unwrap();
    assert_eq!(quick(&anonymous()).await, Vec::<i64>::new());
}
