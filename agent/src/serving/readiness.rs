//! Waits until a model server answers: not when its port is open, but when it has answered a real request.

use std::time::{Duration, Instant};

use serde_json::Value;

use super::probe::{self, Probe};

/// The first pause between two looks; it grows to [`LONGEST_PAUSE`].
const FIRST_PAUSE: Duration = Duration::from_millis(100);
/// The longest pause between two looks.
const LONGEST_PAUSE: Duration = Duration::from_secs(1);
/// How long one small request may take.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(5);

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
    /// The request it must have answered.
    pub probe: Probe,
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
    let models = again_and_again(limit, || look(client, endpoint)).await?;
    Ok(Ready { after_s: start.elapsed().as_secs_f64(), models })
}

/// Looks until the server answers on its readiness path, whether or not it has a model yet, and gives those it lists.
///
/// # Errors
/// [`NotReady`] with what was wrong at the last look.
pub async fn wait_until_up(
    client: &reqwest::Client,
    endpoint: &Endpoint,
    limit: Duration,
) -> Result<Vec<String>, NotReady> {
    again_and_again(limit, || async {
        healthy(client, endpoint).await?;
        listed(client, endpoint).await
    })
    .await
}

/// Looks until a process that runs beside the model server answers 200 at `url`.
///
/// # Errors
/// [`NotReady`] with what was wrong at the last look.
pub async fn wait_until_answered(
    client: &reqwest::Client,
    url: &str,
    limit: Duration,
) -> Result<(), NotReady> {
    again_and_again(limit, || async { ask(client.get(url), None, url, REQUEST_TIMEOUT).await.map(|_| ()) })
        .await
}

async fn again_and_again<T, F>(limit: Duration, mut look: impl FnMut() -> F) -> Result<T, NotReady>
where
    F: Future<Output = Result<T, String>>,
{
    let deadline = tokio::time::Instant::now() + limit;
    let mut pause = FIRST_PAUSE;
    let mut last = "it was never asked".to_owned();
    loop {
        match tokio::time::timeout_at(deadline, look()).await {
            Ok(Ok(found)) => return Ok(found),
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

/// One look: health, models, one request as the load will send them.
async fn look(client: &reqwest::Client, endpoint: &Endpoint) -> Result<Vec<String>, String> {
    healthy(client, endpoint).await?;
    let models = listed(client, endpoint).await?;
    let Some(first) = models.first() else {
        return Err(format!("{}/v1/models lists no model", endpoint.base_url));
    };
    // Not another one that happens to be there: it would be loaded, and the load would ask for this one.
    probe::answers(client, endpoint, endpoint.model.as_ref().unwrap_or(first)).await?;
    Ok(models)
}

async fn healthy(client: &reqwest::Client, endpoint: &Endpoint) -> Result<(), String> {
    if endpoint.readiness_path.is_empty() {
        return Ok(());
    }
    let url = format!("{}/{}", endpoint.base_url, endpoint.readiness_path.trim_start_matches('/'));
    ask(client.get(&url), endpoint.api_key.as_deref(), &url, REQUEST_TIMEOUT).await.map(|_| ())
}

async fn listed(client: &reqwest::Client, endpoint: &Endpoint) -> Result<Vec<String>, String> {
    let url = format!("{}/v1/models", endpoint.base_url);
    ask(client.get(&url), endpoint.api_key.as_deref(), &url, REQUEST_TIMEOUT)
        .await
        .map(|listed| model_ids(&listed))
}

fn model_ids(listed: &Value) -> Vec<String> {
    let data = listed["data"].as_array().map(Vec::as_slice).unwrap_or_default();
    data.iter().filter_map(|model| model["id"].as_str().map(str::to_owned)).collect()
}

/// Sends a request that is to be answered 200, and gives its JSON.
pub(super) async fn ask(
    request: reqwest::RequestBuilder,
    api_key: Option<&str>,
    url: &str,
    timeout: Duration,
) -> Result<Value, String> {
    let mut request = request.timeout(timeout);
    if let Some(key) = api_key {
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
    use serde_json::json;

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
