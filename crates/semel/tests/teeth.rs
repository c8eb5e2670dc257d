//! The suite has teeth: a sound store passes, and a store with any one fault is convicted.

#![cfg(feature = "conformance")]
#![allow(
    clippy::print_stdout,
    clippy::wildcard_enum_match_arm,
    reason = "each conviction is printed; a fault is the exception to every other arm"
)]

#[path = "teeth/fault.rs"]
mod fault;
#[path = "teeth/store.rs"]
mod store;

use async_trait::async_trait;
use fault::Fault;
use semel::Store;
use semel::clock::{ManualClock, Time};
use semel::conformance::{Subject, compare, suite};
use semel::store::Letters;
use std::sync::Arc;
use std::time::Duration;
use store::BrokenStore;

struct Accused {
    clock: Arc<ManualClock>,
    store: Arc<BrokenStore>,
}

impl Accused {
    fn new(fault: Fault) -> Self {
        let clock = Arc::new(ManualClock::at(Time(1_800_000_000_000_000)));
        let store = Arc::new(BrokenStore::new(fault, clock.clone()));
        Self { clock, store }
    }
}

#[async_trait]
impl Subject for Accused {
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
async fn a_store_without_a_fault_passes_both() {
    suite(&Accused::new(Fault::Nothing)).await.unwrap();
    compare(&Accused::new(Fault::Nothing), 200, 60, 7)
        .await
        .unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn the_suite_convicts_every_fault() {
    let mut acquitted = Vec::new();
    for fault in fault::ALL.iter().copied() {
        match suite(&Accused::new(fault)).await {
            Ok(_) => acquitted.push(fault),
            Err(violations) => {
                let names: Vec<_> = violations
                    .broken
                    .iter()
                    .map(|v| v.behaviour.as_str())
                    .collect();
                println!(
                    "{fault:?}: convicted by {}: {}",
                    names.len(),
                    names.join(", ")
                );
            }
        }
    }
    assert!(
        acquitted.is_empty(),
        "the suite let these pass: {acquitted:?}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn the_comparison_convicts_every_fault_that_shows_in_sequence() {
    let mut acquitted = Vec::new();
    for fault in fault::ALL.iter().copied() {
        if !fault.shows_in_sequence() {
            println!("{fault:?}: not asked, it does not show in sequence");
            continue;
        }
        match compare(&Accused::new(fault), 300, 60, 7).await {
            Ok(()) => acquitted.push(fault),
            Err(difference) => println!("{fault:?}: {difference}"),
        }
    }
    assert!(
        acquitted.is_empty(),
        "the comparison let these pass: {acquitted:?}"
    );
}
