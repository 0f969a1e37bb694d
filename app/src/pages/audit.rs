//! Audit: the log itself.

use events::first_page;
use leptos::prelude::*;

use serde_json::{Value, json};
use wasm_bindgen_futures::spawn_local;

use crate::browser::address::Address;
use crate::browser::api;
use crate::browser::page::Page;
use crate::browser::remote::use_rows;
use crate::browser::route::{NavigateOptions, use_location, use_navigate};
use crate::format::{clock, count, millis};
use crate::frame::drawer_href;
use crate::parts::states::{Empty, when_there};
use crate::parts::{AsOf, AsOfButton, AsOfSlider, PageHead, Progress};
use crate::row::Row;
use crate::state::filters::percent;
use crate::state::query::Query;

/// Events on one page.
const PAGE_SIZE: i64 = 50;

/// What the list is set to, all in the URL.
#[derive(Debug, Clone, PartialEq, Default)]
struct Filter {
    stream: String,
    kind: String,
    actor: String,
    /// Recorded from this minute on, UTC: `2026-11-29T20:41`.
    since: String,
    /// Recorded before this minute, UTC.
    until: String,
    /// Show events up to this position; nothing for the newest.
    before: Option<i64>,
}

/// A minute as a field for times writes it, and as the API reads it; nothing where it is none.
fn minute(text: &str) -> Option<String> {
    millis(&format!("{text}:00Z")).map(|_| format!("{text}:00Z"))
}

impl Filter {
    fn read(query: &Query) -> Self {
        let word = |key: &str| query.get(key).unwrap_or_default().to_owned();
        Self {
            stream: word("stream"),
            kind: word("type"),
            actor: word("actor"),
            since: Some(word("since")).filter(|at| minute(at).is_some()).unwrap_or_default(),
            until: Some(word("until")).filter(|at| minute(at).is_some()).unwrap_or_default(),
            before: query.get("before").and_then(|b| b.parse().ok()),
        }
    }

    fn write(&self, query: &mut Query) {
        let word = |text: &str| (!text.is_empty()).then(|| text.to_owned());
        query
            .set("stream", word(&self.stream).as_deref())
            .set("type", word(&self.kind).as_deref())
            .set("actor", word(&self.actor).as_deref())
            .set("since", word(&self.since).as_deref())
            .set("until", word(&self.until).as_deref());
        query.set("before", self.before.map(|b| b.to_string()).as_deref());
    }

    fn request(&self) -> String {
        let mut request = format!("/api/v_events?order=position.desc&limit={PAGE_SIZE}");
        if !self.stream.is_empty() {
            request.push_str(&format!("&stream=like.{}*", percent(&self.stream)));
        }
        if !self.kind.is_empty() {
            let operator = if self.kind.contains('*') { "like" } else { "eq" };
            request.push_str(&format!("&type={operator}.{}", percent(&self.kind).replace("%2A", "*")));
        }
        if !self.actor.is_empty() {
            request.push_str(&format!("&actor_kind=eq.{}", percent(&self.actor)));
        }
        for (at, operator) in [(&self.since, "gte"), (&self.until, "lt")] {
            if let Some(at) = minute(at) {
                request.push_str(&format!("&recorded_at={operator}.{}", percent(&at)));
            }
        }
        if let Some(before) = self.before {
            request.push_str(&format!("&position=lte.{before}"));
        }
        request
    }
}

