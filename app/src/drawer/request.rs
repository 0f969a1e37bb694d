//! One request of a job: its line in the request log, the file's hash worked out here, and the event that names it.

use events::api::EventView;
use events::hexadecimal;
use events::proof_file::{FORMAT, ProofFile};
use events::proof_parts::{FileLine, MOST_CONTENT};
use events::system::BlobStored;
use leptos::prelude::*;
use serde::Deserialize;
use serde_json::Value;
use sha2::{Digest, Sha256};
use wasm_bindgen_futures::spawn_local;

use super::Head;
use super::check::CheckProof;
use crate::browser::api::{self, Trouble};
use crate::format::{count, full, short_hash, size};
use crate::parts::CopyButton;
use crate::parts::states::{Skeleton, trouble_view};
use crate::state::filters::percent;

/// Bytes of a file that are read without being asked for.
const UNASKED_BYTES: u64 = 8 << 20;
/// The number of a line that its proof is of.
const FIGURE: &str = "response_time_ms";

/// `GET /api/proof`.
#[derive(Debug, Clone, PartialEq, Deserialize)]
struct Named {
    event: EventView,
}

/// A file as it was read: its hash, the line asked for, and all of it where it is short.
#[derive(Debug, Clone, PartialEq)]
struct ReadFile {
    sha256: String,
    line: Option<String>,
    content: Option<String>,
}

/// Takes a file as it comes: nothing of it is kept but the line asked for and, where it is short, the whole.
struct Reader {
    hash: Sha256,
    wanted: u64,
    at: u64,
    line: Vec<u8>,
    content: Option<Vec<u8>>,
    bytes: usize,
}

impl Reader {
    fn new(wanted: u64) -> Self {
        Self { hash: Sha256::new(), wanted, at: 1, line: Vec::new(), content: Some(Vec::new()), bytes: 0 }
    }

    fn take(&mut self, piece: &[u8]) {
        self.hash.update(piece);
        self.bytes += piece.len();
        if self.bytes > MOST_CONTENT {
            self.content = None;
        }
        if let Some(content) = &mut self.content {
            content.extend_from_slice(piece);
        }
        for part in piece.split_inclusive(|byte| *byte == b'\n') {
            if self.at == self.wanted {
                self.line.extend_from_slice(part.strip_suffix(b"\n").unwrap_or(part));
            }
            self.at += u64::from(part.ends_with(b"\n"));
        }
    }

    fn end(self) -> ReadFile {
        let there = self.at >= self.wanted && !self.line.is_empty();
        ReadFile {
            sha256: hexadecimal::encode(&self.hash.finalize()),
            line: there.then(|| String::from_utf8(self.line).ok()).flatten(),
            content: self.content.and_then(|content| String::from_utf8(content).ok()),
        }
    }
}

/// One request.
#[component]
pub fn OneRequest(position: i64, line: u64) -> impl IntoView {
    let named = RwSignal::new(None::<Result<(EventView, BlobStored), Trouble>>);
    let again = RwSignal::new(0u32);
    Effect::new(move |_| {
        again.track();
        spawn_local(async move {
            let answer = api::get::<Named>(&format!("/api/proof?position={position}"), 0).await;
            let stored =
                answer.and_then(|Named { event }| match serde_json::from_value(event.payload.clone()) {
                    Ok(stored) => Ok((event, stored)),
                    Err(_) => Err(Trouble::of_page(
                        "no_file",
                        "The event at this position names no file.",
                        "Open the request from its job's page.",
                    )),
                });
            named.try_set(Some(stored));
        });
    });
    let note = move || match named.get() {
        Some(Ok((_, stored))) => {
            stored.job.map_or_else(String::new, |job| job.trim_start_matches("job/").to_owned())
        }
        _ => String::new(),
    };
    view! {
        <Head title=format!("Request in line {}", count(line as i64)) note=Signal::derive(note)/>
        <div class="drawer-body" data-testid="request">
            {move || match named.get() {
                None => view! { <Skeleton lines=8/> }.into_any(),
                Some(Err(trouble)) => trouble_view(&trouble, move || again.update(|n| *n += 1)),
                Some(Ok((event, stored))) => view! { <InFile event stored line/> }.into_any(),
            }}
        </div>
    }
    .into_any()
}

