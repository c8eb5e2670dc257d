//! The same key with another payload.

use crate::support::handler::Say;
use crate::support::{Act, BROKERS, Bed, Sender};
use semel::letter::Reason;

#[tokio::test]
async fn an_api_client_hears_422_and_nothing_of_the_earlier_request() {
    let bed = Bed::new().await;
    let said = Say::new(200, "answer-of-the-first").header("x-own", "header-of-the-first");
    bed.handler.will(Act::Say(said));
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
    bed.ask(Sender::Api.sends("k", "{}")).await.is(200);
    let answer = bed
        .ask(Sender::Api.sends("k", "{}").path("/work?all=1"))
        .await;
    answer.is_problem(422, "mismatched");
}

#[tokio::test]
async fn an_api_client_hears_422_while_the_first_is_still_running() {
    let bed = Bed::new().await;
    bed.handler.will(Act::Hold(Say::new(200, "done")));
    let first = bed.begin(Sender::Api.sends("k", "one"));
    bed.handler.arrived().await;
    let answer = bed.ask(Sender::Api.sends("k", "two")).await;
    answer.is_problem(422, "mismatched");
    bed.handler.go();
    first.await.unwrap().is(200);
    assert_eq!(bed.runs(), 1);
}

#[tokio::test]
async fn a_brokers_delivery_becomes_a_letter_and_is_acknowledged() {
    for sender in BROKERS {
        let bed = Bed::new().await;
        bed.ask(sender.sends("n", "one")).await.is(200);
        for _ in 0..2 {
            let answer = bed.ask(sender.sends("n", "two")).await;
            answer.is(200);
            assert_eq!(answer.text(), "");
        }
        assert_eq!(bed.runs(), 1);
        let letters = bed.letters().await;
        assert_eq!(letters.len(), 1, "one letter per key and payload");
        assert_eq!(letters[0].reason, Reason::Mismatched);
        bed.ask(sender.sends("n", "three")).await.is(200);
        assert_eq!(bed.letters().await.len(), 2, "no payload is lost");
        let metrics = bed.admin("/metrics").await;
        let counted = "semel_deliveries_total{route=\"work\",outcome=\"mismatched\"} 3";
        assert!(metrics.text().contains(counted), "{}", metrics.text());
    }
}
