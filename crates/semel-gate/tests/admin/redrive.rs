//! Redriving: what runs, under which key, and when the letter goes.

use super::{fails, kept, strict};
use crate::log_lines;
use crate::support::prelude::*;
use semel::protocol::Acted;

#[tokio::test]
async fn a_parked_letter_runs_again_and_goes_when_it_succeeds() {
    let (bed, id) = kept(500).await;
    let (key, first) = (bed.key().await.to_string(), bed.handler.arrived().await);

    let said = bed.redrive(&id).await;
    let ran = json!({"outcome": "ran", "key": key, "status": 200, "closed": true});
    said.is(200, &ran);
    let second = bed.handler.arrived().await;
    assert_eq!((&second.body, &second.path), (&first.body, &first.path));
    let name = "x-cloudtasks-taskname";
    assert_eq!(second.header(name), first.header(name));
    assert!(bed.letters().await.is_empty());
    assert_eq!(bed.record().await.state, State::Succeeded);

    // A late duplicate of the broker is a duplicate.
    bed.task("t1").await;
    assert_eq!(bed.runs(), 2);
    let deliveries = log_lines::heard("delivery", "letter", &id);
    let outcomes = log_lines::all(&deliveries, "outcome");
    assert_eq!(outcomes, ["parked", "ran"]);
    assert_eq!(deliveries[1]["task_name"], "t1");
    let audit = log_lines::heard("audit", "letter", &id);
    assert_eq!(audit.len(), 1, "{audit:?}");
    assert_eq!(
        ["act", "key", "before", "after"].map(|name| audit[0][name].as_str().unwrap()),
        ["redrive", &key, "parked", "ran"]
    );
    assert_eq!(audit[0]["closed"], true);
    let void = said.word("promise");
    assert!(void.starts_with("void: "), "{said:?}");
    assert_eq!(audit[0]["promise"], void);
}

#[tokio::test]
async fn a_letter_stays_as_long_as_its_runs_fail() {
    let (bed, id) = kept(422).await;
    bed.handler.says(422);
    let said = bed.redrive(&id).await;
    let error = "it failed for good again (status 422); the letter stays";
    said.refused(409, error);
    said.is(409, &json!({"outcome": "failed", "status": 422}));
    bed.handler.says(500);
    let said = bed.redrive(&id).await;
    let error = "it failed again and is parked (status 500); the letter stays";
    said.refused(409, error);
    said.is(409, &json!({"outcome": "parked", "status": 500}));
    // And it is the only one: a redrive writes no letter.
    assert_eq!(bed.letter().await, id);
    let said = bed.redrive(&id).await;
    assert_eq!((said.status, bed.runs()), (200, 4), "{said:?}");
    assert!(bed.letters().await.is_empty());
    let audit = log_lines::heard("audit", "letter", &id);
    assert_eq!(log_lines::all(&audit, "closed"), [false, false, true]);
}

#[tokio::test]
async fn a_handler_that_is_away_leaves_the_letter() {
    let (bed, id) = kept(500).await;
    bed.handler.will(Act::Close);
    bed.redrive(&id).await.is(409, &json!({"status": 502}));
    assert_eq!(bed.letter().await, id);
}

#[tokio::test]
async fn what_succeeded_meanwhile_is_closed_and_not_run() {
    let (bed, id) = kept(500).await;
    bed.complete(Outcome::new(200, "late")).await;
    let said = bed.redrive(&id).await;
    said.is(200, &json!({"outcome": "succeeded"}));
    assert!(said.word("says").contains("nothing was run"), "{said:?}");
    assert_eq!(said.json.get("promise"), None);
    assert_eq!(bed.runs(), 1);
    assert!(bed.letters().await.is_empty());
}

#[tokio::test]
async fn what_waits_just_runs_and_what_is_forgotten_runs_on_request() {
    for forgotten in [false, true] {
        let (bed, id) = kept(500).await;
        let key = bed.key().await.to_string();
        let said = if forgotten {
            bed.forget(&key).await;
            let said = bed.redrive(&id).await;
            said.refused(409, "whether this work took effect is unknown");
            assert_eq!(bed.runs(), 1);
            bed.run_again(&id).await
        } else {
            bed.resolve(&key, "retry").await;
            bed.redrive(&id).await
        };
        said.is(200, &json!({"key": key}));
        assert_eq!(bed.runs(), 2);
        assert!(bed.letters().await.is_empty());
    }
}

#[tokio::test]
async fn a_redrive_of_running_work_says_so_and_runs_nothing() {
    let (bed, id) = kept(500).await;
    bed.handler.arrived().await;
    bed.resolve(bed.key().await, "retry").await;
    let delivery = bed.hold(Sender::Task.sends("t1", "{}")).await;
    let said = bed.redrive(&id).await;
    said.refused(409, "it is running");
    assert_eq!(said.word("outcome"), "running");
    bed.handler.go();
    assert_eq!(delivery.await.unwrap().status, 200);
    assert_eq!(bed.redrive(&id).await.word("outcome"), "succeeded");
    assert_eq!(bed.runs(), 2);
}

#[tokio::test]
async fn redrives_at_once_run_once() {
    for _ in 0..20 {
        let (bed, id) = kept(500).await;
        let redrives = (0..8).map(|_| bed.redrive(&id));
        let told = futures_util::future::join_all(redrives).await;
        assert_eq!(bed.runs(), 2, "{told:?}");
        let ran = told.iter().filter(|said| said.word("outcome") == "ran");
        assert_eq!(ran.count(), 1, "{told:?}");
        for said in &told {
            let known = match said.status {
                200 => ["ran", "replayed", "succeeded"].contains(&said.word("outcome")),
                404 => true,
                409 => said.word("outcome") == "running",
                _ => false,
            };
            assert!(known, "{said:?}");
        }
        assert!(bed.letters().await.is_empty());
    }
}

