//! What the header fields of a read ask: the format, the preferences, the range.

use http::{HeaderMap, StatusCode, header};

use super::QueryError;
use super::params::Query;
use crate::api::Failure;

/// How the rows are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Format {
    /// An array of objects.
    Json,
    /// One object, and an error unless there is exactly one row.
    Object,
    /// An object a line.
    Ndjson,
    /// RFC 4180.
    Csv,
    /// Apache Parquet, a row group every so many rows.
    Parquet,
}

impl Format {
    /// Its media type.
    pub(super) fn media_type(self) -> &'static str {
        match self {
            Self::Json => "application/json; charset=utf-8",
            Self::Object => "application/vnd.pgrst.object+json; charset=utf-8",
            Self::Ndjson => "application/x-ndjson; charset=utf-8",
            Self::Csv => "text/csv; charset=utf-8",
            Self::Parquet => "application/vnd.apache.parquet",
        }
    }

    /// Whether it is for keeping rather than for a program to go on with.
    pub(super) fn is_export(self) -> bool {
        matches!(self, Self::Ndjson | Self::Csv | Self::Parquet)
    }

    /// The ending of a file of it, for the formats that are saved rather than shown.
    pub(super) fn ending(self) -> Option<&'static str> {
        match self {
            Self::Csv => Some("csv"),
            Self::Parquet => Some("parquet"),
            Self::Json | Self::Object | Self::Ndjson => None,
        }
    }

    /// The one the client likes best of those there are.
    pub(super) fn of(headers: &HeaderMap) -> Result<Self, Failure> {
        let accept = headers.get(header::ACCEPT).and_then(|v| v.to_str().ok()).unwrap_or("*/*");
        let mut wanted: Vec<(f64, &str)> = accept
            .split(',')
            .map(|item| {
                let mut parts = item.split(';').map(str::trim);
                let media_type = parts.next().unwrap_or_default();
                let quality = parts.find_map(|part| part.strip_prefix("q=")?.trim().parse::<f64>().ok());
                (quality.unwrap_or(1.0), media_type)
            })
            .collect();
        // A stable sort: of those liked alike the first.
        wanted.sort_by(|a, b| b.0.total_cmp(&a.0));
        for (quality, media_type) in wanted {
            let found = match media_type.to_ascii_lowercase().as_str() {
                "*/*" | "application/*" | "application/json" | "application/vnd.pgrst.array+json" => {
                    Self::Json
                }
                "application/vnd.pgrst.object+json" => Self::Object,
                "application/x-ndjson" => Self::Ndjson,
                "text/csv" => Self::Csv,
                "application/vnd.apache.parquet" => Self::Parquet,
                _ => continue,
            };
            if quality > 0.0 {
                return Ok(found);
            }
        }
        let shown: String = accept.chars().take(100).collect();
        Err(Failure::new(
            StatusCode::NOT_ACCEPTABLE,
            "not_acceptable",
            format!("no answer in {shown:?}"),
            "accept application/json, text/csv, application/x-ndjson, application/vnd.apache.parquet or \
             application/vnd.pgrst.object+json",
        ))
    }
}

/// How the rows without their limits are counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Count {
    /// Each one.
    Exact,
    /// As the planner guesses.
    Planned,
    /// Each one where the planner guesses few, as it guesses otherwise.
    Estimated,
}

/// What the header `Prefer` asks.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Preferences {
    /// How rows are counted; absent means not at all.
    pub(super) count: Option<Count>,
    /// The position that the read tables must have reached.
    pub(super) at_least: Option<i64>,
    /// Those that are followed, as they were said.
    pub(super) applied: Vec<String>,
}

impl Preferences {
    /// Reads `Prefer`. What is not known is passed over, unless `handling=strict` asks to be told.
    pub(super) fn of(headers: &HeaderMap) -> Result<Self, QueryError> {
        let mut preferences = Self::default();
        let (mut unknown, mut strict) = (Vec::new(), false);
        for value in headers.get_all("prefer") {
            for item in value.to_str().unwrap_or_default().split(',').map(str::trim).filter(|i| !i.is_empty())
            {
                let known = match item {
                    "count=exact" => preferences.counted(Count::Exact),
                    "count=planned" => preferences.counted(Count::Planned),
                    "count=estimated" => preferences.counted(Count::Estimated),
                    "handling=strict" => {
                        strict = true;
                        true
                    }
                    "handling=lenient" => true,
                    _ => match item.strip_prefix("at-least=") {
                        Some(position) if preferences.at_least.is_none() => {
                            let position = position.parse::<i64>().ok().filter(|p| *p >= 0);
                            preferences.at_least = Some(position.ok_or_else(|| {
                                let shown: String = item.chars().take(100).collect();
                                QueryError::new(
                                    "bad_preference",
                                    format!("{shown:?}"),
                                    "Prefer: at-least=<position>",
                                )
                            })?);
                            true
                        }
                        _ => false,
                    },
                };
                if known {
                    preferences.applied.push(item.to_owned());
                } else {
                    unknown.push(item.chars().take(100).collect::<String>());
                }
            }
        }
        if strict && !unknown.is_empty() {
            return Err(QueryError::new(
                "bad_preference",
                format!("not known here: {}", unknown.join(", ")),
                "count=exact, count=planned, count=estimated, at-least=<position>; without handling=strict others \
                 are passed over",
            ));
        }
        Ok(preferences)
    }

