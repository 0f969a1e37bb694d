//! One job: headline figures, telemetry growing sample by sample, the load generator's progress, logs, commands, phases.

use events::api::{CancelJob, History};
use leptos::prelude::*;
use leptos_router::hooks::use_location;
use wasm_bindgen_futures::spawn_local;

use super::job_logs::Logs;
use crate::browser::api;
use crate::browser::page::Page;
use crate::browser::remote::{Rows, keep_live, use_rows};
use crate::charts::telemetry::{self, Quantity};
use crate::charts::view::Chart;
use crate::charts::{Figure, key_series};
use crate::format::{ABSENT, clock, count, duration, maybe};
use crate::frame::drawer_href;
use crate::metrics::{HEADLINE_COLUMNS, column};
use crate::parts::states::once_there;
use crate::parts::{CopyButton, PageHead, Progress, Status, command, shell, tables};
use crate::row::Row;
use crate::state::job_feed::JobFeed;
use crate::state::live;
use crate::state::report::percent;

/// A job longer than this is drawn from means, not from every sample.
const LONG_JOB_MS: f64 = 20.0 * 60_000.0;

/// What the parts of the page share.
#[derive(Clone, Copy)]
struct View {
    jobs: Rows,
    results: Rows,
    servers: Rows,
    feed: RwSignal<JobFeed>,
}

/// One job.
#[component]
pub fn Job(org: String, project: String, workload: String, run: String, scenario: String) -> impl IntoView {
    let page = Page::expect();
    let path = format!("{org}/{project}/{workload}/{run}/{scenario}");
    let job = format!("job/{path}");
    let ask = |request: String| move || Some(request.clone());
    let view = View {
        jobs: use_rows(ask(format!("/api/v_jobs?job=eq.{}", percent(&job)))),
        results: use_rows(ask(format!("/api/v_benchmark_results?job=eq.{}", percent(&job)))),
        servers: use_rows(ask(format!("/api/v_servers?org=eq.{}", percent(&org)))),
        feed: RwSignal::new(JobFeed::default()),
    };
    // One topic for everything of this job, so that its order is the log's.
    let topics = vec![format!("{path}:job+telemetry+progress+logs")];
    keep_live(view.jobs, topics.clone(), live::fold_job, |e| live::kind(e) == "job");
    keep_live(view.results, topics.clone(), |_, _| false, |e| live::kind(e) == "job");
    page.live.listen(topics, move |events| {
        let changed = view
            .feed
            .try_update_untracked(|feed| events.iter().fold(false, |changed, e| feed.fold(e) | changed));
        if changed == Some(true) {
            view.feed.notify();
        }
    });
    fill_feed(view, job.clone());

    let cancel = CancelJob {
        p_project_code: project.clone(),
        p_workload_code: workload,
        p_run_number: run.parse().unwrap_or(0),
        p_scenario_code: scenario.clone(),
    };
    let events_job = path.clone();
    let location = use_location();
    let events_href = move || {
        drawer_href(
            &location.pathname.get(),
            &location.search.get(),
            &[("drawer", "events"), ("job", &events_job)],
        )
    };
    view! {
        <PageHead
            title=scenario
            status=move || view! { <Status row=Signal::derive(move || marked(view))/> }.into_any()
            meta=move || view.jobs.first().map(|j| head_words(&j)).into_any()
        >
            <a class="button" href="#logs" rel="external">"Logs"</a>
            <a class="button" href=events_href data-noscroll="" data-testid="events">"Events"</a>
            <Cancel jobs=view.jobs arguments=cancel/>
        </PageHead>
        {once_there(view.jobs, 8, move || super::unknown_key("job", &path), move || view! { <Body view/> }.into_any())}
    }
    .into_any()
}

/// The job's row with what its result knows of flags and simulation.
fn marked(view: View) -> Row {
    let mut row = view.jobs.first().unwrap_or_default();
    if let Some(result) = view.results.first() {
        for column in ["flags", "simulated", "suspicious"] {
            if let Some(value) = result.value(column) {
                row.set(column, value.clone());
            }
        }
    }
    row
}

