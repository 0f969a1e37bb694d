//! Waits until a model server answers: not when its port is open, but when it has answered a real request.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

/// The first pause between two looks; it grows to [`LONGEST_PAUSE`].
const FIRST_PAUSE: Duration = Duration::from_millis(100);
/// The longest pause between two looks.
const LONGEST_PAUSE: Duration = Duration::from_secs(1);
/// How long one small request may take.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(5);
/// How long the first generated token may take: models compile and load lazily.
const FIRST_TOKEN_TIMEOUT: Duration = Duration::from_secs(120);

/// Where a model is served.
#[derive(Debug, Clone)]
pub struct Endpoint {
    /// The address without `/v1`.
    pub base_url: String,
    /// The path that answers 200 once the server is up; empty where only the API itself is asked.
    pub readiness_path: String,
    /// The API key, where one is needed.
    pub api_key: Option<String>,
    /// The model the load will ask for, where known; otherwise the first one listed is tried.
    pub model: Option<String>,
}

impl Endpoint {
    /// An endpoint by its address, with or without `/v1` at its end.
    pub fn base_of(url: &str) -> String {
        let url = url.trim_end_matches('/');
        url.strip_suffix("/v1").unwrap_or(url).trim_end_matches('/').to_owned()
    }
}

/// A model server that is ready.
#[derive(Debug, Clone, PartialEq)]
pub struct Ready {
    /// Seconds it took.
    pub after_s: f64,
    /// The model ids it listed.
    pub models: Vec<String>,
}

/// A model server that is not ready in time.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("the model server was not ready within {limit_s} s: {last}")]
pub struct NotReady {
    /// The time it had, seconds.
    pub limit_s: u64,
    /// What was wrong at the last look.
    pub last: String,
}

/// Looks until the server is ready or `limit` is over.
///
/// # Errors
/// [`NotReady`] with what was wrong at the last look.
pub async fn wait_until_ready(
    client: &reqwest::Client,
    endpoint: &Endpoint,
    limit: Duration,
) -> Result<Ready, NotReady> {
    let start = Instant::now();
    let deadline = tokio::time::Instant::now() + limit;
    let mut pause = FIRST_PAUSE;
    let mut last = "it was never asked".to_owned();
    loop {
        match tokio::time::timeout_at(deadline, look(client, endpoint)).await {
            Ok(Ok(models)) => return Ok(Ready { after_s: start.elapsed().as_secs_f64(), models }),
            Ok(Err(why)) => last = why,
            Err(_) => return Err(NotReady { limit_s: limit.as_secs(), last }),
        }
        if tokio::time::Instant::now() + pause >= deadline {
            return Err(NotReady { limit_s: limit.as_secs(), last });
        }
        tokio::time::sleep(pause).await;
        pause = (pause * 3 / 2).min(LONGEST_PAUSE);
    }
}

/// One look: health, models, one token.
async fn look(client: &reqwest::Client, endpoint: &Endpoint) -> Result<Vec<String>, String> {
    let base = &endpoint.base_url;
    if !endpoint.readiness_path.is_empty() {
        let url = format!("{base}/{}", endpoint.readiness_path.trim_start_matches('/'));
        ask(client.get(&url), endpoint, &url, REQUEST_TIMEOUT).await?;
    }
    let url = format!("{base}/v1/models");
    let listed = ask(client.get(&url), endpoint, &url, REQUEST_TIMEOUT).await?;
    let models = model_ids(&listed);
    let Some(first) = models.first() else {
        return Err(format!("{url} lists no model"));
    };
    let model = endpoint.model.as_ref().filter(|wanted| models.contains(wanted)).unwrap_or(first);
    generate_one_token(client, endpoint, model).await?;
    Ok(models)
}

fn model_ids(listed: &Value) -> Vec<String> {
    let data = listed["data"].as_array().map(Vec::as_slice).unwrap_or_default();
    data.iter().filter_map(|model| model["id"].as_str().map(str::to_owned)).collect()
}

/// One real request. Base models have no chat template; they are asked for a completion.
async fn generate_one_token(
    client: &reqwest::Client,
    endpoint: &Endpoint,
    model: &str,
) -> Result<(), String> {
    let base = &endpoint.base_url;
    let chat = format!("{base}/v1/chat/completions");
    let body = json!({"model": model, "messages": [{"role": "user", "content": "Hi"}], "max_tokens": 1});
    let asked = ask(client.post(&chat).json(&body), endpoint, &chat, FIRST_TOKEN_TIMEOUT).await;
    let Err(chat_failed) = asked.and_then(|answer| has_choice(&answer, &chat)) else { return Ok(()) };
    let completions = format!("{base}/v1/completions");
    let body = json!({"model": model, "prompt": "Hi", "max_tokens": 1});
    let asked = ask(client.post(&completions).json(&body), endpoint, &completions, FIRST_TOKEN_TIMEOUT).await;
    asked.and_then(|answer| has_choice(&answer, &completions)).map_err(|_| chat_failed)
}

fn has_choice(answer: &Value, url: &str) -> Result<(), String> {
    let choices = answer["choices"].as_array().is_some_and(|choices| !choices.is_empty());
    if choices { Ok(()) } else { Err(format!("{url} answered without choices")) }
}

async fn ask(
    request: reqwest::RequestBuilder,
    endpoint: &Endpoint,
    url: &str,
    timeout: Duration,
) -> Result<Value, String> {
    let mut request = request.timeout(timeout);
    if let Some(key) = &endpoint.api_key {
        request = request.bearer_auth(key);
    }
    let response = request.send().await.map_err(|error| {
        let cause = std::error::Error::source(&error).map(|cause| format!(": {cause}")).unwrap_or_default();
        format!("{url} does not answer{cause}")
    })?;
    let status = response.status();
    let body = response.bytes().await.map_err(|error| format!("{url}: {error}"))?;
    if status != reqwest::StatusCode::OK {
        let text: String = String::from_utf8_lossy(&body).chars().take(200).collect();
        return Err(format!("{url} answered {status}: {text}"));
    }
    // Health pages need not be JSON.
    Ok(serde_json::from_slice(&body).unwrap_or(Value::Null))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_endpoint_may_be_given_with_or_without_v1() {
        for url in ["http://h:1/v1/", "http://h:1/v1", "http://h:1/", "http://h:1"] {
            assert_eq!(Endpoint::base_of(url), "http://h:1");
        }
        assert_eq!(Endpoint::base_of("http://h/openai/v1"), "http://h/openai");
    }

    #[test]
    fn models_are_listed_by_id() {
        assert_eq!(model_ids(&json!({"data": [{"id": "a"}, {"name": "b"}, {"id": "c"}]})), ["a", "c"]);
        assert!(model_ids(&json!({"models": []})).is_empty());
    }
}
