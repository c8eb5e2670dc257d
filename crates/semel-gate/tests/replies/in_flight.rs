//! In flight elsewhere, and tried again too soon.

use crate::support::prelude::*;
use semel::work::Backoff;

const WAIT: Duration = Duration::from_millis(150);

async fn impatient() -> Bed {
    Bed::terms(|terms| terms.wait = WAIT).await
}

/// A failure is tried again after an hour.
fn pausing(route: &mut Route) {
    let [first, max] = [Duration::from_secs(3600); 2];
    route.backoff = Backoff { first, max };
}

/// Neither 429 nor 503: they would slow down a whole queue.
async fn hears_409_after_waiting(sender: Sender) {
    let bed = impatient().await;
    let first = bed.hold(sender.sends("n", "{}")).await;
    let asked = Instant::now();
    let answer = bed.deliver(sender, "n").await;
    assert!(asked.elapsed() >= WAIT, "it did not wait");
    answer.is_pause(409, "busy");
    bed.go(first).await.is(200);
    assert_eq!(bed.runs(), 1);
}

#[tokio::test]
async fn an_api_duplicate_of_a_running_one_waits_then_hears_409() {
    hears_409_after_waiting(Sender::Api).await;
}

#[tokio::test]
async fn a_cloud_tasks_duplicate_of_a_running_one_waits_then_hears_409() {
    hears_409_after_waiting(Sender::Task).await;
}

#[tokio::test]
async fn a_pubsub_duplicate_of_a_running_one_waits_then_hears_409() {
    hears_409_after_waiting(Sender::Push).await;
    hears_409_after_waiting(Sender::Event).await;
}

#[tokio::test]
async fn a_duplicate_at_another_gate_waits_then_hears_409() {
    for sender in SENDERS {
        let here = impatient().await;
        let handler = Handler::start().await;
        let there = Bed::on(Arc::clone(&here.store), handler, |settings| {
            terms_of(&mut settings.routes[0], |terms| terms.wait = WAIT);
        })
        .await;
        let first = here.hold(sender.sends("n", "{}")).await;
        there.deliver(sender, "n").await.is_pause(409, "busy");
        here.go(first).await.is(200);
        there.deliver(sender, "n").await.is_replay(200);
        assert_eq!((here.runs(), there.runs()), (1, 0));
    }
}

#[tokio::test]
async fn a_duplicate_that_waits_gets_the_answer_of_the_running_one() {
    for sender in SENDERS {
        let bed = Bed::new().await;
        let first = bed.hold(sender.sends("n", "{}")).await;
        let second = bed.begin(sender.sends("n", "{}"));
        bed.go(first).await.is(200);
        second.await.unwrap().is_replay(200);
        assert_eq!(bed.runs(), 1);
    }
}

#[tokio::test]
async fn a_retry_before_it_is_due_hears_409() {
    for sender in [Sender::Task, Sender::Push, Sender::Event] {
        let bed = Bed::route(pausing).await;
        bed.handler.says(500);
        bed.deliver(sender, "n").await.is(500);
        let answer = refused(&bed, sender.sends("n", "{}"), 409, "not-yet").await;
        let after = answer.retry_after();
        assert!((1700..=3600).contains(&after), "{after}");
        assert_eq!(bed.runs(), 1);
    }
}

#[tokio::test]
async fn an_api_retry_before_it_is_due_hears_409() {
    let bed = Bed::route(|route| {
        pausing(route);
        terms_of(route, |terms| terms.timeout = Duration::from_millis(100));
    })
    .await;
    bed.handler.will(Act::Hang);
    bed.api("k").await.is(504);
    bed.api("k").await.is_pause(409, "not-yet");
    assert_eq!(bed.runs(), 1);
}
