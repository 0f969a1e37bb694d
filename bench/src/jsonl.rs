//! Manifests: files of JSON objects, one a line.

use serde::de::DeserializeOwned;

/// Why a manifest could not be used.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum JsonlError {
    /// A line is not what it should be.
    #[error("line {line}: {reason}; each line must be a JSON object with {wanted}")]
    Line {
        /// 1-based.
        line: usize,
        /// What is wrong.
        reason: String,
        /// What was expected.
        wanted: &'static str,
    },
    /// Nothing in it.
    #[error("nothing in it; each line must be a JSON object with {0}")]
    Empty(&'static str),
}

/// The rows of a manifest. Empty lines and a byte order mark are passed over; `wanted` says what a line holds.
pub fn rows<T: DeserializeOwned>(text: &str, wanted: &'static str) -> Result<Vec<T>, JsonlError> {
    let lines = text.trim_start_matches('\u{feff}').lines().enumerate();
    let rows = lines
        .filter(|(_, line)| !line.trim().is_empty())
        .map(|(index, line)| {
            serde_json::from_str(line).map_err(|error| JsonlError::Line {
                line: index + 1,
                // serde counts lines of the one line it sees
                reason: error.to_string().replace("at line 1 column", "at column"),
                wanted,
            })
        })
        .collect::<Result<Vec<T>, JsonlError>>()?;
    if rows.is_empty() { Err(JsonlError::Empty(wanted)) } else { Ok(rows) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde::{Deserialize, Serialize};

    #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
    struct Row {
        id: String,
        #[serde(default)]
        size: Option<u32>,
    }

    fn read(text: &str) -> Result<Vec<Row>, JsonlError> {
        rows(text, "an id")
    }

    #[test]
    fn a_bad_line_is_named() {
        let error = read("{\"id\":\"a\"}\n\n{\"no\":1}\n").unwrap_err();
        assert_eq!(
            error.to_string(),
            "line 3: missing field `id` at column 8; each line must be a JSON object with an id"
        );
    }

    #[test]
    fn an_empty_file_holds_nothing() {
        assert_eq!(read(" \n\u{feff}\n").unwrap_err().to_string().split(':').next(), Some("line 2"));
        assert_eq!(read("\n \n"), Err(JsonlError::Empty("an id")));
    }

    proptest! {
        #[test]
        fn rows_are_read_as_they_were_written(
            rows in prop::collection::vec(("\\PC{0,12}", prop::option::of(any::<u32>())), 1..20),
            endings in prop::collection::vec(prop::sample::select(vec!["\n", "\r\n", "\n\n", "\n  \r\n"]), 20),
            mark in any::<bool>(),
        ) {
            let rows: Vec<Row> = rows.into_iter().map(|(id, size)| Row { id, size }).collect();
            let mut text = String::from(if mark { "\u{feff}" } else { "" });
            for (row, ending) in rows.iter().zip(endings) {
                text.push_str(&serde_json::to_string(row).unwrap());
                text.push_str(ending);
            }
            prop_assert_eq!(read(&text), Ok(rows));
        }

        #[test]
        fn no_text_panics(text in "(\\PC|[\\{\\}\":,\n\r\\[\\]])*") {
            let _ = read(&text);
        }
    }
}
