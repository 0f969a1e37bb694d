//! People: organisations and who works there, invitations, accounts, sessions, tokens, and the audit trail of it all.

mod plane;

use events::access::Role;
use plane::{Client, ORG, PASSWORD, Plane};
use serde_json::{Value, json};

async fn rows(client: &Client, plane: &Plane, path: &str) -> Vec<Value> {
    let head = plane.head().await;
    let request = client.request(reqwest::Method::GET, path).header("prefer", format!("at-least={head}"));
    client.send(request).await.ok().as_array().unwrap().clone()
}

/// A signed-in page of a new account.
async fn page(plane: &Plane, email: &str, role: Role) -> Client {
    plane.account(email, role).await;
    let mut page = plane.anonymous();
    page.sign_in(email, PASSWORD).await.ok();
    page
}

async fn me(client: &Client) -> String {
    client.get("/api/session").await.ok()["user"].as_str().unwrap().to_owned()
}

/// The secret of a new invitation's link.
async fn invite(admin: &Client, args: Value) -> String {
    let made = admin.rpc("create_invitation", &args).await.ok();
    let link = made["link"].as_str().unwrap();
    let (url, secret) = link.split_once('#').unwrap();
    assert!(url.ends_with("/invitation") && secret.starts_with("bt_i_"), "{link}");
    secret.to_owned()
}

#[tokio::test]
async fn an_organisation_is_made_renamed_and_worked_in() {
    let plane = Plane::start().await;
    let ann = page(&plane, "ann@example.org", Role::Admin).await;
    let args = json!({"p_org_code": "beta", "p_name": "Beta"});
    ann.rpc("create_organization", &args).await.ok();
    assert_eq!(ann.rpc("create_organization", &args).await.refused().code, "organization_exists");
    let reserved = json!({"p_org_code": "_", "p_name": "x"});
    assert_eq!(ann.rpc("create_organization", &reserved).await.refused().code, "bad_code");

    let session = ann.rpc("switch_organization", &json!({"p_org_code": "beta"})).await.ok();
    assert_eq!((&session["org"], &session["role"]), (&json!("beta"), &json!("admin")));
    ann.rpc("rename_organization", &json!({"p_name": "Beta Research"})).await.ok();
    let orgs = rows(&ann, &plane, "/api/v_organizations?order=org").await;
    let shown: Vec<_> =
        orgs.iter().map(|row| (row["org"].as_str().unwrap(), row["name"].as_str().unwrap())).collect();
    assert_eq!(shown, [("acme", "Acme"), ("beta", "Beta Research")]);
    // Nobody goes where they have no role.
    let bob = page(&plane, "bob@example.org", Role::Member).await;
    assert_eq!(
        bob.rpc("switch_organization", &json!({"p_org_code": "beta"})).await.refused().code,
        "not_found"
    );
    assert_eq!(bob.rpc("create_organization", &json!({})).await.refused().code, "role_too_low");
    plane.stop().await;
}

#[tokio::test]
async fn an_invitation_makes_an_account_once() {
    let plane = Plane::start().await;
    let ann = page(&plane, "ann@example.org", Role::Admin).await;
    let secret = invite(&ann, json!({"p_role": "member"})).await;
    let mut new = plane.anonymous();
    let shown = new.rpc("describe_invitation", &json!({"p_token": secret})).await.ok();
    assert_eq!(
        (&shown["org"], &shown["org_name"], &shown["role"]),
        (&json!(ORG), &json!("Acme"), &json!("member"))
    );

    let mut args = json!({"p_token": secret, "p_email": "new@example.org", "p_name": "New Person", "p_password": "password1234"});
    let head = plane.head().await;
    assert_eq!(new.rpc("accept_invitation", &args).await.refused().code, "bad_password");
    assert_eq!(plane.head().await, head, "nothing is half done");
    args["p_password"] = json!(PASSWORD);
    let answer = new.rpc("accept_invitation", &args).await;
    assert_eq!(answer.ok()["role"], "member");
    new.cookie = answer.headers["set-cookie"].to_str().unwrap().split(';').next().map(str::to_owned);
    assert_eq!(new.get("/api/session").await.ok()["name"], "New Person");

    // A second person with the same link gets in nowhere, and leaves no account behind.
    args["p_email"] = json!("eve@example.org");
    let eve = plane.anonymous();
    assert_eq!(eve.rpc("accept_invitation", &args).await.refused().code, "invitation_not_valid");
    assert_eq!(eve.clone().sign_in("eve@example.org", PASSWORD).await.status.as_u16(), 401);
    assert_eq!(
        eve.rpc("describe_invitation", &json!({"p_token": "bt_i_x"})).await.refused().code,
        "invitation_not_valid"
    );
    let listed = rows(&ann, &plane, "/api/v_invitations").await;
    assert_eq!(
        (&listed[0]["state"], &listed[0]["accepted_by_name"]),
        (&json!("accepted"), &json!("New Person"))
    );
    assert_eq!(
        rows(&new, &plane, "/api/v_invitations").await.len(),
        0,
        "they are the administrators' to see"
    );
    plane.stop().await;
}

