//! A job's requests as they were sent: a bar each, first to the first token, then until the end.

use serde_json::{Value, json};

use super::{Figure, axis, layout, ticks};
use crate::format::{count, maybe, maybe_count, significant};
use crate::state::colours::Colour;
use crate::state::requests::{Request, Requests};

/// Requests that the axis names at most.
const MOST_NAMES: usize = 6;

/// Draws the requests from a place on, in the colour of what served them.
pub fn figure(requests: &Requests, from: usize, colour: Colour) -> Figure {
    let shown = requests.window(from);
    let (Some(first), Some(last)) = (shown.first(), shown.last()) else { return Figure::default() };
    let rows: Vec<usize> = (0..shown.len()).collect();
    let waits = |r: &Request| r.first_ms().map_or_else(|| r.total_s(), |ms| (ms / 1000.0).min(r.total_s()));
    let words: Vec<String> = shown.iter().map(|(at, r)| words(*at, r)).collect();
    let lines: Vec<u64> = shown.iter().map(|(_, r)| r.line).collect();
    let bar = |name: &str, ink: String, base: Vec<f64>, length: Vec<f64>| {
        json!({
            "type": "bar", "orientation": "h", "name": name, "y": rows, "base": base, "x": length, "width": 0.72,
            "marker": {"color": ink, "line": {"width": 0}}, "text": words, "textposition": "none",
            "hovertemplate": "%{text}<extra></extra>", "customdata": lines,
        })
    };
    let ink = colour.token();
    let mut traces = vec![
        bar(
            "to first token",
            ink.to_owned(),
            shown.iter().map(|(at, _)| *at).collect(),
            shown.iter().map(|(_, r)| waits(r)).collect(),
        ),
        bar(
            "generating",
            format!("{ink}/40"),
            shown.iter().map(|(at, r)| at + waits(r)).collect(),
            shown.iter().map(|(_, r)| r.total_s() - waits(r)).collect(),
        ),
    ];
    let failed: Vec<(usize, &(f64, &Request))> =
        shown.iter().enumerate().filter(|(_, (_, r))| r.failure.is_some()).collect();
    if !failed.is_empty() {
        traces.push(json!({
            "x": failed.iter().map(|(_, (at, r))| at + r.total_s()).collect::<Vec<_>>(),
            "y": failed.iter().map(|(row, _)| row).collect::<Vec<_>>(), "mode": "markers+text", "hoverinfo": "skip",
            "text": labels(&failed, shown.len()),
            "textposition": "middle right", "textfont": {"color": "--failed", "size": 12}, "cliponaxis": false,
            "marker": {"symbol": "x", "size": 8, "color": "--failed"},
        }));
    }
    let begin = first.0;
    let end = shown.iter().map(|(at, r)| at + r.total_s()).fold(last.0, f64::max);
    let room = (end - begin).max(1e-3) * 0.03;
    let named: Vec<usize> = rows.iter().copied().step_by(shown.len().div_ceil(MOST_NAMES).max(1)).collect();
    Figure {
        traces,
        layout: layout(json!({
            "barmode": "overlay", "hovermode": "closest", "margin": {"l": 56, "r": 12, "t": 4, "b": 28},
            "xaxis": axis(across(begin - room, end + 2.0 * room)),
            "yaxis": axis(json!({"range": [shown.len() as f64 - 0.4, -0.6], "showgrid": false, "fixedrange": true,
                "tickvals": named, "ticktext": named.iter().map(|n| format!("#{}", shown[*n].1.index)).collect::<Vec<_>>()})),
        })),
        head: ["Request", "Sent, s", "First token, ms", "Total, s", "Tokens", "Outcome"]
            .map(str::to_owned)
            .to_vec(),
        rows: shown
            .iter()
            .map(|(at, r)| {
                vec![
                    format!("#{}", r.index),
                    significant(*at),
                    maybe(r.first_ms()),
                    significant(r.total_s()),
                    maybe_count(r.tokens.map(|t| t as i64)),
                    outcome(r),
                ]
            })
            .collect(),
        picks: lines.iter().map(|line| vec![line.to_string(); 6]).collect(),
        legend: Vec::new(),
        summary: format!(
            "{} requests as they were sent, #{} to #{}, {} of them failed",
            count(shown.len() as i64),
            first.1.index,
            last.1.index,
            failed.len()
        ),
        ..Figure::default()
    }
}

