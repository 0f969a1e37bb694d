//! An entry of the ranking: a line of the table, and the first of all at large.

use leptos::prelude::*;

use crate::browser::address::Address;
use crate::browser::page::Page;
use crate::drawer::Runs;
use crate::format::{ABSENT, counted, full, maybe_count, significant};
use crate::metrics::{Column, Kind as Shown, column};
use crate::parts::{ColumnChoice, swatch, tables};
use crate::row::Row;
use crate::state::board::CATEGORIES;
use crate::state::colours::Kind;
use crate::state::ranks::Scale;

/// The first of the ranking, at large; `ahead` of the next by this share.
pub(super) fn hero(first: &Row, ahead: Option<f64>, by: &'static Column) -> AnyView {
    let facts = [
        ("Framework", framework(first)),
        ("Precision", precision(first)),
        ("Server", server(first)),
        ("Traffic", first.text("scenario_code")),
        ("Runs", counted(first.whole("runs").unwrap_or(1), "run")),
    ];
    let mut words = vec![by.unit().to_owned()];
    if let Some(half) = first.number("interval_half") {
        words[0].push_str(&format!(" ± {}", significant(half)));
    }
    words.extend(ahead.map(|share| format!("{} % ahead of the second", significant(share * 100.0))));
    if first.is("shared") {
        words.push("shared: another's interval overlaps".to_owned());
    }
    view! {
        <section class="hero" aria-labelledby="leader" data-testid="hero">
            <p class="hero-line">
                <b id="leader">{swatch(Kind::Model, &first.text("model_code"))}{first.text("model_code")}</b>
                {mean(first, by)}
                <span class="meta">{words.join(" · ")}</span>
            </p>
            <dl class="run-facts">{facts.map(|(n, v)| view! { <div><dt>{n}</dt><dd class="key">{v}</dd></div> }).collect_view()}</dl>
        </section>
    }
    .into_any()
}

fn precision(row: &Row) -> String {
    row.maybe_text("quantization").unwrap_or_else(|| "as published".to_owned())
}

fn framework(row: &Row) -> String {
    match row.maybe_text("framework_code") {
        Some(code) => format!("{code} {}", row.text("framework_version")),
        None => ABSENT.to_owned(),
    }
}

/// Where it ran; what was brought from elsewhere has no server here.
fn server(row: &Row) -> String {
    match row.maybe_text("hostname") {
        Some(host) => format!("{}/{host}", row.text("config_code")),
        None => "elsewhere".to_owned(),
    }
}

/// The mean that is ranked by, with the proof of the runs that are in it.
fn mean(row: &Row, by: &'static Column) -> AnyView {
    let Some(value) = row.number("value") else {
        return view! { <span class="quiet">{ABSENT}</span> }.into_any();
    };
    let runs = row.whole("runs").unwrap_or(1);
    let job = row.text("job");
    let title = if runs > 1 {
        format!("{}: the mean of {runs} runs; show what made it", full(value))
    } else {
        format!("{}: show what made this number", full(value))
    };
    let explained = tables::is_explained(&job, by.key);
    // What is ranked by is the mean: the drawer writes it out.
    let of = if row.is("suspicious") { Runs::All } else { Runs::Sound };
    view! {
        <a
            href=tables::mean_href(&job, by.key, of.word())
            data-noscroll=""
            title=title
            data-testid="figure"
            data-metric=by.key
            data-value=full(value)
            aria-current=move || explained.get().then_some("true")
        >
            {significant(value)}
        </a>
    }
    .into_any()
}

/// What the table can show of an entry before the figure that is ranked by.
const SETUP: &[Column] = &[
    Column { key: "framework_code", label: "Framework", kind: Shown::Key },
    Column { key: "quantization", label: "Precision", kind: Shown::Text },
    Column { key: "gpu_name", label: "GPUs", kind: Shown::Text },
    Column { key: "hostname", label: "Server", kind: Shown::Key },
    Column { key: "scenario_code", label: "Traffic", kind: Shown::Key },
    Column { key: "concurrency", label: "Conc.", kind: Shown::Count },
];

