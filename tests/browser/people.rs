//! People: one's own tokens, sessions, password and notices; who works in the organisation, invited by a link; signing in
//! by another provider; what a role may not do.

use serde_json::{Value, json};
use support::api::Api;
use support::browser::{Browser, DESKTOP, PHONE};
use support::control_plane::ControlPlane;
use support::outside::{MailServer, OidcProvider, Receiver};
use support::services::free_port;

use crate::pages::{becomes, fits_the_window, visit};

const NEXT_PASSWORD: &str = "a longer password than before";

/// Errors of the console but those of requests that were refused on purpose.
async fn unexpected_errors(browser: &Browser) -> Vec<String> {
    let refused = |e: &String| {
        !["400", "401", "403", "409", "410", "422"].iter().any(|s| e.contains(&format!("status of {s}")))
    };
    browser.console_errors().await.into_iter().filter(refused).collect()
}

#[tokio::test]
async fn a_person_minds_tokens_sessions_a_password_and_what_they_are_told() {
    let mut mail = MailServer::start().await;
    let receiver = Receiver::start().await;
    let env = vec![
        ("BENCHTRAIL_SMTP_URL", mail.url.clone()),
        ("BENCHTRAIL_SMTP_FROM", "Benchtrail <bench@example.org>".to_owned()),
        ("BENCHTRAIL_OUTBOUND_ALLOW", "127.0.0.0/8".to_owned()),
    ];
    let plane = ControlPlane::start_with(0, env).await;
    let (email, password) = plane.first_sign_in();
    let browser = Browser::open(&plane.url, DESKTOP).await;
    browser.sign_in(&email, &password).await;
    visit(&browser, "/profile").await;
    tokens(&browser, &plane).await;
    told(&browser, &mut mail, &receiver).await;
    browser.run("scrollTo(0, 0)", json!([])).await;
    browser.screenshot("profile").await;
    browser.run("document.querySelector('[data-testid=notifications]').scrollIntoView()", json!([])).await;
    browser.screenshot("profile-notifications").await;
    sessions(&browser, &plane, &email, &password).await;
    password_of(&browser, &password).await;
    Api::sign_in(&plane.url, &email, NEXT_PASSWORD).await;

    browser.fill("my-name", "Ada L.").await;
    browser.click("change-name").await;
    let rail =
        "return document.querySelector('[data-testid=rail-user]')?.textContent.startsWith('Ada L.') ?? false";
    browser.until("the new name in the rail", rail).await;
    assert_eq!(unexpected_errors(&browser).await, Vec::<String>::new());
    browser.close().await;

    let phone = Browser::open(&plane.url, PHONE).await;
    phone.sign_in(&email, NEXT_PASSWORD).await;
    visit(&phone, "/profile").await;
    fits_the_window(&phone, "/profile").await;
    phone.screenshot("profile-phone").await;
    phone.close().await;
}

/// A token is made, works, and is revoked; a Hugging Face token is kept and shown by its fingerprint alone.
async fn tokens(browser: &Browser, plane: &ControlPlane) {
    browser.fill("token-name", "nightly").await;
    browser.click("make-token").await;
    let made = browser.text("token").await;
    assert!(made.starts_with("bt_u_"), "{made}");
    let state = "return document.querySelector('[data-testid=api-token]')?.dataset.state ?? null";
    becomes(browser, "the token in the list", state, json!("good")).await;
    let asked = async || {
        let url = format!("{}/api/session", plane.url);
        let answer = support::api::http().get(url).bearer_auth(&made).send().await.expect("an answer");
        answer.json::<Value>().await.ok().and_then(|s| s["org"].as_str().map(str::to_owned))
    };
    assert_eq!(asked().await.as_deref(), Some("main"), "the token works");
    browser.click("revoke-token").await;
    browser.click("revoke-token-sure").await;
    becomes(browser, "the token revoked", state, json!("revoked")).await;
    assert_eq!(asked().await, None, "the token works no more");

    browser.fill("hf-token", "hf_abcdefghijklmnopqrstuvwxyz0123456789").await;
    browser.click("save-hf").await;
    browser.see("hf-kept").await;
    let shown = "return document.querySelector('main').textContent.includes('hf_abcdef')";
    becomes(browser, "no token on the page", shown, json!(false)).await;
    browser.click("remove-hf").await;
    browser.click("remove-hf-sure").await;
    browser.until("no token kept", "return document.querySelector('[data-testid=hf-kept]') === null").await;
}

