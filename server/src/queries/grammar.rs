//! PostgREST's filters: `column=[not.]op.value`, `or=(a.eq.1,and(b.gt.2,c.is.null))`.

use super::QueryError;
use super::params::{column, spelled};
use crate::projections::views::ViewDef;
use crate::projections::{Column, Kind};

/// How deep groups may nest.
const DEEPEST: usize = 8;
/// The most values of one `in`.
const MOST_VALUES: usize = 1000;

/// A condition.
#[derive(Debug, Clone, PartialEq)]
pub enum Node<'v> {
    /// All hold.
    And(Vec<Node<'v>>),
    /// One holds.
    Or(Vec<Node<'v>>),
    /// It does not hold.
    Not(Box<Node<'v>>),
    /// A column and a value.
    Test {
        /// The column.
        column: &'v Column,
        /// How they are compared.
        operator: Operator,
    },
}

/// How a column is compared. Values are spelled as PostgreSQL reads them, and always bound.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Operator {
    /// `=`, `<>`, `>`, `>=`, `<`, `<=`.
    Compare(&'static str, String),
    /// One of these.
    In(Vec<String>),
    /// `null`, `true`, `false`, `unknown`.
    Is(&'static str),
    /// A pattern with `%` and `_`.
    Like(String),
    /// The same, upper and lower case alike.
    Ilike(String),
    /// JSON that contains this JSON.
    Contains(String),
}

impl Node<'_> {
    /// How many tests it is made of.
    pub fn tests(&self) -> usize {
        match self {
            Self::And(nodes) | Self::Or(nodes) => nodes.iter().map(Node::tests).sum(),
            Self::Not(node) => node.tests(),
            Self::Test { .. } => 1,
        }
    }

    /// Adds the columns that it names.
    pub fn names<'n>(&'n self, names: &mut Vec<&'n str>) {
        match self {
            Self::And(nodes) | Self::Or(nodes) => nodes.iter().for_each(|node| node.names(names)),
            Self::Not(node) => node.names(names),
            Self::Test { column, .. } => names.push(&column.name),
        }
    }
}

/// `[not.]op.value` for a column.
///
/// # Errors
/// The operator is unknown, or the value does not fit.
pub fn test<'v>(column: &'v Column, text: &str) -> Result<Node<'v>, QueryError> {
    match text.strip_prefix("not.") {
        // Once, as in PostgREST: nothing is said by denying a denial.
        Some(rest) if !rest.starts_with("not.") => return Ok(Node::Not(Box::new(test(column, rest)?))),
        Some(_) => return Err(no_operator(column, text)),
        None => {}
    }
    let Some((word, value)) = text.split_once('.') else {
        return Err(no_operator(column, text));
    };
    let operator = match word {
        "eq" => Operator::Compare("=", spelled(column, value)?),
        "neq" => Operator::Compare("<>", spelled(column, value)?),
        "gt" => Operator::Compare(">", spelled(column, value)?),
        "gte" => Operator::Compare(">=", spelled(column, value)?),
        "lt" => Operator::Compare("<", spelled(column, value)?),
        "lte" => Operator::Compare("<=", spelled(column, value)?),
        "in" => Operator::In(values(column, value)?),
        "is" => Operator::Is(is(column, value)?),
        "like" => Operator::Like(pattern(column, value)?),
        "ilike" => Operator::Ilike(pattern(column, value)?),
        "cs" => Operator::Contains(contained(column, value)?),
        _ => return Err(no_operator(column, text)),
    };
    Ok(Node::Test { column, operator })
}

fn no_operator(column: &Column, text: &str) -> QueryError {
    let shown: String = text.chars().take(100).collect();
    QueryError::new(
        "bad_filter",
        format!("{shown:?} is no filter for column {}", column.name),
        "write `column=op.value` with op one of eq, neq, gt, gte, lt, lte, in, is, like, ilike, cs, each after `not.` if wanted",
    )
}

fn values(column: &Column, text: &str) -> Result<Vec<String>, QueryError> {
    let inner = text
        .strip_prefix('(')
        .and_then(|t| t.strip_suffix(')'))
        .ok_or_else(|| QueryError::new("bad_filter", "in wants a list", "write `column=in.(a,b,\"c,d\")`"))?;
    if inner.is_empty() {
        return Ok(Vec::new());
    }
    let items = split(inner)?;
    if items.len() > MOST_VALUES {
        return Err(QueryError::new(
            "query_too_large",
            format!("in holds more than {MOST_VALUES} values"),
            "ask in parts",
        ));
    }
    items.into_iter().map(|item| spelled(column, &unquoted(item)?)).collect()
}

