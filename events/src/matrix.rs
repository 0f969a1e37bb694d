//! The chips of a scenario matrix, and what they multiply out into.

use serde::{Deserialize, Serialize};

use crate::tools::{DEFAULT_IMAGE_DETAIL, DEFAULT_IMAGE_SIZE, DEFAULT_ROUNDS, ToolCode};
use crate::workload::ScenarioSpec;

/// The chips of the scenario matrix. Axes a tool does not have stay empty.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct ScenarioMatrix {
    /// Requests in flight at once; each value is a row of scenarios. Empty means 1 for image generation and KV cache
    /// offload, and is refused for the other tools.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub p_concurrency: Vec<u32>,
    /// Target prompt lengths, tokens.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub p_input_sequence_length: Vec<u32>,
    /// Target answer lengths, tokens.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub p_output_sequence_length: Vec<u32>,
    /// Turns of each conversation; empty means 25.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub p_num_rounds: Vec<u32>,
    /// Images in each request; empty means 1.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub p_num_images_batch: Vec<u32>,
    /// Sizes of generated images, `WIDTHxHEIGHT`; empty means 1024x1024.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub p_image_size: Vec<String>,
    /// Fidelity of the images that are sent, `low` or `high`; empty means high.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub p_image_detail: Vec<String>,
    /// Requests a scenario; absent means max(200, 10 × concurrency), for image generation max(4, 4 × concurrency).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p_num_requests: Option<u32>,
    /// Hard cap on generated tokens; absent means the output length.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p_max_tokens: Option<u32>,
    /// Whether answers are consumed as a stream; absent means yes, where the tool has the choice.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p_streaming: Option<bool>,
}

impl ScenarioMatrix {
    /// How many scenarios it multiplies out into, without doing so: a few long axes would make millions.
    pub fn size(&self) -> usize {
        let axes = [
            self.p_input_sequence_length.len(),
            self.p_output_sequence_length.len(),
            self.p_num_rounds.len(),
            self.p_num_images_batch.len(),
            self.p_image_size.len(),
            self.p_image_detail.len(),
        ];
        axes.iter()
            .fold(self.p_concurrency.len().max(1), |product, &size| product.saturating_mul(size.max(1)))
    }

    /// The argument that the tool's scenarios have no use for, if one is set.
    pub fn foreign_axis(&self, tool: ToolCode) -> Option<&'static str> {
        let axes = tool.axes();
        let set = [
            ("p_input_sequence_length", !self.p_input_sequence_length.is_empty(), axes.lengths),
            ("p_output_sequence_length", !self.p_output_sequence_length.is_empty(), axes.lengths),
            ("p_max_tokens", self.p_max_tokens.is_some(), axes.max_tokens),
            ("p_num_rounds", !self.p_num_rounds.is_empty(), axes.num_rounds),
            ("p_num_images_batch", !self.p_num_images_batch.is_empty(), axes.num_images_batch),
            ("p_image_size", !self.p_image_size.is_empty(), axes.image_size),
            ("p_image_detail", !self.p_image_detail.is_empty(), axes.image_detail),
            ("p_streaming", self.p_streaming.is_some(), axes.streaming),
        ];
        set.iter().find(|(_, set, known)| *set && !known).map(|(name, ..)| *name)
    }

    /// Rolls the chips out: concurrency varies fastest, then output and input length, then the tool's own axes.
    /// The order is the order in which a run executes them.
    pub fn roll_out(&self, tool: ToolCode) -> Vec<ScenarioSpec> {
        let axes = tool.axes();
        let lengths = tool.default_lengths();
        let isl = axis(&self.p_input_sequence_length, lengths.map(|(isl, _)| isl));
        let osl = axis(&self.p_output_sequence_length, lengths.map(|(_, osl)| osl));
        let rounds = axis(&self.p_num_rounds, axes.num_rounds.then_some(DEFAULT_ROUNDS));
        let images = axis(&self.p_num_images_batch, axes.num_images_batch.then_some(1));
        let sizes = axis(&self.p_image_size, axes.image_size.then(|| DEFAULT_IMAGE_SIZE.to_owned()));
        let details = axis(&self.p_image_detail, axes.image_detail.then(|| DEFAULT_IMAGE_DETAIL.to_owned()));
        let base = ScenarioSpec {
            max_tokens: self.p_max_tokens,
            streaming: axes.streaming.then(|| self.p_streaming.unwrap_or(true)),
            ..ScenarioSpec::default()
        };
        let mut scenarios = vec![base];
        // The slowest axis first.
        scenarios = multiply(scenarios, &details, |scenario, value| scenario.image_detail = value);
        scenarios = multiply(scenarios, &sizes, |scenario, value| scenario.image_size = value);
        scenarios = multiply(scenarios, &images, |scenario, value| scenario.num_images_batch = value);
        scenarios = multiply(scenarios, &rounds, |scenario, value| scenario.num_rounds = value);
        scenarios = multiply(scenarios, &isl, |scenario, value| scenario.input_sequence_length = value);
        scenarios = multiply(scenarios, &osl, |scenario, value| scenario.output_sequence_length = value);
        let concurrency = match tool.default_concurrency() {
            Some(default) if self.p_concurrency.is_empty() => vec![default],
            _ => self.p_concurrency.clone(),
        };
        multiply(scenarios, &concurrency, |scenario, concurrency| {
            scenario.concurrency = concurrency;
            scenario.num_requests =
                self.p_num_requests.unwrap_or_else(|| tool.default_num_requests(concurrency));
        })
    }
}

