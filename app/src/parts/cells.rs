//! What a cell of a table of results holds, as plain data: views and static rows are written from the same.

use crate::browser::now_ms;
use crate::format::{ABSENT, day, full, maybe_count, significant};
use crate::metrics::{Column, Kind};
use crate::row::Row;
use crate::state::live::status_words;

/// A cell.
#[derive(Debug, Clone, PartialEq)]
pub struct Cell {
    /// Whether it names its row.
    pub head: bool,
    /// Its classes.
    pub class: &'static str,
    /// What stands before its value where a row is a card.
    pub label: Option<String>,
    /// The unit of its value, for the same place.
    pub unit: Option<&'static str>,
    /// What a reader who hovers sees; empty for nothing.
    pub title: String,
    /// What it holds.
    pub content: Content,
}

/// What a cell holds.
#[derive(Debug, Clone, PartialEq)]
pub enum Content {
    /// Words, or a number that proves nothing by itself.
    Words(String),
    /// A measured number with its proof.
    Figure(Figure),
    /// No number, and why.
    Absent(&'static str),
    /// A link to a page.
    Link {
        /// Where it leads.
        href: String,
        /// What its words are within: the project, which may be cut where it is long.
        within: Option<String>,
        /// Its words.
        words: String,
        /// What stands after its words, which may be cut where they are long and this is there: the run's number.
        after: Option<String>,
        /// The model whose colour stands before it.
        model: Option<String>,
    },
    /// The result's status, and whatever else is to be known of it.
    Marks(Vec<Mark>),
}

/// A measured number: three digits of it.
#[derive(Debug, Clone, PartialEq)]
pub struct Figure {
    /// What it is a value of.
    pub metric: &'static str,
    /// Its three digits.
    pub digits: String,
    /// All of them.
    pub full: String,
    /// What a reader who hovers sees.
    pub title: String,
    /// Whether it rests on too few samples.
    pub few: bool,
}

/// A mark with a word.
#[derive(Debug, Clone, PartialEq)]
pub struct Mark {
    /// The mark, by its name in the style sheet.
    pub status: &'static str,
    /// The word.
    pub words: String,
    /// What a reader who hovers sees; empty for nothing.
    pub title: String,
}

/// A figure of a row.
///
/// # Errors
/// Why there is none.
pub fn figure(row: &Row, metric: &'static str) -> Result<Figure, &'static str> {
    let value = row.number(metric).ok_or_else(|| why_absent(row, metric))?;
    let few = few_samples(row, metric);
    let title = match &few {
        Some(why) => format!("{}: {why}", full(value)),
        None => format!("{}: show what made this number", full(value)),
    };
    Ok(Figure { metric, digits: significant(value), full: full(value), title, few: few.is_some() })
}

/// The status of a result, and whatever else is to be known of it: doubted, simulated, imported.
pub fn marks(row: &Row) -> Vec<Mark> {
    let status = Mark { status: row.mark(), words: status_words(row), title: row.text("error_message") };
    let further = row.further_marks().into_iter().map(|mark| Mark {
        status: mark,
        words: mark.to_owned(),
        title: String::new(),
    });
    std::iter::once(status).chain(further).collect()
}

/// Why a percentile rests on too few samples, where it does: p99 needs a hundred.
pub fn few_samples(row: &Row, key: &str) -> Option<String> {
    let needed = [("p99", 100), ("p95", 20), ("p90", 10)].iter().find(|(p, _)| key.contains(p))?;
    let sample = row.whole("requests_succeeded")?;
    (sample < needed.1).then(|| format!("{sample} requests, too few for a {}: {} needed", needed.0, needed.1))
}

/// Why a figure is not there.
pub fn why_absent(row: &Row, key: &str) -> &'static str {
    match row.text("status").as_str() {
        "pending" | "queued" => "not measured yet",
        "running" => "measured when the job completes",
        "failed" | "cancelled" => "the job ended without a result",
        _ if row.is("imported") => "the imported file does not say it",
        _ if key.ends_with("_per_gpu") => "no GPU is known to have served it",
        _ if ["power", "joule", "energy"].iter().any(|word| key.contains(word)) => "no GPU power was sampled",
        _ if key.contains("cost") || key.ends_with("_per_usd") => "the server has no hourly cost",
        _ if key.contains("quality") => "no evaluation was part of this job",
        _ if key.contains("tpot") || key.contains("interactivity") => "answers were not streamed",
        _ => "not measured",
    }
}

/// A cell of words: the GPUs with their number.
pub fn words(row: &Row, key: &str) -> String {
    match key {
        "gpu_name" => row.hardware(),
        _ => row.maybe_text(key).unwrap_or_else(|| ABSENT.to_owned()),
    }
}

/// The cell of a column. The first two columns of words survive on a phone as the card's title.
pub fn cell(row: &Row, column: &Column, figure_on_card: bool) -> Cell {
    let plain =
        |class, content| Cell { head: false, class, label: None, unit: None, title: String::new(), content };
    match column.kind {
        Kind::Metric => {
            let figure = figure(row, column.key);
            Cell {
                label: Some(column.head()),
                // Nothing has no unit.
                unit: figure.is_ok().then(|| column.unit()),
                ..plain(
                    if figure_on_card { "number card-figure" } else { "number" },
                    figure.map_or_else(Content::Absent, Content::Figure),
                )
            }
        }
        Kind::Count => plain("number", Content::Words(maybe_count(row.whole(column.key)))),
        Kind::Time => {
            let at = row.millis(column.key).map_or_else(|| ABSENT.to_owned(), |at| day(at, now_ms()));
            Cell { title: row.text(column.key), ..plain("number", Content::Words(at)) }
        }
        Kind::Status => {
            Cell { label: Some("Status".to_owned()), ..plain("card-figure", Content::Marks(marks(row))) }
        }
        Kind::Text => plain("", Content::Words(words(row, column.key))),
        Kind::Key => {
            let link = |href, words, model| Content::Link { href, within: None, words, after: None, model };
            match column.key {
                "workload_code" => {
                    let words = row.text("workload_code");
                    let after = format!(" / {}", row.text("run_number"));
                    let within = row.maybe_text("project_code");
                    let title = within.as_ref().map(|project| format!("{project} / {words}{after}"));
                    let model = Some(row.text("model_code"));
                    let content =
                        Content::Link { href: row.run_path(), within, words, after: Some(after), model };
                    Cell { head: true, title: title.unwrap_or_default(), ..plain("card-title", content) }
                }
                "scenario_code" => plain("card-title", link(row.job_path(), row.text("scenario_code"), None)),
                "project_code" => plain("", link(row.project_path(), row.text("project_code"), None)),
                "framework_code" => {
                    let words = format!("{} {}", row.text("framework_code"), row.text("framework_version"));
                    plain("", Content::Words(words))
                }
                "hostname" => {
                    let words = format!("{}/{}", row.text("config_code"), row.text("hostname"));
                    plain("key", Content::Words(words))
                }
                key => plain("key", Content::Words(words(row, key))),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_p99_of_few_requests_says_so() {
        let row: Row = serde_json::from_value(json!({"requests_succeeded": 40})).expect("a row");
        assert_eq!(
            few_samples(&row, "ttft_p99_ms").as_deref(),
            Some("40 requests, too few for a p99: 100 needed")
        );
        assert_eq!(few_samples(&row, "ttft_p50_ms"), None);
    }

    #[test]
    fn a_workload_is_told_from_its_namesake_in_another_project() {
        let row = json!({"project_code": "p", "workload_code": "w", "run_number": 2});
        let row: Row = serde_json::from_value(row).expect("a row");
        let cell = cell(&row, crate::metrics::column("workload_code").expect("a column"), false);
        assert_eq!(cell.title, "p / w / 2");
        let Content::Link { within, words, after, .. } = cell.content else { panic!("{cell:?}") };
        assert_eq!((within.as_deref(), words.as_str(), after.as_deref()), (Some("p"), "w", Some(" / 2")));
    }

    #[test]
    fn a_figure_that_is_not_there_says_why() {
        let row: Row = serde_json::from_value(json!({"status": "failed"})).expect("a row");
        assert_eq!(figure(&row, "ttft_p50_ms"), Err("the job ended without a result"));
        let why = |row: serde_json::Value, key| {
            let row: Row = serde_json::from_value(row).expect("a row");
            why_absent(&row, key)
        };
        let done = || json!({"status": "completed"});
        assert!(why(done(), "output_tokens_per_second_per_gpu").contains("no GPU"));
        assert!(why(done(), "output_tokens_per_joule").contains("power"));
        assert!(why(done(), "output_tokens_per_usd").contains("hourly cost"));
        assert!(why(done(), "quality_score").contains("evaluation"));
        let imported = json!({"status": "completed", "imported": true});
        assert_eq!(why(imported, "tpot_avg_ms"), "the imported file does not say it");
    }
}