/// What it can show of that figure; the figures of the other categories stand after it.
const SPREAD: &[Column] = &[
    Column { key: "interval_half", label: "95 %", kind: Shown::Count },
    Column { key: "interval", label: "Interval", kind: Shown::Text },
    Column { key: "runs", label: "Runs", kind: Shown::Count },
];

/// All columns that can be chosen, in order.
fn all() -> Vec<&'static Column> {
    let figures = CATEGORIES.iter().filter_map(|c| column(c.metric));
    SETUP.iter().chain(SPREAD).chain(figures).collect()
}

/// Those that are shown until others are chosen.
const AT_FIRST: &[&str] = &[
    "framework_code",
    "quantization",
    "gpu_name",
    "scenario_code",
    "concurrency",
    "interval_half",
    "interval",
    "runs",
    CATEGORIES[0].metric,
    CATEGORIES[1].metric,
    CATEGORIES[2].metric,
    CATEGORIES[3].metric,
];

/// The choice of the columns.
pub(super) fn choice(address: Address) -> ColumnChoice {
    ColumnChoice::in_address(address, all, AT_FIRST)
}

/// The columns that are shown before the figure that is ranked by, and after it.
pub(super) fn around(shown: &[&'static Column], by: &'static Column) -> [Vec<&'static Column>; 2] {
    let before = |column: &&Column| SETUP.iter().any(|of| of.key == column.key);
    let (before, after): (Vec<_>, Vec<_>) =
        shown.iter().copied().filter(|column| column.key != by.key).partition(before);
    [before, after]
}

/// The classes of a column's head and of its cells: what is `optional` a narrow window leaves out.
fn classes(column: &Column) -> [&'static str; 2] {
    match column.key {
        "quantization" => ["optional"; 2],
        "concurrency" | "runs" => ["number optional"; 2],
        "interval" => ["optional", "interval-cell optional"],
        "interval_half" => ["number", "number quiet"],
        _ if column.kind == Shown::Metric => ["number"; 2],
        _ if column.kind == Shown::Key => ["", "key"],
        _ => [""; 2],
    }
}

/// The head of a column.
pub(super) fn head(shown: &'static Column, by: &'static Column, scale: Memo<Option<Scale>>) -> AnyView {
    let (title, unit) = match shown.key {
        "interval_half" => ("half the 95 % interval over repeated runs".to_owned(), by.unit()),
        _ => (shown.definition(), if shown.kind == Shown::Metric { shown.unit() } else { "" }),
    };
    let [class, _] = classes(shown);
    let scale = (shown.key == "interval").then_some(move || scale.get().map(Scale::words));
    view! { <th scope="col" class=class title=title>{shown.head()}" "<span class="unit">{unit}{scale}</span></th> }
        .into_any()
}

/// The interval, drawn on the scale of the page.
fn interval(row: &Row, scale: Memo<Option<Scale>>) -> AnyView {
    let (value, half) = (row.number("value"), row.number("interval_half").unwrap_or(0.0));
    let (colours, model) = (Page::expect().colours, row.text("model_code"));
    (move || {
        let place = scale.get()?.place(value?, half);
        let class = format!("interval {}", colours.of(Kind::Model, &model).class());
        Some(view! {
            <svg class=class viewBox="0 0 100 16" preserveAspectRatio="none" aria-hidden="true">
                <line x1="0" x2="100" y1="8" y2="8" vector-effect="non-scaling-stroke"></line>
                <line class="range" x1=place.low.to_string() x2=place.high.to_string() y1="8" y2="8" vector-effect="non-scaling-stroke"></line>
                <line class="range" x1=place.mean.to_string() x2=place.mean.to_string() y1="3" y2="13" vector-effect="non-scaling-stroke"></line>
            </svg>
        })
    })
    .into_any()
}

/// A cell of an entry.
fn cell(row: &Row, shown: &'static Column, scale: Memo<Option<Scale>>, on_card: bool) -> AnyView {
    let (content, title) = match shown.key {
        _ if shown.kind == Shown::Metric => return tables::cell(row, shown, on_card),
        "framework_code" => (framework(row).into_any(), String::new()),
        "quantization" => (precision(row).into_any(), String::new()),
        "gpu_name" => (tables::words(row, "gpu_name").into_any(), server(row)),
        "hostname" => (server(row).into_any(), String::new()),
        "concurrency" | "runs" => (maybe_count(row.whole(shown.key)).into_any(), String::new()),
        "interval" => (interval(row, scale), String::new()),
        "interval_half" => match row.number("interval_half") {
            Some(half) => {
                (format!("±{}", significant(half)).into_any(), format!("half the interval: {}", full(half)))
            }
            None => (ABSENT.into_any(), "ran once: repeat the run for an interval".to_owned()),
        },
        key => (row.maybe_text(key).unwrap_or_else(|| ABSENT.into()).into_any(), String::new()),
    };
    let [_, class] = classes(shown);
    view! { <td class=class title=(!title.is_empty()).then_some(title)>{content}</td> }.into_any()
}

/// An entry.
pub(super) fn line(
    row: &Row,
    by: &'static Column,
    scale: Memo<Option<Scale>>,
    columns: Memo<Vec<&'static Column>>,
) -> AnyView {
    let shared = row.is("shared");
    let rank = format!("{}{}", if shared { "=" } else { "" }, maybe_count(row.whole("rank")));
    let why = if shared { "its interval overlaps with another's: nobody knows who is better" } else { "" };
    let cells = {
        let row = row.clone();
        move || {
            let [before, after] = columns.with(|shown| around(shown, by));
            // On a phone one figure beside the one that is ranked by.
            let mut figures = 0;
            let mut draw = |shown: &'static Column| {
                figures += usize::from(shown.kind == Shown::Metric);
                cell(&row, shown, scale, figures == 1)
            };
            let before = before.into_iter().map(&mut draw).collect_view();
            let after = after.into_iter().map(&mut draw).collect_view();
            let unit = row.number("value").map(|_| by.unit());
            view! {
                {before}
                <td class="number card-figure strong" data-label=by.head() data-unit=unit>{mean(&row, by)}</td>
                {after}
            }
        }
    };
    let path = row.named_job_path();
    let marks = marks(row);
    view! {
        <tr data-testid="entry" data-rank=row.text("rank") data-href=path.clone() tabindex="-1">
            <td class="number card-figure" data-label="Rank" title=why>{rank}</td>
            <th scope="row" class="card-title"><a class="key" href=path.clone()>{swatch(Kind::Model, &row.text("model_code"))}{row.maybe_text("project_code").map(|project| view! { <span class="within" title=project.clone()>{project.clone()}</span>" / " })}{row.text("workload_code")}</a>{marks}</th>
            {cells}
        </tr>
    }
    .into_any()
}

