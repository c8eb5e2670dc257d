//! A letter whose work may have run, and whose record is gone, is not run by a plain redrive.

use crate::support::{Ask, Bed, Sender};
use crate::{Aging, GONE, listed, operator, paused, redrive, resumes, task, the_letter};
use serde_json::Value;

/// It says what is unknown, runs nothing, and stays.
async fn refused(bed: &Bed, id: &str) {
    let runs = bed.runs();
    let (status, said) = redrive(bed, id, "").await;
    assert_eq!(
        (status, &said["outcome"]),
        (409, &"unknown".into()),
        "{said}"
    );
    let text = |name: &str| said[name].as_str().unwrap_or_default().to_owned();
    assert!(
        text("error").contains("whether this work took effect is unknown"),
        "{said}"
    );
    assert!(text("what_to_do").contains("--run-again"), "{said}");
    assert_eq!(bed.runs(), runs);
    assert_eq!(the_letter(bed).await, id);
    assert_eq!(listed(bed).await[0]["record"], "unknown");
}

#[tokio::test]
async fn after_a_paused_gate_completed_it_and_retention_is_over() {
    let aging = Aging::new();
    let (one, first, other) = paused(&aging).await;
    let id = the_letter(&other).await;
    resumes(&one, first).await;
    aging.pass(GONE);
    refused(&other, &id).await;
    assert_eq!(one.runs() + other.runs(), 1);
}

#[tokio::test]
async fn after_it_was_resolved_and_retention_is_over() {
    let aging = Aging::new();
    let bed = aging.gate(|_| {}).await;
    bed.handler.says(500);
    bed.ask(task()).await.is(200);
    let (key, _) = bed.records().await[0].clone();
    let resolve =
        Ask::post(&format!("/records/{key}/resolve")).body(r#"{"as":"succeeded"}"#.to_owned());
    assert_eq!(operator(&bed, resolve).await.0, 200);
    aging.pass(GONE);
    refused(&bed, &the_letter(&bed).await).await;
}

#[tokio::test]
async fn and_run_again_runs_it_under_its_own_key() {
    let aging = Aging::new();
    let bed = aging
        .gate(|settings| settings.routes[0].final_statuses = vec![422..=422])
        .await;
    bed.handler.says(422);
    bed.ask(task()).await.is(200);
    let (key, _) = bed.records().await[0].clone();
    aging.pass(GONE);
    let id = the_letter(&bed).await;
    refused(&bed, &id).await;
    let (status, said) = redrive(&bed, &id, "?run_again=true").await;
    assert_eq!((status, &said["closed"]), (200, &true.into()), "{said}");
    assert_eq!(said["key"], Value::from(key.to_string()));
    assert_eq!(bed.runs(), 2);
    assert!(bed.letters().await.is_empty());
}

#[tokio::test]
async fn a_letter_without_a_key_is_unknown_once_it_was_redriven() {
    let aging = Aging::new();
    let bed = aging
        .gate(|settings| settings.routes[0].undone_statuses = vec![503..=503])
        .await;
    // Its task has no name.
    let nameless = Ask::post("/work").header("X-CloudTasks-QueueName", "orders");
    bed.ask(nameless).await.is(200);
    let id = the_letter(&bed).await;
    assert_eq!(listed(&bed).await[0]["record"], "not run");
    bed.handler.says(503);
    let (status, said) = redrive(&bed, &id, "").await;
    assert_eq!(status, 409, "{said}");
    assert!(bed.letters().await[0].redriven);
    aging.pass(GONE);
    refused(&bed, &id).await;
    let (status, said) = redrive(&bed, &id, "?run_again=true").await;
    assert_eq!((status, &said["closed"]), (200, &true.into()), "{said}");
    assert_eq!(bed.runs(), 2);
    assert!(bed.letters().await.is_empty());
}

#[tokio::test]
async fn a_redrive_is_noted_before_it_runs() {
    let aging = Aging::new();
    let bed = aging.gate(|_| {}).await;
    bed.ask(Sender::Task.sends("t1", "one")).await.is(200);
    bed.ask(Sender::Task.sends("t1", "two")).await.is(200);
    let id = the_letter(&bed).await;
    bed.handler
        .will(crate::Act::Hold(crate::Say::new(200, "done")));
    let admin = bed.admin;
    let path = format!("/letters/{id}/redrive");
    let redriven = tokio::spawn(async move { Ask::post(&path).send(admin).await });
    // One request for "one", one for the redrive.
    bed.handler.arrived().await;
    bed.handler.arrived().await;
    assert!(bed.letters().await[0].redriven);
    bed.handler.go();
    redriven.await.unwrap().is(200);
    assert!(bed.letters().await.is_empty());
}

#[tokio::test]
async fn an_unknown_query_is_refused() {
    let aging = Aging::new();
    let bed = aging.gate(|_| {}).await;
    bed.handler.says(500);
    bed.ask(task()).await.is(200);
    let id = the_letter(&bed).await;
    let (status, said) = redrive(&bed, &id, "?again=true").await;
    assert_eq!((status, bed.runs()), (400, 1), "{said}");
}
