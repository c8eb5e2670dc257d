//! What the tests of this crate share.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    dead_code,
    unreachable_pub,
    reason = "a helper of tests, not all of which use all of it"
)]

use bytes::Bytes;
use semel::clock::{ManualClock, Time};
use semel::letter::{Letter, LetterId, Reason};
use semel::protocol::{Claim, Claimed, Fence, Held, Lease, State};
use semel::store::StoreExt;
use semel::{Error, Fingerprint, Key, Store};
use semel_embedded::{EmbeddedSettings, EmbeddedStore};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tempfile::TempDir;

/// Longer than any test takes: only a clock that is set can end it.
pub const LEASE: Duration = Duration::from_secs(3_600);
pub const RETENTION: Duration = Duration::from_secs(24 * 3_600);
pub const NOON: Time = Time(1_800_000_000_000_000);

/// The `n`th key.
pub fn key(n: u64) -> Key {
    let mut bytes = [0; 32];
    bytes[..8].copy_from_slice(&n.wrapping_mul(0x9E37_79B9_7F4A_7C15).to_be_bytes());
    bytes[24..].copy_from_slice(&n.to_be_bytes());
    Key::from_bytes(bytes)
}

/// What the run of the `n`th key leaves behind.
pub fn result(n: u64) -> Bytes {
    Bytes::from(format!("the outcome of {n}, and of nothing else"))
}

pub fn claim(n: u64) -> Claim {
    Claim {
        lease: LEASE,
        retention: RETENTION,
        ..Claim::new(key(n), Fingerprint::of(&n.to_be_bytes()))
    }
}

pub fn settings(clock: &Arc<ManualClock>) -> EmbeddedSettings {
    EmbeddedSettings {
        clock: Arc::clone(clock) as _,
        ..EmbeddedSettings::default()
    }
}

/// A place for a store that does not exist yet.
pub fn place() -> (TempDir, PathBuf) {
    let home = tempfile::tempdir().unwrap();
    let directory = home.path().join("semel-data");
    (home, directory)
}

pub fn open(directory: &Path) -> Result<EmbeddedStore, Error> {
    EmbeddedStore::open(directory, EmbeddedSettings::default())
}

pub async fn grant(store: &dyn Store, n: u64) -> Lease {
    granted(n, store.claim(&claim(n)).await)
}

pub fn granted(n: u64, answer: Result<Claimed, Error>) -> Lease {
    let Ok(Claimed::Granted(lease)) = answer else {
        panic!("{n} was not granted: {answer:?}");
    };
    lease
}

pub async fn settle(store: &dyn Store, n: u64) {
    let lease = grant(store, n).await;
    let held = store.complete(&lease, &result(n), RETENTION).await;
    assert_eq!(held, Ok(Held::Applied(State::Succeeded)));
}

/// The `n`th letter.
pub fn letter(n: u64) -> Letter {
    let fingerprint = Fingerprint::of(&n.to_be_bytes());
    Letter {
        id: LetterId::of_key(Reason::Parked, &key(n), &fingerprint),
        key: Some(key(n)),
        route: "orders".into(),
        reason: Reason::Parked,
        fence: Fence(1),
        retention: Duration::from_secs(60),
        redriven: false,
        alarmed: false,
        delivery: result(n),
    }
}

/// The `n`th key was settled, and is replayed as it was.
pub async fn is_replayed(store: &dyn Store, n: u64) {
    let answer = store.claim(&claim(n)).await;
    let Ok(Claimed::Replayed(settled)) = answer else {
        panic!("{n} was settled, but a claim got {answer:?}");
    };
    assert_eq!(settled.result, result(n));
}
