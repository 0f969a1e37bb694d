//! Leaderboard: the best scenario of each workload and server, by one figure. Simulated and flagged results are left out.

use events::metrics::Direction;
use leptos::prelude::*;

use crate::browser::page::Page;
use crate::browser::remote::{keep_live, use_rows};
use crate::browser::route::use_location;
use crate::format::{ABSENT, maybe_count, significant};
use crate::metrics::{Column, column};
use crate::parts::states::{Empty, when_there};
use crate::parts::{PageHead, swatch, tables};
use crate::state::colours::Kind;
use crate::state::query::Query;
use crate::state::ranking::{Place, ranking};

/// Word in the URL, tab, figure.
const TABS: [(&str, &str, &str); 4] = [
    ("", "Throughput", "output_tokens_per_second"),
    ("latency", "Latency", "ttft_p50_ms"),
    ("cost", "Cost efficiency", "cost_per_million_output_tokens_usd"),
    ("energy", "Sustainability", "output_tokens_per_joule"),
];

/// The page.
#[component]
pub fn Leaderboard() -> impl IntoView {
    let page = Page::expect();
    let location = use_location();
    let query = Memo::new(move |_| location.search.with(|s| Query::parse(s)));
    let tab = Memo::new(move |_| {
        let wanted = query.with(|q| q.get("tab").unwrap_or_default().to_owned());
        TABS.iter().find(|(word, ..)| *word == wanted).copied().unwrap_or(TABS[0])
    });
    let simulated = Memo::new(move |_| query.with(|q| q.get("simulated") == Some("true")));
    let results = use_rows(move || {
        let (_, _, key) = tab.get();
        let better = column(key).map_or("desc", |c| if c.head().ends_with('↓') { "asc" } else { "desc" });
        let real = if simulated.get() { "" } else { "&simulated=is.false" };
        Some(format!(
            "/api/v_benchmark_results?{key}=not.is.null{real}&suspicious=is.false&order={key}.{better}&limit=500"
        ))
    });
    let org = page.org_now();
    if !org.is_empty() {
        keep_live(
            results,
            vec![format!("{org}:job")],
            |_, _| false,
            |e| e.event_type == "job.completed" || e.event_type.starts_with("quality."),
        );
    }
    let tabs = TABS.map(|(word, name, _)| {
        let href = move || {
            let mut q = query.get();
            q.set("tab", (!word.is_empty()).then_some(word));
            format!("/leaderboard{}", q.write())
        };
        view! { <a href=href data-noscroll="" aria-current=move || (tab.get().0 == word).then_some("page")>{name}</a> }
    });
    let switch = move || {
        let mut q = query.get();
        q.set("simulated", (!simulated.get()).then_some("true"));
        format!("/leaderboard{}", q.write())
    };
    view! {
        <PageHead title="Leaderboard" meta=move || if simulated.get() { "flagged results left out, simulated shown" } else { "simulated and flagged results left out" }.into_any()>
            <a class="button" href=switch data-noscroll="">{move || if simulated.get() { "Real only" } else { "Show simulated" }}</a>
        </PageHead>
        <nav class="tabs" aria-label="Ranking">{tabs.collect_view()}</nav>
        {when_there(
            results,
            6,
            || view! { <Empty words="No result qualifies yet: complete a run on real hardware, or show simulated results."/> }.into_any(),
            move |rows| match column(tab.get_untracked().2) {
                Some(c) => board(&ranking(&rows, c.key, c.direction() == Direction::Lower), c),
                None => ().into_any(),
            },
        )}
    }
    .into_any()
}

fn board(places: &[Place], by: &'static Column) -> AnyView {
    let others: Vec<&Column> = [
        "output_tokens_per_second",
        "ttft_p99_ms",
        "interactivity_tps",
        "output_tokens_per_joule",
        "cost_per_million_output_tokens_usd",
    ]
    .iter()
    .filter(|k| **k != by.key)
    .filter_map(|k| column(k))
    .collect();
    let head = |c: &Column| view! { <th scope="col" class="number" title=c.definition()>{c.head()}" "<span class="unit">{c.unit()}</span></th> };
    let heads = others.iter().map(|c| head(c)).collect_view();
    let hero = places.first().map(|Place { row: first, .. }| {
        let facts = [
            ("Framework", format!("{} {}", first.text("framework_code"), first.text("framework_version"))),
            ("Precision", first.maybe_text("quantization").unwrap_or_else(|| "as published".into())),
            ("Server", format!("{}/{}", first.text("config_code"), first.text("hostname"))),
            ("Traffic", first.text("scenario_code")),
        ];
        view! {
            <section class="hero" aria-labelledby="leader">
                <p class="hero-line">
                    <b id="leader">{swatch(Kind::Model, &first.text("model_code"))}{first.text("model_code")}</b>
                    {tables::figure(first, by.key)}
                    <span class="meta">{by.unit()}</span>
                </p>
                <dl class="run-facts">{facts.map(|(n, v)| view! { <div><dt>{n}</dt><dd class="key">{v}</dd></div> }).collect_view()}</dl>
            </section>
        }
    });
    let lines = places.iter().map(|place| {
        let row = &place.row;
        let rank = format!("{}{}", if place.shared { "=" } else { "" }, place.rank);
        let why = if place.shared { "its interval overlaps with another's: nobody knows who is better" } else { "" };
        let (interval, runs) = match place.interval {
            Some(i) => (format!("±{}", significant(i.half)), format!("mean {} of {} runs", significant(i.mean), i.runs)),
            None => (ABSENT.to_owned(), "ran once: repeat the run for an interval".to_owned()),
        };
        let cells = others.iter().map(|c| tables::cell(row, c, c.key == "ttft_p99_ms" || c.key == "output_tokens_per_second")).collect_view();
        view! {
            <tr data-href=row.job_path() tabindex="-1">
                <td class="number card-figure" data-label="Rank" title=why>{rank}</td>
                <th scope="row" class="card-title"><a class="key" href=row.job_path()>{swatch(Kind::Model, &row.text("model_code"))}{row.text("workload_code")}</a></th>
                <td><span class="key">{format!("{} {}", row.text("framework_code"), row.text("framework_version"))}</span></td>
                <td class="optional">{row.maybe_text("quantization").unwrap_or_else(|| ABSENT.into())}</td>
                <td class="key">{row.text("scenario_code")}</td>
                <td class="number optional">{maybe_count(row.whole("concurrency"))}</td>
                <td class="number card-figure strong" data-label=by.head() data-unit=by.unit()>{tables::figure(row, by.key)}</td>
                <td class="number quiet" title=runs>{interval}</td>
                {cells}
            </tr>
        }
        .into_any()
    });
    view! {
        {hero}
        <div class="table-scroll below">
            <table class="data-table" data-testid="leaderboard">
                <caption class="visually-hidden">"Leaderboard"</caption>
                <thead>
                    <tr>
                        <th scope="col" class="number">"Rank"</th>
                        <th scope="col">"Workload"</th>
                        <th scope="col">"Framework"</th>
                        <th scope="col" class="optional">"Precision"</th>
                        <th scope="col">"Traffic"</th>
                        <th scope="col" class="number optional">"Conc."</th>
                        {head(by)}
                        <th scope="col" class="number" title="the 95 % interval over repeated runs">"95 % "<span class="unit">{by.unit()}</span></th>
                        {heads}
                    </tr>
                </thead>
                <tbody>{lines.collect_view()}</tbody>
            </table>
        </div>
        <p class="table-foot">"the best scenario of each workload and server, ranked by the mean of its runs · = shared: the intervals overlap"</p>
    }
    .into_any()
}
