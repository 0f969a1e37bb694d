//! In which order a table's rows stand, in the address: `sort=-ttft_p50_ms`.

use events::metrics::Direction;

use super::query::Query;
use crate::metrics::column;

/// An order by a column.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Order {
    /// The column.
    pub key: String,
    /// Whether the largest come first.
    pub descending: bool,
}

impl Order {
    /// Reads it; nothing where the address names none of these columns.
    pub fn read(query: &Query, known: &[&str]) -> Option<Self> {
        query.get("sort").map(Self::of_word).filter(|order| known.contains(&order.key.as_str()))
    }

    /// By its word in an address.
    pub fn of_word(word: &str) -> Self {
        let (key, descending) = word.strip_prefix('-').map_or((word, false), |key| (key, true));
        Self { key: key.to_owned(), descending }
    }

    /// Its word in an address.
    pub fn word(&self) -> String {
        format!("{}{}", if self.descending { "-" } else { "" }, self.key)
    }

    /// Writes it, or takes it out.
    pub fn write(order: Option<&Self>, query: &mut Query) {
        query.set("sort", order.map(Self::word).as_deref());
    }

    /// The order after a click on a column: the better end first, then the other, then as the rows come.
    pub fn clicked(before: Option<&Self>, key: &str) -> Option<Self> {
        let better = is_better_higher(key);
        match before.filter(|order| order.key == key) {
            None => Some(Self { key: key.to_owned(), descending: better }),
            Some(order) if order.descending == better => {
                Some(Self { key: key.to_owned(), descending: !better })
            }
            Some(_) => None,
        }
    }

    /// Puts rows in order by values read once; those without one stay last, equal ones as they came.
    pub fn arrange<T>(&self, rows: impl IntoIterator<Item = (T, Option<f64>)>) -> Vec<T> {
        let mut rows: Vec<(T, Option<f64>)> = rows.into_iter().collect();
        rows.sort_by(|(_, a), (_, b)| match (a, b) {
            (Some(a), Some(b)) if self.descending => b.total_cmp(a),
            (Some(a), Some(b)) => a.total_cmp(b),
            (a, b) => a.is_none().cmp(&b.is_none()),
        });
        rows.into_iter().map(|(row, _)| row).collect()
    }
}

/// Whether more of a column is better.
pub fn is_better_higher(key: &str) -> bool {
    column(key).is_some_and(|c| c.direction() == Direction::Higher)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_third_click_on_a_column_is_as_the_rows_come() {
        let first = Order::clicked(None, "output_tokens_per_second");
        assert_eq!(first.as_ref().map(|o| o.descending), Some(true), "the better end first");
        let second = Order::clicked(first.as_ref(), "output_tokens_per_second");
        assert_eq!(second.as_ref().map(|o| o.descending), Some(false));
        assert_eq!(Order::clicked(second.as_ref(), "output_tokens_per_second"), None);
        assert_eq!(Order::clicked(second.as_ref(), "ttft_p50_ms").map(|o| o.descending), Some(false));
    }

    #[test]
    fn what_was_not_measured_stays_last_in_either_direction() {
        for descending in [true, false] {
            let order = Order { key: "x".into(), descending };
            let arranged = order.arrange([("a", None), ("b", Some(1.0)), ("c", Some(1.0))]);
            assert_eq!(arranged, ["b", "c", "a"]);
        }
    }

    proptest! {
        #[test]
        fn an_order_survives_its_address(place in 0usize..3, descending: bool) {
            let known = ["a_b", "ttft_p50_ms", "c"];
            let order = Order { key: known[place].into(), descending };
            let mut query = Query::default();
            Order::write(Some(&order), &mut query);
            prop_assert_eq!(Order::read(&Query::parse(&query.write()), &known), Some(order));
        }
    }
}
