//! Ran, 2xx.

use crate::support::prelude::*;

#[tokio::test]
async fn an_api_client_hears_the_handlers_own_answer() {
    let bed = Bed::new().await;
    bed.handler
        .answers(Say::new(201, "made").header("x-own", "1"));
    let answer = bed.api("k").await;
    answer.is(201).says("made").has("x-own", "1");
    answer.has("content-type", "text/plain");
}

#[tokio::test]
async fn cloud_tasks_hears_the_handlers_own_answer() {
    let bed = Bed::new().await;
    for status in [200, 201, 203, 206] {
        bed.handler.says(status);
        let name = format!("t{status}");
        let answer = bed.task(&name).await;
        answer.is(status).says(&format!("said {status}"));
    }
}

#[tokio::test]
async fn pubsub_hears_the_statuses_that_it_takes_for_an_acknowledgement() {
    pubsub_hears_an_acknowledgement(Sender::Push).await;
}

#[tokio::test]
async fn cloudevents_hear_the_statuses_that_pubsub_takes_for_an_acknowledgement() {
    pubsub_hears_an_acknowledgement(Sender::Event).await;
}

async fn pubsub_hears_an_acknowledgement(sender: Sender) {
    let bed = Bed::new().await;
    let cases = [
        (200, "body", 200),
        (201, "body", 201),
        (202, "body", 202),
        (204, "", 204),
        (203, "body", 200),
        (206, "body", 200),
        (207, "body", 200),
        (203, "", 204),
        (205, "", 204),
    ];
    for (n, (said, body, heard)) in cases.into_iter().enumerate() {
        bed.handler.answers(Say::new(said, body));
        let answer = bed.deliver(sender, &format!("m{n}")).await;
        answer.is(heard).says(body);
    }
    assert_eq!(bed.runs(), cases.len());
}
