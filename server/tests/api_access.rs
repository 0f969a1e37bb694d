//! Who may do what: every route and command against every kind of caller, and the ways in.

mod plane;

use std::time::{Duration, Instant};

use events::access::Role;
use events::first_page;
use plane::agent::Agent;
use plane::{Client, ORG, PASSWORD, Plane};
use reqwest::Method;
use serde_json::{Value, json};
use server::api::rpc::COMMANDS;
use server::api::{Access, router};
use server::clock;

/// Every kind of caller, with the role a person has.
async fn callers(plane: &Plane) -> Vec<(&'static str, Client, Option<Role>)> {
    vec![
        ("anonymous", plane.anonymous(), None),
        ("viewer", plane.client(Role::Viewer).await, Some(Role::Viewer)),
        ("member", plane.client(Role::Member).await, Some(Role::Member)),
        ("admin", plane.client(Role::Admin).await, Some(Role::Admin)),
        ("agent", Agent::enrol(plane, "h1").await.client, None),
        ("session", plane.anonymous(), Some(Role::Viewer)),
    ]
}

fn allowed(access: Access, name: &str, role: Option<Role>) -> bool {
    match access {
        Access::Anyone => true,
        Access::Agent => name == "agent",
        Access::Session => name == "session",
        Access::Person(needed) => role.is_some_and(|role| role >= needed),
    }
}

#[tokio::test]
async fn every_route_lets_in_whom_its_entry_names_and_nobody_else() {
    let plane = Plane::start().await;
    let mut callers = callers(&plane).await;
    plane.account("by-session@example.org", Role::Viewer).await;
    for (name, client, _) in &mut callers {
        if *name == "session" {
            client.sign_in("by-session@example.org", PASSWORD).await.ok();
        }
    }
    for route in router::routes() {
        if route.path == "/api/live" {
            continue; // Never ends; the live tests have it.
        }
        let path = route.path.replace("{sha256}", &"ab".repeat(32)).replace(['{', '}'], "");
        for (name, client, role) in &callers {
            let mut request = client.request(route.method.clone(), &path);
            if route.method == Method::POST {
                request = request.json(&json!({}));
            }
            let answer = client.send(request).await;
            let let_in = !matches!(answer.status.as_u16(), 401 | 403);
            // An enrolment without a token is a 422, never a matter of who asks.
            assert_eq!(
                let_in,
                allowed(route.access, name, *role),
                "{name} at {} {path}: {}",
                route.method,
                answer.text
            );
            assert!(answer.status.as_u16() < 500, "{name} at {} {path}: {}", route.method, answer.text);
        }
    }
    plane.stop().await;
}

#[tokio::test]
async fn every_command_lets_in_whom_its_entry_names_and_nobody_else() {
    let plane = Plane::start().await;
    let callers = callers(&plane).await;
    plane.account("by-session@example.org", Role::Viewer).await;
    for command in COMMANDS {
        for (name, client, role) in &callers {
            let mut client = client.clone();
            if *name == "session" {
                // Some commands end it.
                client.sign_in("by-session@example.org", PASSWORD).await.ok();
            }
            let answer = client.rpc(command.name, &json!({})).await;
            let let_in = !matches!(answer.status.as_u16(), 401 | 403);
            assert_eq!(
                let_in,
                allowed(command.access, name, *role),
                "{name}: {}: {}",
                command.name,
                answer.text
            );
            assert!(answer.status.as_u16() < 500, "{name}: {}: {}", command.name, answer.text);
        }
    }
    plane.stop().await;
}

#[tokio::test]
async fn a_session_begins_with_the_password_and_ends_with_the_sign_out() {
    let plane = Plane::start().await;
    plane.account("Ada@Example.org", Role::Member).await;
    let mut page = plane.anonymous();
    assert_eq!(page.get("/api/session").await.ok()["user"], json!(null));
    let answer = page.sign_in("ada@example.org", PASSWORD).await;
    assert_eq!(answer.ok()["role"], "member");
    let cookie = answer.headers["set-cookie"].to_str().unwrap();
    for part in ["benchtrail_session=", "HttpOnly", "SameSite=Lax", "Path=/", "Max-Age="] {
        assert!(cookie.contains(part), "{cookie}");
    }
    let session = page.get("/api/session").await.ok();
    assert_eq!((&session["org"], &session["name"]), (&json!(ORG), &json!("Ada@Example.org")));
    page.rpc("sign_out", &json!({})).await.ok();
    assert_eq!(page.get("/api/session").await.ok()["user"], json!(null), "the old cookie opens nothing");
    plane.stop().await;
}

#[tokio::test]
async fn a_cookie_over_https_is_for_https_only() {
    let plane = Plane::start_with(|config| config.public_url.set_scheme("https").unwrap()).await;
    plane.account("ada@example.org", Role::Member).await;
    let mut page = plane.anonymous();
    page.url = page.url.replace("https://", "http://");
    let answer = page.sign_in("ada@example.org", PASSWORD).await;
    answer.ok();
    assert!(answer.headers["set-cookie"].to_str().unwrap().contains("; Secure"));
    assert!(answer.headers.contains_key("strict-transport-security"));
    plane.stop().await;
}

