//! Requests to the control plane: views by GET, commands by POST, every error as the API says it.

use events::api::{ApiError, CommandReply};
use serde::Serialize;
use serde::de::DeserializeOwned;
use wasm_bindgen::JsCast;
use wasm_bindgen_futures::JsFuture;

use crate::row::Row;
use crate::state::retry::retry_after;

/// Why a request brought nothing.
#[derive(Debug, Clone, PartialEq)]
pub struct Trouble {
    /// The HTTP status; 0 when there was no answer.
    pub status: u16,
    /// What the API said.
    pub error: ApiError,
}

impl Trouble {
    fn new(status: u16, code: &str, message: impl Into<String>, hint: &str) -> Self {
        let error = ApiError {
            code: code.to_owned(),
            message: message.into(),
            details: None,
            hint: (!hint.is_empty()).then(|| hint.to_owned()),
        };
        Self { status, error }
    }

    /// What went wrong in the page itself.
    pub fn of_page(code: &str, message: &str, hint: &str) -> Self {
        Self::new(200, code, message, hint)
    }

    fn network() -> Self {
        Self::new(
            0,
            "unreachable",
            "The control plane does not answer.",
            "Check that it runs; this page tries again by itself.",
        )
    }

    /// Whether trying again may help.
    pub fn may_pass(&self) -> bool {
        self.status == 0 || self.status == 429 || self.status >= 500
    }
}

/// An answer: its body and the headers that matter.
struct Answer {
    body: String,
    content_range: Option<String>,
}

/// Sends a request; whatever the control plane says to it is an answer.
async fn ask(
    method: &str,
    path: &str,
    body: Option<String>,
    headers: &[(&str, String)],
) -> Result<web_sys::Response, Trouble> {
    let options = web_sys::RequestInit::new();
    options.set_method(method);
    options.set_credentials(web_sys::RequestCredentials::SameOrigin);
    let list = web_sys::Headers::new().map_err(|_| Trouble::network())?;
    for (name, value) in headers {
        let _ = list.set(name, value);
    }
    if let Some(body) = body {
        let _ = list.set("content-type", "application/json");
        options.set_body(&body.into());
    }
    if method != "GET" {
        let _ = list.set("x-benchtrail-csrf", "1");
    }
    options.set_headers(&list);
    let response = JsFuture::from(leptos::prelude::window().fetch_with_str_and_init(path, &options));
    Ok(response.await.map_err(|_| Trouble::network())?.unchecked_into())
}

async fn send(
    method: &str,
    path: &str,
    body: Option<String>,
    headers: &[(&str, String)],
) -> Result<Answer, Trouble> {
    let response = ask(method, path, body, headers).await?;
    let text = text_of(&response).await;
    if response.ok() {
        return Ok(Answer {
            body: text,
            content_range: response.headers().get("content-range").ok().flatten(),
        });
    }
    Err(said(&response, &text))
}

async fn text_of(response: &web_sys::Response) -> String {
    match response.text() {
        Ok(promise) => JsFuture::from(promise).await.ok().and_then(|t| t.as_string()).unwrap_or_default(),
        Err(_) => String::new(),
    }
}

async fn refused(response: &web_sys::Response) -> Trouble {
    let text = text_of(response).await;
    said(response, &text)
}

/// What an answer that is an error says.
fn said(response: &web_sys::Response, text: &str) -> Trouble {
    let status = response.status();
    match serde_json::from_str::<ApiError>(text) {
        Ok(error) => Trouble { status, error },
        Err(_) => Trouble::new(status, &format!("http_{status}"), response.status_text(), ""),
    }
}

fn read<T: DeserializeOwned>(path: &str, body: &str) -> Result<T, Trouble> {
    serde_json::from_str(body).map_err(|error| {
        let path = path.split('?').next().unwrap_or(path);
        Trouble::new(
            200,
            "unreadable_answer",
            format!("The answer of {path} could not be read: {error}"),
            "Reload the page: it may be older than the control plane.",
        )
    })
}

fn reading(accept: &str, at_least: i64, count: bool) -> Vec<(&'static str, String)> {
    let mut prefer = Vec::new();
    if at_least > 0 {
        prefer.push(format!("at-least={at_least}"));
    }
    if count {
        prefer.push("count=exact".to_owned());
    }
    let mut headers = vec![("accept", accept.to_owned())];
    if !prefer.is_empty() {
        headers.push(("prefer", prefer.join(", ")));
    }
    headers
}

/// Reads something. `at_least` waits until the views are as far as that position; 0 takes them as they are.
///
/// # Errors
/// [`Trouble`]: no answer, an error of the API, or an answer that could not be read.
pub async fn get<T: DeserializeOwned>(path: &str, at_least: i64) -> Result<T, Trouble> {
    let answer = send("GET", path, None, &reading("application/json", at_least, false)).await?;
    read(path, &answer.body)
}

/// Reads rows of a view, and how many there are in all.
///
/// # Errors
/// As [`get`].
pub async fn rows(path: &str, at_least: i64, count: bool) -> Result<(Vec<Row>, Option<usize>), Trouble> {
    let answer = send("GET", path, None, &reading("application/json", at_least, count)).await?;
    let total = answer
        .content_range
        .as_deref()
        .and_then(|range| range.rsplit('/').next())
        .and_then(|n| n.parse().ok());
    Ok((read(path, &answer.body)?, total))
}

