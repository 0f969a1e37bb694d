//! The answers that go with the page: what its program would ask first, asked for it, as the same reader.

use std::time::Duration;

use axum::body::to_bytes;
use axum::extract::{RawQuery, State};
use events::first_page::{self, FirstAnswer, FirstAnswers, FirstRequest};
use futures::future::join_all;
use http::{HeaderMap, HeaderValue, Method, Uri, header};
use serde_json::value::RawValue;

use super::{ApiPath, RequestContext, session, views};
use crate::auth::Principal;
use crate::state::AppState;

/// How long the page waits for its answers. What is not there by then, the program asks for itself.
const PATIENCE: Duration = Duration::from_millis(250);
/// The largest answer that goes along, bytes: what is larger must not keep the page from its first paint.
const MOST: usize = 128 << 10;

/// The answers for the reader of an address, as an element of the page. Visitors who did not sign in get none: whoever
/// asks for nothing but the page makes no work beyond it.
pub(super) async fn element(
    state: &AppState,
    principal: &Principal,
    context: RequestContext,
    headers: &HeaderMap,
    uri: &Uri,
) -> Option<String> {
    if !matches!(principal, Principal::User { .. }) {
        return None;
    }
    let deadline = tokio::time::Instant::now() + PATIENCE;
    let who = session::session(State(state.clone()), principal.clone(), headers.clone());
    let session = tokio::time::timeout_at(deadline, who).await.ok()?.ok()?.0;
    let position = session.position;
    let asked = first_page::requests(uri.path(), uri.query().unwrap_or_default());
    let answers = asked.into_iter().map(|request| async move {
        let answer = answer(state, principal, context, request, position);
        let answer = tokio::time::timeout_at(deadline, answer).await.ok()??;
        Some((request.path.to_owned(), answer))
    });
    let answers = join_all(answers).await.into_iter().flatten().collect();
    let json = serde_json::to_string(&FirstAnswers::<Box<RawValue>> { session, answers }).ok()?;
    Some(data(&json))
}

/// JSON as an element that is no script. In JSON a `<` stands within texts alone: escaped, nothing in the data ends the
/// element or begins another.
fn data(json: &str) -> String {
    let id = first_page::ELEMENT;
    format!("<script type=\"application/json\" id=\"{id}\">{}</script>", json.replace('<', "\\u003c"))
}

/// What a view answers to this reader, no older than the session.
async fn answer(
    state: &AppState,
    principal: &Principal,
    context: RequestContext,
    request: FirstRequest,
    position: i64,
) -> Option<FirstAnswer<Box<RawValue>>> {
    let (name, query) = request.path.strip_prefix("/api/")?.split_once('?')?;
    let counted = if request.counted { ", count=exact" } else { "" };
    let mut headers = HeaderMap::new();
    headers.insert("prefer", HeaderValue::from_str(&format!("at-least={position}{counted}")).ok()?);
    headers.insert(header::ACCEPT, HeaderValue::from_static("application/json"));
    let answer = views::view(
        State(state.clone()),
        principal.clone(),
        context,
        ApiPath(name.to_owned()),
        RawQuery(Some(query.to_owned())),
        headers,
        Method::GET,
    );
    let answer = answer.await.ok().filter(|answer| answer.status().is_success())?;
    let range = answer.headers().get(header::CONTENT_RANGE).and_then(|range| range.to_str().ok());
    let total = range.and_then(|range| range.rsplit('/').next()?.parse().ok());
    let body = to_bytes(answer.into_body(), MOST).await.ok()?;
    let rows = RawValue::from_string(String::from_utf8(body.to_vec()).ok()?).ok()?;
    Some(FirstAnswer { rows, total })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_text_in_the_answers_becomes_markup() {
        let hostile = serde_json::json!({"a": "</script><script>alert(1)</script><!--"});
        let element = data(&hostile.to_string());
        assert_eq!(element.matches('<').count(), 2, "{element}");
        let inner = &element[element.find('>').unwrap() + 1..element.rfind('<').unwrap()];
        assert_eq!(serde_json::from_str::<serde_json::Value>(inner).unwrap(), hostile);
    }
}
