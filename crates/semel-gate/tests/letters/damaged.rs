//! A letter whose record cannot be read does not hide the others, nor stop reconciliation.

use super::Aging;
use crate::support::prelude::*;

/// A gate with two letters of parked work, the record of the first of which is damaged; its letter's id.
async fn one_of_two() -> (Aging, String) {
    let bed = Aging::new().await;
    for name in ["t1", "t2"] {
        bed.handler.says(500);
        bed.task(name).await.is(200);
    }
    let letters = bed.letters().await;
    assert_eq!(letters.len(), 2);
    bed.store.damage(letters[0].work_key());
    (bed, letters[0].id.to_string())
}

#[tokio::test]
async fn lists_show_it_as_damaged_and_the_others_as_they_are() {
    let (bed, id) = one_of_two().await;
    let letters = bed.listed().await;
    let word = |letter: &Value| (letter["id"] == id.as_str(), letter["record"].clone());
    let words: Vec<_> = letters.iter().map(word).collect();
    assert_eq!(words, [(true, "damaged".into()), (false, "parked".into())]);
    let damaged = json!({"record": "damaged"});
    bed.show_letter(&id).await.is(200, &damaged);
}

#[tokio::test]
async fn a_store_that_cannot_be_asked_is_still_said_so() {
    let (bed, _) = one_of_two().await;
    bed.store.is(Down::OutcomesAndLooks);
    assert_eq!(bed.look("/letters").await.status, 503);
}

#[tokio::test]
async fn reconciliation_goes_on_and_counts_it() {
    let (bed, _) = one_of_two().await;
    let healthy = bed.letters().await[1].work_key();
    assert_eq!(bed.resolve(healthy, "succeeded").await.status, 200);
    let other = bed.reconciling().await;
    bed.store.marked(1).await;
    bed.store.reconciled().await;
    assert_eq!(bed.letters().await.len(), 1);
    other.counts("semel_letters_open{route=\"work\"} 1").await;
}
