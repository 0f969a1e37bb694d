//! The one real request that a model server must have answered before it counts as ready: of the kind that the load will
//! send, because a server of speech answers no chat and one of images neither.

use std::time::Duration;

use serde_json::{Value, json};

use super::readiness::{Endpoint, ask};

/// How long the first answer may take: models compile and load lazily.
const FIRST_ANSWER: Duration = Duration::from_secs(120);
/// How long the first image may take.
const FIRST_IMAGE: Duration = Duration::from_secs(900);
/// Samples a second of the silence that is transcribed.
const SAMPLE_RATE: u32 = 16_000;
/// Stands between the parts of a form; no part holds it.
const BOUNDARY: &str = "benchtrail-readiness-4f1c2a";

/// What is asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Probe {
    /// One token.
    Text,
    /// A second of silence, transcribed.
    Transcription,
    /// One image of this size.
    Image {
        /// `WIDTHxHEIGHT`, as the load will ask for.
        size: String,
    },
    /// Nothing: being listed is enough. An image of a foreign endpoint costs money.
    Listed,
}

/// Asks for it.
///
/// # Errors
/// What the server said, or that it said nothing.
pub(super) async fn answers(
    client: &reqwest::Client,
    endpoint: &Endpoint,
    model: &str,
) -> Result<(), String> {
    match &endpoint.probe {
        Probe::Text => one_token(client, endpoint, model).await,
        Probe::Transcription => {
            let url = format!("{}/v1/audio/transcriptions", endpoint.base_url);
            let content = format!("multipart/form-data; boundary={BOUNDARY}");
            let request = client.post(&url).header("content-type", content).body(form(model));
            let answer = ask(request, endpoint.api_key.as_deref(), &url, FIRST_ANSWER).await?;
            match answer["text"].is_string() {
                true => Ok(()),
                false => Err(format!("{url} answered without a text")),
            }
        }
        Probe::Image { size } => {
            let url = format!("{}/v1/images/generations", endpoint.base_url);
            let body = json!({
                "model": model, "prompt": "A grey square.", "n": 1, "size": size, "response_format": "b64_json"
            });
            let answer =
                ask(client.post(&url).json(&body), endpoint.api_key.as_deref(), &url, FIRST_IMAGE).await?;
            has_some(&answer, "data", &url)
        }
        Probe::Listed => Ok(()),
    }
}

/// Base models have no chat template; they are asked for a completion.
async fn one_token(client: &reqwest::Client, endpoint: &Endpoint, model: &str) -> Result<(), String> {
    let base = &endpoint.base_url;
    let chat = format!("{base}/v1/chat/completions");
    let body = json!({"model": model, "messages": [{"role": "user", "content": "Hi"}], "max_tokens": 1});
    let asked = ask(client.post(&chat).json(&body), endpoint.api_key.as_deref(), &chat, FIRST_ANSWER).await;
    let Err(chat_failed) = asked.and_then(|answer| has_some(&answer, "choices", &chat)) else {
        return Ok(());
    };
    let completions = format!("{base}/v1/completions");
    let body = json!({"model": model, "prompt": "Hi", "max_tokens": 1});
    let asked =
        ask(client.post(&completions).json(&body), endpoint.api_key.as_deref(), &completions, FIRST_ANSWER)
            .await;
    asked.and_then(|answer| has_some(&answer, "choices", &completions)).map_err(|_| chat_failed)
}

fn has_some(answer: &Value, what: &str, url: &str) -> Result<(), String> {
    let some = answer[what].as_array().is_some_and(|items| !items.is_empty());
    if some { Ok(()) } else { Err(format!("{url} answered without {what}")) }
}

/// The form of a transcription request.
fn form(model: &str) -> Vec<u8> {
    let mut body = Vec::new();
    for (name, value) in [("model", model), ("response_format", "json")] {
        body.extend_from_slice(
            format!("--{BOUNDARY}\r\ncontent-disposition: form-data; name=\"{name}\"\r\n\r\n{value}\r\n")
                .as_bytes(),
        );
    }
    body.extend_from_slice(
        format!(
            "--{BOUNDARY}\r\ncontent-disposition: form-data; name=\"file\"; filename=\"silence.wav\"\r\n\
             content-type: audio/wav\r\n\r\n"
        )
        .as_bytes(),
    );
    body.extend_from_slice(&silence());
    body.extend_from_slice(format!("\r\n--{BOUNDARY}--\r\n").as_bytes());
    body
}

/// A second of silence as a WAV file: one channel, 16 bits a sample.
fn silence() -> Vec<u8> {
    let bytes = SAMPLE_RATE * 2;
    let mut wav = Vec::with_capacity(44 + bytes as usize);
    wav.extend_from_slice(b"RIFF");
    wav.extend_from_slice(&(36 + bytes).to_le_bytes());
    wav.extend_from_slice(b"WAVEfmt ");
    wav.extend_from_slice(&16_u32.to_le_bytes());
    // PCM, one channel.
    wav.extend_from_slice(&1_u16.to_le_bytes());
    wav.extend_from_slice(&1_u16.to_le_bytes());
    wav.extend_from_slice(&SAMPLE_RATE.to_le_bytes());
    wav.extend_from_slice(&bytes.to_le_bytes());
    wav.extend_from_slice(&2_u16.to_le_bytes());
    wav.extend_from_slice(&16_u16.to_le_bytes());
    wav.extend_from_slice(b"data");
    wav.extend_from_slice(&bytes.to_le_bytes());
    wav.resize(44 + bytes as usize, 0);
    wav
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_of_silence_is_a_wav_file_of_a_second() {
        let wav = silence();
        let number = |at: usize| u32::from_le_bytes(wav[at..at + 4].try_into().unwrap());
        assert_eq!((&wav[..4], &wav[8..16], &wav[36..40]), (&b"RIFF"[..], &b"WAVEfmt "[..], &b"data"[..]));
        assert_eq!((number(4) as usize, number(24), number(28)), (wav.len() - 8, 16_000, 32_000));
        assert_eq!(number(40) as usize, wav.len() - 44);
    }
}
