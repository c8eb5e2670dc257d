//! Outcomes in hand: the handler has answered, and the store does not take it.

use crate::support::prelude::*;
use semel::protocol::Ending;
use semel_gate::Unfinished;

/// Lets the handler answer so, and the store refuse from then on; gives the reply.
///
/// Time is moved only when the store has refused: from then on nothing but the gate's own patience
/// with the store passes.
pub(crate) async fn answers(
    bed: &Bed,
    sender: Sender,
    say: Say,
    refuse: impl FnOnce(&Switch),
) -> Answer {
    bed.handler.will(Act::Hold(say));
    let asking = tokio::spawn(sender.sends("n", "{}").send_unbounded(bed.gate));
    bed.handler.arrived().await;
    refuse(&bed.store);
    bed.handler.go();
    bed.store.refused().await;
    tokio::time::pause();
    let answer = asking.await.unwrap();
    tokio::time::resume();
    answer
}

fn deny(store: &Switch) {
    store.denies(Down::Outcomes);
}

async fn strict() -> Bed {
    Bed::route(|route| route.final_statuses = vec![422..=422]).await
}

#[tokio::test]
async fn an_outcome_that_the_store_denies_stops_the_gate_until_it_is_recorded() {
    for sender in SENDERS {
        let bed = strict().await;
        let say = Say::new(201, "the answer");
        let answer = answers(&bed, sender, say, deny).await;
        answer.is(201).has("semel-recorded", "pending");

        assert_eq!(bed.admin("/readyz").await.status, 503);
        bed.counts("semel_pending_outcomes 1\n").await;
        let other = bed.deliver(sender, "other").await;
        other.is_pause(503, "store-unavailable");
        let again = bed.deliver(sender, "n").await;
        again.is(201).says("the answer");
        again.has("semel-recorded", "pending");
        assert_eq!((bed.runs(), bed.records().await.len()), (1, 1));

        bed.store.is(Down::Nothing);
        bed.store.outcomes(1).await;
        assert_eq!(bed.record().await.state, State::Succeeded);
        let ready = async || bed.admin("/readyz").await.status == 200;
        until("readiness", ready).await;
        bed.deliver(sender, "other").await.is(200);
        let again = bed.deliver(sender, "n").await;
        again.is_replay(if sender == Sender::Api { 201 } else { 200 });
        assert_eq!(bed.runs(), 2);
    }
}

#[tokio::test]
async fn a_pending_failure_for_good_is_told_to_brokers_as_one_until_its_letter_is_kept() {
    for sender in BROKERS {
        let bed = strict().await;
        let say = Say::new(422, "no");
        answers(&bed, sender, say, deny).await.is(422);
        for _ in 0..2 {
            let again = bed.deliver(sender, "n").await;
            again.is(422).has("semel-recorded", "pending");
        }
        assert_eq!(bed.letters().await, []);
        bed.store.is(Down::Nothing);
        bed.store.outcomes(1).await;
        bed.deliver(sender, "n").await.is_replay(200);
        assert_eq!((bed.runs(), bed.letters().await.len()), (1, 1));
    }
}

#[tokio::test]
async fn where_the_handler_completes_everyone_hears_503_until_the_record_is_read() {
    for sender in SENDERS {
        let bed = Bed::route(|route| route.completes = Completes::Handler).await;
        let say = Say::new(200, "answered");
        let unread = |store: &Switch| store.is(Down::OutcomesAndLooks);
        let first = answers(&bed, sender, say, unread).await;
        first.is_pause(503, "outcome-unread");
        refused(&bed, sender.sends("n", "{}"), 503, "outcome-unread").await;
        let state = bed.record().await.state;
        assert_eq!(state, State::Running, "nothing is guessed");

        bed.store.is(Down::Nothing);
        bed.store.outcomes(1).await;
        let state = bed.record().await.state;
        assert_eq!(state, State::Waiting, "it did not commit");
        assert_eq!(bed.runs(), 1);
    }
}

#[tokio::test]
async fn an_error_over_the_limit_is_recorded_without_its_body() {
    let bed = strict().await;
    let large = "x".repeat(100_000);
    bed.handler.answers(Say::new(422, large.clone()));
    let first = bed.api("n").await;
    first.is(422);
    assert_eq!(first.text().len(), large.len());
    let again = bed.api("n").await;
    again.is_replay(422).has("semel-body", "not-kept").says("");
    assert_eq!((bed.record().await.state, bed.runs()), (State::Failed, 1));
}

#[tokio::test]
async fn an_operator_resolves_the_lapsed_run_of_a_fence_and_no_other() {
    let bed = Bed::new().await;
    let key = semel::Key::from_bytes([7; 32]);
    let payload = semel::Fingerprint::off();
    let lease = bed.claims(key, payload, Duration::from_millis(1)).await;
    let resolve = |more: String| {
        let path = format!("/records/{key}/resolve");
        let body = format!(r#"{{"as": "succeeded"{more}}}"#);
        Ask::post(&path).body(body).send(bed.admin)
    };
    let fence = lease.fence.0;
    for wrong in [String::new(), format!(r#", "fence": {}"#, fence + 1)] {
        assert_eq!(resolve(wrong).await.status, 409);
    }
    let resolved = async || {
        let right = format!(r#", "fence": {fence}"#);
        resolve(right).await.status == 200
    };
    until("the lapse", resolved).await;
    assert_eq!(bed.record().await.state, State::Succeeded);
}

// === Going down ===

#[tokio::test]
async fn a_gate_that_goes_down_tells_which_outcomes_are_left() {
    let bed = Bed::with(|settings| settings.grace = Duration::from_millis(100)).await;
    let say = Say::new(201, "the answer");
    let answer = answers(&bed, Sender::Task, say, deny).await;
    answer.has("semel-recorded", "pending");
    let (key, record) = bed.records().await[0].clone();
    let (served, _handler, _store) = bed.stop();
    let left = within("the end", served).await.unwrap();
    let [pending] = &left.pending[..] else {
        panic!("{left:?}")
    };
    assert_eq!((pending.key, pending.fence), (key, record.fence));
    assert_eq!((pending.status, pending.ending), (201, Ending::Succeeded));
    assert_eq!(left.runs, []);
}

#[tokio::test]
async fn a_gate_that_goes_down_waits_for_a_store_that_comes_back() {
    let bed = Bed::new().await;
    let say = Say::new(200, "the answer");
    let answer = answers(&bed, Sender::Task, say, deny).await;
    answer.has("semel-recorded", "pending");
    let (served, _handler, store) = bed.stop();
    store.is(Down::Nothing);
    let left = within("the end", served).await.unwrap();
    assert_eq!(left, Unfinished::default());
    store.outcomes(1).await;
}
