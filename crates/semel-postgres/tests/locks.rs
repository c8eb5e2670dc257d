//! A handler that keeps its transaction open holds its own record and delays nobody else's.
#![allow(
    clippy::unwrap_used,
    clippy::wildcard_enum_match_arm,
    reason = "a test may panic"
)]

mod support;

use semel::protocol::{Claimed, Held, InDoubt, Lease, Owner};
use semel::store::StoreExt;
use semel::{Error, Outcome};
use semel_postgres::PostgresStore;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;
use support::{Bed, LEASE, RETENTION, claim, connect, granted};
use testbed::{PgBouncer, Postgres};
use tokio::task::JoinSet;
use tokio::time::Instant;

/// How many callers work on other keys.
const OTHERS: usize = 63;

/// How much longer any call about another key may take than without the open transaction.
const DELAY_MAX: Duration = Duration::from_millis(200);

/// A machine that does something else for a moment delays calls, too: a lock would delay them in every window.
const WINDOWS: usize = 3;

/// How long each window lasts.
const WINDOW: Duration = Duration::from_secs(1);

#[tokio::test(flavor = "multi_thread")]
async fn open_transaction_delays_no_other_key() {
    let bed = Bed::new("locks").await;
    judge(&bed).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn open_transaction_delays_no_other_key_behind_a_pooler() {
    let postgres = Postgres::start().unwrap();
    let direct = postgres.create_database("locks").unwrap();
    let pgbouncer = PgBouncer::start(&direct).unwrap();
    let bed = Bed::at(&pgbouncer.url(), &direct, |s| s.pooler = true).await;
    judge(&bed).await;
}

async fn judge(bed: &Bed) {
    let alone = slowest_of_others(&bed.store).await;

    let mut ask = claim();
    ask.lease = Duration::from_millis(1); // lapsed at once, so that claims reach for the row
    let held = bed.grant(&ask).await;
    let mut handler = connect(&bed.url).await;
    let transaction = handler.transaction().await.unwrap();
    let complete = "SELECT semel.complete($1, $2, 200, 'held')";
    let (key, fence) = (held.key.to_string(), i64::try_from(held.fence.0).unwrap());
    transaction
        .execute(complete, &[&key, &fence])
        .await
        .unwrap();

    let stop = Arc::new(AtomicBool::new(false));
    let mut reaching = JoinSet::new();
    reaching.spawn(reach_by_claim(bed.store.clone(), ask.clone(), stop.clone()));
    for write in [Reach::Renew, Reach::Complete, Reach::Fail] {
        reaching.spawn(reach_by_write(
            bed.store.clone(),
            held.clone(),
            write,
            stop.clone(),
        ));
    }
    let beside = slowest_of_others(&bed.store).await;
    stop.store(true, Ordering::Relaxed);
    let mut reached = 0;
    while let Some(times) = reaching.join_next().await {
        reached += times.unwrap();
    }
    assert!(
        reached >= 8,
        "the held record was reached for only {reached} times"
    );
    assert!(
        beside <= alone + DELAY_MAX,
        "slowest call: {beside:?} beside an open transaction, {alone:?} without"
    );

    transaction.commit().await.unwrap();
    bed.replays(&ask).await;
}

/// The slowest call of each window, and of these the fastest.
async fn slowest_of_others(store: &Arc<PostgresStore>) -> Duration {
    let mut fastest = Duration::MAX;
    for _ in 0..WINDOWS {
        fastest = fastest.min(slowest_in_window(store).await);
    }
    fastest
}

/// Claims, renews and completes other keys for a while; the longest a call took.
async fn slowest_in_window(store: &Arc<PostgresStore>) -> Duration {
    let until = Instant::now() + WINDOW;
    let mut callers = JoinSet::new();
    for _ in 0..OTHERS {
        let store = store.clone();
        callers.spawn(async move {
            let mut slowest = Duration::ZERO;
            while Instant::now() < until {
                slowest = slowest.max(run_once(&store).await);
            }
            slowest
        });
    }
    callers.join_all().await.into_iter().max().unwrap()
}

async fn run_once(store: &PostgresStore) -> Duration {
    let start = Instant::now();
    let lease = granted(store.claim(&claim()).await.unwrap());
    let claimed = Instant::now();
    let renewed = store.renew(&lease, LEASE, RETENTION).await.unwrap();
    let result = Outcome::ok("").encode();
    let renewed_at = Instant::now();
    let completed = store.complete(&lease, &result, RETENTION).await.unwrap();
    assert!(matches!(renewed, Held::Applied(_)), "{renewed:?}");
    assert!(matches!(completed, Held::Applied(_)), "{completed:?}");
    (claimed - start)
        .max(renewed_at - claimed)
        .max(renewed_at.elapsed())
}

/// Somebody else's delivery of the held key: told to come back, again and again.
async fn reach_by_claim(
    store: Arc<PostgresStore>,
    mut ask: semel::protocol::Claim,
    stop: Arc<AtomicBool>,
) -> u32 {
    let mut times = 0;
    while !stop.load(Ordering::Relaxed) {
        ask.owner = Owner::random();
        let claimed = store.claim(&ask).await.unwrap();
        assert!(matches!(claimed, Claimed::Busy { .. }), "{claimed:?}");
        times += 1;
    }
    times
}

#[derive(Clone, Copy)]
enum Reach {
    Renew,
    Complete,
    Fail,
}

/// The run's own late word: it cannot know, so it is told to try again.
async fn reach_by_write(
    store: Arc<PostgresStore>,
    lease: Lease,
    write: Reach,
    stop: Arc<AtomicBool>,
) -> u32 {
    let result = Outcome::ok("late").encode();
    let how = semel::protocol::Fail {
        kind: semel::protocol::FailKind::Final,
        in_doubt: InDoubt::Retry,
        max_attempts: None,
        max_in_doubt: None,
        park_after: None,
        retention: RETENTION,
        result: result.clone(),
    };
    let mut times = 0;
    while !stop.load(Ordering::Relaxed) {
        let held = match write {
            Reach::Renew => store.renew(&lease, LEASE, RETENTION).await,
            Reach::Complete => store.complete(&lease, &result, RETENTION).await,
            Reach::Fail => store.fail(&lease, &how).await,
        };
        let error = held.unwrap_err();
        assert!(
            matches!(&error, Error::Unavailable(why) if why.contains("held")),
            "{error}"
        );
        times += 1;
    }
    times
}

/// A claim that is in flight for long, as nothing in the product makes one: only its key is busy.
#[tokio::test(flavor = "multi_thread")]
async fn claim_in_flight_makes_only_its_own_key_busy() {
    let bed = Bed::with("in_flight", |s| s.lanes = 1).await;
    let stuck = claim();
    let mut other = connect(&bed.url).await;
    let transaction = other.transaction().await.unwrap();
    let insert = "INSERT INTO semel.rec SELECT $1, $1, 1, 1, 1, 1, gen_random_uuid(), now(), now()";
    let key = stuck.key.as_bytes().to_vec();
    transaction.execute(insert, &[&key]).await.unwrap();

    let busy = Arc::new(AtomicU32::new(0));
    let mut callers = JoinSet::new();
    for n in 0..16 {
        let (store, busy) = (bed.store.clone(), busy.clone());
        let is_stuck = n == 7;
        let ask = if is_stuck { stuck.clone() } else { claim() };
        callers.spawn(async move {
            match store.claim(&ask).await.unwrap() {
                Claimed::Granted(_) => assert!(!is_stuck, "granted what another claims"),
                Claimed::Busy { .. } => {
                    assert!(is_stuck, "another key was busy");
                    busy.fetch_add(1, Ordering::Relaxed);
                }
                other => panic!("{other:?}"),
            }
        });
    }
    callers.join_all().await;
    assert_eq!(busy.load(Ordering::Relaxed), 1);
    transaction.rollback().await.unwrap();
    bed.grant(&stuck).await;
}