fn head_words(job: &Row) -> String {
    let mut words = vec![format!("{} / run {}", job.text("workload_code"), job.text("run_number"))];
    match (job.millis("claimed_at"), job.millis("finished_at")) {
        (Some(from), Some(to)) => {
            words.push(format!("{} to {} UTC, {}", clock(from), clock(to), duration((to - from) / 1000.0)))
        }
        (Some(from), None) => words.push(format!("since {} UTC", clock(from))),
        _ => {}
    }
    words.push(format!("on {}/{}", job.text("config_code"), job.text("hostname")));
    if let Some(attempt) = job.whole("attempt").filter(|a| *a > 1) {
        words.push(format!("attempt {attempt}"));
    }
    words.join(" · ")
}

/// Reads what was before the page: telemetry, progress and log lines of the newest attempt; again when something was lost.
fn fill_feed(view: View, job: String) {
    let page = Page::expect();
    let attempt = Memo::new(move |_| view.jobs.first().and_then(|j| j.whole("attempt")).filter(|a| *a > 0));
    Effect::new(move |_| {
        view.jobs.rows.with(|rows| {
            if let Some(row) = rows.as_ref().and_then(|r| r.first()) {
                view.feed.try_update(|feed| feed.add_job_row(row));
            }
        });
    });
    Effect::new(move |_| {
        page.live.epoch.track();
        let Some(attempt) = attempt.get() else { return };
        let job = job.clone();
        spawn_local(async move {
            let at_least = page.live.at_least();
            let of = format!("job=eq.{}&attempt=eq.{attempt}", percent(&job));
            let path = job.strip_prefix("job/").unwrap_or(&job).to_owned();
            read_progress(view, &path, attempt, at_least).await;
            read_telemetry(view, &of, at_least).await;
            let lines = format!("/api/v_log_lines?{of}&order=source.asc,line_number.asc&limit=50000");
            if let Ok((rows, _)) = api::rows(&lines, at_least, false).await {
                view.feed.try_update(|feed| feed.add_log_rows(&rows));
            }
        });
    });
}

/// Every sample of a short job; means of six seconds of a long one.
async fn read_telemetry(view: View, of: &str, at_least: i64) {
    let spent = view.jobs.rows.with_untracked(|rows| {
        let job = rows.as_ref().and_then(|r| r.first())?;
        Some(job.millis("finished_at").unwrap_or_else(crate::browser::now_ms) - job.millis("claimed_at")?)
    });
    let long = spent.is_some_and(|ms| ms > LONG_JOB_MS);
    let request = if long {
        format!(
            "/api/v_telemetry_series?{of}&bucket_s=eq.6&select=source,metric,bucket_start,min,avg,max&order=segment.asc"
        )
    } else {
        format!(
            "/api/v_telemetry_chunks?{of}&select=source,at,power_w,utilization,memory_used_bytes,ram_used_bytes&order=minute.asc"
        )
    };
    if let Ok((rows, _)) = api::rows(&request, at_least, false).await {
        view.feed
            .try_update(|feed| if long { feed.add_series_rows(&rows) } else { feed.add_chunk_rows(&rows) });
    }
}

async fn read_progress(view: View, path: &str, attempt: i64, at_least: i64) {
    let mut after = 0;
    // Ten pages are hours of progress at one report a second.
    for _ in 0..10 {
        let request = format!("/api/history?stream=progress/{}/{attempt}&after={after}", percent(path));
        let Ok(history) = api::get::<History>(&request, at_least).await else { return };
        view.feed.try_update(|feed| {
            for event in &history.events {
                feed.fold(event);
            }
        });
        match history.next_after {
            Some(next) => after = next,
            None => return,
        }
    }
}

#[component]
fn Cancel(jobs: Rows, arguments: CancelJob) -> impl IntoView {
    let page = Page::expect();
    let words = RwSignal::new("Cancel job".to_owned());
    let open = Memo::new(move |_| {
        page.signed_in()
            && jobs
                .first()
                .is_some_and(|r| matches!(r.text("status").as_str(), "pending" | "queued" | "running"))
    });
    let arguments = StoredValue::new(arguments);
    view! {
        <Show when=move || open.get()>
            <button
                type="button"
                class="button"
                data-testid="cancel-job"
                on:click=move |_| {
                    words.set("Cancelling".to_owned());
                    spawn_local(async move {
                        match api::command("cancel_job", &arguments.get_value()).await {
                            Ok(reply) => page.live.must_reach(reply.position),
                            Err(trouble) => {
                                words.try_set(trouble.error.message);
                            }
                        }
                    });
                }
            >
                {words}
            </button>
        </Show>
    }
}

