//! Failed, may be retried; and what is recorded by default.

use crate::support::prelude::*;

#[tokio::test]
async fn an_api_client_hears_the_handlers_answer_and_the_next_one_runs() {
    let bed = Bed::new().await;
    bed.handler.says(500);
    bed.api("k").await.is(500).says("said 500");
    bed.api("k").await.is(200);
    assert_eq!(bed.runs(), 2);
}

#[tokio::test]
async fn answers_about_this_moment_or_this_caller_are_not_recorded_for_api_clients() {
    for status in [
        401, 403, 404, 408, 409, 423, 425, 429, 500, 501, 502, 503, 504, 599,
    ] {
        let bed = Bed::new().await;
        bed.handler.says(status);
        bed.api("k").await.is(status);
        assert_eq!(bed.record().await.state, State::Waiting, "{status}");
        bed.api("k").await.is(200);
        assert_eq!(bed.runs(), 2, "{status}");
    }
}

#[tokio::test]
async fn an_unrecorded_api_answer_may_be_retried_at_once_whatever_the_backoff() {
    let bed = Bed::route(|route| {
        route.backoff.first = Duration::from_secs(60);
        route.backoff.max = Duration::from_secs(60);
    })
    .await;
    bed.handler.says(429);
    bed.api("k").await.is(429);
    bed.api("k").await.is(200);
}

#[tokio::test]
async fn other_refusals_are_recorded_as_failed_for_api_clients() {
    for status in [400, 402, 405, 406, 410, 411, 412, 413, 415, 418, 422, 451] {
        let bed = Bed::new().await;
        bed.handler.says(status);
        bed.api("k").await.is(status);
        assert_eq!(bed.record().await.state, State::Failed, "{status}");
        bed.api("k").await.is_replay(status);
        assert_eq!(bed.runs(), 1, "{status}");
        assert_eq!(bed.letters().await, []);
    }
}

#[tokio::test]
async fn a_broker_hears_the_handlers_own_refusal_and_delivers_again() {
    for sender in BROKERS {
        let bed = Bed::new().await;
        for status in [400, 404, 410, 422, 500, 503] {
            bed.handler.says(status);
            let answer = bed.deliver(sender, "n").await;
            answer.is(status).says(&format!("said {status}"));
            assert_eq!(bed.record().await.state, State::Waiting);
        }
        bed.deliver(sender, "n").await.is(200);
        assert_eq!(bed.record().await.attempts, 7);
        assert_eq!(bed.letters().await, []);
    }
}

#[tokio::test]
async fn the_handlers_retry_after_reaches_the_broker() {
    for sender in BROKERS {
        let bed = Bed::new().await;
        bed.handler
            .answers(Say::new(429, "slowly").header("retry-after", "37"));
        let answer = bed.deliver(sender, "n").await;
        answer.is(429).has("retry-after", "37");
    }
}

#[tokio::test]
async fn a_redirect_is_never_forwarded_to_a_broker() {
    for sender in BROKERS {
        for status in [301, 302, 303, 304, 307, 308] {
            let bed = Bed::new().await;
            bed.handler
                .answers(Say::new(status, "").header("location", "http://elsewhere/"));
            let answer = refused(&bed, sender.sends("n", "{}"), 502, "redirect").await;
            answer.lacks("location");
            assert_eq!(bed.record().await.state, State::Waiting);
            bed.deliver(sender, "n").await.is(200);
        }
    }
}

#[tokio::test]
async fn without_an_answer_the_sender_hears_502_or_504() {
    for sender in SENDERS {
        let bed = Bed::terms(|terms| terms.timeout = Duration::from_millis(150)).await;
        bed.handler.will(Act::Close).will(Act::Hang);
        refused(&bed, sender.sends("n", "{}"), 502, "handler-unreachable").await;
        refused(&bed, sender.sends("n", "{}"), 504, "handler-timeout").await;
        bed.deliver(sender, "n").await.is(200);
        assert_eq!(bed.runs(), 3);
    }
}

#[tokio::test]
async fn everyone_attached_hears_the_same_failure_and_nobody_runs_it_again() {
    let bed = Bed::new().await;
    let act = Act::Hold(Say::new(500, "broken"));
    let first = bed.begin_with(act, Sender::Task.sends("n", "{}")).await;
    let (one_too_many, attached) = bed.crowd(&Sender::Task.sends("n", "{}")).await;
    one_too_many.is_problem(409, "busy");
    bed.go(first).await.is(500);
    for other in attached {
        let answer = other.await.unwrap();
        answer.is(500).says("broken");
    }
    assert_eq!(bed.runs(), 1);
}
