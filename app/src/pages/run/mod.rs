//! One run: its jobs fill in live; throughput and latency against concurrency grow point by point.

mod baseline;
mod jobs;

use events::api::CancelRun;
use leptos::prelude::*;

use self::baseline::{Baseline, Pin};
use super::strip::{Feeds, use_feeds};
use crate::browser::address::Address;
use crate::browser::now_ms;
use crate::browser::remote::{Rows, keep_live_while, use_rows};
use crate::charts::Figure;
use crate::charts::concurrency::{self, Options};
use crate::charts::saturation::{explain, rings, rings_of_latency};
use crate::charts::view::{Chart, Zooming};
use crate::format::moment;
use crate::metrics::column;
use crate::parts::cancel::Cancel;
use crate::parts::states::{Empty, once_there};
use crate::parts::{
    AsOf, AsOfButton, AsOfSlider, ChosenColumns, Copied, CopyMenu, ExportMenu, PageHead, Status, tables,
};
use crate::row::Row;
use crate::state::copied::{self, Form};
use crate::state::engine_words::engine_words;
use crate::state::filters::percent;
use crate::state::live;

/// The columns of a job that say what its run was started with.
const FACTS: [&str; 7] = [
    "model_code",
    "framework_code",
    "framework_version",
    "quantization",
    "replicas",
    "gpus_per_replica",
    "tool_code",
];

/// One run.
#[component]
pub fn Run(org: String, project: String, workload: String, run: String) -> impl IntoView {
    let key = format!("{org}/{project}/{workload}/{run}");
    let here = format!(
        "org=eq.{}&project_code=eq.{}&workload_code=eq.{}&run_number=eq.{}",
        percent(&org),
        percent(&project),
        percent(&workload),
        percent(&run)
    );
    let as_of = AsOf::in_address(Address::here());
    let ask = |request: String| move || Some(request.clone());
    let then = |request: String| move || Some(format!("{request}{}", as_of.condition()));
    let runs = use_rows(then(format!("/api/v_runs?{here}")));
    let jobs = use_rows(then(format!("/api/v_jobs?{here}&order=ordinal.asc&limit=1000")));
    let results = use_rows(then(format!("/api/v_benchmark_results?{here}&limit=1000")));
    let all = format!("/api/v_benchmark_results?{here}");
    let export = Callback::new(move |()| format!("{all}{}", untrack(|| as_of.condition())));
    let of_workload = format!(
        "org=eq.{}&project_code=eq.{}&workload_code=eq.{}",
        percent(&org),
        percent(&project),
        percent(&workload)
    );
    let baseline = Baseline::in_address(Address::here(), &of_workload, &run);
    let workloads = use_rows(ask(format!("/api/v_workloads?{of_workload}")));
    let topics = vec![format!("{key}:run+job+progress")];
    let now = move || !as_of.is_past();
    keep_live_while(now, runs, topics.clone(), live::fold_run, |e| matches!(live::kind(e), "run" | "job"));
    keep_live_while(now, jobs, topics.clone(), live::fold_job, |e| live::kind(e) == "job");
    keep_live_while(now, results, topics, |_, _| false, |e| live::kind(e) == "job");
    let feeds = use_feeds(&key, "progress").of_now(as_of);

    let title = format!("Run {run}");
    let report = format!("/reporting?project={project}&workload={workload}&run={run}");
    let cancel = CancelRun {
        p_project_code: project,
        p_workload_code: workload,
        p_run_number: run.parse().unwrap_or(0),
    };
    view! {
        <PageHead
            title
            status=move || view! { <Status row=Signal::derive(move || marked(runs, jobs))/> }.into_any()
            meta=move || head_words(&jobs.all(), runs.first().as_ref()).into_any()
        >
            <AsOfButton as_of/>
            <a class="button" href=report>"Open in Reporting"</a>
            <Show when=now><Cancel what="run" rows=runs arguments=cancel.clone()/></Show>
        </PageHead>
        <AsOfSlider as_of/>
        {once_there(runs, 8, move || not_there(as_of, "run", &key), move || view! { <Body jobs results workloads feeds baseline export/> }.into_any())}
    }
    .into_any()
}

/// Nothing has this key; or nothing had it at the position that is shown.
pub fn not_there(as_of: AsOf, what: &'static str, key: &str) -> AnyView {
    if untrack(|| as_of.is_past()) {
        let words = format!("There was no {what} {key} yet at this position of the log.");
        return view! {
            <Empty words>
                <button type="button" class="button" on:click=move |_| as_of.set.run(None)>"Back to now"</button>
            </Empty>
        }
        .into_any();
    }
    super::unknown_key(what, key)
}

