//! Callers by a claim of their token, and clients that send no key yet.

use super::issuer::{TestIssuer, with};
use crate::log_lines;
use crate::support::{Ask, Bed, Sender, keyed_by};
use semel_gate::settings::{Caller, KeyMissing, Source};
use serde_json::json;

/// A gate for API clients of an issuer, told apart by this claim.
async fn by(issuer: &TestIssuer, claim: &str) -> Bed {
    issuer
        .bed_with(|route, rule| {
            route.sources = vec![Source::Api];
            route.caller = Some(Caller::Claim(claim.into()));
            rule.emails = Vec::new();
        })
        .await
}

fn call(token: &str) -> Ask {
    let ask = Sender::Api.sends("key-1", "{}").without("X-Caller");
    with(ask, token)
}

#[tokio::test]
async fn a_claim_tells_callers_apart() {
    let issuer = TestIssuer::start().await;
    for claim in ["sub", "email"] {
        let bed = by(&issuer, claim).await;
        let of = |who: &str| issuer.draft().claim(claim, who.into()).token();
        bed.ask(call(&of("alice@a"))).await.is(200);
        // Another token of the same caller.
        let again = issuer
            .draft()
            .claim("jti", "2".into())
            .claim(claim, "alice@a".into());
        bed.ask(call(&again.token())).await.is_replay(200);
        bed.ask(call(&of("bob@a"))).await.is(200);
        assert_eq!(bed.runs(), 2, "{claim}");
        // A header says nothing.
        let posing = call(&of("bob@a")).header("X-Caller", "alice@a");
        bed.ask(posing).await.is_replay(200);
    }
}

#[tokio::test]
async fn a_token_without_the_claim_is_nobodys() {
    let issuer = TestIssuer::start().await;
    let bed = by(&issuer, "email").await;
    let drafts = [
        issuer.draft().without_claim("email"),
        issuer.draft().claim("email", "".into()),
        issuer.draft().claim("email", json!(["a@a"])),
        issuer.draft().claim("email_verified", json!(false)),
        issuer.draft().without_claim("email_verified"),
    ];
    for draft in drafts {
        bed.ask(call(&draft.token()))
            .await
            .is_problem(400, "caller-missing");
    }
    assert_eq!(bed.runs(), 0);
    assert!(bed.records().await.is_empty());
}

/// A gate that lets clients without a key through.
async fn lenient(name: &str) -> Bed {
    Bed::route(|route| {
        route.name = name.into();
        route.sources = vec![Source::Api];
        route.key_missing = KeyMissing::Pass;
    })
    .await
}

#[tokio::test]
async fn old_clients_without_a_key_are_let_through_counted_and_logged() {
    log_lines::listen();
    let bed = lenient("lenient").await;
    let old = || Sender::Api.sends("", "{}").without("Idempotency-Key");
    for run in 1..=2 {
        bed.ask(old()).await.is(200);
        let seen = bed.handler.arrived().await;
        assert_eq!(seen.header("semel-key"), None);
        assert!(seen.body.windows(2).any(|two| two == b"{}"), "{seen:?}");
        assert_eq!(bed.runs(), run);
    }
    assert!(bed.records().await.is_empty());
    bed.counts("semel_unprotected_total{route=\"lenient\"} 2")
        .await;
    let lines = log_lines::heard("delivery", "route", "lenient");
    assert_eq!(lines.len(), 2, "{lines:?}");
    assert_eq!(lines[0]["outcome"], "unprotected");
    assert_eq!(lines[0]["status"], 200);

    // Those that have learned it are protected.
    bed.api("key-1").await.is(200);
    bed.api("key-1").await.is_replay(200);
    assert_eq!(bed.runs(), 3);
}

#[tokio::test]
async fn a_bad_key_is_not_a_missing_one() {
    let bed = lenient("work").await;
    let asks = [
        Sender::Api.sends("", "{}"),
        Sender::Api.sends("a b", "{}"),
        Sender::Api.sends("a", "{}").header("Idempotency-Key", "b"),
    ];
    for ask in asks {
        assert_eq!(bed.ask(ask).await.status, 400);
    }
    // Some handlers take it for the same header.
    let respelled = Sender::Api.sends("", "{}").without("Idempotency-Key");
    let answer = bed.ask(respelled.header("Idempotency_Key", "a")).await;
    answer.is_problem(400, "key-part-missing");
    assert_eq!(bed.runs(), 0);
    // A name that has no other spelling for itself.
    let bed = Bed::route(|route| {
        route.sources = vec![Source::Api];
        route.key_missing = KeyMissing::Pass;
        keyed_by(route, "header:x_key");
    })
    .await;
    let ask = Sender::Api.sends("", "{}").without("Idempotency-Key");
    bed.ask(ask.clone().header("X_Key", "a")).await.is(200);
    assert_eq!(bed.records().await.len(), 1);
    bed.ask(ask).await.is(200);
    assert_eq!(bed.records().await.len(), 1);
}

#[tokio::test]
async fn without_a_word_a_missing_key_is_refused() {
    let bed = Bed::route(|route| route.sources = vec![Source::Api]).await;
    let old = Sender::Api.sends("", "{}").without("Idempotency-Key");
    bed.ask(old).await.is_problem(400, "key-part-missing");
    assert_eq!(bed.runs(), 0);
}

#[tokio::test]
async fn whoever_is_let_through_is_verified_first() {
    let issuer = TestIssuer::start().await;
    let bed = issuer
        .bed_with(|route, _| {
            route.sources = vec![Source::Api];
            route.caller = Some(Caller::Claim("sub".into()));
            route.key_missing = KeyMissing::Pass;
        })
        .await;
    let old = || Sender::Api.sends("", "{}").without("Idempotency-Key");
    bed.ask(old()).await.is_problem(401, "unverified");
    assert_eq!(bed.runs(), 0);
    bed.ask(with(old(), &issuer.token())).await.is(200);
    assert_eq!(bed.handler.arrived().await.header("authorization"), None);
}
