//! What a transcription answer says, in each of its forms.

use std::time::Duration;

use serde_json::Value;

use crate::failure::{Failure, FailureKind};

/// The forms of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum Format {
    #[value(name = "verbose_json")]
    VerboseJson,
    Json,
    Text,
    Srt,
    Vtt,
}

impl Format {
    /// Its name in requests.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::VerboseJson => "verbose_json",
            Self::Json => "json",
            Self::Text => "text",
            Self::Srt => "srt",
            Self::Vtt => "vtt",
        }
    }

    /// The answer is a JSON object.
    pub(super) fn is_json(self) -> bool {
        matches!(self, Self::VerboseJson | Self::Json)
    }
}

/// The text of an answer, and the server's processing time if it told.
pub(super) fn transcript(body: &[u8], format: Format) -> Result<(String, Option<Duration>), Failure> {
    let text = String::from_utf8_lossy(body);
    if !format.is_json() {
        // Some servers answer in JSON whatever was asked.
        if let Ok(Value::Object(answer)) = serde_json::from_str::<Value>(&text)
            && let Some(Value::String(inner)) = answer.get("text")
        {
            return Ok((inner.clone(), None));
        }
        let plain = match format {
            Format::Srt | Format::Vtt => spoken_lines(&text),
            _ => text.into_owned(),
        };
        return Ok((plain, None));
    }
    let answer: Value = serde_json::from_str(&text)
        .map_err(|error| Failure::new(FailureKind::Decode, None, format!("not a JSON answer: {error}")))?;
    if answer.get("error").is_some_and(|error| !error.is_null()) {
        return Err(Failure::new(FailureKind::InBandError, None, crate::openai::error_message(body)));
    }
    let inference =
        answer["inference_time"].as_f64().and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    match answer.get("text").and_then(Value::as_str) {
        Some(text) => Ok((text.to_owned(), inference)),
        None => Err(Failure::new(FailureKind::Decode, None, "the answer has no text")),
    }
}

/// The text of subtitles: without numbers, times and headers.
fn spoken_lines(subtitles: &str) -> String {
    let mut spoken = Vec::new();
    for block in subtitles.replace("\r\n", "\n").split("\n\n") {
        let lines: Vec<&str> = block.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
        if let Some(times) = lines.iter().position(|line| line.contains("-->")) {
            spoken.extend(lines[times + 1..].iter().map(|line| (*line).to_owned()));
        }
    }
    spoken.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn subtitles_are_read_for_what_is_said() {
        let srt =
            "1\n00:00:00,000 --> 00:00:01,000\nHello\nthere\n\n2\n00:00:01,000 --> 00:00:02,000\nworld\n";
        assert_eq!(spoken_lines(srt), "Hello there world");
        let vtt = "WEBVTT\r\n\r\n00:00.000 --> 00:01.000\r\nHello\r\n";
        assert_eq!(spoken_lines(vtt), "Hello");
    }

    #[test]
    fn the_servers_own_time_is_read() {
        let (text, inference) = transcript(br#"{"text":"a b","inference_time":0.25}"#, Format::Json).unwrap();
        assert_eq!((text.as_str(), inference), ("a b", Some(Duration::from_millis(250))));
    }

    #[test]
    fn answers_of_a_real_server_are_read() {
        for name in ["vllmwhisper-transcription-json", "vllmwhisper-transcription-verbose"] {
            let path = format!("{}/tests/data/{name}.txt", env!("CARGO_MANIFEST_DIR"));
            let bytes = std::fs::read(path).unwrap();
            let body = bytes.windows(2).position(|window| window == b"\n{").unwrap() + 1;
            assert!(transcript(&bytes[body..], Format::Json).is_ok(), "{name}");
        }
    }
}