/// What one is told is one's own to say; a test of each way arrives, and the list says so by itself.
async fn told(browser: &Browser, mail: &mut MailServer, receiver: &Receiver) {
    browser.choose("notify-run_failed", "all").await;
    let kept = "return document.querySelector('[data-testid=notify-run_failed]').value";
    browser.click("notify-weekly_summary").await;
    let weekly = "return document.querySelector('[data-testid=notify-weekly_summary]').checked";
    becomes(browser, "the week", weekly, json!(true)).await;
    visit(browser, "/profile").await;
    becomes(browser, "the choice kept", kept, json!("all")).await;
    becomes(browser, "the week kept", weekly, json!(true)).await;

    browser.click("test-notification").await;
    assert_eq!(mail.message(0).await["subject"], "Benchtrail: a test");
    let sent = "return Array.from(document.querySelectorAll('[data-testid=notification]')).map(n => n.dataset.state)";
    becomes(browser, "the mail in the list", sent, json!(["sent"])).await;

    browser.fill("webhook-url", "http://192.0.2.1/hook").await;
    browser.click("add-webhook").await;
    let refused = "return document.querySelector('[data-testid=notifications] [role=alert] .status')?.textContent.length > 0";
    browser.until("an address that may not be used", refused).await;
    browser.fill("webhook-url", &receiver.url).await;
    browser.click("add-webhook").await;
    let secret = browser.text("webhook-secret").await;
    assert!(secret.starts_with("whsec_"), "{secret}");
    browser.click("test-webhook").await;
    let request = receiver.request(0).await.to_ascii_lowercase();
    assert!(request.starts_with("post /hook") && request.contains("webhook-signature:"), "{request}");
    becomes(browser, "the webhook in the list", sent, json!(["sent", "sent"])).await;
}

/// A session elsewhere is seen, and ended from here.
async fn sessions(browser: &Browser, plane: &ControlPlane, email: &str, password: &str) {
    let other = Browser::open(&plane.url, DESKTOP).await;
    other.sign_in(email, password).await;
    let count = "return document.querySelectorAll('[data-testid=session]').length";
    let own =
        "const done = arguments[0]; fetch('/api/session').then(r => r.json()).then(r => done(r.session_id))";
    let own = browser.run_async(own).await;
    let marked = "return Array.from(document.querySelectorAll('[data-testid=this-browser]')).map(m => m.closest('tr').dataset.session)";
    becomes(browser, "this browser's own session marked, and no other", marked, json!([own])).await;
    becomes(browser, "both sessions, without a reload", count, json!(2)).await;
    // The newest is the other one.
    let newest = "const done = arguments[0]; fetch('/api/v_sessions?order=created_at.desc&limit=1').then(r => r.json()).then(r => done(r[0].session_id))";
    let newest = browser.run_async(newest).await;
    let id = newest.as_str().expect("a session");
    browser.click_css(&format!("[data-session='{id}'] [data-testid=end-session]")).await;
    becomes(browser, "one session left", count, json!(1)).await;
    other.goto("/profile").await;
    other.until("a visitor again", "return document.querySelector('h1')?.textContent === 'Visitor'").await;
    // Whoever is not signed in is shown the way in, and comes back.
    let way = "return document.querySelector('[data-testid=sign-in-here]')?.getAttribute('href').startsWith('/sign-in?next=')";
    becomes(&other, "the way in", way, json!(true)).await;
    other.close().await;
}

