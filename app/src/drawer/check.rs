//! Checks a figure's proof again, here in the browser, and copies it as a file that needs nothing else.

use events::merkle::Proof;
use events::proof_file::{Held, ProofFile};
use leptos::prelude::*;
use serde::Deserialize;
use wasm_bindgen_futures::spawn_local;

use crate::browser::api::{self, Trouble};
use crate::browser::{copy, save_file};
use crate::format::{count, counted, short_hash};
use crate::parts::Progress;

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
    /// The proof without the proofs of its events.
    file: ProofFile,
    /// The positions of its events, in order.
    positions: Vec<i64>,
    /// What the file is called: its end is added.
    name: String,
) -> impl IntoView {
    let check = RwSignal::new(Check::Idle);
    let asked = StoredValue::new((file, positions, name));
    let start = move |then: Then| {
        if matches!(check.get_untracked(), Check::Going(..)) {
            return;
        }
        let (mut file, positions, name) = asked.get_value();
        spawn_local(async move {
            let checked = collect(&positions, check).await.map(|proofs| {
                file.proofs = proofs;
                file.check()
            });
            let end = match checked {
                Err(trouble) => Check::Refused(trouble),
                Ok(Err(doubt)) => Check::Doubted(doubt.to_string()),
                Ok(Ok(held)) => {
                    let text = serde_json::to_string_pretty(&file).unwrap_or_default();
                    match then {
                        Then::Nothing => {}
                        Then::Copy => copy(&text),
                        Then::Save => {
                            let name = format!("{}.proof.json", name.replace(['/', ' '], "-"));
                            save_file(&name, "application/json", &text);
                        }
                    }
                    Check::Holds(held)
                }
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
                    <span class="quiet">{format!("{} lead{} to the checkpoint at position {}", counted(events as i64, "event"), if events == 1 { "s" } else { "" }, count(checkpoint))}</span>
                </p>
                <p>{asked.with_value(|(file, ..)| follows(file, figures_at, value_checked))}</p>
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

/// What the figure follows from.
fn follows(file: &ProofFile, figures_at: i64, checked: bool) -> String {
    match (&file.samples, &file.line, checked) {
        (Some(samples), ..) if samples.count == 1 => "the figure is the sample in this event".to_owned(),
        (Some(samples), ..) => {
            format!(
                "the figure is the mean of the {} in these events",
                counted(samples.count as i64, "sample")
            )
        }
        (_, Some(line), true) => {
            format!("the figure stands in line {} of the file that the event names", line.number)
        }
        (_, Some(line), false) => {
            format!(
                "the event is proved; that the file has this line {} is for whoever has the file",
                line.number
            )
        }
        (_, _, true) => format!("the figure follows from the summary at position {}", count(figures_at)),
        _ => "its events are proved, not its arithmetic: the figure takes more than the summary".to_owned(),
    }
}

/// Reads the proof of every event.
async fn collect(positions: &[i64], check: RwSignal<Check>) -> Result<Vec<Proof>, Trouble> {
    let mut proofs = Vec::with_capacity(positions.len());
    for (place, position) in positions.iter().enumerate() {
        check.try_set(Check::Going(place + 1, positions.len()));
        let proved: Proved = api::get(&format!("/api/proof?position={position}"), 0).await?;
        proofs.push(proved.proof);
    }
    Ok(proofs)
}
