//! Scenarios: one traffic shape applied to a workload.

use events::Event;
use events::envelope::Recorded;
use events::tools::{FEWEST_ROUNDS, IMAGE_DETAILS, image_size};
use events::workload::{ScenarioDefined, ScenarioSpec};

use super::{Aggregate, LoadError, Refusal, decode, wrong_beginning};

/// The most requests in flight a scenario may ask for.
pub const MAX_CONCURRENCY: u32 = 65_536;
/// The longest sequence a scenario may ask for, tokens.
pub const MAX_SEQUENCE: u32 = 10_000_000;
/// The most turns a conversation may have.
pub const MAX_ROUNDS: u32 = 10_000;
/// The most images a request may carry or ask for: what the load generators take.
pub const MAX_IMAGES: u32 = 64;
/// The most requests a scenario may send.
pub const MAX_REQUESTS: u32 = 10_000_000;

/// A scenario as its stream's events made it.
#[derive(Debug, Clone, PartialEq)]
pub struct Scenario {
    /// The traffic shape.
    pub spec: ScenarioSpec,
    /// The version of its stream.
    pub version: i64,
}

impl Aggregate for Scenario {
    fn begin(first: &Recorded) -> Result<Self, LoadError> {
        let Event::ScenarioDefined(defined) = decode(first)? else {
            return Err(wrong_beginning(first, "scenario", "scenario.defined"));
        };
        Ok(Self { spec: defined.spec, version: 1 })
    }

    fn follow(&mut self, _: &Recorded) -> Result<(), LoadError> {
        self.version += 1;
        Ok(())
    }
}

impl Scenario {
    /// A person defines a scenario.
    ///
    /// # Errors
    /// `bad_scenario` names the value that is out of range.
    pub fn define(spec: &ScenarioSpec) -> Result<Vec<Event>, Refusal> {
        check("concurrency", spec.concurrency, MAX_CONCURRENCY)?;
        check("num_requests", spec.num_requests, MAX_REQUESTS)?;
        for (axis, value) in [
            ("input_sequence_length", spec.input_sequence_length),
            ("output_sequence_length", spec.output_sequence_length),
            ("max_tokens", spec.max_tokens),
        ] {
            if let Some(value) = value {
                check(axis, value, MAX_SEQUENCE)?;
            }
        }
        if let Some(images) = spec.num_images_batch {
            check("num_images_batch", images, MAX_IMAGES)?;
        }
        if let Some(rounds) = spec.num_rounds {
            check("num_rounds", rounds, MAX_ROUNDS)?;
            if rounds < FEWEST_ROUNDS {
                let message = format!("num_rounds is {rounds}; it must be at least {FEWEST_ROUNDS}");
                return Err(Refusal::invalid("bad_scenario", message)
                    .because("the replay drops conversations of fewer rounds and would send nothing")
                    .hint(format!("choose p_num_rounds from {FEWEST_ROUNDS}")));
            }
        }
        if let Some(size) = spec.image_size.as_ref().filter(|size| image_size(size).is_none()) {
            let shown: String = size.chars().take(40).collect();
            let message = format!("image_size is {shown:?}; it must be WIDTHxHEIGHT, each 1 to 16384 pixels");
            return Err(Refusal::invalid("bad_scenario", message).hint("for example 1024x1024"));
        }
        if let Some(detail) =
            spec.image_detail.as_ref().filter(|detail| !IMAGE_DETAILS.contains(&detail.as_str()))
        {
            let shown: String = detail.chars().take(40).collect();
            return Err(Refusal::invalid("bad_scenario", format!("image_detail is {shown:?}"))
                .hint("it is low or high; there is no other"));
        }
        Ok(vec![Event::ScenarioDefined(ScenarioDefined { spec: spec.clone() })])
    }
}

fn check(axis: &str, value: u32, max: u32) -> Result<(), Refusal> {
    if (1..=max).contains(&value) {
        return Ok(());
    }
    Err(Refusal::invalid("bad_scenario", format!("{axis} is {value}; it must be between 1 and {max}")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::testing;

    #[test]
    fn zero_requests_are_refused_by_name() {
        let spec = ScenarioSpec { num_requests: 0, ..testing::scenario() };
        assert!(Scenario::define(&spec).unwrap_err().message.contains("num_requests"));
    }

    #[test]
    fn what_no_tool_can_send_is_refused() {
        let spec = testing::scenario;
        for bad in [
            ScenarioSpec { num_rounds: Some(4), ..spec() },
            ScenarioSpec { num_rounds: Some(10_001), ..spec() },
            ScenarioSpec { num_images_batch: Some(0), ..spec() },
            ScenarioSpec { num_images_batch: Some(65), ..spec() },
            ScenarioSpec { image_size: Some("big".into()), ..spec() },
            ScenarioSpec { image_detail: Some("medium".into()), ..spec() },
        ] {
            assert_eq!(Scenario::define(&bad).unwrap_err().code, "bad_scenario", "{bad:?}");
        }
        let good = ScenarioSpec {
            num_rounds: Some(5),
            num_images_batch: Some(64),
            image_size: Some("512x768".into()),
            image_detail: Some("low".into()),
            ..spec()
        };
        assert!(Scenario::define(&good).is_ok());
    }

    #[test]
    fn an_ordinary_scenario_is_defined() {
        assert_eq!(Scenario::define(&testing::scenario()).unwrap().len(), 1);
    }
}
