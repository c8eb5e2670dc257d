//! Web pages: they read replays as they read first answers, and problems where the route says so.

use crate::support::prelude::*;

const SHOP: &str = "https://shop.example";

fn shared(route: &mut Route) {
    route.cors = vec!["https://other.example".into(), SHOP.into()];
}

fn from(origin: &str, key: &str, body: &str) -> Ask {
    Sender::Api.sends(key, body).header("Origin", origin)
}

#[track_caller]
fn is_readable(answer: &Answer) {
    answer.has("access-control-allow-origin", SHOP);
    answer.has("vary", "origin");
    let exposed = answer.header("access-control-expose-headers");
    assert_eq!(exposed, Some("retry-after"), "{answer:?}");
}

#[track_caller]
fn is_not_readable(answer: &Answer) {
    answer.lacks("access-control-allow-origin");
    let credentials = answer.header("access-control-allow-credentials");
    assert_eq!(credentials, None, "{answer:?}");
}

#[tokio::test]
async fn what_the_handler_says_of_origins_is_replayed() {
    let bed = Bed::new().await;
    let told = [
        ("access-control-allow-origin", SHOP),
        ("access-control-allow-credentials", "true"),
        ("access-control-expose-headers", "x-total"),
        ("vary", "Origin, Accept"),
    ];
    let said = told
        .iter()
        .fold(Say::new(201, "done"), |say, (name, value)| {
            say.header(name, value)
        });
    bed.handler.answers(said);
    let first = bed.ask(from(SHOP, "k", "{}")).await;
    first.is(201);
    let replay = bed.ask(from(SHOP, "k", "{}")).await;
    replay.is_replay(201);
    for (name, value) in told {
        first.has(name, value);
        replay.has(name, value);
    }
}

#[tokio::test]
async fn pages_of_a_named_origin_can_read_every_problem() {
    let bed = Bed::route(|route| {
        shared(route);
        route.body_bytes_max = 100;
    })
    .await;
    bed.ask(from(SHOP, "k", "{}")).await.is(200);
    let mismatched = refused(&bed, from(SHOP, "k", "other"), 422, "mismatched").await;
    let keyless = from(SHOP, "k", "{}").without("Idempotency-Key");
    let keyless = refused(&bed, keyless, 400, "key-part-missing").await;
    let large = bed.ask(from(SHOP, "l", &"x".repeat(101))).await;
    large.is_problem(413, "body-too-large");
    let unprotected = from(SHOP, "k", "").method(http::Method::GET);
    let unprotected = refused(&bed, unprotected, 400, "key-unprotected").await;
    bed.handler.will(Act::Close);
    let unreachable = refused(&bed, from(SHOP, "u", "{}"), 502, "handler-unreachable").await;
    bed.store.is(Down::Everything);
    let away = refused(&bed, from(SHOP, "a", "{}"), 503, "store-unavailable").await;
    for problem in [mismatched, keyless, large, unprotected, unreachable, away] {
        is_readable(&problem);
    }
}

#[tokio::test]
async fn other_pages_and_other_routes_read_no_problem() {
    let bed = Bed::route(shared).await;
    bed.ask(from(SHOP, "k", "{}")).await.is(200);
    for origin in [
        "https://shop.example.evil",
        "http://shop.example",
        "null",
        "",
    ] {
        let problem = refused(&bed, from(origin, "k", "other"), 422, "mismatched").await;
        is_not_readable(&problem);
        problem.has("vary", "origin");
    }
    let twice = from(SHOP, "k", "other").header("Origin", "https://evil");
    is_not_readable(&bed.ask(twice).await);
    let bed = Bed::new().await;
    bed.ask(from(SHOP, "k", "{}")).await.is(200);
    let problem = refused(&bed, from(SHOP, "k", "other"), 422, "mismatched").await;
    is_not_readable(&problem);
    problem.lacks("vary");
}

#[tokio::test]
async fn the_handlers_own_answers_are_not_touched() {
    let bed = Bed::route(shared).await;
    for status in [200, 500] {
        let said = Say::new(status, "own").header("content-type", "application/problem+json");
        bed.handler.answers(said);
        let answer = bed.ask(from(SHOP, &status.to_string(), "{}")).await;
        answer.is(status);
        is_not_readable(&answer);
    }
}
