//! What a verified token lets through, and what becomes of it.

use super::issuer::{EMAIL, TestIssuer, encode, p256, with};
use super::{left_nothing, refused};
use crate::log_lines;
use crate::support::{Ask, Sender};
use http::Method;
use semel_gate::settings::{Algorithm, Caller, Issuer, Source};
use serde_json::json;

#[tokio::test]
async fn a_good_token_is_taken_and_stays_here() {
    let issuer = TestIssuer::start().await;
    let bed = issuer.bed().await;
    bed.ask(issuer.task("t1")).await.is(200);
    let seen = bed.handler.arrived().await;
    assert_eq!(seen.header("authorization"), None);
    assert_eq!(seen.header("x-cloudtasks-taskname"), Some("t1"));
    // A duplicate is verified, too: a revoked account hears no stored answer.
    let without = Sender::Task.sends("t1", "{}");
    bed.ask(without).await.is_problem(401, "unverified");
    bed.ask(issuer.task("t1")).await.is_replay(200);
    assert_eq!(bed.runs(), 1);
}

#[tokio::test]
async fn the_handler_gets_the_token_if_the_route_says_so() {
    let issuer = TestIssuer::start().await;
    let bed = issuer.bed_with(|_, rule| rule.forwarded = true).await;
    let token = issuer.token();
    let ask = with(Sender::Task.sends("t1", "{}"), &token)
        .header("X-Serverless-Authorization", "Bearer platforms");
    bed.ask(ask).await.is(200);
    let seen = bed.handler.arrived().await;
    assert_eq!(seen.header("x-serverless-authorization"), None);
    assert_eq!(
        seen.header("authorization"),
        Some(&*format!("Bearer {token}"))
    );
}

#[tokio::test]
async fn spellings_that_mean_the_same_are_taken() {
    let issuer = TestIssuer::start().await;
    let bed = issuer.bed().await;
    let now = issuer.draft().claims["iat"].as_i64().unwrap();
    let good = [
        issuer.draft().without_header("typ"),
        issuer.draft().header("typ", "jwt".into()),
        issuer.draft().header("x5t", "thumbprint".into()),
        // Within the skew.
        issuer.draft().claim("exp", (now - 30).into()),
        issuer.draft().claim("iat", (now + 30).into()),
        issuer.draft().claim("nbf", (now + 30).into()),
        issuer.draft().claim(
            "exp",
            json!(3600.5 + f64::from(u32::try_from(now).unwrap())),
        ),
        issuer.draft().claim("nested", json!({"a": {"a": [1, 2]}})),
    ];
    for (number, draft) in (1..).zip(good) {
        let task = Sender::Task.sends(&format!("t{number}"), "{}");
        let ask = task.header("Authorization", &format!("bearer {}", draft.token()));
        bed.ask(ask).await.is(200);
        assert_eq!(bed.runs(), number);
    }
}

#[tokio::test]
async fn google_is_spelled_in_two_ways() {
    let issuer = TestIssuer::start().await;
    let url = issuer.rule().issuer.keys;
    let bed = issuer
        .bed_with(|_, rule| {
            rule.issuer = Issuer {
                keys: url,
                ..Issuer::google()
            };
        })
        .await;
    let spelled = [
        ("https://accounts.google.com", 200),
        ("accounts.google.com", 200),
        ("https://accounts.google.com/", 401),
        ("http://accounts.google.com", 401),
    ];
    for (name, status) in spelled {
        let token = issuer.draft().claim("iss", name.into()).token();
        let ask = with(Sender::Task.sends(name, "{}"), &token);
        assert_eq!(bed.ask(ask).await.status, status, "{name}");
    }
}

#[tokio::test]
async fn es256_is_taken_where_it_is_named() {
    let issuer = TestIssuer::start().await;
    let (jwk, sign) = p256("ec");
    issuer.shows(&[jwk]);
    let bed = issuer
        .bed_with(|_, rule| rule.algorithms = vec![Algorithm::Es256])
        .await;
    let draft = issuer
        .draft()
        .header("alg", "ES256".into())
        .header("kid", "ec".into());
    let changed = draft.clone().claim("sub", "2".into());
    let (good, other) = (sign(&draft), sign(&changed));
    let forged = format!(
        "{}.{}",
        good.rsplit_once('.').unwrap().0,
        other.rsplit_once('.').unwrap().1
    );
    let answer = bed.ask(with(Sender::Task.sends("t1", "{}"), &forged)).await;
    refused(&bed, &answer, "signature", "the signature of other claims").await;
    // RS256 is not.
    let answer = bed.ask(issuer.task("t1")).await;
    refused(&bed, &answer, "algorithm", "RS256").await;
    bed.ask(with(Sender::Task.sends("t1", "{}"), &good))
        .await
        .is(200);
}