#[tokio::test]
async fn two_who_accept_one_invitation_at_the_same_time_are_not_both_let_in() {
    let plane = Plane::start().await;
    let ann = page(&plane, "ann@example.org", Role::Admin).await;
    let secret = invite(&ann, json!({"p_role": "viewer"})).await;
    let accept = |email: &str| {
        let args = json!({"p_token": secret, "p_email": email, "p_password": PASSWORD});
        let client = plane.anonymous();
        async move { client.rpc("accept_invitation", &args).await.status.as_u16() }
    };
    let (one, two) = tokio::join!(accept("one@example.org"), accept("two@example.org"));
    let mut statuses = [one, two];
    statuses.sort_unstable();
    assert_eq!(statuses, [200, 404]);
    assert_eq!(rows(&ann, &plane, "/api/v_members").await.len(), 2);
    plane.stop().await;
}

#[tokio::test]
async fn an_account_that_exists_joins_with_its_password_or_its_session() {
    let plane = Plane::start().await;
    let ann = page(&plane, "ann@example.org", Role::Admin).await;
    plane.account_in("other", "olga@example.org", Role::Member).await;
    let by_password = invite(&ann, json!({"p_role": "viewer", "p_email": "Olga@Example.org"})).await;

    let stranger = plane.anonymous();
    let args = |email: &str, password: &str| json!({"p_token": by_password, "p_email": email, "p_password": password});
    let other = stranger.rpc("accept_invitation", &args("eve@example.org", PASSWORD)).await;
    assert_eq!(other.refused().code, "invitation_for_another");
    let wrong = stranger.rpc("accept_invitation", &args("olga@example.org", "a guess at the phrase")).await;
    assert_eq!(wrong.refused().code, "wrong_credentials");
    assert_eq!(
        stranger.rpc("accept_invitation", &json!({"p_token": by_password})).await.refused().code,
        "credentials_missing"
    );
    let joined = stranger.rpc("accept_invitation", &args("olga@example.org", PASSWORD)).await.ok();
    assert_eq!((&joined["org"], &joined["role"]), (&json!(ORG), &json!("viewer")));

    // The same person, signed in at home, takes a higher role from another link, and loses none to a lower one.
    let mut olga = plane.anonymous();
    olga.sign_in("olga@example.org", PASSWORD).await.ok();
    for role in ["admin", "viewer"] {
        let secret = invite(&ann, json!({"p_role": role})).await;
        olga.rpc("accept_invitation", &json!({"p_token": secret})).await.ok();
    }
    let session = olga.rpc("switch_organization", &json!({"p_org_code": ORG})).await.ok();
    assert_eq!(session["role"], "admin");
    plane.stop().await;
}

#[tokio::test]
async fn a_revoked_or_expired_invitation_opens_nothing() {
    let plane = Plane::start().await;
    let ann = page(&plane, "ann@example.org", Role::Admin).await;
    let made = ann.rpc("create_invitation", &json!({"p_role": "member"})).await.ok();
    let secret = made["link"].as_str().unwrap().split_once('#').unwrap().1.to_owned();
    ann.rpc("revoke_invitation", &json!({"p_invitation_id": made["invitation_id"]})).await.ok();
    let args = json!({"p_token": secret, "p_email": "new@example.org", "p_password": PASSWORD});
    assert_eq!(
        plane.anonymous().rpc("accept_invitation", &args).await.refused().code,
        "invitation_not_valid"
    );
    assert_eq!(
        ann.rpc("create_invitation", &json!({"p_role": "member", "p_expires_in_days": 31}))
            .await
            .refused()
            .code,
        "bad_expiry"
    );
    assert_eq!(
        ann.rpc("create_invitation", &json!({"p_role": "owner"})).await.refused().code,
        "bad_arguments"
    );
    assert_eq!(rows(&ann, &plane, "/api/v_invitations?state=eq.revoked").await.len(), 1);
    plane.stop().await;
}

