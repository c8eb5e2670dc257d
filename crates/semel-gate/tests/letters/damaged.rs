//! A letter whose record cannot be read does not hide the others, nor stop the keeper.

use crate::support::{Ask, Bed, Down, Sender};
use crate::{Aging, listed, operator};
use semel_gate::settings::Settings;
use std::time::Duration;

/// A gate with two letters of parked work, the record of the first of which is damaged; its letter's id.
async fn one_of_two(aging: &Aging, change: impl FnOnce(&mut Settings)) -> (Bed, String) {
    let bed = aging.gate(change).await;
    for name in ["t1", "t2"] {
        bed.handler.says(500);
        bed.ask(Sender::Task.sends(name, "payload")).await.is(200);
    }
    let letters = bed.letters().await;
    assert_eq!(letters.len(), 2);
    aging.store.damage(letters[0].work_key());
    (bed, letters[0].id.to_string())
}

#[tokio::test]
async fn lists_show_it_as_damaged_and_the_others_as_they_are() {
    let aging = Aging::new();
    let (bed, id) = one_of_two(&aging, |_| {}).await;
    let letters = listed(&bed).await;
    let words: Vec<_> = letters
        .iter()
        .map(|letter| {
            (
                letter["id"] == id.as_str(),
                letter["record"].as_str().unwrap(),
            )
        })
        .collect();
    assert_eq!(words, [(true, "damaged"), (false, "parked")]);
    let (status, said) = operator(&bed, Ask::get(&format!("/letters/{id}"))).await;
    assert_eq!(
        (status, &said["record"]),
        (200, &"damaged".into()),
        "{said}"
    );
}

#[tokio::test]
async fn a_store_that_cannot_be_asked_is_still_said_so() {
    let aging = Aging::new();
    let (bed, _) = one_of_two(&aging, |_| {}).await;
    aging.store.is(Down::OutcomesAndLooks);
    let (status, said) = operator(&bed, Ask::get("/letters")).await;
    assert_eq!(status, 503, "{said}");
}

#[tokio::test]
async fn the_keeper_goes_on_and_counts_it() {
    let aging = Aging::new();
    let (bed, _) = one_of_two(&aging, |_| {}).await;
    let healthy = bed.letters().await[1].work_key();
    let resolve = Ask::post(&format!("/records/{healthy}/resolve"));
    let resolve = resolve.body(r#"{"as":"succeeded"}"#.to_owned());
    assert_eq!(operator(&bed, resolve).await.0, 200);
    let keeper = aging
        .gate(|settings| settings.reconcile_every = Duration::from_millis(10))
        .await;
    aging.store.marked(1).await;
    aging.store.kept_house().await;
    assert_eq!(bed.letters().await.len(), 1);
    let metrics = keeper.admin("/metrics").await;
    let counted = "semel_letters_open{route=\"work\"} 1";
    assert!(metrics.text().contains(counted), "{}", metrics.text());
}
