//! Deliveries without a key that nothing names: two that look the same may be two.

use crate::support::prelude::*;

/// An unwrapped push without metadata.
fn push() -> Ask {
    Ask::post("/work").body("the same bytes".to_owned())
}

async fn pushed() -> Bed {
    Bed::route(|route| route.sources = vec![Source::PubSub]).await
}

#[tokio::test]
async fn each_has_a_letter_of_its_own() {
    let bed = pushed().await;
    for _ in 0..4 {
        bed.ask(push()).await.is(200);
    }
    assert_eq!(bed.letters().await.len(), 4);
    assert_eq!(bed.runs(), 0);
}

#[tokio::test]
async fn each_has_a_letter_of_its_own_if_only_its_origin_is_named() {
    for name in ["X-CloudTasks-QueueName", "X-Goog-Pubsub-Subscription-Name"] {
        let bed = Bed::new().await;
        for _ in 0..2 {
            bed.ask(push().header(name, "orders")).await.is(200);
        }
        assert_eq!(bed.letters().await.len(), 2, "{name}");
    }
}

#[tokio::test]
async fn after_one_is_closed_the_next_is_kept_all_the_same() {
    for act in ["redrive", "discard"] {
        let bed = pushed().await;
        bed.ask(push()).await.is(200);
        let id = bed.letter().await;
        let said = bed.act(&format!("/letters/{id}/{act}")).await;
        assert_eq!(said.status, 200, "{said:?}");
        assert!(bed.listed().await.is_empty());
        bed.ask(push()).await.is(200);
        assert_eq!(bed.listed().await.len(), 1, "{act}");
    }
}

#[tokio::test]
async fn one_that_its_sender_names_has_one_letter() {
    let bed = Bed::new().await;
    // Two queues are one too many, and the task has a name.
    let named = push()
        .header("X-CloudTasks-TaskName", "t1")
        .header("X-CloudTasks-QueueName", "orders")
        .header("X-CloudTasks-QueueName", "others");
    for _ in 0..2 {
        bed.ask(named.clone()).await.is(200);
    }
    assert_eq!(bed.letters().await.len(), 1);
}
