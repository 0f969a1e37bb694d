//! The page: built files from one folder, from this origin, under a strict policy.
//!
//! Every path that is not a file is the page itself (`index.html`), so that a deep link opens what it names. With it go
//! the names of the part of the program that the address needs, and for whoever is signed in what the program asks first.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{LazyLock, Mutex};
use std::time::SystemTime;

use axum::body::Body;
use axum::extract::{Request, State};
use axum::response::{IntoResponse, Response};
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use http::{HeaderValue, Method, StatusCode, header};
use sha2::{Digest, Sha256};
use tower::ServiceExt as _;
use tower_http::services::ServeDir;

use super::error::{Failure, no_such_path, wrong_method};
use super::{RequestContext, first_page};
use crate::auth::Principal;
use crate::state::AppState;

/// Names that end so are files: what is missing of them is an error, not the page.
const FILES: &[&str] =
    &["js", "mjs", "wasm", "css", "map", "png", "svg", "ico", "webp", "woff2", "json", "txt", "webmanifest"];

/// The handler of everything that no route names.
pub async fn fallback(
    State(state): State<AppState>,
    principal: Principal,
    context: RequestContext,
    request: Request,
) -> Response {
    let path = request.uri().path().to_owned();
    if path == "/api" || path.starts_with("/api/") {
        return no_such_path(&path).into_response();
    }
    if !matches!(*request.method(), Method::GET | Method::HEAD) {
        return wrong_method(request.method().clone()).await.into_response();
    }
    let Some(dir) = state.config.page_dir.as_deref() else { return no_page().into_response() };
    let (uri, headers) = (request.uri().clone(), request.headers().clone());
    if path != "/" && path != "/index.html" {
        let found = file(dir, request).await;
        if found.status() != StatusCode::NOT_FOUND {
            return found;
        }
        let extension = path.rsplit('/').next().unwrap_or_default().rsplit_once('.').map(|(_, end)| end);
        if extension.is_some_and(|end| FILES.contains(&end)) {
            return no_such_path(&path).into_response();
        }
    }
    match Index::read(dir) {
        Ok(index) => {
            let answers = first_page::element(&state, &principal, context, &headers, &uri).await;
            index.at(&path, answers)
        }
        Err(error) => {
            tracing::error!(%error, dir = %dir.display(), "the page cannot be read");
            no_page().into_response()
        }
    }
}

fn no_page() -> Failure {
    Failure::not_found(
        "no_page",
        "the page is not built here; the API is under /api",
        "build it with scripts/build page and start with --page-dir frontend/dist",
    )
}

async fn file(dir: &Path, request: Request) -> Response {
    let name = request.uri().path().to_owned();
    let service =
        ServeDir::new(dir).append_index_html_on_directories(false).precompressed_br().precompressed_gzip();
    let Ok(response) = service.oneshot(request).await;
    let mut response = response.map(Body::new);
    if response.status().is_success() {
        let policy =
            if names_its_content(&name) { "public, max-age=31536000, immutable" } else { "no-cache" };
        response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static(policy));
    }
    response
}

/// Whether a file's name holds a hash of its content, or its folder's, as the build gives them:
/// `app-1f0c2d3e4b5a6978/app_bg.wasm`.
fn names_its_content(name: &str) -> bool {
    name.split(['-', '_', '.', '/'])
        .any(|part| part.len() >= 12 && part.bytes().all(|b| b.is_ascii_hexdigit()))
}

/// The files of each part of the program, by its name: written by the build beside the page.
type Parts = BTreeMap<String, Vec<String>>;

/// The page's HTML with the policy that allows exactly its own inline scripts.
#[derive(Debug, Clone)]
struct Index {
    html: String,
    policy: HeaderValue,
    parts: Parts,
}

type Cached = Option<(std::path::PathBuf, SystemTime, Index)>;
static CACHED: LazyLock<Mutex<Cached>> = LazyLock::new(Mutex::default);

impl Index {
    fn read(dir: &Path) -> std::io::Result<Self> {
        let path = dir.join("index.html");
        let modified = std::fs::metadata(&path)?.modified()?;
        let mut cached = CACHED.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        if let Some((known, at, index)) = &*cached
            && *known == path
            && *at == modified
        {
            return Ok(index.clone());
        }
        // Without it every part is found all the same, once the program asks for it.
        let parts = std::fs::read(dir.join("parts.json")).ok();
        let parts = parts.and_then(|json| serde_json::from_slice(&json).ok()).unwrap_or_default();
        let index = Self::of(std::fs::read_to_string(&path)?, parts);
        *cached = Some((path, modified, index.clone()));
        Ok(index)
    }

    fn of(html: String, parts: Parts) -> Self {
        let hashes: String = inline_scripts(&html)
            .map(|script| format!(" 'sha256-{}'", BASE64_STANDARD.encode(Sha256::digest(script))))
            .collect();
        // Plotly writes style attributes when a point is picked; style sheets come from here alone. Images: charts are saved
        // as data and blob URLs.
        let policy = format!(
            "default-src 'none'; script-src 'self' 'wasm-unsafe-eval'{hashes}; style-src 'self'; style-src-attr 'unsafe-inline'; \
             img-src 'self' data: blob:; font-src 'self'; connect-src 'self'; manifest-src 'self'; worker-src 'self'; \
             base-uri 'none'; form-action 'self'; frame-ancestors 'none'; object-src 'none'"
        );
        Self { policy: HeaderValue::from_str(&policy).expect("base64 and ASCII"), html, parts }
    }