/// The axis of time, in milliseconds where less than half a second is shown.
fn across(from: f64, to: f64) -> Value {
    if to - from >= 0.5 {
        return json!({"ticksuffix": " s", "nticks": 9, "range": [from, to]});
    }
    let marks: Vec<f64> =
        ticks((to - from) * 1000.0, 8).into_iter().map(|ms| ms + (from * 1000.0).ceil()).collect();
    json!({"range": [from, to], "tickvals": marks.iter().map(|ms| ms / 1000.0).collect::<Vec<_>>(),
        "ticktext": marks.iter().map(|ms| format!("{} ms", significant(*ms))).collect::<Vec<_>>()})
}

/// Rows up to which each failure has its name: of more, rows are lower than words.
const ROOM_FOR_NAMES: usize = 24;

/// What stands beside each failure: its kind, or nothing where rows are low and the one before failed the same way.
fn labels(failed: &[(usize, &(f64, &Request))], rows: usize) -> Vec<String> {
    let kind = |nth: usize| failed[nth].1.1.failure.as_deref().unwrap_or_default();
    // A name takes the height of that many rows.
    let height = rows.div_ceil(ROOM_FOR_NAMES).max(1);
    let mut named: Option<usize> = None;
    (0..failed.len())
        .map(|nth| {
            let again = nth > 0 && kind(nth) == kind(nth - 1) && failed[nth].0 == failed[nth - 1].0 + 1;
            let near = named.is_some_and(|row| failed[nth].0 < row + height);
            if height > 1 && (again || near) {
                return String::new();
            }
            named = Some(failed[nth].0);
            kind(nth).replace('_', " ")
        })
        .collect()
}

fn outcome(request: &Request) -> String {
    match (&request.failure, request.measured) {
        (Some(kind), _) => kind.replace('_', " "),
        (None, true) => "answered".to_owned(),
        (None, false) => "answered, warm-up".to_owned(),
    }
}

fn words(at: f64, request: &Request) -> String {
    let first = request
        .first_ms()
        .map_or_else(String::new, |ms| format!("<br>first token after {} ms", significant(ms)));
    let tokens = request.tokens.map_or_else(String::new, |n| format!(", {} tokens", count(n as i64)));
    format!(
        "<b>#{}</b> {}<br>sent at {} s{first}<br>{} s in all{tokens}",
        request.index,
        outcome(request),
        significant(at),
        significant(request.total_s())
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::state::requests::tests::{log, read};

    #[test]
    fn a_bar_is_the_wait_and_the_answer_and_their_sum_is_the_whole() {
        let figure = figure(&read(&log(5, &[2])), 0, Colour::nth(0));
        let at = |trace: usize, key: &str, n: usize| figure.traces[trace][key][n].as_f64().expect("a number");
        assert_eq!(at(0, "base", 1), 0.25);
        assert!((at(0, "x", 1) - 0.1).abs() < 1e-9);
        assert!((at(0, "x", 1) + at(1, "x", 1) - 2.000_000_001).abs() < 1e-9);
        // One without a first token waits until its end, which is marked.
        assert!((at(0, "x", 2) - 2.000_000_002).abs() < 1e-9);
        assert_eq!((at(1, "x", 2), figure.traces[2]["text"][0].as_str()), (0.0, Some("connect")));
        assert_eq!(figure.rows.len(), 5);
        assert_eq!((figure.pick(1, 0), figure.traces[0]["customdata"][1].as_u64()), (Some("2"), Some(2)));
        assert!(figure.summary.ends_with("1 of them failed"), "{}", figure.summary);
    }

    #[test]
    fn many_failures_of_one_kind_are_named_once_and_few_each() {
        let all = |n: usize| (0..n).collect::<Vec<usize>>();
        let names = |n: usize| -> Vec<String> {
            let figure = figure(&read(&log(n, &all(n))), 0, Colour::nth(0));
            serde_json::from_value(figure.traces[2]["text"].clone()).expect("names")
        };
        assert!(names(5).iter().all(|name| name == "connect"));
        let many = names(36);
        assert_eq!((many.len(), many.iter().filter(|name| !name.is_empty()).count()), (36, 1));
    }

    #[test]
    fn a_few_milliseconds_are_called_so() {
        let axis = across(0.0, 0.02);
        let text = axis["ticktext"].as_array().expect("ticks");
        assert!(
            text.len() > 2 && text.iter().all(|t| t.as_str().is_some_and(|t| t.ends_with(" ms"))),
            "{axis}"
        );
        assert_eq!(across(0.0, 3.0)["ticksuffix"], " s");
    }

    #[test]
    fn no_request_is_no_figure() {
        assert!(figure(&Requests::default(), 0, Colour::nth(0)).is_empty());
    }
}
