//! Signing in by an OpenID provider: a real one, in a process of its own.

mod plane;

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader};
use std::path::PathBuf;
use std::process::{Child, ChildStdout, Command, Stdio};

use events::access::Role;
use plane::{Answer, Client, PASSWORD, Plane};
use reqwest::header::{HeaderMap, LOCATION, SET_COOKIE};
use serde_json::{Value, json};
use server::auth::oidc::OidcConfig;
use server::secrets::Hidden;
use url::Url;

/// A provider's process, which ends with the test.
struct Provider {
    child: Child,
    issuer: String,
    /// Kept open: it writes there.
    _stdout: BufReader<ChildStdout>,
}

impl Drop for Provider {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn modules() -> PathBuf {
    let cache = std::env::var_os("BENCHTRAIL_CACHE").map(PathBuf::from);
    let home = || PathBuf::from(std::env::var_os("HOME").expect("HOME")).join(".cache/benchtrail");
    let modules = cache.unwrap_or_else(home).join("npm/oidc");
    assert!(modules.join("node_modules/oidc-provider").is_dir(), "run `scripts/setup test` first");
    modules
}

impl Provider {
    fn start(back: &str, place: &str) -> Self {
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/oidc/provider.mjs");
        let mut child = Command::new("node")
            .arg(script)
            .arg(modules())
            .args([back, place])
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("node starts");
        let mut issuer = String::new();
        let mut stdout = BufReader::new(child.stdout.take().unwrap());
        stdout.read_line(&mut issuer).unwrap();
        Self { child, issuer: issuer.trim().to_owned(), _stdout: stdout }
    }
}

/// A control plane with a provider that keeps the e-mail where `place` says.
async fn start(place: &str) -> (Plane, Provider) {
    let mut provider = None;
    let plane = Plane::start_with(|config| {
        let url = config.public_url.as_str().trim_end_matches('/');
        let started = Provider::start(&format!("{url}/api/oidc/callback"), place);
        config.oidc = Some(OidcConfig {
            issuer: started.issuer.clone(),
            client_id: "benchtrail".into(),
            client_secret: Some(Hidden::new("the client secret")),
            label: "Example SSO".into(),
        });
        provider = Some(started);
    })
    .await;
    (plane, provider.unwrap())
}

/// A browser with a cookie jar for each of the two hosts.
struct Browser {
    page: Client,
    http: reqwest::Client,
    jar: BTreeMap<String, String>,
}

fn cookies(headers: &HeaderMap) -> impl Iterator<Item = (String, String)> {
    headers.get_all(SET_COOKIE).iter().filter_map(|value| {
        let (name, value) = value.to_str().ok()?.split(';').next()?.split_once('=')?;
        Some((name.to_owned(), value.to_owned()))
    })
}

impl Browser {
    fn new(plane: &Plane) -> Self {
        let http = reqwest::Client::builder()
            .no_proxy()
            .redirect(reqwest::redirect::Policy::none())
            .build()
            .unwrap();
        Self { page: plane.anonymous(), http, jar: BTreeMap::new() }
    }

    /// Presses the button: gives the provider's address.
    async fn press(&mut self, args: Value) -> Url {
        let answer = self.page.rpc("start_oidc_sign_in", &args).await;
        let url = answer.ok()["authorization_url"].as_str().unwrap().parse().unwrap();
        let (name, value) = cookies(&answer.headers).next().unwrap();
        let set = answer.headers[SET_COOKIE].to_str().unwrap();
        assert!(
            set.contains("HttpOnly")
                && set.contains("SameSite=Lax")
                && set.contains("Path=/api/oidc/callback")
        );
        self.page.cookie = Some(format!("{name}={value}"));
        url
    }

    /// Goes through the provider as somebody: gives the address it sends the browser back to.
    async fn through(&mut self, mut url: Url, who: &str) -> Url {
        url.query_pairs_mut().append_pair("login_hint", who);
        loop {
            let jar: Vec<String> = self.jar.iter().map(|(name, value)| format!("{name}={value}")).collect();
            let request = self.http.get(url.clone()).header("cookie", jar.join("; "));
            let response = request.send().await.unwrap();
            self.jar.extend(cookies(response.headers()));
            let status = response.status();
            let Some(to) = response.headers().get(LOCATION).map(|to| to.to_str().unwrap().to_owned()) else {
                panic!("{status} at {url}: {}", response.text().await.unwrap());
            };
            url = url.join(&to).unwrap();
            if url.path() == "/api/oidc/callback" {
                return url;
            }
        }
    }