/// The page.
#[component]
pub fn Audit() -> impl IntoView {
    let page = Page::expect();
    let location = use_location();
    let navigate = StoredValue::new_local(use_navigate());
    let filter = Memo::new(move |_| location.search.with(|s| Filter::read(&Query::parse(s))));
    let events = use_rows(move || Some(filter.with(Filter::request)));
    let address = Address::here();
    let as_of = AsOf::in_address(address);
    let fresh = RwSignal::new(0usize);
    let org = page.org_now();
    if !org.is_empty() {
        page.live.listen(vec![org.clone()], move |events| {
            fresh.try_update(|n| *n += events.len());
        });
    }
    Effect::new(move |_| {
        filter.track();
        fresh.set(0);
    });
    let change = move |change: &dyn Fn(&mut Filter)| {
        let mut filter = filter.get_untracked();
        change(&mut filter);
        let mut query = location.search.with_untracked(|s| Query::parse(s));
        filter.write(&mut query);
        let to = format!("/audit{}", query.write());
        navigate.with_value(|go| go(&to, NavigateOptions { scroll: false, ..NavigateOptions::default() }));
    };
    view! {
        <PageHead title=first_page::AUDIT.title meta=move || format!("{} events, append only", count(page.live.head.get())).into_any()>
            <AsOfButton as_of/>
        </PageHead>
        <AsOfSlider as_of/>
        {move || as_of.position.get().map(|at| view! {
            <p class="actions one-line">
                <a class="button" href=format!("/reporting?as-of={at}") data-testid="report-then">"Reporting as it stood then"</a>
                <a class="button" href=format!("/leaderboard?as-of={at}") data-testid="ranks-then">"Leaderboard as it stood then"</a>
            </p>
        })}
        <Verify/>
        <div class="filters" role="group" aria-label="Filters">
            <label class="filter"><b>"stream starts with"</b>
                <input class="filter-input key" placeholder="job/" data-testid="audit-stream" prop:value=move || filter.with(|f| f.stream.clone()) on:change=move |e| { let v = event_target_value(&e); change(&|f| { f.stream = v.clone(); f.before = None; }) }/>
            </label>
            <label class="filter"><b>"type"</b>
                <select class="filter-input" data-testid="audit-type" on:change=move |e| { let v = event_target_value(&e); change(&|f| { f.kind = v.clone(); f.before = None; }) }>
                    <option value="">"any"</option>
                    {events::catalog::EVENT_TYPES.iter().map(|t| view! { <option value=*t selected=move || filter.with(|f| f.kind == *t)>{*t}</option> }).collect_view()}
                </select>
            </label>
            <label class="filter"><b>"actor"</b>
                <select class="filter-input" on:change=move |e| { let v = event_target_value(&e); change(&|f| { f.actor = v.clone(); f.before = None; }) }>
                    {["", "user", "agent", "system", "anonymous"].map(|a| view! { <option value=a selected=move || filter.with(|f| f.actor == a)>{if a.is_empty() { "any" } else { a }}</option> }).collect_view()}
                </select>
            </label>
            {time_field("from", "audit-since", Signal::derive(move || filter.with(|f| f.since.clone())), move |v| change(&|f| { f.since = v.clone(); f.before = None; }))}
            {time_field("until", "audit-until", Signal::derive(move || filter.with(|f| f.until.clone())), move |v| change(&|f| { f.until = v.clone(); f.before = None; }))}
        </div>
        <Show when=move || { fresh.get() > 0 }>
            <p class="new-rows">
                <button type="button" class="button button-quiet" data-testid="new-events" on:click=move |_| { fresh.set(0); change(&|f| f.before = None); events.reload(); }>
                    {move || format!("{} new", count(fresh.get() as i64))}
                </button>
            </p>
        </Show>
        {when_there(events, 12, || view! { <Empty words="No event fits these filters, or you may not see it."/> }.into_any(), |rows| table(&rows))}
        <p class="table-foot">
            {move || events.rows.with(|r| {
                let rows = r.as_deref().unwrap_or_default();
                match (rows.first().and_then(|r| r.whole("position")), rows.last().and_then(|r| r.whole("position"))) {
                    (Some(first), Some(last)) => format!("positions {} to {}", count(first), count(last)),
                    _ => String::new(),
                }
            })}
            <Show when=move || filter.with(|f| f.before.is_some())>
                <button type="button" class="figure-toggle" on:click=move |_| change(&|f| f.before = None)>"Newest"</button>
            </Show>
            <button type="button" class="figure-toggle" data-testid="older-events" on:click=move |_| {
                let last = events.rows.with_untracked(|r| r.as_ref().and_then(|r| r.last()).and_then(|r| r.whole("position")));
                if let Some(last) = last { change(&|f| f.before = Some(last - 1)) }
            }>{format!("Older {PAGE_SIZE}")}</button>
        </p>
    }
    .into_any()
}

