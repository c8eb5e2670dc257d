//! Steps over HTTP: the test plays the handler.

use crate::support::prelude::*;
use http::Uri;

/// A run in the hands of the test.
struct Run {
    steps: Uri,
    key: String,
    reply: JoinHandle<Answer>,
}

impl Run {
    /// Delivers, and waits until the handler has it; it will answer with this status.
    async fn begin(bed: &Bed, status: u16) -> Self {
        bed.handler.will(Act::Hold(Say::new(status, "")));
        let reply = bed.begin(Sender::Task.sends("n", "{}"));
        let seen: Seen = bed.handler.arrived().await;
        Self {
            steps: seen.header("semel-steps").unwrap().parse().unwrap(),
            key: seen.header("semel-key").unwrap().to_owned(),
            reply,
        }
    }

    async fn ask(&self, method: Method, name: &str, body: &str) -> Answer {
        step(&self.steps, method, name, body).await
    }

    async fn end(self, bed: &Bed, status: u16) -> Uri {
        bed.handler.go();
        self.reply.await.unwrap().is(status);
        self.steps
    }
}

async fn step(steps: &Uri, method: Method, name: &str, body: &str) -> Answer {
    let path = format!("{}/{name}", steps.path());
    let address = steps.authority().unwrap().as_str().parse().unwrap();
    let ask = Ask::post(&path).method(method).body(body.to_owned());
    ask.send(address).await
}

#[tokio::test]
async fn a_step_is_begun_until_it_is_recorded_and_its_name_is_used_once() {
    let bed = Bed::new().await;
    let run = Run::begin(&bed, 200).await;
    let mut keys = Vec::new();
    for _ in 0..2 {
        let begun = run.ask(Method::POST, "charge", "").await;
        begun.is(201);
        let told: serde_json::Value = serde_json::from_slice(&begun.body).unwrap();
        keys.push(told["key"].as_str().unwrap().to_owned());
    }
    assert_eq!(keys[0], keys[1]);
    assert_ne!(keys[0], run.key);
    for _ in 0..2 {
        run.ask(Method::PUT, "charge", "receipt 7").await.is(204);
    }
    run.ask(Method::POST, "charge", "").await.is(422);
    run.ask(Method::POST, "ship", "").await.is(201);
    run.end(&bed, 200).await;
}

#[tokio::test]
async fn a_later_run_hears_the_recorded_result() {
    let bed = Bed::new().await;
    let run = Run::begin(&bed, 500).await;
    run.ask(Method::POST, "charge", "").await.is(201);
    run.ask(Method::PUT, "charge", "receipt 7").await.is(204);
    let old = run.end(&bed, 500).await;

    let run = Run::begin(&bed, 200).await;
    for _ in 0..2 {
        let memo = run.ask(Method::POST, "charge", "").await;
        memo.is(200).says("receipt 7");
    }
    step(&old, Method::POST, "charge", "").await.is(410);
    step(&old, Method::PUT, "ship", "late").await.is(410);
    run.end(&bed, 200).await;
}

#[tokio::test]
async fn what_is_recorded_stays_and_what_was_not_begun_is_not_found() {
    let bed = Bed::new().await;
    let run = Run::begin(&bed, 500).await;
    run.ask(Method::PUT, "charge", "receipt 7").await.is(404);
    run.ask(Method::POST, "charge", "").await.is(201);
    run.ask(Method::PUT, "charge", "receipt 7").await.is(204);
    run.ask(Method::PUT, "charge", "receipt 8").await.is(409);
    run.ask(Method::PUT, "charge", "receipt 7").await.is(204);
    run.ask(Method::POST, "ship", "").await.is(201);
    run.end(&bed, 500).await;

    let run = Run::begin(&bed, 200).await;
    run.ask(Method::PUT, "charge", "receipt 9").await.is(409);
    run.ask(Method::PUT, "charge", "receipt 7").await.is(204);
    // An earlier run began it, this one has not.
    run.ask(Method::PUT, "ship", "parcel 1").await.is(404);
    run.end(&bed, 200).await;
}

