//! The rows of the metric catalogue for figures that have statistics: distributions and counts.

use crate::metrics::Direction::{Higher, Lower, Neutral};
use crate::metrics_table::Entry;

/// Distributions of durations: stem, label, direction, definition.
pub(crate) const DURATIONS: &[Entry] = &[
    Entry(
        "response_time",
        "Response time",
        "ms",
        Lower,
        "From just before the request is sent until the answer is complete.",
    ),
    Entry(
        "ttft",
        "TTFT",
        "ms",
        Lower,
        "Time to first token: from request start to the first non-empty visible content or tool call. Not streamed: equals the response time.",
    ),
    Entry(
        "first_token",
        "First token of any kind",
        "ms",
        Lower,
        "From request start to the first non-empty output, reasoning included.",
    ),
    Entry(
        "first_reasoning",
        "First reasoning token",
        "ms",
        Lower,
        "From request start to the first non-empty reasoning output.",
    ),
    Entry(
        "tpot",
        "TPOT",
        "ms",
        Lower,
        "Time per output token: (response time − TTFT) ÷ completion tokens. Null when not streamed.",
    ),
    Entry(
        "tpot_excl_first",
        "TPOT without the first",
        "ms",
        Lower,
        "(last output − first output) ÷ (completion tokens − 1). Null when not streamed.",
    ),
    Entry(
        "inter_chunk",
        "Gap between chunks",
        "ms",
        Lower,
        "Gaps between consecutive chunks that carried output, pooled over requests.",
    ),
    Entry(
        "schedule_delay",
        "Schedule delay",
        "ms",
        Lower,
        "Open loop: how long after its scheduled moment a request was sent.",
    ),
    Entry(
        "response_time_from_schedule",
        "Response time from schedule",
        "ms",
        Lower,
        "Open loop: from the scheduled moment until the answer is complete.",
    ),
];

/// Durations besides those of every text run.
pub(crate) const OTHER_DURATIONS: &[Entry] = &[
    Entry(
        "image_processing",
        "Image processing",
        "ms",
        Lower,
        "Loading, resizing and encoding the images of a request, before its clock starts.",
    ),
    Entry(
        "inference_time",
        "Inference time",
        "ms",
        Lower,
        "Processing time the server reports for a transcription; where it reports none, the response time.",
    ),
    Entry(
        "client_loop_lag",
        "Event loop lag",
        "ms",
        Lower,
        "How late the load generator's event loop woke up for a timer.",
    ),
    Entry(
        "client_send_skew",
        "Send skew",
        "ms",
        Lower,
        "From the moment a request could be sent until the load generator began to send it.",
    ),
];

/// Distributions of other quantities than time: stem, label, unit, direction, definition.
pub(crate) const RATIOS: &[Entry] = &[
    Entry(
        "rtf",
        "Real-time factor",
        "",
        Lower,
        "Inference time ÷ audio duration of a transcription; below 1 is faster than real time.",
    ),
    Entry(
        "words_per_second",
        "Words per second",
        "words/s",
        Higher,
        "Words of a transcript ÷ its inference time.",
    ),
    Entry(
        "characters_per_second",
        "Characters per second",
        "chars/s",
        Higher,
        "Characters of a transcript ÷ its inference time.",
    ),
    Entry(
        "wer",
        "Word error rate",
        "%",
        Lower,
        "Substitutions, insertions and deletions ÷ words of the reference; above 100 % with many insertions.",
    ),
    Entry(
        "cer",
        "Character error rate",
        "%",
        Lower,
        "Substitutions, insertions and deletions of characters ÷ characters of the reference.",
    ),
    Entry("image_size_bytes", "Image size", "B", Neutral, "Bytes of a generated image."),
];

/// Counts a request: stem, label, direction, definition.
pub(crate) const COUNTS: &[Entry] = &[
    Entry("prompt_tokens", "Prompt tokens", "tok", Neutral, "Input tokens, from the server's usage only."),
    Entry(
        "completion_tokens",
        "Completion tokens",
        "tok",
        Neutral,
        "Output tokens, from the server's usage only.",
    ),
    Entry(
        "reasoning_tokens",
        "Reasoning tokens",
        "tok",
        Neutral,
        "Output tokens spent on reasoning, from the server's usage only.",
    ),
    Entry(
        "cached_prompt_tokens",
        "Cached prompt tokens",
        "tok",
        Neutral,
        "Input tokens the server took from its prefix cache, from its usage only.",
    ),
    Entry("prompt_words", "Prompt words", "words", Neutral, "Words in the prompts, split at white space."),
    Entry(
        "completion_words",
        "Completion words",
        "words",
        Neutral,
        "Words in the answers, split at white space.",
    ),
    Entry(
        "image_bytes",
        "Image bytes",
        "B",
        Neutral,
        "Bytes of the images of a request as sent, before base64.",
    ),
    Entry("bytes_sent", "Bytes sent", "B", Neutral, "Bytes of the audio file of a request."),
    Entry("bytes_received", "Bytes received", "B", Neutral, "Bytes of the answer to a request."),
];
