//! The benchmark tools a workload can name, and which axes the scenarios of each have. One closed list: the control
//! plane judges matrices by it, and the page shows no chip that a tool has no use for.

use std::fmt;

use crate::prompt_source::PromptSourceType;

/// A kind of workload: what a model is asked for. It decides which tools can measure it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum WorkloadKind {
    /// Text in, text out.
    TextGeneration,
    /// Images and text in, text out.
    VisionLanguage,
    /// Audio in, text out.
    SpeechToText,
    /// Text in, images out.
    ImageGeneration,
    /// How good the answers are.
    Quality,
    /// Conversations of many turns, whose cache is moved out of the accelerator and back.
    KvCacheOffload,
}

impl WorkloadKind {
    /// Every kind.
    pub const ALL: &[Self] = &[
        Self::TextGeneration,
        Self::VisionLanguage,
        Self::SpeechToText,
        Self::ImageGeneration,
        Self::Quality,
        Self::KvCacheOffload,
    ];

    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::TextGeneration => "Text generation",
            Self::VisionLanguage => "Vision-language",
            Self::SpeechToText => "Speech to text",
            Self::ImageGeneration => "Image generation",
            Self::Quality => "Quality",
            Self::KvCacheOffload => "KV cache offload",
        }
    }

    /// The tools that measure it, the usual one first.
    pub fn tools(self) -> impl Iterator<Item = ToolCode> {
        ToolCode::ALL.iter().copied().filter(move |tool| tool.kind() == self)
    }
}

/// The framework whose answers are simulated.
pub const FRAMEWORK_REFSERVER: &str = "refserver";

/// A benchmark client, by its `tool_code`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ToolCode {
    /// `metrumbench-llm`: text, real prompts.
    MetrumbenchLlm,
    /// `metrumbench-vlm`: images and text.
    MetrumbenchVlm,
    /// `metrumbench-asr`: transcription.
    MetrumbenchAsr,
    /// `metrumbench-imagegen`: image generation.
    MetrumbenchImagegen,
    /// `inferencex`: text, synthetic tokens, figures per GPU.
    Inferencex,
    /// `genai-perf`: text, synthetic tokens.
    GenaiPerf,
    /// `kv-cache-offload`: conversations of many turns, replayed.
    KvCacheOffload,
    /// `kyai`: how good answers are, judged.
    Kyai,
}

/// The axes that scenarios of a tool have besides the concurrency.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Axes {
    /// Input and output lengths, tokens.
    pub lengths: bool,
    /// A cap on the tokens of an answer beside its wanted length.
    pub max_tokens: bool,
    /// Streamed or whole answers.
    pub streaming: bool,
    /// Images in each request.
    pub num_images_batch: bool,
    /// `low` or `high`.
    pub image_detail: bool,
    /// `WIDTHxHEIGHT`.
    pub image_size: bool,
    /// Turns of each conversation.
    pub num_rounds: bool,
}

/// The fewest rounds a conversation may have: shorter ones are dropped by the replay, which would then send nothing.
pub const FEWEST_ROUNDS: u32 = 5;
/// Rounds of a conversation where the scenario does not say.
pub const DEFAULT_ROUNDS: u32 = 25;
/// The image size where the scenario does not say.
pub const DEFAULT_IMAGE_SIZE: &str = "1024x1024";
/// The image detail where the scenario does not say: full fidelity.
pub const DEFAULT_IMAGE_DETAIL: &str = "high";
/// The only image details there are.
pub const IMAGE_DETAILS: &[&str] = &["low", "high"];

/// Arguments that a scenario sets and a workload may not: the scenario's code would otherwise name another load.
pub const SCENARIO_AXES: &[&str] = &[
    "concurrency",
    "num_requests",
    "input_sequence_length",
    "output_sequence_length",
    "max_tokens",
    "streaming",
    "num_rounds",
    "num_images_batch",
    "image_size",
    "image_detail",
];

