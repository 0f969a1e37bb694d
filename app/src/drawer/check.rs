//! Checks a figure's proof again, here in the browser, and copies it as a file that needs nothing else.

use events::api::History;
use events::merkle::Proof;
use events::proof_file::{FORMAT, Held, ProofFile};
use leptos::prelude::*;
use serde::Deserialize;
use wasm_bindgen_futures::spawn_local;

use crate::browser::api::{self, Trouble};
use crate::browser::{copy, save_file};
use crate::format::{count, short_hash};
use crate::metrics::{calculation, column};
use crate::parts::Progress;
use crate::row::Row;
use crate::state::live::kind;

/// How the check stands.
#[derive(Debug, Clone, PartialEq)]
enum Check {
    Idle,
    /// How many events of how many were asked for.
    Going(usize, usize),
    Holds(Held),
    /// What does not fit.
    Doubted(String),
    Refused(Trouble),
}

/// What to do with a proof that holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Then {
    Nothing,
    Copy,
    Save,
}

/// `GET /api/proof`.
#[derive(Deserialize)]
struct Proved {
    proof: Proof,
}

/// The buttons and what came of them.
#[component]
pub(super) fn CheckProof(
    /// The chain and the events.
    history: History,
    /// The job's path.
    job: String,
    /// The metric.
    metric: String,
    /// The result.
    row: Row,
) -> impl IntoView {
    let check = RwSignal::new(Check::Idle);
    let asked = StoredValue::new((history, job, metric, row));
    let start = move |then: Then| {
        if matches!(check.get_untracked(), Check::Going(..)) {
            return;
        }
        let (history, job, metric, row) = asked.get_value();
        spawn_local(async move {
            let end = match collect(&history, &job, &metric, &row, check).await {
                Err(trouble) => Check::Refused(trouble),
                Ok(file) => match file.check() {
                    Err(doubt) => Check::Doubted(doubt.to_string()),
                    Ok(held) => {
                        let text = serde_json::to_string_pretty(&file).unwrap_or_default();
                        match then {
                            Then::Nothing => {}
                            Then::Copy => copy(&text),
                            Then::Save => {
                                let name = format!("{}-{metric}.proof.json", job.replace('/', "-"));
                                save_file(&name, "application/json", &text);
                            }
                        }
                        Check::Holds(held)
                    }
                },
            };
            check.try_set(end);
        });
    };
    let words = move || {
        match check.get() {
        Check::Idle => view! {
            <p class="quiet">"Works every hash out again in this browser: content, Merkle path, signed checkpoint."</p>
        }
        .into_any(),
        Check::Going(at, of) => view! {
            <div>
                <p><span class="status" data-status="running">"checking"</span>" "<span class="quiet">{format!("event {at} of {of}")}</span></p>
                <Progress share=Signal::stored(Some(at as f64 / of.max(1) as f64)) label="Proof checked"/>
            </div>
        }
        .into_any(),
        Check::Holds(Held { events, checkpoint, key, figures_at, value_checked }) => view! {
            <div data-testid="proof-holds">
                <p>
                    <span class="status" data-status="completed">"holds"</span>
                    " "
                    <span class="quiet">{format!("{events} events lead to the checkpoint at position {}", count(checkpoint))}</span>
                </p>
                <p>{if value_checked {
                    format!("the figure follows from the summary at position {}", count(figures_at))
                } else {
                    "the figure takes more than the summary: its events are proved, the arithmetic is not".to_owned()
                }}</p>
                <p class="meta">"signed by "<span class="key" title=key.clone()>{short_hash(&key)}</span></p>
            </div>
        }
        .into_any(),
        Check::Doubted(why) => view! {
            <p role="alert" data-testid="proof-doubted"><span class="status" data-status="failed">"does not hold"</span>" "{why}</p>
        }
        .into_any(),
        Check::Refused(trouble) => view! {
            <p role="alert"><span class="status" data-status="failed">{trouble.error.message}</span>" "<span class="meta">{trouble.error.hint}</span></p>
        }
        .into_any(),
    }
    };
    view! {
        <section data-testid="check-proof">
            <div class="command-head"><h3>"Proof"</h3></div>
            <div aria-live="polite">{words}</div>
            <div class="actions proof-actions">
                <button type="button" class="button" data-testid="verify-again" on:click=move |_| start(Then::Nothing)>"Verify again"</button>
                <button type="button" class="button" data-testid="copy-proof" on:click=move |_| start(Then::Copy)>"Copy as proof"</button>
                <button type="button" class="button button-quiet" data-testid="save-proof" on:click=move |_| start(Then::Save)>"Save"</button>
            </div>
        </section>
    }
    .into_any()
}

/// Reads the proof of every event behind the figure.
async fn collect(
    history: &History,
    job: &str,
    metric: &str,
    row: &Row,
    check: RwSignal<Check>,
) -> Result<ProofFile, Trouble> {
    let positions: Vec<i64> = history
        .events
        .iter()
        .filter(|e| !matches!(kind(e), "telemetry" | "progress" | "logs"))
        .map(|e| e.position)
        .collect();
    let mut proofs = Vec::with_capacity(positions.len());
    for (place, position) in positions.iter().enumerate() {
        check.try_set(Check::Going(place + 1, positions.len()));
        let proved: Proved = api::get(&format!("/api/proof?position={position}"), 0).await?;
        proofs.push(proved.proof);
    }
    Ok(ProofFile {
        format: FORMAT.to_owned(),
        result: crate::state::result_key::stream_of(job),
        metric: metric.to_owned(),
        value: row.number(metric),
        unit: column(metric).map_or("", |c| c.unit()).to_owned(),
        calculation: calculation(metric, row),
        command: super::proof::tool_argv(history),
        chain: history.chain.clone(),
        proofs,
    })
}
