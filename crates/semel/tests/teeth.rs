//! The suite has teeth: a sound store passes, and a store with any one fault is convicted.

#![cfg(feature = "conformance")]
#![allow(
    clippy::print_stdout,
    clippy::wildcard_enum_match_arm,
    reason = "each conviction is printed; a fault is the exception to every other arm"
)]

#[path = "support/subject.rs"]
mod subject;
#[path = "teeth/fault.rs"]
mod fault;
#[path = "teeth/doubt.rs"]
mod doubt;
#[path = "teeth/age.rs"]
mod age;
#[path = "teeth/history.rs"]
mod history;
#[path = "teeth/store.rs"]
mod store;

use fault::Fault;
use semel::conformance::{compare, suite};
use store::BrokenStore;
use subject::Timed;

fn accused(fault: Fault) -> Timed<BrokenStore> {
    Timed::new(|clock| BrokenStore::new(fault, clock))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_store_without_a_fault_passes_both() {
    suite(&accused(Fault::Nothing)).await.unwrap();
    compare(&accused(Fault::Nothing), 200, 60, 7).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn the_suite_convicts_every_fault() {
    let mut acquitted = Vec::new();
    for fault in fault::ALL.iter().copied() {
        match suite(&accused(fault)).await {
            Ok(_) => acquitted.push(fault),
            Err(violations) => {
                let broken = violations.broken.iter();
                let names: Vec<_> = broken.map(|v| v.behaviour.as_str()).collect();
                let (count, names) = (names.len(), names.join(", "));
                println!("{fault:?}: convicted by {count}: {names}");
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
        match compare(&accused(fault), 300, 60, 7).await {
            Ok(()) => acquitted.push(fault),
            Err(difference) => println!("{fault:?}: {difference}"),
        }
    }
    assert!(
        acquitted.is_empty(),
        "the comparison let these pass: {acquitted:?}"
    );
}
