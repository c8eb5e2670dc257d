//! Attempts used up, or in doubt where doubt is parked.

use crate::support::prelude::*;

async fn two_attempts() -> Bed {
    Bed::route(|route| route.max_attempts = 2).await
}

async fn parking() -> Bed {
    Bed::route(|route| {
        route.in_doubt = InDoubt::Park;
        terms_of(route, |terms| terms.timeout = Duration::from_millis(150));
    })
    .await
}

#[tokio::test]
async fn an_api_client_hears_409_when_attempts_are_used_up() {
    let bed = two_attempts().await;
    bed.handler.says(500).says(500);
    bed.api("k").await.is(500);
    for _ in 0..2 {
        bed.api("k").await.is_problem(409, "parked");
    }
    assert_eq!(bed.record().await.state, State::Parked);
    assert_eq!((bed.runs(), bed.letters().await.len()), (2, 0));
}

#[tokio::test]
async fn a_brokers_delivery_becomes_one_letter_when_attempts_are_used_up() {
    for sender in BROKERS {
        let bed = two_attempts().await;
        bed.handler.says(500).says(500);
        bed.deliver(sender, "n").await.is(500);
        assert_eq!(bed.letters().await, []);
        for _ in 0..2 {
            bed.deliver(sender, "n").await.is(200);
            assert_eq!(bed.reasons().await, [Reason::Parked]);
        }
        assert_eq!(bed.runs(), 2);
    }
}

#[tokio::test]
async fn an_api_client_hears_409_when_doubt_is_parked() {
    for act in [Act::Hang, Act::Close, Act::CutHead, Act::CutBody] {
        let bed = parking().await;
        bed.handler.will(act.clone());
        for _ in 0..2 {
            bed.api("k").await.is_problem(409, "parked");
        }
        assert_eq!(bed.record().await.state, State::Parked, "{act:?}");
        assert_eq!(bed.runs(), 1, "{act:?}");
    }
}

#[tokio::test]
async fn a_brokers_delivery_becomes_one_letter_when_doubt_is_parked() {
    for sender in BROKERS {
        let bed = parking().await;
        bed.handler.will(Act::Close);
        for _ in 0..2 {
            bed.deliver(sender, "n").await.is(200);
            assert_eq!(bed.reasons().await, [Reason::Parked]);
        }
        assert_eq!(bed.record().await.state, State::Parked);
        assert_eq!(bed.runs(), 1);
    }
}

// === Limits on repeating ===

#[tokio::test]
async fn work_is_parked_when_too_many_of_its_runs_ended_in_doubt() {
    for sender in BROKERS {
        let bed = Bed::terms(|terms| terms.max_in_doubt = 2).await;
        bed.handler.will(Act::Close).says(500).says(200);
        bed.deliver(sender, "n").await.is(502);
        // An answer is no doubt, so it is not counted.
        bed.deliver(sender, "n").await.is(500);
        // Its handler does other work.
        bed.handler.will(Act::CutBody);
        bed.api("other").await.is(200);
        assert_eq!(bed.letters().await, []);
        for _ in 0..2 {
            bed.deliver(sender, "n").await.is(200);
            assert_eq!(bed.reasons().await, [Reason::Parked]);
        }
        assert_eq!(bed.runs(), 4);
    }
}

#[tokio::test]
async fn an_api_client_hears_409_when_too_many_runs_ended_in_doubt() {
    let bed = Bed::terms(|terms| terms.max_in_doubt = 2).await;
    bed.handler.will(Act::Close).says(200).will(Act::Close);
    bed.api("k").await.is(502);
    bed.api("other").await.is(200);
    for _ in 0..2 {
        bed.api("k").await.is_problem(409, "parked");
    }
    assert_eq!((bed.runs(), bed.letters().await.len()), (3, 0));
}

#[tokio::test]
async fn a_gate_that_died_counts_among_the_runs_in_doubt() {
    let bed = Bed::terms(|terms| terms.max_in_doubt = 2).await;
    bed.handler.will(Act::Close);
    bed.task("n").await.is(502);
    let payload = bed.record().await.fingerprint;
    bed.claims(bed.key().await, payload, Duration::from_millis(1))
        .await;
    bed.api("other").await.is(200);
    bed.task("n").await.is(200);
    assert_eq!(bed.reasons().await, [Reason::Parked]);
    assert_eq!(bed.runs(), 2);
}

#[tokio::test]
async fn old_work_is_parked_after_five_runs_and_young_work_is_not() {
    const HOUR: Duration = Duration::from_secs(3600);
    for (park_after, fifth) in [(Duration::ZERO, 200), (HOUR, 500)] {
        let bed = Bed::terms(|terms| terms.park_after = Some(park_after)).await;
        for status in [500, 500, 500, 500, fifth] {
            bed.handler.says(500);
            bed.task("n").await.is(status);
        }
        let kept: &[Reason] = if fifth == 200 { &[Reason::Parked] } else { &[] };
        assert_eq!(bed.reasons().await, kept, "{park_after:?}");
        assert_eq!(bed.runs(), 5);
    }
}

/// What is parked must be kept: where it cannot be, it stays with its sender and runs again.
#[tokio::test]
async fn no_limit_parks_while_there_is_no_room_for_letters() {
    let bed = Bed::route(|route| {
        route.letters.count_max = 0;
        terms_of(route, |terms| {
            (terms.max_in_doubt, terms.park_after) = (1, Some(Duration::ZERO));
        });
    })
    .await;
    for _ in 0..6 {
        bed.handler.will(Act::Close);
        bed.task("n").await.is(502);
    }
    bed.task("n").await.is(200);
    assert_eq!((bed.runs(), bed.letters().await.len()), (7, 0));
}