/// The values of an axis; where none is chosen, its default alone.
fn axis<T: Clone>(values: &[T], default: Option<T>) -> Vec<Option<T>> {
    if values.is_empty() { vec![default] } else { values.iter().cloned().map(Some).collect() }
}

fn multiply<T: Clone>(
    scenarios: Vec<ScenarioSpec>,
    values: &[T],
    set: impl Fn(&mut ScenarioSpec, T),
) -> Vec<ScenarioSpec> {
    let with = |scenario: &ScenarioSpec, value: &T| {
        let mut scenario = scenario.clone();
        set(&mut scenario, value.clone());
        scenario
    };
    scenarios.iter().flat_map(|scenario| values.iter().map(move |value| with(scenario, value))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn codes(matrix: &ScenarioMatrix, tool: ToolCode) -> Vec<String> {
        assert_eq!(matrix.foreign_axis(tool), None);
        let scenarios = matrix.roll_out(tool);
        assert_eq!(scenarios.len(), matrix.size());
        scenarios.iter().map(ScenarioSpec::code).collect()
    }

    #[test]
    fn text_chips_multiply_out_with_concurrency_fastest() {
        let matrix = ScenarioMatrix {
            p_concurrency: vec![1, 8],
            p_input_sequence_length: vec![512, 2048],
            p_output_sequence_length: vec![256],
            ..ScenarioMatrix::default()
        };
        let expected = ["c1-isl512-osl256", "c8-isl512-osl256", "c1-isl2048-osl256", "c8-isl2048-osl256"];
        assert_eq!(codes(&matrix, ToolCode::MetrumbenchLlm), expected);
    }

    #[test]
    fn each_tool_has_axes_of_its_own() {
        let matrix = |change: fn(&mut ScenarioMatrix)| {
            let mut matrix = ScenarioMatrix { p_concurrency: vec![4], ..ScenarioMatrix::default() };
            change(&mut matrix);
            matrix
        };
        let vlm = matrix(|m| {
            m.p_output_sequence_length = vec![64];
            m.p_image_detail = vec!["low".into(), "high".into()];
            m.p_num_images_batch = vec![1, 2];
        });
        assert_eq!(
            codes(&vlm, ToolCode::MetrumbenchVlm),
            ["c4-osl64-low", "c4-osl64-n2-low", "c4-osl64-high", "c4-osl64-n2-high"]
        );
        assert_eq!(codes(&matrix(|_| ()), ToolCode::MetrumbenchAsr), ["c4"]);
        assert_eq!(codes(&matrix(|_| ()), ToolCode::MetrumbenchImagegen), ["c4-1024x1024"]);
        let imagegen = matrix(|m| m.p_image_size = vec!["512x512".into(), "1024x768".into()]);
        assert_eq!(codes(&imagegen, ToolCode::MetrumbenchImagegen), ["c4-512x512", "c4-1024x768"]);
        assert_eq!(codes(&matrix(|_| ()), ToolCode::KvCacheOffload), ["c4-isl2048-osl256-r25"]);
        assert_eq!(codes(&matrix(|_| ()), ToolCode::Inferencex), ["c4-isl1024-osl128"]);
        let whole = matrix(|m| m.p_streaming = Some(false));
        assert_eq!(codes(&whole, ToolCode::GenaiPerf), ["c4-isl1024-osl128-nostream"]);
    }

    #[test]
    fn images_and_conversations_come_one_at_a_time_unless_more_are_asked_for() {
        let unset = ScenarioMatrix::default();
        assert_eq!(codes(&unset, ToolCode::MetrumbenchImagegen), ["c1-1024x1024"]);
        assert_eq!(codes(&unset, ToolCode::KvCacheOffload), ["c1-isl2048-osl256-r25"]);
        assert!(unset.roll_out(ToolCode::MetrumbenchLlm).is_empty(), "what is measured has to be said");
    }

    #[test]
    fn an_axis_of_another_tool_is_named() {
        let matrix =
            ScenarioMatrix { p_concurrency: vec![1], p_streaming: Some(true), ..ScenarioMatrix::default() };
        assert_eq!(matrix.foreign_axis(ToolCode::MetrumbenchLlm), None);
        assert_eq!(matrix.foreign_axis(ToolCode::MetrumbenchAsr), Some("p_streaming"));
        // It would be asked for in vain: this tool holds answers to their length.
        let capped = ScenarioMatrix { p_max_tokens: Some(64), ..ScenarioMatrix::default() };
        assert_eq!(capped.foreign_axis(ToolCode::GenaiPerf), Some("p_max_tokens"));
        assert_eq!(capped.foreign_axis(ToolCode::MetrumbenchLlm), None);
    }

    #[test]
    fn request_counts_follow_tool_and_concurrency_unless_set() {
        let mut matrix = ScenarioMatrix { p_concurrency: vec![1, 64], ..ScenarioMatrix::default() };
        let requests = |matrix: &ScenarioMatrix, tool| -> Vec<u32> {
            matrix.roll_out(tool).iter().map(|scenario| scenario.num_requests).collect()
        };
        assert_eq!(requests(&matrix, ToolCode::MetrumbenchLlm), [200, 640]);
        assert_eq!(requests(&matrix, ToolCode::MetrumbenchImagegen), [4, 256]);
        matrix.p_num_requests = Some(10);
        assert_eq!(requests(&matrix, ToolCode::MetrumbenchLlm), [10, 10]);
    }
}
