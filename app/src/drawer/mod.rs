//! The drawer at the right: the one place for details. Its address says what it shows; it never covers what it explains.

mod check;
mod doubts;
mod event;
mod evidence;
mod job_events;
mod mean;
mod proof;
mod request;
mod samples;

use leptos::prelude::*;

use crate::browser::address::Address;
use crate::browser::route::use_location;
use crate::frame::{DRAWER_KEYS, LazyDrawer, drawer_href};
use crate::parts::tables::open_drawer;
use crate::state::query::Query;

/// What the drawer shows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Shown {
    /// What made a figure of a job.
    Proof {
        /// The job's path: `org/project/workload/run/scenario`.
        job: String,
        /// The figure's column.
        metric: String,
        /// Of which runs the figure is the mean, where it is one's.
        mean: Option<Runs>,
    },
    /// The events of a job.
    Events {
        /// The job's path.
        job: String,
    },
    /// One event of the log.
    Event {
        /// Its position.
        position: i64,
    },
    /// What made a point of a chart of telemetry.
    Samples(Stretch),
    /// One request: a line of the request log.
    Request {
        /// The position of the event that names the log.
        position: i64,
        /// The line, from 1.
        line: u64,
    },
}

/// The runs that a mean is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Runs {
    /// Those that nobody doubts.
    Sound,
    /// The doubted ones too.
    All,
}

impl Runs {
    /// The word in an address.
    pub fn word(self) -> &'static str {
        match self {
            Self::Sound => "sound",
            Self::All => "all",
        }
    }

    fn of_word(word: &str) -> Option<Self> {
        [Self::Sound, Self::All].into_iter().find(|runs| runs.word() == word)
    }
}

/// A metric of a source over a stretch of a job's attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stretch {
    /// The job's path.
    pub job: String,
    /// The attempt.
    pub attempt: i64,
    /// `gpu0`, `cpu0`, `system`.
    pub source: String,
    /// The metric.
    pub metric: String,
    /// The first millisecond since 1970.
    pub from: i64,
    /// The last one.
    pub to: i64,
}

impl Stretch {
    /// Opens the drawer on it.
    pub fn open(&self, address: Address) {
        let [attempt, from, to] = [self.attempt, self.from, self.to].map(|number| number.to_string());
        let pairs = [
            ("drawer", "samples"),
            ("job", self.job.as_str()),
            ("attempt", &attempt),
            ("source", &self.source),
            ("metric", &self.metric),
            ("from-ms", &from),
            ("to-ms", &to),
        ];
        open_drawer(address, &pairs);
    }

    fn read(query: &Query) -> Option<Self> {
        let word = |key: &str| query.get(key).filter(|word| !word.is_empty()).map(str::to_owned);
        let number = |key: &str| query.get(key)?.parse().ok();
        Some(Self {
            job: word("job")?,
            attempt: number("attempt")?,
            source: word("source")?,
            metric: word("metric")?,
            from: number("from-ms")?,
            to: number("to-ms")?,
        })
    }
}

impl Shown {
    /// Reads the address.
    pub fn read(query: &Query) -> Option<Self> {
        let job = || query.get("job").filter(|j| !j.is_empty()).map(str::to_owned);
        match query.get("drawer")? {
            "proof" => Some(Self::Proof {
                job: job()?,
                metric: query.get("metric").unwrap_or("output_tokens_per_second").to_owned(),
                mean: query.get("mean").and_then(Runs::of_word),
            }),
            "events" => Some(Self::Events { job: job()? }),
            "event" => Some(Self::Event { position: query.get("position")?.parse().ok()? }),
            "samples" => Some(Self::Samples(Stretch::read(query)?)),
            "request" => Some(Self::Request {
                position: query.get("position")?.parse().ok()?,
                line: query.get("line")?.parse().ok()?,
            }),
            _ => None,
        }
    }
}

/// The keys of the address that say what the drawer shows; nothing while it is closed. They are read where its content is:
/// that part of the program is loaded when it opens.
fn asked(query: &Query) -> Option<Query> {
    query.get("drawer")?;
    let mut asked = Query::default();
    for key in DRAWER_KEYS {
        asked.set(key, query.get(key));
    }
    Some(asked)
}

/// The drawer.
#[component]
pub fn Drawer() -> impl IntoView {
    let location = use_location();
    let shown = Memo::new(move |_| location.search.with(|s| asked(&Query::parse(s))));
    let page = crate::browser::page::Page::expect();
    Effect::new(move |_| page.drawer_open.set(shown.with(Option::is_some)));
    move || {
        shown.get().map(|shown| {
            view! {
                <aside class="drawer" aria-label="Details" data-testid="drawer">
                    <LazyDrawer shown/>
                </aside>
            }
        })
    }
}