/// The run's row with what its jobs know: its numbers are simulated where theirs are.
fn marked(runs: Rows, jobs: Rows) -> Row {
    let mut row = runs.first().unwrap_or_default();
    if jobs.rows.with(|jobs| jobs.iter().flatten().any(Row::is_simulated)) {
        row.set("simulated", true);
    }
    row
}

fn head_words(jobs: &[Row], run: Option<&Row>) -> String {
    let done = jobs.iter().filter(|j| j.text("status") == "completed").count();
    let mut words = vec![format!("{done} of {} jobs", jobs.len())];
    if let Some(run) = run {
        let now = now_ms();
        if let Some(at) = run.millis("created_at") {
            words.push(format!("started {} UTC", moment(at, now)));
        }
        if let Some(at) = run.millis("finished_at") {
            words.push(format!("ended {}", moment(at, now)));
        }
        words.push(format!("on {}/{}", run.text("config_code"), run.text("hostname")));
    }
    words.join(" · ")
}

#[component]
fn Body(
    jobs: Rows,
    results: Rows,
    workloads: Rows,
    feeds: Feeds,
    baseline: Baseline,
    /// The request for the results, as a file.
    export: Callback<(), String>,
) -> impl IntoView {
    let throughput = Memo::new(move |_| throughput_figure(&merged(&jobs.all(), &results.all()), feeds));
    let latency = Memo::new(move |_| latency_figure(&merged(&jobs.all(), &results.all()), feeds));
    let saturation = Memo::new(move |_| {
        let rows = merged(&jobs.all(), &results.all());
        let p99 = concurrency::lines(&rows, |row| row.number("ttft_p99_ms").map(|v| (v, false)));
        let throughput =
            concurrency::lines(&rows, |row| row.number("output_tokens_per_second").map(|v| (v, false)));
        throughput
            .iter()
            .filter(|line| line.points.len() > 1)
            .map(|line| explain(line, "tok/s", p99.iter().find(|l| l.name == line.name)))
            .collect::<Vec<String>>()
    });
    // What the run was started with, as its jobs have it: the workload may be another by now. Its prompts do not change.
    let facts = Memo::new(move |_| {
        let mut job = jobs.first()?;
        job.0.retain(|column, _| FACTS.contains(&column.as_str()));
        let prompts = workloads.first().and_then(|w| w.maybe_text("prompt_source_code"));
        let engine = jobs.rows.with(|jobs| engine_words(jobs.as_deref().unwrap_or_default()));
        Some((job, engine, prompts.unwrap_or_else(|| "synthetic English".to_owned())))
    });
    // A click on a point opens its proof.
    let address = Address::here();
    let pick = move |metric: &'static str| {
        Callback::new(move |job: String| tables::open_proof(address, &job, metric))
    };
    let chosen = jobs::choice(address);
    let copy = Callback::new(move |form: Form| -> Copied {
        let mut columns: Vec<_> = ["scenario_code", "status"].into_iter().filter_map(column).collect();
        columns.extend(chosen.shown.get_untracked());
        columns.extend(column("finished_at"));
        let text = copied::table(&untrack(|| merged(&jobs.all(), &results.all())), &columns, form);
        Box::pin(async move { Ok(text) })
    });
    let (of_throughput, of_latency) = (pick("output_tokens_per_second"), pick("ttft_p99_ms"));
    view! {
        <Steps jobs/>
        {move || facts.get().map(|(job, engine, prompts)| run_facts(&job, engine, &prompts))}
        <div class="grid grid-charts">
            <div class="span-6">
                <Chart title="Output throughput" unit="tok/s ↑" figure=throughput zooming=Zooming::in_address(address, "zoom-throughput") pick=of_throughput height="high" testid="chart-throughput" words="The first point appears when the first job reports its progress."/>
            </div>
            <div class="span-6">
                <Chart title="TTFT p99" unit="ms, log scale ↓" figure=latency zooming=Zooming::in_address(address, "zoom-latency") pick=of_latency height="high" testid="chart-latency" words="The first point appears when the first job completes."/>
            </div>
        </div>
        <ul class="sentences" data-testid="saturation">
            {move || saturation.get().into_iter().map(|text| view! { <li>{text}</li> }).collect_view()}
        </ul>
        <section aria-labelledby="jobs" class="below">
            <div class="section-head">
                <h2 id="jobs">"Jobs"</h2>
                <span class="meta">"one after another on the server"</span>
                <div class="actions"><Pin baseline/><ChosenColumns choice=chosen/><CopyMenu text=copy/><ExportMenu request=export name="benchtrail-run"/></div>
            </div>
            <jobs::JobsTable jobs results feeds baseline columns=chosen/>
        </section>
    }
    .into_any()
}

