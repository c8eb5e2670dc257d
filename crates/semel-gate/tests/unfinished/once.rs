//! A sender that delivers once: the letter is durable before the run, and the sender may forget the delivery.

use super::{ONCE, UNCOUNTED, alarms, nacks, one_slot, only_letter, unfinished, unkept};
use crate::letters::{Aging, LEASE};
use crate::support::prelude::*;

#[tokio::test]
async fn its_letter_is_durable_before_the_handler_has_the_request() {
    for sender in ONCE {
        let bed = sender.bed(|_| {}).await;
        let reply = bed.hold(sender.sends("n")).await;
        let letter = only_letter(&bed).await;
        assert_eq!(letter.reason, Reason::Unfinished, "{sender:?}");
        assert_eq!(letter.fence, bed.record().await.fence);
        assert_eq!(bed.listed().await[0]["for_operator"], false);
        bed.go(reply).await.is(200);
        assert_eq!(bed.letters().await, [], "a success closes it");
        alarms(&bed, 0).await;
    }
}

#[tokio::test]
async fn a_failure_is_acknowledged_and_needs_an_operator() {
    for sender in ONCE {
        let bed = sender.bed(|_| {}).await;
        bed.handler.says(500);
        bed.ask(sender.sends("n")).await.is(200).says("");
        unfinished(&bed.letters().await, true);
        alarms(&bed, 1).await;
        let listed = bed.listed().await;
        assert_eq!(listed[0]["record"], "waiting", "{sender:?}");
        assert_eq!(listed[0]["for_operator"], true);
        let id = bed.letter().await;
        bed.redrive(&id).await.is(200, &json!({"closed": true}));
        assert_eq!((bed.runs(), bed.letters().await.len()), (2, 0));
    }
}

#[tokio::test]
async fn a_final_failure_is_acknowledged_and_needs_an_operator() {
    for sender in ONCE {
        let bed = sender
            .bed(|route| route.final_statuses = vec![422..=422])
            .await;
        bed.handler.says(422);
        bed.ask(sender.sends("n")).await.is(200);
        unfinished(&bed.letters().await, true);
        assert_eq!(bed.listed().await[0]["record"], "failed");
    }
}

#[tokio::test]
async fn a_route_that_nacks_passes_the_handlers_status_on_and_keeps_the_letter() {
    for sender in ONCE {
        let bed = sender.bed(nacks).await;
        bed.handler.says(500);
        bed.ask(sender.sends("n")).await.is(500).says("said 500");
        unfinished(&bed.letters().await, true);
    }
}

#[tokio::test]
async fn a_gate_that_dies_in_the_run_leaves_the_letter_to_another_gate() {
    for sender in ONCE {
        let change = |settings: &mut Settings| {
            settings.grace = Duration::ZERO;
            settings.routes[0].in_doubt = InDoubt::Retry;
            sender.declares(&mut settings.routes[0]);
        };
        let one = Aging::with(change).await;
        let other = one.another(change).await;
        let reply = one.hold(sender.sends("n")).await;
        one.pass(LEASE);
        let id = other.letter().await;
        assert_eq!(other.listed().await[0]["record"], "running");
        other.redrive(&id).await.is(200, &json!({"closed": true}));
        assert_eq!((one.runs(), other.runs()), (1, 1), "{sender:?}");
        assert_eq!(other.letters().await, []);
        drop(reply);
    }
}

/// An address that nothing listens on.
pub(super) async fn closed_port() -> SocketAddr {
    let listener = TcpListener::bind(here()).await.unwrap();
    listener.local_addr().unwrap()
}

#[tokio::test]
async fn a_handler_that_cannot_be_reached_leaves_the_letter() {
    let closed_port = closed_port().await;
    for sender in ONCE {
        let bed = sender
            .bed(|route| route.upstream = upstream(closed_port))
            .await;
        bed.ask(sender.sends("n")).await.is(200);
        unfinished(&bed.letters().await, true);
        let record = bed.record().await;
        assert_eq!((record.state, record.attempts), (State::Waiting, 0));
    }
}

#[tokio::test]
async fn a_delivery_without_a_slot_becomes_a_letter() {
    for sender in ONCE {
        let bed = sender.bed(one_slot).await;
        let held = bed.hold(sender.sends("other")).await;
        bed.ask(sender.sends("n")).await.is(200);
        let letters = bed.letters().await;
        let alarmed: Vec<_> = letters.iter().map(|letter| letter.alarmed).collect();
        assert_eq!(alarmed, [false, true], "{sender:?}");
        bed.go(held).await.is(200);
        let id = bed.letter().await;
        bed.redrive(&id).await.is(200, &json!({"closed": true}));
        assert_eq!((bed.runs(), bed.letters().await.len()), (2, 0));
    }
}

#[tokio::test]
async fn a_duplicate_of_a_running_delivery_is_acknowledged_with_its_letter() {
    for sender in ONCE {
        let bed = sender
            .bed(|route| terms_of(route, |terms| terms.wait = Duration::ZERO))
            .await;
        let held = bed.hold(sender.sends("n")).await;
        bed.ask(sender.sends("n")).await.is(200);
        assert_eq!(bed.reasons().await, [Reason::Unfinished]);
        bed.go(held).await.is(200);
        assert_eq!((bed.runs(), bed.letters().await.len()), (1, 0));
    }
}

#[tokio::test]
async fn a_store_that_keeps_no_letter_stops_the_run() {
    for sender in ONCE.into_iter().chain(UNCOUNTED) {
        let bed = sender.bed(|_| {}).await;
        bed.store.is(Down::Letters);
        for count in [1, 2] {
            let refused = bed.ask(sender.sends("n")).await;
            refused.is_problem(503, "store-unavailable");
            unkept(&bed, count).await;
        }
        let record = bed.record().await;
        assert_eq!((record.state, record.attempts), (State::Waiting, 0));
        assert_eq!(
            (bed.runs(), bed.letters().await.len()),
            (0, 0),
            "{sender:?}"
        );
        bed.store.is(Down::Nothing);
        bed.ask(sender.sends("n")).await.is(200);
        unkept(&bed, 2).await;
    }
}

#[tokio::test]
async fn a_store_that_is_silent_about_the_letter_stops_the_run() {
    for sender in ONCE {
        let bed = sender.bed(|_| {}).await;
        bed.store.hold_letters(true);
        let reply = bed.begin(sender.sends("n"));
        bed.store.puts(1).await;
        // Nothing passes but the gate's patience with the store.
        tokio::time::pause();
        bed.store.outcomes(1).await;
        tokio::time::resume();
        bed.store.hold_letters(false);
        reply.await.unwrap().is(200);
        assert_eq!(bed.runs(), 0, "{sender:?}");
        unfinished(&bed.letters().await, true);
        unkept(&bed, 0).await;
        let id = bed.letter().await;
        bed.redrive(&id).await.is(200, &json!({"closed": true}));
    }
}