/// A wrong password changes nothing, the right one does.
async fn password_of(browser: &Browser, password: &str) {
    browser.fill("password-now", "not my password").await;
    browser.fill("password-next", NEXT_PASSWORD).await;
    browser.fill("password-again", "something else entirely").await;
    let words = "return document.querySelector('[data-testid=password-words]').textContent";
    becomes(browser, "two that differ", words, json!("the two differ")).await;
    browser.fill("password-again", NEXT_PASSWORD).await;
    browser.click("change-password").await;
    browser.until("the refusal", "return document.querySelector('.stack-form [role=alert]') !== null").await;
    browser.fill("password-now", password).await;
    browser.click("change-password").await;
    becomes(browser, "the password changed", words, json!("changed")).await;
}

#[tokio::test]
async fn an_administrator_minds_an_organisation_and_a_viewer_is_told_what_is_not_theirs() {
    let plane = ControlPlane::start().await;
    let admin = plane.admin().await;
    admin
        .command("create_project", &json!({"p_project_code": "ours", "p_name": "Ours", "p_workloads": []}))
        .await;
    let (email, password) = plane.first_sign_in();
    let browser = Browser::open(&plane.url, DESKTOP).await;
    browser.sign_in(&email, &password).await;
    visit(&browser, "/organization").await;
    let members = "return document.querySelectorAll('[data-testid=member]').length";
    becomes(&browser, "one member", members, json!(1)).await;

    // A link is made and withdrawn; another is made, and followed by somebody new.
    browser.click("invite").await;
    let withdrawn = browser.text("invitation-link").await;
    browser.click("revoke-invitation").await;
    let state = "return document.querySelector('[data-testid=invitation]')?.dataset.state ?? null";
    becomes(&browser, "the link withdrawn", state, json!("revoked")).await;
    browser.choose("invite-role", "viewer").await;
    browser.click("invite").await;
    let link = browser
        .until(
            "another link",
            &format!("const now = document.querySelector('[data-testid=invitation-link]')?.textContent; return now && now !== {} ? now : null", json!(withdrawn)),
        )
        .await;
    let secret = |link: &str| link.split_once('#').expect("a secret behind the #").1.to_owned();
    let (withdrawn, link) = (secret(&withdrawn), secret(link.as_str().expect("a link")));

    let guest = Browser::open(&plane.url, DESKTOP).await;
    guest.goto(&format!("/invitation#{withdrawn}")).await;
    guest.see("trouble").await;
    guest.goto("/").await;
    guest.goto(&format!("/invitation#{link}")).await;
    guest.see("invitation-form").await;
    guest.screenshot("invitation").await;
    guest.fill("email", "grace@example.org").await;
    guest.fill("password", "correct horse battery").await;
    guest.fill("name", "Grace").await;
    guest.click("accept").await;
    let who =
        "return document.querySelector('[data-testid=rail-user]')?.textContent.startsWith('Grace') ?? false";
    guest.until("the new member signed in", who).await;
    // The link is good once.
    guest.goto(&format!("/invitation?again#{link}")).await;
    guest.see("trouble").await;

    // A viewer is told what it takes, and who can give it.
    for path in ["/projects/new", "/projects/import"] {
        visit(&guest, path).await;
        guest.see("forbidden").await;
        let own = "return document.querySelector('[data-testid=own-role]').textContent";
        guest
            .until("the role and who can change it", &format!("const words = (() => {{ {own} }})(); return words.includes('viewer') && words.includes('administrator')"))
            .await;
    }
    guest.screenshot("forbidden").await;
    visit(&guest, "/projects/main/ours").await;
    let buttons = "return document.querySelectorAll('[data-testid=add-workload], [data-testid=import], [data-testid=project-settings]').length";
    becomes(&guest, "nothing that a viewer cannot do", buttons, json!(0)).await;
    visit(&guest, "/organization").await;
    becomes(&guest, "the members", members, json!(2)).await;
    let roles =
        "return document.querySelectorAll('[data-testid=member-role], [data-testid=invitations]').length";
    becomes(&guest, "no roles to give", roles, json!(0)).await;

    // The administrator sees the member come, without a reload, and gives another role.
    let roles =
        "return Array.from(document.querySelectorAll('[data-testid=member-role]')).map(s => s.value).sort()";
    becomes(&browser, "the member in the list", roles, json!(["admin", "viewer"])).await;
    browser.screenshot("organization").await;
    let set = "const select = Array.from(document.querySelectorAll('[data-testid=member-role]')).find(s => s.value === 'viewer'); \
        select.value = 'member'; select.dispatchEvent(new Event('change', {bubbles: true}))";
    browser.run(set, json!([])).await;
    becomes(&browser, "the new role", roles, json!(["admin", "member"])).await;
    support::eventually("the member's role", || async {
        let rows = admin.rows("/api/v_members?role=eq.member").await;
        (rows.len() == 1 && rows[0]["name"] == json!("Grace")).then_some(())
    })
    .await;
    visit(&guest, "/projects/new").await;
    guest.see("new-project-form").await;
    guest.close().await;

    // The last administrator stays.
    let own = &admin.rows("/api/v_members?role=eq.admin").await[0]["user_id"];
    browser.click_css(&format!("[data-user={own}] [data-testid=remove-member]")).await;
    browser.click_css(&format!("[data-user={own}] [data-testid=remove-member-sure]")).await;
    browser
        .until(
            "the refusal",
            "return document.querySelector('[data-testid=members] [role=alert] .status') !== null",
        )
        .await;
    browser.fill("org-name", "The Bench").await;
    browser.click("rename-org").await;
    browser
        .until(
            "the new name",
            "return document.querySelector('.page-head .meta').textContent === 'The Bench'",
        )
        .await;

    // Another organisation is made and worked in.
    browser.fill("new-org-name", "Second Lab").await;
    browser.click("create-org").await;
    let other = "[data-testid=organization][data-org=second-lab] [data-testid=switch-org]";
    browser.click_css(other).await;
    browser
        .until("the other organisation", "return document.querySelector('h1')?.textContent === 'second-lab'")
        .await;
    assert_eq!(unexpected_errors(&browser).await, Vec::<String>::new());
    browser.close().await;

    let phone = Browser::open(&plane.url, PHONE).await;
    phone.sign_in(&email, &password).await;
    visit(&phone, "/organization").await;
    fits_the_window(&phone, "/organization").await;
    phone.screenshot("organization-phone").await;
    phone.close().await;
}

