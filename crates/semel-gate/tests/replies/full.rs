//! Too much work in hand.

use crate::support::handler::Say;
use crate::support::{Act, Bed, SENDERS};

#[tokio::test]
async fn without_a_free_slot_every_sender_hears_429_and_nothing_is_claimed() {
    for sender in SENDERS {
        let bed = Bed::route(|route| (route.concurrency, route.queue) = (1, 0)).await;
        bed.handler.will(Act::Hold(Say::new(200, "done")));
        let first = bed.begin(sender.sends("one", "{}"));
        bed.handler.arrived().await;
        let answer = bed.ask(sender.sends("two", "{}")).await;
        answer.is_problem(429, "full");
        answer.retry_after();
        assert_eq!(bed.records().await.len(), 1, "nothing was claimed");
        bed.handler.go();
        first.await.unwrap().is(200);
        bed.ask(sender.sends("two", "{}")).await.is(200);
        assert_eq!(bed.runs(), 2);
    }
}
