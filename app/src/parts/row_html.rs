//! The rows of long tables as text that the browser makes elements of at once. Nothing in them listens or changes by itself:
//! a table of thousands of numbers has one listener, and a row is written again when what it shows is another.

use std::fmt::Write as _;

use super::cells::{Cell, Content, Figure, Mark, cell};
use crate::format::{ABSENT, signed_percent};
use crate::metrics::{Column, Kind};
use crate::row::Row;
use crate::state::compare::is_better;
use crate::state::query::encode;
use crate::state::result_key::path_of;

/// What all rows of a table are written by. Another one is another text for every row.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Look {
    /// The columns, in order.
    pub columns: Vec<&'static Column>,
    /// What rows are compared with, while one is pinned.
    pub against: Option<Against>,
}

/// The pinned row, and what the others are compared with it by.
#[derive(Debug, Clone, PartialEq)]
pub struct Against {
    /// The column compared; the differences stand beside it.
    pub by: &'static Column,
    /// The path of the pinned row's job.
    pub path: String,
    /// Its value; nothing while it is not known.
    pub value: Option<f64>,
}

impl Look {
    /// How many cells a row has: the box to pick it by and the difference to the pinned one among them.
    pub fn width(&self) -> usize {
        self.columns.len() + 1 + usize::from(self.against.is_some())
    }

    /// The cells of a row. `here` is the address without what belongs to the drawer, `swatch` the class of its model's colour.
    pub fn cells(&self, row: &Row, here: &str, swatch: &str) -> String {
        let job = row.text("job");
        let path = path_of(&job);
        let mut html = String::with_capacity(3_000);
        html.push_str("<td><input type=\"checkbox\" data-testid=\"pick\" aria-label=\"");
        let label = format!(
            "Compare {} of {} run {}",
            row.text("scenario_code"),
            row.text("workload_code"),
            row.text("run_number")
        );
        escape(&mut html, &label);
        html.push_str("\"></td>");
        // On a phone two measured columns stay.
        let mut on_card = 0;
        for column in &self.columns {
            let figure = column.kind == Kind::Metric && column.key != "output_tokens_per_second_per_gpu";
            on_card += usize::from(figure);
            let cell = cell(row, column, figure && on_card <= 2);
            write_cell(&mut html, &cell, &Proof { here, path }, swatch);
            if let Some(against) = self.against.as_ref().filter(|a| a.by == *column) {
                against.write(&mut html, row, path);
            }
        }
        html
    }
}

impl Against {
    fn write(&self, html: &mut String, row: &Row, path: &str) {
        if path == self.path {
            html.push_str("<td class=\"number pin\">pinned</td>");
            return;
        }
        let delta = row
            .number(self.by.key)
            .zip(self.value.filter(|v| *v != 0.0))
            .map(|(value, pinned)| value / pinned - 1.0);
        html.push_str("<td class=\"number\"");
        if let Some(better) = delta.and_then(|d| is_better(self.by.key, d)) {
            let title = if better { "better than the pinned one" } else { "worse than the pinned one" };
            attribute(html, "title", title);
        }
        html.push('>');
        escape(html, &delta.map(signed_percent).unwrap_or_default());
        html.push_str("</td>");
    }
}

/// Where the proofs of a row's figures are.
struct Proof<'a> {
    here: &'a str,
    path: &'a str,
}

/// The address of a figure's proof beside what `here` shows.
pub fn proof_of(here: &str, path: &str, metric: &str) -> String {
    let and = if here.contains('?') { '&' } else { '?' };
    format!("{here}{and}drawer=proof&job={}&metric={}", encode(path), encode(metric))
}

fn write_cell(html: &mut String, cell: &Cell, proof: &Proof, swatch: &str) {
    let tag = if cell.head { "th" } else { "td" };
    let _ = write!(html, "<{tag}");
    if cell.head {
        attribute(html, "scope", "row");
    }
    let optional = |html: &mut String, name: &str, value: &str| {
        if !value.is_empty() {
            attribute(html, name, value);
        }
    };
    optional(html, "class", cell.class);
    optional(html, "title", &cell.title);
    optional(html, "data-label", cell.label.as_deref().unwrap_or_default());
    optional(html, "data-unit", cell.unit.unwrap_or_default());
    html.push('>');
    match &cell.content {
        Content::Words(words) => escape(html, words),
        Content::Figure(figure) => write_figure(html, figure, proof),
        Content::Absent(why) => {
            html.push_str("<span class=\"quiet\"");
            attribute(html, "title", why);
            let _ = write!(html, ">{ABSENT}</span>");
        }
        Content::Link { href, within, words, after, model } => {
            html.push_str("<a class=\"key\"");
            attribute(html, "href", href);
            html.push('>');
            if model.is_some() {
                let _ = write!(html, "<span class=\"swatch {swatch}\"></span>");
            }
            if let Some(within) = within {
                html.push_str("<span class=\"within\">");
                escape(html, within);
                html.push_str("</span> / ");
            }
            match after {
                Some(after) => {
                    html.push_str("<span class=\"cut\">");
                    escape(html, words);
                    html.push_str("</span>");
                    escape(html, after);
                }
                None => escape(html, words),
            }
            html.push_str("</a>");
        }
        Content::Marks(marks) => marks.iter().enumerate().for_each(|(nth, mark)| write_mark(html, nth, mark)),
    }
    let _ = write!(html, "</{tag}>");
}

