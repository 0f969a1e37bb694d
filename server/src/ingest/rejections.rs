//! An audit trail of refused reports, limited in rate so that bad input cannot fill the log.

use events::Timestamp;

use crate::auth::throttle::Throttle;

/// How many refusals of an agent are recorded: 60 a minute.
#[derive(Debug)]
pub struct Rejections(Throttle<(String, String)>);

impl Default for Rejections {
    fn default() -> Self {
        Self(Throttle::new(60, 60))
    }
}

impl Rejections {
    /// Whether one more refusal of this agent is to be recorded.
    pub fn may_record(&self, org: &str, agent: &str, now: Timestamp) -> bool {
        self.0.take((org.to_owned(), agent.to_owned()), now).is_ok()
    }
}