/// Job rows with the figures of their results.
fn merged(jobs: &[Row], results: &[Row]) -> Vec<Row> {
    jobs.iter()
        .map(|job| {
            let mut row = job.clone();
            if let Some(result) = results.iter().find(|r| r.text("job") == job.text("job")) {
                row.0.extend(
                    result.0.iter().filter(|(_, v)| !v.is_null()).map(|(k, v)| (k.clone(), v.clone())),
                );
                row.set("status", job.text("status"));
            }
            row
        })
        .collect()
}

fn throughput_lines(rows: &[Row], feeds: Feeds) -> Vec<concurrency::Traffic> {
    concurrency::lines(rows, |row| {
        let result = row.number("output_tokens_per_second").map(|v| (v, false));
        let running = || {
            (row.text("status") == "running")
                .then(|| feeds.tokens_now(&row.text("job")).filter(|v| *v > 0.0).map(|v| (v, true)))?
        };
        result.or_else(running)
    })
}

fn throughput_figure(rows: &[Row], feeds: Feeds) -> Figure {
    let lines = throughput_lines(rows, feeds);
    let elbows = rings(&lines, &latencies(rows));
    concurrency::figure(
        &lines,
        &Options {
            title: "Output throughput",
            unit: "tok/s",
            metric: Some("output_tokens_per_second"),
            log: false,
            elbows,
            legend: false,
        },
    )
}

fn latencies(rows: &[Row]) -> Vec<concurrency::Traffic> {
    concurrency::lines(rows, |row| row.number("ttft_p99_ms").map(|v| (v, false)))
}

fn latency_figure(rows: &[Row], feeds: Feeds) -> Figure {
    let lines = latencies(rows);
    concurrency::figure(
        &lines,
        &Options {
            title: "TTFT p99",
            unit: "ms",
            metric: Some("ttft_p99_ms"),
            log: true,
            elbows: rings_of_latency(&throughput_lines(rows, feeds), &lines),
            legend: false,
        },
    )
}

#[component]
fn Steps(jobs: Rows) -> impl IntoView {
    let label = move || {
        let all = jobs.all();
        let number = |status: &str| all.iter().filter(|j| j.text("status") == status).count();
        format!("{} of {} jobs completed, {} running", number("completed"), all.len(), number("running"))
    };
    view! {
        <ol class="steps" aria-label=label>
            {move || jobs.all().iter().map(|job| {
                let share = live::share_done(job).unwrap_or(0.0);
                view! {
                    <li data-status=job.mark() title=job.text("scenario_code")>
                        <svg aria-hidden="true"><rect width=format!("{:.0}%", share * 100.0) height="100%"></rect></svg>
                    </li>
                }
            }).collect_view()}
        </ol>
    }
}

/// What stands above a run's charts. `engine` are the arguments of its model servers, `prompts` its workload's prompt source.
fn run_facts(job: &Row, engine: Option<String>, prompts: &str) -> AnyView {
    let quantization = job.maybe_text("quantization").map(|q| format!(" · {q}")).unwrap_or_default();
    let count = job.whole("replicas").unwrap_or(1);
    let replicas = match job.whole("gpus_per_replica") {
        Some(gpus) if gpus > 0 => format!("{count} × {gpus} GPU{}", if gpus == 1 { "" } else { "s" }),
        _ => count.to_string(),
    };
    let pairs = [
        ("Model", job.text("model_code")),
        (
            "Framework",
            format!("{} {}{quantization}", job.text("framework_code"), job.text("framework_version")),
        ),
        ("Engine arguments", engine.unwrap_or_else(|| "the framework's defaults".to_owned())),
        ("Replicas", replicas),
        ("Tool", job.text("tool_code")),
        ("Prompts", prompts.to_owned()),
    ];
    let pairs = pairs.map(|(name, value)| view! { <div><dt>{name}</dt><dd class="key">{value}</dd></div> });
    view! { <dl class="run-facts">{pairs.collect_view()}</dl> }.into_any()
}
