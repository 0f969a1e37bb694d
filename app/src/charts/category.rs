//! A metric by model, framework, quantization or hardware: every result a point on its line, the best one named.

use events::metrics::Direction;
use serde_json::json;

use super::{Figure, axis, layout, note};
use crate::format::significant;
use crate::metrics::Column;
use crate::row::Row;
use crate::state::colours::Colour;
use crate::state::naming::Naming;

/// Lines drawn at most: the best.
const MOST_LINES: usize = 12;

/// One category.
#[derive(Debug, Clone, PartialEq)]
pub struct Category {
    /// Its name.
    pub name: String,
    /// Value, words and job of each result, the best first.
    pub spots: Vec<(f64, String, String)>,
}

/// Sorts results into categories, the one with the best result first.
pub fn categories(rows: &[Row], metric: &Column, name: impl Fn(&Row) -> String) -> Vec<Category> {
    let mut found: Vec<Category> = Vec::new();
    let naming = Naming::of(rows);
    for row in rows {
        let Some(value) = row.number(metric.key) else { continue };
        let name = name(row);
        let spot = (value, naming.result(row), row.text("job"));
        match found.iter_mut().find(|c| c.name == name) {
            Some(category) => category.spots.push(spot),
            None => found.push(Category { name, spots: vec![spot] }),
        }
    }
    let lower = metric.direction() == Direction::Lower;
    let best_first = |a: f64, b: f64| if lower { a.total_cmp(&b) } else { b.total_cmp(&a) };
    for category in &mut found {
        category.spots.sort_by(|a, b| best_first(a.0, b.0));
    }
    found.sort_by(|a, b| best_first(a.spots[0].0, b.spots[0].0));
    found
}

/// Draws the categories, the best at the top.
pub fn figure(categories: &[Category], metric: &Column, colour: impl Fn(&str) -> Colour) -> Figure {
    if categories.is_empty() {
        return Figure::default();
    }
    let shown = &categories[..categories.len().min(MOST_LINES)];
    let most = shown.iter().flat_map(|c| &c.spots).map(|s| s.0).fold(0.0, f64::max);
    let (mut traces, mut notes) = (Vec::new(), Vec::new());
    for (place, category) in shown.iter().enumerate() {
        let ink = colour(&category.name).token();
        let fills: Vec<&str> =
            category.spots.iter().enumerate().map(|(n, _)| if n == 0 { ink } else { "--page" }).collect();
        traces.push(json!({
            "x": category.spots.iter().map(|s| s.0).collect::<Vec<_>>(), "y": vec![place; category.spots.len()], "mode": "markers",
            "name": category.name, "customdata": category.spots.iter().map(|s| s.2.as_str()).collect::<Vec<_>>(),
            "marker": {"size": 9, "color": fills, "line": {"color": ink, "width": 1.5}},
            "text": category.spots.iter().map(|s| s.1.as_str()).collect::<Vec<_>>(),
            "hovertemplate": format!("%{{text}}<br>%{{x:.3~s}} {}<extra>{}</extra>", metric.unit(), category.name),
        }));
        let best = &category.spots[0];
        notes.push(note(
            &format!("<b>{}</b>", significant(best.0)),
            json!({"x": best.0, "y": place, "yshift": -14, "font": {"size": 12, "color": "--ink"}}),
        ));
    }
    let left_out = categories.len() - shown.len();
    let rest = if left_out > 0 { format!("; {left_out} more are left out") } else { String::new() };
    Figure {
        traces,
        layout: layout(json!({
            "annotations": notes, "hovermode": "closest", "margin": {"l": 8, "r": 24, "t": 8, "b": 40},
            "xaxis": axis(json!({"range": [0, if most > 0.0 { most * 1.08 } else { 1.0 }],
                "title": {"text": metric.axis(), "font": {"size": 12, "color": "--ink-3"}, "standoff": 8}})),
            "yaxis": axis(json!({"range": [shown.len() as f64 - 0.4, -0.6], "tickvals": (0..shown.len()).collect::<Vec<_>>(),
                "ticktext": shown.iter().map(|c| shorten(&c.name)).collect::<Vec<_>>(), "automargin": true, "fixedrange": true})),
        })),
        picks: Vec::new(),
        head: vec!["Category".into(), "Results".into(), "Best".into(), "Where".into()],
        metrics: vec![None, None, Some(metric.key), None],
        jobs: categories.iter().map(|c| c.spots[0].2.clone()).collect(),
        rows: categories
            .iter()
            .map(|c| {
                vec![
                    c.name.clone(),
                    c.spots.len().to_string(),
                    significant(c.spots[0].0),
                    c.spots[0].1.clone(),
                ]
            })
            .collect(),
        legend: Vec::new(),
        summary: format!(
            "Best {}: {} with {} {}{rest}",
            metric.name(),
            shown[0].name,
            significant(shown[0].spots[0].0),
            metric.unit()
        ),
    }
}

/// The end of a long name: what tells it from others.
fn shorten(name: &str) -> String {
    let length = name.chars().count();
    if length <= 40 {
        return name.to_owned();
    }
    format!("…{}", name.chars().skip(length - 39).collect::<String>())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metrics::column;

    fn rows() -> Vec<Row> {
        [("a", 10.0), ("b", 30.0), ("a", 40.0)]
            .map(|(model, value)| {
                serde_json::from_value(
                    json!({"model_code": model, "workload_code": "w", "run_number": 1, "scenario_code": "c1",
                    "job": "job/o/p/w/1/c1", "output_tokens_per_second": value, "ttft_p50_ms": value}),
                )
                .expect("a row")
            })
            .to_vec()
    }

    #[test]
    fn the_category_with_the_best_result_stands_first() {
        let by = |metric: &str| {
            let found = categories(&rows(), column(metric).expect("a metric"), |r| r.text("model_code"));
            found.iter().map(|c| (c.name.clone(), c.spots[0].0)).collect::<Vec<_>>()
        };
        assert_eq!(by("output_tokens_per_second"), [("a".to_owned(), 40.0), ("b".to_owned(), 30.0)]);
        assert_eq!(by("ttft_p50_ms"), [("a".to_owned(), 10.0), ("b".to_owned(), 30.0)]);
    }

    #[test]
    fn the_best_is_said_in_a_sentence() {
        let metric = column("output_tokens_per_second").expect("a metric");
        let figure =
            figure(&categories(&rows(), metric, |r| r.text("model_code")), metric, |_| Colour::nth(0));
        assert_eq!(figure.summary, "Best Output throughput: a with 40.0 tok/s");
        assert_eq!(figure.rows.len(), 2);
    }

    #[test]
    fn a_long_name_keeps_its_end() {
        assert_eq!(shorten(&"x".repeat(60)).chars().count(), 40);
        assert_eq!(shorten("short"), "short");
    }
}
