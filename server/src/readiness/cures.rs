//! Cures, so that a rule reads as what it finds.

use events::access::Role;
use events::api::Cure;
use serde_json::Value;

/// Set an engine argument.
pub(super) fn set_arg(key: &str, value: impl Into<Value>, label: impl Into<String>) -> Cure {
    set(&format!("p_engine_args.{key}"), value, label)
}

/// Set a field of the workload.
pub(super) fn set(field: &str, value: impl Into<Value>, label: impl Into<String>) -> Cure {
    Cure::Set { field: field.to_owned(), value: value.into(), label: label.into() }
}

/// Take a field of the workload out.
pub(super) fn unset(field: &str, label: impl Into<String>) -> Cure {
    Cure::Unset { field: field.to_owned(), label: label.into() }
}

/// Go to a page.
pub(super) fn link(href: &str, label: impl Into<String>) -> Cure {
    Cure::Link { href: href.to_owned(), label: label.into() }
}

/// Send a command.
pub(super) fn command(command: &str, args: Value, role: Role, label: impl Into<String>) -> Cure {
    Cure::Command { command: command.to_owned(), args, role, label: label.into() }
}

/// Do something on the host.
pub(super) fn host(line: impl Into<String>, label: impl Into<String>) -> Cure {
    Cure::Host { line: line.into(), label: label.into() }
}

/// Decide something that no button can.
pub(super) fn advice(label: impl Into<String>) -> Cure {
    Cure::Advice { label: label.into() }
}
