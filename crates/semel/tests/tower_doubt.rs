//! The tower layer where an answer does not say whether the effect happened.
#![cfg(feature = "tower")]
#![allow(clippy::unwrap_used, reason = "a test may stop at the first surprise")]

use bytes::Bytes;
use http::{Request, Response, StatusCode};
use http_body_util::Full;
use semel::memory::MemoryStore;
use semel::protocol::InDoubt;
use semel::tower::{OnceError, OnceLayer, Verdict};
use semel::work::Work;
use semel::{Error, Fingerprint, Key, Semel};
use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tower::{ServiceBuilder, ServiceExt};

#[tokio::test]
async fn doubt_is_parked_and_runs_nothing_again() {
    let runs = Arc::new(AtomicU64::new(0));
    let once = OnceLayer::new(
        Semel::new(MemoryStore::new()),
        |_parts, body| {
            let work = Work::new(Key::from_bytes([1; 32]), Fingerprint::of(body));
            Ok(work.in_doubt(InDoubt::Park))
        },
        |response| match response.status() {
            StatusCode::OK => Verdict::Success,
            _ => Verdict::InDoubt,
        },
    );
    let counted = Arc::clone(&runs);
    let service = ServiceBuilder::new()
        .layer(once)
        .service_fn(move |_: Request<Full<Bytes>>| {
            counted.fetch_add(1, Ordering::SeqCst);
            let mut answer = Response::new(Full::new(Bytes::from("charged, then failed")));
            *answer.status_mut() = StatusCode::INTERNAL_SERVER_ERROR;
            async move { Ok::<_, Infallible>(answer) }
        });
    let ask = || {
        service
            .clone()
            .oneshot(Request::new(Full::new(Bytes::from("900"))))
    };
    // The one that ran hears what the service said; whoever comes later hears that it is parked.
    assert_eq!(ask().await.unwrap().status(), 500);
    assert_eq!(ask().await.unwrap_err(), OnceError::Parked);
    assert_eq!(runs.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn work_to_be_probed_is_refused_before_it_runs() {
    let once = OnceLayer::new(
        Semel::new(MemoryStore::new()),
        |_parts, body| {
            let work = Work::new(Key::from_bytes([1; 32]), Fingerprint::of(body));
            Ok(work.in_doubt(InDoubt::Probe))
        },
        |_| Verdict::Success,
    );
    let service =
        ServiceBuilder::new()
            .layer(once)
            .service_fn(|_: Request<Full<Bytes>>| async move {
                Ok::<_, Infallible>(Response::new(Full::new(Bytes::from("run unasked"))))
            });
    let refused = service
        .oneshot(Request::new(Full::new(Bytes::new())))
        .await
        .unwrap_err();
    assert!(matches!(refused, OnceError::Store(Error::Invalid(why)) if why.contains("probed")));
}
