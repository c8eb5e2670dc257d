//! Slots, told as behaviours. Time is tokio's, paused: nothing here waits for real.
#![allow(clippy::unwrap_used, reason = "a test may stop at the first surprise")]

mod support;

use semel::memory::MemoryStore;
use semel::slots::Slots;
use semel::store::StoreExt;
use semel::work::{Duplicates, Work};
use semel::{Ended, Error, Outcome, Semel, Settings};
use std::sync::Arc;
use std::time::Duration;
use support::{Flaky, SECOND, assert_ran, assert_replayed, duplicate, key, payload};
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep};

fn work(number: u8, slots: &Slots) -> Work {
    Work::new(key(number), payload())
        .slots(slots)
        .duplicates(Duplicates::Wait(SECOND * 5))
}

#[track_caller]
fn assert_full(ended: &Ended) {
    assert!(matches!(ended, Ended::Full { .. }), "{ended:?}");
}

/// Begins a run that takes that long.
async fn begin(semel: &Semel, work: Work, takes: Duration) -> JoinHandle<Result<Ended, Error>> {
    let semel = semel.clone();
    let run = tokio::spawn(async move {
        let effect = move |_| async move {
            sleep(takes).await;
            Ok(Outcome::ok("done"))
        };
        semel.run(work, effect).await
    });
    sleep(Duration::from_millis(1)).await;
    run
}

#[tokio::test(start_paused = true)]
async fn without_a_slot_or_a_place_in_the_queue_nothing_is_claimed() {
    let (semel, slots) = (Semel::new(MemoryStore::new()), Slots::new(1, 0));
    let first = begin(&semel, work(1, &slots), SECOND).await;
    assert_eq!(slots.runs(), 1);
    assert_full(&duplicate(&semel, work(2, &slots)).await);
    assert_eq!(semel.store().look(&key(2)).await.unwrap(), None);
    assert_ran(&first.await.unwrap().unwrap());
    assert_eq!(slots.runs(), 0);
}

#[tokio::test(start_paused = true)]
async fn the_queue_waits_for_a_slot_as_long_as_patience_lasts() {
    let (semel, slots) = (Semel::new(MemoryStore::new()), Slots::new(1, 1));
    let first = begin(&semel, work(1, &slots), SECOND * 6).await;
    assert_full(&duplicate(&semel, work(2, &slots)).await);
    let second = begin(&semel, work(2, &slots), SECOND).await;
    assert_eq!(slots.queued(), 1);
    assert_full(&duplicate(&semel, work(3, &slots)).await);
    assert_ran(&first.await.unwrap().unwrap());
    assert_ran(&second.await.unwrap().unwrap());
}

#[tokio::test(start_paused = true)]
async fn a_settled_key_is_answered_although_there_is_no_slot() {
    let store = Arc::new(MemoryStore::new());
    let semel = || Semel::with_settings(Arc::clone(&store) as _, Settings::default());
    let (here, there, slots) = (semel(), semel(), Slots::new(1, 0));
    assert!(begin(&here, work(1, &slots), SECOND).await.await.is_ok());
    let busy = begin(&here, work(2, &slots), SECOND).await;
    assert_replayed(&duplicate(&there, work(1, &slots)).await);
    assert!(busy.await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn duplicates_that_wait_hold_no_slot() {
    let store = Arc::new(MemoryStore::new());
    let semel = || Semel::with_settings(Arc::clone(&store) as _, Settings::default());
    let (here, there, slots) = (semel(), semel(), Slots::new(2, 0));
    let first = begin(&here, work(1, &slots), SECOND * 3).await;
    let attached = begin(&here, work(1, &slots), SECOND).await;
    let polling = begin(&there, work(1, &slots), SECOND).await;
    assert_eq!(slots.runs(), 1);
    for duplicate in [attached, polling] {
        let ended = duplicate.await.unwrap().unwrap();
        assert_replayed(&ended);
    }
    assert!(first.await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn closing_sends_the_queue_home() {
    let (semel, slots) = (Semel::new(MemoryStore::new()), Slots::new(1, 1));
    let first = begin(&semel, work(1, &slots), SECOND).await;
    let queued = begin(&semel, work(2, &slots), SECOND).await;
    slots.close();
    assert_full(&queued.await.unwrap().unwrap());
    assert_ran(&first.await.unwrap().unwrap());
}

#[tokio::test(start_paused = true)]
async fn a_delivery_that_has_its_turn_soon_asks_the_store_nothing() {
    let store = Flaky::new();
    let semel = Semel::new(store.clone());
    let slots = Slots::new(1, 100);
    let first = begin(&semel, work(1, &slots), SECOND / 50).await;
    let second = work(2, &slots);
    let wait = second.slot_wait();
    let second = begin(&semel, second, SECOND / 50).await;
    assert_eq!(slots.queued(), 1);
    assert_ran(&first.await.unwrap().unwrap());
    assert_ran(&second.await.unwrap().unwrap());
    assert_eq!(store.looks(), 0);
    let waited = wait.waited().unwrap();
    assert!(waited > SECOND / 100 && waited < SECOND / 20, "{waited:?}");
}

#[tokio::test(start_paused = true)]
async fn a_delivery_that_waits_long_looks_at_growing_pauses() {
    let store = Flaky::new();
    let semel = Semel::new(store.clone());
    let slots = Slots::new(1, 100);
    let first = begin(&semel, work(1, &slots), SECOND * 4).await;
    let second = begin(&semel, work(2, &slots), SECOND).await;
    sleep(SECOND / 25).await;
    assert_eq!(store.looks(), 0);
    sleep(SECOND / 25).await;
    assert_eq!(store.looks(), 1);
    assert_ran(&first.await.unwrap().unwrap());
    let looks = store.looks();
    assert!((4..=8).contains(&looks), "{looks}");
    assert_ran(&second.await.unwrap().unwrap());
}

#[tokio::test(start_paused = true)]
async fn work_that_is_settled_elsewhere_meanwhile_needs_no_slot() {
    let store = Flaky::new();
    let (here, there) = (Semel::new(store.clone()), Semel::new(store.clone()));
    let slots = Slots::new(1, 100);
    let held = begin(&here, work(1, &slots), SECOND * 60).await;
    let waits = begin(&here, work(2, &slots), SECOND).await;
    let plain = work(2, &Slots::new(1, 0));
    let elsewhere = begin(&there, plain, SECOND / 10).await;
    assert_ran(&elsewhere.await.unwrap().unwrap());
    let begun = Instant::now();
    let ended = waits.await.unwrap().unwrap();
    assert_replayed(&ended);
    assert!(begun.elapsed() < SECOND, "{:?}", begun.elapsed());
    assert_eq!(slots.queued(), 0);
    held.abort();
}

#[tokio::test(start_paused = true)]
async fn looking_does_not_cost_a_delivery_its_turn() {
    let store = Flaky::new();
    let semel = Semel::new(store.clone());
    let slots = Slots::new(1, 100);
    let first = begin(&semel, work(1, &slots), SECOND).await;
    let second = begin(&semel, work(2, &slots), SECOND).await;
    sleep(SECOND / 2).await;
    let third = begin(&semel, work(3, &slots), SECOND).await;
    assert_ran(&first.await.unwrap().unwrap());
    assert_ran(&second.await.unwrap().unwrap());
    assert!(!third.is_finished(), "the third came before the second");
    assert_ran(&third.await.unwrap().unwrap());
}
