//! What administrators approved: exact values of arguments that load code or read paths.

use std::collections::BTreeMap;

use events::Event;
use events::catalogue::{ApprovalGranted, ApprovalRevoked};
use events::envelope::Recorded;
use serde_json::Value;

use super::{LoadError, Refusal, decode};

/// The most arguments one approval may name.
const MAX_ARGS: usize = 50;
/// The longest reason, characters.
const MAX_REASON: usize = 1000;

/// What is approved for one program and one model.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Approvals {
    /// The arguments: key → the value that is approved.
    pub args: BTreeMap<String, Value>,
    /// The version of its stream; 0 where there is none.
    pub version: i64,
}

impl Approvals {
    /// What the stream's events make of it.
    ///
    /// # Errors
    /// An event cannot be read.
    pub fn load(events: &[Recorded]) -> Result<Self, LoadError> {
        let mut approvals = Self::default();
        for recorded in events {
            approvals.version = recorded.version;
            match decode(recorded)? {
                Event::ApprovalGranted(granted) => approvals.args.extend(granted.args),
                Event::ApprovalRevoked(revoked) => {
                    for key in &revoked.keys {
                        approvals.args.remove(key);
                    }
                }
                _ => {}
            }
        }
        Ok(approvals)
    }

    /// Whether this very value is approved.
    pub fn covers(&self, key: &str, value: &Value) -> bool {
        self.args.get(key) == Some(value)
    }

    /// An administrator approves values. Nothing to append where they are approved.
    ///
    /// # Errors
    /// `no_args`, `too_many_args`, `bad_argument`, `bad_reason`.
    pub fn grant(&self, args: &BTreeMap<String, Value>, reason: Option<&str>) -> Result<Vec<Event>, Refusal> {
        check_count(args.len())?;
        if let Some(key) =
            args.iter().find(|(key, value)| value.is_null() || !is_key(key)).map(|(key, _)| key)
        {
            let shown: String = key.chars().take(100).collect();
            return Err(Refusal::invalid("bad_argument", format!("{shown:?} is no argument with a value"))
                .hint("name the argument's key, such as trust_remote_code, and the value that is approved"));
        }
        let reason = check_reason(reason)?;
        if args.iter().all(|(key, value)| self.covers(key, value)) {
            return Ok(vec![]);
        }
        Ok(vec![Event::ApprovalGranted(ApprovalGranted { args: args.clone(), reason })])
    }

    /// An administrator takes approvals back. Nothing to append where there are none.
    ///
    /// # Errors
    /// `no_args`, `too_many_args`, `bad_reason`.
    pub fn revoke(&self, keys: &[String], reason: Option<&str>) -> Result<Vec<Event>, Refusal> {
        check_count(keys.len())?;
        let reason = check_reason(reason)?;
        let keys: Vec<String> = keys.iter().filter(|key| self.args.contains_key(*key)).cloned().collect();
        if keys.is_empty() {
            return Ok(vec![]);
        }
        Ok(vec![Event::ApprovalRevoked(ApprovalRevoked { keys, reason })])
    }
}

fn is_key(key: &str) -> bool {
    !key.is_empty() && key.len() <= 100 && key.chars().all(|c| c.is_ascii_alphanumeric() || "_-.".contains(c))
}

fn check_count(count: usize) -> Result<(), Refusal> {
    match count {
        0 => Err(Refusal::invalid("no_args", "no argument is named")
            .hint("name at least one argument, such as trust_remote_code")),
        1..=MAX_ARGS => Ok(()),
        _ => Err(Refusal::invalid("too_many_args", format!("at most {MAX_ARGS} arguments at once"))),
    }
}

fn check_reason(reason: Option<&str>) -> Result<Option<String>, Refusal> {
    let Some(reason) = reason.map(str::trim).filter(|reason| !reason.is_empty()) else { return Ok(None) };
    if reason.chars().any(char::is_control) || reason.chars().count() > MAX_REASON {
        return Err(Refusal::invalid(
            "bad_reason",
            format!("a reason has at most {MAX_REASON} characters, and no control characters"),
        ));
    }
    Ok(Some(reason.to_owned()))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn approved() -> Approvals {
        Approvals { args: [("trust_remote_code".to_owned(), json!(true))].into(), version: 1 }
    }

    #[test]
    fn only_the_very_value_is_approved() {
        assert!(approved().covers("trust_remote_code", &json!(true)));
        assert!(!approved().covers("trust_remote_code", &json!("true")));
        assert!(!approved().covers("chat_template", &json!("/t.jinja")));
    }

    #[test]
    fn what_is_approved_already_is_no_event() {
        assert!(approved().grant(&approved().args, None).unwrap().is_empty());
        let other = [("chat_template".to_owned(), json!("a.jinja"))].into();
        assert_eq!(approved().grant(&other, Some("read it")).unwrap().len(), 1);
        assert!(approved().revoke(&["chat_template".into()], None).unwrap().is_empty());
        assert_eq!(approved().revoke(&["trust_remote_code".into()], None).unwrap().len(), 1);
    }

    #[test]
    fn nothing_and_nonsense_are_not_approved() {
        assert_eq!(approved().grant(&BTreeMap::new(), None).unwrap_err().code, "no_args");
        let null = [("a".to_owned(), Value::Null)].into();
        assert_eq!(approved().grant(&null, None).unwrap_err().code, "bad_argument");
        let odd = [("a b".to_owned(), json!(1))].into();
        assert_eq!(approved().grant(&odd, None).unwrap_err().code, "bad_argument");
        let args = [("a".to_owned(), json!(1))].into();
        assert_eq!(approved().grant(&args, Some("a\u{7}")).unwrap_err().code, "bad_reason");
    }
}
