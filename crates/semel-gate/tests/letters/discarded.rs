//! A letter that an operator discarded does not come back by the next duplicate.

use super::{Aging, RETENTION, task};
use crate::support::prelude::*;
use semel::Store;

async fn discard(bed: &Bed) {
    let said = bed.discard(bed.letter().await).await;
    assert_eq!(said.status, 200, "{said:?}");
    assert!(bed.letters().await.is_empty());
}

#[tokio::test]
async fn whether_it_was_parked_or_failed() {
    for sender in BROKERS {
        for status in [500, 422] {
            let bed = Aging::route(|route| route.final_statuses = vec![422..=422]).await;
            bed.handler.says(status);
            bed.deliver(sender, "n").await.is(200);
            discard(&bed).await;
            for _ in 0..2 {
                assert_eq!(bed.deliver(sender, "n").await.status, 200);
            }
            assert_eq!(bed.letters().await, [], "{sender:?} {status}");
            assert_eq!(bed.runs(), 1);
        }
    }
}

#[tokio::test]
async fn nor_when_it_was_mismatched_or_invalid() {
    let bed = Aging::new().await;
    let no_queue = Ask::post("/work").header("X-CloudTasks-TaskName", "t0");
    bed.ask(no_queue.clone()).await.is(200);
    discard(&bed).await;
    bed.ask(no_queue).await.is(200);
    bed.ask(task()).await.is(200);
    let other = Sender::Task.sends("t1", "other payload");
    bed.ask(other.clone()).await.is(200);
    discard(&bed).await;
    bed.ask(other).await.is(200);
    assert_eq!(bed.letters().await, []);
    assert_eq!(bed.runs(), 1);
}

#[tokio::test]
async fn but_after_its_record_was_resolved_it_does_and_the_discard_says_so() {
    let bed = Aging::parked().await;
    let said = bed.discard(bed.letter().await).await;
    let says = said.word("says");
    assert!(says.contains("after an act on that record"), "{said:?}");
    let key = bed.key().await;
    assert_eq!(bed.resolve(key, "failed").await.status, 200);
    assert_eq!(bed.ask(task()).await.status, 200);
    assert_eq!(bed.letters().await[0].reason, Reason::Failed);
    assert_eq!(bed.runs(), 1);
}

#[tokio::test]
async fn but_the_next_incarnation_has_its_own_letter() {
    let bed = Aging::parked().await;
    let first = bed.letters().await[0].clone();
    discard(&bed).await;
    assert_eq!(bed.forget(bed.key().await).await.status, 200);
    bed.handler.says(500);
    bed.ask(task()).await.is(200);
    let letters = bed.letters().await;
    assert_eq!(letters.len(), 1);
    let next = (letters[0].id, letters[0].reason);
    assert_eq!(next, (first.id, Reason::Parked));
    assert!(letters[0].fence > first.fence);
}

#[tokio::test]
async fn its_tombstone_ends_with_the_routes_retention() {
    let bed = Aging::parked().await;
    assert_eq!(bed.letters().await[0].retention, RETENTION);
    discard(&bed).await;
    bed.pass(RETENTION);
    bed.store.sweep(None).await.unwrap();
    // Its record is still parked, and it is still acknowledged without success.
    bed.ask(task()).await.is(200);
    assert_eq!(bed.letters().await.len(), 1);
}
