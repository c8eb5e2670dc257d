//! An invalid envelope, or a missing key part.

use crate::support::prelude::*;

#[tokio::test]
async fn an_api_client_without_a_key_hears_400() {
    let bed = Bed::new().await;
    let ask = Sender::Api.sends("k", "{}").without("Idempotency-Key");
    let answer = bed.ask(ask).await;
    assert_eq!(answer.status, 400);
    let named = "idempotency-key";
    assert!(answer.text().to_lowercase().contains(named), "{answer:?}");
    answer.has("content-type", "application/problem+json");
    assert_eq!((bed.runs(), bed.letters().await.len()), (0, 0));
    assert_eq!(bed.records().await, []);
}

#[tokio::test]
async fn a_brokers_delivery_without_a_key_part_becomes_a_letter_and_is_acknowledged() {
    for sender in BROKERS {
        let bed = Bed::route(|route| keyed_by(route, "/order_id")).await;
        for _ in 0..2 {
            bed.ask(sender.sends("n", r#"{"other":1}"#)).await.is(200);
        }
        let letters = bed.letters().await;
        assert_eq!(letters.len(), 1, "one letter per arrival's name and body");
        assert_eq!((letters[0].reason, letters[0].key), (Reason::Invalid, None));
        assert_eq!(bed.runs(), 0);
    }
}

#[tokio::test]
async fn a_brokers_delivery_without_a_key_part_is_rejected_where_the_route_says_so() {
    for sender in BROKERS {
        let bed = Bed::route(|route| {
            keyed_by(route, "/order_id");
            route.on_invalid = OnInvalid::Reject;
        })
        .await;
        let answer = bed.ask(sender.sends("n", r#"{"other":1}"#)).await;
        assert_eq!(answer.status, 400);
        answer.tells("/order_id");
        assert_eq!((bed.runs(), bed.letters().await.len()), (0, 0));
    }
}
