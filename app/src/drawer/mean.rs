//! What made a mean of the ranking: the runs it is of, each with its own proof, and the interval over them.

use events::ranking::Interval;
use leptos::prelude::*;

use super::Runs;
use crate::browser::remote::use_rows;
use crate::format::{counted, full, significant};
use crate::metrics::column;
use crate::parts::tables;
use crate::row::Row;
use crate::state::filters::percent;

/// The results of one scenario of one workload on one server.
fn request(result: &Row, metric: &str, runs: Runs) -> String {
    let same = ["org", "project_code", "workload_code", "scenario_code", "config_code", "hostname"];
    let mut conditions: Vec<String> = same
        .iter()
        .map(|key| match result.maybe_text(key) {
            Some(value) => format!("{key}=eq.{}", percent(&value)),
            None => format!("{key}=is.null"),
        })
        .collect();
    conditions.push(format!("status=eq.completed&simulated=is.{}", result.is("simulated")));
    if runs == Runs::Sound {
        conditions.push("suspicious=is.false".to_owned());
    }
    let select = format!("job,run_number,scenario_code,status,requests_succeeded,{metric}");
    format!(
        "/api/v_benchmark_results?{}&{metric}=not.is.null&select={select}&order=run_number.asc&limit=1000",
        conditions.join("&")
    )
}

/// The calculation written out.
fn calculation(values: &[f64], unit: &str) -> String {
    let Some(Interval { mean, half, runs }) = Interval::of(values) else {
        return values.first().map_or_else(String::new, |value| format!("{} {unit}, one run", full(*value)));
    };
    let sum = match values {
        few if few.len() <= 6 => few.iter().map(|value| significant(*value)).collect::<Vec<_>>().join(" + "),
        many => significant(many.iter().sum()),
    };
    format!(
        "({sum}) ÷ {runs} = {} {unit}, 95 % interval ± {} (Student’s t)",
        significant(mean),
        significant(half)
    )
}

/// The runs of a mean.
#[component]
pub(super) fn MeanOf(
    /// The result of the newest of them.
    result: Memo<Option<Row>>,
    metric: String,
    runs: Runs,
) -> impl IntoView {
    let key = metric.clone();
    let rows = use_rows(move || result.get().map(|row| request(&row, &key, runs)));
    let Some(column) = column(&metric) else { return ().into_any() };
    let words = move || {
        let values: Vec<f64> = rows.all().iter().filter_map(|row| row.number(column.key)).collect();
        calculation(&values, column.unit())
    };
    let lines = move || {
        rows.all()
            .iter()
            .map(|row| {
                view! {
                    <tr data-testid="run-of-mean">
                        <th scope="row">{format!("run {}", row.text("run_number"))}</th>
                        <td class="number">{tables::figure(row, column.key)}</td>
                    </tr>
                }
            })
            .collect_view()
    };
    let doubted = if runs == Runs::All { ", the doubted ones too" } else { "" };
    view! {
        <section data-testid="mean">
            <p><b>{move || format!("Mean of {}{doubted}", counted(rows.all().len() as i64, "run"))}</b>" "<span class="quiet">"what follows is the newest of them"</span></p>
            <p class="key" data-testid="mean-calculation">{words}</p>
            <table class="data-table keep-shape">
                <caption class="visually-hidden">"The runs of the mean"</caption>
                <tbody>{lines}</tbody>
            </table>
        </section>
    }
    .into_any()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_mean_is_written_out_with_its_interval() {
        assert_eq!(
            calculation(&[740.0, 754.0], "tok/s"),
            "(740 + 754) ÷ 2 = 747 tok/s, 95 % interval ± 88.9 (Student’s t)"
        );
        assert_eq!(calculation(&[740.5], "tok/s"), "740.5 tok/s, one run");
        assert_eq!(calculation(&[], "tok/s"), "");
    }

    #[test]
    fn an_imported_result_has_no_server() {
        let row = json!({"org": "o", "project_code": "p", "workload_code": "w", "scenario_code": "c8", "simulated": false});
        let row: Row = serde_json::from_value(row).expect("a row");
        let asked = request(&row, "quality_score", Runs::Sound);
        assert!(asked.contains("hostname=is.null") && asked.contains("suspicious=is.false"), "{asked}");
        assert!(!request(&row, "quality_score", Runs::All).contains("suspicious"));
    }
}
