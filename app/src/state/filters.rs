//! Filters: in the address, and in the dialect of the views.

use super::query::Query;

/// Filters of these columns in a view's dialect; several values of one column: any of them.
pub fn filter_conditions(columns: &[(&str, &str)], filters: &[(String, String)]) -> Vec<String> {
    let mut conditions = Vec::new();
    for (column, _) in columns {
        let values: Vec<&str> =
            filters.iter().filter(|(c, _)| c == column).map(|(_, v)| v.as_str()).collect();
        match values.as_slice() {
            [] => {}
            [one @ ("true" | "false")] => conditions.push(format!("{column}=is.{one}")),
            [one] => conditions.push(format!("{column}=eq.{}", percent(one))),
            several => conditions.push(any_of(column, several)),
        }
    }
    conditions
}

/// Filters read from an address, each once: of these columns, each under its own word there.
pub fn read_filters(columns: &[(&'static str, &str)], query: &Query) -> Vec<(String, String)> {
    let mut filters: Vec<(String, String)> = Vec::new();
    for (key, value) in query.pairs() {
        if let Some((column, _)) = columns.iter().find(|(_, word)| *word == key)
            && !filters.iter().any(|(c, v)| c == column && v == value)
        {
            filters.push(((*column).to_owned(), value.to_owned()));
        }
    }
    filters
}

/// Writes filters over those of an address.
pub fn write_filters(columns: &[(&str, &str)], filters: &[(String, String)], query: &mut Query) {
    for (column, word) in columns {
        query.set(word, None);
        for (_, value) in filters.iter().filter(|(c, _)| c == column) {
            query.push(word, value);
        }
    }
}

/// Adds a filter, or takes it away where it is set.
pub fn toggle(filters: &mut Vec<(String, String)>, column: &str, value: &str) {
    let before = filters.len();
    filters.retain(|(c, v)| c != column || v != value);
    if filters.len() == before {
        filters.push((column.to_owned(), value.to_owned()));
    }
}

/// A column that has any of these values, in the view's dialect: `model_code=in.("a","b")`.
pub fn any_of<T: AsRef<str>>(column: &str, values: &[T]) -> String {
    let quoted: Vec<String> = values
        .iter()
        .map(|v| format!("\"{}\"", v.as_ref().replace('\\', "\\\\").replace('"', "\\\"")))
        .collect();
    format!("{column}=in.{}", percent(&format!("({})", quoted.join(","))))
}

/// Percent-encodes a value of a request.
pub fn percent(text: &str) -> String {
    let mut written = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-_.~/:".contains(&byte) {
            written.push(byte as char);
        } else {
            written.push_str(&format!("%{byte:02X}"));
        }
    }
    written
}
