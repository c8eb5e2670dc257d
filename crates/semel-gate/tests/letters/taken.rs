//! A mismatched letter whose own work ran under the delivery's key, once the other work there was gone.

use super::{Aging, GONE};
use crate::support::prelude::*;
use semel::letter::{Mark, Marked};
use semel::store::Letters;

fn other() -> Ask {
    Sender::Task.sends("t1", "other payload")
}

/// The same, and the record of the key's other work is gone by now.
async fn freed() -> (Aging, String) {
    let (bed, id) = mismatched().await;
    bed.pass(GONE);
    (bed, id)
}

/// A gate with the letter of another payload under a key; the letter's id.
async fn mismatched() -> (Aging, String) {
    let bed = Aging::route(|route| route.undone_statuses = vec![503..=503]).await;
    bed.ask(super::task()).await.is(200);
    bed.handler.arrived().await;
    bed.ask(other()).await.is(200);
    let id = bed.letter().await;
    assert_eq!(bed.letters().await[0].reason, Reason::Mismatched);
    assert_eq!(bed.listed().await[0]["record"], "not run");
    assert_eq!(bed.runs(), 1);
    (bed, id)
}

fn forget_all(key: impl std::fmt::Display) -> String {
    format!("/records/{key}/forget?letters=true")
}

#[tokio::test]
async fn its_key_is_not_forgotten_with_it_while_it_is_redriven() {
    let (bed, id) = mismatched().await;
    let key = bed.letters().await[0].key.unwrap();
    let own = bed.letters().await[0].work_key();
    let redriven = bed.hold_redrive(&id).await;
    let said = bed.act(&forget_all(key)).await;
    said.refused(409, "its work is running");
    assert_eq!(bed.letter().await, id);
    assert_eq!(bed.show_record(key).await.status, 200, "nothing was done");
    bed.handler.go();
    redriven.await.unwrap().is(200);
    assert_eq!(bed.show_record(own).await.status, 200);
}

#[tokio::test]
async fn the_record_of_its_redrive_says_what_it_is_about() {
    let bed = Aging::route(|route| keyed_by(route, "/order_id")).await;
    for (name, cents) in [("t1", 5), ("t2", 6)] {
        let payload = json!({"order_id": "A-1", "cents": cents}).to_string();
        let ask = Sender::Task.sends(name, &payload);
        let ask = ask.header("Content-Type", "application/json");
        bed.ask(ask).await.is(200);
    }
    let (id, own) = (bed.letter().await, bed.letters().await[0].work_key());
    bed.redrive(&id).await.is(200, &json!({"closed": true}));
    let shown = bed.show_record(own).await;
    let parts = &shown.json["label"]["parts"];
    assert_eq!(parts["order_id"], "A-1", "{shown:?}");
}

#[tokio::test]
async fn its_own_record_is_forgotten_with_its_key() {
    let (bed, id) = mismatched().await;
    let key = bed.letters().await[0].key.unwrap();
    let own = bed.letters().await[0].work_key();
    bed.handler.says(500);
    bed.redrive(&id).await.refused(409, "the letter stays");
    assert_eq!(bed.show_record(own).await.word("state"), "parked");
    let said = bed.act(&forget_all(key)).await;
    said.is(200, &json!({"after": "absent", "letters": [id]}));
    for gone in [key, own] {
        assert_eq!(bed.show_record(gone).await.status, 404);
    }
}

#[tokio::test]
async fn a_redrive_says_that_its_letter_was_discarded_meanwhile() {
    let (bed, id) = mismatched().await;
    let letter = bed.letters().await[0].id;
    bed.handler.will(Act::Hold(Say::new(422, "no")));
    let ask = Ask::post(&format!("/letters/{id}/redrive"));
    let redriven = tokio::spawn(ask.send(bed.admin));
    bed.handler.arrived().await;
    let closed = bed.store.kept().mark(&letter, Mark::Closed).await;
    assert_eq!(closed, Ok(Marked::Applied));
    bed.handler.go();
    let said = redriven.await.unwrap();
    assert_eq!(said.status, 409);
    said.tells("the letter was discarded meanwhile");
}

#[tokio::test]
async fn its_success_closes_the_letter_for_whoever_lists() {
    let (bed, _) = freed().await;
    bed.ask(other()).await.is(200);
    assert_eq!(bed.runs(), 2);
    assert!(bed.listed().await.is_empty());
    assert!(bed.letters().await.is_empty());
}

#[tokio::test]
async fn its_success_closes_the_letter_for_whoever_redrives() {
    let (bed, id) = freed().await;
    bed.ask(other()).await.is(200);
    let key = bed.key().await;
    let closed = json!({"closed": true, "key": key.to_string()});
    bed.redrive(&id).await.is(200, &closed);
    assert!(bed.letters().await.is_empty());
    assert_eq!(bed.runs(), 2);
}

#[tokio::test]
async fn its_success_closes_the_letter_for_whoever_shows() {
    let (bed, id) = freed().await;
    bed.ask(other()).await.is(200);
    let key = bed.key().await;
    let said = bed.show_letter(&id).await;
    said.is(404, &json!({"key": key.to_string()}));
}

#[tokio::test]
async fn while_it_is_unfinished_a_redrive_runs_nothing() {
    for (answer, word) in [(503, "waiting"), (500, "parked")] {
        let (bed, id) = freed().await;
        bed.handler.says(answer);
        bed.ask(other()).await;
        assert_eq!(bed.runs(), 2);
        let letters = bed.listed().await;
        let letter = letters.iter().find(|letter| letter["id"] == id.as_str());
        assert_eq!(letter.unwrap()["record"], word);
        for said in [bed.redrive(&id).await, bed.run_again(&id).await] {
            said.is(409, &json!({"outcome": word}));
            let what_to_do = said.word("what_to_do");
            assert!(what_to_do.contains("semel records show"), "{said:?}");
        }
        assert_eq!(bed.runs(), 2, "{word}");
    }
}

#[tokio::test]
async fn other_work_under_the_key_leaves_it_to_the_redrive() {
    let (bed, id) = mismatched().await;
    assert_eq!(bed.listed().await[0]["record"], "not run");
    bed.redrive(&id).await.is(200, &json!({"closed": true}));
    assert_eq!(bed.runs(), 2);
}
