//! The tower layer, as the axum example uses it.
#![allow(clippy::unwrap_used, reason = "a test may stop at the first surprise")]

#[path = "../examples/axum.rs"]
mod example;

use axum::Router;
use axum::body::Body;
use axum::http::{Request, Response, StatusCode};
use http_body_util::BodyExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tower::ServiceExt;

async fn charge(app: &Router, key: &str, caller: &str, body: &str) -> (StatusCode, bool, String) {
    let request = Request::post("/charge")
        .header("idempotency-key", key)
        .header("x-api-client", caller)
        .body(Body::from(body.to_owned()))
        .unwrap();
    read(app.clone().oneshot(request).await.unwrap()).await
}

async fn read(response: Response<Body>) -> (StatusCode, bool, String) {
    let (status, replayed) = (
        response.status(),
        response.headers().contains_key("idempotent-replayed"),
    );
    let body = response.into_body().collect().await.unwrap().to_bytes();
    (status, replayed, String::from_utf8(body.to_vec()).unwrap())
}

#[tokio::test]
async fn a_client_that_asks_again_hears_the_same_and_pays_once() {
    let charged = Arc::new(AtomicU64::new(0));
    let app = example::app(Arc::clone(&charged));
    let receipt = (StatusCode::CREATED, "receipt 1".to_owned());
    let first = charge(&app, "k1", "ada", "900").await;
    assert_eq!(first, (receipt.0, false, receipt.1.clone()));
    for _ in 0..3 {
        assert_eq!(
            charge(&app, "k1", "ada", "900").await,
            (receipt.0, true, receipt.1.clone())
        );
    }
    assert_eq!(charged.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn another_caller_never_hears_the_first_ones_answer() {
    let app = example::app(Arc::default());
    assert_eq!(charge(&app, "k1", "ada", "900").await.2, "receipt 1");
    assert_eq!(charge(&app, "k1", "bob", "900").await.2, "receipt 2");
}

#[tokio::test]
async fn the_same_key_with_another_payload_is_refused() {
    let app = example::app(Arc::default());
    assert_eq!(
        charge(&app, "k1", "ada", "900").await.0,
        StatusCode::CREATED
    );
    let (status, _, message) = charge(&app, "k1", "ada", "901").await;
    assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY);
    assert!(message.contains("another payload"), "{message}");
}

#[tokio::test]
async fn the_same_key_on_another_path_or_query_is_refused() {
    let app = example::app(Arc::default());
    let ask = async |path: &str, body: &str| {
        let request = Request::post(path)
            .header("idempotency-key", "k1")
            .header("x-api-client", "ada")
            .header("content-type", "application/json")
            .body(Body::from(body.to_owned()))
            .unwrap();
        read(app.clone().oneshot(request).await.unwrap()).await.0
    };
    let body = r#"{"cents": 900, "to": "ada"}"#;
    assert_eq!(ask("/charge", body).await, StatusCode::CREATED);
    let again = r#"{"to":"ada","cents":9e2}"#;
    assert_eq!(ask("/charge", again).await, StatusCode::CREATED);
    let other = ask("/charge?twice=true", body).await;
    assert_eq!(other, StatusCode::UNPROCESSABLE_ENTITY);
}

#[tokio::test]
async fn a_request_without_a_key_is_refused_by_name_and_runs_nothing() {
    let charged = Arc::new(AtomicU64::new(0));
    let app = example::app(Arc::clone(&charged));
    let request = Request::post("/charge")
        .header("x-api-client", "ada")
        .body(Body::from("900"))
        .unwrap();
    let (status, _, message) = read(app.oneshot(request).await.unwrap()).await;
    assert_eq!(status, StatusCode::BAD_REQUEST);
    assert!(
        message.contains("header:idempotency-key is missing"),
        "{message}"
    );
    assert_eq!(charged.load(Ordering::SeqCst), 0);
}

#[tokio::test]
async fn a_final_refusal_is_replayed() {
    let app = example::app(Arc::default());
    for replayed in [false, true] {
        let answer = charge(&app, "k1", "ada", "").await;
        assert_eq!(
            answer,
            (
                StatusCode::BAD_REQUEST,
                replayed,
                "what shall I charge?".into()
            )
        );
    }
}

#[tokio::test]
async fn duplicates_at_once_share_one_charge() {
    let charged = Arc::new(AtomicU64::new(0));
    let app = example::app(Arc::clone(&charged));
    let (a, b, c) = tokio::join!(
        charge(&app, "k1", "ada", "900"),
        charge(&app, "k1", "ada", "900"),
        charge(&app, "k1", "ada", "900"),
    );
    assert_eq!([a.2, b.2, c.2], ["receipt 1"; 3]);
    assert_eq!(charged.load(Ordering::SeqCst), 1);
}
