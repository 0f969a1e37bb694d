//! One metric against another: every result a point, and the frontier of those that no other beats in both.

use events::metrics::Direction;
use serde_json::{Value, json};

use super::{Figure, MARKERS, axis, layout, note};
use crate::format::significant;
use crate::metrics::Column;
use crate::row::Row;
use crate::state::colours::Colour;
use crate::state::naming::Naming;

/// A result.
#[derive(Debug, Clone, PartialEq)]
pub struct Spot {
    /// Across.
    pub x: f64,
    /// Upwards.
    pub y: f64,
    /// What stands beside it: `c64`.
    pub label: String,
    /// What it is, for whoever points at it.
    pub words: String,
    /// Its job: a click opens its proof.
    pub job: String,
}

/// The results of one setup.
#[derive(Debug, Clone, PartialEq)]
pub struct Cloud {
    /// What serves: `vllm 0.28.0 fp8 · 8×H200`.
    pub name: String,
    /// Its colour.
    pub colour: Colour,
    /// Its results.
    pub spots: Vec<Spot>,
}

/// What serves, in words: framework, quantization, GPUs.
pub fn setup(row: &Row) -> String {
    let gpus = row.hardware();
    let quantization = row.maybe_text("quantization").map(|q| format!(" {q}")).unwrap_or_default();
    format!("{}{quantization} · {gpus}", row.text("framework_code"))
}

/// What stands beside a point: how the model was spread over GPUs (`TP2×4`), or where that is not known the concurrency.
fn label(row: &Row) -> String {
    match (row.maybe_text("parallelism"), row.whole("replicas")) {
        (Some(layout), Some(replicas)) if replicas > 1 => format!("{layout}×{replicas}"),
        (Some(layout), _) => layout,
        (None, _) => row.whole("concurrency").map_or_else(String::new, |c| format!("c{c}")),
    }
}

/// Sorts results that have both metrics into clouds, in the order in which their setups appear.
pub fn clouds(rows: &[Row], x: &str, y: &str, colour: impl Fn(&str) -> Colour) -> Vec<Cloud> {
    let mut clouds: Vec<Cloud> = Vec::new();
    let naming = Naming::of(rows);
    for row in rows {
        let (Some(across), Some(up)) = (row.number(x), row.number(y)) else { continue };
        let name = setup(row);
        let place = clouds.iter().position(|c| c.name == name).unwrap_or_else(|| {
            clouds.push(Cloud { colour: colour(&name), name, spots: Vec::new() });
            clouds.len() - 1
        });
        clouds[place].spots.push(Spot {
            x: across,
            y: up,
            label: label(row),
            words: naming.result(row),
            job: row.text("job"),
        });
    }
    clouds
}

/// How good a value is: larger is better.
fn merit(value: f64, better: Direction) -> f64 {
    if better == Direction::Lower { -value } else { value }
}

/// The places of the points that no other point beats: none is at least as good in both and better in one. From left to
/// right; of points that are equal in both, the first.
pub fn frontier(points: &[(f64, f64)], better: (Direction, Direction)) -> Vec<usize> {
    let worth = |place: usize| (merit(points[place].0, better.0), merit(points[place].1, better.1));
    let mut order: Vec<usize> = (0..points.len()).collect();
    // The best across first, and of those the best upwards: each next one counts only where it is better upwards.
    order.sort_by(|a, b| {
        let ((ax, ay), (bx, by)) = (worth(*a), worth(*b));
        bx.total_cmp(&ax).then(by.total_cmp(&ay)).then(a.cmp(b))
    });
    let mut best = f64::NEG_INFINITY;
    order.retain(|place| {
        let (_, up) = worth(*place);
        let better = up > best;
        best = best.max(up);
        better
    });
    order.sort_by(|a, b| points[*a].0.total_cmp(&points[*b].0));
    order
}

/// The corner where the best would be.
fn corner(better: (Direction, Direction)) -> (&'static str, f64, f64) {
    match better {
        (Direction::Lower, Direction::Lower) => ("better ↙", 0.0, 0.0),
        (Direction::Lower, _) => ("better ↖", 0.0, 1.0),
        (_, Direction::Lower) => ("better ↘", 1.0, 0.0),
        _ => ("better ↗", 1.0, 1.0),
    }
}