#[tokio::test]
async fn a_change_by_cookie_must_come_from_the_page_itself() {
    let plane = Plane::start().await;
    plane.account("ada@example.org", Role::Member).await;
    let mut page = plane.anonymous();
    page.sign_in("ada@example.org", PASSWORD).await.ok();
    let args = json!({"p_name": "p", "p_project_code": "p"});
    let head = plane.head().await;

    let mut forged = page.clone();
    forged.csrf = false;
    assert_eq!(forged.rpc("create_project", &args).await.refused().code, "csrf_header_missing");
    let foreign =
        page.request(Method::POST, "/api/rpc/create_project").header("sec-fetch-site", "cross-site");
    assert_eq!(page.send(foreign.json(&args)).await.refused().code, "csrf_header_missing");
    assert_eq!(plane.head().await, head);
    assert_eq!(forged.get("/api/session").await.ok()["role"], "member", "reading needs no header");
    page.rpc("create_project", &args).await.ok();
    plane.stop().await;
}

#[tokio::test]
async fn an_unknown_account_and_a_wrong_password_look_and_take_the_same() {
    let plane = Plane::start().await;
    plane.account("ada@example.org", Role::Member).await;
    let mut quickest = [Duration::MAX; 2];
    let mut texts = [const { String::new() }; 2];
    for _ in 0..6 {
        for (index, email) in ["ada@example.org", "nobody@example.org"].into_iter().enumerate() {
            let began = Instant::now();
            let answer = plane.anonymous().sign_in(email, "a wrong password").await;
            quickest[index] = quickest[index].min(began.elapsed());
            assert_eq!(answer.status.as_u16(), 401);
            texts[index] = answer.text;
        }
    }
    assert_eq!(texts[0], texts[1]);
    let [known, unknown] = quickest.map(|time| time.as_secs_f64());
    assert!((0.5..2.0).contains(&(known / unknown)), "known {known} s, unknown {unknown} s");
    plane.stop().await;
}

#[tokio::test]
async fn guessing_is_throttled_and_does_not_lock_out_who_is_in() {
    let plane = Plane::start().await;
    plane.account("ada@example.org", Role::Member).await;
    let mut page = plane.anonymous();
    page.sign_in("ada@example.org", PASSWORD).await.ok();
    let mut guesser = plane.anonymous();
    for _ in 0..10 {
        assert_eq!(guesser.sign_in("ada@example.org", "guess").await.status.as_u16(), 401);
    }
    let answer = guesser.sign_in("ada@example.org", PASSWORD).await;
    assert_eq!((answer.status.as_u16(), answer.refused().code.as_str()), (429, "throttled"));
    assert!(answer.headers["retry-after"].to_str().unwrap().parse::<u64>().unwrap() > 0);
    assert_eq!(page.get("/api/session").await.ok()["role"], "member");
    // The audit trail says so, without the e-mail or the password.
    plane.until_type_after(0, "access.sign_in_refused").await;
    let events = plane.state.log.read_all(0, 10_000).await.unwrap();
    assert!(events.iter().all(|event| !event.payload.contains("ada@") && !event.payload.contains("guess")));
    plane.stop().await;
}

#[tokio::test]
async fn a_token_does_what_its_scopes_say_until_it_expires_or_is_revoked() {
    let plane = Plane::start().await;
    let user = plane.account("ada@example.org", Role::Member).await;
    let read = plane.token_of(user, ORG, Role::Member, &["read"], clock::now()).await;
    let read = Client::with_token(&plane.url, &read);
    let args = json!({"p_name": "p", "p_project_code": "p"});
    let refused = read.rpc("create_project", &args).await;
    assert_eq!((refused.status.as_u16(), refused.refused().code.as_str()), (403, "scope_missing"));

    let two_days_ago = clock::now().plus_micros(-2 * 86_400_000_000);
    let expired = plane.token_of(user, ORG, Role::Member, &["write"], two_days_ago).await;
    let expired = Client::with_token(&plane.url, &expired);
    assert_eq!(expired.get("/api/session").await.refused().code, "bad_token");

    let admin = plane.client(Role::Admin).await;
    let member = Client::with_token(
        &plane.url,
        &plane.token_of(user, ORG, Role::Member, &["write"], clock::now()).await,
    );
    let wider = json!({"p_name": "t", "p_scopes": ["admin"], "p_expires_in_days": 1});
    assert_eq!(member.rpc("create_api_token", &wider).await.refused().code, "scopes_too_wide");
    let made = member
        .rpc("create_api_token", &json!({"p_name": "t", "p_scopes": ["write"], "p_expires_in_days": 1}))
        .await
        .ok();
    let new = Client::with_token(&plane.url, made["token"].as_str().unwrap());
    new.rpc("create_project", &args).await.ok();
    let stranger = plane.client(Role::Member).await;
    let revoke = json!({"p_token_id": made["token_id"]});
    assert_eq!(stranger.rpc("revoke_api_token", &revoke).await.refused().code, "not_found");
    admin.rpc("revoke_api_token", &revoke).await.ok();
    assert_eq!(new.get("/api/session").await.refused().code, "bad_token");
    plane.stop().await;
}

