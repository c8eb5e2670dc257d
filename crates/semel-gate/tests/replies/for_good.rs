//! Failed for good, by the route's rule.

use crate::support::prelude::*;

async fn with_final() -> Bed {
    Bed::route(|route| route.final_statuses = vec![400..=400, 500..=599]).await
}

#[tokio::test]
async fn an_api_client_gets_the_stored_answer_replayed() {
    let bed = with_final().await;
    bed.handler.says(503);
    bed.api("k").await.is(503);
    assert_eq!(bed.record().await.state, State::Failed);
    bed.api("k").await.is_replay(503).says("said 503");
    assert_eq!((bed.runs(), bed.letters().await.len()), (1, 0));
}

#[tokio::test]
async fn a_brokers_delivery_becomes_a_letter_before_it_is_acknowledged() {
    for sender in BROKERS {
        let bed = with_final().await;
        bed.handler.says(400);
        let ask = sender
            .sends("n", "the payload")
            .header("Authorization", "Bearer secret-of-the-sender")
            .header("X-Kept", "kept-header");
        let body = ask.body.clone();
        bed.ask(ask).await.is(200).says("");
        assert_eq!(bed.record().await.state, State::Failed);
        let letters = bed.letters().await;
        assert_eq!(letters.len(), 1);
        assert_eq!(letters[0].reason, Reason::Failed);
        assert_eq!(letters[0].key, Some(bed.records().await[0].0));
        let kept = String::from_utf8_lossy(&letters[0].delivery).into_owned();
        assert!(letters[0].delivery.ends_with(&body), "{kept}");
        assert!(kept.contains("kept-header") && kept.contains("/work"));
        assert!(!kept.contains("secret-of-the-sender"), "{kept}");
    }
}

#[tokio::test]
async fn a_letter_that_cannot_be_kept_is_no_acknowledgement() {
    for sender in BROKERS {
        let bed = with_final().await;
        bed.handler.says(400);
        bed.store.is(Down::Letters);
        let answer = bed.deliver(sender, "n").await;
        answer.is_pause(503, "store-unavailable");
        bed.store.is(Down::Nothing);
        bed.deliver(sender, "n").await.is_replay(200);
        assert_eq!((bed.runs(), bed.letters().await.len()), (1, 1));
    }
}
