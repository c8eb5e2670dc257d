//! The suite that every store passes, on a real Redis.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

#[allow(dead_code, reason = "each test file uses a part of it")]
mod support;

use semel::conformance::{compare, suite};
use semel_redis::WaitReplicas;
use std::time::Duration;
use support::{Aged, settings};
use testbed::Redis;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_behaviour_holds() {
    let subject = Aged::connect(settings(&testbed::redis_url().unwrap())).await;
    let report = suite(&subject).await.unwrap();
    assert!(!report.held.is_empty());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[allow(
    clippy::disallowed_methods,
    reason = "another seed each time, printed when it fails"
)]
async fn random_operations_are_answered_as_decide_says() {
    let subject = Aged::connect(settings(&testbed::redis_url().unwrap())).await;
    compare(&subject, 500, 50, rand::random()).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[allow(
    clippy::disallowed_methods,
    reason = "another seed each time, printed when it fails"
)]
async fn every_behaviour_holds_when_replicas_confirm() {
    let master = Redis::start(&[]).unwrap();
    let _replica = support::replica_of(&master).await;
    let mut settings = settings(&master.url());
    settings.wait_replicas = Some(WaitReplicas {
        count: 1,
        timeout: Duration::from_secs(5),
    });
    let subject = Aged::connect(settings).await;
    let report = suite(&subject).await.unwrap();
    assert!(!report.held.is_empty());
    compare(&subject, 20, 50, rand::random()).await.unwrap();
}
