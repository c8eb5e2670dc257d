//! A sender that does not count: any attempt may be its last, and it receives the truth each time.

use super::{UNCOUNTED, alarms, one_slot, only_letter, unfinished};
use crate::support::prelude::*;

#[tokio::test]
async fn each_run_has_its_letter_first_and_each_reply_is_the_truth() {
    for sender in UNCOUNTED {
        let bed = sender.bed(|_| {}).await;
        for status in [500, 503] {
            let act = Act::Hold(Say::new(status, "later"));
            let reply = bed.begin_with(act, sender.sends("n")).await;
            let letter = only_letter(&bed).await;
            let record = bed.record().await;
            assert_eq!(
                (letter.reason, letter.fence),
                (Reason::Unfinished, record.fence)
            );
            bed.go(reply).await.is(status).says("later");
            unfinished(&bed.letters().await, false);
        }
        bed.ask(sender.sends("n")).await.is(200);
        assert_eq!(
            (bed.runs(), bed.letters().await.len()),
            (3, 0),
            "{sender:?}"
        );
        alarms(&bed, 0).await;
    }
}

#[tokio::test]
async fn a_delivery_without_a_slot_has_its_letter_and_receives_the_truth() {
    for sender in UNCOUNTED {
        let bed = sender.bed(one_slot).await;
        let held = bed.hold(sender.sends("other")).await;
        bed.ask(sender.sends("n")).await.is_pause(429, "full");
        assert_eq!(bed.letters().await.len(), 2, "{sender:?}");
        bed.go(held).await.is(200);
        bed.ask(sender.sends("n")).await.is(200);
        assert_eq!((bed.runs(), bed.letters().await.len()), (2, 0));
    }
}

#[tokio::test]
async fn a_refused_duplicate_of_what_has_its_letter_asks_the_store_for_none() {
    for sender in UNCOUNTED {
        let no_wait = |route: &mut Route| terms_of(route, |terms| terms.wait = Duration::ZERO);
        let here = sender.bed(no_wait).await;
        let there = sender
            .beside(&here, |settings| no_wait(&mut settings.routes[0]))
            .await;
        let held = here.hold(sender.sends("n")).await;
        // Another gate learns of the letter by putting it again.
        there.ask(sender.sends("n")).await.is_pause(409, "busy");
        let calls = here.store.letter_calls();
        for gate in [&here, &there, &here, &there] {
            gate.ask(sender.sends("n")).await.is_pause(409, "busy");
        }
        assert_eq!(here.store.letter_calls(), calls, "{sender:?}");
        here.go(held).await.is(200);
        assert_eq!(here.letters().await, []);
    }
}

#[tokio::test]
async fn a_letter_tells_how_the_latest_run_ended() {
    for sender in UNCOUNTED {
        let bed = sender.bed(|_| {}).await;
        for (run, status) in [(1, 500), (2, 503), (3, 500)] {
            bed.handler.says(status);
            bed.ask(sender.sends("n")).await.is(status);
            let told = format!("run {run} ended with status {status}");
            let latest = json!({"latest_run": told, "status": status});
            let listed = bed.listed().await;
            assert_eq!(listed[0]["latest_run"], latest["latest_run"]);
            assert_eq!(listed[0]["status"], latest["status"]);
            let shown = bed.show_letter(bed.letter().await).await;
            shown.is(200, &latest);
            assert_eq!(shown.word("why"), "kept before its run", "{sender:?}");
        }
    }
}
