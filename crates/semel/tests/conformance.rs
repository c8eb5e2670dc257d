//! The memory store passes the suite and agrees with the oracle.

#![cfg(feature = "conformance")]

use async_trait::async_trait;
use semel::Store;
use semel::clock::{ManualClock, Time};
use semel::conformance::{Subject, compare, suite};
use semel::memory::MemoryStore;
use semel::store::Letters;
use std::sync::Arc;
use std::time::Duration;

struct Memory {
    clock: Arc<ManualClock>,
    store: Arc<MemoryStore>,
}

impl Memory {
    fn new() -> Self {
        let clock = Arc::new(ManualClock::at(Time(1_800_000_000_000_000)));
        let store = Arc::new(MemoryStore::with_clock(clock.clone()));
        Self { clock, store }
    }
}

#[async_trait]
impl Subject for Memory {
    fn store(&self) -> Arc<dyn Store> {
        self.store.clone()
    }

    fn letters(&self) -> Option<Arc<dyn Letters>> {
        Some(self.store.clone())
    }

    async fn advance(&self, by: Duration) {
        self.clock.advance(by);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn memory_passes_the_suite() {
    let report = suite(&Memory::new()).await.unwrap();
    assert!(report.held.len() > 100, "{report}");
}

#[tokio::test(flavor = "multi_thread")]
async fn memory_agrees_with_the_oracle() {
    compare(&Memory::new(), 600, 60, 1).await.unwrap();
}
