//! Routes whose handler records success itself; and runs that were overtaken.

use crate::log_lines;
use crate::pending::answers;
use crate::support::prelude::*;
use semel_gate::letters::StoredDelivery;

async fn completing() -> Bed {
    Bed::route(|route| {
        route.completes = Completes::Handler;
        route.final_statuses = vec![422..=422];
    })
    .await
}

#[tokio::test]
async fn the_first_sender_hears_what_the_handler_recorded_whatever_it_answered() {
    for sender in SENDERS {
        for act in [
            Act::Hold(Say::new(200, "not recorded").header("set-cookie", "a=b")),
            Act::Hold(Say::new(500, "not recorded")),
        ] {
            let bed = completing().await;
            let first = bed.begin_with(act, sender.sends("n", "{}")).await;
            bed.complete(Outcome::new(201, "recorded")).await;
            let first = bed.go(first).await;
            first.is(201).says("recorded").lacks("set-cookie");
            bed.deliver(sender, "n")
                .await
                .is_replay(if sender == Sender::Api { 201 } else { 200 });
            assert_eq!(bed.runs(), 1);
        }
    }
}

#[tokio::test]
async fn a_handler_that_is_cut_after_it_recorded_has_succeeded() {
    let bed = completing().await;
    let act = Act::HoldAndClose;
    let first = bed.begin_with(act, Sender::Task.sends("n", "{}")).await;
    bed.complete(Outcome::new(200, "recorded")).await;
    bed.handler.go();
    assert_eq!(first.await.unwrap().text(), "recorded");
}

#[tokio::test]
async fn an_answer_without_completing_is_in_doubt_and_may_run_again() {
    for sender in SENDERS {
        let bed = completing().await;
        for (doubts, status) in [(1, 200), (2, 201), (3, 204)] {
            bed.handler.answers(Say::new(status, ""));
            let reply = refused(&bed, sender.sends("n", "{}"), 502, "not-completed").await;
            reply.tells("is unknown");
            let record = bed.record().await;
            assert_eq!((record.state, record.in_doubt), (State::Waiting, true));
            assert_eq!(record.doubts, doubts);
            let line = format!("semel_runs_not_completed_total{{route=\"work\"}} {doubts}\n");
            bed.counts(&line).await;
        }
        assert_eq!(bed.runs(), 3);
    }
}

#[tokio::test]
async fn an_answer_without_completing_is_parked_where_doubt_is() {
    for sender in BROKERS {
        let bed = Bed::route(|route| {
            route.completes = Completes::Handler;
            route.in_doubt = InDoubt::Park;
        })
        .await;
        bed.handler.says(200);
        for _ in 0..2 {
            bed.deliver(sender, "n").await.is(200);
            assert_eq!(bed.reasons().await, [Reason::Parked]);
        }
        assert_eq!(bed.record().await.state, State::Parked);
        let letters = bed.letters().await;
        let kept = StoredDelivery::decode(&letters[0].delivery).unwrap();
        let why = "the handler answered 200 and did not complete the run: whether it took effect is unknown";
        assert_eq!(kept.head.why, why);
        bed.counts("semel_runs_not_completed_total{route=\"work\"} 1\n")
            .await;
        assert_eq!(bed.runs(), 1);
    }
}

#[tokio::test]
async fn an_api_client_whose_work_is_parked_for_it_is_counted_too() {
    let bed = Bed::route(|route| {
        route.completes = Completes::Handler;
        route.in_doubt = InDoubt::Park;
    })
    .await;
    bed.handler.says(200);
    for _ in 0..2 {
        bed.api("n").await.is_problem(409, "parked");
        bed.counts("semel_runs_not_completed_total{route=\"work\"} 1\n")
            .await;
    }
}

#[tokio::test]
async fn an_answer_without_completing_that_is_read_later_is_counted_then() {
    for sender in SENDERS {
        let bed = completing().await;
        let say = Say::new(200, "done");
        let down = |store: &Switch| store.denies(Down::OutcomesAndLooks);
        let answer = answers(&bed, sender, say, down).await;
        answer.is_problem(503, "outcome-unread");
        bed.counts("semel_runs_not_completed_total{route=\"work\"} 0\n")
            .await;
        bed.store.is(Down::Nothing);
        bed.until_counted("semel_runs_not_completed_total{route=\"work\"} 1\n")
            .await;
    }
}

#[tokio::test]
async fn the_log_warns_of_it_once_an_hour() {
    log_lines::listen();
    let bed = Bed::route(|route| {
        route.completes = Completes::Handler;
        route.name = "completing".into();
    })
    .await;
    for _ in 0..3 {
        bed.handler.says(200);
        refused(&bed, Sender::Task.sends("n", "{}"), 502, "not-completed").await;
    }
    let lines = log_lines::heard("semel_gate::flow", "route", "completing");
    assert_eq!(lines.len(), 1, "{lines:?}");
    assert_eq!(lines[0]["level"], "WARN");
    assert_eq!(lines[0]["key"], bed.key().await.to_string());
}

#[tokio::test]
async fn a_final_answer_without_completing_fails_for_good() {
    let bed = completing().await;
    bed.handler.says(422);
    bed.task("n").await.is(200);
    assert_eq!(bed.record().await.state, State::Failed);
    assert_eq!(bed.letters().await.len(), 1);
}

#[tokio::test]
async fn a_run_that_was_overtaken_is_not_acknowledged() {
    for sender in SENDERS {
        let bed = Bed::new().await;
        let act = Act::Hold(Say::new(200, "too late"));
        let first = bed.begin_with(act, sender.sends("n", "{}")).await;
        let key = bed.key().await;
        let acted = bed
            .store
            .kept()
            .release_by_operator(&key, "")
            .await
            .unwrap();
        bed.go(first).await.is_pause(409, "stale");
        assert_eq!(bed.record().await.state, State::Waiting, "{acted:?}");
        assert_eq!(bed.letters().await, []);
    }
}
