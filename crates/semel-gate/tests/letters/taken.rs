//! A mismatched letter whose own work ran under the delivery's key, once the other work there was gone.

use super::{Aging, GONE};
use crate::support::prelude::*;

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
    bed.ask(other()).await.is(200);
    let id = bed.letter().await;
    assert_eq!(bed.letters().await[0].reason, Reason::Mismatched);
    assert_eq!(bed.listed().await[0]["record"], "not run");
    assert_eq!(bed.runs(), 1);
    (bed, id)
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
