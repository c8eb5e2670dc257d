//! What only somebody with hands on the engine can bring about.

use super::{EmbeddedSettings, EmbeddedStore};
use crate::codec::{self, RowKey};
use crate::open;
use crate::reopening::ReopeningSession;
use crate::session::Session;
use bytes::Bytes;
use semel::clock::{ManualClock, Time};
use semel::protocol::{Claim, Claimed, Held, InDoubt, Lease, Owner, State};
use semel::store::{Store, StoreExt};
use semel::{Error, Fingerprint, Key};
use std::sync::Arc;
use std::time::Duration;

fn claim(key: Key) -> Claim {
    Claim {
        lease: Duration::from_secs(1),
        retention: Duration::from_secs(1),
        ..Claim::new(key, Fingerprint::off())
    }
}

async fn grant(store: &EmbeddedStore, claim: &Claim) -> Lease {
    let answer = store.claim(claim).await;
    let Ok(Claimed::Granted(lease)) = answer else {
        panic!("not granted: {answer:?}");
    };
    lease
}

#[tokio::test]
async fn a_row_that_fails_its_checksum_is_neither_replayed_nor_run() {
    let home = tempfile::tempdir().unwrap();
    let directory = home.path().join("store");
    let store = EmbeddedStore::open(&directory, EmbeddedSettings::default()).unwrap();
    settle(&store, 1, Duration::from_secs(1)).await;
    let key = key(1);

    // Sound to the engine, but not what was written: as a fault in memory leaves it.
    let at = codec::record(&key);
    let engine = &store.session().await.unwrap().engine;
    let mut bytes = engine.get(&at).unwrap().unwrap().to_vec();
    bytes[1] = State::Waiting.number();
    engine.keyspace.insert(at, bytes).unwrap();

    let answers = [
        store.claim(&claim(key)).await.map(drop),
        store.look(&key).await.map(drop),
        store.forget(&key).await.map(drop),
        store.list(None, None, 1).await.map(drop),
    ];
    for answer in answers {
        let Err(Error::Corrupt(why)) = answer else {
            panic!("{answer:?}");
        };
        let directory = directory.to_string_lossy();
        for word in [&*directory, "keyspace semel", &key.to_string()] {
            assert!(why.contains(word), "{why}");
        }
    }
    grant(&store, &claim(Key::from_bytes([2; 32]))).await;
}

/// A store that is told the time, and a claim with another retention.
fn timed() -> (tempfile::TempDir, Arc<ManualClock>, EmbeddedStore) {
    let home = tempfile::tempdir().unwrap();
    let clock = Arc::new(ManualClock::at(Time(1_800_000_000_000_000)));
    let settings = EmbeddedSettings {
        clock: Arc::clone(&clock) as _,
        ..EmbeddedSettings::default()
    };
    let store = EmbeddedStore::open(home.path().join("store"), settings).unwrap();
    (home, clock, store)
}

fn key(n: u64) -> Key {
    let mut bytes = [7; 32];
    bytes[..8].copy_from_slice(&n.to_be_bytes());
    Key::from_bytes(bytes)
}

async fn settle(store: &EmbeddedStore, n: u64, retention: Duration) {
    let ask = Claim {
        retention,
        ..claim(key(n))
    };
    let lease = grant(store, &ask).await;
    let done = Bytes::from_static(b"done");
    let held = store.complete(&lease, &done, retention).await;
    assert_eq!(held, Ok(Held::Applied(State::Succeeded)));
}

/// Sweeps to the end; how many records went, and how many rows were read for it.
async fn sweep(store: &EmbeddedStore) -> (u64, usize) {
    let (mut removed, mut read, mut after) = (0, 0, None);
    loop {
        let (swept, rows) = store.sweep_window(after.as_ref()).await.unwrap();
        removed += swept.removed;
        read += rows;
        after = swept.next;
        if after.is_none() {
            return (removed, read);
        }
    }
}

async fn rows(store: &EmbeddedStore) -> usize {
    let session = store.session().await.unwrap();
    session.engine.keyspace.range::<RowKey, _>(..).count()
}