#[tokio::test]
async fn a_mismatched_letter_runs_under_a_key_of_its_own() {
    let bed = strict().await;
    bed.task("t1").await;
    let key = bed.key().await;
    bed.ask(Sender::Task.sends("t1", "another")).await;
    let (id, before) = (bed.letter().await, bed.record().await);
    bed.handler.says(422);
    let said = bed.redrive(&id).await;
    said.is(409, &json!({"outcome": "failed"}));
    let own = said.word("key").to_owned();
    assert_ne!(own, key.to_string());
    bed.redrive(&id).await.is(200, &json!({"key": own}));
    assert_eq!(bed.runs(), 3);
    assert!(bed.letters().await.is_empty());
    let first = bed.store.kept().look(&key).await.unwrap();
    assert_eq!(first, Some(before));
}

#[tokio::test]
async fn a_letter_without_a_key_is_forwarded_as_it_is() {
    let bed = Bed::route(|route| route.sources = vec![Source::PubSub]).await;
    let reply = bed.ask(Sender::Task.sends("t1", "no envelope")).await;
    assert_eq!((reply.status, bed.runs()), (200, 0));
    let id = bed.letter().await;
    bed.handler.says(503);
    let said = bed.redrive(&id).await;
    said.refused(409, "it failed again (status 503); the letter stays");
    assert_eq!(bed.handler.arrived().await.body, "no envelope");
    let said = bed.redrive(&id).await;
    assert_eq!((said.status, bed.runs()), (200, 2), "{said:?}");
    assert!(bed.letters().await.is_empty());
}

/// Another gate on the same store.
async fn restarted(bed: Bed, change: impl FnOnce(&mut Route)) -> Bed {
    let (served, handler, store) = bed.stop();
    served.await.unwrap();
    Bed::on(store, handler, |settings| change(&mut settings.routes[0])).await
}

#[tokio::test]
async fn a_letter_keeps_its_key_when_the_rule_changes() {
    // Under the first rule the delivery has no key, under the second another one.
    for rule in ["/order_id", "queue"] {
        let (bed, id) = kept(500).await;
        let key = bed.key().await.to_string();
        let bed = restarted(bed, |route| {
            keyed_by(route, rule);
            route.fingerprint = FingerprintRule::Off;
        })
        .await;
        bed.redrive(&id).await.is(200, &json!({"key": key}));
        assert_eq!(bed.record().await.state, State::Succeeded);
    }
}

#[tokio::test]
async fn a_letter_whose_route_is_gone_stays() {
    let (bed, id) = kept(500).await;
    let bed = restarted(bed, |route| route.name = "renamed".into()).await;
    let said = bed.redrive(&id).await;
    said.refused(409, "this gate has no route \"work\" any more");
    assert_eq!(bed.letter().await, id);
}

#[tokio::test]
async fn a_key_that_stands_for_another_payload_by_now_is_left_alone() {
    let (bed, id) = kept(500).await;
    bed.forget(bed.key().await).await;
    bed.ask(Sender::Task.sends("t1", "another")).await;
    let said = bed.redrive(&id).await;
    said.refused(409, "known with another payload");
    assert_eq!((bed.letter().await, bed.runs()), (id, 2));
}

#[tokio::test]
async fn a_letter_that_could_not_be_closed_is_closed_by_the_next_redrive() {
    let (bed, id) = kept(500).await;
    bed.handler.arrived().await;
    let first = bed.hold_redrive(&id).await;
    bed.store.is(Down::Letters);
    let first = bed.go(first).await;
    assert_eq!(first.status, 503, "{first:?}");
    let error = "it succeeded, but its letter could not be closed";
    first.tells(error);
    bed.store.is(Down::Nothing);
    assert_eq!(bed.redrive(&id).await.word("outcome"), "succeeded");
    assert_eq!(bed.runs(), 2);
    assert!(bed.letters().await.is_empty());
}

#[tokio::test]
async fn an_operator_that_hangs_up_cancels_nothing() {
    let (bed, id) = kept(500).await;
    bed.handler.arrived().await;
    let first = bed.hold_redrive(&id).await;
    first.abort();
    assert!(first.await.is_err());
    bed.handler.go();
    let gone = async || bed.letters().await.is_empty();
    until("the end of the letter", gone).await;
    assert_eq!(bed.record().await.state, State::Succeeded);
}

#[tokio::test]
async fn a_run_that_died_is_taken_over_when_its_lease_has_lapsed() {
    let bed = Bed::route(|route| route.final_statuses = vec![422..=422]).await;
    let id = fails(&bed, 422).await;
    let (key, record) = (bed.key().await, bed.record().await);
    let redriven = bed.store.kept().redrive(&key, "").await.unwrap();
    assert_eq!(redriven, Acted::Applied);
    let lease = Duration::from_secs(2);
    bed.claims(key, record.fingerprint, lease).await;
    bed.redrive(&id).await.refused(409, "it is running");
    // Time itself is tested here; the lease is long enough for a busy machine to ask before its end.
    tokio::time::sleep(lease).await;
    bed.redrive(&id).await.is(200, &json!({"outcome": "ran"}));
    assert_eq!(bed.runs(), 2);
}