/// A field for a minute, UTC.
fn time_field(
    word: &'static str,
    testid: &'static str,
    value: Signal<String>,
    set: impl Fn(String) + 'static,
) -> AnyView {
    view! {
        <label class="filter">
            <b>{word}" UTC"</b>
            <input class="filter-input" type="datetime-local" data-testid=testid prop:value=move || value.get() on:change=move |e| set(event_target_value(&e))/>
        </label>
    }
    .into_any()
}

/// How a walk over the log stands.
#[derive(Debug, Clone, PartialEq)]
enum Walk {
    Idle,
    /// Up to where, of how many.
    Going(i64, i64),
    Fits(i64),
    /// Where it does not fit, and what is wrong there.
    Fault(i64, String),
    Refused(String),
}

/// Positions walked in one request, so that progress can be told.
const STEP: i64 = 20_000;

/// Walks the hash chain from the first position to the head.
#[component]
fn Verify() -> impl IntoView {
    let page = Page::expect();
    let walk = RwSignal::new(Walk::Idle);
    let start = move |_| {
        if matches!(walk.get_untracked(), Walk::Going(..)) {
            return;
        }
        let head = page.live.head.get_untracked().max(page.live.at_least());
        walk.set(Walk::Going(0, head));
        spawn_local(async move {
            let mut from = 1;
            while from <= head {
                let to = (from + STEP - 1).min(head);
                let answer = api::call::<Value>("verify_log", &json!({"p_from": from, "p_to": to})).await;
                let next = match answer {
                    Err(trouble) => Walk::Refused(trouble.error.message),
                    Ok(report) => match report.get("fault").filter(|f| !f.is_null()) {
                        None => Walk::Going(to, head),
                        Some(fault) => Walk::Fault(
                            fault.get("position").and_then(Value::as_i64).unwrap_or(from),
                            fault
                                .get("what")
                                .map(|w| w.as_str().map_or_else(|| w.to_string(), str::to_owned))
                                .unwrap_or_default(),
                        ),
                    },
                };
                let over = !matches!(next, Walk::Going(..));
                // The page may be gone.
                if walk.try_set(next).is_some() || over {
                    return;
                }
                from = to + 1;
            }
            walk.try_set(Walk::Fits(head));
        });
    };
    let words = move || {
        match walk.get() {
        Walk::Idle => view! { <span class="quiet">"SHA-256 chains every event to the one before: walk it to see that nothing was changed"</span> }.into_any(),
        Walk::Going(at, of) => view! { <span><span class="status" data-status="running">"verifying"</span>" "<span class="quiet">{format!("position {} of {} · every hash fits so far", count(at), count(of))}</span></span> }.into_any(),
        Walk::Fits(of) => view! { <span data-testid="verified"><span class="status" data-status="completed">"intact"</span>" "<span class="quiet">{format!("all {} events fit, 1 to {}", count(of), count(of))}</span></span> }.into_any(),
        Walk::Fault(at, what) => view! { <span><span class="status" data-status="failed">{format!("does not fit at position {}", count(at))}</span>" "<span class="quiet">{what}</span></span> }.into_any(),
        Walk::Refused(message) => view! { <span class="status" data-status="failed">{message}</span> }.into_any(),
    }
    };
    let share = Signal::derive(move || match walk.get() {
        Walk::Going(at, of) => Some(at as f64 / of.max(1) as f64),
        Walk::Fits(_) => Some(1.0),
        _ => None,
    });
    view! {
        <div class="verify">
            <button type="button" class="button" data-testid="verify" on:click=start>"Verify"</button>
            <div>
                <p class="verify-words">{words}</p>
                <Show when=move || share.get().is_some()><Progress share label="Verification"/></Show>
            </div>
        </div>
    }
    .into_any()
}

