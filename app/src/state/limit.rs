//! A bound on a figure: only results with a TTFT p99 of at most 500 ms, only those of at least 30 tokens a second and user.

use super::query::Query;
use crate::format::{full, significant};
use crate::metrics::{Column, Kind, RESULT_COLUMNS, column};

/// A bound on a figure of a result. A result without the figure is outside.
#[derive(Debug, Clone, PartialEq)]
pub struct Limit {
    /// The column.
    pub column: String,
    /// Whether the figure must be at least the value; otherwise at most.
    pub at_least: bool,
    /// The value.
    pub value: f64,
}

/// The columns that can be bounded.
pub fn bounded() -> impl Iterator<Item = &'static Column> {
    RESULT_COLUMNS.iter().filter(|c| matches!(c.kind, Kind::Metric | Kind::Count))
}

impl Limit {
    /// Reads all bounds of an address: `min.<column>=<value>` and `max.<column>=<value>`. What is unknown is left out.
    pub fn read_all(query: &Query) -> Vec<Self> {
        query
            .pairs()
            .filter_map(|(key, value)| {
                let (end, name) = key.split_once('.')?;
                let at_least = match end {
                    "min" => true,
                    "max" => false,
                    _ => return None,
                };
                column(name).filter(|c| matches!(c.kind, Kind::Metric | Kind::Count))?;
                let value = value.parse::<f64>().ok().filter(|v| v.is_finite())?;
                Some(Self { column: name.to_owned(), at_least, value })
            })
            .collect()
    }

    /// Writes bounds over those an address has.
    pub fn write_all(limits: &[Self], query: &mut Query) {
        for end in ["min", "max"] {
            for column in bounded() {
                query.set(&format!("{end}.{}", column.key), None);
            }
        }
        for limit in limits {
            query.push(&limit.key(), &format!("{}", limit.value));
        }
    }

    fn key(&self) -> String {
        format!("{}.{}", if self.at_least { "min" } else { "max" }, self.column)
    }

    /// The condition in the view's dialect.
    pub fn condition(&self) -> String {
        format!("{}={}.{}", self.column, if self.at_least { "gte" } else { "lte" }, full(self.value))
    }

    /// `TTFT p99 ≤ 500 ms`.
    pub fn words(&self) -> String {
        let (label, unit) = column(&self.column).map_or((self.column.as_str(), ""), |c| (c.label, c.unit()));
        let sign = if self.at_least { "≥" } else { "≤" };
        format!("{label} {sign} {} {unit}", significant(self.value)).trim_end().to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_bound_is_a_condition_and_a_few_words() {
        let limits = Limit::read_all(&Query::parse(
            "?max.ttft_p99_ms=500&min.interactivity_tps=30&max.status=3&min.x=1&max.tpot_avg_ms=much",
        ));
        assert_eq!(
            limits.iter().map(Limit::condition).collect::<Vec<_>>(),
            ["ttft_p99_ms=lte.500", "interactivity_tps=gte.30"]
        );
        assert_eq!(
            limits.iter().map(Limit::words).collect::<Vec<_>>(),
            ["TTFT p99 ≤ 500 ms", "Interact. ≥ 30.0 tok/s/user"]
        );
    }

    proptest! {
        #[test]
        fn every_bound_survives_its_address(limits in proptest::collection::vec((0..bounded().count(), any::<bool>(), -1e9f64..1e9), 0..5)) {
            let limits: Vec<Limit> = limits
                .into_iter()
                .map(|(place, at_least, value)| Limit { column: bounded().nth(place).expect("a column").key.to_owned(), at_least, value })
                .collect();
            let mut query = Query::parse("?max.ttft_p99_ms=1&tab=cost");
            Limit::write_all(&limits, &mut query);
            let query = Query::parse(&query.write());
            prop_assert_eq!(Limit::read_all(&query), limits);
            prop_assert_eq!(query.get("tab"), Some("cost"));
        }
    }
}
