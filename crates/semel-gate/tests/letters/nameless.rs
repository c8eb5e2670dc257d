//! Deliveries without a key that nothing names: two that look the same may be two.

use crate::support::{Ask, Bed};
use crate::{listed, operator, redrive};
use semel_gate::settings::Source;

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
    for (name, value) in [
        ("X-CloudTasks-QueueName", "orders"),
        (
            "X-Goog-Pubsub-Subscription-Name",
            "projects/p/subscriptions/s",
        ),
    ] {
        let bed = Bed::new().await;
        for _ in 0..2 {
            bed.ask(push().header(name, value)).await.is(200);
        }
        assert_eq!(bed.letters().await.len(), 2, "{name}");
    }
}

#[tokio::test]
async fn after_one_is_closed_the_next_is_kept_all_the_same() {
    for act in ["redrive", "discard"] {
        let bed = pushed().await;
        bed.ask(push()).await.is(200);
        let id = crate::the_letter(&bed).await;
        let (status, said) = match act {
            "redrive" => redrive(&bed, &id, "").await,
            _ => operator(&bed, Ask::post(&format!("/letters/{id}/discard"))).await,
        };
        assert_eq!(status, 200, "{said}");
        assert!(listed(&bed).await.is_empty());
        bed.ask(push()).await.is(200);
        assert_eq!(listed(&bed).await.len(), 1, "{act}");
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
