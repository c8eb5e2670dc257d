//! A first run: claim, an effect that does nothing, completion, on a key nobody has seen.

use std::sync::{Arc, LazyLock};
use std::time::Duration;

use anyhow::{Context, bail};
use async_trait::async_trait;
use bytes::Bytes;
use rand::RngCore;
use semel::protocol::{Claim, Claimed, Held};
use semel::store::StoreExt;
use semel::work::Work;
use semel::{Ended, Fingerprint, Key, Outcome, Semel, Store};

use crate::load;
use crate::rounds::{Contender, Pace};

/// First runs through the library.
pub(crate) struct FirstRuns {
    pub(crate) semel: Semel,
    pub(crate) callers: usize,
    /// What each of them says of its work; empty is nothing.
    pub(crate) label: Bytes,
}

/// How many bytes an effect answers with.
pub(crate) const BODY_BYTES: usize = 256;

/// The default terms of [`Work`].
const LEASE: Duration = Duration::from_secs(30);
const RETENTION: Duration = Duration::from_secs(24 * 60 * 60);

/// How many callers fill a store before it is measured. Larger groups fill it sooner.
const PRELOAD_CALLERS: usize = 512;

/// Bodies are cut from here. Random, so that no store gains by compressing them.
static RANDOM_BYTES: LazyLock<Bytes> = LazyLock::new(|| {
    let mut bytes = vec![0; 1024 * 1024];
    rand::rng().fill_bytes(&mut bytes);
    bytes.into()
});

/// A key like the digests that keys are.
pub(crate) fn fresh_key() -> Key {
    Key::from_bytes(rand::random())
}

/// A body that is not like the one before it.
pub(crate) fn body() -> Bytes {
    let start = rand::random_range(0..RANDOM_BYTES.len() - BODY_BYTES);
    RANDOM_BYTES.slice(start..start + BODY_BYTES)
}

/// The work of every key here.
pub(crate) fn work(key: Key) -> Work {
    Work::new(key, fingerprint())
        .lease(LEASE)
        .retention(RETENTION)
}

/// Runs on a fresh key.
async fn first_run(semel: &Semel, label: Bytes) -> anyhow::Result<u64> {
    let effect = |_| async { Ok(Outcome::ok(body())) };
    let ended = semel.run(work(fresh_key()).label(label), effect).await?;
    if !matches!(ended, Ended::Ran(_)) {
        bail!("a first run came to {ended:?}");
    }
    Ok(1)
}

/// Settles `count` fresh keys by the store's own claims and completions, and names them.
pub(crate) async fn preload(store: &Arc<dyn Store>, count: u64) -> anyhow::Result<Vec<Key>> {
    preload_labelled(store, count, Bytes::new()).await
}

/// The same, each of which says this of its work.
pub(crate) async fn preload_labelled(
    store: &Arc<dyn Store>,
    count: u64,
    label: Bytes,
) -> anyhow::Result<Vec<Key>> {
    let store = Arc::clone(store);
    let settle = move |_number| {
        let (store, label) = (Arc::clone(&store), label.clone());
        async move { settle(store.as_ref(), label).await }
    };
    let settled = load::times(count, PRELOAD_CALLERS, settle).await;
    settled.context("cannot fill the store")
}

async fn settle(store: &dyn Store, label: Bytes) -> anyhow::Result<Key> {
    let claim = Claim {
        label,
        ..claim(fresh_key())
    };
    let Claimed::Granted(lease) = store.claim(&claim).await? else {
        bail!("a fresh key was not granted");
    };
    let result = Outcome::ok(body()).encode();
    let held = store.complete(&lease, &result, claim.retention).await?;
    if !matches!(held, Held::Applied(_)) {
        bail!("the completion of a fresh key came to {held:?}");
    }
    Ok(claim.key)
}

/// What [`work`] claims.
fn claim(key: Key) -> Claim {
    Claim {
        lease: LEASE,
        retention: RETENTION,
        ..Claim::new(key, fingerprint())
    }
}

/// The same for all: what it costs to compute does not concern the store.
fn fingerprint() -> Fingerprint {
    Fingerprint::from_bytes([7; 32])
}

// === impl FirstRuns ===

#[async_trait]
impl Contender for FirstRuns {
    async fn turn(&mut self, pace: Pace) -> anyhow::Result<f64> {
        let (semel, label) = (self.semel.clone(), self.label.clone());
        let run = move |_caller| {
            let (semel, label) = (semel.clone(), label.clone());
            async move { first_run(&semel, label).await }
        };
        load::rate(self.callers, pace, run).await
    }
}