/// Draws the clouds with the frontier over all of them.
pub fn figure(clouds: &[Cloud], x: &Column, y: &Column) -> Figure {
    let spots: Vec<(usize, &Spot)> =
        clouds.iter().enumerate().flat_map(|(place, c)| c.spots.iter().map(move |s| (place, s))).collect();
    if spots.is_empty() {
        return Figure::default();
    }
    let better = (x.direction(), y.direction());
    let points: Vec<(f64, f64)> = spots.iter().map(|(_, s)| (s.x, s.y)).collect();
    let front = frontier(&points, better);
    let mut traces = vec![json!({
        "x": front.iter().map(|p| points[*p].0).collect::<Vec<_>>(), "y": front.iter().map(|p| points[*p].1).collect::<Vec<_>>(),
        "mode": "lines", "line": {"color": "--ink-3@38", "width": 7}, "hoverinfo": "skip", "name": "frontier",
    })];
    for (place, cloud) in clouds.iter().enumerate() {
        let ink = cloud.colour.token();
        let symbol = MARKERS[place % MARKERS.len()];
        let own: Vec<(f64, f64)> = cloud.spots.iter().map(|s| (s.x, s.y)).collect();
        let edge = frontier(&own, better);
        if edge.len() > 1 {
            traces.push(json!({
                "x": edge.iter().map(|p| own[*p].0).collect::<Vec<_>>(), "y": edge.iter().map(|p| own[*p].1).collect::<Vec<_>>(),
                "mode": "lines", "line": {"color": ink, "width": 1.25}, "hoverinfo": "skip", "name": cloud.name,
            }));
        }
        let on_front = |spot: &Spot| front.iter().any(|p| spots[*p].1.job == spot.job);
        let fills: Vec<&str> = cloud.spots.iter().map(|s| if on_front(s) { ink } else { "--page" }).collect();
        traces.push(json!({
            "x": own.iter().map(|p| p.0).collect::<Vec<_>>(), "y": own.iter().map(|p| p.1).collect::<Vec<_>>(), "name": cloud.name,
            "mode": "markers", "customdata": cloud.spots.iter().map(|s| s.job.as_str()).collect::<Vec<_>>(),
            "marker": {"size": 9, "symbol": symbol, "color": fills, "line": {"color": ink, "width": 1.5}},
            "text": cloud.spots.iter().map(|s| format!("{}<br>{}", cloud.name, s.words)).collect::<Vec<_>>(),
            "hovertemplate": format!("%{{text}}<br>%{{y:.3~s}} {} at %{{x:.3~s}} {}<extra></extra>", y.unit(), x.unit()),
        }));
    }
    let (words, corner_x, corner_y) = corner(better);
    let mut notes: Vec<Value> = vec![note(
        words,
        json!({"xref": "paper", "yref": "paper", "x": corner_x, "y": corner_y, "font": {"size": 12, "color": "--ink-3"},
            "xanchor": if corner_x > 0.5 { "right" } else { "left" }, "yanchor": "bottom"}),
    )];
    let (across, up) = (range(points.iter().map(|p| p.0))[1], range(points.iter().map(|p| p.1))[1]);
    let mut named: Vec<&Spot> = Vec::new();
    for place in &front {
        let (_, spot) = spots[*place];
        // Of twins that stand on each other, one is named.
        let twin = |other: &&Spot| {
            other.label == spot.label
                && (other.x - spot.x).abs() < across * 0.04
                && (other.y - spot.y).abs() < up * 0.06
        };
        if named.iter().any(twin) {
            continue;
        }
        named.push(spot);
        notes.push(note(&spot.label, json!({"x": spot.x, "y": spot.y, "xshift": 8, "yshift": 8, "xanchor": "left", "yanchor": "bottom"})));
    }
    Figure {
        traces,
        layout: layout(json!({
            "annotations": notes, "hovermode": "closest", "margin": {"l": 52, "r": 24, "t": 24, "b": 40},
            "xaxis": axis(json!({"range": range(points.iter().map(|p| p.0)), "rangemode": "tozero",
                "title": {"text": x.axis(), "font": {"size": 12, "color": "--ink-3"}, "standoff": 8}})),
            "yaxis": axis(json!({"range": range(points.iter().map(|p| p.1)), "rangemode": "tozero"})),
        })),
        picks: Vec::new(),
        head: vec!["Setup".into(), "Result".into(), x.name(), y.name(), "Frontier".into()],
        metrics: vec![None, None, Some(x.key), Some(y.key), None],
        jobs: spots.iter().map(|(_, s)| s.job.clone()).collect(),
        rows: spots
            .iter()
            .enumerate()
            .map(|(place, (cloud, s))| {
                let on = if front.contains(&place) { "yes" } else { "" };
                vec![
                    clouds[*cloud].name.clone(),
                    s.words.clone(),
                    significant(s.x),
                    significant(s.y),
                    on.to_owned(),
                ]
            })
            .collect(),
        legend: clouds.iter().map(|c| (c.name.clone(), c.colour)).collect(),
        summary: words_of(&spots, &front, x, y),
    }
}

/// From 0 to a little over the largest.
fn range(values: impl Iterator<Item = f64>) -> [f64; 2] {
    let most = values.fold(0.0, f64::max);
    [0.0, if most > 0.0 { most * 1.12 } else { 1.0 }]
}

