//! Outcomes in hand: the handler has answered, and the store does not take it.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a test may fail where it stands"
)]

mod support;

use semel::protocol::{Claim, Claimed, Ending, InDoubt, Owner, State};
use semel::work::Completes;
use semel_gate::Unfinished;
use std::time::Duration;
use support::handler::Say;
use support::{Act, Answer, Ask, BROKERS, Bed, Down, SENDERS, Sender, within};

/// Lets the handler answer, and the store refuse these calls from then on; gives the reply.
///
/// Time is moved only when the store has refused: from then on nothing but the gate's own patience
/// with the store passes.
async fn answers(bed: &Bed, sender: Sender, say: Say, refuse: impl FnOnce(&Bed)) -> Answer {
    bed.handler.will(Act::Hold(say));
    let asking = tokio::spawn(sender.sends("n", "{}").send_unbounded(bed.gate));
    bed.handler.arrived().await;
    refuse(bed);
    bed.handler.go();
    bed.store.refused().await;
    tokio::time::pause();
    let answer = asking.await.unwrap();
    tokio::time::resume();
    answer
}

async fn strict() -> Bed {
    Bed::route(|route| route.final_statuses = vec![422..=422]).await
}

#[tokio::test]
async fn an_outcome_that_the_store_denies_stops_the_gate_until_it_is_recorded() {
    for sender in SENDERS {
        let bed = strict().await;
        let say = Say::new(201, "the answer");
        let answer = answers(&bed, sender, say, |bed| bed.store.denies(Down::Outcomes)).await;
        answer.is(201);
        assert_eq!(answer.header("semel-recorded"), Some("pending"));

        assert_eq!(bed.admin("/readyz").await.status, 503);
        let metrics = bed.admin("/metrics").await;
        assert!(metrics.text().contains("semel_pending_outcomes 1\n"));
        let other = bed.ask(sender.sends("other", "{}")).await;
        other.is_problem(503, "store-unavailable");
        other.retry_after();
        let again = bed.ask(sender.sends("n", "{}")).await;
        again.is(201);
        assert_eq!(again.text(), "the answer");
        assert_eq!(again.header("semel-recorded"), Some("pending"));
        assert_eq!((bed.runs(), bed.records().await.len()), (1, 1));

        bed.store.is(Down::Nothing);
        bed.store.outcomes(1).await;
        assert_eq!(bed.record().await.state, State::Succeeded);
        within("readiness", async {
            while bed.admin("/readyz").await.status != 200 {
                tokio::task::yield_now().await;
            }
        })
        .await;
        bed.ask(sender.sends("other", "{}")).await.is(200);
        let again = bed.ask(sender.sends("n", "{}")).await;
        again.is_replay(if sender == Sender::Api { 201 } else { 200 });
        assert_eq!(bed.runs(), 2);
    }
}

#[tokio::test]
async fn a_pending_failure_for_good_is_told_to_brokers_as_one_until_its_letter_is_kept() {
    for sender in BROKERS {
        let bed = strict().await;
        let say = Say::new(422, "no");
        let first = answers(&bed, sender, say, |bed| bed.store.denies(Down::Outcomes)).await;
        first.is(422);
        for _ in 0..2 {
            let again = bed.ask(sender.sends("n", "{}")).await;
            again.is(422);
            assert_eq!(again.header("semel-recorded"), Some("pending"));
        }
        assert_eq!(bed.letters().await, []);
        bed.store.is(Down::Nothing);
        bed.store.outcomes(1).await;
        bed.ask(sender.sends("n", "{}")).await.is_replay(200);
        assert_eq!((bed.runs(), bed.letters().await.len()), (1, 1));
    }
}