/// What is to be known of an entry beside its place.
fn marks(row: &Row) -> AnyView {
    let mark = |status: &'static str, words: String| view! { " "<span class="status" data-status=status>{words}</span> };
    let doubted = row.whole("doubted_runs").filter(|n| *n > 0).map(|n| {
        let words = if row.is("suspicious") {
            format!("{} counted", counted(n, "doubted run"))
        } else {
            format!("{} left out", counted(n, "doubted run"))
        };
        mark("flagged", words)
    });
    view! {
        {row.is("simulated").then(|| mark("simulated", "simulated".to_owned()))}
        {doubted}
    }
    .into_any()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_figure_that_is_ranked_by_stands_between_setup_and_spread() {
        let by = column(CATEGORIES[1].metric).expect("a column");
        let keys = |columns: &[&Column]| columns.iter().map(|c| c.key).collect::<Vec<_>>();
        let [before, after] = around(&all(), by);
        assert_eq!(keys(&before), SETUP.iter().map(|c| c.key).collect::<Vec<_>>());
        let others = [CATEGORIES[0].metric, CATEGORIES[2].metric, CATEGORIES[3].metric];
        assert_eq!(keys(&after), [&["interval_half", "interval", "runs"], &others[..]].concat());
        assert!(AT_FIRST.iter().all(|key| all().iter().any(|column| column.key == *key)));
    }
}
