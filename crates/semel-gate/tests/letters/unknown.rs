//! A letter whose work may have run, and whose record is gone, is not run by a plain redrive.

use super::{Aging, GONE, paused, resumes, task};
use crate::support::prelude::*;
use semel::clock::{Clock, SystemClock, Time};

const HOUR: Duration = Duration::from_secs(3600);

/// It says what is unknown, runs nothing, and stays.
async fn refused(bed: &Bed, id: &str) {
    let runs = bed.runs();
    let said = bed.redrive(id).await;
    said.refused(409, "whether this work took effect is unknown");
    assert_eq!(said.word("outcome"), "unknown");
    assert!(said.word("what_to_do").contains("--run-again"), "{said:?}");
    assert_eq!(bed.runs(), runs);
    assert_eq!(bed.letter().await, id);
    assert_eq!(bed.listed().await[0]["record"], "unknown");
}

#[tokio::test]
async fn after_a_paused_gate_completed_it_and_retention_is_over() {
    let (one, first, other) = paused().await;
    let id = other.letter().await;
    resumes(&one, first).await;
    one.pass(GONE);
    refused(&other, &id).await;
    assert_eq!(one.runs() + other.runs(), 1);
}

#[tokio::test]
async fn and_run_again_runs_it_under_its_own_key() {
    let bed = Aging::route(|route| route.final_statuses = vec![422..=422]).await;
    bed.handler.says(422);
    bed.ask(task()).await.is(200);
    let key = bed.key().await;
    bed.pass(GONE);
    let id = bed.letter().await;
    refused(&bed, &id).await;
    let closed = json!({"closed": true, "key": key.to_string()});
    bed.run_again(&id).await.is(200, &closed);
    assert_eq!(bed.runs(), 2);
    assert!(bed.letters().await.is_empty());
}

#[tokio::test]
async fn a_letter_without_a_key_is_unknown_once_it_was_redriven() {
    let bed = Aging::route(|route| route.undone_statuses = vec![503..=503]).await;
    // Its task has no name.
    let nameless = Ask::post("/work").header("X-CloudTasks-QueueName", "orders");
    bed.ask(nameless).await.is(200);
    let id = bed.letter().await;
    assert_eq!(bed.listed().await[0]["record"], "not run");
    bed.handler.says(503);
    assert_eq!(bed.redrive(&id).await.status, 409);
    assert!(bed.letters().await[0].redriven);
    bed.pass(GONE);
    refused(&bed, &id).await;
    bed.run_again(&id).await.is(200, &json!({"closed": true}));
    assert_eq!(bed.runs(), 2);
    assert!(bed.letters().await.is_empty());
}

#[tokio::test]
async fn a_redrive_is_noted_before_it_runs() {
    let bed = Aging::new().await;
    bed.ask(Sender::Task.sends("t1", "one")).await.is(200);
    bed.ask(Sender::Task.sends("t1", "two")).await.is(200);
    let id = bed.letter().await;
    bed.handler.arrived().await;
    let redriven = bed.hold_redrive(&id).await;
    assert!(bed.letters().await[0].redriven);
    bed.go(redriven).await.is(200);
    assert!(bed.letters().await.is_empty());
}

#[tokio::test]
async fn an_unknown_query_is_refused() {
    let bed = Aging::parked().await;
    let id = bed.letter().await;
    let said = bed.act(&format!("/letters/{id}/redrive?again=true")).await;
    assert_eq!((said.status, bed.runs()), (400, 1), "{said:?}");
}

/// Refused for want of a slot, an hour ago by the store's clock.
async fn refused_an_hour_ago(retention: Duration) -> (Aging, String) {
    let begin = SystemClock::new().wall().0 - u64::try_from(HOUR.as_micros()).unwrap();
    let bed = Aging::at(Time(begin), |settings| {
        let route = &mut settings.routes[0];
        (route.concurrency, route.queue) = (1, 0);
        terms_of(route, |terms| {
            terms.retention = retention;
            terms.sender_attempts.most = Some(1);
        });
    })
    .await;
    let held = bed.hold(Sender::Task.sends("other", "{}")).await;
    bed.ask(task()).await.is(200);
    bed.go(held).await.is(200);
    let id = bed.letter().await;
    (bed, id)
}

#[tokio::test]
async fn work_that_was_refused_runs_while_a_record_of_a_run_would_be_there() {
    let (bed, id) = refused_an_hour_ago(2 * HOUR).await;
    bed.redrive(&id).await.is(200, &json!({"closed": true}));
    assert_eq!(bed.runs(), 2);
    let (bed, id) = refused_an_hour_ago(HOUR / 2).await;
    refused(&bed, &id).await;
    bed.run_again(&id).await.is(200, &json!({"closed": true}));
}
