//! The figures only some modalities have.

use std::collections::BTreeMap;
use std::time::Duration;

use events::summary::{AsrFigures, ImagegenFigures, VlmFigures};

use crate::extra::{AsrExtra, Extra, ImagesExtra, VlmExtra};
use crate::record::{Outcome, Record};
use crate::stats::{Samples, per_second, round};

/// Ratios and rates are kept as billionths, so that the same exact samples serve them.
const BILLIONTH: f64 = 1e-9;
const NS_TO_MS: f64 = 1e-6;

/// Running totals of whichever modality the run has.
#[derive(Clone, Debug, Default)]
pub struct ModalityTally {
    vlm: Option<VlmTally>,
    asr: Option<AsrTally>,
    images: Option<ImagesTally>,
}

#[derive(Clone, Debug, Default)]
struct VlmTally {
    processing: Samples,
    bytes: Samples,
    dimensions: BTreeMap<String, u64>,
    errors: BTreeMap<String, u64>,
}

#[derive(Clone, Debug, Default)]
struct AsrTally {
    inference: Samples,
    from_server: u64,
    rtf: Samples,
    audio_seconds: f64,
    words: u64,
    characters: u64,
    words_per_second: Samples,
    characters_per_second: Samples,
    bytes_sent: Samples,
    bytes_received: Samples,
    formats: BTreeMap<String, u64>,
    wer: Samples,
    cer: Samples,
}

#[derive(Clone, Debug, Default)]
struct ImagesTally {
    requested: u64,
    returned: u64,
    /// Returned ones whose dimensions are known.
    measured: u64,
    pixels: u64,
    sizes: Samples,
    errors: BTreeMap<String, u64>,
}

/// Distinct reasons kept; further ones are counted together.
const REASONS: usize = 20;

fn count_reason(reasons: &mut BTreeMap<String, u64>, reason: &str) {
    let reason =
        if reasons.len() < REASONS || reasons.contains_key(reason) { reason } else { "other reasons" };
    *reasons.entry(reason.to_owned()).or_default() += 1;
}

impl ModalityTally {
    /// Takes one measured record. Images asked for count even when none came; all else needs a success.
    pub fn add(&mut self, record: &Record) {
        let success = matches!(record.outcome, Outcome::Success(_));
        match &record.extra {
            Extra::Vlm(extra) if success => self.vlm.get_or_insert_default().add(extra),
            Extra::Asr(extra) if success => {
                let response_time = record.ended_at.saturating_duration_since(record.started_at);
                self.asr.get_or_insert_default().add(extra, response_time);
            }
            Extra::Images(extra) => self.images.get_or_insert_default().add(extra, success),
            _ => {}
        }
    }

    /// Takes what became known of a record's images after it was added.
    pub fn learn(&mut self, record: &Record) {
        if let (Some(tally), Extra::Images(extra), Outcome::Success(_)) =
            (&mut self.images, &record.extra, &record.outcome)
        {
            tally.describe(extra);
        }
    }

    /// Something of the images of succeeded requests is not known.
    pub fn images_unknown(&self) -> bool {
        self.vlm.as_ref().is_some_and(|tally| !tally.errors.is_empty())
            || self.images.as_ref().is_some_and(|tally| tally.measured < tally.returned)
    }

    /// The figures of VLM runs.
    pub fn vlm(&self) -> VlmFigures {
        let Some(tally) = &self.vlm else { return VlmFigures::default() };
        VlmFigures {
            image_processing_ms: tally.processing.distribution(NS_TO_MS),
            image_bytes: tally.bytes.counts(None, "as sent"),
            image_dimensions: (!tally.dimensions.is_empty()).then(|| tally.dimensions.clone()),
            image_errors: (!tally.errors.is_empty()).then(|| tally.errors.clone()),
        }
    }