impl ToolCode {
    /// Every tool.
    pub const ALL: &[Self] = &[
        Self::MetrumbenchLlm,
        Self::MetrumbenchVlm,
        Self::MetrumbenchAsr,
        Self::MetrumbenchImagegen,
        Self::Inferencex,
        Self::GenaiPerf,
        Self::KvCacheOffload,
        Self::Kyai,
    ];

    /// Its code, as workloads, events, SQL and the API spell it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::MetrumbenchLlm => "metrumbench-llm",
            Self::MetrumbenchVlm => "metrumbench-vlm",
            Self::MetrumbenchAsr => "metrumbench-asr",
            Self::MetrumbenchImagegen => "metrumbench-imagegen",
            Self::Inferencex => "inferencex",
            Self::GenaiPerf => "genai-perf",
            Self::KvCacheOffload => "kv-cache-offload",
            Self::Kyai => "kyai",
        }
    }

    /// The tool of a code; nothing for one that is not known.
    pub fn of(code: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|tool| tool.as_str() == code)
    }

    /// The tool of our own that measures models of a modality.
    pub fn of_modality(modality: &str) -> Option<Self> {
        match modality {
            "llm" => Some(Self::MetrumbenchLlm),
            "vlm" => Some(Self::MetrumbenchVlm),
            "asr" => Some(Self::MetrumbenchAsr),
            "imagegen" => Some(Self::MetrumbenchImagegen),
            _ => None,
        }
    }

    /// What it measures.
    pub const fn kind(self) -> WorkloadKind {
        match self {
            Self::MetrumbenchLlm | Self::Inferencex | Self::GenaiPerf => WorkloadKind::TextGeneration,
            Self::MetrumbenchVlm => WorkloadKind::VisionLanguage,
            Self::MetrumbenchAsr => WorkloadKind::SpeechToText,
            Self::MetrumbenchImagegen => WorkloadKind::ImageGeneration,
            Self::Kyai => WorkloadKind::Quality,
            Self::KvCacheOffload => WorkloadKind::KvCacheOffload,
        }
    }

    /// The type of prompt source it reads; nothing for a tool that makes its inputs up.
    pub const fn prompt_source_type(self) -> Option<PromptSourceType> {
        match self {
            Self::MetrumbenchLlm => Some(PromptSourceType::PromptLibrary),
            Self::MetrumbenchVlm => Some(PromptSourceType::MetrumbenchVlmSnapshot),
            Self::MetrumbenchAsr => Some(PromptSourceType::MetrumbenchAsrSnapshot),
            Self::MetrumbenchImagegen => Some(PromptSourceType::MetrumbenchImagegenSnapshot),
            Self::Kyai => Some(PromptSourceType::KyaiDataset),
            Self::Inferencex | Self::GenaiPerf | Self::KvCacheOffload => None,
        }
    }

    /// The axes its scenarios have.
    pub const fn axes(self) -> Axes {
        const NONE: Axes = Axes {
            lengths: false,
            max_tokens: false,
            streaming: false,
            num_images_batch: false,
            image_detail: false,
            image_size: false,
            num_rounds: false,
        };
        match self {
            Self::MetrumbenchLlm => Axes { lengths: true, max_tokens: true, streaming: true, ..NONE },
            // It holds answers to exactly the length that is wanted.
            Self::GenaiPerf => Axes { lengths: true, streaming: true, ..NONE },
            Self::MetrumbenchVlm => Axes {
                lengths: true,
                max_tokens: true,
                streaming: true,
                num_images_batch: true,
                image_detail: true,
                ..NONE
            },
            Self::MetrumbenchImagegen => Axes { num_images_batch: true, image_size: true, ..NONE },
            Self::Inferencex => Axes { lengths: true, ..NONE },
            Self::KvCacheOffload => Axes { lengths: true, num_rounds: true, ..NONE },
            Self::MetrumbenchAsr | Self::Kyai => NONE,
        }
    }

    /// Whether an argument belongs to the tool's scenarios, so that a workload may not set it. KYAI's cap on an answer is
    /// the workload's: how good answers are does not depend on a length that a scenario asks for.
    pub fn is_of_scenarios(self, key: &str) -> bool {
        SCENARIO_AXES.contains(&key) && (key != "max_tokens" || self != Self::Kyai)
    }

    /// Requests of a scenario that sets none: max(200, 10 × concurrency); image generation, whose requests take
    /// seconds each: max(4, 4 × concurrency).
    pub fn default_num_requests(self, concurrency: u32) -> u32 {
        match self {
            Self::MetrumbenchImagegen => concurrency.saturating_mul(4).max(4),
            _ => concurrency.saturating_mul(10).max(200),
        }
    }

    /// Input and output lengths of a scenario that sets none, for the tools that cannot do without.
    pub const fn default_lengths(self) -> Option<(u32, u32)> {
        match self {
            Self::KvCacheOffload => Some((2048, 256)),
            Self::Inferencex | Self::GenaiPerf => Some((1024, 128)),
            _ => None,
        }
    }

    /// Requests in flight of a scenario that sets none; nothing for tools whose load has to be said.
    pub const fn default_concurrency(self) -> Option<u32> {
        match self {
            Self::MetrumbenchImagegen | Self::KvCacheOffload => Some(1),
            _ => None,
        }
    }

    /// Whether the models it measures can be judged by their answers too: by KYAI.
    pub const fn can_be_judged(self) -> bool {
        matches!(self.kind(), WorkloadKind::TextGeneration | WorkloadKind::KvCacheOffload)
    }

    /// Whether answers are text whose tokens a server counts.
    pub const fn counts_tokens(self) -> bool {
        !matches!(self, Self::MetrumbenchAsr | Self::MetrumbenchImagegen | Self::Kyai)
    }
}