#[component]
fn Body(view: View) -> impl IntoView {
    let source = RwSignal::new("framework".to_owned());
    view! {
        <Headline view/>
        <Failure view/>
        <ProgressLine view/>
        <Telemetry view/>
        <section aria-labelledby="logs" id="logs" class="below">
            <div class="section-head"><h2>"Logs"</h2><span class="meta">"three streams, secrets redacted by the agent"</span></div>
            <Logs feed=view.feed source/>
        </section>
        <Commands view/>
        <Phases view/>
    }
    .into_any()
}

#[component]
fn Headline(view: View) -> impl IntoView {
    move || {
        let cells = |row: &Row, running: bool| {
            let row = row.clone();
            HEADLINE_COLUMNS
                .iter()
                .filter_map(|key| column(key))
                .map(move |c| {
                    let value = if running {
                        view! { <span class="quiet" title=tables::why_absent(&row, c.key)>{ABSENT}</span> }
                            .into_any()
                    } else {
                        tables::figure(&row, c.key)
                    };
                    view! {
                        <div title=c.definition()>
                            <dt>{c.head()}</dt>
                            <dd data-testid=format!("headline-{}", c.key)>{value}</dd>
                            <dd class="meta">{c.unit()}</dd>
                        </div>
                    }
                })
                .collect_view()
        };
        match view.results.first() {
            Some(result) => {
                view! { <dl class="metrics" data-testid="headline">{cells(&result, false)}</dl> }.into_any()
            }
            None => match view.jobs.first() {
                Some(job) => {
                    view! { <dl class="metrics" data-testid="headline-empty">{cells(&job, true)}</dl> }
                        .into_any()
                }
                None => ().into_any(),
            },
        }
    }
}

#[component]
fn Failure(view: View) -> impl IntoView {
    move || {
        let job = view.jobs.first().unwrap_or_default();
        let code = job.maybe_text("error_code").filter(|c| !c.is_empty())?;
        Some(view! {
            <div class="notice" role="alert" data-testid="failure">
                <p><span class="status" data-status="failed">{code}</span></p>
                <p>{job.text("error_message")}</p>
            </div>
        })
    }
}

#[component]
fn ProgressLine(view: View) -> impl IntoView {
    let row = Signal::derive(move || view.jobs.first().unwrap_or_default());
    let share = Signal::derive(move || row.with(live::share_done));
    let running = Memo::new(move |_| {
        row.with(|r| matches!(r.text("status").as_str(), "running" | "queued" | "pending"))
    });
    let newest = move || view.feed.with(|f| f.progress.last().cloned());
    let words = move || match newest() {
        Some(p) => {
            let total = p.total.map_or_else(String::new, |t| format!(" of {}", count(t as i64)));
            let failed =
                if p.failed > 0.0 { format!(", {} failed", count(p.failed as i64)) } else { String::new() };
            format!(
                "{}: {}{total} requests{failed}, {} in flight, {}",
                p.phase.replace('_', "-"),
                count(p.done as i64),
                count(p.in_flight as i64),
                duration(p.elapsed_s)
            )
        }
        None => match row.with(|r| r.text("phase")).as_str() {
            "serving" => "the model server is starting".to_owned(),
            "claimed" => "the agent prepares the job".to_owned(),
            "queued" => "waiting for the server's agent".to_owned(),
            "pending" => "waiting for the jobs before it".to_owned(),
            _ => "the load generator starts".to_owned(),
        },
    };
    let now = move || {
        newest().map(|p| {
            format!("{} tok/s now · TTFT p50 so far {} ms", maybe(p.tokens_per_second), maybe(p.ttft_p50_ms))
        })
    };
    view! {
        <Show when=move || running.get()>
            <div class="progress-line" data-testid="progress">
                <p class="cell-line"><span>{words}</span><span>{now}</span></p>
                <Progress share label="Requests answered"/>
            </div>
        </Show>
    }
    .into_any()
}

