//! Servers that go away, come back, are full, silent or demoted, and records that were tampered with.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

#[allow(dead_code, reason = "each test file uses a part of it")]
mod support;

use bytes::Bytes;
use semel::protocol::{Claimed, Held, Lease, State};
use semel::store::StoreExt;
use semel::{Error, Store};
use semel_redis::{RedisSettings, RedisStore};
use std::error::Error as _;
use std::sync::Arc;
use std::time::Duration;
use support::{ask, claim, grant, raw, run, settings};
use testbed::{Process, Redis};
use tokio::time::{Instant, timeout};

const KEEP: Duration = Duration::from_secs(3_600);
const BOUND: Duration = Duration::from_secs(30);

/// At once, on a busy machine: far less than any timeout of a [`patient`] store.
const AT_ONCE: Duration = Duration::from_secs(10);

/// Settings under which nothing that takes a timeout is done at once.
fn patient(url: &str) -> RedisSettings {
    let mut settings = settings(url);
    settings.connect_timeout = Duration::from_secs(60);
    settings.response_timeout = Duration::from_secs(60);
    settings
}

async fn started(config: &[(&str, &str)]) -> (Redis, RedisStore) {
    let redis = Redis::start(config).unwrap();
    let store = RedisStore::connect(settings(&redis.url())).await.unwrap();
    (redis, store)
}

fn unavailable<T: std::fmt::Debug>(answer: Result<T, Error>) -> String {
    match answer {
        Err(error @ Error::Unavailable(_)) => {
            assert!(error.source().is_some(), "{error:?}");
            error.to_string()
        }
        other => panic!("not unavailable: {other:?}"),
    }
}

fn denied<T: std::fmt::Debug>(answer: Result<T, Error>) -> String {
    match answer {
        Err(error @ Error::Denied(_)) => {
            assert!(error.source().is_some(), "{error:?}");
            error.to_string()
        }
        other => panic!("not denied: {other:?}"),
    }
}

async fn complete(store: &RedisStore, lease: &Lease) -> Result<Held, Error> {
    store
        .complete(lease, &Bytes::from_static(b"done"), KEEP)
        .await
}

/// Repeats a claim until it is answered: that is what a caller would do.
async fn claim_when_back(store: &RedisStore) {
    let claim = claim();
    let granted = async {
        while store.claim(&claim).await.is_err() {
            tokio::task::yield_now().await;
        }
    };
    timeout(BOUND, granted).await.unwrap();
}