fn is(column: &Column, value: &str) -> Result<&'static str, QueryError> {
    let truth = column.kind == Kind::Bool;
    match value.to_ascii_lowercase().as_str() {
        "null" => Ok("null"),
        "not_null" => Ok("not null"),
        "true" if truth => Ok("true"),
        "false" if truth => Ok("false"),
        "unknown" if truth => Ok("unknown"),
        _ => Err(QueryError::new(
            "bad_filter",
            format!("column {} cannot be {value:?}", column.name),
            "is.null or is.not_null; for yes-or-no columns also is.true, is.false, is.unknown",
        )),
    }
}

fn pattern(column: &Column, value: &str) -> Result<String, QueryError> {
    if column.kind != Kind::Text {
        return Err(QueryError::new(
            "bad_filter",
            format!("column {} is no text", column.name),
            "like and ilike work on text; use eq, gt, lt … here",
        ));
    }
    let trailing = value.bytes().rev().take_while(|b| *b == b'\\').count();
    if trailing % 2 == 1 {
        return Err(QueryError::new("bad_value", "a pattern cannot end in one backslash", "write it twice"));
    }
    Ok(value.replace('*', "%"))
}

fn contained(column: &Column, value: &str) -> Result<String, QueryError> {
    if column.kind != Kind::Json {
        return Err(QueryError::new(
            "bad_filter",
            format!("column {} holds no JSON", column.name),
            "cs works on JSON columns",
        ));
    }
    let json: serde_json::Value = serde_json::from_str(value).map_err(|e| {
        QueryError::new("bad_value", format!("not JSON: {e}"), "for example flags=cs.[\"rule\"]")
    })?;
    let text = json.to_string();
    if text.contains("\\u0000") {
        return Err(QueryError::new("bad_value", "a NUL character", "leave it out"));
    }
    Ok(text)
}

/// `and`, `or`, `not.and` or `not.or`, and the list in parentheses.
///
/// # Errors
/// The list is malformed, or a test in it is.
pub fn group<'v>(view: &'v ViewDef, word: &str, list: &str) -> Result<Node<'v>, QueryError> {
    nested(view, word, list, 0)
}

fn nested<'v>(view: &'v ViewDef, word: &str, list: &str, depth: usize) -> Result<Node<'v>, QueryError> {
    if depth >= DEEPEST {
        return Err(QueryError::new(
            "query_too_large",
            format!("groups nest deeper than {DEEPEST}"),
            "flatten the condition",
        ));
    }
    let inner = list.strip_prefix('(').and_then(|t| t.strip_suffix(')')).ok_or_else(|| {
        QueryError::new("bad_filter", format!("{word} wants a list in parentheses"), "`or=(a.eq.1,b.eq.2)`")
    })?;
    let mut nodes = Vec::new();
    for item in split(inner)? {
        nodes.push(member(view, item, depth)?);
    }
    if nodes.is_empty() {
        return Err(QueryError::new(
            "bad_filter",
            format!("{word} has nothing in it"),
            "`or=(a.eq.1,b.eq.2)`",
        ));
    }
    Ok(match word {
        "and" => Node::And(nodes),
        "or" => Node::Or(nodes),
        "not.and" => Node::Not(Box::new(Node::And(nodes))),
        _ => Node::Not(Box::new(Node::Or(nodes))),
    })
}

fn member<'v>(view: &'v ViewDef, item: &str, depth: usize) -> Result<Node<'v>, QueryError> {
    for word in ["and", "or", "not.and", "not.or"] {
        if let Some(list) = item.strip_prefix(word).filter(|rest| rest.starts_with('(')) {
            return nested(view, word, list, depth + 1);
        }
    }
    let Some((name, rest)) = item.split_once('.') else {
        return Err(QueryError::new(
            "bad_filter",
            format!("{:?} is no condition", item.chars().take(100).collect::<String>()),
            "inside a group write `column.op.value`",
        ));
    };
    let column = column(view, name)?;
    // A quoted value may hold what would otherwise end it. In a list the quotes belong to its elements.
    match rest.rsplit_once(".\"") {
        Some((operator, quoted)) if quoted.ends_with('"') && !rest.contains(".(") => {
            test(column, &format!("{operator}.{}", unquoted(&format!("\"{quoted}"))?))
        }
        _ => test(column, rest),
    }
}