/// The frontier in words: where it begins and where it ends.
fn words_of(spots: &[(usize, &Spot)], front: &[usize], x: &Column, y: &Column) -> String {
    let at = |place: usize| {
        let (_, spot) = spots[place];
        format!(
            "{} {} at {} {} ({})",
            significant(spot.y),
            y.unit(),
            significant(spot.x),
            x.unit(),
            spot.words
        )
    };
    let is = if front.len() == 1 { "is" } else { "are" };
    let of = format!(
        "{} of {} results {is} on the frontier, beaten by no other in both",
        front.len(),
        spots.len()
    );
    match front {
        [] => of,
        [only] => format!("{of}: {}", at(*only)),
        [first, .., last] => format!("{of}: from {} to {}", at(*first), at(*last)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metrics::column;
    use proptest::prelude::*;

    const UP: (Direction, Direction) = (Direction::Higher, Direction::Higher);

    fn rows() -> Vec<Row> {
        [(8, 90.0, 400.0), (64, 60.0, 1900.0), (128, 30.0, 1800.0), (16, 80.0, 300.0)]
            .map(|(concurrency, x, y)| {
                serde_json::from_value(json!({"framework_code": "vllm", "quantization": "fp8", "gpu_count": 8, "gpu_name": "NVIDIA H200",
                    "workload_code": "w", "run_number": 1, "scenario_code": format!("c{concurrency}"), "job": format!("job/o/p/w/1/c{concurrency}"),
                    "concurrency": concurrency, "interactivity_tps": x, "output_tokens_per_second": y}))
                .expect("a row")
            })
            .to_vec()
    }

    #[test]
    fn the_frontier_is_what_nothing_beats() {
        let points = [(90.0, 400.0), (60.0, 1900.0), (30.0, 1800.0), (80.0, 300.0)];
        assert_eq!(frontier(&points, UP), [1, 0]);
        assert_eq!(frontier(&points, (Direction::Lower, Direction::Higher)), [2, 1]);
        assert_eq!(frontier(&[], UP), Vec::<usize>::new());
    }

    #[test]
    fn a_point_is_labelled_by_its_parallelism_where_that_is_known() {
        let of = |value| label(&serde_json::from_value(value).expect("a row"));
        assert_eq!(of(json!({"parallelism": "TP2", "replicas": 4, "concurrency": 64})), "TP2×4");
        assert_eq!(of(json!({"parallelism": "TP8", "replicas": 1})), "TP8");
        assert_eq!(of(json!({"parallelism": null, "replicas": 1, "concurrency": 64})), "c64");
    }

    #[test]
    fn the_figure_says_who_is_on_the_frontier() {
        let clouds = clouds(&rows(), "interactivity_tps", "output_tokens_per_second", |_| Colour::nth(0));
        assert_eq!(clouds[0].name, "vllm fp8 · 8×H200");
        let (x, y) =
            (column("interactivity_tps").expect("x"), column("output_tokens_per_second").expect("y"));
        let figure = figure(&clouds, x, y);
        assert_eq!(
            figure.summary,
            "2 of 4 results are on the frontier, beaten by no other in both: from 1\u{202f}900 tok/s at 60.0 tok/s/user (w / 1 · c64) to 400 tok/s at 90.0 tok/s/user (w / 1 · c8)"
        );
        assert_eq!(figure.rows.iter().filter(|r| r[4] == "yes").count(), 2);
    }

    #[test]
    fn of_twins_on_the_frontier_one_is_named() {
        let spot = |x: f64, y: f64, job: &str| Spot {
            x,
            y,
            label: "c4".into(),
            words: String::new(),
            job: job.into(),
        };
        let cloud = Cloud {
            name: "s".into(),
            colour: Colour::nth(0),
            spots: vec![spot(380.0, 762.0, "a"), spot(378.0, 763.0, "b")],
        };
        let (x, y) =
            (column("interactivity_tps").expect("x"), column("output_tokens_per_second").expect("y"));
        let figure = figure(&[cloud], x, y);
        let named = |figure: &Figure| {
            figure.layout["annotations"]
                .as_array()
                .map_or(0, |n| n.iter().filter(|n| n["text"] == "c4").count())
        };
        assert_eq!(named(&figure), 1);
    }

    #[test]
    fn a_result_without_one_of_the_metrics_is_no_point() {
        assert!(
            clouds(&rows(), "interactivity_tps", "output_tokens_per_joule", |_| Colour::nth(0)).is_empty()
        );
    }

    fn beats(a: (f64, f64), b: (f64, f64)) -> bool {
        a.0 >= b.0 && a.1 >= b.1 && a != b
    }

    proptest! {
        #[test]
        fn no_point_of_the_frontier_is_beaten_and_every_other_is(
            points in proptest::collection::vec((0i32..20, 0i32..20), 0..40),
            lower: bool,
        ) {
            let points: Vec<(f64, f64)> = points.into_iter().map(|(x, y)| (f64::from(x), f64::from(y))).collect();
            let better = (if lower { Direction::Lower } else { Direction::Higher }, Direction::Higher);
            let worth = |p: (f64, f64)| (merit(p.0, better.0), p.1);
            let front = frontier(&points, better);
            for (place, point) in points.iter().enumerate() {
                let beaten = points.iter().any(|other| beats(worth(*other), worth(*point)));
                let twin = front.iter().any(|f| points[*f] == *point);
                if front.contains(&place) {
                    prop_assert!(!beaten);
                } else {
                    prop_assert!(beaten || twin);
                }
            }
            prop_assert!(front.windows(2).all(|pair| points[pair[0]].0 < points[pair[1]].0));
        }
    }
}