#[tokio::test]
async fn a_role_is_changed_at_once_and_the_last_administrator_stays() {
    let plane = Plane::start().await;
    let ann = page(&plane, "ann@example.org", Role::Admin).await;
    let bob = page(&plane, "bob@example.org", Role::Admin).await;
    let (ann_id, bob_id) = (me(&ann).await, me(&bob).await);
    let project = json!({"p_name": "p", "p_project_code": "p"});

    ann.rpc("set_member_role", &json!({"p_user_id": bob_id, "p_role": "viewer"})).await.ok();
    assert_eq!(bob.rpc("create_project", &project).await.refused().code, "role_too_low");
    for (command, args) in [
        ("set_member_role", json!({"p_user_id": ann_id, "p_role": "member"})),
        ("remove_member", json!({"p_user_id": ann_id})),
    ] {
        assert_eq!(ann.rpc(command, &args).await.refused().code, "last_admin", "{command}");
    }
    let nobody = json!({"p_user_id": uuid::Uuid::now_v7().to_string(), "p_role": "admin"});
    assert_eq!(ann.rpc("set_member_role", &nobody).await.refused().code, "member_not_found");
    let others = json!({"p_user_id": ann_id});
    assert_eq!(bob.rpc("remove_member", &others).await.refused().code, "role_too_low");

    // Whoever is removed holds nothing any more: neither the session nor a token.
    let token = bob
        .rpc("create_api_token", &json!({"p_name": "t", "p_scopes": ["read"], "p_expires_in_days": 1}))
        .await
        .ok();
    ann.rpc("remove_member", &json!({"p_user_id": bob_id})).await.ok();
    assert_eq!(bob.get("/api/session").await.ok()["user"], json!(null));
    let by_token = Client::with_token(&plane.url, token["token"].as_str().unwrap());
    assert_eq!(by_token.get("/api/session").await.refused().code, "bad_token");
    let members = rows(&ann, &plane, "/api/v_members").await;
    assert_eq!(
        (members.len(), &members[0]["name"], &members[0]["email"]),
        (1, &json!("ann@example.org"), &json!("ann@example.org"))
    );
    plane.stop().await;
}

#[tokio::test]
async fn members_see_names_and_only_administrators_see_emails() {
    let plane = Plane::start().await;
    let ann = page(&plane, "ann@example.org", Role::Admin).await;
    let bob = page(&plane, "bob@example.org", Role::Viewer).await;
    bob.rpc("change_name", &json!({"p_name": "Bob B."})).await.ok();
    let seen = rows(&bob, &plane, "/api/v_members?select=name,email&order=name").await;
    assert_eq!(
        seen,
        [
            json!({"name": "Bob B.", "email": "bob@example.org"}),
            json!({"name": "ann@example.org", "email": null})
        ]
    );
    let found = rows(&ann, &plane, "/api/v_members?name=eq.Bob%20B.&select=email").await;
    assert_eq!(found, [json!({"email": "bob@example.org"})]);
    let mut outside = plane.anonymous();
    assert_eq!(rows(&outside, &plane, "/api/v_members").await.len(), 0);
    plane.account_in("other", "olga@example.org", Role::Admin).await;
    outside.sign_in("olga@example.org", PASSWORD).await.ok();
    assert_eq!(
        rows(&outside, &plane, "/api/v_members?select=name").await,
        [json!({"name": "olga@example.org"})]
    );
    plane.stop().await;
}

#[tokio::test]
async fn a_new_password_is_checked_and_ends_the_other_sessions() {
    let plane = Plane::start().await;
    let here = page(&plane, "ann@example.org", Role::Member).await;
    let mut there = plane.anonymous();
    there.sign_in("ann@example.org", PASSWORD).await.ok();
    const NEW: &str = "quite another phrase to remember";
    let change = |current: &str, new: &str| json!({"p_current_password": current, "p_new_password": new});
    for bad in ["short", "password1234", "ann@example.org"] {
        assert_eq!(
            here.rpc("change_password", &change(PASSWORD, bad)).await.refused().code,
            "bad_password",
            "{bad}"
        );
    }
    let wrong = here.rpc("change_password", &change("not the phrase it is", NEW)).await;
    assert_eq!((wrong.status.as_u16(), wrong.refused().code.as_str()), (403, "wrong_current_password"));
    let reply = here.rpc("change_password", &change(PASSWORD, NEW)).await.ok();
    assert_eq!(reply["sessions_ended"], 1);
    assert_eq!(here.get("/api/session").await.ok()["role"], "member");
    assert_eq!(there.get("/api/session").await.ok()["user"], json!(null));
    assert_eq!(there.sign_in("ann@example.org", PASSWORD).await.status.as_u16(), 401);
    there.sign_in("ann@example.org", NEW).await.ok();
    // A token cannot, whatever its scopes.
    let token = plane.client(Role::Admin).await;
    assert_eq!(token.rpc("change_password", &change(PASSWORD, NEW)).await.refused().code, "session_required");
    plane.stop().await;
}