    /// The page at an address, with the names of its part of the program, which its first file fetches once the page is
    /// painted, and the answers that go along.
    fn at(&self, path: &str, answers: Option<String>) -> Response {
        let files = events::first_page::part(path).and_then(|part| self.parts.get(part));
        let links: String = files
            .into_iter()
            .flatten()
            .map(|file| format!("<meta name=\"program-part\" content=\"{file}\">"))
            .collect();
        let mut html = self.html.replacen("</head>", &format!("{links}</head>"), 1);
        if let Some(head) = events::first_page::head(path) {
            html = headed(&html, head);
        }
        if let Some(answers) = &answers {
            html = html.replacen("</body>", &format!("{answers}</body>"), 1);
        }
        let etag = format!("\"{}\"", hex::encode(&Sha256::digest(html.as_bytes())[..16]));
        let mut response = html.into_response();
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/html; charset=utf-8"));
        headers.insert(header::CONTENT_SECURITY_POLICY, self.policy.clone());
        // What a reader may see is nobody else's to keep.
        let kept = if answers.is_some() { "no-store" } else { "no-cache" };
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static(kept));
        headers.insert(header::ETAG, HeaderValue::from_str(&etag).expect("hexadecimal"));
        response
    }
}

/// What stands in the page, until the program is there, for a heading that is not known.
const UNKNOWN_HEAD: &str = "<div class=\"skeleton skeleton-head\"></div>";

/// The page with its heading in it and on its tab: painted with the first bytes, where the program's own will stand.
fn headed(html: &str, head: events::first_page::Head) -> String {
    let (title, words) = (head.title, head.words);
    let shown = format!("<div class=\"page-head\"><h1>{title}</h1><p class=\"meta\">{words}</p></div>");
    html.replacen(UNKNOWN_HEAD, &shown, 1).replacen(
        "<title>Benchtrail</title>",
        &format!("<title>{title} · Benchtrail</title>"),
        1,
    )
}

/// The texts of the scripts that stand in the HTML itself.
fn inline_scripts(html: &str) -> impl Iterator<Item = &str> {
    let mut rest = html;
    std::iter::from_fn(move || {
        loop {
            let start = rest.find("<script")?;
            let open = &rest[start..];
            let end_of_tag = open.find('>')?;
            let (tag, after) = open.split_at(end_of_tag + 1);
            let end = after.find("</script>")?;
            let text = &after[..end];
            rest = &after[end..];
            if !tag.contains(" src=") && !text.is_empty() {
                return Some(text);
            }
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_policy_names_the_inline_scripts_and_no_others() {
        let html = r#"<script type="module">boot()</script><script src="a.js"></script><script>x</script>"#;
        assert_eq!(inline_scripts(html).collect::<Vec<_>>(), ["boot()", "x"]);
        let policy = Index::of(html.to_owned(), Parts::new()).policy;
        let policy = policy.to_str().unwrap();
        assert_eq!(policy.matches("'sha256-").count(), 2);
        assert!(policy.contains(&BASE64_STANDARD.encode(Sha256::digest("boot()"))));
        assert_eq!(policy.matches("'unsafe-inline'").count(), 1);
        assert!(policy.contains("style-src 'self'; style-src-attr 'unsafe-inline';"));
    }

    #[test]
    fn an_address_comes_with_its_part_of_the_program() {
        let parts = Parts::from([("compare".to_owned(), vec!["/app-1/split_compare.wasm".to_owned()])]);
        let index = Index::of("<head></head><body></body>".to_owned(), parts);
        let links = |path: &str| {
            let index = index.clone();
            let path = path.to_owned();
            async move {
                let body = axum::body::to_bytes(index.at(&path, None).into_body(), 10_000).await.unwrap();
                String::from_utf8(body.to_vec()).unwrap().matches("/app-1/split_compare.wasm").count()
            }
        };
        futures::executor::block_on(async {
            assert_eq!((links("/reporting").await, links("/leaderboard").await), (1, 1));
            assert_eq!((links("/").await, links("/hardware").await), (0, 0));
        });
    }

    #[test]
    fn a_page_is_headed_before_its_program_is_there() {
        let page = include_str!("../../../frontend/index.html");
        assert_eq!(page.matches(UNKNOWN_HEAD).count(), 1, "the page has a place for its heading");
        let head = events::first_page::REPORTING;
        let shown = headed(page, head);
        assert!(shown.contains(&format!("<h1>{}</h1><p class=\"meta\">{}</p>", head.title, head.words)));
        assert!(shown.contains("<title>Reporting · Benchtrail</title>") && !shown.contains(UNKNOWN_HEAD));
    }

    #[test]
    fn what_a_reader_may_see_is_kept_by_nobody() {
        let index = Index::of("<body></body>".to_owned(), Parts::new());
        let kept = |answers: Option<&str>| {
            let response = index.at("/", answers.map(str::to_owned));
            response.headers()[header::CACHE_CONTROL].to_str().unwrap().to_owned()
        };
        assert_eq!((kept(None).as_str(), kept(Some("<i></i>")).as_str()), ("no-cache", "no-store"));
    }

    #[test]
    fn a_file_named_by_its_content_is_kept_for_good() {
        assert!(names_its_content("/frontend-1f0c2d3e4b5a6978_bg.wasm"));
        assert!(names_its_content("/app-1f0c2d3e4b5a6978/app_bg.wasm"));
        assert!(!names_its_content("/app/app_bg.wasm"));
        assert!(!names_its_content("/plotly-benchtrail.min.js"));
        assert!(!names_its_content("/favicon.svg"));
    }
}
