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
