//! What made a point of a chart of telemetry: its samples, the events that carried them, and their proof.

use events::Timestamp;
use events::api::{EventView, History};
use events::proof_file::{FORMAT, ProofFile};
use events::proof_parts::{Samples, mean, reading};
use events::telemetry::{TelemetrySample, TelemetrySampled};
use leptos::prelude::*;
use wasm_bindgen_futures::spawn_local;

use super::check::CheckProof;
use super::proof::event_href;
use super::{Head, Stretch};
use crate::browser::api::{self, Trouble};
use crate::browser::page::Page;
use crate::charts::telemetry::{Quantity, source_name};
use crate::format::{clock_ms, count, counted, full, millis, short_hash, significant, stamp};
use crate::parts::states::{Skeleton, trouble_view};
use crate::state::filters::percent;

/// How much earlier than the first sample its event may say it happened: clocks are set back.
const EARLIER_MS: f64 = 5_000.0;
/// Events of one request.
const AT_ONCE: usize = 500;
/// Samples that a calculation names one by one.
const NAMED: usize = 6;

/// An event and its samples that lie in the stretch: their moments and values.
type Carried = (EventView, Vec<(Timestamp, f64)>);

/// The samples of a stretch.
#[component]
pub fn Sampled(stretch: Stretch) -> impl IntoView {
    let page = Page::expect();
    let found = RwSignal::new(None::<Result<Vec<Carried>, Trouble>>);
    let again = RwSignal::new(0u32);
    let asked = stretch.clone();
    Effect::new(move |_| {
        again.track();
        let (asked, at_least) = (asked.clone(), page.live.at_least());
        spawn_local(async move {
            let answer = read(&asked, at_least).await;
            found.try_set(Some(answer));
        });
    });
    let quantity = Quantity::of(&stretch.source, &stretch.metric);
    let title = quantity.as_ref().map_or(stretch.metric.clone(), |q| q.title.to_owned());
    let note = format!("{} · {} · attempt {}", source_name(&stretch.source), stretch.job, stretch.attempt);
    view! {
        <Head title=title note=note/>
        <div class="drawer-body" data-testid="samples">
            {move || match found.get() {
                None => view! { <Skeleton lines=8/> }.into_any(),
                Some(Err(trouble)) => trouble_view(&trouble, move || again.update(|n| *n += 1)),
                Some(Ok(carried)) if carried.is_empty() => view! { <p>"No sample of this stretch is in the log, or you may not see it."</p> }.into_any(),
                Some(Ok(carried)) => evidence(&stretch, &carried),
            }}
        </div>
    }
    .into_any()
}

/// The stream of an attempt's telemetry.
fn stream(stretch: &Stretch) -> String {
    format!("telemetry/{}/{}", stretch.job, stretch.attempt)
}

/// Reads the events around the stretch, as many as hold something of it.
async fn read(stretch: &Stretch, at_least: i64) -> Result<Vec<Carried>, Trouble> {
    let stream = percent(&stream(stretch));
    let since = percent(&stamp(stretch.from as f64 - EARLIER_MS));
    let first = format!(
        "/api/v_events?stream=eq.{stream}&occurred_at=gte.{since}&select=position&order=position.asc&limit=1"
    );
    let (rows, _) = api::rows(&first, at_least, false).await?;
    let mut after = match rows.first().and_then(|row| row.whole("position")) {
        Some(position) => position - 1,
        None => return Ok(Vec::new()),
    };
    let mut carried = Vec::new();
    loop {
        let request = format!("/api/history?stream={stream}&after={after}&limit={AT_ONCE}");
        let history: History = api::get(&request, at_least).await?;
        let mut past = false;
        for event in history.events {
            past |= millis(&event.occurred_at.to_string())
                .is_some_and(|at| at > stretch.to as f64 + 2.0 * EARLIER_MS);
            let within = within(stretch, &event);
            if !within.is_empty() {
                carried.push((event, within));
            }
        }
        match history.next_after {
            Some(next) if !past => after = next,
            _ => return Ok(carried),
        }
    }
}

