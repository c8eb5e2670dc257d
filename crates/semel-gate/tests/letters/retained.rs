//! The record of an open letter does not expire: a redrive must know what has run.

use super::{Aging, GONE, LEASE};
use crate::support::prelude::*;

const DAY: Duration = Duration::from_secs(24 * 3600);

/// A gate with the letter of a delivery whose run was cut, and its id.
async fn cut() -> (Aging, String) {
    let bed = Aging::route(|route| {
        route.in_doubt = InDoubt::Retry;
        terms_of(route, |terms| terms.sender_attempts.most = Some(1));
    })
    .await;
    bed.handler.says(500);
    bed.ask(super::task()).await.is(200);
    let id = bed.letter().await;
    (bed, id)
}

#[tokio::test]
async fn a_letter_is_redriven_long_after_the_retention() {
    let (bed, id) = cut().await;
    let _keeper = bed.reconciling().await;
    bed.store.reconciled().await;
    bed.pass(GONE);
    assert_eq!(bed.record().await.state, State::Waiting);
    bed.redrive(&id).await.is(200, &json!({"closed": true}));
    assert_eq!(bed.runs(), 2);
}

#[tokio::test]
async fn without_a_keeper_the_record_expires_after_a_day_and_a_redrive_asks_first() {
    let (bed, id) = cut().await;
    bed.pass(DAY - LEASE);
    assert_eq!(bed.record().await.state, State::Waiting);
    bed.pass(DAY);
    bed.redrive(&id).await.refused(409, "unknown");
    assert_eq!(bed.runs(), 1);
}

#[tokio::test]
async fn every_unfinished_state_is_retained() {
    let held = Aging::route(|route| {
        route.in_doubt = InDoubt::Retry;
        terms_of(route, |terms| terms.sender_attempts.most = Some(1));
    })
    .await;
    let _run = held.hold(super::task()).await;
    let failed = Aging::route(|route| route.final_statuses = vec![422..=422]).await;
    failed.handler.says(422);
    failed.ask(super::task()).await.is(200);
    for (bed, state) in [(held, State::Running), (failed, State::Failed)] {
        let _keeper = bed.reconciling().await;
        bed.store.reconciled().await;
        bed.pass(DAY - LEASE);
        assert_eq!(bed.record().await.state, state);
    }
}
