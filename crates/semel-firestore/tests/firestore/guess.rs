//! What a process believes saves a round trip, and is never answered.

use crate::support::settings;
use bytes::Bytes;
use semel::protocol::{Acted, Claim, Claimed, Fail, FailKind, Held, InDoubt, Lease, State};
use semel::store::StoreExt;
use semel::{Fingerprint, Key};
use semel_firestore::{FirestoreSettings, FirestoreStore};
use std::time::Duration;

const LEASE: Duration = Duration::from_secs(600);
const KEEP: Duration = Duration::from_secs(3_600);

fn claim(n: u8) -> Claim {
    Claim {
        lease: LEASE,
        retention: KEEP,
        ..Claim::new(Key::from_bytes([n; 32]), Fingerprint::of(&[n]))
    }
}

async fn two_stores(settings: FirestoreSettings) -> [FirestoreStore; 2] {
    let one = FirestoreStore::connect(settings.clone()).await.unwrap();
    [one, FirestoreStore::connect(settings).await.unwrap()]
}

async fn grant(store: &FirestoreStore, claim: &Claim) -> Lease {
    let Claimed::Granted(lease) = store.claim(claim).await.unwrap() else {
        panic!("not granted");
    };
    lease
}

async fn complete(store: &FirestoreStore, lease: &Lease) -> Held {
    let result = Bytes::from_static(b"done");
    store.complete(lease, &result, KEEP).await.unwrap()
}

#[tokio::test]
async fn new_claim_and_the_words_of_its_run_take_one_call_each() {
    let Some(settings) = settings() else { return };
    let [one, other] = two_stores(settings).await;
    let before = one.calls();
    let lease = grant(&one, &claim(1)).await;
    assert_eq!(one.calls() - before, 1, "claim");
    let renewed = one.renew(&lease, LEASE, KEEP).await.unwrap();
    assert_eq!(
        (renewed, one.calls() - before),
        (Held::Applied(State::Running), 2)
    );
    assert_eq!(
        complete(&one, &lease).await,
        Held::Applied(State::Succeeded)
    );
    assert_eq!(one.calls() - before, 3, "complete");

    // Whoever does not know of the work tries to write first, once.
    let before = other.calls();
    assert!(matches!(
        other.claim(&claim(1)).await.unwrap(),
        Claimed::Replayed(_)
    ));
    assert_eq!(other.calls() - before, 2, "the first duplicate");
    assert!(matches!(
        other.claim(&claim(1)).await.unwrap(),
        Claimed::Replayed(_)
    ));
    assert_eq!(other.calls() - before, 3, "the next one");
}

#[tokio::test]
async fn failing_and_releasing_take_one_call_each() {
    let Some(settings) = settings() else { return };
    let [one, _] = two_stores(settings).await;
    let lease = grant(&one, &claim(1)).await;
    let before = one.calls();
    let released = one.release(&lease).await.unwrap();
    assert_eq!(released, Held::Applied(State::Waiting));
    assert_eq!(one.calls() - before, 1, "release");
    let lease = grant(&one, &claim(2)).await;
    let before = one.calls();
    let how = Fail {
        kind: FailKind::Final,
        in_doubt: InDoubt::Retry,
        max_attempts: None,
        max_in_doubt: None,
        park_after: None,
        retention: KEEP,
        result: "failed".into(),
    };
    let failed = one.fail(&lease, &how).await.unwrap();
    assert_eq!(failed, Held::Applied(State::Failed));
    assert_eq!(one.calls() - before, 1, "fail");
}

#[tokio::test]
async fn without_guessing_every_write_reads_first() {
    let Some(mut settings) = settings() else {
        return;
    };
    settings.guess = false;
    let [one, _] = two_stores(settings).await;
    let before = one.calls();
    let lease = grant(&one, &claim(1)).await;
    assert_eq!(
        complete(&one, &lease).await,
        Held::Applied(State::Succeeded)
    );
    assert_eq!(one.calls() - before, 4);
}

#[tokio::test]
async fn belief_that_is_wrong_is_not_answered() {
    let Some(settings) = settings() else { return };
    let [one, other] = two_stores(settings).await;
    let lease = grant(&one, &claim(1)).await;
    let released = other.release_by_operator(&lease.key, "").await.unwrap();
    assert_eq!(released, Acted::Applied);
    assert_eq!(one.renew(&lease, LEASE, KEEP).await.unwrap(), Held::Stale);
    let next = grant(&other, &claim(1)).await;
    assert!(next.fence > lease.fence);
    assert_eq!(complete(&one, &lease).await, Held::Stale);
    assert_eq!(
        complete(&other, &next).await,
        Held::Applied(State::Succeeded)
    );
    assert_eq!(
        complete(&other, &next).await,
        Held::Already(State::Succeeded)
    );
}