#[tokio::test]
async fn where_the_handler_completes_everyone_hears_503_until_the_record_is_read() {
    for sender in SENDERS {
        let bed = Bed::route(|route| route.completes = Completes::Handler).await;
        let say = Say::new(200, "answered");
        let first = answers(&bed, sender, say, |bed| {
            bed.store.is(Down::OutcomesAndLooks)
        })
        .await;
        first.is_problem(503, "outcome-unread");
        first.retry_after();
        let again = bed.ask(sender.sends("n", "{}")).await;
        again.is_problem(503, "outcome-unread");
        let (key, _) = bed.records().await[0];
        let record = || async {
            semel::store::StoreExt::look(bed.store.kept(), &key)
                .await
                .unwrap()
                .unwrap()
        };
        assert_eq!(record().await.state, State::Running, "nothing is guessed");

        bed.store.is(Down::Nothing);
        bed.store.outcomes(1).await;
        assert_eq!(record().await.state, State::Waiting, "it did not commit");
        assert_eq!(bed.runs(), 1);
    }
}

#[tokio::test]
async fn an_error_over_the_limit_is_recorded_without_its_body() {
    let bed = strict().await;
    let large = "x".repeat(100_000);
    bed.handler.will(Act::Say(Say::new(422, large.clone())));
    let first = bed.ask(Sender::Api.sends("n", "{}")).await;
    first.is(422);
    assert_eq!(first.text().len(), large.len());
    let again = bed.ask(Sender::Api.sends("n", "{}")).await;
    again.is_replay(422);
    assert_eq!(
        (again.text(), again.header("semel-body")),
        ("", Some("not-kept"))
    );
    assert_eq!((bed.record().await.state, bed.runs()), (State::Failed, 1));
}

#[tokio::test]
async fn an_operator_resolves_the_lapsed_run_of_a_fence_and_no_other() {
    let bed = Bed::new().await;
    let key = semel::Key::from_bytes([7; 32]);
    let claim = Claim {
        key,
        fingerprint: semel::Fingerprint::off(),
        owner: Owner::random(),
        lease: Duration::from_millis(1),
        retention: Duration::from_secs(60),
        in_doubt: InDoubt::Retry,
        max_attempts: None,
    };
    let claimed = semel::store::StoreExt::claim(bed.store.kept(), &claim)
        .await
        .unwrap();
    let Claimed::Granted(lease) = claimed else {
        panic!("{claimed:?}")
    };
    let resolve = |more: String| {
        let path = format!("/records/{key}/resolve");
        let body = format!(r#"{{"as": "succeeded"{more}}}"#);
        Ask::post(&path).body(body).send(bed.admin)
    };
    let fence = lease.fence.0;
    for wrong in [String::new(), format!(r#", "fence": {}"#, fence + 1)] {
        assert_eq!(resolve(wrong).await.status, 409);
    }
    within("the lapse", async {
        while resolve(format!(r#", "fence": {fence}"#)).await.status != 200 {
            tokio::task::yield_now().await;
        }
    })
    .await;
    let record = semel::store::StoreExt::look(bed.store.kept(), &key)
        .await
        .unwrap();
    assert_eq!(record.unwrap().state, State::Succeeded);
}

// === Going down ===

#[tokio::test]
async fn a_gate_that_goes_down_tells_which_outcomes_are_left() {
    let bed = Bed::with(|settings| settings.grace = Duration::from_millis(100)).await;
    let say = Say::new(201, "the answer");
    let deny = |bed: &Bed| bed.store.denies(Down::Outcomes);
    let answer = answers(&bed, Sender::Task, say, deny).await;
    assert_eq!(answer.header("semel-recorded"), Some("pending"));
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
    let deny = |bed: &Bed| bed.store.denies(Down::Outcomes);
    let answer = answers(&bed, Sender::Task, say, deny).await;
    assert_eq!(answer.header("semel-recorded"), Some("pending"));
    let (served, _handler, store) = bed.stop();
    store.is(Down::Nothing);
    assert_eq!(
        within("the end", served).await.unwrap(),
        Unfinished::default()
    );
    store.outcomes(1).await;
}