#[tokio::test]
async fn a_key_that_runs_anew_hands_new_step_keys_down() {
    let bed = Bed::new().await;
    let mut keys = Vec::new();
    for _ in 0..2 {
        let run = Run::begin(&bed, 500).await;
        let begun = run.ask(Method::POST, "charge", "").await;
        begun.is(201);
        let told: serde_json::Value = serde_json::from_slice(&begun.body).unwrap();
        keys.push(told["key"].as_str().unwrap().to_owned());
        run.end(&bed, 500).await;
        let key = bed.key().await;
        let acted = bed.store.kept().forget(&key).await.unwrap();
        assert_eq!(acted, semel::protocol::Acted::Applied);
    }
    assert_ne!(keys[0], keys[1]);
}

#[tokio::test]
async fn a_run_that_has_ended_has_no_steps() {
    let bed = Bed::new().await;
    let steps = Run::begin(&bed, 200).await.end(&bed, 200).await;
    step(&steps, Method::POST, "charge", "").await.is(410);
    step(&steps, Method::PUT, "charge", "x").await.is(410);
}

#[tokio::test]
async fn a_run_whose_lease_was_taken_has_no_steps() {
    let bed = Bed::new().await;
    let run = Run::begin(&bed, 200).await;
    run.ask(Method::POST, "charge", "").await.is(201);
    let key = bed.key().await;
    let acted = bed
        .store
        .kept()
        .release_by_operator(&key, "")
        .await
        .unwrap();
    run.ask(Method::PUT, "charge", "x").await.is(410);
    run.ask(Method::POST, "ship", "").await.is(410);
    drop((acted, run));
}

#[tokio::test]
async fn a_stranger_has_no_steps() {
    let bed = Bed::new().await;
    let run = Run::begin(&bed, 200).await;
    let host = run.steps.authority().unwrap().clone();
    for owner in [
        "00000000-0000-4000-8000-000000000000",
        "x",
        run.key.as_str(),
    ] {
        let uri: Uri = format!("http://{host}/steps/{owner}").parse().unwrap();
        step(&uri, Method::POST, "charge", "").await.is(410);
    }
    run.end(&bed, 200).await;
}

#[tokio::test]
async fn a_step_in_doubt_is_run_again_where_doubt_is_retried() {
    let bed = Bed::new().await;
    let run = Run::begin(&bed, 500).await;
    run.ask(Method::POST, "charge", "").await.is(201);
    run.end(&bed, 500).await;
    let run = Run::begin(&bed, 200).await;
    run.ask(Method::POST, "charge", "").await.is(201);
    run.ask(Method::PUT, "charge", "receipt 8").await.is(204);
    run.end(&bed, 200).await;
}

#[tokio::test]
async fn a_step_in_doubt_is_refused_where_doubt_is_parked() {
    let bed = Bed::route(|route| {
        route.in_doubt = InDoubt::Park;
        route.undone_statuses = vec![500..=500];
    })
    .await;
    let run = Run::begin(&bed, 500).await;
    run.ask(Method::POST, "charge", "").await.is(201);
    run.end(&bed, 500).await;
    let run = Run::begin(&bed, 200).await;
    run.ask(Method::POST, "charge", "").await.is(409);
    run.ask(Method::POST, "ship", "").await.is(201);
    run.end(&bed, 200).await;
}

#[tokio::test]
async fn a_result_is_bounded_and_a_store_that_is_away_is_said() {
    let bed = Bed::new().await;
    let run = Run::begin(&bed, 200).await;
    run.ask(Method::POST, "charge", "").await.is(201);
    let large = "x".repeat(1024 * 1024 + 1);
    run.ask(Method::PUT, "charge", &large).await.is(413);
    bed.store.is(Down::Everything);
    run.ask(Method::POST, "ship", "").await.is(503);
    run.ask(Method::PUT, "charge", "x").await.is(503);
    bed.store.is(Down::Nothing);
    run.ask(Method::PUT, "charge", &large[..1024 * 1024])
        .await
        .is(204);
    run.end(&bed, 200).await;
}
