//! The columns that a table shows: its own choice until a reader makes another one, which is in the address (`columns`).

use super::query::Query;

/// The columns that the address names, as far as the table knows them; the table's own where it names none.
pub fn read(query: &Query, known: impl Fn(&str) -> bool, normal: &[&str]) -> Vec<String> {
    let chosen: Vec<String> = query
        .get("columns")
        .unwrap_or_default()
        .split(',')
        .filter(|key| known(key))
        .map(str::to_owned)
        .collect();
    if chosen.is_empty() { normal.iter().map(|key| (*key).to_owned()).collect() } else { chosen }
}

/// Writes the columns into the address; the table's own choice is left out.
pub fn write(shown: &[String], normal: &[&str], query: &mut Query) {
    query.set("columns", (shown != normal).then(|| shown.join(",")).as_deref());
}

/// Shows a column, at its place among all, or hides it; the last one stays.
pub fn toggle(shown: &mut Vec<String>, key: &str, place: impl Fn(&str) -> Option<usize>) {
    if shown.iter().any(|known| known == key) {
        if shown.len() > 1 {
            shown.retain(|known| known != key);
        }
        return;
    }
    shown.push(key.to_owned());
    shown.sort_by_key(|key| place(key));
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const ALL: [&str; 4] = ["a", "b_c", "d", "e"];
    const NORMAL: [&str; 2] = ["a", "d"];

    fn place(key: &str) -> Option<usize> {
        ALL.iter().position(|known| *known == key)
    }

    fn known(key: &str) -> bool {
        place(key).is_some()
    }

    #[test]
    fn what_a_table_does_not_know_is_left_out() {
        assert_eq!(read(&Query::parse("?columns=x,,e"), known, &NORMAL), ["e"]);
        assert_eq!(read(&Query::parse("?columns=x"), known, &NORMAL), NORMAL);
    }

    #[test]
    fn a_table_has_a_column_at_least() {
        let mut shown = vec!["d".to_owned()];
        toggle(&mut shown, "d", place);
        assert_eq!(shown, ["d"]);
        toggle(&mut shown, "a", place);
        assert_eq!(shown, ["a", "d"]);
    }

    proptest! {
        #[test]
        fn a_choice_survives_its_address(toggled in proptest::collection::vec(0usize..4, 0..9)) {
            let mut shown = read(&Query::default(), known, &NORMAL);
            toggled.into_iter().for_each(|nth| toggle(&mut shown, ALL[nth], place));
            let mut query = Query::parse("?drawer=proof");
            write(&shown, &NORMAL, &mut query);
            prop_assert_eq!(read(&Query::parse(&query.write()), known, &NORMAL), shown);
        }
    }
}