#[tokio::test]
async fn what_only_passes_is_verified_too() {
    let issuer = TestIssuer::start().await;
    let bed = issuer
        .bed_with(|route, _| {
            route.sources = vec![Source::Api];
            route.caller = Some(Caller::Shared);
        })
        .await;
    let look = Ask::get("/work");
    let answer = bed.ask(look.clone()).await;
    refused(&bed, &answer, "token_missing", "a GET").await;
    bed.ask(with(look, &issuer.token())).await.is(200);
    let seen = bed.handler.arrived().await;
    seen.is(&Method::GET, "/work");
    assert_eq!(seen.header("authorization"), None);
}

#[tokio::test]
async fn a_redrive_needs_no_token() {
    let issuer = TestIssuer::start().await;
    let bed = issuer
        .bed_with(|route, _| route.final_statuses = vec![422..=422])
        .await;
    bed.handler.says(422);
    bed.ask(issuer.task("t1")).await.is(200);
    let letter = bed.letter().await;
    issuer.is_down();
    let said = bed.redrive(&letter).await;
    said.is(200, &json!({"outcome": "ran", "closed": true}));
    assert_eq!(bed.runs(), 2);
}

#[tokio::test]
async fn cloud_run_is_trusted_only_where_it_took_the_signature_away() {
    let issuer = TestIssuer::start().await;
    let bed = issuer
        .bed_with(|_, rule| rule.issuer = Issuer::trusting_cloud_run())
        .await;
    let draft = issuer
        .draft()
        .claim("iss", "https://accounts.google.com".into());
    let parts = |claims: String| format!("{}.{}", encode(draft.header.to_string()), encode(claims));
    let removed = |claims: String| format!("{}.SIGNATURE_REMOVED_BY_GOOGLE", parts(claims));
    let bad = [
        (draft.token(), "not_checked_by_cloud_run"),
        (
            format!("{}.", parts(draft.claims.to_string())),
            "not_checked_by_cloud_run",
        ),
        (
            removed(draft.clone().claim("aud", "else".into()).claims.to_string()),
            "audience",
        ),
        (
            removed(
                draft
                    .clone()
                    .claim("email", "m@x".into())
                    .claims
                    .to_string(),
            ),
            "email",
        ),
        (
            removed(draft.clone().claim("exp", 0.into()).claims.to_string()),
            "expired",
        ),
    ];
    for (token, reason) in bad {
        let answer = bed.ask(with(Sender::Task.sends("t1", "{}"), &token)).await;
        refused(&bed, &answer, reason, reason).await;
    }
    let token = removed(draft.claims.to_string());
    // Cloud Run would check this one instead, so anybody can have written the other.
    for name in ["X-Serverless-Authorization", "x_serverless_authorization"] {
        let ask = with(Sender::Task.sends("t1", "{}"), &token).header(name, "Bearer mallorys");
        refused(&bed, &bed.ask(ask).await, "token_replaced", name).await;
    }
    bed.ask(with(Sender::Task.sends("t1", "{}"), &token))
        .await
        .is(200);
    assert_eq!(issuer.fetches(), 0);
}

#[tokio::test]
async fn a_refusal_is_told_without_the_token() {
    log_lines::listen();
    let issuer = TestIssuer::start().await;
    let bed = issuer.bed_with(|route, _| route.name = "told".into()).await;
    let token = issuer
        .draft()
        .claim("aud", "canary-audience".into())
        .token();
    let answer = bed.ask(with(Sender::Task.sends("t1", "{}"), &token)).await;
    answer.is_problem(401, "unverified");
    left_nothing(&bed, "told").await;
    let lines = log_lines::heard("delivery", "route", "told");
    assert_eq!(lines.len(), 1, "{lines:?}");
    assert_eq!(lines[0]["level"], "WARN");
    let said = ["outcome", "reason"].map(|name| lines[0][name].as_str().unwrap());
    assert_eq!(said, ["unverified", "audience"]);
    assert_eq!(lines[0]["status"], 401);
    let signature = token.rsplit_once('.').unwrap().1;
    for text in [answer.text(), &log_lines::text()] {
        for hidden in ["canary-audience", signature, EMAIL] {
            assert!(!text.contains(hidden), "{hidden}");
        }
    }
    bed.counts("semel_unverified_total{route=\"told\",reason=\"audience\"} 1")
        .await;
}
