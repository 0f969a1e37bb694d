//! Quotas of organisations: what the operator allows, and how near to it an organisation is.

use std::collections::BTreeMap;

use events::Event;
use events::envelope::Recorded;
use events::quota::{QuotaLevelChanged, QuotaSet, Resource};

use super::{LoadError, Refusal, decode};

/// How much of each resource an organisation uses.
pub type Usage = BTreeMap<Resource, u64>;

/// The levels that an organisation's administrators are told of, percent, and how far below one it must fall to have left it.
const LEVELS: [u8; 2] = [95, 80];
const SLACK: u8 = 5;

/// An organisation's quotas as its stream's events made them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Quota {
    /// The most of each resource; absent means no limit.
    pub limits: BTreeMap<Resource, u64>,
    /// The level reached of each, percent.
    levels: BTreeMap<Resource, u8>,
    /// The version of its stream.
    pub version: i64,
}

impl Quota {
    /// The quotas its stream's events make; none for an empty stream.
    ///
    /// # Errors
    /// An event cannot be read.
    pub fn load(events: &[Recorded]) -> Result<Self, LoadError> {
        let mut quota = Self::default();
        for recorded in events {
            quota.evolve(&decode(recorded)?);
        }
        Ok(quota)
    }

    /// What an event makes of the quotas.
    pub fn evolve(&mut self, event: &Event) {
        self.version += 1;
        match event {
            Event::QuotaSet(set) => {
                for (resource, limit) in &set.quotas {
                    // Near to a new limit is news.
                    self.levels.remove(resource);
                    match limit {
                        Some(limit) => drop(self.limits.insert(*resource, *limit)),
                        None => drop(self.limits.remove(resource)),
                    }
                }
            }
            Event::QuotaLevelChanged(changed) => drop(self.levels.insert(changed.resource, changed.percent)),
            _ => {}
        }
    }

    /// The operator sets quotas; what is not named stays. Nothing to append where nothing changes.
    pub fn set(&self, quotas: &BTreeMap<Resource, Option<u64>>) -> Vec<Event> {
        let changed =
            |(resource, limit): &(&Resource, &Option<u64>)| self.limits.get(resource).copied() != **limit;
        let quotas: BTreeMap<Resource, Option<u64>> =
            quotas.iter().filter(changed).map(|(resource, limit)| (*resource, *limit)).collect();
        if quotas.is_empty() { vec![] } else { vec![Event::QuotaSet(QuotaSet { quotas })] }
    }

    /// Whether an organisation that uses so much may have so much more.
    ///
    /// # Errors
    /// `quota_reached`.
    pub fn check(&self, resource: Resource, usage: &Usage, more: u64) -> Result<(), Refusal> {
        let Some(&limit) = self.limits.get(&resource) else { return Ok(()) };
        let used = usage.get(&resource).copied().unwrap_or(0);
        if used.saturating_add(more) <= limit {
            return Ok(());
        }
        let words = resource.words();
        let message = format!(
            "the organisation uses {used} of the {limit} {words} that its quota allows; this needs {more} more"
        );
        let cure = match resource {
            Resource::Projects => "archive projects that are done with",
            Resource::OpenJobs => "wait until runs are finished, or cancel some",
            Resource::StoredBytes => "leave out what need not be kept",
        };
        Err(Refusal::forbidden("quota_reached", message)
            .hint(format!("{cure}, or ask the operator for a larger quota; GET /api/v_quotas shows them")))
    }

    /// The control plane looks how much is used: the levels that are reached or left.
    pub fn observe(&self, usage: &Usage) -> Vec<Event> {
        let mut events = Vec::new();
        for (&resource, &limit) in &self.limits {
            let used = usage.get(&resource).copied().unwrap_or(0);
            let previous_percent = self.levels.get(&resource).copied().unwrap_or(0);
            let percent = level(used, limit, previous_percent);
            if percent != previous_percent {
                let changed = QuotaLevelChanged { resource, percent, previous_percent, used, limit };
                events.push(Event::QuotaLevelChanged(changed));
            }
        }
        events
    }
}

/// The level of a use. One that was reached is left only well below it, so that nobody is told again and again.
fn level(used: u64, limit: u64, present: u8) -> u8 {
    let percent = match limit {
        0 => 100,
        limit => u128::from(used) * 100 / u128::from(limit),
    };
    let holds = |level: &u8| {
        let least = if *level <= present { level - SLACK } else { *level };
        percent >= u128::from(least)
    };
    LEVELS.into_iter().find(holds).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn quota(limit: Option<u64>) -> Quota {
        let mut quota = Quota::default();
        for event in quota.set(&[(Resource::Projects, limit)].into()) {
            quota.evolve(&event);
        }
        quota
    }

    fn used(projects: u64) -> Usage {
        [(Resource::Projects, projects)].into()
    }

    #[test]
    fn what_fits_is_allowed_and_one_more_is_not() {
        let quota = quota(Some(2));
        assert_eq!(quota.check(Resource::Projects, &used(1), 1), Ok(()));
        let refusal = quota.check(Resource::Projects, &used(2), 1).unwrap_err();
        assert_eq!((refusal.code, refusal.class.status()), ("quota_reached", 403));
        assert!(refusal.message.contains("2 of the 2 projects"), "{}", refusal.message);
        assert_eq!(quota.check(Resource::OpenJobs, &used(9), u64::MAX), Ok(()), "no limit");
    }

    #[test]
    fn a_level_is_told_once_until_it_is_well_left() {
        let mut quota = quota(Some(100));
        let mut told = Vec::new();
        for projects in [79, 80, 85, 79, 80, 95, 94, 96, 89, 76, 74, 80] {
            for event in quota.observe(&used(projects)) {
                quota.evolve(&event);
                let Event::QuotaLevelChanged(changed) = event else { panic!() };
                told.push((projects, changed.previous_percent, changed.percent));
            }
        }
        assert_eq!(told, [(80, 0, 80), (95, 80, 95), (89, 95, 80), (74, 80, 0), (80, 0, 80)]);
    }

    #[test]
    fn a_new_limit_is_news_and_none_is_silence() {
        let mut quota = quota(Some(10));
        for event in quota.observe(&used(10)) {
            quota.evolve(&event);
        }
        assert_eq!(quota.set(&[(Resource::Projects, Some(10))].into()), vec![], "the same");
        for event in quota.set(&[(Resource::Projects, Some(11))].into()) {
            quota.evolve(&event);
        }
        assert_eq!(quota.observe(&used(10)).len(), 1);
        for event in quota.set(&[(Resource::Projects, None)].into()) {
            quota.evolve(&event);
        }
        assert_eq!(quota.observe(&used(10)), vec![]);
    }

    #[test]
    fn a_quota_of_nothing_is_used_up() {
        assert_eq!(level(0, 0, 0), 95);
        assert!(quota(Some(0)).check(Resource::Projects, &used(0), 1).is_err());
    }
}
