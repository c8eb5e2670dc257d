//! The same key with another payload.

use crate::support::prelude::*;

#[tokio::test]
async fn an_api_client_hears_422_and_nothing_of_the_earlier_request() {
    let bed = Bed::new().await;
    let said = Say::new(200, "answer-of-the-first").header("x-own", "header-of-the-first");
    bed.handler.answers(said);
    let first = Sender::Api.sends("key-of-both", "payload-of-the-first");
    bed.ask(first).await.is(200);
    let answer = bed.ask(Sender::Api.sends("key-of-both", "other")).await;
    answer.is_problem(422, "mismatched");
    let all = format!("{:?} {}", answer.headers, answer.text());
    assert!(
        !all.contains("of-the-first") && !all.contains("key-of-both"),
        "{all}"
    );
    assert_eq!(bed.runs(), 1);
    bed.ask(Sender::Api.sends("key-of-both", "payload-of-the-first"))
        .await
        .is_replay(200);
}

#[tokio::test]
async fn another_path_query_is_another_payload_for_an_api_client() {
    let bed = Bed::new().await;
    bed.api("k").await.is(200);
    let answer = bed
        .ask(Sender::Api.sends("k", "{}").path("/work?all=1"))
        .await;
    answer.is_problem(422, "mismatched");
}

#[tokio::test]
async fn an_api_client_hears_422_while_the_first_is_still_running() {
    let bed = Bed::new().await;
    let first = bed.hold(Sender::Api.sends("k", "one")).await;
    refused(&bed, Sender::Api.sends("k", "two"), 422, "mismatched").await;
    bed.go(first).await.is(200);
    assert_eq!(bed.runs(), 1);
}

#[tokio::test]
async fn a_brokers_delivery_becomes_a_letter_and_is_acknowledged() {
    for sender in BROKERS {
        let bed = Bed::new().await;
        bed.ask(sender.sends("n", "one")).await.is(200);
        for _ in 0..2 {
            bed.ask(sender.sends("n", "two")).await.is(200).says("");
        }
        assert_eq!(bed.runs(), 1);
        let letters = bed.letters().await;
        assert_eq!(letters.len(), 1, "one letter per key and payload");
        assert_eq!(letters[0].reason, Reason::Mismatched);
        bed.ask(sender.sends("n", "three")).await.is(200);
        assert_eq!(bed.letters().await.len(), 2, "no payload is lost");
        let line = "semel_deliveries_total{route=\"work\",outcome=\"mismatched\"} 3";
        bed.counts(line).await;
    }
}

#[tokio::test]
async fn a_brokers_delivery_hears_409_while_the_other_work_is_running() {
    for sender in BROKERS {
        let bed = Bed::new().await;
        let first = bed.hold(sender.sends("n", "one")).await;
        let answer = refused(&bed, sender.sends("n", "two"), 409, "unsettled").await;
        answer.has("retry-after", "5");
        assert_eq!(bed.letters().await, []);
        bed.go(first).await.is(200);
        bed.ask(sender.sends("n", "two")).await.is(200);
        assert_eq!(bed.letters().await[0].reason, Reason::Mismatched);
        assert_eq!(bed.runs(), 1);
    }
}

#[tokio::test]
async fn a_brokers_delivery_hears_409_while_the_other_work_is_waiting() {
    for sender in BROKERS {
        let bed = Bed::new().await;
        bed.handler.says(500);
        bed.ask(sender.sends("n", "one")).await.is(500);
        for _ in 0..2 {
            refused(&bed, sender.sends("n", "two"), 409, "unsettled").await;
        }
        assert_eq!(bed.letters().await, []);
        // Its sender still delivers the unfinished work.
        bed.ask(sender.sends("n", "one")).await.is(200);
        bed.ask(sender.sends("n", "two")).await.is(200);
        assert_eq!(bed.letters().await.len(), 1);
        assert_eq!(bed.runs(), 2);
    }
}

#[tokio::test]
async fn a_brokers_delivery_becomes_a_letter_when_the_other_work_is_parked_or_failed() {
    for (status, state) in [(500, State::Parked), (422, State::Failed)] {
        let bed = Bed::route(|route| {
            route.max_attempts = 1;
            route.final_statuses = vec![422..=422];
        })
        .await;
        bed.handler.says(status);
        bed.ask(Sender::Task.sends("n", "one")).await.is(200);
        bed.ask(Sender::Task.sends("n", "two")).await.is(200);
        let record = bed.record().await;
        assert_eq!(record.state, state);
        let letters = bed.letters().await;
        assert_eq!(letters.len(), 2);
        assert_eq!(letters[1].reason, Reason::Mismatched);
        assert_eq!(letters[1].fence, record.fence);
    }
}