fn table(rows: &[Row]) -> AnyView {
    let location = use_location();
    let lines = rows.iter().map(|row| {
        let position = row.whole("position").unwrap_or(0);
        let text = position.to_string();
        let shown = text.clone();
        let href = move || location.pathname.with(|p| location.search.with(|s| drawer_href(p, s, &[("drawer", "event"), ("position", &text)])));
        let selected = move || location.search.with(|s| {
            let query = Query::parse(s);
            query.get("drawer") == Some("event") && query.get("position") == Some(&shown)
        });
        let recorded = row.text("recorded_at");
        let (time, fraction) = row.millis("recorded_at").map_or_else(|| (recorded.clone(), String::new()), |at| (clock(at), format!(".{:03}", at as i64 % 1000)));
        let hash = row.text("hash");
        let stream = row.text("stream");
        view! {
            <tr data-testid="event" aria-selected=move || selected().to_string()>
                <th scope="row" class="card-figure" data-label="Position"><a class="key" href=href data-noscroll="">{count(position)}</a></th>
                <td class="card-figure" data-label="Recorded" data-unit="UTC"><time class="key" title=recorded>{time}<span class="quiet">{fraction}</span></time></td>
                <td class="card-title"><span class="strong key-type">{row.text("type")}</span></td>
                <td class="clip"><span class="key" title=stream.clone()>{stream.clone()}</span></td>
                <td class="number">{count(row.whole("version").unwrap_or(0))}</td>
                <td class="card-figure" data-label="Actor"><span class="key">{format!("{}/{}", row.text("actor_kind"), row.text("actor_id"))}</span></td>
                <td><span class="key quiet" title=hash.clone()>{hash.get(..8).unwrap_or_default().to_owned()}</span></td>
            </tr>
        }
        .into_any()
    });
    view! {
        <table class="data-table" data-testid="events">
            <caption class="visually-hidden">"Events"</caption>
            <thead>
                <tr>
                    <th scope="col">"Position"</th>
                    <th scope="col">"Recorded "<span class="unit">"UTC"</span></th>
                    <th scope="col">"Type"</th>
                    <th scope="col">"Stream"</th>
                    <th scope="col" class="number">"Version"</th>
                    <th scope="col">"Actor"</th>
                    <th scope="col">"Hash"</th>
                </tr>
            </thead>
            <tbody>{lines.collect_view()}</tbody>
        </table>
    }
    .into_any()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_filters_survive_the_address() {
        let filter = Filter {
            stream: "job/acme/".into(),
            kind: "job.claimed".into(),
            actor: "agent".into(),
            since: "2026-11-29T20:41".into(),
            until: "2026-11-30T08:00".into(),
            before: Some(40),
        };
        let mut query = Query::default();
        filter.write(&mut query);
        assert_eq!(Filter::read(&Query::parse(&query.write())), filter);
        assert_eq!(
            filter.request(),
            "/api/v_events?order=position.desc&limit=50&stream=like.job/acme/*&type=eq.job.claimed&actor_kind=eq.agent&recorded_at=gte.2026-11-29T20:41:00Z&recorded_at=lt.2026-11-30T08:00:00Z&position=lte.40"
        );
    }

    #[test]
    fn a_time_that_is_none_filters_nothing() {
        let filter = Filter::read(&Query::parse("?since=yesterday&until=2026-11-30T08:00"));
        assert_eq!((filter.since.as_str(), filter.until.as_str()), ("", "2026-11-30T08:00"));
    }
}