    /// The first word about counting holds.
    fn counted(&mut self, count: Count) -> bool {
        let first = self.count.is_none();
        self.count.get_or_insert(count);
        first
    }
}

/// `Range: 0-24` stands for offset and limit where the query has neither.
pub(super) fn apply_range(query: &mut Query<'_>, headers: &HeaderMap) -> Result<(), Failure> {
    let Some(range) = headers.get(header::RANGE).and_then(|v| v.to_str().ok()) else { return Ok(()) };
    if query.limit.is_some() || query.offset > 0 {
        return Ok(());
    }
    let shown: String = range.chars().take(100).collect();
    let bad = || {
        let hint = "Range: 0-24, with Range-Unit: items";
        Failure::from(QueryError::new("bad_range", format!("Range: {shown:?}"), hint))
    };
    let range = range.trim_start_matches("items=");
    let (first, last) = range.split_once('-').ok_or_else(bad)?;
    let first: i64 = first.trim().parse().ok().filter(|n| *n >= 0).ok_or_else(bad)?;
    query.offset = first;
    if !last.trim().is_empty() {
        let last: i64 = last.trim().parse().ok().filter(|n| *n >= 0).ok_or_else(bad)?;
        if last < first {
            return Err(Failure::new(
                StatusCode::RANGE_NOT_SATISFIABLE,
                "range_not_satisfiable",
                format!("the range ends at row {last}, before it begins at {first}"),
                "first row, then last row, both counted from 0",
            ));
        }
        query.limit = Some((last - first).saturating_add(1));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::projections::views::served;
    use http::HeaderValue;

    fn headers(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
        pairs.iter().map(|(k, v)| (http::HeaderName::from_static(k), HeaderValue::from_static(v))).collect()
    }

    #[test]
    fn the_format_liked_best_is_taken() {
        let of = |accept| Format::of(&headers(&[("accept", accept)])).unwrap();
        assert_eq!(Format::of(&headers(&[])).unwrap(), Format::Json);
        assert_eq!(of("text/html, text/csv;q=0.9"), Format::Csv);
        assert_eq!(of("application/json;q=0.5, application/vnd.apache.parquet"), Format::Parquet);
        assert_eq!(of("text/csv, application/json"), Format::Csv);
        assert_eq!(of("text/csv;q=0, */*;q=0.1"), Format::Json);
        assert!(Format::of(&headers(&[("accept", "image/png")])).is_err());
    }

    #[test]
    fn preferences_are_read_together_and_named_as_applied() {
        let preferences =
            Preferences::of(&headers(&[("prefer", "count=planned, at-least=42, tx=rollback, count=exact")]))
                .unwrap();
        assert_eq!((preferences.count, preferences.at_least), (Some(Count::Planned), Some(42)));
        assert_eq!(preferences.applied, ["count=planned", "at-least=42"]);
        assert!(Preferences::of(&headers(&[("prefer", "at-least=soon")])).is_err());
        assert!(Preferences::of(&headers(&[("prefer", "handling=strict, tx=rollback")])).is_err());
    }

    #[test]
    fn a_range_stands_for_offset_and_limit() {
        let view = served("v_jobs").unwrap();
        let mut query = Query::parse(view, "").unwrap();
        apply_range(&mut query, &headers(&[("range", "10-19")])).unwrap();
        assert_eq!((query.offset, query.limit), (10, Some(10)));
        let status = |range| {
            let mut query = Query::parse(view, "").unwrap();
            apply_range(&mut query, &headers(&[("range", range)])).unwrap_err().status.as_u16()
        };
        assert_eq!((status("x-9"), status("9-1"), status("-5"), status("0--3")), (400, 416, 400, 400));
    }
}
