//! An axum service that charges once per `Idempotency-Key`, however often a client asks.
//!
//! `cargo run -p semel --example axum --features tower`, then, twice:
//! `curl -i -H 'Idempotency-Key: k1' -H 'X-Api-Client: ada' -d '{"cents": 900}' 127.0.0.1:3000/charge`

use axum::error_handling::HandleErrorLayer;
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use axum::{Router, middleware};
use bytes::Bytes;
use semel::Semel;
use semel::key::{Delivered, KeyError, KeyRule, Scope};
use semel::memory::MemoryStore;
use semel::tower::{OnceError, OnceLayer, Replayed, Verdict, fingerprint};
use semel::work::Work;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tower::ServiceBuilder;

/// The service: `charged` counts the effects.
pub(crate) fn app(charged: Arc<AtomicU64>) -> Router {
    let semel = Semel::new(MemoryStore::new());
    let once = ServiceBuilder::new()
        .layer(middleware::map_response(mark_replay))
        .layer(HandleErrorLayer::new(|error| async move { refuse(&error) }))
        .layer(OnceLayer::new(semel, name, judge));
    let charge = move |body: Bytes| async move {
        if body.is_empty() {
            return (StatusCode::BAD_REQUEST, "what shall I charge?".to_owned());
        }
        let number = charged.fetch_add(1, Ordering::SeqCst) + 1;
        (StatusCode::CREATED, format!("receipt {number}"))
    };
    Router::new().route("/charge", post(charge)).layer(once)
}

/// Which work a request is: the client's key, within what this client does with this route.
fn name(parts: &Parts, body: &Bytes) -> Result<Work, KeyError> {
    let mut scope = Scope::new("example", "charge");
    scope.method = Some(parts.method.to_string());
    scope.caller = Some(header(&parts.headers, "x-api-client")?.to_owned());
    let key = header(&parts.headers, "idempotency-key")?;
    let rule: KeyRule = "idempotency-key".parse()?;
    let key = rule.key(
        &scope,
        &Delivered::payload(body).with("header:idempotency-key", key),
    )?;
    Ok(Work::new(key, fingerprint(parts, body)))
}

fn header<'a>(headers: &'a HeaderMap, name: &str) -> Result<&'a str, KeyError> {
    let missing = || KeyError::MissingPart {
        part: format!("header:{name}"),
    };
    headers
        .get(name)
        .and_then(|value| value.to_str().ok())
        .ok_or_else(missing)
}

/// What an answer means: success, a refusal that will not change, or trouble that may pass.
fn judge(response: &axum::http::Response<Bytes>) -> Verdict {
    match response.status() {
        status if status.is_success() => Verdict::Success,
        status if status.is_client_error() => Verdict::Final,
        _ => Verdict::Retryable,
    }
}

async fn mark_replay(mut response: Response) -> Response {
    if response.extensions().get::<Replayed>().is_some() {
        response
            .headers_mut()
            .insert("idempotent-replayed", HeaderValue::from_static("true"));
    }
    response
}

/// Where each refusal gets its status: the layer knows none.
fn refuse(error: &OnceError) -> Response {
    let status = match error {
        OnceError::Busy { .. }
        | OnceError::NotYet { .. }
        | OnceError::Full { .. }
        | OnceError::Parked
        | OnceError::Stale => StatusCode::CONFLICT,
        OnceError::Mismatched => StatusCode::UNPROCESSABLE_ENTITY,
        OnceError::NoKey(_) | OnceError::Body(_) => StatusCode::BAD_REQUEST,
        OnceError::Store(_) | OnceError::Unread => StatusCode::SERVICE_UNAVAILABLE,
        OnceError::Service(_) => StatusCode::BAD_GATEWAY,
    };
    (status, error.to_string()).into_response()
}

#[tokio::main]
#[allow(dead_code, reason = "the tests use app() alone")]
async fn main() -> Result<(), std::io::Error> {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:3000").await?;
    axum::serve(listener, app(Arc::default())).await
}
