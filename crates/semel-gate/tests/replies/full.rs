//! Too much work in hand.

use crate::support::prelude::*;

#[tokio::test]
async fn without_a_free_slot_every_sender_hears_429_and_nothing_is_claimed() {
    for sender in SENDERS {
        let bed = Bed::route(|route| (route.concurrency, route.queue) = (1, 0)).await;
        let first = bed.hold(sender.sends("one", "{}")).await;
        bed.deliver(sender, "two").await.is_pause(429, "full");
        assert_eq!(bed.records().await.len(), 1, "nothing was claimed");
        bed.go(first).await.is(200);
        bed.deliver(sender, "two").await.is(200);
        assert_eq!(bed.runs(), 2);
    }
}
