//! Telemetry: a chart a quantity, all with one cross-hair and one zoom, which is in the address.

use leptos::prelude::*;

use super::View;
use super::fill::Reading;
use crate::browser::page::Page;
use crate::charts::Figure;
use crate::charts::picked::{Picked, picked};
use crate::charts::telemetry::{self, Quantity};
use crate::charts::view::{Chart, Zooming};
use crate::drawer::Stretch;
use crate::format::{counted, significant};
use crate::parts::tables::open_drawer;
use crate::row::Row;
use crate::state::colours::Kind;
use crate::state::result_key::path_of;

/// What each quantity is now, and its mean, peak and lowest.
#[component]
pub(super) fn Summaries(view: View) -> impl IntoView {
    let summaries = Memo::new(move |_| view.feed.with(|feed| feed.summaries()));
    let lines = move || {
        summaries
            .get()
            .into_iter()
            .map(|s| {
                let cells = [s.now, s.mean, s.peak, s.low]
                    .map(|value| view! { <td class="number">{significant(value)}</td> });
                view! {
                    <tr>
                        <th scope="row">{s.name}" "<span class="quiet">{s.unit}</span></th>
                        {cells.into_iter().collect_view()}
                        <td class="number quiet">{s.sources}</td>
                    </tr>
                }
            })
            .collect_view()
    };
    view! {
        <Show when=move || !summaries.with(Vec::is_empty)>
            <table class="data-table keep-shape" data-testid="telemetry-summary">
                <caption class="visually-hidden">"Telemetry in numbers"</caption>
                <thead>
                    <tr>
                        <th scope="col">"Over this attempt"</th>
                        <th scope="col" class="number">"Now"</th>
                        <th scope="col" class="number">"Mean"</th>
                        <th scope="col" class="number">"Peak"</th>
                        <th scope="col" class="number">"Lowest"</th>
                        <th scope="col" class="number">"Sources"</th>
                    </tr>
                </thead>
                <tbody>{lines}</tbody>
            </table>
        </Show>
    }
    .into_any()
}

#[component]
pub(super) fn Telemetry(view: View) -> impl IntoView {
    let server = Memo::new(move |_| {
        let job = view.jobs.first()?;
        view.servers.all().into_iter().find(|s| {
            s.text("hostname") == job.text("hostname") && s.text("config_code") == job.text("config_code")
        })
    });
    let colours = Page::expect().colours;
    let colour = Memo::new(move |_| {
        let job = view.job();
        colours.of(Kind::Server, &format!("{}/{}", job.text("config_code"), job.text("hostname"))).token()
    });
    let zooming = Zooming {
        now: Signal::derive(move || view.set.with(|set| set.zoom)),
        set: Callback::new(move |zoom| view.change(|set| set.zoom = zoom)),
    };
    let pick = Callback::new(move |name: String| {
        let picked = view.feed.with_untracked(|feed| picked(feed, &name));
        match (picked, view.attempt.get_untracked()) {
            (Some(Picked::Samples { source, metric, from, to }), Some(attempt)) => {
                let job = untrack(|| path_of(&view.job().text("job")).to_owned());
                Stretch { job, attempt, source, metric, from, to }.open(view.address);
            }
            (Some(Picked::Report(position)), _) => {
                open_drawer(view.address, &[("drawer", "event"), ("position", &position.to_string())]);
            }
            _ => {}
        }
    });
    let draw = move |quantity: fn(Option<Row>) -> Quantity| {
        Memo::new(move |_| {
            let quantity = quantity(server.get());
            view.feed.with(|feed| telemetry::figure(feed, &quantity, colour.get()))
        })
    };
    let throughput: Memo<Figure> =
        Memo::new(move |_| view.feed.with(|feed| telemetry::throughput(feed, colour.get())));
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
            let samples = f.lines.values().map(|line| line.samples()).max().unwrap_or(0);
            if samples == 0 {
                "sampled by the agent while the job runs".to_owned()
            } else {
                let mut words = vec![format!("1 Hz, {} a source", counted(samples, "sample"))];
                words.extend(telemetry::shaded(f));
                words.push("drag to zoom".to_owned());
                words.push("a point shows its samples".to_owned());
                words.join(" · ")
            }
        })
    };
    let rate = Signal::derive(move || format!("{}, mean of 10 s", view.feed.with(|f| f.running_unit())));
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
    let attempted = Memo::new(move |_| view.attempt.with(Option::is_some));
    // What stands where there is nothing to draw: nothing came, nothing has come yet, or it is not known yet.
    let nothing =
        move |reading: RwSignal<Reading>, there: Memo<bool>, never: &'static str, later: &'static str| {
            Signal::derive(move || match reading.get() {
                Reading::Waiting if there.get() => "Reading.".to_owned(),
                Reading::Failed(why) => format!("It could not be read: {why}"),
                _ if over.get() => never.to_owned(),
                _ => later.to_owned(),
            })
        };
    let waiting =
        nothing(view.samples, attempted, "No sample was taken.", "Points appear once the agent samples.");
    let no_progress = nothing(
        view.progress,
        view.reported,
        "The load generator reported no progress.",
        "Points appear once the load generator runs.",
    );
    view! {
        <section aria-labelledby="telemetry" class="below" data-testid="telemetry">
            <div class="section-head"><h2 id="telemetry">"Telemetry"</h2><span class="meta" data-testid="telemetry-words">{words}</span></div>
            <div class="grid telemetry">
                <div class="span-6"><Chart title="Running throughput" unit=rate figure=throughput group="job" zooming pick height="low" testid="chart-progress" words=no_progress/></div>
                <Show when=move || { gpus.get() > 0 }>
                    <div class="span-6"><Chart title="GPU power" unit=gpu_unit("W") figure=power group="job" zooming pick height="low" testid="chart-gpu-power" words=waiting/></div>
                    <div class="span-6"><Chart title="GPU utilization" unit=gpu_unit("%") figure=utilization group="job" zooming pick height="low" testid="chart-gpu-utilization" words=waiting/></div>
                    <div class="span-6"><Chart title="GPU memory used" unit=gpu_unit("GB") figure=memory group="job" zooming pick height="low" testid="chart-gpu-memory" words=waiting/></div>
                </Show>
                <div class="span-6"><Chart title="CPU" unit="% of each socket" figure=cpu group="job" zooming pick height="low" testid="chart-cpu" words=waiting/></div>
                <div class="span-6"><Chart title="System RAM used" unit="GB" figure=ram group="job" zooming pick height="low" testid="chart-ram" words=waiting/></div>
            </div>
        </section>
    }
    .into_any()
}