impl fmt::Display for ToolCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Width and height of `WIDTHxHEIGHT`, each 1 to 16384 pixels; nothing for what is no size.
pub fn image_size(text: &str) -> Option<(u32, u32)> {
    let (width, height) = text.split_once('x')?;
    let pixels = |text: &str| {
        let digits = (1..=5).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_digit());
        // One spelling a size: `0512` would be another scenario.
        let plain = digits && !text.starts_with('0');
        plain.then(|| text.parse().ok()).flatten().filter(|n: &u32| (1..=16_384).contains(n))
    };
    Some((pixels(width)?, pixels(height)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_code_names_its_tool() {
        for &tool in ToolCode::ALL {
            assert_eq!(ToolCode::of(tool.as_str()), Some(tool));
        }
        assert_eq!(ToolCode::of("wrk"), None);
    }

    #[test]
    fn every_kind_has_a_tool_and_every_tool_one_kind() {
        let usual: Vec<ToolCode> =
            WorkloadKind::ALL.iter().map(|kind| kind.tools().next().expect("a tool")).collect();
        assert_eq!(usual[0], ToolCode::MetrumbenchLlm);
        let all: usize = WorkloadKind::ALL.iter().map(|kind| kind.tools().count()).sum();
        assert_eq!(all, ToolCode::ALL.len());
    }

    #[test]
    fn unset_request_counts_follow_the_concurrency() {
        let llm = ToolCode::MetrumbenchLlm;
        assert_eq!((llm.default_num_requests(1), llm.default_num_requests(64)), (200, 640));
        let imagegen = ToolCode::MetrumbenchImagegen;
        assert_eq!((imagegen.default_num_requests(1), imagegen.default_num_requests(8)), (4, 32));
        assert_eq!(llm.default_num_requests(u32::MAX), u32::MAX);
    }

    #[test]
    fn a_size_has_one_spelling() {
        assert_eq!(image_size("1024x768"), Some((1024, 768)));
        for bad in ["", "x", "1024", "0x5", "01x5", "1024X768", "1024x768x2", "-1x5", "99999x1", "1e3x5"] {
            assert_eq!(image_size(bad), None, "{bad}");
        }
    }
}
