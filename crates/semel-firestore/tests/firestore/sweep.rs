//! What a sweep removes, and what it leaves, as the database has it.

use crate::raw::Raw;
use crate::support::{Aged, settings};
use bytes::Bytes;
use semel::protocol::{Claim, Claimed, Held, Lease, State, StepBegun};
use semel::store::StoreExt;
use semel::{Fingerprint, Key, Store};
use semel_firestore::FirestoreStore;
use std::time::Duration;

const HOUR: Duration = Duration::from_secs(3_600);

async fn grant(store: &FirestoreStore, n: u8) -> Lease {
    let claim = Claim {
        lease: HOUR,
        retention: HOUR,
        ..Claim::new(Key::from_bytes([n; 32]), Fingerprint::of(&[n]))
    };
    let Claimed::Granted(lease) = store.claim(&claim).await.unwrap() else {
        panic!("not granted");
    };
    lease
}

async fn sweep(store: &FirestoreStore) -> u64 {
    let (mut after, mut removed) = (None, 0);
    loop {
        let swept = store.sweep(after.as_ref()).await.unwrap();
        removed += swept.removed;
        after = swept.next;
        if after.is_none() {
            return removed;
        }
    }
}

#[tokio::test]
async fn what_nothing_names_any_more_is_removed_and_nothing_else() {
    let Some(settings) = settings() else { return };
    let mut raw = Raw::open(&settings).await;
    let Aged(store) = Aged::connect(settings).await;
    let lease = grant(&store, 1).await;
    assert_eq!(store.step_begin(&lease, "charge").await, Ok(StepBegun::Run));
    let large = Bytes::from(vec![7; 1_000_000]);
    let done = store.complete(&lease, &large, 3 * HOUR).await;
    assert_eq!(done, Ok(Held::Applied(State::Succeeded)));
    raw.leave_part(&lease.key).await;
    assert_eq!(raw.count("semel_parts").await, 3);

    // A part may be about to be named; after an hour it is left behind.
    assert_eq!(sweep(&store).await, 0);
    assert_eq!(raw.count("semel_parts").await, 3);
    store.let_pass(2 * HOUR);
    assert_eq!(sweep(&store).await, 0);
    assert_eq!(raw.count("semel_parts").await, 2);
    assert_eq!(raw.count("semel_steps").await, 1);
    let kept = store.look(&lease.key).await.unwrap().unwrap().result;
    assert!(kept == Some(large), "the result is whole");

    // A day after its end, the record goes, and with it what it named.
    store.let_pass(30 * HOUR);
    assert_eq!(sweep(&store).await, 1);
    for collection in ["semel_records", "semel_parts", "semel_steps"] {
        assert_eq!(raw.count(collection).await, 0, "{collection}");
    }
}