    /// The figures of ASR runs.
    pub fn asr(&self, window_s: Option<f64>) -> AsrFigures {
        let Some(tally) = &self.asr else { return AsrFigures::default() };
        let (sent, received) = (tally.bytes_sent.total() as f64, tally.bytes_received.total() as f64);
        let source = match tally.from_server {
            0 => "wall_clock",
            all if all == tally.inference.len() => "server",
            _ => "mixed",
        };
        AsrFigures {
            inference_time_ms: tally.inference.distribution(NS_TO_MS),
            inference_time_source: Some(source.to_owned()),
            rtf: tally.rtf.distribution(BILLIONTH),
            audio_seconds_per_second: (!tally.rtf.is_empty())
                .then(|| per_second(tally.audio_seconds, window_s))
                .flatten(),
            transcript_words_per_second: per_second(tally.words as f64, window_s),
            transcript_characters_per_second: per_second(tally.characters as f64, window_s),
            words_per_second: tally.words_per_second.distribution(BILLIONTH),
            characters_per_second: tally.characters_per_second.distribution(BILLIONTH),
            bytes_sent: tally.bytes_sent.counts(window_s, "file"),
            bytes_received: tally.bytes_received.counts(window_s, "body"),
            bytes_transferred_per_second: per_second(sent + received, window_s),
            formats: Some(tally.formats.clone()),
            wer: tally.wer.distribution(BILLIONTH),
            cer: tally.cer.distribution(BILLIONTH),
        }
    }

    /// The figures of image generation runs.
    pub fn images(
        &self,
        window_s: Option<f64>,
        succeeded: u64,
        ended: u64,
        timeouts: u64,
    ) -> ImagegenFigures {
        let Some(tally) = &self.images else { return ImagegenFigures::default() };
        ImagegenFigures {
            images_requested: Some(tally.requested),
            images_returned: Some(tally.returned),
            images_per_second: per_second(tally.returned as f64, window_s),
            // Of a part of the images it would be too little, and nobody would see that.
            megapixels_per_second: (tally.pixels > 0 && tally.measured == tally.returned)
                .then(|| per_second(tally.pixels as f64 / 1e6, window_s))
                .flatten(),
            success_rate: (ended > 0).then(|| round(succeeded as f64 / ended as f64)),
            timeouts: Some(timeouts),
            image_size_bytes: tally.sizes.distribution(1.0),
            artifact_errors: (!tally.errors.is_empty()).then(|| tally.errors.clone()),
        }
    }
}

impl VlmTally {
    fn add(&mut self, extra: &VlmExtra) {
        self.processing.add(extra.processing.as_nanos() as u64);
        extra.bytes.into_iter().for_each(|bytes| self.bytes.add(bytes));
        for (width, height) in extra.dimensions.iter().flatten() {
            *self.dimensions.entry(format!("{width}x{height}")).or_default() += 1;
        }
        extra.unknown.iter().for_each(|reason| count_reason(&mut self.errors, reason));
    }
}

impl AsrTally {
    fn add(&mut self, extra: &AsrExtra, response_time: Duration) {
        self.from_server += u64::from(extra.inference.is_some());
        let inference = extra.inference.unwrap_or(response_time);
        let seconds = inference.as_secs_f64();
        self.inference.add(inference.as_nanos() as u64);
        if let Some(audio) = extra.audio_seconds.filter(|audio| *audio > 0.0) {
            self.audio_seconds += audio;
            self.rtf.add(billionths(seconds / audio));
        }
        self.words += extra.words;
        self.characters += extra.characters;
        if seconds > 0.0 {
            self.words_per_second.add(billionths(extra.words as f64 / seconds));
            self.characters_per_second.add(billionths(extra.characters as f64 / seconds));
        }
        self.bytes_sent.add(extra.bytes_sent);
        self.bytes_received.add(extra.bytes_received);
        *self.formats.entry(extra.format.clone()).or_default() += 1;
        for (samples, rate) in [(&mut self.wer, extra.wer), (&mut self.cer, extra.cer)] {
            if let Some(rate) = rate {
                samples.add(billionths(rate));
            }
        }
    }
}

impl ImagesTally {
    fn add(&mut self, extra: &ImagesExtra, success: bool) {
        self.requested += extra.requested;
        if !success {
            return;
        }
        self.returned += extra.returned;
        if !extra.is_unfinished() {
            self.describe(extra);
        }
    }

    fn describe(&mut self, extra: &ImagesExtra) {
        for artifact in &extra.artifacts {
            if let (Some(width), Some(height)) = (artifact.width, artifact.height) {
                self.measured += 1;
                self.pixels += u64::from(width) * u64::from(height);
            }
            if let Some(size) = artifact.size_bytes {
                self.sizes.add(size);
            }
            if let Some(reason) = &artifact.unknown_reason {
                count_reason(&mut self.errors, reason);
            }
        }
    }
}

fn billionths(value: f64) -> u64 {
    (value / BILLIONTH).round() as u64
}
