//! The sender's last attempt: what has not succeeded by then is kept as a letter.

use super::{ended, outlasts, short_deadline};
use crate::support::prelude::*;
use semel_gate::settings::{OnExhausted, SenderAttempts};

/// What pushes of the tests say of themselves.
const ATTEMPTS: u32 = 3;

fn counted(route: &mut Route) {
    terms_of(route, |terms| {
        terms.sender_attempts = SenderAttempts {
            most: Some(ATTEMPTS),
            declared: true,
        };
    });
}

/// An attempt of a task, from 1.
fn attempt(number: u32) -> Ask {
    let before = (number - 1).to_string();
    Sender::Task
        .sends("n", "{}")
        .header("X-CloudTasks-TaskRetryCount", &before)
}

fn last() -> Ask {
    attempt(ATTEMPTS)
}

#[tokio::test]
async fn a_failure_is_kept_and_acknowledged_and_can_be_redriven() {
    for ask in [last(), Sender::Push.sends("n", "{}")] {
        let bed = Bed::route(counted).await;
        let act = Act::Hold(Say::new(500, "later"));
        let reply = bed.begin_with(act, ask).await;
        // It is kept while it runs, so that a crash cannot lose it.
        until("a letter", async || !bed.letters().await.is_empty()).await;
        bed.go(reply).await.is(200);
        assert_eq!(bed.reasons().await, [Reason::Running]);
        assert_eq!(bed.listed().await[0]["record"], "waiting");
        let id = bed.letter().await;
        bed.redrive(&id).await.is(200, &json!({"closed": true}));
        assert_eq!((bed.runs(), bed.letters().await.len()), (2, 0));
    }
}

#[tokio::test]
async fn an_earlier_attempt_is_asked_to_come_again() {
    let bed = Bed::route(counted).await;
    bed.handler.says(500);
    bed.ask(attempt(ATTEMPTS - 1)).await.is(500);
    assert_eq!(bed.letters().await, []);
}

#[tokio::test]
async fn a_success_leaves_nothing() {
    let bed = Bed::route(counted).await;
    bed.ask(last()).await.is(200);
    assert_eq!((bed.runs(), bed.letters().await.len()), (1, 0));
}

#[tokio::test]
async fn a_broker_with_its_own_dead_letters_is_told_the_truth() {
    let bed = Bed::route(|route| {
        counted(route);
        route.on_exhausted = OnExhausted::Nack;
    })
    .await;
    bed.handler.says(500);
    bed.ask(last()).await.is(500);
    assert_eq!(bed.letters().await, []);
}

#[tokio::test]
async fn a_sender_that_does_not_count_is_asked_to_come_again() {
    let bed = Bed::route(counted).await;
    bed.handler.says(500);
    bed.task("n").await.is(500);
    assert_eq!(bed.letters().await, []);
}

#[tokio::test]
async fn one_that_runs_on_is_acknowledged_with_its_letter() {
    let bed = Bed::route(|route| {
        counted(route);
        terms_of(route, short_deadline);
    })
    .await;
    let act = Act::Hold(Say::new(200, "done"));
    let first = bed.begin_with(act, last()).await;
    first.await.unwrap().is(200);
    assert_eq!(bed.reasons().await, [Reason::Running]);
    bed.handler.go();
    ended(&bed, "ran").await;
    assert_eq!((bed.runs(), bed.letters().await.len()), (1, 0));
}

#[tokio::test]
async fn a_duplicate_of_what_still_runs_is_acknowledged_with_its_letter() {
    let bed = Bed::route(|route| {
        counted(route);
        terms_of(route, short_deadline);
        route.final_statuses = vec![422..=422];
    })
    .await;
    outlasts(&bed, Say::new(422, "no"), Sender::Task).await;
    bed.ask(last()).await.is(200);
    assert_eq!(bed.reasons().await, [Reason::Running]);
    bed.handler.go();
    until("the end", async || {
        bed.record().await.state == State::Failed
    })
    .await;
    assert_eq!((bed.runs(), bed.letters().await.len()), (1, 1));
}

#[tokio::test]
async fn one_that_could_not_run_is_kept_and_runs_when_somebody_says_so() {
    let bed = Bed::route(|route| {
        counted(route);
        (route.concurrency, route.queue) = (1, 0);
    })
    .await;
    let held = bed.hold(Sender::Task.sends("other", "{}")).await;
    bed.ask(last()).await.is(200);
    assert_eq!(bed.reasons().await, [Reason::Exhausted]);
    bed.go(held).await.is(200);
    let id = bed.letter().await;
    bed.redrive(&id).await.refused(409, "unknown");
    bed.run_again(&id).await.is(200, &json!({"closed": true}));
    assert_eq!((bed.runs(), bed.letters().await.len()), (2, 0));
}

#[tokio::test]
async fn what_cannot_be_kept_is_not_acknowledged() {
    let bed = Bed::route(counted).await;
    bed.store.is(Down::Letters);
    bed.handler.says(500);
    bed.ask(last()).await.is(500);
    bed.store.is(Down::Nothing);
    assert_eq!(bed.letters().await, []);
}
