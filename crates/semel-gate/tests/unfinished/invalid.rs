//! Deliveries without a key where the route rejects them: the refusal reaches a sender that may not deliver again, so they are
//! kept too.

use super::{COUNTED, Declared, ONCE, UNCOUNTED};
use crate::support::prelude::*;
use semel_gate::letters::StoredDelivery;

/// A route whose key part the delivery does not have.
fn rejecting(route: &mut Route) {
    keyed_by(route, "/order_id");
    route.on_invalid = OnInvalid::Reject;
}

async fn rejected(bed: &Bed, ask: Ask) {
    let answer = bed
        .ask(ask.header("Content-Type", "application/json"))
        .await;
    assert_eq!(answer.status, 400, "{answer:?}");
    answer.tells("/order_id");
}

#[tokio::test]
async fn what_may_not_be_delivered_again_is_refused_and_kept() {
    let counted = COUNTED.map(|sender| (sender.declared, sender.last("n")));
    let others = ONCE.into_iter().chain(UNCOUNTED);
    let others = others.map(|sender: Declared| (sender, sender.sends("n")));
    for (sender, ask) in others.chain(counted) {
        let bed = sender.bed(rejecting).await;
        rejected(&bed, ask).await;
        let letters = bed.letters().await;
        assert_eq!(letters.len(), 1, "{sender:?}");
        assert_eq!((letters[0].reason, letters[0].key), (Reason::Invalid, None));
        let kept = StoredDelivery::decode(&letters[0].delivery).unwrap();
        assert!(kept.head.why.contains("/order_id"), "{}", kept.head.why);
        assert_eq!(bed.runs(), 0);
    }
}

#[tokio::test]
async fn an_early_attempt_is_refused_and_not_kept() {
    for sender in COUNTED {
        let bed = sender.bed(rejecting).await;
        rejected(&bed, sender.sends("n", 1)).await;
        assert_eq!(bed.letters().await, [], "{sender:?}");
    }
}
