//! Callers of the store under attack: they claim a few keys, run for a while or too long, and say what became of it, or
//! nothing. Of half of the runs that succeed the handler says so itself.

use super::handler::Handler;
use bytes::Bytes;
use rand::Rng;
use rand::rngs::StdRng;
use semel::protocol::{Acted, Claim, Claimed, Fail, FailKind, Fence, Held, InDoubt, Lease, State};
use semel::store::{Letters, StoreExt};
use semel::{Fingerprint, Key, Outcome};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{Instant, sleep};

/// How many keys everybody wants.
pub(super) const KEYS: u8 = 8;

const LEASE: Duration = Duration::from_millis(100);
const RETENTION: Duration = Duration::from_millis(150);

/// How long a run takes, in ms: beyond its lease now and then.
const RUN_MS: std::ops::Range<u64> = 0..140;

/// How many turns in a hundred are an operator's.
const ACTS_PERCENT: u32 = 12;

/// The pause after a claim that was not granted, in ms.
const PAUSE_MS: std::ops::Range<u64> = 1..15;

/// What somebody was told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Told {
    pub(super) key: Key,
    pub(super) fence: Fence,
    pub(super) what: What,
}

/// What there is to be told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum What {
    /// You may run; this claim's owner.
    Granted([u8; 16]),
    /// Your success is recorded; this one.
    Completed(Bytes),
    /// Your act is done; it named itself so.
    Acted(Bytes),
    /// Your act is not done, and will not be.
    NotActed(Bytes),
}

pub(super) fn key(n: u8) -> Key {
    Key::from_bytes([n; 32])
}

/// Calls until the time is over, and tells what it was told.
pub(super) async fn call(
    store: Arc<dyn Letters>,
    handler: Handler,
    mut rng: StdRng,
    until: Instant,
) -> Vec<Told> {
    let mut told = Vec::new();
    while Instant::now() < until {
        let key = key(rng.random_range(0..KEYS));
        if rng.random_ratio(ACTS_PERCENT, 100) {
            told.extend(act(&*store, key, &mut rng).await);
            continue;
        }
        let claim = Claim {
            lease: LEASE,
            retention: RETENTION,
            ..Claim::new(key, Fingerprint::of(b"payload"))
        };
        // An answer that does not come is no answer: nothing is told of it.
        match store.claim(&claim).await {
            Ok(Claimed::Granted(lease)) => {
                told.push(Told {
                    key,
                    fence: lease.fence,
                    what: What::Granted(claim.owner.0),
                });
                told.extend(run(&*store, &handler, &lease, &mut rng).await);
            }
            _ => sleep(Duration::from_millis(rng.random_range(PAUSE_MS))).await,
        }
    }
    told
}

/// Takes the right to run from whoever has it. Each act has a name of its own, which is found in the history.
async fn act(store: &dyn Letters, key: Key, rng: &mut StdRng) -> Option<Told> {
    let name = Bytes::from(format!("act {:016x}", rng.random::<u64>()));
    let what = match store.release_by_operator(&key, name.clone()).await {
        Ok(Acted::Applied) => What::Acted(name),
        Ok(Acted::Refused | Acted::Gone(_)) => What::NotActed(name),
        Err(_) => return None,
    };
    let fence = Fence(0);
    Some(Told { key, fence, what })
}

/// Runs, and says what became of it.
async fn run(
    store: &dyn Letters,
    handler: &Handler,
    lease: &Lease,
    rng: &mut StdRng,
) -> Option<Told> {
    let completed = |result| Told {
        key: lease.key,
        fence: lease.fence,
        what: What::Completed(result),
    };
    if rng.random_bool(0.3) {
        drop(store.renew(lease, LEASE, RETENTION).await);
    }
    sleep(Duration::from_millis(rng.random_range(RUN_MS))).await;
    match rng.random_range(0..10) {
        0 => drop(store.release(lease).await),
        1 => {
            let how = Fail {
                kind: FailKind::Retryable {
                    delay: Duration::ZERO,
                },
                in_doubt: InDoubt::Retry,
                max_attempts: None,
                max_in_doubt: None,
                park_after: None,
                retention: RETENTION,
                result: Outcome::ok("failed").encode(),
            };
            drop(store.fail(lease, &how).await);
        }
        // It vanishes.
        2 => {}
        3..=6 => {
            let ids = rng.random_iter();
            return handler.complete(lease, ids).await.map(completed);
        }
        _ => {
            let result = Outcome::ok(rng.random::<u64>().to_string()).encode();
            let done = store.complete(lease, &result, RETENTION).await;
            if let Ok(Held::Applied(State::Succeeded) | Held::Already(State::Succeeded)) = done {
                return Some(completed(result));
            }
        }
    }
    None
}