/// The drawer's content.
pub fn show(asked: &Query) -> AnyView {
    let Some(shown) = Shown::read(asked) else {
        return view! {
            <Head title="Nothing to show" note="this address names nothing that can be shown here"/>
        }
        .into_any();
    };
    match shown {
        Shown::Proof { job, metric, mean } => view! { <proof::Proof job metric mean/> }.into_any(),
        Shown::Events { job } => view! { <job_events::JobEvents job/> }.into_any(),
        Shown::Event { position } => view! { <event::OneEvent position/> }.into_any(),
        Shown::Samples(stretch) => view! { <samples::Sampled stretch/> }.into_any(),
        Shown::Request { position, line } => view! { <request::OneRequest position line/> }.into_any(),
    }
}

/// A tab of the drawer: its name, its address keys, whether it is this one.
type Tab = (&'static str, Vec<(&'static str, String)>, bool);

/// The drawer's head: what it is about, and the way out.
#[component]
fn Head(
    /// What it is about.
    #[prop(into)]
    title: String,
    /// More about it.
    #[prop(into)]
    note: Signal<String>,
    /// Tabs: name, address keys, whether it is this one.
    #[prop(default = Vec::new())]
    tabs: Vec<Tab>,
) -> impl IntoView {
    let location = use_location();
    let to = move |pairs: &[(&str, &str)]| {
        location.pathname.with(|p| location.search.with(|s| drawer_href(p, s, pairs)))
    };
    let tab_views = tabs
        .into_iter()
        .map(|(name, pairs, here)| {
            let href = move || {
                let pairs: Vec<(&str, &str)> = pairs.iter().map(|(k, v)| (*k, v.as_str())).collect();
                to(&pairs)
            };
            view! { <a href=href data-noscroll="" aria-current=here.then_some("true")>{name}</a> }
        })
        .collect::<Vec<_>>();
    view! {
        <div class="drawer-head">
            <div class="drawer-title">
                <div>
                    <h2 data-testid="drawer-title">{title}</h2>
                    <p class="meta">{note}</p>
                </div>
                <a class="button button-quiet" href=move || to(&[]) data-noscroll="" data-testid="close-drawer">"Close"</a>
            </div>
            {(!tab_views.is_empty()).then(|| view! { <nav class="tabs" aria-label="Details">{tab_views}</nav> })}
        </div>
    }
    .into_any()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_drawer_is_open_while_the_address_says_so_and_is_drawn_anew_for_another_thing_alone() {
        let of = |search: &str| asked(&Query::parse(search));
        assert_eq!(of("?status=failed&metric=x"), None);
        assert_eq!(of("?drawer=event&position=4&sort=a"), of("?drawer=event&position=4&sort=b"));
        assert_ne!(of("?drawer=event&position=4"), of("?drawer=event&position=5"));
    }

    #[test]
    fn the_address_says_what_is_shown() {
        let read = |search: &str| Shown::read(&Query::parse(search));
        assert_eq!(
            read("?drawer=proof&job=acme/p/w/3/c8&metric=ttft_p50_ms"),
            Some(Shown::Proof { job: "acme/p/w/3/c8".into(), metric: "ttft_p50_ms".into(), mean: None })
        );
        let mean = read("?drawer=proof&job=acme/p/w/3/c8&metric=ttft_p50_ms&mean=sound");
        assert!(matches!(mean, Some(Shown::Proof { mean: Some(Runs::Sound), .. })), "{mean:?}");
        assert_eq!(read("?drawer=event&position=184066"), Some(Shown::Event { position: 184_066 }));
        assert_eq!(read("?drawer=event&position=x"), None);
        let stretch = Stretch {
            job: "acme/p/w/3/c8".into(),
            attempt: 1,
            source: "gpu3".into(),
            metric: "power_w".into(),
            from: 1_795_984_867_409,
            to: 1_795_984_867_409,
        };
        let search = "?drawer=samples&job=acme/p/w/3/c8&attempt=1&source=gpu3&metric=power_w&from-ms=1795984867409&to-ms=1795984867409";
        assert_eq!(read(search), Some(Shown::Samples(stretch)));
        assert_eq!(read("?drawer=samples&job=acme/p/w/3/c8&attempt=1&source=gpu3"), None);
        assert_eq!(
            read("?drawer=request&position=40&line=18"),
            Some(Shown::Request { position: 40, line: 18 })
        );
        assert_eq!(read("?status=failed"), None);
    }
}