#[tokio::test]
async fn server_that_is_down_is_unavailable_at_once() {
    let url = format!("redis://127.0.0.1:{}", testbed::free_port().unwrap());
    let before = Instant::now();
    let why = unavailable(RedisStore::connect(patient(&url)).await);
    assert!(before.elapsed() < AT_ONCE, "{why}");
    assert!(why.contains("127.0.0.1"), "{why}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn killed_server_is_unavailable_at_once_and_used_again_when_it_is_back() {
    let mut redis = Redis::start(&[("appendfsync", "always")]).unwrap();
    let store = RedisStore::connect(patient(&redis.url())).await.unwrap();
    let mine = claim();
    let lease = grant(&store, &mine).await;
    redis.kill().unwrap();
    for _ in 0..50 {
        let before = Instant::now();
        unavailable(store.claim(&claim()).await);
        assert!(before.elapsed() < AT_ONCE);
    }
    redis.restart().unwrap();
    claim_when_back(&store).await;
    // The same claim again: the answer could have been lost.
    assert_eq!(
        store.claim(&mine).await.unwrap(),
        Claimed::Granted(lease.clone())
    );
    assert_eq!(
        complete(&store, &lease).await.unwrap(),
        Held::Applied(State::Succeeded)
    );
    assert_eq!(
        complete(&store, &lease).await.unwrap(),
        Held::Already(State::Succeeded)
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn server_killed_in_the_middle_of_calls_leaves_each_made_or_unknown() {
    let (mut redis, store) = started(&[("appendfsync", "always")]).await;
    let store = Arc::new(store);
    let (acknowledged, mut keys) = tokio::sync::mpsc::unbounded_channel();
    for _ in 0..16 {
        let (store, acknowledged) = (Arc::clone(&store), acknowledged.clone());
        tokio::spawn(async move {
            loop {
                let claim = claim();
                match store.claim(&claim).await {
                    Ok(Claimed::Granted(_)) => acknowledged.send(claim.key).unwrap(),
                    Err(Error::Unavailable(_)) => return,
                    other => panic!("{other:?}"),
                }
            }
        });
    }
    drop(acknowledged);
    let mut answered = Vec::new();
    while answered.len() < 500 {
        answered.push(keys.recv().await.unwrap());
    }
    redis.kill().unwrap();
    while let Some(key) = timeout(BOUND, keys.recv()).await.unwrap() {
        answered.push(key);
    }
    redis.restart().unwrap();
    claim_when_back(&store).await;
    for key in answered {
        assert!(
            store.look(&key).await.unwrap().is_some(),
            "{key} was acknowledged"
        );
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn library_is_loaded_again_when_the_server_has_lost_it() {
    let (redis, store) = started(&[]).await;
    let store = Arc::new(store);
    for lost in [
        &["FUNCTION", "FLUSH"][..],
        &["FLUSHALL"],
        &["SCRIPT", "FLUSH"],
    ] {
        run(&redis, &["FUNCTION", "FLUSH"]).await;
        run(&redis, lost).await;
        let callers: Vec<_> = (0..64)
            .map(|_| {
                let store = Arc::clone(&store);
                tokio::spawn(async move { grant(&*store, &claim()).await })
            })
            .collect();
        for caller in callers {
            caller.await.unwrap();
        }
        run(&redis, &["FUNCTION", "FLUSH"]).await;
        assert!(!store.list(None, None, 10).await.unwrap().items.is_empty());
    }
}

#[tokio::test]
async fn connection_that_the_server_closed_while_idle_is_not_used_again() {
    let (redis, store) = started(&[]).await;
    let mut beside = raw(&redis.url()).await;
    for _ in 0..10 {
        grant(&store, &claim()).await;
        grant(&store, &claim()).await;
        ask::<()>(
            &mut beside,
            &["CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"],
        )
        .await;
        // A round trip, in which this thread also reads that the others were closed.
        ask::<()>(&mut beside, &["PING"]).await;
    }
}

#[tokio::test]
async fn server_without_append_only_file_forgets_and_goes_on() {
    let (mut redis, store) = started(&[("appendonly", "no")]).await;
    let key = grant(&store, &claim()).await.key;
    redis.kill().unwrap();
    redis.restart().unwrap();
    claim_when_back(&store).await;
    assert_eq!(store.look(&key).await.unwrap(), None);
}

#[tokio::test]
async fn silent_server_is_unavailable_after_the_named_timeout_and_used_again_later() {
    let redis = Redis::start(&[]).unwrap();
    let mut settings = settings(&redis.url());
    settings.response_timeout = Duration::from_secs(1);
    settings.connections = 1;
    let store = RedisStore::connect(settings).await.unwrap();
    let lease = grant(&store, &claim()).await;

    let process = Process::new(redis.pid().unwrap()).unwrap();
    process.pause().unwrap();
    let before = Instant::now();
    let why = unavailable(complete(&store, &lease).await);
    let took = before.elapsed();
    process.resume().unwrap();
    assert!(
        why.contains("did not answer within") && why.contains("unknown"),
        "{why}"
    );
    assert!(took < Duration::from_secs(5), "{took:?}");

    claim_when_back(&store).await;
    // The unanswered call may have been made after all: the repeat says so or makes it.
    let repeated = complete(&store, &lease).await.unwrap();
    let done = State::Succeeded;
    assert!(
        [Held::Already(done), Held::Applied(done)].contains(&repeated),
        "{repeated:?}"
    );
}

#[tokio::test]
async fn full_server_takes_nothing_new_and_still_records_how_runs_end() {
    let (redis, store) = started(&[]).await;
    let first = claim();
    let lease = grant(&store, &first).await;
    let second = grant(&store, &claim()).await;
    run(&redis, &["CONFIG", "SET", "maxmemory", "1"]).await;
    let why = denied(store.claim(&claim()).await);
    assert!(
        why.contains("out of memory") && why.contains("nothing was written"),
        "{why}"
    );
    let renewed = store
        .renew(&lease, Duration::from_secs(60), KEEP)
        .await
        .unwrap();
    assert_eq!(renewed, Held::Applied(State::Running));
    assert_eq!(
        complete(&store, &lease).await.unwrap(),
        Held::Applied(State::Succeeded)
    );
    assert_eq!(
        store.release(&second).await.unwrap(),
        Held::Applied(State::Waiting)
    );
    assert_eq!(
        store.look(&first.key).await.unwrap().unwrap().state,
        State::Succeeded
    );
    run(&redis, &["CONFIG", "SET", "maxmemory", "0"]).await;
    assert!(matches!(
        store.claim(&first).await.unwrap(),
        Claimed::Replayed(_)
    ));
}

#[tokio::test]
async fn demoted_server_denies_until_it_is_master_again() {
    let (redis, store) = started(&[]).await;
    let lease = grant(&store, &claim()).await;
    let nobody = testbed::free_port().unwrap().to_string();
    run(&redis, &["REPLICAOF", "127.0.0.1", &nobody]).await;
    let why = denied(complete(&store, &lease).await);
    assert!(why.contains("replica"), "{why}");
    denied(store.look(&lease.key).await);
    run(&redis, &["REPLICAOF", "NO", "ONE"]).await;
    assert_eq!(
        complete(&store, &lease).await.unwrap(),
        Held::Applied(State::Succeeded)
    );
}

#[tokio::test]
async fn record_that_was_tampered_with_is_corrupt_and_nothing_is_replayed() {
    let redis = Redis::start(&[]).unwrap();
    let settings = settings(&redis.url());
    let store = RedisStore::connect(settings.clone()).await.unwrap();
    let hex = |lease: &Lease| lease.key.to_string().replace("v1_", "");
    let name = |lease: &Lease| format!("{}:{{{}}}", settings.prefix, hex(lease));

    for damage in [
        &["HDEL", "x"][..],
        &["HSET", "fp", "short"],
        &["HSET", "st", "9"],
    ] {
        let lease = grant(&store, &claim()).await;
        let name = name(&lease);
        let words = [&damage[..1], &[&name], &damage[1..]].concat();
        run(&redis, &words).await;
        let looked = store.look(&lease.key).await;
        assert!(
            matches!(looked, Err(Error::Corrupt(_))),
            "{damage:?}: {looked:?}"
        );
    }
    let again = claim();
    let lease = grant(&store, &again).await;
    run(&redis, &["HSET", &name(&lease), "st", "9", "l", "0"]).await;
    let answer = store.claim(&again).await;
    assert!(matches!(answer, Err(Error::Corrupt(_))), "{answer:?}");
    run(&redis, &["SET", &name(&lease), "something else"]).await;
    let answer = store.claim(&again).await;
    assert!(matches!(answer, Err(Error::Corrupt(_))), "{answer:?}");
}

#[tokio::test]
async fn user_who_may_not_come_in_or_write_any_more_is_denied_until_that_is_fixed() {
    let redis = Redis::start(&[("appendfsync", "always")]).unwrap();
    let allow = ["ACL", "SETUSER", "app", "on", ">first", "~*", "+@all"];
    run(&redis, &allow).await;
    let url = redis.url().replace("redis://", "redis://app:first@");
    let store = RedisStore::connect(settings(&url)).await.unwrap();
    let lease = grant(&store, &claim()).await;

    run(&redis, &["ACL", "SETUSER", "app", "-hset"]).await;
    let why = denied(complete(&store, &lease).await);
    assert!(why.contains("nothing was written"), "{why}");
    run(
        &redis,
        &["ACL", "SETUSER", "app", "+hset", "resetpass", ">second"],
    )
    .await;
    run(&redis, &["CLIENT", "KILL", "USER", "app"]).await;
    let rotated = async {
        // A connection that was cut under a call says so first.
        while let Err(Error::Unavailable(_)) = complete(&store, &lease).await {
            tokio::task::yield_now().await;
        }
        denied(complete(&store, &lease).await)
    };
    let why = timeout(BOUND, rotated).await.unwrap();
    assert!(
        why.contains("user or password") && !why.contains("first"),
        "{why}"
    );

    run(&redis, &allow).await;
    let fixed = async {
        loop {
            match complete(&store, &lease).await {
                Ok(held) => return held,
                Err(error) => assert!(matches!(error, Error::Denied(_)), "{error}"),
            }
            tokio::task::yield_now().await;
        }
    };
    let held = timeout(BOUND, fixed).await.unwrap();
    assert_eq!(held, Held::Applied(State::Succeeded));
}
