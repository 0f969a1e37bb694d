//! The one real request that a model server must have answered before it counts as ready: of the kind that the load will
//! send, because a server of speech answers no chat and one of images neither.

use std::io::Cursor;
use std::time::Duration;

use hound::{SampleFormat, WavSpec, WavWriter};
use reqwest::multipart::{Form, Part};
use serde_json::{Value, json};

use super::readiness::{Endpoint, ask};

/// How long the first answer may take: models compile and load lazily.
const FIRST_ANSWER: Duration = Duration::from_secs(120);
/// How long the first image may take.
const FIRST_IMAGE: Duration = Duration::from_secs(900);
/// Samples a second of the silence that is transcribed.
const SAMPLE_RATE: u32 = 16_000;

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
            let request = client.post(&url).multipart(form(model)?);
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
fn form(model: &str) -> Result<Form, String> {
    let wav = silence().map_err(|error| format!("the silence could not be written: {error}"))?;
    let file = Part::bytes(wav).file_name("silence.wav").mime_str("audio/wav").map_err(|e| e.to_string())?;
    Ok(Form::new().text("model", model.to_owned()).text("response_format", "json").part("file", file))
}

/// A second of silence as a WAV file: one channel, 16 bits a sample.
fn silence() -> Result<Vec<u8>, hound::Error> {
    let spec = WavSpec {
        channels: 1,
        sample_rate: SAMPLE_RATE,
        bits_per_sample: 16,
        sample_format: SampleFormat::Int,
    };
    let mut wav = Cursor::new(Vec::new());
    let mut writer = WavWriter::new(&mut wav, spec)?;
    for _ in 0..SAMPLE_RATE {
        writer.write_sample(0_i16)?;
    }
    writer.finalize()?;
    Ok(wav.into_inner())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_of_silence_is_a_wav_file_of_a_second() {
        let reader = hound::WavReader::new(Cursor::new(silence().unwrap())).unwrap();
        assert_eq!((reader.spec().channels, reader.spec().bits_per_sample), (1, 16));
        assert_eq!(reader.duration(), reader.spec().sample_rate);
        assert!(reader.into_samples::<i16>().all(|sample| sample.unwrap() == 0));
    }
}
