//! A server that does not take writes, or may forget them, is not ready; and is again once it is fixed.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

#[allow(dead_code, reason = "each test file uses a part of it")]
mod support;

use semel::Error;
use semel::store::StoreExt;
use semel_redis::RedisStore;
use support::{claim, grant, run, says, settings, started};
use testbed::Redis;

async fn denied(store: &RedisStore) -> String {
    match store.ready().await {
        Err(Error::Denied(why) | Error::Unavailable(why)) => why.to_string(),
        other => panic!("ready: {other:?}"),
    }
}

async fn config(redis: &Redis, name: &str, value: &str) {
    run(redis, &["CONFIG", "SET", name, value]).await;
}

#[tokio::test]
async fn eviction_that_is_switched_on_later_is_noticed() {
    let (mut redis, store) = started(&[]).await;
    store.ready().await.unwrap();
    config(&redis, "maxmemory-policy", "allkeys-lru").await;
    let why = denied(&store).await;
    let remedy = "CONFIG SET maxmemory-policy noeviction";
    says(&why, &["maxmemory-policy allkeys-lru", remedy]);
    // No claim is made from now on, and the first one after the repair is.
    match store.claim(&claim()).await {
        Err(Error::Denied(why)) => says(&why.to_string(), &[remedy, "nothing was written"]),
        other => panic!("claim: {other:?}"),
    }
    config(&redis, "maxmemory-policy", "noeviction").await;
    grant(&store, &claim()).await;
    store.ready().await.unwrap();

    let mut allowing = settings(&redis.url());
    allowing.allow_eviction = true;
    let allowing = RedisStore::connect(allowing).await.unwrap();
    config(&redis, "maxmemory-policy", "volatile-ttl").await;
    allowing.ready().await.unwrap();
    denied(&store).await;
    // A restart brings back what the server was started with.
    redis.kill().unwrap();
    redis.restart().unwrap();
    while store.ready().await.is_err() {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn a_new_connection_to_a_server_that_evicts_makes_no_claim() {
    let (redis, store) = started(&[]).await;
    config(&redis, "maxmemory-policy", "allkeys-lru").await;
    grant(&store, &claim()).await;
    run(
        &redis,
        &["CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"],
    )
    .await;
    let denied = loop {
        // A call on the connection that was closed has no answer.
        match store.claim(&claim()).await {
            Err(Error::Unavailable(_)) => tokio::task::yield_now().await,
            other => break other,
        }
    };
    assert!(matches!(denied, Err(Error::Denied(_))), "{denied:?}");
}

#[tokio::test]
async fn server_without_memory_to_spare_is_not_ready() {
    let (redis, store) = started(&[]).await;
    config(&redis, "maxmemory", "1").await;
    assert!(denied(&store).await.contains("out of memory"));
    config(&redis, "maxmemory", "0").await;
    store.ready().await.unwrap();
}

#[tokio::test]
async fn server_that_became_a_replica_is_not_ready() {
    let (redis, store) = started(&[]).await;
    run(&redis, &["REPLICAOF", "127.0.0.1", "1"]).await;
    denied(&store).await;
    run(&redis, &["REPLICAOF", "NO", "ONE"]).await;
    while store.ready().await.is_err() {
        tokio::task::yield_now().await;
    }
}
