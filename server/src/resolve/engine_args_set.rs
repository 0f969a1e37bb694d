//! A named set of engine arguments, as a workload uses it.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use events::catalogue::EngineArgsSetRegistered;
use events::job::EngineArgsSetRef;
use events::workload::WorkloadSpec;
use serde_json::Value;

use crate::domain::Refusal;

/// A set in one of its versions.
#[derive(Debug, Clone, PartialEq)]
pub struct SetInForce {
    /// The organisation that owns it; `_` for the platform's.
    pub org: String,
    /// Its code.
    pub set_code: String,
    /// The version of its stream.
    pub version: i64,
    /// Whether it was archived since.
    pub archived: bool,
    /// What it says.
    pub facts: EngineArgsSetRegistered,
}

impl SetInForce {
    /// What a job records of it.
    pub fn reference(&self) -> EngineArgsSetRef {
        EngineArgsSetRef { org: self.org.clone(), set_code: self.set_code.clone(), version: self.version }
    }

    /// Whether it brings this sidecar.
    pub fn needs(&self, sidecar: &str) -> bool {
        self.facts.companions.iter().any(|companion| companion.framework_code == sidecar)
    }

    /// Its values, those of sidecars under `<sidecar>.<key>`.
    pub fn args(&self) -> BTreeMap<String, Value> {
        let mut args = self.facts.values.clone();
        for companion in &self.facts.companions {
            let named = |(key, value): (&String, &Value)| {
                (format!("{}.{key}", companion.framework_code), value.clone())
            };
            args.extend(companion.values.iter().map(named));
        }
        args
    }

    /// Whether a workload can use it.
    ///
    /// # Errors
    /// `set_of_other_framework`, `framework_version_too_old`, `unsupported_set`.
    pub fn check(&self, workload: &WorkloadSpec) -> Result<(), Refusal> {
        let code = &self.set_code;
        if self.facts.framework_code != workload.framework_code {
            let message = format!(
                "engine args set {code} is for {}, the workload runs {}",
                self.facts.framework_code, workload.framework_code
            );
            return Err(Refusal::invalid("set_of_other_framework", message)
                .hint("choose a set of the workload's framework, or another framework"));
        }
        if let Some(flags) = Some(&self.facts.unsupported_flags).filter(|flags| !flags.is_empty()) {
            let message =
                format!("engine args set {code} uses {}, which this version does not know", flags.join(", "));
            return Err(Refusal::invalid("unsupported_set", message)
                .hint("clone it without them: a clone holds only what the framework version knows"));
        }
        let oldest = self.facts.min_framework_version.as_deref();
        if let Some(oldest) = oldest.filter(|oldest| older(&workload.framework_version, oldest)) {
            let message = format!(
                "engine args set {code} needs {} {oldest} or newer, the workload runs {}",
                workload.framework_code, workload.framework_version
            );
            return Err(Refusal::invalid("framework_version_too_old", message)
                .hint(format!("choose version {}", self.facts.framework_version)));
        }
        Ok(())
    }
}

/// Whether one version is older than another, by the numbers in them. Versions without numbers, such as `nightly`,
/// cannot be compared and are never older.
pub fn older(version: &str, than: &str) -> bool {
    match (numbers(version), numbers(than)) {
        (Some(version), Some(than)) => version.cmp(&than) == Ordering::Less,
        _ => false,
    }
}

fn numbers(version: &str) -> Option<Vec<u64>> {
    let numbers: Vec<u64> =
        version.trim_start_matches('v').split(['.', '-', '+']).map_while(|part| part.parse().ok()).collect();
    (!numbers.is_empty()).then_some(numbers)
}

#[cfg(test)]
mod tests {
    use super::older;

    #[test]
    fn versions_are_compared_by_their_numbers() {
        assert!(older("0.9.1", "0.12.0"));
        assert!(older("0.12", "0.12.1"));
        assert!(!older("0.28.0", "0.28.0"));
        assert!(!older("0.5.15.post1", "0.5.6"));
        assert!(!older("nightly", "0.5.6") && !older("0.5.6", "nightly"));
    }
}
