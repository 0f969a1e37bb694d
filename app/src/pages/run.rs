//! One run: its jobs fill in live; throughput and latency against concurrency grow point by point.

use events::api::CancelRun;
use leptos::prelude::*;

use super::strip::{Feeds, use_feeds};
use crate::browser::address::Address;
use crate::browser::now_ms;
use crate::browser::remote::{Rows, keep_live_while, use_rows};
use crate::charts::Figure;
use crate::charts::concurrency::{self, Options, traffic};
use crate::charts::saturation::{elbow, elbow_words, explain};
use crate::charts::view::Chart;
use crate::format::{ABSENT, count, maybe, moment};
use crate::metrics::column;
use crate::parts::cancel::Cancel;
use crate::parts::states::{Empty, once_there};
use crate::parts::{AsOf, AsOfButton, AsOfSlider, PageHead, Status, swatch_of, tables};
use crate::row::Row;
use crate::state::colours::Colour;
use crate::state::live;
use crate::state::order::Order;
use crate::state::report::percent;

/// The measured columns of the jobs' table.
const FIGURES: [&str; 7] = [
    "output_tokens_per_second",
    "ttft_p50_ms",
    "ttft_p99_ms",
    "tpot_avg_ms",
    "interactivity_tps",
    "gpu_power_avg_w",
    "output_tokens_per_joule",
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
    let workloads = use_rows(ask(format!(
        "/api/v_workloads?org=eq.{}&project_code=eq.{}&workload_code=eq.{}",
        percent(&org),
        percent(&project),
        percent(&workload)
    )));
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
            status=move || view! { <Status row=Signal::derive(move || runs.first().unwrap_or_default())/> }.into_any()
            meta=move || head_words(&jobs.all(), runs.first().as_ref()).into_any()
        >
            <AsOfButton as_of/>
            <a class="button" href=report>"Open in Reporting"</a>
            <Show when=now><Cancel what="run" rows=runs arguments=cancel.clone()/></Show>
        </PageHead>
        <AsOfSlider as_of/>
        {once_there(runs, 8, move || not_there(as_of, "run", &key), move || view! { <Body jobs results workloads feeds/> }.into_any())}
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
fn Body(jobs: Rows, results: Rows, workloads: Rows, feeds: Feeds) -> impl IntoView {
    let throughput = Memo::new(move |_| throughput_figure(&merged(&jobs.all(), &results.all()), feeds));
    let latency = Memo::new(move |_| latency_figure(&merged(&jobs.all(), &results.all())));
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
    // A click on a point opens its proof.
    let address = Address::here();
    let pick = move |metric: &'static str| {
        Callback::new(move |job: String| tables::open_proof(address, &job, metric))
    };
    let (of_throughput, of_latency) = (pick("output_tokens_per_second"), pick("ttft_p99_ms"));
    view! {
        <Steps jobs/>
        {move || workloads.first().map(|w| facts(&w))}
        <div class="grid grid-charts">
            <div class="span-6">
                <Chart title="Output throughput" unit="tok/s ↑" figure=throughput pick=of_throughput height="high" testid="chart-throughput" words="The first point appears when the first job reports its progress."/>
            </div>
            <div class="span-6">
                <Chart title="TTFT p99" unit="ms, log scale ↓" figure=latency pick=of_latency height="high" testid="chart-latency" words="The first point appears when the first job completes."/>
            </div>
        </div>
        <ul class="sentences" data-testid="saturation">
            {move || saturation.get().into_iter().map(|text| view! { <li>{text}</li> }).collect_view()}
        </ul>
        <section aria-labelledby="jobs" class="below">
            <div class="section-head">
                <h2 id="jobs">"Jobs"</h2>
                <span class="meta">"one after another on the server"</span>
            </div>
            <JobsTable jobs results feeds/>
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
    let latency = concurrency::lines(rows, |row| row.number("ttft_p99_ms").map(|v| (v, false)));
    let found = lines.iter().find_map(|l| elbow(l).map(|e| (e, l.name.clone())));
    let elbow = found.map(|(e, name)| {
        let words = elbow_words(&e, &name, latency.iter().find(|l| l.name == name));
        (e.concurrency, e.value, words)
    });
    concurrency::figure(
        &lines,
        &Options { title: "Output throughput", unit: "tok/s", log: false, elbow, legend: false },
    )
}

fn latency_figure(rows: &[Row]) -> Figure {
    let lines = concurrency::lines(rows, |row| row.number("ttft_p99_ms").map(|v| (v, false)));
    concurrency::figure(
        &lines,
        &Options { title: "TTFT p99", unit: "ms", log: true, elbow: None, legend: false },
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

fn facts(workload: &Row) -> AnyView {
    let quantization = workload.maybe_text("quantization").map(|q| format!(" · {q}")).unwrap_or_default();
    let engine = workload.value("engine_args").and_then(|v| v.as_object()).filter(|o| !o.is_empty()).map(
        |arguments| {
            arguments
                .iter()
                .map(|(k, v)| format!("{k}={}", v.as_str().map_or_else(|| v.to_string(), str::to_owned)))
                .collect::<Vec<_>>()
                .join(" ")
        },
    );
    let pairs = [
        ("Model", workload.text("model_code")),
        (
            "Framework",
            format!(
                "{} {}{quantization}",
                workload.text("framework_code"),
                workload.text("framework_version")
            ),
        ),
        ("Engine arguments", engine.unwrap_or_else(|| "the framework's defaults".to_owned())),
        ("Tool", workload.text("tool_code")),
        (
            "Prompts",
            workload.maybe_text("prompt_source_code").unwrap_or_else(|| "synthetic English".to_owned()),
        ),
    ];
    let pairs = pairs.map(|(name, value)| view! { <div><dt>{name}</dt><dd class="key">{value}</dd></div> });
    view! { <dl class="run-facts">{pairs.collect_view()}</dl> }.into_any()
}

#[component]
fn JobsTable(jobs: Rows, results: Rows, feeds: Feeds) -> impl IntoView {
    let address = Address::here();
    let order = Memo::new(move |_| address.query.with(|query| Order::read(query, &FIGURES)));
    let keys = Memo::new(move |_| {
        let jobs = jobs.all().iter().map(|j| j.text("job")).collect::<Vec<_>>();
        let Some(order) = order.get() else { return jobs };
        results.rows.with(|results| {
            let results = results.as_deref().unwrap_or_default();
            let value = |job: &String| results.iter().find(|r| r.text("job") == *job)?.number(&order.key);
            order.arrange(jobs.into_iter().map(|job| {
                let value = value(&job);
                (job, value)
            }))
        })
    });
    // The lines' colours go by the order in which the traffic first appears, as in the charts.
    let shapes = Memo::new(move |_| {
        let mut shapes: Vec<String> = Vec::new();
        for job in jobs.all() {
            let shape = traffic(&job.text("scenario_code")).to_owned();
            if !shapes.contains(&shape) {
                shapes.push(shape);
            }
        }
        shapes
    });
    let heads = FIGURES.into_iter().filter_map(column).map(|c| {
        let sort = move || {
            order.with(|o| {
                let own = o.as_ref().filter(|o| o.key == c.key)?;
                Some(if own.descending { "descending" } else { "ascending" })
            })
        };
        let click = move |_| {
            let next = order.with_untracked(|o| Order::clicked(o.as_ref(), c.key));
            address.change(|query| Order::write(next.as_ref(), query));
        };
        view! {
            <th scope="col" class="number" aria-sort=sort title=c.definition()>
                <button type="button" class="sort" data-sort=c.key on:click=click>{c.head()}</button>" "<span class="unit">{c.unit()}</span>
            </th>
        }
    });
    view! {
        <div class="table-scroll">
            <table class="data-table" data-testid="jobs">
                <caption class="visually-hidden">"Jobs of this run"</caption>
                <thead>
                    <tr>
                        <th scope="col">"Job"</th>
                        <th scope="col">"Status"</th>
                        <th scope="col" class="number">"Requests"</th>
                        {heads.collect_view()}
                        <th scope="col" class="number">"Ended "<span class="unit">"UTC"</span></th>
                    </tr>
                </thead>
                <tbody>
                    <For each=move || keys.get() key=Clone::clone let:job>
                        <JobLine jobs results feeds shapes job/>
                    </For>
                </tbody>
            </table>
        </div>
        <p class="table-foot">
            {move || format!("1–{0} of {0}", keys.with(Vec::len))}
            <span class="push">"p99 underlined: fewer than 100 requests"</span>
        </p>
    }
    .into_any()
}

#[component]
fn JobLine(jobs: Rows, results: Rows, feeds: Feeds, shapes: Memo<Vec<String>>, job: String) -> impl IntoView {
    let name = job.clone();
    let row = Memo::new(move |_| {
        jobs.rows.with(|r| r.iter().flatten().find(|r| r.text("job") == name).cloned().unwrap_or_default())
    });
    let name = job.clone();
    let result = Memo::new(move |_| {
        results.rows.with(|r| r.iter().flatten().find(|r| r.text("job") == name).cloned())
    });
    let start = row.get_untracked();
    let shape = traffic(&start.text("scenario_code")).to_owned();
    let colour = Colour::nth(shapes.get_untracked().iter().position(|s| *s == shape).unwrap_or(0));
    // The job's own row says how it stands; the result knows of flags and simulation.
    let marked = Signal::derive(move || {
        let mut row = row.get();
        if let Some(result) = result.get() {
            for column in ["flags", "simulated", "suspicious"] {
                if let Some(value) = result.value(column) {
                    row.set(column, value.clone());
                }
            }
        }
        row
    });
    let requests = move || {
        let row = row.get();
        let total = row.whole("progress_total").or(row.whole("num_requests"));
        match (row.text("status").as_str(), row.whole("progress_done"), total) {
            ("running", Some(done), Some(total)) => {
                view! { <span class="quiet">{format!("{} of {}", count(done), count(total))}</span> }
                    .into_any()
            }
            ("completed", _, _) => result
                .with(|r| r.as_ref().and_then(|r| r.whole("requests_succeeded")))
                .or(total)
                .map(count)
                .into_any(),
            (_, _, Some(total)) => view! { <span class="quiet">{count(total)}</span> }.into_any(),
            _ => ABSENT.into_any(),
        }
    };
    let figures = FIGURES.map(|key| {
        let c = column(key);
        let on_card = matches!(key, "output_tokens_per_second" | "ttft_p99_ms");
        view! {
            <td class="number" class:strong=key == "output_tokens_per_second" class:card-figure=on_card data-label=c.map(|c| c.head()) data-unit=c.map(|c| c.unit())>
                {move || match result.get() {
                    Some(result) => tables::figure(&result, key),
                    None => {
                        let row = row.get();
                        let so_far = (key == "output_tokens_per_second" && row.text("status") == "running").then(|| feeds.tokens_now(&row.text("job"))).flatten();
                        match so_far {
                            Some(tokens) => view! { <span class="quiet" title="what the load generator said of the last ten seconds, not yet a result">{maybe(Some(tokens))}</span> }.into_any(),
                            None => view! { <span class="quiet" title=tables::why_absent(&row, key)>{ABSENT}</span> }.into_any(),
                        }
                    }
                }}
            </td>
        }
    });
    let ended = move || {
        row.with(|r| r.millis("finished_at")).map_or_else(|| ABSENT.to_owned(), |at| moment(at, now_ms()))
    };
    view! {
        <tr data-testid="job" data-job=job data-href=start.job_path() tabindex="-1" data-status=move || row.with(|r| r.text("status")) data-phase=move || row.with(|r| r.text("phase"))>
            <th scope="row" class="card-title"><a class="key" href=start.job_path()>{swatch_of(colour)}{start.text("scenario_code")}</a></th>
            <td class="card-figure" data-label="Status"><Status row=marked/></td>
            <td class="number">{requests}</td>
            {figures.collect_view()}
            <td class="number">{ended}</td>
        </tr>
    }
    .into_any()
}