/// What an event holds of the stretch.
fn within(stretch: &Stretch, event: &EventView) -> Vec<(Timestamp, f64)> {
    let Ok(sampled) = serde_json::from_value::<TelemetrySampled>(event.payload.clone()) else {
        return Vec::new();
    };
    let of = |sample: &TelemetrySample| {
        let at = millis(&sample.at.to_string())?;
        let value = reading(sample, &stretch.source, &stretch.metric)?;
        (at >= stretch.from as f64 && at < stretch.to as f64 + 1.0).then_some((sample.at, value))
    };
    sampled.samples.iter().filter_map(of).collect()
}

/// The calculation written out, in the unit shown.
fn calculation(values: &[f64], unit: &str) -> String {
    let Some(mean) = mean(values) else { return String::new() };
    match values {
        [one] => format!("{} {unit}, one sample", full(*one)),
        few if few.len() <= NAMED => {
            let sum = few.iter().map(|value| significant(*value)).collect::<Vec<_>>().join(" + ");
            format!("({sum}) ÷ {} = {} {unit}", few.len(), significant(mean))
        }
        many => format!(
            "{} ÷ {} samples = {} {unit}",
            significant(many.iter().sum()),
            count(many.len() as i64),
            significant(mean)
        ),
    }
}

fn evidence(stretch: &Stretch, carried: &[Carried]) -> AnyView {
    let quantity = Quantity::of(&stretch.source, &stretch.metric);
    let (scale, unit) = quantity.map_or((1.0, ""), |q| (q.scale, q.unit));
    let samples: Vec<(Timestamp, f64)> =
        carried.iter().flat_map(|(_, samples)| samples.iter().copied()).collect();
    let shown: Vec<f64> = samples.iter().map(|(_, value)| value * scale).collect();
    let rows = carried.iter().flat_map(|(event, samples)| {
        samples.iter().map(|(at, value)| {
            let at = millis(&at.to_string()).map_or_else(String::new, clock_ms);
            view! {
                <tr data-testid="sample" data-position=event.position.to_string()>
                    <th scope="row" class="number">{at}</th>
                    <td class="number" title=full(value * scale)>{significant(value * scale)}</td>
                    <td class="number"><a class="key" href=event_href(event.position) data-noscroll="">{count(event.position)}</a></td>
                    <td class="key" title=event.hash.clone()>{event.hash.get(..12).unwrap_or_default().to_owned()}</td>
                </tr>
            }
        })
    });
    let (first, last) = (&carried[0].0, &carried[carried.len() - 1].0);
    let held = match carried {
        [(event, _)] => view! { <a class="link" href=event_href(event.position) data-noscroll="">{event.event_type.clone()}</a> }.into_any(),
        many => format!("{}, positions {} to {}", counted(many.len() as i64, "event"), count(first.position), count(last.position)).into_any(),
    };
    let actor = format!("{}/{}", first.actor_kind, first.actor_id);
    let positions: Vec<i64> = carried.iter().map(|(event, _)| event.position).collect();
    let name = format!("{}-{}-{}-{}", stretch.job, stretch.source, stretch.metric, stretch.from);
    view! {
        <div class="verdict"><p class="key" data-testid="calculation">{calculation(&shown, unit)}</p></div>
        <section>
            <div class="command-head"><h3>"Samples"</h3><span class="meta">{counted(samples.len() as i64, "sample")}</span></div>
            <div class="figure-table" tabindex="0">
                <table class="data-table keep-shape">
                    <caption class="visually-hidden">"The samples and the events that carried them"</caption>
                    <thead><tr>
                        <th scope="col" class="number">"Taken "<span class="unit">"UTC"</span></th>
                        <th scope="col" class="number">"Value "<span class="unit">{unit}</span></th>
                        <th scope="col" class="number">"Position"</th>
                        <th scope="col">"Hash"</th>
                    </tr></thead>
                    <tbody>{rows.collect_view()}</tbody>
                </table>
            </div>
        </section>
        <section>
            <div class="command-head"><h3>"Evidence"</h3></div>
            <dl class="definitions">
                <dt>"Carried by"</dt><dd>{held}</dd>
                <dt>"Stream"</dt><dd class="key">{first.stream.clone()}</dd>
                <dt>"Actor"</dt><dd class="key">{actor}</dd>
                <dt>"Occurred"</dt><dd>{first.occurred_at.to_string()}", claimed"</dd>
                <dt>"Recorded"</dt><dd>{first.recorded_at.to_string()}", server"</dd>
                <dt>"Hash"</dt><dd class="key" title=first.hash.clone()>{short_hash(&first.hash)}</dd>
            </dl>
        </section>
        <CheckProof file=unproved(stretch, carried, calculation(&shown, unit)) positions name/>
    }
    .into_any()
}

