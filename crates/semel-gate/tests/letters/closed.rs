//! A letter is closed once its work has succeeded, whoever said so.

use super::{Aging, GONE, LEASE, paused, resumes, task};
use crate::support::prelude::*;

#[tokio::test]
async fn by_whoever_lists_it() {
    let (one, first, other) = paused().await;
    let id = other.letter().await;
    assert_eq!(other.listed().await[0]["record"], "parked");
    resumes(&one, first).await;
    assert!(other.listed().await.is_empty());
    assert!(other.letters().await.is_empty());
    one.pass(GONE);
    assert_eq!(other.redrive(&id).await.status, 404);
    assert_eq!(other.run_again(&id).await.status, 404);
    assert_eq!(one.runs() + other.runs(), 1);
}

#[tokio::test]
async fn by_whoever_shows_it() {
    let (one, first, other) = paused().await;
    let id = other.letter().await;
    let parked = json!({"record": "parked"});
    other.show_letter(&id).await.is(200, &parked);
    resumes(&one, first).await;
    other.show_letter(&id).await.refused(404, "has succeeded");
    assert!(other.letters().await.is_empty());
}

#[tokio::test]
async fn by_whoever_redrives_it_and_nothing_runs() {
    let (one, first, other) = paused().await;
    let id = other.letter().await;
    resumes(&one, first).await;
    other.redrive(&id).await.is(200, &json!({"closed": true}));
    assert!(other.letters().await.is_empty());
    assert_eq!(one.runs() + other.runs(), 1);
}

#[tokio::test]
async fn by_reconciliation_when_nobody_asks() {
    let (one, first, other) = paused().await;
    resumes(&one, first).await;
    let _third = one.reconciling().await;
    one.store.marked(1).await;
    assert!(other.letters().await.is_empty());
}

#[tokio::test]
async fn by_the_gate_that_put_it_when_its_work_ended_meanwhile() {
    let one = Aging::new().await;
    let other = one.another(|_| {}).await;
    let first = one.hold(task()).await;
    one.pass(LEASE);
    one.store.hold_letters(true);
    let second = other.begin(task());
    one.store.puts(1).await;
    resumes(&one, first).await;
    one.store.hold_letters(false);
    second.await.unwrap().is(200);
    assert!(other.letters().await.is_empty());
}

#[tokio::test]
async fn by_an_operator_who_says_that_it_succeeded() {
    let bed = Aging::parked().await;
    let id = bed.letter().await;
    let said = bed.resolve(bed.key().await, "succeeded").await;
    said.led("parked", "succeeded");
    // At once: no list was read.
    assert!(bed.letters().await.is_empty());
    bed.redrive(&id)
        .await
        .refused(404, "no letter of this id is open");
    bed.ask(task()).await.is_replay(200);
    assert_eq!(bed.runs(), 1);
    // Its verdict outlives its record.
    bed.pass(GONE);
    assert!(bed.listed().await.is_empty());
}

#[tokio::test]
async fn every_other_end_leaves_it_open() {
    for (verdict, record) in [("failed", "failed"), ("retry", "waiting")] {
        let bed = Aging::parked().await;
        let said = bed.resolve(bed.key().await, verdict).await;
        said.led("parked", record);
        assert_eq!(bed.listed().await[0]["record"], record, "{verdict}");
        assert_eq!(bed.letters().await.len(), 1, "{verdict}");
    }
}