#[tokio::test]
async fn a_sweep_reads_what_is_due_and_nothing_else() {
    const EXPIRED: u64 = 300;
    const LIVE: u64 = 1_500;
    let (_home, clock, store) = timed();
    let (short, long) = (Duration::from_secs(10), Duration::from_secs(36_000));
    for n in 0..LIVE {
        settle(&store, n, long).await;
    }
    for n in LIVE..LIVE + EXPIRED {
        settle(&store, n, short).await;
    }
    assert_eq!(sweep(&store).await, (0, 0));
    clock.advance(Duration::from_secs(3_600));
    let (removed, read) = sweep(&store).await;
    assert_eq!(removed, EXPIRED);
    // A note and a record for each.
    assert!(read <= 2 * 300, "{read} rows read");
    assert_eq!(sweep(&store).await, (0, 0));
    clock.advance(Duration::from_secs(36_000));
    assert_eq!(sweep(&store).await.0, LIVE);
    assert_eq!(rows(&store).await, 1, "the head row is left");
}

#[tokio::test]
async fn a_label_costs_no_row_and_goes_with_its_record() {
    let (_home, clock, store) = timed();
    let labelled = Claim {
        label: "order 7".into(),
        ..claim(key(1))
    };
    let granted = store.claim(&labelled).await;
    assert!(matches!(granted, Ok(Claimed::Granted(_))), "{granted:?}");
    assert_eq!(rows(&store).await, 3, "head, record and note");
    clock.advance(Duration::from_secs(3_600));
    assert_eq!(sweep(&store).await.0, 1);
    assert_eq!(rows(&store).await, 1, "the head row is left");
}

#[tokio::test]
async fn at_a_steady_rate_the_number_of_rows_is_bounded() {
    const EACH: u64 = 10;
    let (_home, clock, store) = timed();
    let retention = Duration::from_secs(10);
    let mut most = 0;
    for round in 0..150 {
        for n in 0..EACH {
            settle(&store, round * EACH + n, retention).await;
        }
        clock.advance(Duration::from_secs(1));
        sweep(&store).await;
        most = most.max(rows(&store).await);
    }
    // A record and a note for each that is within lease, retention and grace: 71 s of arrivals.
    assert!(most <= 2 * 10 * 73, "{most} rows");
}

#[tokio::test]
async fn what_was_not_over_when_it_was_due_is_swept_later() {
    let (_home, clock, store) = timed();
    let minute = Duration::from_secs(60);
    let renewed = grant(&store, &claim(key(1))).await;
    let park = Claim {
        in_doubt: InDoubt::Park,
        ..claim(key(2))
    };
    grant(&store, &park).await;
    let held = store.renew(&renewed, minute, 60 * minute).await;
    assert_eq!(held, Ok(Held::Applied(State::Running)));
    clock.advance(Duration::from_millis(1_500));
    let other = Claim {
        owner: Owner::random(),
        ..park.clone()
    };
    assert_eq!(store.claim(&other).await, Ok(Claimed::Parked));

    clock.advance(5 * minute);
    assert_eq!(sweep(&store).await.0, 0);
    clock.advance(60 * minute);
    assert_eq!(sweep(&store).await.0, 1, "the renewed one");
    assert_eq!(store.claim(&other).await, Ok(Claimed::Parked));
    let acted = store.forget(&park.key).await;
    assert_eq!(acted, Ok(semel::protocol::Acted::Applied));
    clock.advance(2 * minute);
    assert_eq!(sweep(&store).await.0, 1, "the forgotten one");
}

#[tokio::test(start_paused = true)]
async fn a_disk_that_does_not_answer_is_unavailable_in_time() {
    let home = tempfile::tempdir().unwrap();
    let directory = home.path().join("store");
    let settings = EmbeddedSettings::default();
    let opened = open::open(&directory, settings.clone()).unwrap();
    let (session, _stuck) = Session::without_writer(opened.engine);
    let answer_timeout = settings.answer_timeout;
    let store = EmbeddedStore {
        reopening: Arc::new(ReopeningSession::of(session, directory, settings)),
        answer_timeout,
        sweeping: tokio::sync::Mutex::new(()),
    };
    let begun = tokio::time::Instant::now();
    for answer in [
        store.claim(&claim(key(1))).await.map(drop),
        store.ready().await,
    ] {
        let Err(Error::Unavailable(why)) = answer else {
            panic!("{answer:?}");
        };
        assert!(why.contains("did not answer within 10s"), "{why}");
    }
    assert_eq!(begun.elapsed(), 2 * answer_timeout);
}
