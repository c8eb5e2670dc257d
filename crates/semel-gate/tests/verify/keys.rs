//! The issuer's keys: fetched once, seldom again, and kept through an outage.

use super::issuer::{By, TestIssuer, id, jwk, with};
use super::left_nothing;
use crate::support::{Bed, Sender, until};
use semel_gate::verify::KeySet;
use std::time::Duration;

/// A gate that may ask for keys as often as it likes.
async fn eager(issuer: &TestIssuer) -> Bed {
    issuer
        .bed_of(|settings, _| settings.limits.keys_every = Duration::ZERO)
        .await
}

#[tokio::test]
async fn many_deliveries_at_once_fetch_the_keys_once() {
    let issuer = TestIssuer::start().await;
    let bed = issuer.bed().await;
    issuer.hold(true);
    let asked: Vec<_> = (0..50)
        .map(|number| bed.begin(issuer.task(&format!("t{number}"))))
        .collect();
    until("a request for the keys", async || issuer.fetches() > 0).await;
    issuer.hold(false);
    for reply in asked {
        reply.await.unwrap().is(200);
    }
    assert_eq!((issuer.fetches(), bed.runs()), (1, 50));
}

#[tokio::test]
async fn unknown_key_ids_do_not_reach_the_issuer() {
    let issuer = TestIssuer::start().await;
    let bed = issuer.bed().await;
    bed.ask(issuer.task("t1")).await.is(200);
    for number in 0..200 {
        let made_up = format!("made-up-{number}");
        let token = issuer.draft().header("kid", made_up.into()).token();
        let answer = bed.ask(with(Sender::Task.sends("t2", "{}"), &token)).await;
        answer.is_problem(401, "unverified");
    }
    assert_eq!(issuer.fetches(), 1);
    bed.counts("semel_unverified_total{route=\"work\",reason=\"key_unknown\"} 200")
        .await;
}

#[tokio::test]
async fn a_new_key_is_found_and_an_old_one_forgotten() {
    let issuer = TestIssuer::start().await;
    let bed = eager(&issuer).await;
    bed.ask(issuer.task("t1")).await.is(200);
    issuer.shows(&[jwk(By::Second)]);
    let draft = issuer.draft().header("kid", id(By::Second).into());
    let token = draft.by(By::Second).token();
    bed.ask(with(Sender::Task.sends("t2", "{}"), &token))
        .await
        .is(200);
    let answer = bed.ask(issuer.task("t3")).await;
    answer.is_problem(401, "unverified");
    assert_eq!(bed.runs(), 2);
}

#[tokio::test]
async fn a_token_is_believed_no_longer_than_its_key() {
    let issuer = TestIssuer::start().await;
    let bed = eager(&issuer).await;
    let token = issuer.token();
    bed.ask(with(Sender::Task.sends("t1", "{}"), &token))
        .await
        .is(200);
    let mut replaced = jwk(By::Second);
    replaced["kid"] = id(By::First).into();
    issuer.shows(&[replaced]);
    // What comes before the new keys are there is still verified by the old ones.
    let refused = async || {
        let again = with(Sender::Task.sends("t1", "{}"), &token);
        bed.ask(again).await.status == 401
    };
    until("the token to be refused", refused).await;
    bed.counts("semel_unverified_total{route=\"work\",reason=\"signature\"} 1")
        .await;
}

#[tokio::test]
async fn the_last_good_keys_stay_through_an_outage() {
    let issuer = TestIssuer::start().await;
    let bed = eager(&issuer).await;
    bed.ask(issuer.task("t0")).await.is(200);
    let outages = [
        None,
        Some("not JSON"),
        Some("{}"),
        Some(r#"{"keys":[]}"#),
        Some(r#"{"keys":[{"kty":"oct","kid":"key-1","k":"c2VjcmV0"}]}"#),
        Some(r#"{"keys":[{"kty":"RSA","kid":"key-1","use":"enc","n":"AQAB","e":"AQAB"}]}"#),
    ];
    for (number, outage) in (1..).zip(outages) {
        match outage {
            None => issuer.is_down(),
            Some(page) => issuer.serves(page),
        }
        let before = issuer.fetches();
        let tried = async || {
            let answer = bed.ask(issuer.task(&format!("t{number}"))).await;
            assert_eq!(answer.status, 200, "{outage:?}");
            issuer.fetches() > before
        };
        until("another try", tried).await;
    }
}

#[test]
fn a_key_that_is_not_for_verifying_is_none() {
    let page = |operations: &str| {
        let key = r#"{"kty":"RSA","kid":"a","n":"AQAB","e":"AQAB","key_ops":OPS}"#;
        format!("{{\"keys\":[{}]}}", key.replace("OPS", operations))
    };
    assert!(KeySet::parse(page(r#"["verify"]"#).as_bytes()).is_ok());
    assert!(KeySet::parse(page(r#"["encrypt", "wrapKey"]"#).as_bytes()).is_err());
}

#[tokio::test]
async fn without_any_keys_senders_are_told_to_come_again() {
    let issuer = TestIssuer::start().await;
    issuer.is_down();
    let bed = issuer
        .bed_of(|settings, _| settings.limits.keys_retry_every = Duration::ZERO)
        .await;
    let answer = bed.ask(issuer.task("t1")).await;
    answer.is_pause(503, "keys-unavailable");
    left_nothing(&bed, "no keys").await;
    bed.counts("semel_unverified_total{route=\"work\",reason=\"keys_unavailable\"} 1")
        .await;
    issuer.shows(&[jwk(By::First)]);
    bed.ask(issuer.task("t1")).await.is(200);
}

#[tokio::test]
async fn a_failed_request_for_keys_is_not_repeated_at_once() {
    let issuer = TestIssuer::start().await;
    issuer.is_down();
    let bed = issuer
        .bed_of(|settings, _| settings.limits.keys_retry_every = Duration::from_secs(3600))
        .await;
    for _ in 0..20 {
        bed.ask(issuer.task("t1"))
            .await
            .is_pause(503, "keys-unavailable");
    }
    assert_eq!(issuer.fetches(), 1);
}

#[tokio::test]
async fn keys_that_are_too_old_are_not_used_any_more() {
    let issuer = TestIssuer::start().await;
    let bed = issuer
        .bed_of(|settings, _| {
            settings.limits.keys_every = Duration::ZERO;
            settings.limits.keys_retry_every = Duration::ZERO;
            settings.limits.keys_kept_max = Duration::from_millis(300);
        })
        .await;
    bed.ask(issuer.task("t0")).await.is(200);
    issuer.is_down();
    let refused = async || bed.ask(issuer.task("t1")).await.status == 503;
    until("the end of the keys", refused).await;
    issuer.shows(&[jwk(By::First)]);
    bed.ask(issuer.task("t2")).await.is(200);
}

#[tokio::test]
async fn an_issuer_that_does_not_answer_holds_nobody_for_long() {
    let issuer = TestIssuer::start().await;
    issuer.hold(true);
    let bed = issuer
        .bed_of(|settings, _| settings.limits.keys_within = Duration::from_millis(50))
        .await;
    let answer = bed.ask(issuer.task("t1")).await;
    answer.is_pause(503, "keys-unavailable");
}

#[tokio::test]
async fn a_key_set_of_any_size_is_not_read() {
    let issuer = TestIssuer::start().await;
    issuer.serves(&" ".repeat(1024 * 1024));
    let bed = issuer.bed().await;
    bed.ask(issuer.task("t1"))
        .await
        .is_pause(503, "keys-unavailable");
}