#[tokio::test]
async fn sessions_are_listed_and_ended_one_by_one_or_all_at_once() {
    let plane = Plane::start().await;
    let first = page(&plane, "ann@example.org", Role::Member).await;
    let bob = page(&plane, "bob@example.org", Role::Member).await;
    let mut second = plane.anonymous();
    second.sign_in("ann@example.org", PASSWORD).await.ok();
    let mut third = plane.anonymous();
    third.sign_in("ann@example.org", PASSWORD).await.ok();

    let listed = rows(&first, &plane, "/api/v_sessions?order=created_at").await;
    assert_eq!(listed.len(), 3);
    assert!(
        listed.iter().all(|row| row["method"] == "password" && row.as_object().unwrap().len() == 6),
        "{listed:?}"
    );
    for (client, place) in [(&first, 0), (&second, 1), (&third, 2)] {
        let session = client.get("/api/session").await.ok();
        assert_eq!(session["session_id"], listed[place]["session_id"]);
        assert!(session["position"].as_i64().unwrap() > 0, "{session}");
    }
    assert_eq!(plane.anonymous().get("/api/session").await.ok()["session_id"], json!(null));
    let id = listed[1]["session_id"].as_str().unwrap();
    let args = json!({"p_session_id": id});
    assert_eq!(bob.rpc("revoke_session", &args).await.refused().code, "session_not_found");
    first.rpc("revoke_session", &args).await.ok();
    assert_eq!(second.get("/api/session").await.ok()["user"], json!(null));
    assert_eq!(first.rpc("revoke_session", &args).await.refused().code, "session_not_found");

    assert_eq!(first.rpc("sign_out_everywhere", &json!({})).await.ok()["sessions_ended"], 2);
    for gone in [&first, &third] {
        assert_eq!(gone.get("/api/session").await.ok()["user"], json!(null));
    }
    assert_eq!(bob.get("/api/session").await.ok()["role"], "member");
    plane.stop().await;
}

#[tokio::test]
async fn tokens_are_listed_without_their_secret() {
    let plane = Plane::start().await;
    let ann = page(&plane, "ann@example.org", Role::Member).await;
    let args = json!({"p_name": "nightly", "p_scopes": ["read", "write"], "p_expires_in_days": 30});
    let made = ann.rpc("create_api_token", &args).await.ok();
    let by_token = Client::with_token(&plane.url, made["token"].as_str().unwrap());
    by_token.get("/api/session").await.ok();
    let listed = rows(&ann, &plane, "/api/v_api_tokens").await;
    assert_eq!(listed.len(), 1);
    let row = &listed[0];
    assert_eq!(
        (&row["token_id"], &row["name"], &row["scopes"]),
        (&made["token_id"], &json!("nightly"), &json!(["read", "write"]))
    );
    assert_eq!((&row["state"], row["last_used_at"].is_string()), (&json!("good"), true));
    assert!(!row.to_string().contains("bt_u_") && !row.to_string().contains("sha256"));
    // Nobody but administrators sees those of others.
    let bob = page(&plane, "bob@example.org", Role::Member).await;
    assert_eq!(rows(&bob, &plane, "/api/v_api_tokens").await.len(), 0);
    let admin = page(&plane, "cat@example.org", Role::Admin).await;
    assert_eq!(
        rows(&admin, &plane, "/api/v_api_tokens?select=user_name").await,
        [json!({"user_name": "ann@example.org"})]
    );
    ann.rpc("revoke_api_token", &json!({"p_token_id": made["token_id"]})).await.ok();
    assert_eq!(rows(&ann, &plane, "/api/v_api_tokens?state=eq.revoked").await.len(), 1);
    plane.stop().await;
}

