//! A sender that counts: its work has a letter from the first run that ends without success.

use super::{COUNTED, UNDECLARED, alarms, nacks, one_slot, unfinished};
use crate::long_work::{ended, short_deadline};
use crate::support::prelude::*;

#[tokio::test]
async fn the_first_run_has_no_letter_until_it_ends_without_success() {
    for sender in COUNTED {
        let bed = sender.bed(|_| {}).await;
        let act = Act::Hold(Say::new(500, "later"));
        let reply = bed.begin_with(act, sender.sends("n", 1)).await;
        assert_eq!(bed.letters().await, [], "{sender:?}");
        bed.go(reply).await.is(500);
        unfinished(&bed.letters().await, false);
        bed.ask(sender.sends("n", 2)).await.is(200);
        assert_eq!((bed.runs(), bed.letters().await.len()), (2, 0));
        alarms(&bed, 0).await;
    }
}

#[tokio::test]
async fn a_success_of_the_first_run_asks_the_store_for_no_letter() {
    for sender in COUNTED {
        let bed = sender.bed(|_| {}).await;
        bed.ask(sender.sends("n", 1)).await.is(200);
        bed.ask(sender.sends("n", 2)).await.is_replay(200);
        assert_eq!(bed.store.letter_calls(), 0, "{sender:?}");
    }
}

#[tokio::test]
async fn a_run_that_is_still_going_at_half_of_the_deadline_has_its_letter() {
    for sender in COUNTED {
        let bed = sender.bed(|route| terms_of(route, short_deadline)).await;
        let reply = bed.hold(sender.sends("n", 1)).await;
        until("a letter", async || !bed.letters().await.is_empty()).await;
        unfinished(&bed.letters().await, false);
        assert_eq!(bed.record().await.state, State::Running, "{sender:?}");
        reply.await.unwrap().is_pause(409, "busy");
        bed.handler.go();
        ended(&bed, "ran").await;
        assert_eq!(bed.letters().await, []);
    }
}

#[tokio::test]
async fn a_refusal_before_a_run_becomes_a_letter_from_half_of_the_attempts_on() {
    for sender in COUNTED {
        let half = sender.most.div_ceil(2);
        let bed = sender.bed(one_slot).await;
        let held = bed.hold(sender.sends("other", 1)).await;
        for number in 1..half {
            bed.ask(sender.sends("n", number))
                .await
                .is_pause(429, "full");
        }
        assert_eq!(bed.letters().await, [], "{sender:?}");
        bed.ask(sender.sends("n", half)).await.is_pause(429, "full");
        unfinished(&bed.letters().await, false);
        bed.go(held).await.is(200);
        bed.ask(sender.sends("n", half + 1)).await.is(200);
        assert_eq!(bed.letters().await, []);
    }
}

#[tokio::test]
async fn the_last_attempt_is_acknowledged_and_needs_an_operator() {
    for sender in COUNTED {
        let bed = sender.bed(|_| {}).await;
        let act = Act::Hold(Say::new(500, "later"));
        let reply = bed.begin_with(act, sender.last("n")).await;
        unfinished(&bed.letters().await, false);
        bed.go(reply).await.is(200).says("");
        unfinished(&bed.letters().await, true);
        alarms(&bed, 1).await;
        let outcome = "semel_deliveries_total{route=\"work\",outcome=\"exhausted\"} 1\n";
        bed.counts(outcome).await;
    }
}

#[tokio::test]
async fn a_route_that_nacks_answers_the_last_attempt_with_the_truth() {
    for sender in COUNTED {
        let bed = sender.bed(nacks).await;
        bed.handler.says(503);
        bed.ask(sender.last("n")).await.is(503).says("said 503");
        unfinished(&bed.letters().await, true);
        alarms(&bed, 1).await;
    }
}