#[component]
fn Telemetry(view: View) -> impl IntoView {
    let server = Memo::new(move |_| {
        let job = view.jobs.first()?;
        view.servers.all().into_iter().find(|s| {
            s.text("hostname") == job.text("hostname") && s.text("config_code") == job.text("config_code")
        })
    });
    let colour = Memo::new(move |_| {
        view.jobs
            .first()
            .map(|j| key_series(&format!("{}/{}", j.text("config_code"), j.text("hostname"))))
            .unwrap_or_else(|| "--series-1".into())
    });
    let draw = move |quantity: fn(Option<Row>) -> Quantity| {
        Memo::new(move |_| {
            let quantity = quantity(server.get());
            view.feed.with(|feed| telemetry::figure(feed, &quantity, &colour.get()))
        })
    };
    let throughput: Memo<Figure> =
        Memo::new(move |_| view.feed.with(|feed| telemetry::throughput(feed, &colour.get())));
    let power = draw(|_| Quantity::gpu_power());
    let utilization = draw(|_| Quantity::gpu_utilization());
    let memory = draw(|s| Quantity::gpu_memory(s.and_then(|s| s.number("gpu_memory_bytes"))));
    let cpu = draw(|_| Quantity::cpu());
    let ram = draw(|s| Quantity::ram(s.and_then(|s| s.number("ram_total_bytes"))));
    let gpus = Memo::new(move |_| {
        view.feed
            .with(|f| f.sources("gpu", "utilization").len())
            .max(server.with(|s| s.as_ref().and_then(|s| s.whole("gpu_count")).unwrap_or(0)) as usize)
    });
    let words = move || {
        view.feed.with(|f| {
            let samples = f.lines.values().map(Vec::len).max().unwrap_or(0);
            if samples == 0 {
                "sampled by the agent while the job runs".to_owned()
            } else {
                format!("1 Hz, {} samples a source · shaded: serving, drain", count(samples as i64))
            }
        })
    };
    let gpu_unit = move |unit: &'static str| {
        Signal::derive(move || {
            if gpus.get() == 1 {
                format!("{unit} · 1 GPU")
            } else {
                format!("{unit} · {} GPUs", gpus.get())
            }
        })
    };
    let over = Memo::new(move |_| {
        view.jobs
            .first()
            .is_some_and(|j| matches!(j.text("status").as_str(), "completed" | "failed" | "cancelled"))
    });
    let waiting = Signal::derive(move || {
        if over.get() { "No sample was taken." } else { "Points appear once the agent samples." }.to_owned()
    });
    let no_progress = Signal::derive(move || {
        if over.get() {
            "The load generator reported no progress."
        } else {
            "Points appear once the load generator runs."
        }
        .to_owned()
    });
    view! {
        <section aria-labelledby="telemetry" class="below" data-testid="telemetry">
            <div class="section-head"><h2 id="telemetry">"Telemetry"</h2><span class="meta" data-testid="telemetry-words">{words}</span></div>
            <div class="grid telemetry">
                <div class="span-6"><Chart title="Running throughput" unit="tok/s, mean of 10 s" figure=throughput group="job" height="low" testid="chart-progress" words=no_progress/></div>
                <Show when=move || { gpus.get() > 0 }>
                    <div class="span-6"><Chart title="GPU power" unit=gpu_unit("W") figure=power group="job" height="low" testid="chart-gpu-power" words=waiting/></div>
                    <div class="span-6"><Chart title="GPU utilization" unit=gpu_unit("%") figure=utilization group="job" height="low" testid="chart-gpu-utilization" words=waiting/></div>
                    <div class="span-6"><Chart title="GPU memory used" unit=gpu_unit("GB") figure=memory group="job" height="low" testid="chart-gpu-memory" words=waiting/></div>
                </Show>
                <div class="span-6"><Chart title="CPU" unit="% of each socket" figure=cpu group="job" height="low" testid="chart-cpu" words=waiting/></div>
                <div class="span-6"><Chart title="System RAM used" unit="GB" figure=ram group="job" height="low" testid="chart-ram" words=waiting/></div>
            </div>
        </section>
    }
    .into_any()
}

