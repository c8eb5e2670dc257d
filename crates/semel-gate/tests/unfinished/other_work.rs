//! Other work under a key whose own work is unfinished: its letter is its own.

use super::{COUNTED, Counted, ONCE, UNCOUNTED, nacks};
use crate::support::prelude::*;
use semel::letter::Letter;

/// The letters of the key's own work and of the other.
async fn both(bed: &Bed) -> (Letter, Letter) {
    let letters = bed.letters().await;
    let reasons: Vec<_> = letters.iter().map(|letter| letter.reason).collect();
    assert_eq!(reasons, [Reason::Unfinished, Reason::Mismatched]);
    (letters[0].clone(), letters[1].clone())
}

/// A delivery whose key is a part of its payload.
fn order(sender: &Counted, id: &str, cents: u32, number: u32) -> Ask {
    let payload = json!({"order_id": "A-1", "cents": cents}).to_string();
    (sender.attempt)(id, &payload, number).header("Content-Type", "application/json")
}

fn by_order(route: &mut Route) {
    keyed_by(route, "/order_id");
}

#[tokio::test]
async fn an_early_attempt_of_it_is_refused_and_keeps_nothing() {
    for sender in COUNTED {
        let bed = sender.bed(by_order).await;
        bed.handler.says(500);
        bed.ask(order(&sender, "a", 1, 1)).await.is(500);
        refused(&bed, order(&sender, "b", 2, 1), 409, "unsettled").await;
        assert_eq!(bed.reasons().await, [Reason::Unfinished], "{sender:?}");
        assert_eq!(bed.runs(), 1);
    }
}

#[tokio::test]
async fn an_attempt_from_half_on_is_refused_and_kept() {
    for sender in COUNTED {
        let bed = sender.bed(by_order).await;
        bed.handler.says(500);
        bed.ask(order(&sender, "a", 1, 1)).await.is(500);
        let half = sender.most.div_ceil(2);
        refused(&bed, order(&sender, "b", 2, half - 1), 409, "unsettled").await;
        assert_eq!(bed.reasons().await, [Reason::Unfinished], "{sender:?}");
        refused(&bed, order(&sender, "b", 2, half), 409, "unsettled").await;
        both(&bed).await;
        let calls = bed.store.letter_calls();
        refused(&bed, order(&sender, "b", 2, half + 1), 409, "unsettled").await;
        assert_eq!(bed.store.letter_calls(), calls, "it is known here");
        bed.ask(order(&sender, "b", 2, sender.most)).await.is(200);
        assert_eq!(bed.runs(), 1);
    }
}

#[tokio::test]
async fn a_route_that_nacks_refuses_its_last_attempt_and_keeps_it() {
    for sender in COUNTED {
        let bed = sender
            .bed(|route| {
                by_order(route);
                nacks(route);
            })
            .await;
        bed.handler.says(500);
        bed.ask(order(&sender, "a", 1, 1)).await.is(500);
        refused(&bed, order(&sender, "b", 2, sender.most), 409, "unsettled").await;
        both(&bed).await;
    }
}

#[tokio::test]
async fn its_last_attempt_becomes_a_letter_that_the_other_work_does_not_touch() {
    for sender in COUNTED {
        let bed = sender.bed(by_order).await;
        bed.handler.says(500);
        bed.ask(order(&sender, "a", 1, 1)).await.is(500);
        bed.ask(order(&sender, "b", 2, sender.most)).await.is(200);
        let (_, other) = both(&bed).await;
        bed.handler.says(500);
        bed.ask(order(&sender, "a", 1, 2)).await.is(500);
        both(&bed).await;
        bed.ask(order(&sender, "a", 1, 3)).await.is(200);
        assert_eq!(
            bed.letters().await,
            std::slice::from_ref(&other),
            "{sender:?}"
        );
        assert_eq!(bed.runs(), 3);
        assert_ne!(Some(other.work_key()), other.key);
        bed.redrive(other.id)
            .await
            .is(200, &json!({"closed": true}));
        assert_eq!((bed.runs(), bed.letters().await.len()), (4, 0));
    }
}

#[tokio::test]
async fn its_redrive_leaves_the_letter_of_the_keys_own_work() {
    for sender in COUNTED {
        let bed = sender.bed(by_order).await;
        bed.handler.says(500);
        bed.ask(order(&sender, "a", 1, 1)).await.is(500);
        bed.ask(order(&sender, "b", 2, sender.most)).await.is(200);
        let (own, other) = both(&bed).await;
        bed.redrive(other.id)
            .await
            .is(200, &json!({"closed": true}));
        assert_eq!(bed.letters().await, [own], "{sender:?}");
    }
}

#[tokio::test]
async fn a_sender_that_does_not_count_receives_409_and_its_letter_is_kept() {
    for sender in UNCOUNTED {
        let bed = sender.bed(|_| {}).await;
        bed.handler.says(500);
        bed.ask((sender.form)("n", "one")).await.is(500);
        for _ in 0..2 {
            refused(&bed, (sender.form)("n", "two"), 409, "unsettled").await;
            both(&bed).await;
        }
        bed.ask((sender.form)("n", "one")).await.is(200);
        assert_eq!(bed.reasons().await, [Reason::Mismatched], "{sender:?}");
        assert_eq!(bed.runs(), 2);
    }
}

#[tokio::test]
async fn a_sender_that_delivers_once_is_acknowledged_and_its_letter_is_kept() {
    for sender in ONCE {
        let bed = sender.bed(|_| {}).await;
        let held = bed.hold((sender.form)("n", "one")).await;
        bed.ask((sender.form)("n", "two")).await.is(200);
        both(&bed).await;
        bed.go(held).await.is(200);
        assert_eq!(bed.reasons().await, [Reason::Mismatched], "{sender:?}");
    }
}
