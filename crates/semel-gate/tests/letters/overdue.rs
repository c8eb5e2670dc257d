//! Unfinished work that no sender delivers any more: its letter is for an operator, and the work still runs.

use super::{Aging, LEASE};
use crate::log_lines;
use crate::support::prelude::*;
use semel::clock::{Clock, SystemClock, Time};
use semel_gate::settings::SenderAttempts;

const MINUTE: Duration = Duration::from_secs(60);
const HOUR: Duration = Duration::from_secs(3600);

/// An early attempt of a sender that counts.
fn early(name: &str) -> Ask {
    Sender::Task
        .sends(name, "{}")
        .header("X-CloudTasks-TaskRetryCount", "0")
}

/// A route whose sender pauses at most this long between two attempts.
fn paused(gap: Duration) -> impl Fn(&mut Settings) + Clone {
    move |settings| {
        let route = &mut settings.routes[0];
        route.in_doubt = InDoubt::Retry;
        terms_of(route, |terms| {
            terms.gap = Some(gap);
            terms.retention = 100 * HOUR;
            terms.sender_attempts = SenderAttempts {
                most: Some(100),
                declared: true,
            };
        });
    }
}

/// The same with a keeper.
fn keeping(gap: Duration) -> impl Fn(&mut Settings) + Clone {
    move |settings| {
        paused(gap)(settings);
        settings.reconcile_every = Duration::from_millis(10);
    }
}

/// A gate on a store whose clock is an hour behind: what it writes is an hour old.
async fn an_hour_ago(change: impl FnOnce(&mut Settings)) -> Aging {
    let micros = u64::try_from(HOUR.as_micros()).unwrap();
    Aging::at(Time(SystemClock::new().wall().0 - micros), change).await
}

async fn counts(bed: &Bed, alarmed: u32, for_operator: u32) {
    let alarmed = format!("semel_letters_alarmed_total{{route=\"work\"}} {alarmed}\n");
    bed.counts(&alarmed).await;
    let waiting = format!("semel_letters_for_operator{{route=\"work\"}} {for_operator}\n");
    bed.counts(&waiting).await;
}

#[tokio::test]
async fn silence_parks_nothing() {
    for act in [Act::Hang, Act::Close, Act::Say(Say::new(500, "later"))] {
        let one = Aging::with(|settings| {
            keeping(MINUTE)(settings);
            terms_of(&mut settings.routes[0], |terms| {
                terms.deadline = Some(Duration::from_millis(2100));
            });
        })
        .await;
        let reply = one.begin_with(act.clone(), early("n")).await;
        drop(reply.await.unwrap());
        assert_eq!(one.reasons().await, [Reason::Unfinished]);
        let state = one.record().await.state;
        one.pass(50 * HOUR);
        one.store.reconciled().await;
        assert_eq!(one.record().await.state, state, "{act:?}");
        let other = one.another(paused(MINUTE)).await;
        other.ask(early("n")).await.is(200);
        assert_eq!(other.runs(), 1);
        one.store.reconciled().await;
        assert_eq!(one.letters().await, []);
    }
}

#[tokio::test]
async fn an_operator_is_alerted_once_when_the_next_delivery_is_overdue() {
    let one = an_hour_ago(paused(2 * HOUR)).await;
    one.handler.says(500);
    one.ask(early("n")).await.is(500);
    let patient = one.another(keeping(2 * HOUR)).await;
    one.store.reconciled().await;
    counts(&patient, 0, 0).await;
    assert_eq!(patient.listed().await[0]["for_operator"], false);
    drop(patient.stop().0.await.unwrap());
    for alarms in [1, 0] {
        let keeper = one.another(keeping(HOUR / 2)).await;
        // A round that alerts has ended, and another one.
        one.store.reconciled().await;
        one.store.reconciled().await;
        counts(&keeper, alarms, 1).await;
        assert_eq!(keeper.listed().await[0]["for_operator"], true);
        drop(keeper.stop().0.await.unwrap());
    }
    one.ask(early("n")).await.is(200);
    assert_eq!(one.letters().await, []);
}

#[tokio::test]
async fn a_run_that_has_not_lapsed_is_not_overdue() {
    let one = an_hour_ago(|settings| {
        paused(MINUTE)(settings);
        terms_of(&mut settings.routes[0], |terms| {
            terms.sender_attempts.most = Some(1);
            terms.lease = 2 * HOUR;
        });
    })
    .await;
    let held = one.hold(early("n")).await;
    let keeper = one.another(keeping(MINUTE)).await;
    one.store.reconciled().await;
    counts(&keeper, 0, 0).await;
    one.go(held).await.is(200);
}

#[tokio::test]
async fn a_run_that_lapsed_is_overdue() {
    let one = an_hour_ago(|settings| {
        paused(MINUTE)(settings);
        terms_of(&mut settings.routes[0], |terms| {
            terms.sender_attempts.most = Some(1);
        });
    })
    .await;
    let _held = one.hold(early("n")).await;
    one.pass(LEASE);
    let keeper = one.another(keeping(MINUTE)).await;
    one.store.reconciled().await;
    counts(&keeper, 1, 1).await;
}

#[tokio::test]
async fn the_log_names_one_letter_of_a_route_an_hour() {
    log_lines::listen();
    let name = |settings: &mut Settings| settings.routes[0].name = "overdue".into();
    let one = an_hour_ago(|settings| {
        paused(MINUTE)(settings);
        name(settings);
    })
    .await;
    for work in ["a", "b"] {
        one.handler.says(500);
        one.ask(early(work)).await.is(500);
    }
    let keeper = one
        .another(|settings| {
            keeping(MINUTE)(settings);
            name(settings);
        })
        .await;
    keeper
        .until_counted("semel_letters_alarmed_total{route=\"overdue\"} 2\n")
        .await;
    let lines = log_lines::heard("semel_gate::gate", "route", "overdue");
    assert_eq!(lines.len(), 1, "{lines:?}");
    assert_eq!(lines[0]["level"], "ERROR");
    let ids: Vec<_> = one
        .letters()
        .await
        .iter()
        .map(|letter| Value::from(letter.id.to_string()))
        .collect();
    assert!(ids.contains(&lines[0]["letter"]), "{lines:?}");
    assert!(lines[0]["key"].is_string(), "{lines:?}");
}
