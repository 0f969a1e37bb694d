//! What the other modalities know of a request beyond times and tokens.

use std::time::Duration;

pub use events::summary_requests::{Artifact, Attempt};

/// The modality's own part of a record.
#[derive(Clone, Debug, Default)]
pub enum Extra {
    /// Text: nothing more.
    #[default]
    None,
    /// Images in the request.
    Vlm(VlmExtra),
    /// A transcription.
    Asr(AsrExtra),
    /// Images in the answer.
    Images(ImagesExtra),
}

/// Images in a request.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct VlmExtra {
    /// Loading, resizing and encoding, before the clock started.
    pub processing: Duration,
    /// Bytes of the images as sent, before base64. None where those of one behind a link are not known.
    pub bytes: Option<u64>,
    /// Width and height of each as sent; none for one behind a link that could not be had.
    pub dimensions: Vec<Option<(u32, u32)>>,
    /// Why something of them is not known, image by image.
    pub unknown: Vec<String>,
}

/// A transcription.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct AsrExtra {
    /// The sample's id.
    pub sample: String,
    /// The server's processing time, if it told.
    pub inference: Option<Duration>,
    /// Length of the audio, if the manifest told.
    pub audio_seconds: Option<f64>,
    /// Words of the transcript.
    pub words: u64,
    /// Characters of the transcript.
    pub characters: u64,
    /// Bytes of the audio file.
    pub bytes_sent: u64,
    /// Bytes of the answer.
    pub bytes_received: u64,
    /// `flac`, `wav`, …
    pub format: String,
    /// Word error rate in percent, where there is a reference.
    pub wer: Option<f64>,
    /// Character error rate in percent, where there is a reference.
    pub cer: Option<f64>,
}

/// Images in an answer.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ImagesExtra {
    /// Asked for.
    pub requested: u64,
    /// Came back.
    pub returned: u64,
    /// Bytes of the whole answer.
    pub response_bytes: u64,
    /// The prompt.
    pub prompt: String,
    /// The size asked for.
    pub size: String,
    /// Each image.
    pub artifacts: Vec<Artifact>,
    /// Where the raw answer was saved.
    pub raw_path: Option<String>,
}

impl VlmExtra {
    /// Adds an image that is known.
    pub fn add(&mut self, bytes: u64, dimensions: (u32, u32)) {
        self.bytes = self.bytes.map(|sum| sum + bytes);
        self.dimensions.push(Some(dimensions));
    }

    /// Adds an image of which nothing is known.
    pub fn add_unknown(&mut self, reason: &str) {
        self.bytes = None;
        self.dimensions.push(None);
        self.unknown.push(reason.to_owned());
    }
}

impl ImagesExtra {
    /// Whether an image is behind a link that was not followed yet.
    pub fn is_unfinished(&self) -> bool {
        self.artifacts.iter().any(is_unfinished)
    }
}

/// Whether an image is behind a link that was not followed yet.
pub fn is_unfinished(artifact: &Artifact) -> bool {
    artifact.url.is_some() && artifact.sha256.is_none() && artifact.unknown_reason.is_none()
}