/// Splits at the commas that stand outside parentheses and quotes.
fn split(list: &str) -> Result<Vec<&str>, QueryError> {
    let unbalanced = || {
        QueryError::new(
            "bad_filter",
            "parentheses or quotes do not match",
            "quote values that hold them: \"a,b\"",
        )
    };
    let (mut depth, mut quoted, mut escaped, mut start) = (0_usize, false, false, 0);
    let mut items = Vec::new();
    for (at, character) in list.char_indices() {
        match character {
            _ if escaped => escaped = false,
            '\\' if quoted => escaped = true,
            '"' => quoted = !quoted,
            _ if quoted => {}
            '(' => depth += 1,
            ')' => depth = depth.checked_sub(1).ok_or_else(unbalanced)?,
            ',' if depth == 0 => {
                items.push(&list[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    if depth > 0 || quoted {
        return Err(unbalanced());
    }
    items.push(&list[start..]);
    Ok(items)
}

/// A value without its quotes, where it has any.
fn unquoted(item: &str) -> Result<String, QueryError> {
    let Some(inner) = item.strip_prefix('"') else { return Ok(item.to_owned()) };
    let inner = inner
        .strip_suffix('"')
        .filter(|_| item.len() >= 2)
        .ok_or_else(|| QueryError::new("bad_filter", "a quote is not closed", "\"like this\""))?;
    let mut out = String::with_capacity(inner.len());
    let mut characters = inner.chars();
    while let Some(character) = characters.next() {
        out.push(if character == '\\' { characters.next().unwrap_or('\\') } else { character });
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::projections::views::served;

    fn jobs() -> &'static ViewDef {
        served("v_jobs").unwrap()
    }

    fn parsed(name: &str, text: &str) -> Result<Node<'static>, QueryError> {
        test(column(jobs(), name)?, text)
    }

    fn compare(operator: &'static str, value: &str) -> Operator {
        Operator::Compare(operator, value.into())
    }

    #[test]
    fn every_operator_is_read() {
        for (name, text, expected) in [
            ("status", "eq.running", compare("=", "running")),
            ("status", "eq.a.b", compare("=", "a.b")),
            ("status", "neq.running", compare("<>", "running")),
            ("concurrency", "gt.8", compare(">", "8")),
            ("concurrency", "gte.8", compare(">=", "8")),
            ("concurrency", "lt.-8", compare("<", "-8")),
            ("ready_after_s", "lte.1.5", compare("<=", "1.5")),
            ("streaming", "eq.true", compare("=", "true")),
            ("created_at", "gte.2026-01-31", compare(">=", "2026-01-31T00:00:00.000000Z")),
            (
                "status",
                "in.(a,\"b,c\",\"d\\\"e\")",
                Operator::In(vec!["a".into(), "b,c".into(), "d\"e".into()]),
            ),
            ("attempt", "in.()", Operator::In(vec![])),
            ("error_code", "is.null", Operator::Is("null")),
            ("streaming", "is.true", Operator::Is("true")),
            ("hostname", "like.gpu*", Operator::Like("gpu%".into())),
            ("hostname", "ilike.*GPU*", Operator::Ilike("%GPU%".into())),
            ("flags", "cs.[\"missing_telemetry\"]", Operator::Contains("[\"missing_telemetry\"]".into())),
        ] {
            let Node::Test { operator, .. } = parsed(name, text).unwrap() else { panic!("{text}") };
            assert_eq!(operator, expected, "{name}={text}");
        }
    }

    #[test]
    fn what_is_not_understood_is_refused() {
        for (name, text) in [
            ("status", "running"),
            ("status", "similar.x"),
            ("nope", "eq.1"),
            ("concurrency", "eq.eight"),
            ("concurrency", "eq.1;drop table x"),
            ("concurrency", "like.1*"),
            ("ready_after_s", "eq.NaN"),
            ("streaming", "eq.yes"),
            ("created_at", "gt.yesterday"),
            ("status", "in.a,b"),
            ("status", "in.(a"),
            ("status", "is.true"),
            ("serve_argv", "eq.x"),
            ("flags", "cs.nope"),
            ("hostname", "like.x\\"),
            ("status", "not.not.eq.x"),
        ] {
            assert!(parsed(name, text).is_err(), "{name}={text}");
        }
    }

    #[test]
    fn groups_nest() {
        let node = group(
            jobs(),
            "or",
            "(status.eq.running,and(concurrency.gt.2,not.or(phase.is.null,hostname.eq.\"a,b)\")),attempt.not.in.(1,2))",
        )
        .unwrap();
        let Node::Or(nodes) = node else { panic!("not a disjunction") };
        assert_eq!(nodes.len(), 3);
        assert_eq!(nodes.iter().map(Node::tests).sum::<usize>(), 5);
        assert!(matches!(&nodes[2], Node::Not(_)));
    }

    #[test]
    fn groups_that_do_not_close_are_refused() {
        for list in
            ["(a", "status.eq.x", "()", "(status.eq.(x)", "(status)", "(status.eq.x))", "(and(status.eq.x)"]
        {
            assert!(group(jobs(), "and", list).is_err(), "{list}");
        }
        let deep = format!("{}status.eq.x{}", "(and".repeat(20), ")".repeat(20));
        assert!(group(jobs(), "and", &deep).is_err());
    }

    proptest::proptest! {
        #[test]
        fn no_filter_panics(name in "[a-z_]{1,12}", text in ".{0,60}") {
            let _ = parsed(&name, &text);
            let _ = group(jobs(), "or", &text);
            let _ = group(jobs(), "or", &format!("({name}.{text})"));
        }
    }
}