/// The line, once the file is read.
#[component]
fn InFile(event: EventView, stored: BlobStored, line: u64) -> impl IntoView {
    let file = RwSignal::new(None::<Result<ReadFile, Trouble>>);
    let asked = RwSignal::new(stored.size <= UNASKED_BYTES);
    let again = RwSignal::new(0u32);
    let org = event.stream.split('/').nth(1).unwrap_or_default().to_owned();
    let address = format!("/api/blobs/{}/{}", percent(&org), percent(&stored.sha256));
    let from = address.clone();
    Effect::new(move |_| {
        again.track();
        if !asked.get() {
            return;
        }
        let from = from.clone();
        spawn_local(async move {
            let mut reader = Reader::new(line);
            let answer = api::pieces(&from, |piece| {
                reader.take(piece);
                // Nobody waits for it any more once the drawer shows something else.
                file.try_get_untracked().is_some()
            })
            .await;
            file.try_set(Some(answer.map(|()| reader.end())));
        });
    });
    let (kept, named) = (StoredValue::new(stored.clone()), StoredValue::new(event.clone()));
    view! {
        {move || match file.get() {
            None if !asked.get() => view! {
                <p>{format!("The request log has {}.", size(kept.with_value(|s| s.size as i64)))}</p>
                <div class="actions"><button type="button" class="button" data-testid="read-file" on:click=move |_| asked.set(true)>"Read it"</button></div>
            }
            .into_any(),
            None => view! { <Skeleton lines=6/> }.into_any(),
            Some(Err(trouble)) => trouble_view(&trouble, move || again.update(|n| *n += 1)),
            Some(Ok(read)) => shown(&read, &kept.get_value(), &named.get_value(), line),
        }}
        <section>
            <div class="command-head"><h3>"Evidence"</h3></div>
            <dl class="definitions">
                <dt>"File"</dt><dd><a class="key link" href=address rel="external" title=stored.sha256.clone()>{short_hash(&stored.sha256)}</a>{format!(" {}", size(stored.size as i64))}</dd>
                <dt>"Line"</dt><dd data-testid="request-line">{count(line as i64)}</dd>
                <dt>"Named by"</dt><dd class="key">{event.event_type.clone()}</dd>
                <dt>"Position"</dt><dd class="key" data-testid="request-position">{count(event.position)}</dd>
                <dt>"Actor"</dt><dd class="key">{format!("{}/{}", event.actor_kind, event.actor_id)}</dd>
                <dt>"Occurred"</dt><dd>{event.occurred_at.to_string()}", claimed"</dd>
                <dt>"Recorded"</dt><dd>{event.recorded_at.to_string()}", server"</dd>
                <dt>"Hash"</dt><dd class="key" title=event.hash.clone()>{short_hash(&event.hash)}</dd>
            </dl>
        </section>
    }
    .into_any()
}

/// How long the request took, by the moments that its line holds.
fn calculation(line: &Value) -> Option<String> {
    let moment = |name: &str| line.get(name).and_then(Value::as_u64);
    let (started, ended) = (moment("started_unix_ns")?, moment("ended_unix_ns")?);
    let took = line.get(FIGURE).and_then(Value::as_f64);
    let took = took.unwrap_or(ended.saturating_sub(started) as f64 / 1e6);
    let first = line.get("ttft_ms").and_then(Value::as_f64);
    let first = first.map_or_else(String::new, |ms| format!("; first token after {} ms", full(ms)));
    Some(format!("({ended} − {started}) ns ÷ 10⁶ = {} ms{first}", full(took)))
}