#[tokio::test]
async fn a_success_in_another_gate_leaves_the_letter_to_the_keeper() {
    for sender in COUNTED {
        let here = sender.bed(|_| {}).await;
        here.handler.says(500);
        here.ask(sender.sends("n", 1)).await.is(500);
        let there = sender.declared.beside(&here, |_| {}).await;
        there.ask(sender.sends("n", 2)).await.is(200);
        assert_eq!(here.reasons().await, [Reason::Unfinished]);
        let often = |settings: &mut Settings| settings.reconcile_every = Duration::from_millis(10);
        let _keeper = sender.declared.beside(&here, often).await;
        until("the end of the letter", async || {
            here.letters().await.is_empty()
        })
        .await;
    }
}

#[tokio::test]
async fn an_operator_is_alerted_once_per_letter() {
    for sender in COUNTED {
        let bed = sender.bed(|_| {}).await;
        for _ in 0..2 {
            bed.handler.says(500);
            bed.ask(sender.last("n")).await.is(200);
        }
        unfinished(&bed.letters().await, true);
        alarms(&bed, 1).await;
    }
}

#[tokio::test]
async fn a_run_after_a_refusal_puts_its_fence_into_the_letter() {
    for sender in COUNTED {
        let bed = sender.bed(one_slot).await;
        let held = bed.hold(sender.sends("other", 1)).await;
        bed.ask(sender.sends("n", 6)).await.is_pause(429, "full");
        assert_eq!(bed.letters().await[0].fence.0, 0, "{sender:?}");
        bed.go(held).await.is(200);
        bed.handler.says(500);
        bed.ask(sender.sends("n", 7)).await.is(500);
        let letter = bed.letters().await[0].clone();
        assert!(letter.fence.0 > 0, "{letter:?}");
        // Whatever becomes of its record, it is known to have run.
        bed.forget(letter.key.unwrap()).await;
        let said = bed.redrive(letter.id).await;
        said.refused(409, "whether this work took effect is unknown");
        assert_eq!(bed.runs(), 2);
    }
}

#[tokio::test]
async fn a_last_attempt_that_meets_its_own_run_raises_no_alarm() {
    for sender in COUNTED {
        let bed = sender
            .bed(|route| terms_of(route, |terms| terms.wait = Duration::ZERO))
            .await;
        let held = bed.hold(sender.sends("n", 1)).await;
        bed.ask(sender.last("n")).await.is(200);
        assert_eq!(bed.letters().await.len(), 1, "{sender:?}");
        alarms(&bed, 0).await;
        bed.go(held).await.is(200);
        until("no letter", async || bed.letters().await.is_empty()).await;
    }
}

#[tokio::test]
async fn a_last_attempt_whose_letter_was_discarded_elsewhere_is_kept_anew() {
    for sender in COUNTED {
        let here = sender.bed(one_slot).await;
        here.handler.says(500);
        here.ask(sender.sends("n", 1)).await.is(500);
        let (id, key) = (here.letter().await, here.key().await);
        let there = sender.declared.beside(&here, |_| {}).await;
        assert_eq!(there.discard(&id).await.status, 200);
        assert_eq!(there.release(key).await.status, 200);
        let held = here.hold(sender.sends("other", 1)).await;
        here.ask(sender.last("n")).await.is(200);
        unfinished(&here.letters().await, true);
        alarms(&here, 1).await;
        here.go(held).await.is(200);
    }
}

#[tokio::test]
async fn an_early_attempt_of_a_policy_that_is_not_declared_has_no_letter_before_its_run() {
    let bed = UNDECLARED.bed(|_| {}).await;
    let act = Act::Hold(Say::new(500, "later"));
    let reply = bed.begin_with(act, UNDECLARED.sends("n", 1)).await;
    assert_eq!(bed.letters().await, []);
    bed.go(reply).await.is(500);
    unfinished(&bed.letters().await, false);
}

#[tokio::test]
async fn a_policy_that_is_not_declared_makes_no_attempt_the_last() {
    for number in [5, 6, 100] {
        let bed = UNDECLARED.bed(|_| {}).await;
        let act = Act::Hold(Say::new(503, "later"));
        let reply = bed.begin_with(act, UNDECLARED.sends("n", number)).await;
        unfinished(&bed.letters().await, false);
        bed.go(reply).await.is(503).says("later");
        unfinished(&bed.letters().await, false);
        alarms(&bed, 0).await;
    }
}
