//! Servers that go away, come back, are full, silent or demoted, and records that were tampered with.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

#[allow(dead_code, reason = "each test file uses a part of it")]
mod support;

use semel::protocol::{Acted, Claimed, Held, Lease, State};
use semel::store::StoreExt;
use semel::{Error, Store};
use semel_redis::{RedisSettings, RedisStore};
use std::error::Error as _;
use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;
use support::{KEEP, SUCCEEDED, ask, claim, complete, grant, raw, run, says};
use support::{settings, started};
use testbed::{Process, Redis};
use tokio::time::{Instant, timeout};

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

fn unavailable<T: Debug>(answer: Result<T, Error>) -> String {
    let error = answer.unwrap_err();
    assert!(matches!(error, Error::Unavailable(_)), "{error:?}");
    assert!(error.source().is_some(), "{error:?}");
    error.to_string()
}

fn denied<T: Debug>(answer: Result<T, Error>) -> String {
    let error = answer.unwrap_err();
    assert!(matches!(error, Error::Denied(_)), "{error:?}");
    assert!(error.source().is_some(), "{error:?}");
    error.to_string()
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
    assert_eq!(grant(&store, &mine).await, lease);
    assert_eq!(complete(&store, &lease).await, Ok(SUCCEEDED));
    let already = Held::Already(State::Succeeded);
    assert_eq!(complete(&store, &lease).await, Ok(already));
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
        let record = store.look(&key).await.unwrap();
        assert!(record.is_some(), "{key} was acknowledged");
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
        let kill = ["CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"];
        ask::<()>(&mut beside, &kill).await;
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
    says(&why, &["did not answer within", "unknown"]);
    assert!(took < Duration::from_secs(5), "{took:?}");

    claim_when_back(&store).await;
    // The unanswered call may have been made after all: the repeat says so or makes it.
    let repeated = complete(&store, &lease).await.unwrap();
    let made = [Held::Already(State::Succeeded), SUCCEEDED];
    assert!(made.contains(&repeated), "{repeated:?}");
}

#[tokio::test]
async fn full_server_takes_nothing_new_and_still_records_how_runs_end() {
    let (redis, store) = started(&[]).await;
    let first = claim();
    let lease = grant(&store, &first).await;
    let second = grant(&store, &claim()).await;
    run(&redis, &["CONFIG", "SET", "maxmemory", "1"]).await;
    let why = denied(store.claim(&claim()).await);
    says(&why, &["out of memory", "nothing was written"]);
    let renewed = store.renew(&lease, Duration::from_secs(60), KEEP).await;
    assert_eq!(renewed, Ok(Held::Applied(State::Running)));
    assert_eq!(complete(&store, &lease).await, Ok(SUCCEEDED));
    let released = store.release(&second).await;
    assert_eq!(released, Ok(Held::Applied(State::Waiting)));
    let retained = store.retain(&second.key, KEEP * 2).await;
    assert_eq!(retained, Ok(Acted::Applied));
    let record = store.look(&first.key).await.unwrap().unwrap();
    assert_eq!(record.state, State::Succeeded);
    run(&redis, &["CONFIG", "SET", "maxmemory", "0"]).await;
    let again = store.claim(&first).await;
    assert!(matches!(again, Ok(Claimed::Replayed(_))), "{again:?}");
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
    assert_eq!(complete(&store, &lease).await, Ok(SUCCEEDED));
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
        let corrupt = matches!(looked, Err(Error::Corrupt(_)));
        assert!(corrupt, "{damage:?}: {looked:?}");
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
    let rotate = ["ACL", "SETUSER", "app", "+hset", "resetpass", ">second"];
    run(&redis, &rotate).await;
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
    assert_eq!(timeout(BOUND, fixed).await, Ok(SUCCEEDED));
}