#[tokio::test]
async fn no_secret_stands_in_the_database_as_it_was_given() {
    let plane = Plane::start().await;
    plane.account("ada@example.org", Role::Member).await;
    let token = plane.token(Role::Admin, &["admin"]).await;
    let rows: Vec<String> = sqlx::query_scalar(
        "select u::text from vault.users u union all select t::text from vault.api_tokens t
         union all select s::text from vault.sessions s union all select e::text from vault.enrol_tokens e",
    )
    .fetch_all(&plane.state.pool)
    .await
    .unwrap();
    let hex_of = |text: &str| hex::encode(text);
    for secret in ["ada@example.org", PASSWORD, &token] {
        let found = rows.iter().any(|row| row.contains(secret) || row.contains(&hex_of(secret)));
        assert!(!found, "{secret} stands in the vault");
    }
    assert!(rows.iter().any(|row| row.contains("$argon2id$")));
    // The reading role cannot look into the vault at all.
    let look = sqlx::query("select 1 from vault.users").fetch_optional(&plane.state.reader).await;
    assert!(look.unwrap_err().to_string().contains("permission denied"));
    plane.stop().await;
}

#[tokio::test]
async fn every_answer_keeps_a_browser_safe_and_names_its_request() {
    let plane = Plane::start().await;
    let anonymous = plane.anonymous();
    for path in ["/healthz", "/api/session", "/api/nothing", "/"] {
        let answer = anonymous.get(path).await;
        for (name, value) in [
            ("x-content-type-options", "nosniff"),
            ("x-frame-options", "DENY"),
            ("referrer-policy", "same-origin"),
        ] {
            assert_eq!(answer.headers[name], value, "{path}");
        }
        assert!(answer.headers["content-security-policy"].to_str().unwrap().contains("default-src 'none'"));
        assert!(answer.headers["x-request-id"].to_str().unwrap().parse::<uuid::Uuid>().is_ok());
    }
    assert_eq!(anonymous.get("/api/session").await.headers["cache-control"], "no-store");
    plane.stop().await;
}

/// The answers in a page's HTML.
fn answers(html: &str) -> Option<Value> {
    let (_, rest) = html.split_once(&format!("id=\"{}\">", first_page::ELEMENT))?;
    Some(serde_json::from_str(rest.split_once("</script>")?.0).unwrap())
}

#[tokio::test]
async fn the_page_comes_with_what_its_reader_would_be_answered_and_with_nothing_for_visitors() {
    let dir = tempfile::Builder::new().prefix("btpage").tempdir_in("/tmp").unwrap();
    std::fs::write(dir.path().join("index.html"), "<html><head></head><body></body></html>").unwrap();
    std::fs::write(dir.path().join("parts.json"), r#"{"compare":["/app-0/split_compare.wasm"]}"#).unwrap();
    let folder = dir.path().to_owned();
    let plane = Plane::start_with(move |config| config.page_dir = Some(folder)).await;
    let (_agent, held) = plane.held("h1").await;
    let job = format!("{}", held.job.stream());
    plane.account("own@example.org", Role::Viewer).await;
    plane.account_in("other", "other@example.org", Role::Admin).await;
    let (mut own, mut other) = (plane.anonymous(), plane.anonymous());
    own.sign_in("own@example.org", PASSWORD).await.ok();
    other.sign_in("other@example.org", PASSWORD).await.ok();

    for path in ["/", "/monitoring", "/reporting"] {
        let page = own.get(path).await;
        assert_eq!(page.headers["cache-control"], "no-store", "{path}");
        let answers = answers(&page.text).expect("answers");
        assert_eq!(answers["session"]["org"], ORG);
        for request in first_page::requests(path, "") {
            let answer = &answers["answers"][request.path];
            assert_eq!(answer["rows"], own.get(request.path).await.ok(), "{}", request.path);
            assert_eq!(answer["total"].is_u64(), request.counted, "{}", request.path);
        }
    }
    // The job that runs is there for its own organisation, and for nobody else.
    let running =
        |text: &str| answers(text).expect("answers")["answers"][first_page::RUNNING.path]["rows"].clone();
    assert_eq!(running(&own.get("/").await.text)[0]["job"], job);
    assert_eq!(running(&other.get("/").await.text), json!([]));
    // Where the address says how the table is set, the program asks for it.
    let set = answers(&own.get("/reporting?sort=ttft_p50_ms").await.text).expect("answers");
    assert!(set["answers"][first_page::EVERYTHING.path].is_object());
    assert!(set["answers"].get(first_page::REPORTED.path).is_none());

    for visitor in [plane.anonymous(), plane.client(Role::Admin).await] {
        let page = visitor.get("/reporting").await;
        assert!(answers(&page.text).is_none(), "{}", page.text);
        assert_eq!(page.headers["cache-control"], "no-cache");
        assert!(page.text.contains("/app-0/split_compare.wasm"), "{}", page.text);
        assert!(!visitor.get("/").await.text.contains("/app-0/"));
    }
    plane.stop().await;
}