fn shown(read: &ReadFile, stored: &BlobStored, event: &EventView, number: u64) -> AnyView {
    let same = read.sha256 == stored.sha256;
    let Some(text) = read.line.clone() else {
        return view! { <p role="alert">{format!("The file has no line {}.", count(number as i64))}</p> }
            .into_any();
    };
    let value: Value = serde_json::from_str(&text).unwrap_or(Value::Null);
    let pretty =
        if value.is_null() { text.clone() } else { serde_json::to_string_pretty(&value).unwrap_or_default() };
    let job = stored.job.clone().unwrap_or_default();
    let file = ProofFile {
        format: FORMAT.to_owned(),
        result: job.clone(),
        metric: FIGURE.to_owned(),
        value: value.get(FIGURE).and_then(Value::as_f64),
        unit: "ms".to_owned(),
        calculation: calculation(&value),
        command: Vec::new(),
        chain: Vec::new(),
        proofs: Vec::new(),
        samples: None,
        line: Some(FileLine {
            sha256: stored.sha256.clone(),
            number,
            text: text.clone(),
            content: read.content.clone(),
        }),
    };
    let name = format!("{}-request-{number}", job.trim_start_matches("job/"));
    let beside = file.line.as_ref().is_some_and(|line| line.content.is_none());
    view! {
        <div class="verdict">
            {if same {
                view! { <p data-testid="file-holds"><span class="status" data-status="completed">"file unchanged"</span>" "<span class="quiet">"its SHA-256, worked out here, is the one in the log"</span></p> }.into_any()
            } else {
                view! { <p role="alert"><span class="status" data-status="failed">"another file"</span>" "{format!("it has SHA-256 {}, and the log names {}", read.sha256, stored.sha256)}</p> }.into_any()
            }}
            <p class="key" data-testid="calculation">{calculation(&value)}</p>
        </div>
        <section>
            <div class="command-head"><h3>"Line"</h3><CopyButton text=Signal::stored(text)/></div>
            <pre class="command json" data-testid="request-text" tabindex="0">{pretty}</pre>
        </section>
        <CheckProof file positions=vec![event.position] name/>
        {beside.then(|| view! { <p class="meta">"The log is too long to be in the proof: keep the file beside it, and give it with --file."</p> })}
    }
    .into_any()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    fn read(pieces: &[&[u8]], wanted: u64) -> ReadFile {
        let mut reader = Reader::new(wanted);
        pieces.iter().for_each(|piece| reader.take(piece));
        reader.end()
    }

    #[test]
    fn a_line_that_is_not_there_is_none() {
        let text: &[u8] = b"one\ntwo\n";
        assert_eq!(read(&[text], 2).line.as_deref(), Some("two"));
        assert_eq!((read(&[text], 3).line, read(&[text], 0).line), (None, None));
        assert_eq!(read(&[b"one\nlast"], 2).line.as_deref(), Some("last"));
    }

    #[test]
    fn a_long_file_is_hashed_and_not_kept() {
        let long = vec![b'x'; MOST_CONTENT];
        let file = read(&[&long, b"\nend\n"], 2);
        assert_eq!((file.content, file.line.as_deref()), (None, Some("end")));
    }

    #[test]
    fn how_long_it_took_is_written_out() {
        let line = json!({"started_unix_ns": 1_000_000u64, "ended_unix_ns": 3_500_000u64, "ttft_ms": 0.5});
        assert_eq!(
            calculation(&line).as_deref(),
            Some("(3500000 − 1000000) ns ÷ 10⁶ = 2.5 ms; first token after 0.5 ms")
        );
        assert_eq!(calculation(&json!({"index": 1})), None);
    }

    proptest! {
        #[test]
        fn however_the_bytes_are_cut_the_file_is_the_same(cuts in proptest::collection::vec(0usize..40, 0..8), wanted in 1u64..6) {
            let text = "first\nsecond line\n\nfourth\nlast";
            let mut cuts: Vec<usize> = cuts.into_iter().map(|c| c.min(text.len())).chain([0, text.len()]).collect();
            cuts.sort_unstable();
            let pieces: Vec<&[u8]> = cuts.windows(2).map(|pair| &text.as_bytes()[pair[0]..pair[1]]).collect();
            let file = read(&pieces, wanted);
            prop_assert_eq!(file.line.as_deref(), text.lines().nth(wanted as usize - 1).filter(|line| !line.is_empty()));
            prop_assert_eq!(file.sha256, hexadecimal::encode(&Sha256::digest(text)));
            prop_assert_eq!(file.content.as_deref(), Some(text));
        }
    }
}