/// The proof of the samples, without their events. Its value is in the unit of the log.
fn unproved(stretch: &Stretch, carried: &[Carried], calculation: String) -> ProofFile {
    let all = || carried.iter().flat_map(|(_, samples)| samples.iter().copied());
    let values: Vec<f64> = all().map(|(_, value)| value).collect();
    let (from, to) = (all().map(|(at, _)| at).min(), all().map(|(at, _)| at).max());
    let samples = from.zip(to).map(|(from, to)| Samples {
        source: stretch.source.clone(),
        metric: stretch.metric.clone(),
        from,
        to,
        count: values.len(),
    });
    ProofFile {
        format: FORMAT.to_owned(),
        result: stream(stretch),
        metric: stretch.metric.clone(),
        value: mean(&values),
        unit: samples.as_ref().map_or("", Samples::unit).to_owned(),
        calculation: Some(calculation),
        command: Vec::new(),
        chain: Vec::new(),
        proofs: Vec::new(),
        samples,
        line: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::state::live::tests::event_at;
    use serde_json::json;

    fn stretch(from: i64, to: i64) -> Stretch {
        Stretch {
            job: "o/p/w/1/c8".into(),
            attempt: 1,
            source: "gpu0".into(),
            metric: "power_w".into(),
            from,
            to,
        }
    }

    fn event() -> EventView {
        let sample =
            |at: &str, power: f64| json!({"at": at, "gpus": [{"gpu": 0, "power_w": power}], "system": {}});
        let samples =
            json!([sample("2026-11-29T20:41:01.200Z", 100.0), sample("2026-11-29T20:41:01.700250Z", 300.0)]);
        let payload = json!({"seq": 1, "interval_ms": 500, "samples": samples});
        event_at(7, "telemetry/o/p/w/1/c8/1", "telemetry.sampled", payload)
    }

    #[test]
    fn a_sample_belongs_to_the_millisecond_it_was_taken_in() {
        let at = |text: &str| millis(text).expect("a time").floor() as i64;
        let (first, second) = (at("2026-11-29T20:41:01.200Z"), at("2026-11-29T20:41:01.700250Z"));
        let values =
            |from, to| within(&stretch(from, to), &event()).into_iter().map(|(_, v)| v).collect::<Vec<_>>();
        assert_eq!(values(first, first), [100.0]);
        assert_eq!(values(second, second), [300.0]);
        assert_eq!(values(first, second), [100.0, 300.0]);
        assert!(values(second + 1, second + 9).is_empty());
    }

    #[test]
    fn the_proof_holds_the_exact_moments_and_the_mean() {
        let at = |text: &str| millis(text).expect("a time").floor() as i64;
        let asked = stretch(at("2026-11-29T20:41:01.200Z"), at("2026-11-29T20:41:01.700Z"));
        let event = event();
        let carried = vec![(event.clone(), within(&asked, &event))];
        let file = unproved(&asked, &carried, String::new());
        let samples = file.samples.expect("samples");
        assert_eq!((file.value, samples.count, file.unit.as_str()), (Some(200.0), 2, "W"));
        assert_eq!(samples.to.to_string(), "2026-11-29T20:41:01.700250Z");
    }

    #[test]
    fn the_calculation_is_written_out() {
        assert_eq!(calculation(&[312.5], "W"), "312.5 W, one sample");
        assert_eq!(calculation(&[100.0, 300.0], "W"), "(100 + 300) ÷ 2 = 200 W");
        assert_eq!(calculation(&[2.0; 9], "W"), "18.0 ÷ 9 samples = 2.00 W");
    }
}
