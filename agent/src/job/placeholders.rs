//! Fills the closed list of agent placeholders, each inside its own argv element.
//!
//! A value is put in as it is and never looked at again: it cannot bring a placeholder, split an element or add one.

use std::collections::BTreeMap;

/// Values by placeholder name, without the braces. A value that this host cannot give is the reason why.
pub(super) type Values = BTreeMap<&'static str, Result<String, String>>;

/// Why a command cannot be completed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum FillError {
    /// No such placeholder.
    #[error(
        "the argument {element:?} holds {{{name}}}, which nobody resolved: the command template is at fault"
    )]
    Unresolved { element: String, name: String },
    /// This host has no value for it.
    #[error("{{{name}}} has no value on this host: {why}")]
    NoValue { name: String, why: String },
}

/// Fills every element.
pub(super) fn fill(argv: &[String], values: &Values) -> Result<Vec<String>, FillError> {
    argv.iter().map(|element| fill_element(element, values)).collect()
}

fn fill_element(element: &str, values: &Values) -> Result<String, FillError> {
    let mut filled = String::with_capacity(element.len());
    let mut rest = element;
    while let Some(open) = rest.find('{') {
        filled.push_str(&rest[..open]);
        rest = &rest[open..];
        let Some(name) = placeholder_name(rest) else {
            filled.push('{');
            rest = &rest[1..];
            continue;
        };
        match values.get(name) {
            Some(Ok(value)) => filled.push_str(value),
            Some(Err(why)) => return Err(FillError::NoValue { name: name.to_owned(), why: why.clone() }),
            None => {
                return Err(FillError::Unresolved { element: element.to_owned(), name: name.to_owned() });
            }
        }
        rest = &rest[name.len() + 2..];
    }
    filled.push_str(rest);
    Ok(filled)
}

/// The name in `{name}` at the beginning of the text. Braces around anything else, such as JSON, are no placeholder.
fn placeholder_name(text: &str) -> Option<&str> {
    let (name, _) = text.strip_prefix('{')?.split_once('}')?;
    let of_a_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-');
    let begins = name.chars().next().is_some_and(|c| c.is_ascii_alphabetic() || c == '_');
    (begins && name.chars().all(of_a_name)).then_some(name)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn values() -> Values {
        [
            ("agent.port", Ok("8001".to_owned())),
            ("agent.model", Ok("/m/{agent.port} x.gguf".to_owned())),
            ("agent.python", Err("python3 is not allowed".to_owned())),
        ]
        .into()
    }

    fn filled(element: &str) -> Result<String, FillError> {
        fill_element(element, &values())
    }

    #[test]
    fn a_placeholder_is_filled_inside_its_element() {
        assert_eq!(
            filled("--url=http://127.0.0.1:{agent.port}/v1").unwrap(),
            "--url=http://127.0.0.1:8001/v1"
        );
    }

    #[test]
    fn a_value_is_not_looked_at_again() {
        assert_eq!(filled("--model={agent.model}").unwrap(), "--model=/m/{agent.port} x.gguf");
    }

    #[test]
    fn an_unknown_placeholder_is_an_error() {
        for element in ["{tensor_parallel_size}", "x{agent.nope}y", "{model-code}"] {
            assert!(matches!(filled(element), Err(FillError::Unresolved { .. })), "{element}");
        }
    }

    #[test]
    fn a_placeholder_without_a_value_here_says_why() {
        assert!(filled("{agent.python}").unwrap_err().to_string().contains("not allowed"));
    }

    #[test]
    fn json_is_left_alone() {
        for json in [r#"{"a":{"b":[1]}}"#, "{}", "{ agent.port }", "{", "}{", "{1}"] {
            assert_eq!(filled(json).unwrap(), json);
        }
    }

    proptest! {
        #[test]
        fn no_value_changes_the_number_of_arguments(
            argv in prop::collection::vec(".{0,20}(\\{agent\\.port\\}|\\{agent\\.model\\})?.{0,20}", 0..8),
            port in any::<String>(),
            model in any::<String>(),
        ) {
            let values: Values = [("agent.port", Ok(port)), ("agent.model", Ok(model))].into();
            if let Ok(filled) = fill(&argv, &values) {
                prop_assert_eq!(filled.len(), argv.len());
            }
        }

        #[test]
        fn a_value_stands_in_its_element_as_it_is(value in any::<String>()) {
            let values: Values = [("agent.model", Ok(value.clone()))].into();
            let argv = ["serve".to_owned(), "--model={agent.model}".to_owned(), "--x".to_owned()];
            prop_assert_eq!(fill(&argv, &values).unwrap(), ["serve".to_owned(), format!("--model={value}"), "--x".to_owned()]);
        }
    }
}