#[component]
fn Commands(view: View) -> impl IntoView {
    // The final command lines as the agent ran them; until then, as they were resolved.
    let commands = Memo::new(move |_| {
        let job = view.jobs.first().unwrap_or_default();
        let argv = |run: &str, resolved: &str| {
            let done = job.list(run);
            if done.is_empty() { (job.list(resolved), false) } else { (done, true) }
        };
        [
            ("Framework command", "serve", argv("serve_argv", "resolved_serve_argv")),
            ("Tool command", "tool", argv("tool_argv", "resolved_tool_argv")),
        ]
    });
    view! {
        <div class="grid below">
            {move || commands.get().map(|(title, id, (argv, ran))| {
                (!argv.is_empty()).then(|| {
                    let text = shell(&argv);
                    view! {
                        <section class="span-6" aria-labelledby=id data-testid=format!("command-{id}")>
                            <div class="section-head">
                                <h2 id=id>{title}</h2>
                                <span class="meta">{if ran { "as the agent ran it" } else { "as resolved and signed; the agent fills what is its own" }}</span>
                                <div class="actions"><CopyButton text=Signal::stored(text) class="button button-quiet"/></div>
                            </div>
                            {command(&argv)}
                        </section>
                    }
                })
            }).collect_view()}
        </div>
    }
    .into_any()
}

#[component]
fn Phases(view: View) -> impl IntoView {
    let stages = [
        ("created_at", "created"),
        ("queued_at", "queued"),
        ("claimed_at", "claimed by the agent"),
        ("serving_at", "model server started"),
        ("running_at", "load generator started"),
        ("finished_at", "ended"),
    ];
    let lines = move || {
        let job = view.jobs.first().unwrap_or_default();
        let known: Vec<(f64, &str)> =
            stages.iter().filter_map(|(column, word)| job.millis(column).map(|at| (at, *word))).collect();
        known
            .iter()
            .enumerate()
            .map(|(place, (at, word))| {
                let after = place.checked_sub(1).map(|p| format!("after {}", duration((at - known[p].0) / 1000.0)));
                view! { <tr><th scope="row">{*word}</th><td class="number">{clock(*at)}</td><td class="number">{after}</td></tr> }
            })
            .collect_view()
    };
    let facts = move || {
        let job = view.jobs.first().unwrap_or_default();
        let server = view
            .servers
            .all()
            .into_iter()
            .find(|s| s.text("hostname") == job.text("hostname"))
            .unwrap_or_default();
        let gpu = match server.whole("gpu_count") {
            Some(n) if n > 0 => format!(
                "{n} × {}, driver {}",
                server.text("gpu_name"),
                server.maybe_text("driver_version").unwrap_or_else(|| "unknown".into())
            ),
            _ => "none".to_owned(),
        };
        let host = format!(
            "{} × {}, {} GB",
            maybe(server.number("cpu_sockets")),
            server.text("cpu_model"),
            maybe(server.number("ram_total_bytes").map(crate::format::gigabytes))
        );
        let pairs = [
            ("Model", job.text("model_code")),
            ("Framework", format!("{} {}", job.text("framework_code"), job.text("framework_version"))),
            ("GPU", gpu),
            ("Host", host),
            ("System", server.text("os")),
            ("Agent", server.text("agent_version")),
        ];
        pairs.map(|(name, value)| view! { <dt>{name}</dt><dd>{value}</dd> }).collect_view()
    };
    view! {
        <div class="grid below">
            <section class="span-6" aria-labelledby="phases" data-testid="phases">
                <div class="section-head"><h2 id="phases">"Phases"</h2><span class="meta">"UTC"</span></div>
                <table class="data-table keep-shape"><caption class="visually-hidden">"Phases"</caption><tbody>{lines}</tbody></table>
            </section>
            <section class="span-6" aria-labelledby="environment">
                <div class="section-head"><h2 id="environment">"Environment"</h2></div>
                <dl class="definitions definitions-section">{facts}</dl>
            </section>
        </div>
    }
    .into_any()
}
