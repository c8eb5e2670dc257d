//! Writes that replicas confirm, and those they do not.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

#[allow(dead_code, reason = "each test file uses a part of it")]
mod support;

use semel::Error;
use semel::protocol::{Claimed, Held, State};
use semel::store::StoreExt;
use semel_redis::{RedisStore, WaitReplicas};
use std::sync::Arc;
use std::time::Duration;
use support::{SUCCEEDED, ask, claim, complete, grant, replica_of, says, settings};
use testbed::{Process, Redis};

async fn confirmed_by_one(redis: &Redis, timeout: Duration) -> RedisStore {
    let mut settings = settings(&redis.url());
    settings.wait_replicas = Some(WaitReplicas { count: 1, timeout });
    RedisStore::connect(settings).await.unwrap()
}

fn unconfirmed<T: std::fmt::Debug>(answer: Result<T, Error>) {
    let Err(Error::Unavailable(why)) = answer else {
        panic!("not unavailable: {answer:?}")
    };
    says(&why, &["unknown", "0 of 1 replicas", "a repeat is safe"]);
}

#[tokio::test]
async fn write_that_no_replica_confirms_is_unknown_and_made() {
    let redis = Redis::start(&[]).unwrap();
    let store = confirmed_by_one(&redis, Duration::from_millis(50)).await;
    let claim = claim();
    unconfirmed(store.claim(&claim).await);
    let record = store.look(&claim.key).await.unwrap().unwrap();
    assert_eq!((record.state, record.owner), (State::Running, claim.owner));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn confirmed_writes_are_on_the_replica() {
    let master = Redis::start(&[]).unwrap();
    let replica = replica_of(&master).await;
    let store = Arc::new(confirmed_by_one(&master, Duration::from_secs(10)).await);
    let runs: Vec<_> = (0..64)
        .map(|_| {
            let store = Arc::clone(&store);
            tokio::spawn(async move {
                let lease = grant(&*store, &claim()).await;
                assert_eq!(complete(&*store, &lease).await, Ok(SUCCEEDED));
                lease.key
            })
        })
        .collect();
    let mut keys = Vec::new();
    for run in runs {
        keys.push(run.await.unwrap());
    }
    let mut there = support::raw(&replica.url()).await;
    let names: Vec<String> = ask(&mut there, &["KEYS", "test-*:{*}"]).await;
    assert_eq!(names.len(), keys.len());
    for name in names {
        let state: String = ask(&mut there, &["HGET", &name, "st"]).await;
        assert_eq!(state, "2");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn repeat_is_not_confirmed_by_finding_the_write_already_made() {
    let master = Redis::start(&[]).unwrap();
    let replica = replica_of(&master).await;
    let store = confirmed_by_one(&master, Duration::from_millis(300)).await;
    let mine = claim();
    let lease = grant(&store, &mine).await;

    let process = Process::new(replica.pid().unwrap()).unwrap();
    process.pause().unwrap();
    unconfirmed(complete(&store, &lease).await);
    // Nothing is written by these, and yet what they would tell is not on the replica.
    unconfirmed(complete(&store, &lease).await);
    unconfirmed(store.claim(&mine).await);
    process.resume().unwrap();

    let repeated = tokio::time::timeout(Duration::from_secs(30), async {
        loop {
            if let Ok(held) = complete(&store, &lease).await {
                return held;
            }
        }
    });
    assert_eq!(repeated.await.unwrap(), Held::Already(State::Succeeded));
    let again = store.claim(&mine).await;
    assert!(matches!(again, Ok(Claimed::Replayed(_))), "{again:?}");
}
