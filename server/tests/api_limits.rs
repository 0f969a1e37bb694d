//! Who asks too much is told to wait, and nobody else is.

mod plane;

use events::access::Role;
use plane::{Client, Plane};
use server::api::limits::{Rate, Rates};

#[tokio::test]
async fn who_asks_too_much_is_told_how_long_to_wait_and_nobody_else_is() {
    let few = Rate::new(1, 5);
    let plane = Plane::start_with(|config| {
        config.rates = Rates { person: few, anonymous: Rate::new(1, 40), agent: few };
    })
    .await;
    let (one, other) = (plane.client(Role::Member).await, plane.client(Role::Member).await);
    let mut refused = None;
    for _ in 0..60 {
        let answer = one.get("/api/session").await;
        if answer.status == 429 {
            refused = Some(answer);
            break;
        }
    }
    let refused = refused.expect("the bucket is empty at last");
    assert_eq!(refused.refused().code, "rate_limited");
    assert!(refused.headers["retry-after"].to_str().unwrap().parse::<u64>().unwrap() >= 1);
    other.get("/api/session").await.ok();
    // What is no part of the API is not counted, and a reader without an account has a bucket of the address.
    let anonymous = plane.anonymous();
    for _ in 0..60 {
        assert_eq!(anonymous.get("/healthz").await.status.as_u16(), 200);
    }
    let mut statuses = Vec::new();
    for _ in 0..120 {
        statuses.push(anonymous.get("/api/session").await.status.as_u16());
    }
    assert!(statuses[..40].iter().all(|status| *status == 200) && statuses.contains(&429), "{statuses:?}");
    plane.stop().await;
}

#[tokio::test]
async fn who_names_a_token_that_is_none_has_the_bucket_of_the_address() {
    let plane = Plane::start_with(|config| {
        config.rates.anonymous = Rate::new(1, 20);
    })
    .await;
    let guesser = Client::with_token(&plane.url, "bt_nobodys");
    let mut statuses = Vec::new();
    for _ in 0..60 {
        statuses.push(guesser.get("/api/session").await.status.as_u16());
    }
    assert!(statuses[..20].iter().all(|status| *status == 401), "{statuses:?}");
    assert!(statuses[20..].contains(&429), "{statuses:?}");
    plane.stop().await;
}