fn write_figure(html: &mut String, figure: &Figure, proof: &Proof) {
    html.push_str("<a data-noscroll=\"\" data-testid=\"figure\"");
    attribute(html, "href", &proof_of(proof.here, proof.path, figure.metric));
    if figure.few {
        attribute(html, "class", "few");
    }
    attribute(html, "title", &figure.title);
    attribute(html, "data-metric", figure.metric);
    attribute(html, "data-value", &figure.full);
    html.push('>');
    escape(html, &figure.digits);
    html.push_str("</a>");
}

fn write_mark(html: &mut String, nth: usize, mark: &Mark) {
    html.push_str(if nth > 0 {
        " <span class=\"status\""
    } else {
        "<span class=\"status\" data-testid=\"status\""
    });
    attribute(html, "data-status", mark.status);
    attribute(html, "title", &mark.title);
    html.push('>');
    escape(html, &mark.words);
    html.push_str("</span>");
}

fn attribute(html: &mut String, name: &str, value: &str) {
    let _ = write!(html, " {name}=\"");
    escape(html, value);
    html.push('"');
}

/// Writes a text so that a browser reads it as that text, between tags and in quoted attributes.
fn escape(html: &mut String, text: &str) {
    // Nearly always there is nothing to escape.
    if !text.bytes().any(|byte| matches!(byte, b'&' | b'<' | b'>' | b'"' | b'\'')) {
        html.push_str(text);
        return;
    }
    for character in text.chars() {
        match character {
            '&' => html.push_str("&amp;"),
            '<' => html.push_str("&lt;"),
            '>' => html.push_str("&gt;"),
            '"' => html.push_str("&quot;"),
            '\'' => html.push_str("&#39;"),
            other => html.push(other),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::drawer_href;
    use crate::metrics::{RESULT_COLUMNS, column};
    use proptest::prelude::*;
    use serde_json::json;

    fn look() -> Look {
        Look { columns: RESULT_COLUMNS.iter().collect(), against: None }
    }

    fn row(code: &str, output: f64) -> Row {
        serde_json::from_value(json!({
            "job": format!("job/o/p/w/1/{code}"), "org": "o", "project_code": "p", "workload_code": "w",
            "run_number": 1, "scenario_code": code, "status": "completed", "output_tokens_per_second": output,
            "error_message": code, "model_code": code, "gpu_name": code, "gpu_count": 1, "quantization": code,
        }))
        .expect("a row")
    }

    #[test]
    fn the_address_of_a_proof_is_the_drawers_own() {
        for search in ["", "?sort=-ttft_p50_ms&pick=a/b"] {
            let pairs = [("drawer", "proof"), ("job", "o/p/w/1/c 8"), ("metric", "ttft_p50_ms")];
            let here = drawer_href("/reporting", search, &[]);
            assert_eq!(
                proof_of(&here, "o/p/w/1/c 8", "ttft_p50_ms"),
                drawer_href("/reporting", search, &pairs)
            );
        }
    }

    #[test]
    fn a_difference_stands_beside_the_column_it_is_of() {
        let by = column("output_tokens_per_second").expect("a column");
        let against = Against { by, path: "o/p/w/1/a".into(), value: Some(100.0) };
        let look = Look { columns: vec![by], against: Some(against) };
        assert!(
            look.cells(&row("b", 150.0), "/reporting", "")
                .ends_with("<td class=\"number\" title=\"better than the pinned one\">+50.0</td>")
        );
        assert!(
            look.cells(&row("a", 100.0), "/reporting", "").ends_with("<td class=\"number pin\">pinned</td>")
        );
        assert_eq!(look.width(), 3);
    }

    /// Tags and attributes of well-formed markup; nothing where it is not.
    fn tags(html: &str) -> Option<Vec<String>> {
        let mut names = Vec::new();
        let mut rest = html;
        while let Some(at) = rest.find('<') {
            let end = rest[at..].find('>')? + at;
            let tag = &rest[at + 1..end];
            if !tag.matches('"').count().is_multiple_of(2) {
                return None;
            }
            names.push(tag.split([' ', '"']).next().unwrap_or_default().to_owned());
            rest = &rest[end + 1..];
        }
        Some(names)
    }

    proptest! {
        /// What stands in a row never becomes an element or an attribute of its own.
        #[test]
        fn no_value_is_read_as_markup(code in "\\PC{0,12}[<>\"'&a-z ]{0,12}") {
            let plain = look().cells(&row("a", 1.0), "/reporting", "series-1");
            let odd = look().cells(&row(&code, 1.0), "/reporting", "series-1");
            prop_assert_eq!(tags(&odd), tags(&plain));
            let quotes = |html: &str| html.matches('"').count();
            prop_assert!(quotes(&odd) == quotes(&plain), "{}", odd);
            prop_assert!(!odd.contains('\''));
        }
    }
}
