//! Templates: argv elements with named placeholders.

use std::collections::BTreeMap;

use crate::domain::Refusal;

/// The placeholders that the agent fills, each inside its own element. A closed list: everything else is resolved here.
pub const AGENT_PLACEHOLDERS: &[&str] = &[
    "agent.log_dir",
    "agent.work_dir",
    "agent.python",
    "agent.port",
    "agent.gpus",
    "agent.model",
    "agent.base_url",
    "agent.progress",
    "agent.data_log",
    "agent.request_log",
    "agent.endpoints",
    "agent.prompts",
    "agent.ground_truth",
];

/// Placeholders that the control plane fills.
const OWN_PLACEHOLDERS: &[&str] = &[
    "concurrency",
    "num_requests",
    "scenario_code",
    "streaming_flag",
    "model",
    "input_sequence_length",
    "output_sequence_length",
    "num_rounds",
    "model_code",
    "served_model_name",
    "tokenizer",
];

/// The longest value a placeholder or a flag may take, bytes.
pub(super) const MAX_VALUE: usize = 4096;

#[derive(Debug, Clone)]
struct Filling {
    text: String,
    /// Whether a person had a hand in it: then it may not look like an option.
    user: bool,
}

/// What placeholders are filled with.
#[derive(Debug, Clone, Default)]
pub(super) struct Values(BTreeMap<&'static str, Filling>);

impl Values {
    /// A value that the control plane made.
    pub(super) fn own(&mut self, name: &'static str, value: impl ToString) {
        self.0.insert(name, Filling { text: value.to_string(), user: false });
    }

    /// A value that a person had a hand in.
    pub(super) fn user(&mut self, name: &'static str, value: &str) {
        self.0.insert(name, Filling { text: value.to_owned(), user: true });
    }
}

/// A piece of an element.
enum Piece<'a> {
    Text(&'a str),
    Placeholder(&'a str),
}

/// Splits an element into text and placeholders.
fn pieces(element: &str) -> Result<Vec<Piece<'_>>, String> {
    let mut pieces = Vec::new();
    let mut rest = element;
    while let Some(open) = rest.find('{') {
        if open > 0 {
            pieces.push(Piece::Text(&rest[..open]));
        }
        let after = &rest[open + 1..];
        let close = after
            .find('}')
            .ok_or_else(|| format!("{element:?} opens a placeholder and does not close it"))?;
        pieces.push(Piece::Placeholder(&after[..close]));
        rest = &after[close + 1..];
    }
    if rest.contains('}') {
        return Err(format!("{element:?} closes a placeholder that was not opened"));
    }
    if !rest.is_empty() {
        pieces.push(Piece::Text(rest));
    }
    Ok(pieces)
}

/// Fills a template: as many elements come out as went in. `what` is for messages.
///
/// # Errors
/// `unresolved_placeholder` names it; `bad_value` for a value that could pass for an option.
pub(super) fn fill(what: &str, template: &[String], values: &Values) -> Result<Vec<String>, Refusal> {
    template.iter().map(|element| fill_element(what, element, values)).collect()
}

fn fill_element(what: &str, element: &str, values: &Values) -> Result<String, Refusal> {
    let defect = |message: String| {
        Refusal::unready("unresolved_placeholder", format!("{what} cannot be resolved: {message}"))
            .hint("the template in the catalogue is at fault; report it")
    };
    let mut filled = String::new();
    for piece in pieces(element).map_err(defect)? {
        match piece {
            Piece::Text(text) => filled.push_str(text),
            Piece::Placeholder(name) if AGENT_PLACEHOLDERS.contains(&name) => {
                filled.push('{');
                filled.push_str(name);
                filled.push('}');
            }
            Piece::Placeholder(name) => {
                let value = values
                    .0
                    .get(name)
                    .ok_or_else(|| defect(format!("nothing fills {{{name}}} in {element:?}")))?;
                if value.user {
                    check_value(name, &value.text)?;
                    if filled.is_empty() {
                        check_not_option(name, &value.text)?;
                    }
                }
                filled.push_str(&value.text);
            }
        }
    }
    Ok(filled)
}

/// A value of a person's that stands in an element: no control characters, and none of the agent's placeholders.
pub(super) fn check_value(name: &str, value: &str) -> Result<(), Refusal> {
    let bad = |why: String| Refusal::invalid("bad_argument", format!("{name}: {why}"));
    if value.is_empty() || value.len() > MAX_VALUE {
        return Err(bad(format!("a value has 1 to {MAX_VALUE} bytes")));
    }
    if value.chars().any(char::is_control) {
        return Err(bad("a value has no control characters".to_owned()));
    }
    // The agent would try to fill it: a value must stay what the person wrote.
    if let Some(name) = placeholder_in(value) {
        return Err(bad(format!(
            "a value may not hold {{{name}}}: the agent fills placeholders of that form"
        )));
    }
    Ok(())
}

/// The first `{name}` in a value, as the agent would see it. Braces around anything else, such as JSON, are none.
fn placeholder_in(value: &str) -> Option<&str> {
    value.split('{').skip(1).find_map(|after| {
        let (name, _) = after.split_once('}')?;
        let begins = name.chars().next().is_some_and(|c| c.is_ascii_alphabetic() || c == '_');
        let of_a_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-');
        (begins && name.chars().all(of_a_name)).then_some(name)
    })
}

/// A value of a person's that is an element of its own: it may not pass for an option.
pub(super) fn check_not_option(name: &str, value: &str) -> Result<(), Refusal> {
    if value.starts_with('-') {
        return Err(Refusal::invalid(
            "bad_argument",
            format!("{name}: {value:?} begins with '-', like an option"),
        )
        .hint("values of this framework stand alone on the command line and cannot begin with '-'"));
    }
    Ok(())
}

/// Whether a template can be filled at all: for the catalogue, before a run needs it.
///
/// # Errors
/// What is wrong with it.
pub fn check_template(template: &[String]) -> Result<(), String> {
    for (index, element) in template.iter().enumerate() {
        for piece in pieces(element)? {
            let Piece::Placeholder(name) = piece else { continue };
            if !AGENT_PLACEHOLDERS.contains(&name) && !OWN_PLACEHOLDERS.contains(&name) {
                return Err(format!("{element:?} holds {{{name}}}, which nothing fills"));
            }
            if index == 0 && name != "agent.python" {
                return Err(format!("the executable {element:?} may not be chosen by a value"));
            }
        }
    }
    Ok(())
}