/// Reads a view as it is exported, as a file of that media type: `text/csv`, `application/x-ndjson` or
/// `application/vnd.apache.parquet`.
///
/// # Errors
/// As [`get`].
pub async fn export(path: &str, media_type: &str) -> Result<web_sys::Blob, Trouble> {
    let response = ask("GET", path, None, &reading(media_type, 0, false)).await?;
    if !response.ok() {
        return Err(refused(&response).await);
    }
    let blob = response.blob().map_err(|_| Trouble::network())?;
    Ok(JsFuture::from(blob).await.map_err(|_| Trouble::network())?.unchecked_into())
}

/// Reads a file in pieces, as they come. `take` says whether it wants more.
///
/// # Errors
/// As [`get`].
pub async fn pieces(path: &str, mut take: impl FnMut(&[u8]) -> bool) -> Result<(), Trouble> {
    let options = web_sys::RequestInit::new();
    options.set_credentials(web_sys::RequestCredentials::SameOrigin);
    let response = JsFuture::from(leptos::prelude::window().fetch_with_str_and_init(path, &options))
        .await
        .map_err(|_| Trouble::network())?
        .unchecked_into::<web_sys::Response>();
    if !response.ok() {
        return Err(refused(&response).await);
    }
    let Some(body) = response.body() else { return Ok(()) };
    let reader = body.get_reader().unchecked_into::<web_sys::ReadableStreamDefaultReader>();
    loop {
        let piece = JsFuture::from(reader.read()).await.map_err(|_| Trouble::network())?;
        let of = |name: &str| js_sys::Reflect::get(&piece, &name.into()).unwrap_or_default();
        if of("done").is_truthy() {
            return Ok(());
        }
        let bytes = js_sys::Uint8Array::new(&of("value")).to_vec();
        if !take(&bytes) {
            let _ = reader.cancel();
            return Ok(());
        }
    }
}

/// How a request was refused.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Refusal {
    /// The HTTP status; 0 when there was no answer.
    pub status: u16,
    /// Seconds after which it may be asked again, where the answer says so.
    pub retry_after_s: Option<f64>,
}

/// How a request is refused; nothing where it is answered. The answer itself is not read.
pub async fn refusal_of(path: &str) -> Option<Refusal> {
    let none = Refusal { status: 0, retry_after_s: None };
    let Ok(abort) = web_sys::AbortController::new() else { return Some(none) };
    let options = web_sys::RequestInit::new();
    options.set_credentials(web_sys::RequestCredentials::SameOrigin);
    options.set_signal(Some(&abort.signal()));
    let answer = JsFuture::from(leptos::prelude::window().fetch_with_str_and_init(path, &options)).await;
    let Ok(response) = answer.map(|a| a.unchecked_into::<web_sys::Response>()) else { return Some(none) };
    let (ok, status) = (response.ok(), response.status());
    let header = response.headers().get("retry-after").ok().flatten();
    abort.abort();
    (!ok).then(|| Refusal { status, retry_after_s: retry_after(header.as_deref()) })
}

/// Calls a procedure that answers something of its own.
///
/// # Errors
/// As [`get`].
pub async fn call<T: DeserializeOwned>(procedure: &str, arguments: &impl Serialize) -> Result<T, Trouble> {
    let path = format!("/api/rpc/{procedure}");
    let body = serde_json::to_string(arguments)
        .map_err(|error| Trouble::new(0, "unwritable_request", error.to_string(), ""))?;
    let answer = send("POST", &path, Some(body), &[("accept", "application/json".into())]).await?;
    read(&path, if answer.body.is_empty() { "null" } else { &answer.body })
}

/// Uploads a file for a command to name: its SHA-256.
///
/// # Errors
/// As [`get`].
pub async fn upload(file: &web_sys::Blob, sha256: &str) -> Result<(), Trouble> {
    let options = web_sys::RequestInit::new();
    options.set_method("PUT");
    options.set_credentials(web_sys::RequestCredentials::SameOrigin);
    let headers = web_sys::Headers::new().map_err(|_| Trouble::network())?;
    let _ = headers.set("x-benchtrail-csrf", "1");
    options.set_headers(&headers);
    options.set_body(file);
    let path = format!("/api/uploads/{sha256}");
    let response = JsFuture::from(leptos::prelude::window().fetch_with_str_and_init(&path, &options))
        .await
        .map_err(|_| Trouble::network())?
        .unchecked_into::<web_sys::Response>();
    if response.ok() { Ok(()) } else { Err(refused(&response).await) }
}

/// Gives a command.
///
/// # Errors
/// As [`get`].
pub async fn command(name: &str, arguments: &impl Serialize) -> Result<CommandReply, Trouble> {
    let path = format!("/api/rpc/{name}");
    let body = serde_json::to_string(arguments)
        .map_err(|error| Trouble::new(0, "unwritable_request", error.to_string(), ""))?;
    // A request that something on the way sends again does its work once.
    let key =
        format!("{:x}-{:x}", (js_sys::Math::random() * 1e15) as u64, (js_sys::Math::random() * 1e15) as u64);
    let answer =
        send("POST", &path, Some(body), &[("accept", "application/json".into()), ("idempotency-key", key)])
            .await?;
    read(&path, &answer.body)
}
