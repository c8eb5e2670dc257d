//! Letters are bounded: what does not fit stays with its sender.

use super::Aging;
use crate::log_lines;
use crate::support::prelude::*;
use semel_gate::settings::LetterLimits;

fn at_most(count_max: u64) -> impl FnOnce(&mut Settings) {
    move |settings| {
        settings.routes[0].letters.count_max = count_max;
        settings.reconcile_every = Duration::from_millis(10);
    }
}

fn nameless(n: u32) -> Ask {
    Ask::post("/work")
        .header("X-CloudTasks-QueueName", "orders")
        .body(format!("{n}"))
}

#[tokio::test]
async fn what_does_not_fit_is_not_acknowledged_and_not_kept() {
    for sender in BROKERS {
        let bed = Aging::with(at_most(2)).await;
        for name in ["one", "two"] {
            bed.handler.says(500);
            bed.deliver(sender, name).await.is(200);
        }
        bed.handler.says(500);
        for _ in 0..2 {
            let answer = refused(&bed, sender.sends("three", "{}"), 409, "letters-full").await;
            answer.has("retry-after", "60");
        }
        assert_eq!((bed.letters().await.len(), bed.runs()), (2, 3));
        // What is kept already is acknowledged as ever.
        bed.deliver(sender, "one").await.is(200);
        let counted = "semel_letters_refused_total{route=\"work\",reason=\"parked\"} 2";
        bed.counts(counted).await;
    }
}

#[tokio::test]
async fn the_operator_is_told_once_a_minute() {
    log_lines::listen();
    let bed = Bed::route(|route| {
        route.name = "alarmed".into();
        route.letters.count_max = 1;
    })
    .await;
    for n in 0..3 {
        bed.ask(nameless(n)).await.is_problem(409, "letters-full");
    }
    let lines = log_lines::heard("semel_gate::letters::keep", "route", "alarmed");
    assert_eq!(lines.len(), 1, "{lines:?}");
    assert_eq!(lines[0]["level"], "ERROR");
    let message = lines[0]["message"].as_str().unwrap();
    assert!(message.contains("semel letters list"), "{message}");
}

#[tokio::test]
async fn there_is_room_again_once_reconciliation_has_seen_that_letters_are_gone() {
    let bed = Aging::with(at_most(1)).await;
    for name in ["one", "two"] {
        bed.handler.says(500);
        drop(bed.task(name).await);
    }
    let two = Sender::Task.sends("two", "{}");
    bed.ask(two.clone()).await.is_problem(409, "letters-full");
    let said = bed.discard(bed.letter().await).await;
    assert_eq!(said.status, 200, "{said:?}");
    bed.store.reconciled().await;
    bed.ask(two).await.is(200);
    assert_eq!((bed.letters().await.len(), bed.runs()), (1, 2));
}

#[tokio::test]
async fn a_new_gate_counts_what_others_put() {
    let one = Aging::with(at_most(1)).await;
    one.handler.says(500);
    one.task("one").await.is(200);
    let other = one.another(at_most(1)).await;
    one.store.reconciled().await;
    other.handler.says(500);
    other.task("two").await.is_problem(409, "letters-full");
}

#[tokio::test]
async fn invalid_and_mismatched_ones_leave_half_to_the_others() {
    let bed = Aging::with(at_most(5)).await;
    bed.ask(nameless(1)).await.is(200);
    bed.ask(Sender::Task.sends("t", "one")).await.is(200);
    bed.ask(Sender::Task.sends("t", "two")).await.is(200);
    bed.ask(nameless(2)).await.is_problem(409, "letters-full");
    refused(&bed, Sender::Task.sends("t", "three"), 409, "letters-full").await;
    for name in ["a", "b"] {
        bed.handler.says(500);
        bed.task(name).await.is(200);
    }
    use Reason::{Invalid, Mismatched, Parked};
    assert_eq!(bed.reasons().await, [Invalid, Mismatched, Parked, Parked]);
}

#[tokio::test]
async fn bytes_are_bounded_too() {
    let bed = Bed::route(|route| {
        route.max_attempts = 1;
        route.letters = LetterLimits {
            count_max: 100,
            bytes_max: 5_000,
        };
    })
    .await;
    bed.handler.says(500);
    let large = "x".repeat(3_000);
    bed.ask(Sender::Task.sends("one", &large)).await.is(200);
    assert_eq!(bed.letters().await.len(), 1);
    let invalid = nameless(1).body("x".repeat(2_000));
    bed.ask(invalid).await.is_problem(409, "letters-full");
    assert_eq!(bed.letters().await.len(), 1);
}

#[tokio::test]
async fn while_it_is_full_nothing_is_given_up() {
    for sender in BROKERS {
        let bed = Bed::route(|route| {
            route.max_attempts = 1;
            route.letters.count_max = 1;
        })
        .await;
        bed.handler.says(500).says(500).says(500);
        bed.deliver(sender, "one").await.is(200);
        for _ in 0..2 {
            bed.deliver(sender, "two").await.is(500);
            let records = bed.records().await;
            let states = records.iter().map(|(_, record)| record.state);
            let waiting = states.filter(|state| *state == State::Waiting);
            assert_eq!(waiting.count(), 1, "the work stays waiting");
        }
        bed.deliver(sender, "two").await.is(200);
        assert_eq!((bed.letters().await.len(), bed.runs()), (1, 4));
    }
}
