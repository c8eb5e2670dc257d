//! The store cannot be reached, before or after the run.

use crate::pending::answers;
use crate::support::prelude::*;

#[tokio::test]
async fn with_the_store_down_before_the_run_every_sender_hears_503_and_nothing_runs() {
    for sender in SENDERS {
        let bed = Bed::new().await;
        bed.store.is(Down::Everything);
        let answer = bed.deliver(sender, "n").await;
        answer.is_pause(503, "store-unavailable");
        assert_eq!(bed.runs(), 0);
        bed.store.is(Down::Nothing);
        bed.deliver(sender, "n").await.is(200);
    }
}

async fn hears_the_real_answer(sender: Sender, status: u16, heard: u16) -> Bed {
    let bed = Bed::route(|route| route.final_statuses = vec![422..=422]).await;
    let say = Say::new(status, "the answer");
    let refuse = |store: &Switch| store.is(Down::Outcomes);
    let answer = answers(&bed, sender, say, refuse).await;
    answer.is(heard).says("the answer");
    answer.has("semel-recorded", "pending");
    assert_eq!(bed.record().await.state, State::Running);
    bed
}

#[tokio::test]
async fn with_the_store_down_after_the_run_every_sender_hears_the_real_answer() {
    for sender in SENDERS {
        let bed = hears_the_real_answer(sender, 201, 201).await;
        bed.store.is(Down::Nothing);
        bed.store.outcomes(1).await;
        assert_eq!(bed.record().await.state, State::Succeeded);
        let answer = bed.deliver(sender, "n").await;
        answer.is_replay(if sender == Sender::Api { 201 } else { 200 });
        answer.lacks("semel-recorded");
        assert_eq!(bed.runs(), 1);
    }
}

#[tokio::test]
async fn a_pending_failure_for_good_is_not_acknowledged_to_a_broker_without_its_letter() {
    for sender in BROKERS {
        let bed = hears_the_real_answer(sender, 422, 422).await;
        assert_eq!(bed.letters().await, []);
        bed.store.is(Down::Nothing);
        bed.store.outcomes(1).await;
        bed.deliver(sender, "n").await.is_replay(200);
        assert_eq!((bed.runs(), bed.letters().await.len()), (1, 1));
    }
}