    /// Comes back: gives where it is sent on to, and keeps the session if there is one.
    async fn come_back(&mut self, url: &Url) -> String {
        let answer = self.answer(url).await;
        assert_eq!(answer.status.as_u16(), 303, "{}", answer.text);
        if let Some((name, value)) = cookies(&answer.headers).find(|(name, _)| name == "benchtrail_session") {
            self.page.cookie = Some(format!("{name}={value}"));
        }
        answer.headers[LOCATION].to_str().unwrap().to_owned()
    }

    async fn answer(&self, url: &Url) -> Answer {
        let mut request = self.http.get(url.clone());
        if let Some(cookie) = &self.page.cookie {
            request = request.header("cookie", cookie);
        }
        self.page.send(request).await
    }

    /// The whole way.
    async fn sign_in(&mut self, who: &str) -> String {
        let url = self.press(json!({"p_return_to": "/reporting?model=x"})).await;
        let back = self.through(url, who).await;
        self.come_back(&back).await
    }
}

#[tokio::test]
async fn a_verified_email_opens_its_account_and_the_subject_is_known_from_then_on() {
    let (plane, _provider) = start("userinfo").await;
    let ada = plane.account("Ada@Example.org", Role::Member).await;
    assert_eq!(plane.anonymous().get("/api/session").await.ok()["oidc"], "Example SSO");
    let mut browser = Browser::new(&plane);
    assert_eq!(browser.sign_in("ada@example.org").await, "/reporting?model=x");
    let session = browser.page.get("/api/session").await.ok();
    assert_eq!((&session["user"], &session["role"]), (&json!(ada.to_string()), &json!("member")));

    let mut again = Browser::new(&plane);
    again.sign_in("ada@example.org").await;
    assert_eq!(again.page.get("/api/session").await.ok()["user"], json!(ada.to_string()));
    let types = plane.types_after(0).await;
    assert_eq!(types.iter().filter(|name| *name == "access.identity_linked").count(), 1);
    assert_eq!(types.iter().filter(|name| *name == "access.signed_in").count(), 2);
    // What the provider knows of a person is in no event.
    let events = plane.state.log.read_all(0, 10_000).await.unwrap();
    assert!(events.iter().all(|event| !event.payload.to_lowercase().contains("ada@")));
    plane.stop().await;
}

#[tokio::test]
async fn an_email_in_the_id_token_serves_as_well() {
    let (plane, _provider) = start("id-token").await;
    plane.account("ada@example.org", Role::Viewer).await;
    let mut browser = Browser::new(&plane);
    assert_eq!(browser.sign_in("ada@example.org").await, "/reporting?model=x");
    assert_eq!(browser.page.get("/api/session").await.ok()["role"], "viewer");
    plane.stop().await;
}

#[tokio::test]
async fn an_email_that_is_not_verified_or_unknown_opens_nothing() {
    let (plane, _provider) = start("userinfo").await;
    plane.account("ada@example.org", Role::Admin).await;
    for who in ["unverified:ada@example.org", "nobody@example.org"] {
        let mut browser = Browser::new(&plane);
        assert_eq!(browser.sign_in(who).await, "/sign-in?error=oidc_no_account", "{who}");
        assert_eq!(browser.page.get("/api/session").await.ok()["user"], json!(null));
    }
    let mut browser = Browser::new(&plane);
    assert_eq!(browser.sign_in("refuse").await, "/sign-in?error=oidc_refused");
    plane.stop().await;
}

#[tokio::test]
async fn the_answer_counts_once_in_the_browser_that_asked_and_with_its_own_state() {
    let (plane, _provider) = start("userinfo").await;
    plane.account("ada@example.org", Role::Member).await;
    let mut browser = Browser::new(&plane);
    let url = browser.press(json!({})).await;
    let back = browser.through(url, "ada@example.org").await;

    // In another browser, or with another state, it opens nothing.
    let mut other = Browser::new(&plane);
    assert_eq!(other.come_back(&back).await, "/sign-in?error=oidc_not_begun");
    other.press(json!({})).await;
    assert_eq!(other.come_back(&back).await, "/sign-in?error=oidc_not_begun");
    assert_eq!(browser.come_back(&back).await, "/");
    let cookie = browser.page.cookie.clone();
    // Nor a second time.
    assert_eq!(browser.come_back(&back).await, "/sign-in?error=oidc_not_begun");
    assert_eq!(browser.page.cookie, cookie);
    let nothing: Url = format!("{}/api/oidc/callback", plane.url).parse().unwrap();
    assert_eq!(browser.come_back(&nothing).await, "/sign-in?error=oidc_not_begun");
    plane.stop().await;
}

/// The address with one parameter changed.
fn with(url: &Url, name: &str, value: &str) -> Url {
    let pairs: Vec<(String, String)> = url
        .query_pairs()
        .map(|(key, old)| (key.to_string(), if key == name { value.to_owned() } else { old.to_string() }))
        .collect();
    let mut changed = url.clone();
    changed.query_pairs_mut().clear().extend_pairs(pairs);
    changed
}

#[tokio::test]
async fn another_nonce_or_another_code_challenge_opens_nothing() {
    let (plane, _provider) = start("userinfo").await;
    plane.account("ada@example.org", Role::Member).await;
    for (name, value) in
        [("nonce", "somebody-elses"), ("code_challenge", "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA")]
    {
        let mut browser = Browser::new(&plane);
        let url = browser.press(json!({})).await;
        assert_eq!(url.query_pairs().find(|(key, _)| key == "code_challenge_method").unwrap().1, "S256");
        let back = browser.through(with(&url, name, value), "ada@example.org").await;
        assert_eq!(browser.come_back(&back).await, "/sign-in?error=oidc_provider", "{name}");
        assert_eq!(browser.page.get("/api/session").await.ok()["user"], json!(null));
    }
    plane.stop().await;
}

#[tokio::test]
async fn nobody_is_sent_to_another_site() {
    let (plane, _provider) = start("userinfo").await;
    for to in [
        "//evil.example",
        "https://evil.example/",
        "/\\evil.example",
        "\\\\evil.example",
        "javascript:alert(1)",
    ] {
        let refused = plane.anonymous().rpc("start_oidc_sign_in", &json!({"p_return_to": to})).await;
        assert_eq!(refused.refused().code, "bad_return_path", "{to}");
    }
    plane.stop().await;
}

#[tokio::test]
async fn an_invitation_is_accepted_with_a_new_account_of_the_providers() {
    let (plane, _provider) = start("userinfo").await;
    plane.account("ann@example.org", Role::Admin).await;
    let mut ann = plane.anonymous();
    ann.sign_in("ann@example.org", PASSWORD).await.ok();
    let made =
        ann.rpc("create_invitation", &json!({"p_role": "member", "p_email": "new@example.org"})).await.ok();
    let secret = made["link"].as_str().unwrap().split_once('#').unwrap().1.to_owned();

    let mut eve = Browser::new(&plane);
    let url = eve.press(json!({"p_invitation": secret})).await;
    let back = eve.through(url, "eve@example.org").await;
    assert_eq!(eve.come_back(&back).await, "/sign-in?error=invitation_for_another");

    let mut new = Browser::new(&plane);
    let url = new.press(json!({"p_invitation": secret})).await;
    let back = new.through(url, "new@example.org").await;
    assert_eq!(new.come_back(&back).await, "/");
    let session = new.page.get("/api/session").await.ok();
    assert_eq!((&session["name"], &session["role"]), (&json!("Ada of the Provider"), &json!("member")));
    // It has no password that could be guessed.
    assert_eq!(plane.anonymous().sign_in("new@example.org", PASSWORD).await.status.as_u16(), 401);
    let again = plane.anonymous().rpc("start_oidc_sign_in", &json!({"p_invitation": secret})).await;
    assert_eq!(again.refused().code, "invitation_not_valid");
    plane.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn where_a_providers_documents_lead_is_judged_like_any_address() {
    let (plane, _provider) = start("strays").await;
    let answer = plane.anonymous().rpc("start_oidc_sign_in", &json!({"p_return_to": "/"})).await;
    assert!(!answer.status.is_success(), "{}", answer.text);
    assert!(answer.text.contains("169.254.169.254 is not a public address"), "{}", answer.text);
    plane.stop().await;
}

#[tokio::test]
async fn without_a_provider_there_is_no_such_sign_in_and_one_that_is_gone_is_named() {
    let plane = Plane::start().await;
    assert_eq!(plane.anonymous().rpc("start_oidc_sign_in", &json!({})).await.refused().code, "oidc_off");
    assert!(plane.anonymous().get("/api/session").await.ok().get("oidc").is_none());
    plane.stop().await;
    let (plane, provider) = start("userinfo").await;
    drop(provider);
    let answer = plane.anonymous().rpc("start_oidc_sign_in", &json!({})).await;
    assert_eq!((answer.status.as_u16(), answer.json()["code"].as_str()), (502, Some("oidc_provider")));
    plane.stop().await;
}
