//! A letter is closed once its work has succeeded, whoever said so.

use crate::support::Act;
use crate::support::handler::Say;
use crate::support::{Ask, Bed};
use crate::{Aging, GONE, LEASE, listed, operator, paused, redrive, resumes, task, the_letter};
use std::time::Duration;

#[tokio::test]
async fn by_whoever_lists_it() {
    let aging = Aging::new();
    let (one, first, other) = paused(&aging).await;
    let id = the_letter(&other).await;
    assert_eq!(listed(&other).await[0]["record"], "parked");
    resumes(&one, first).await;
    assert!(listed(&other).await.is_empty());
    assert!(other.letters().await.is_empty());
    aging.pass(GONE);
    let (status, said) = redrive(&other, &id, "").await;
    assert_eq!(status, 404, "{said}");
    let (status, said) = redrive(&other, &id, "?run_again=true").await;
    assert_eq!(status, 404, "{said}");
    assert_eq!(one.runs() + other.runs(), 1);
}

#[tokio::test]
async fn by_whoever_shows_it() {
    let aging = Aging::new();
    let (one, first, other) = paused(&aging).await;
    let id = the_letter(&other).await;
    let show = Ask::get(&format!("/letters/{id}"));
    let (status, said) = operator(&other, show.clone()).await;
    assert_eq!((status, &said["record"]), (200, &"parked".into()), "{said}");
    resumes(&one, first).await;
    let (status, said) = operator(&other, show).await;
    assert_eq!(status, 404, "{said}");
    let error = said["error"].as_str().unwrap();
    assert!(error.contains("has succeeded"), "{said}");
    assert!(other.letters().await.is_empty());
}

#[tokio::test]
async fn by_whoever_redrives_it_and_nothing_runs() {
    let aging = Aging::new();
    let (one, first, other) = paused(&aging).await;
    let id = the_letter(&other).await;
    resumes(&one, first).await;
    let (status, said) = redrive(&other, &id, "").await;
    assert_eq!((status, &said["closed"]), (200, &true.into()), "{said}");
    assert!(other.letters().await.is_empty());
    assert_eq!(one.runs() + other.runs(), 1);
}

#[tokio::test]
async fn by_the_keeper_when_nobody_asks() {
    let aging = Aging::new();
    let (one, first, other) = paused(&aging).await;
    resumes(&one, first).await;
    let _third = aging
        .gate(|settings| settings.reconcile_every = Duration::from_millis(10))
        .await;
    aging.store.marked(1).await;
    assert!(other.letters().await.is_empty());
}

#[tokio::test]
async fn by_the_gate_that_put_it_when_its_work_ended_meanwhile() {
    let aging = Aging::new();
    let (one, other) = (aging.gate(|_| {}).await, aging.gate(|_| {}).await);
    one.handler.will(Act::Hold(Say::new(200, "charged")));
    let first = one.begin(task());
    one.handler.arrived().await;
    aging.pass(LEASE);
    aging.store.hold_letters(true);
    let second = other.begin(task());
    aging.store.puts(1).await;
    resumes(&one, first).await;
    aging.store.hold_letters(false);
    second.await.unwrap().is(200);
    assert!(other.letters().await.is_empty());
}

#[tokio::test]
async fn by_an_operator_who_says_that_it_succeeded() {
    let aging = Aging::new();
    let bed = aging.gate(|_| {}).await;
    let id = resolved(&bed, "succeeded").await;
    let (status, said) = redrive(&bed, &id, "").await;
    assert_eq!((status, &said["closed"]), (200, &true.into()), "{said}");
    assert_eq!(bed.runs(), 1);
    bed.ask(task()).await.is_replay(200);
    assert!(bed.letters().await.is_empty());
    assert_eq!(bed.runs(), 1);
}

#[tokio::test]
async fn every_other_end_leaves_it_open() {
    for (verdict, record) in [("failed", "failed"), ("retry", "waiting")] {
        let aging = Aging::new();
        let bed = aging.gate(|_| {}).await;
        resolved(&bed, verdict).await;
        assert_eq!(listed(&bed).await[0]["record"], record, "{verdict}");
        assert_eq!(bed.letters().await.len(), 1, "{verdict}");
    }
}

/// A letter whose work an operator decides about; its id.
async fn resolved(bed: &Bed, verdict: &str) -> String {
    bed.handler.says(500);
    bed.ask(task()).await.is(200);
    let id = the_letter(bed).await;
    let (key, _) = bed.records().await[0].clone();
    let resolve = Ask::post(&format!("/records/{key}/resolve"));
    let (status, said) = operator(bed, resolve.body(format!(r#"{{"as":"{verdict}"}}"#))).await;
    assert_eq!(status, 200, "{said}");
    id
}
