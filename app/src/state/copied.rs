//! Tables as text, for spreadsheets and for write-ups: every digit, no thousands parted.

use crate::format::{ABSENT, full};
use crate::metrics::{Column, Kind};
use crate::row::Row;

/// How a table is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// Columns parted by tabs: pastes into a spreadsheet.
    Tsv,
    /// A Markdown table.
    Markdown,
}

/// A cell with every digit; empty where nothing was measured.
fn cell(row: &Row, column: &Column) -> String {
    match column.kind {
        Kind::Metric | Kind::Count => row.number(column.key).map(full).unwrap_or_default(),
        _ => match column.key {
            "workload_code" => format!("{} / {}", row.text("workload_code"), row.text("run_number")),
            "framework_code" => format!("{} {}", row.text("framework_code"), row.text("framework_version")),
            "hostname" => format!("{}/{}", row.text("config_code"), row.text("hostname")),
            key => row.text(key),
        },
    }
}

/// Writes the rows with their heads.
pub fn table(rows: &[Row], columns: &[&Column], form: Form) -> String {
    let heads = columns.iter().map(|c| match c.unit() {
        "" => c.label.to_owned(),
        unit => format!("{} ({unit})", c.label),
    });
    let heads: Vec<String> = heads.collect();
    let lines = rows.iter().map(|row| columns.iter().map(|c| cell(row, c)).collect::<Vec<String>>());
    let mut text = String::new();
    match form {
        Form::Tsv => {
            for cells in std::iter::once(heads).chain(lines) {
                let cells: Vec<String> = cells.iter().map(|c| c.replace(['\t', '\n', '\r'], " ")).collect();
                text.push_str(&cells.join("\t"));
                text.push('\n');
            }
        }
        Form::Markdown => {
            let mut write = |cells: Vec<String>| {
                let cells: Vec<String> =
                    cells.iter().map(|c| c.replace('|', "\\|").replace(['\n', '\r'], " ")).collect();
                text.push_str(&format!("| {} |\n", cells.join(" | ")));
            };
            write(heads);
            write(columns.iter().map(|c| if c.is_number() { "---:" } else { "---" }.to_owned()).collect());
            for cells in lines {
                write(cells.into_iter().map(|c| if c.is_empty() { ABSENT.to_owned() } else { c }).collect());
            }
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metrics::column;
    use serde_json::json;

    fn rows() -> Vec<Row> {
        vec![
            serde_json::from_value(
                json!({"workload_code": "w|1", "run_number": 3, "output_tokens_per_second": 3955.9912}),
            )
            .expect("a row"),
            serde_json::from_value(
                json!({"workload_code": "w2", "run_number": 1, "output_tokens_per_second": null}),
            )
            .expect("a row"),
        ]
    }

    fn columns() -> Vec<&'static Column> {
        ["workload_code", "output_tokens_per_second"].map(|k| column(k).expect("a column")).to_vec()
    }

    #[test]
    fn a_spreadsheet_gets_every_digit_and_an_empty_cell_for_nothing() {
        assert_eq!(
            table(&rows(), &columns(), Form::Tsv),
            "Workload / run\tOutput (tok/s)\nw|1 / 3\t3955.9912\nw2 / 1\t\n"
        );
    }

    #[test]
    fn markdown_escapes_its_own_bars() {
        assert_eq!(
            table(&rows(), &columns(), Form::Markdown),
            "| Workload / run | Output (tok/s) |\n| --- | ---: |\n| w\\|1 / 3 | 3955.9912 |\n| w2 / 1 | – |\n"
        );
    }
}
