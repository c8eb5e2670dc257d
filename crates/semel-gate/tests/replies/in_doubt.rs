//! Answers of a handler where doubt is parked: only what the route lists says that nothing happened.

use crate::support::prelude::*;

async fn parking() -> Bed {
    Bed::route(|route| {
        route.in_doubt = InDoubt::Park;
        route.undone_statuses = vec![409..=409, 503..=503];
        route.final_statuses = vec![422..=422];
    })
    .await
}

#[tokio::test]
async fn a_brokers_delivery_is_parked_by_every_answer_that_is_not_a_success() {
    for sender in BROKERS {
        for status in [301, 304, 400, 404, 408, 429, 500, 501, 502, 504, 599] {
            let bed = parking().await;
            bed.handler.says(status);
            for _ in 0..2 {
                bed.deliver(sender, "n").await.is(200);
            }
            assert_eq!(bed.runs(), 1, "{status}");
            assert_eq!(bed.record().await.state, State::Parked, "{status}");
            let letters = bed.letters().await;
            assert_eq!(letters.len(), 1, "{status}");
            assert_eq!(letters[0].reason, Reason::Parked);
            assert_eq!(letters[0].fence, bed.record().await.fence);
        }
    }
}

#[tokio::test]
async fn an_api_client_hears_that_it_is_parked_and_nothing_runs_again() {
    for status in [401, 403, 404, 408, 423, 425, 429, 500, 501, 502, 504, 599] {
        let bed = parking().await;
        bed.handler.says(status);
        for _ in 0..2 {
            bed.api("k").await.is_problem(409, "parked");
        }
        assert_eq!(bed.runs(), 1, "{status}");
        assert_eq!(bed.record().await.state, State::Parked, "{status}");
        assert_eq!(bed.letters().await, []);
    }
}

#[tokio::test]
async fn what_an_api_client_gets_recorded_is_settled_as_ever() {
    for (status, state) in [
        (201, State::Succeeded),
        (301, State::Succeeded),
        (400, State::Failed),
        (422, State::Failed),
    ] {
        let bed = parking().await;
        bed.handler.says(status);
        bed.api("k").await.is(status);
        bed.api("k").await.is_replay(status);
        assert_eq!(bed.record().await.state, state, "{status}");
        assert_eq!(bed.runs(), 1, "{status}");
    }
}

#[tokio::test]
async fn an_answer_that_is_listed_as_undone_may_run_again() {
    for sender in SENDERS {
        for status in [409, 503] {
            let bed = parking().await;
            bed.handler.says(status);
            bed.deliver(sender, "n").await.is(status);
            assert_eq!(bed.record().await.state, State::Waiting, "{status}");
            bed.deliver(sender, "n").await.is(200);
            assert_eq!(bed.runs(), 2, "{status}");
            assert_eq!(bed.letters().await, []);
        }
    }
}

#[tokio::test]
async fn an_answer_that_is_listed_as_final_fails_for_good() {
    for sender in BROKERS {
        let bed = parking().await;
        bed.handler.says(422);
        bed.deliver(sender, "n").await.is(200);
        assert_eq!(bed.record().await.state, State::Failed);
        assert_eq!(bed.letters().await[0].reason, Reason::Failed);
    }
}

#[tokio::test]
async fn an_answered_failure_is_not_in_doubt_where_the_handler_completes() {
    let bed = Bed::route(|route| {
        route.in_doubt = InDoubt::Park;
        route.completes = Completes::Handler;
    })
    .await;
    bed.handler.says(500);
    bed.task("n").await.is(500);
    assert_eq!(bed.record().await.state, State::Waiting);
    assert_eq!(bed.letters().await, []);
}
