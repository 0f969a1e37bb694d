//! One event of the log: payload, hash, who, when.

use events::api::History;
use leptos::prelude::*;
use wasm_bindgen_futures::spawn_local;

use super::Head;
use super::proof::event_href;
use crate::browser::api::{self, Trouble};
use crate::browser::page::Page;
use crate::browser::remote::use_rows;
use crate::format::{count, short_hash};
use crate::parts::CopyButton;
use crate::parts::states::{Skeleton, trouble_view};
use crate::row::Row;
use crate::state::filters::percent;

/// One event.
#[component]
pub fn OneEvent(position: i64) -> impl IntoView {
    let page = Page::expect();
    let rows = use_rows(move || Some(format!("/api/v_events?position=eq.{position}")));
    // The list knows the event's stream and version; the history has its payload.
    let history = RwSignal::new(None::<Result<History, Trouble>>);
    Effect::new(move |_| {
        let Some(row) = rows.first() else { return };
        let request =
            format!("/api/history?stream={}&after={}&limit=1", percent(&row.text("stream")), position - 1);
        spawn_local(async move {
            let answer = api::get::<History>(&request, page.live.at_least()).await;
            history.try_set(Some(answer));
        });
    });
    let title =
        Memo::new(move |_| rows.first().map_or_else(|| format!("Event {position}"), |r| r.text("type")));
    view! {
        {move || {
            let note = rows.first().map_or_else(String::new, |r| format!("position {} · version {} of its stream", count(position), r.text("version")));
            view! { <Head title=title.get() note=note/> }
        }}
        <div class="drawer-body" data-testid="event-detail">
            {move || match (rows.rows.with(|r| r.as_ref().map(Vec::len)), rows.trouble.get()) {
                (Some(0), _) => view! { <p>{format!("There is no event {} that you may see.", count(position))}</p> }.into_any(),
                (Some(_), _) => body(&rows.first().unwrap_or_default(), history, position),
                (None, Some(trouble)) => trouble_view(&trouble, move || rows.reload()),
                (None, None) => view! { <Skeleton lines=8/> }.into_any(),
            }}
            <div class="actions">
                <a class="button" href=event_href(position - 1) data-noscroll="">"Previous position"</a>
                <a class="button" href=event_href(position + 1) data-noscroll="">"Next"</a>
                <a class="button button-quiet" href=format!("/reporting?as-of={position}") data-testid="report-as-of">"Reporting as of here"</a>
            </div>
        </div>
    }
    .into_any()
}

fn body(row: &Row, history: RwSignal<Option<Result<History, Trouble>>>, position: i64) -> AnyView {
    let text = |key: &str| row.text(key);
    let stream = text("stream");
    let path = stream
        .split_once('/')
        .filter(|(kind, _)| matches!(*kind, "job" | "run" | "project" | "workload"))
        .map(|(_, path)| format!("/projects/{path}"));
    let (hash, time) = (text("hash"), text("occurred_at"));
    view! {
        <dl class="definitions">
            <dt>"Stream"</dt>
            <dd class="key">{match path { Some(path) => view! { <a class="link" href=path>{stream}</a> }.into_any(), None => stream.into_any() }}</dd>
            <dt>"Actor"</dt><dd class="key">{format!("{}/{}", text("actor_kind"), text("actor_id"))}</dd>
            <dt>"Occurred"</dt><dd>{time}", claimed"</dd>
            <dt>"Recorded"</dt><dd>{text("recorded_at")}", server"</dd>
            <dt>"Hash"</dt><dd class="key" title=hash.clone()>{short_hash(&hash)}</dd>
        </dl>
        {move || match history.get() {
            None => view! { <Skeleton lines=4/> }.into_any(),
            Some(Err(trouble)) => trouble_view(&trouble, || ()),
            Some(Ok(history)) => match history.events.into_iter().find(|e| e.position == position) {
                None => view! { <p class="quiet">"Its payload is not shown here."</p> }.into_any(),
                Some(event) => {
                    let payload = serde_json::to_string_pretty(&event.payload).unwrap_or_default();
                    let id = event.event_id.clone();
                    view! {
                        <dl class="definitions">
                            <dt>"Event id"</dt><dd class="key">{event.event_id}</dd>
                            <dt>"Leaf"</dt><dd class="key" title=event.leaf.clone()>{short_hash(&event.leaf)}</dd>
                            <dt>"Schema"</dt><dd>{event.schema_version}</dd>
                        </dl>
                        <Related title="Cause" none="Nothing in the log: somebody asked for it." column="event_id" id=event.causation_id/>
                        <Related title="Effects" none="Nothing was caused by it." column="causation_id" id=Some(id)/>
                        <section>
                            <div class="command-head"><h3>"Payload"</h3><CopyButton text=Signal::stored(payload.clone())/></div>
                            <pre class="command json" data-testid="payload" tabindex="0">{payload}</pre>
                        </section>
                    }.into_any()
                }
            },
        }}
    }
    .into_any()
}

/// Events that an event is bound to: what caused it, or what it caused.
#[component]
fn Related(
    title: &'static str,
    /// What stands there where there is none.
    none: &'static str,
    /// The column that names the event.
    column: &'static str,
    /// The event's id; nothing where there is none.
    id: Option<String>,
) -> impl IntoView {
    let request = id.map(|id| {
        format!("/api/v_events?{column}=eq.{id}&order=position.asc&limit=100&select=position,type,stream")
    });
    let any = request.is_some();
    let rows = use_rows(move || request.clone());
    let lines = move || {
        rows.all()
            .iter()
            .map(|row| {
                let position = row.whole("position").unwrap_or(0);
                view! {
                    <li class="related">
                        <a class="key" href=event_href(position) data-noscroll="">{row.text("type")}</a>
                        <span class="key quiet clip-line" title=row.text("stream")>{row.text("stream")}</span>
                        <span class="key quiet">{count(position)}</span>
                    </li>
                }
            })
            .collect_view()
    };
    let nothing = move || !any || rows.rows.with(|r| r.as_ref().is_some_and(Vec::is_empty));
    view! {
        <section data-testid=format!("event-{}", title.to_lowercase())>
            <h3>{title}</h3>
            <Show when=nothing><p class="quiet">{none}</p></Show>
            <ul>{lines}</ul>
        </section>
    }
    .into_any()
}
