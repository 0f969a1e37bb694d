//! What the other modalities know of a request beyond times and tokens.

use std::time::Duration;

use serde::Serialize;

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
    /// Bytes of the images as sent, before base64.
    pub bytes: u64,
    /// Width and height of each as sent.
    pub dimensions: Vec<(u32, u32)>,
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

/// One generated image.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Artifact {
    /// Position in the answer.
    pub index: u64,
    /// Where it was saved.
    pub path: Option<String>,
    /// Where the server keeps it, if it answered with a link.
    pub url: Option<String>,
    /// SHA-256 of its bytes, hexadecimal.
    pub sha256: Option<String>,
    /// Its bytes.
    pub size_bytes: Option<u64>,
    /// Decoded width.
    pub width: Option<u32>,
    /// Decoded height.
    pub height: Option<u32>,
    /// `image/png`, …
    pub mime_type: Option<String>,
}

/// One try of a request.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Attempt {
    /// From 1.
    pub number: u32,
    /// How long it took.
    pub latency_ms: f64,
    /// HTTP status.
    pub status: Option<u16>,
    /// Why it failed.
    pub error_type: Option<&'static str>,
}
