//! A store for the judges, on a clock that is moved by hand.
#![allow(unreachable_pub, reason = "a part of test programs")]

use async_trait::async_trait;
use semel::Store;
use semel::clock::{ManualClock, Time};
use semel::conformance::Subject;
use semel::store::Letters;
use std::sync::Arc;
use std::time::Duration;

pub struct Timed<S> {
    clock: Arc<ManualClock>,
    pub store: Arc<S>,
}

impl<S> Timed<S> {
    pub fn new(store: impl FnOnce(Arc<ManualClock>) -> S) -> Self {
        let clock = Arc::new(ManualClock::at(Time(1_800_000_000_000_000)));
        let store = Arc::new(store(Arc::clone(&clock)));
        Self { clock, store }
    }
}

#[async_trait]
impl<S: Store + Letters + 'static> Subject for Timed<S> {
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
