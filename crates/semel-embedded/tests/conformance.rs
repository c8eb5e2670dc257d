//! The suite that every store passes.
#![allow(clippy::unwrap_used, reason = "tests")]

mod common;

use common::{NOON, place, settings};
use semel::Store;
use semel::clock::ManualClock;
use semel::conformance::{Subject, compare, suite};
use semel::store::Letters;
use semel_embedded::EmbeddedStore;
use std::sync::Arc;
use std::time::Duration;
use tempfile::TempDir;

/// How many random sequences are compared with `decide()`, and how long each is.
const CASES: u32 = 500;
const OPERATIONS: usize = 50;
const SEED: u64 = 20_261_114;

struct Embedded {
    clock: Arc<ManualClock>,
    store: Arc<EmbeddedStore>,
    _home: TempDir,
}

// === impl Embedded ===

impl Embedded {
    fn new() -> Self {
        let (home, directory) = place();
        let clock = Arc::new(ManualClock::at(NOON));
        let store = EmbeddedStore::open(directory, settings(&clock)).unwrap();
        Self {
            clock,
            store: Arc::new(store),
            _home: home,
        }
    }
}

#[async_trait::async_trait]
impl Subject for Embedded {
    fn store(&self) -> Arc<dyn Store> {
        Arc::clone(&self.store) as _
    }

    fn letters(&self) -> Option<Arc<dyn Letters>> {
        Some(Arc::clone(&self.store) as _)
    }

    async fn advance(&self, by: Duration) {
        self.clock.advance(by);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_behaviour_holds() {
    suite(&Embedded::new()).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn every_answer_is_the_one_that_decide_gives() {
    compare(&Embedded::new(), CASES, OPERATIONS, SEED)
        .await
        .unwrap();
}