#[tokio::test]
async fn the_audit_trail_names_who_did_what_and_is_for_administrators() {
    let plane = Plane::start().await;
    let ann = page(&plane, "ann@example.org", Role::Admin).await;
    let bob = page(&plane, "bob@example.org", Role::Member).await;
    let bob_id = me(&bob).await;
    assert_eq!(plane.anonymous().sign_in("bob@example.org", "not the phrase").await.status.as_u16(), 401);
    plane.until_type_after(0, "access.sign_in_refused").await;
    bob.rpc("create_api_token", &json!({"p_name": "t", "p_scopes": ["read"], "p_expires_in_days": 1}))
        .await
        .ok();
    ann.rpc("set_member_role", &json!({"p_user_id": bob_id, "p_role": "viewer"})).await.ok();
    bob.send(bob.request(reqwest::Method::GET, "/api/v_models").header("accept", "text/csv")).await;
    ann.rpc("create_server_config_instance", &json!({"p_config_code": "local-cpu", "p_hostname": "h1"}))
        .await
        .ok();

    let of_bob = rows(&ann, &plane, &format!("/api/v_audit?user_id=eq.{bob_id}&order=position")).await;
    let types: Vec<&str> = of_bob.iter().map(|row| row["type"].as_str().unwrap()).collect();
    assert_eq!(
        types,
        [
            "org.member_role_set",
            "access.signed_in",
            "access.sign_in_refused",
            "access.token_created",
            "org.member_role_set",
            "access.exported"
        ]
    );
    let last_role = &of_bob[4];
    assert_eq!(
        (&last_role["actor_name"], &last_role["user_name"]),
        (&json!("ann@example.org"), &json!("bob@example.org"))
    );
    assert_eq!(of_bob[5]["payload"], json!({"view": "v_models", "format": "text/csv"}));
    assert_eq!(rows(&ann, &plane, "/api/v_audit?type=eq.access.enrol_token_created").await.len(), 1);

    // Bob sees what concerns him, nobody else's doings; strangers see nothing.
    let seen = rows(&bob, &plane, "/api/v_audit").await;
    assert!(
        seen.iter().all(|row| row["user_id"] == json!(bob_id) || row["actor_id"] == json!(bob_id)),
        "{seen:?}"
    );
    assert_eq!(rows(&plane.anonymous(), &plane, "/api/v_audit").await.len(), 0);
    plane.account_in("other", "olga@example.org", Role::Admin).await;
    let mut olga = plane.anonymous();
    olga.sign_in("olga@example.org", PASSWORD).await.ok();
    assert!(rows(&olga, &plane, "/api/v_audit").await.iter().all(|row| row["org"] == "other"));
    // An administrator reads the streams themselves, too, with names.
    let history = ann.get(&format!("/api/history?stream=access/{ORG}/{bob_id}")).await.ok();
    assert_eq!(history["events"][0]["actor_name"], "bob@example.org");
    assert_eq!(
        olga.get(&format!("/api/history?stream=access/{ORG}/{bob_id}")).await.refused().code,
        "not_found"
    );
    assert_eq!(rows(&ann, &plane, "/api/v_events?type=eq.access.signed_in&select=actor_name").await.len(), 2);
    plane.stop().await;
}

#[tokio::test]
async fn guesses_that_come_all_at_once_are_throttled_all_the_same() {
    let plane = Plane::start().await;
    plane.account("ada@example.org", Role::Member).await;
    let guesses = (0..40).map(|n| {
        let mut guesser = plane.anonymous();
        async move { guesser.sign_in("ada@example.org", &format!("guess number {n}")).await.status.as_u16() }
    });
    let statuses = futures::future::join_all(guesses).await;
    assert_eq!(statuses.iter().filter(|status| **status == 401).count(), 10, "{statuses:?}");
    assert_eq!(statuses.iter().filter(|status| **status == 429).count(), 30);
    plane.stop().await;
}

#[tokio::test]
async fn no_event_holds_a_name_an_email_or_a_secret() {
    let plane = Plane::start().await;
    let ann = page(&plane, "ann.person@example.org", Role::Admin).await;
    ann.rpc("change_name", &json!({"p_name": "Ann Person"})).await.ok();
    let secret = invite(&ann, json!({"p_role": "member", "p_email": "new.person@example.org"})).await;
    let args = json!({"p_token": secret, "p_email": "new.person@example.org", "p_name": "New Person", "p_password": PASSWORD});
    plane.anonymous().rpc("accept_invitation", &args).await.ok();
    for event in plane.state.log.read_all(0, 10_000).await.unwrap() {
        for word in ["ann.person", "new.person", "Ann Person", "New Person", "bt_i_", PASSWORD] {
            assert!(!event.payload.contains(word), "{}: {}", event.event_type, event.payload);
        }
    }
    let vault: Vec<String> = sqlx::query_scalar("select i::text from vault.invitations i")
        .fetch_all(&plane.state.pool)
        .await
        .unwrap();
    assert!(!vault.is_empty() && vault.iter().all(|row| !row.contains(&secret) && !row.contains("person")));
    plane.stop().await;
}
