//! Cells of tables of results: numbers with their full value on hover and their proof one click away.

use leptos::prelude::*;

use super::cells::{self, Content, Mark};
pub use super::cells::{why_absent, words};
use crate::browser::address::Address;
use crate::browser::route::use_location;
use crate::format::ABSENT;
use crate::frame::drawer_href;
use crate::metrics::Column;
use crate::row::Row;
use crate::state::colours::Kind as Coloured;
use crate::state::query::Query;
use crate::state::result_key::path_of;

/// The link to the proof of a figure of a job, in this view's drawer.
pub fn proof_href(job: &str, metric: &str) -> Signal<String> {
    proof_link(job, metric, None)
}

/// The link to the proof of the mean of a figure over runs, the newest of which is this job's; `runs` says which count.
pub fn mean_href(job: &str, metric: &str, runs: &'static str) -> Signal<String> {
    proof_link(job, metric, Some(runs))
}

fn proof_link(job: &str, metric: &str, mean: Option<&'static str>) -> Signal<String> {
    let location = use_location();
    let (job, metric) = (job.to_owned(), metric.to_owned());
    Signal::derive(move || {
        let mut pairs = vec![("drawer", "proof"), ("job", path_of(&job)), ("metric", metric.as_str())];
        pairs.extend(mean.map(|runs| ("mean", runs)));
        location.pathname.with(|at| location.search.with(|search| drawer_href(at, search, &pairs)))
    })
}

/// Opens the proof of a figure of a job in this view's drawer: for what is no link, such as a point of a chart.
pub fn open_proof(address: Address, job: &str, metric: &str) {
    open_drawer(address, &[("drawer", "proof"), ("job", path_of(job)), ("metric", metric)]);
}

/// Opens this view's drawer on what these keys of the address name.
pub fn open_drawer(address: Address, pairs: &[(&str, &str)]) {
    address.change(|query| *query = Query::parse(&drawer_href("", &query.write(), pairs)));
}

/// Whether the drawer explains this figure now.
pub fn is_explained(job: &str, metric: &str) -> Signal<bool> {
    let location = use_location();
    let (job, metric) = (job.to_owned(), metric.to_owned());
    Signal::derive(move || {
        location.search.with(|search| {
            let query = Query::parse(search);
            query.get("drawer") == Some("proof")
                && query.get("metric") == Some(&metric)
                && query.get("job") == Some(path_of(&job))
        })
    })
}

/// A figure: three digits, all of them on hover, its proof on click; "–" with the reason where there is none.
pub fn figure(row: &Row, key: &'static str) -> AnyView {
    match cells::figure(row, key) {
        Ok(figure) => proved(&row.text("job"), figure),
        Err(why) => absent(why),
    }
}

fn absent(why: &'static str) -> AnyView {
    view! { <span class="quiet" title=why>{ABSENT}</span> }.into_any()
}

fn proved(job: &str, figure: cells::Figure) -> AnyView {
    let explained = is_explained(job, figure.metric);
    view! {
        <a
            href=proof_href(job, figure.metric)
            data-noscroll=""
            class:few=figure.few
            title=figure.title
            data-testid="figure"
            data-metric=figure.metric
            data-value=figure.full
            aria-current=move || explained.get().then_some("true")
        >
            {figure.digits}
        </a>
    }
    .into_any()
}

/// A cell of a column.
pub fn cell(row: &Row, column: &'static Column, figure_on_card: bool) -> AnyView {
    let cell = cells::cell(row, column, figure_on_card);
    let content = match cell.content {
        Content::Words(words) => words.into_any(),
        Content::Figure(figure) => proved(&row.text("job"), figure),
        Content::Absent(why) => absent(why),
        Content::Link { href, within, words, after, model } => {
            let swatch = model.map(|model| super::swatch(Coloured::Model, &model));
            let within = within.map(|within| view! { <span class="within">{within}</span>" / " });
            let words = match after {
                Some(after) => view! { <span class="cut">{words}</span>{after} }.into_any(),
                None => words.into_any(),
            };
            view! { <a class="key" href=href>{swatch}{within}{words}</a> }.into_any()
        }
        Content::Marks(marks) => marks.into_iter().enumerate().map(mark).collect_view().into_any(),
    };
    let title = (!cell.title.is_empty()).then_some(cell.title);
    if cell.head {
        view! { <th scope="row" class=cell.class title=title>{content}</th> }.into_any()
    } else {
        view! { <td class=cell.class title=title data-label=cell.label data-unit=cell.unit>{content}</td> }
            .into_any()
    }
}

fn mark((nth, mark): (usize, Mark)) -> AnyView {
    let testid = (nth == 0).then_some("status");
    view! { {(nth > 0).then_some(" ")}<span class="status" data-status=mark.status data-testid=testid title=mark.title>{mark.words}</span> }.into_any()
}
