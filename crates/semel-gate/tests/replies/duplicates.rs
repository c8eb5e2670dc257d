//! Duplicates of what was settled.

use crate::support::prelude::*;

#[tokio::test]
async fn an_api_duplicate_of_a_success_gets_the_stored_answer() {
    let bed = Bed::new().await;
    let said = Say::new(201, "made")
        .header("location", "/orders/7")
        .header("x-own", "1");
    bed.handler.answers(said);
    bed.api("k").await.is(201);
    for _ in 0..2 {
        let answer = bed.api("k").await;
        answer.is_replay(201).says("made");
        answer.has("location", "/orders/7");
        answer.has("content-type", "text/plain");
        answer.has("cache-control", "no-store").lacks("x-own");
    }
    assert_eq!(bed.runs(), 1);
}

#[tokio::test]
async fn a_quoted_key_and_a_bare_one_are_the_same() {
    let bed = Bed::new().await;
    bed.api("k").await.is(200);
    bed.api("\"k\"").await.is_replay(200);
    assert_eq!(bed.runs(), 1);
}

#[tokio::test]
async fn an_api_duplicate_of_a_redirect_gets_the_stored_redirect() {
    let bed = Bed::new().await;
    bed.handler
        .answers(Say::new(303, "").header("location", "/orders/7"));
    for replayed in [false, true] {
        let answer = bed.api("k").await;
        assert_eq!(answer.status, 303);
        answer.has("location", "/orders/7");
        assert_eq!(answer.header("idempotent-replayed").is_some(), replayed);
    }
    assert_eq!(bed.record().await.state, State::Succeeded);
    assert_eq!(bed.runs(), 1);
}

#[tokio::test]
async fn a_brokers_duplicate_of_a_success_is_acknowledged() {
    for sender in BROKERS {
        let bed = Bed::new().await;
        bed.handler.says(201);
        bed.deliver(sender, "n").await.is(201);
        bed.deliver(sender, "n").await.is_replay(200).says("");
        assert_eq!(bed.runs(), 1);
        assert_eq!(bed.letters().await, []);
    }
}

#[tokio::test]
async fn an_api_duplicate_of_a_final_failure_gets_the_stored_answer() {
    let bed = Bed::new().await;
    bed.handler.says(400);
    bed.api("k").await.is(400);
    bed.api("k").await.is_replay(400).says("said 400");
    assert_eq!(bed.runs(), 1);
}

#[tokio::test]
async fn a_brokers_duplicate_of_a_final_failure_is_acknowledged_without_a_second_letter() {
    for sender in BROKERS {
        let bed = Bed::route(|route| route.final_statuses = vec![422..=422]).await;
        bed.handler.says(422);
        bed.deliver(sender, "n").await.is(200);
        bed.deliver(sender, "n").await.is_replay(200);
        assert_eq!(bed.runs(), 1);
        assert_eq!(bed.reasons().await, [Reason::Failed]);
    }
}

#[tokio::test]
async fn a_lost_letter_of_a_final_failure_is_written_by_the_next_duplicate() {
    let bed = Bed::route(|route| route.final_statuses = vec![422..=422]).await;
    bed.handler.says(422);
    bed.store.is(Down::Letters);
    bed.task("n").await.is(503);
    assert_eq!(bed.letters().await, []);
    bed.store.is(Down::Nothing);
    bed.task("n").await.is_replay(200);
    assert_eq!(bed.letters().await.len(), 1);
    assert_eq!(bed.runs(), 1);
}
