//! A sender without a limit on its attempts: its work has a letter once half of the time is over for which it delivers.

use super::once::closed_port;
use super::{Declared, one_slot, push, task, unfinished, unkept};
use crate::letters::Aging;
use crate::support::prelude::*;
use jiff::{SignedDuration, Timestamp};
use semel::clock::{Clock, SystemClock};
use semel_gate::settings::RecordKeeping;

const HOUR: Duration = Duration::from_secs(3600);

const TASK: Declared = Declared::new(Source::CloudTasks, "cloud-tasks", None, task);
const PUSH: Declared = Declared::new(Source::PubSub, "pubsub", None, push);

fn delivers_for(time: Option<Duration>) -> impl Fn(&mut Route) {
    move |route| terms_of(route, |terms| terms.delivers_for = time)
}

/// A push of a message that was published this long ago.
fn published(ago: Duration) -> Ask {
    published_as("n", "{}", ago)
}

#[expect(
    clippy::disallowed_methods,
    reason = "the gate compares publish times with the wall clock"
)]
fn published_as(id: &str, body: &str, ago: Duration) -> Ask {
    let time = Timestamp::now() - SignedDuration::try_from(ago).unwrap();
    let ask = (PUSH.form)(id, body);
    let mut envelope: Value = serde_json::from_slice(&ask.body).unwrap();
    envelope["message"]["publishTime"] = time.to_string().into();
    ask.body(envelope.to_string())
}

#[tokio::test]
async fn failures_keep_no_letter_while_the_sender_delivers() {
    for time in [None, Some(2 * HOUR)] {
        let bed = PUSH.bed(delivers_for(time)).await;
        bed.handler.says(500).will(Act::Close);
        bed.ask(published(HOUR - Duration::from_secs(60)))
            .await
            .is(500);
        bed.ask(published(HOUR - Duration::from_secs(60)))
            .await
            .is(502);
        assert_eq!(bed.letters().await, [], "{time:?}");
        assert_eq!(bed.store.letter_calls(), 0);
    }
}

#[tokio::test]
async fn a_failure_of_an_old_message_keeps_a_letter() {
    let bed = PUSH.bed(delivers_for(Some(2 * HOUR))).await;
    bed.handler.says(500);
    bed.ask(published(HOUR)).await.is(500);
    unfinished(&bed.letters().await, false);
    bed.ask(published(HOUR)).await.is(200);
    assert_eq!(bed.letters().await, []);
}

#[tokio::test]
async fn a_refusal_of_an_old_message_keeps_a_letter() {
    let bed = PUSH
        .bed(|route| {
            delivers_for(Some(2 * HOUR))(route);
            one_slot(route);
        })
        .await;
    let held = bed.hold(PUSH.sends("other")).await;
    bed.ask(published(HOUR)).await.is_pause(429, "full");
    unfinished(&bed.letters().await, false);
    bed.go(held).await.is(200);
}

#[tokio::test]
async fn a_failure_of_work_whose_record_is_old_keeps_a_letter() {
    for (age, letters) in [(HOUR / 2, 0), (HOUR, 1)] {
        let born = SystemClock::new().wall().0 - u64::try_from(age.as_micros()).unwrap();
        let bed = Aging::at(semel::clock::Time(born), |settings| {
            let route = &mut settings.routes[0];
            TASK.declares(route);
            delivers_for(Some(2 * HOUR))(route);
            route.in_doubt = InDoubt::Retry;
        })
        .await;
        bed.handler.says(500);
        bed.ask(TASK.sends("n")).await.is(500);
        assert_eq!(bed.letters().await.len(), letters, "{age:?}");
    }
}

#[tokio::test]
async fn a_record_of_unfinished_work_is_kept_while_the_sender_delivers() {
    const DAYS: Duration = Duration::from_secs(20 * 24 * 3600);
    let closed_port = closed_port().await;
    for is_reached in [true, false] {
        let bed = Aging::with(|settings| {
            let route = &mut settings.routes[0];
            TASK.declares(route);
            delivers_for(Some(2 * DAYS))(route);
            route.in_doubt = InDoubt::Retry;
            if !is_reached {
                route.upstream = upstream(closed_port);
            }
        })
        .await;
        bed.handler.says(500);
        let status = if is_reached { 500 } else { 502 };
        bed.ask(TASK.sends("n")).await.is(status);
        let born = bed.record().await.born;
        bed.pass(DAYS);
        bed.ask(TASK.sends("n")).await;
        assert_eq!(bed.record().await.born, born, "{is_reached}");
    }
}

