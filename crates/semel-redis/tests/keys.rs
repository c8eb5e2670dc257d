//! Names, ends and slots of the keys, as an operator sees them.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

#[allow(dead_code, reason = "each test file uses a part of it")]
mod support;

use bytes::Bytes;
use redis::aio::MultiplexedConnection;
use semel::letter::{Letter, LetterId, Mark, Marked, Put, Reason};
use semel::protocol::{
    Acted, Claim, Fail, FailKind, Fence, Held, InDoubt, Lease, State, StepBegun,
};
use semel::store::{Letters, StoreExt};
use semel::{Fingerprint, Store};
use semel_redis::RedisStore;
use std::time::Duration;
use support::{Aged, KEEP, ask, claim, grant, raw, says, settings};
use testbed::Redis;

/// Waits until the nodes have told each other.
async fn cluster_says(raw: &mut MultiplexedConnection, what: &str) {
    for _ in 0..1_500 {
        let info: String = ask(raw, &["CLUSTER", "INFO"]).await;
        if info.contains(what) {
            return;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    panic!("not {what} after 30 s");
}

/// A node without slots, and the port where it listens to other nodes.
fn cluster_node() -> (Redis, String) {
    let bus = testbed::free_port().unwrap().to_string();
    let config = [("cluster-enabled", "yes"), ("cluster-port", &bus)];
    (Redis::start(&config).unwrap(), bus)
}

fn names(prefix: &str, lease: &Lease) -> [String; 2] {
    let record = format!("{prefix}:{{{}}}", lease.key.to_string().replace("v1_", ""));
    [record.clone(), format!("{record}:s")]
}

fn letter() -> Letter {
    Letter {
        id: LetterId::of_delivery(Reason::Invalid, "message 1", &Fingerprint::of(b"x")),
        key: None,
        route: "orders".into(),
        reason: Reason::Invalid,
        fence: Fence(0),
        retention: Duration::from_secs(60),
        redriven: false,
        alarmed: false,
        delivery: Bytes::from_static(b"delivery"),
    }
}

#[tokio::test]
async fn prefixes_keep_installations_apart() {
    let url = testbed::redis_url().unwrap();
    let one = RedisStore::connect(settings(&url)).await.unwrap();
    let other = RedisStore::connect(settings(&url)).await.unwrap();
    let lease = grant(&one, &claim()).await;
    assert_eq!(one.put(&letter()).await.unwrap(), Put::Applied);

    assert_eq!(other.look(&lease.key).await.unwrap(), None);
    assert_eq!(other.get(&letter().id).await.unwrap(), None);
    let letters = Letters::list(&other, None, 10).await.unwrap();
    assert!(letters.items.is_empty(), "{letters:?}");
    let mut after = None;
    loop {
        let page = Store::list(&other, None, after.as_ref(), 100).await;
        let page = page.unwrap();
        assert!(page.items.is_empty(), "{page:?}");
        after = page.next;
        if after.is_none() {
            break;
        }
    }
}

#[tokio::test]
async fn records_and_steps_end_a_minute_after_retention_and_parked_ones_never() {
    let settings = settings(&testbed::redis_url().unwrap());
    let store = RedisStore::connect(settings.clone()).await.unwrap();
    let mut raw = raw(&settings.url).await;
    let lease = grant(&store, &claim()).await;
    let begun = store.step_begin(&lease, "charge").await;
    assert_eq!(begun, Ok(StepBegun::Run));

    let ends = async |raw: &mut MultiplexedConnection| -> [i64; 2] {
        let [record, steps] = names(&settings.prefix, &lease);
        [
            ask(raw, &["PEXPIRETIME", &record]).await,
            ask(raw, &["PEXPIRETIME", &steps]).await,
        ]
    };
    let minute_after = async || {
        let record = store.look(&lease.key).await.unwrap().unwrap();
        let end = i64::try_from(record.expires_at.0.div_ceil(1_000)).unwrap() + 60_000;
        [end, end]
    };
    assert_eq!(ends(&mut raw).await, minute_after().await);
    let retained = store.retain(&lease.key, KEEP * 2).await;
    assert_eq!(retained, Ok(Acted::Applied));
    assert_eq!(ends(&mut raw).await, minute_after().await);

    let fail = Fail {
        kind: FailKind::InDoubt {
            delay: Duration::ZERO,
        },
        in_doubt: InDoubt::Park,
        max_attempts: None,
        max_in_doubt: None,
        park_after: None,
        retention: KEEP,
        result: Bytes::new(),
    };
    let failed = store.fail(&lease, &fail).await;
    assert_eq!(failed, Ok(Held::Applied(State::Parked)));
    assert_eq!(ends(&mut raw).await, [-1, -1]);

    assert_eq!(store.redrive(&lease.key, "").await.unwrap(), Acted::Applied);
    assert_eq!(ends(&mut raw).await, minute_after().await);
    assert_eq!(store.forget(&lease.key).await.unwrap(), Acted::Applied);
    let [record, steps] = ends(&mut raw).await;
    let now: Vec<i64> = ask(&mut raw, &["TIME"]).await;
    let left = record - now[0] * 1_000;
    assert!((50_000..=62_000).contains(&left), "{left}");
    assert_eq!(steps, -2, "the steps went at once");
}

/// A library of before labels grants without removing the label of the incarnation before.
#[tokio::test]
async fn label_of_another_incarnation_is_not_shown() {
    let settings = settings(&testbed::redis_url().unwrap());
    let store = RedisStore::connect(settings.clone()).await.unwrap();
    let mut raw = raw(&settings.url).await;
    let labelled = Claim {
        label: "order 7".into(),
        ..claim()
    };
    let lease = grant(&store, &labelled).await;
    let label = async || store.look(&lease.key).await.unwrap().unwrap().label;
    assert_eq!(label().await, "order 7");
    let [record, _] = names(&settings.prefix, &lease);
    ask::<()>(&mut raw, &["HSET", &record, "b", "7"]).await;
    assert_eq!(label().await, "");
}

#[tokio::test]
async fn a_closed_letter_leaves_a_tombstone_that_redis_itself_removes() {
    let settings = settings(&testbed::redis_url().unwrap());
    let store = RedisStore::connect(settings.clone()).await.unwrap();
    let mut raw = raw(&settings.url).await;
    assert_eq!(store.put(&letter()).await, Ok(Put::Applied));
    let closed = store.mark(&letter().id, Mark::Closed).await;
    assert_eq!(closed, Ok(Marked::Applied));
    let prefix = &settings.prefix;
    let fields: i64 = ask(&mut raw, &["HLEN", &format!("{prefix}:{{letters}}:h")]).await;
    assert_eq!(fields, 0, "the delivery is gone");
    let tombstone = format!("{prefix}:{{letters}}:t:{}", letter().id);
    let left: i64 = ask(&mut raw, &["PTTL", &tombstone]).await;
    assert!((50_000..=60_002).contains(&left), "{left}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn node_that_owns_every_slot_keeps_records_and_every_call_stays_in_one_slot() {
    let (redis, _) = cluster_node();
    let mut raw = raw(&redis.url()).await;
    ask::<()>(&mut raw, &["CLUSTER", "ADDSLOTSRANGE", "0", "16383"]).await;
    cluster_says(&mut raw, "cluster_state:ok").await;
    // A cluster refuses a call whose keys are in two slots, so the suite itself is the test.
    let subject = Aged::connect(settings(&redis.url())).await;
    let report = semel::conformance::suite(&subject).await.unwrap();
    assert!(!report.held.is_empty());

    let lease = grant(&*subject.store, &claim()).await;
    let [record, steps] = names(&subject.prefix, &lease);
    let slot: u32 = ask(&mut raw, &["CLUSTER", "KEYSLOT", &record]).await;
    let of_steps: u32 = ask(&mut raw, &["CLUSTER", "KEYSLOT", &steps]).await;
    assert_eq!(slot, of_steps);
}

#[tokio::test]
async fn one_master_of_several_is_refused() {
    let ((one, _), (two, bus)) = (cluster_node(), cluster_node());
    let (mut at_one, mut at_two) = (raw(&one.url()).await, raw(&two.url()).await);
    ask::<()>(&mut at_one, &["CLUSTER", "ADDSLOTSRANGE", "0", "8000"]).await;
    ask::<()>(&mut at_two, &["CLUSTER", "ADDSLOTSRANGE", "8001", "16383"]).await;
    let port = two.port().to_string();
    ask::<()>(&mut at_one, &["CLUSTER", "MEET", "127.0.0.1", &port, &bus]).await;
    cluster_says(&mut at_one, "cluster_size:2").await;
    let connected = RedisStore::connect(settings(&one.url())).await;
    says(&connected.unwrap_err().to_string(), &["one of 2 masters"]);
}