#[tokio::test]
async fn a_provider_signs_people_in_by_its_button_and_by_an_invitation() {
    let port = free_port();
    let provider = OidcProvider::start(&format!("http://127.0.0.1:{port}"), "grace@example.org").await;
    let env = vec![
        ("BENCHTRAIL_OIDC_ISSUER", provider.issuer.clone()),
        ("BENCHTRAIL_OIDC_CLIENT_ID", "benchtrail".to_owned()),
        ("BENCHTRAIL_OIDC_CLIENT_SECRET", "the client secret".to_owned()),
        ("BENCHTRAIL_OIDC_LABEL", "Example SSO".to_owned()),
    ];
    let plane = ControlPlane::start_with(port, env).await;
    let admin = plane.admin().await;
    let made = admin.command("create_invitation", &json!({"p_role": "member"})).await;
    let link = made.keys["link"].as_str().expect("a link");
    let secret = link.split_once('#').expect("a secret behind the #").1;

    let browser = Browser::open(&plane.url, DESKTOP).await;
    browser.goto(&format!("/invitation#{secret}")).await;
    browser.see("invitation-form").await;
    assert_eq!(browser.text("oidc").await, "Example SSO");
    browser.click("oidc").await;
    let who = "return document.querySelector('[data-testid=rail-user]')?.textContent.startsWith('Ada of the Provider') ?? false";
    browser.until("the member signed in", who).await;
    visit(&browser, "/profile").await;
    browser.click("sign-out").await;

    browser.goto("/sign-in?next=%2Forganization").await;
    browser.see("oidc").await;
    browser.screenshot("sign-in-oidc").await;
    browser.click("oidc").await;
    browser.until("signed in where one wanted to go", "return location.pathname === '/organization' && document.querySelectorAll('[data-testid=member]').length === 2").await;
    browser.close().await;
}