#[tokio::test]
async fn the_last_tenth_of_its_time_may_use_the_reserved_quarter() {
    let bed = PUSH
        .bed(|route| {
            delivers_for(Some(10 * HOUR))(route);
            route.letters.count_max = 4;
        })
        .await;
    for (number, ago, letters, lost) in [
        (1, 5, 1, 0),
        (2, 5, 2, 0),
        (3, 5, 3, 0),
        (4, 5, 3, 0),
        (5, 9, 4, 0),
        (6, 9, 4, 1),
    ] {
        bed.handler.says(500);
        let ask = published_as(&format!("n-{number}"), "{}", ago * HOUR);
        bed.ask(ask).await.is(500);
        assert_eq!(bed.letters().await.len(), letters, "{number}");
        unkept(&bed, lost).await;
    }
}

#[tokio::test]
async fn old_other_work_under_an_unfinished_key_is_refused_and_kept() {
    let bed = PUSH.bed(delivers_for(Some(2 * HOUR))).await;
    let held = bed.hold(PUSH.sends("n")).await;
    for (ago, reasons) in [
        (HOUR / 2, &[][..]),
        (HOUR, &[Reason::Mismatched]),
        (HOUR, &[Reason::Mismatched]),
    ] {
        let ask = published_as("n", "other", ago);
        refused(&bed, ask, 409, "unsettled").await;
        assert_eq!(bed.reasons().await, reasons);
    }
    bed.go(held).await.is(200);
}

#[tokio::test]
async fn without_a_time_the_number_of_its_attempt_tells_the_age_of_a_refused_delivery() {
    let bed = TASK
        .bed(|route| {
            delivers_for(Some(2 * HOUR))(route);
            keyed_by(route, "/order_id");
        })
        .await;
    let order = |cents: u32, attempt: u32| {
        let payload = json!({"order_id": "A-1", "cents": cents}).to_string();
        let retries = (attempt - 1).to_string();
        let ask = (TASK.form)(&format!("task-{cents}"), &payload);
        let ask = ask.header("Content-Type", "application/json");
        ask.without("X-CloudTasks-TaskRetryCount")
            .header("X-CloudTasks-TaskRetryCount", &retries)
    };
    let held = bed.hold(order(1, 1)).await;
    for (attempt, reasons) in [(14, &[][..]), (15, &[Reason::Mismatched])] {
        refused(&bed, order(2, attempt), 409, "unsettled").await;
        assert_eq!(bed.reasons().await, reasons, "attempt {attempt}");
    }
    bed.go(held).await.is(200);
}

#[tokio::test]
async fn a_rejected_event_without_a_time_is_kept() {
    const EVENT: Declared = Declared::new(Source::CloudEvents, "cloudevents", None, super::event);
    let bed = EVENT
        .bed(|route| {
            delivers_for(Some(2 * HOUR))(route);
            keyed_by(route, "/order_id");
            route.on_invalid = OnInvalid::Reject;
        })
        .await;
    bed.ask((EVENT.form)("e", "{}")).await.is(400);
    assert_eq!(bed.reasons().await, [Reason::Invalid]);
}

#[tokio::test]
async fn an_api_client_and_a_route_without_records_keep_none() {
    let old = |route: &mut Route| {
        terms_of(route, |terms| {
            terms.delivers_for = Some(Duration::ZERO);
            terms.sender_attempts.most = Some(1);
        });
    };
    let api = Bed::route(old).await;
    api.handler.says(500);
    api.api("n").await.is(500);
    let stateless = PUSH
        .bed(|route| {
            old(route);
            route.record = RecordKeeping::None;
        })
        .await;
    stateless.handler.says(500);
    stateless.ask(published(2 * HOUR)).await.is(500);
    for bed in [api, stateless] {
        assert_eq!((bed.runs(), bed.store.letter_calls()), (1, 0));
        assert_eq!(bed.letters().await, []);
    }
}
