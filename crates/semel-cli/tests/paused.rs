//! A gate that is paused in the middle of a run: another parks its work and keeps the letter, the paused
//! one goes on and completes. The letter must not bring the effect again, however late it is redriven.

use crate::support::counter::Counter;
use crate::support::gate::Gate;
use crate::support::sender::deliver;
use crate::support::wait_for;
use semel_rig::http::Request;
use serde_json::Value;
use std::time::Duration;

/// The handler holds work of this name until it is let go.
const WORK: &str = "held-charge";

/// Gates on one store after the paused one has completed what the other parked.
struct Story {
    counter: Counter,
    other: Gate,
    letter: String,
    _one: Gate,
}

fn push() -> Request {
    Request::post("/charge", WORK)
        .header(
            "x-goog-pubsub-subscription-name",
            "projects/p/subscriptions/s",
        )
        .header("x-goog-pubsub-message-id", "1")
}

fn told(gate: &Gate, request: &Request) -> (u16, Value) {
    let answer = request.send_blocking(gate.admin()).unwrap();
    let json = serde_json::from_str(&answer.body);
    (answer.status, json.unwrap_or_else(|_| panic!("{answer:?}")))
}

fn story(store: &str, retention: &str) -> Story {
    let counter = Counter::start(Duration::ZERO);
    let rest = format!(
        "namespace = \"{}\"\n[[route]]\nname = \"charge\"\npath = \"/charge\"\nsource = \"pubsub\"\nin_doubt = \"park\"\n\
         lease = \"1s\"\nretention = \"{retention}\"\nhorizon = \"{retention}\"\ndeadline = \"60s\"\nwait = \"10s\"\n\
         sender_attempts = \"unlimited\"",
        counter.port
    );
    let [one, other] = [(); 2].map(|()| Gate::start(store, counter.port, &rest));
    std::thread::scope(|scope| {
        let first = scope.spawn(|| push().send_blocking(one.port).unwrap());
        wait_for("the effect", || counter.count(WORK) == 1);
        one.process().pause().unwrap();
        assert_eq!(deliver(other.port, &push()).status, 200);
        counter.let_go();
        one.process().resume().unwrap();
        assert_eq!(first.join().unwrap().status, 200);
    });
    let mut letter = None;
    wait_for("the log line of the letter", || {
        letter = letter_in(&other.log());
        letter.is_some()
    });
    let letter = letter.unwrap();
    Story {
        counter,
        other,
        letter,
        _one: one,
    }
}

/// The letter that a log speaks of.
fn letter_in(log: &str) -> Option<String> {
    let lines = log
        .lines()
        .filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let mut letters = lines.filter_map(|line| Some(line["letter"].as_str()?.to_owned()));
    letters.next()
}

/// After retention nobody knows that it succeeded: a plain redrive runs nothing.
fn redriven_after_retention(store: &str) {
    let story = story(store, "3s");
    let (counter, other, letter) = (&story.counter, &story.other, &story.letter);
    wait_for("the end of retention", || {
        let (status, said) = told(other, &Request::get("/records?limit=1000"));
        assert_eq!(status, 200, "{said}");
        let records = said["records"].as_array().unwrap();
        !records.iter().any(|record| record["state"] == "succeeded")
    });
    let redrive = Request::post(format!("/letters/{letter}/redrive"), "");
    let (status, said) = told(other, &redrive);
    assert_eq!(
        (status, &said["outcome"]),
        (409, &"unknown".into()),
        "{said}"
    );
    assert_eq!(counter.count(WORK), 1);
    let again = Request::post(format!("/letters/{letter}/redrive?run_again=true"), "");
    let (status, said) = told(other, &again);
    assert_eq!((status, &said["closed"]), (200, &true.into()), "{said}");
    assert_eq!(counter.count(WORK), 2);
}

/// Whoever looks while the success is remembered closes the letter for good.
fn looked_at_in_time(store: &str) {
    let story = story(store, "10m");
    let (counter, other, letter) = (&story.counter, &story.other, &story.letter);
    let (status, said) = told(other, &Request::get("/letters"));
    let letters = said["letters"].as_array().unwrap();
    let listed = letters.iter().any(|it| it["id"] == letter.as_str());
    assert!(status == 200 && !listed, "{said}");
    for query in ["", "?run_again=true"] {
        let redrive = Request::post(format!("/letters/{letter}/redrive{query}"), "");
        let (status, said) = told(other, &redrive);
        assert_eq!(status, 404, "{said}");
    }
    assert_eq!(counter.count(WORK), 1);
}

#[test]
fn its_letter_runs_nothing_after_retention_on_postgres() {
    redriven_after_retention(&testbed::fresh_database("paused").unwrap());
}

#[test]
fn its_letter_runs_nothing_after_retention_on_redis() {
    let redis = testbed::Redis::start(&[]).unwrap();
    redriven_after_retention(&redis.url());
}

#[test]
fn its_letter_is_closed_by_a_look_on_postgres() {
    looked_at_in_time(&testbed::fresh_database("paused").unwrap());
}

#[test]
fn its_letter_is_closed_by_a_look_on_redis() {
    looked_at_in_time(&testbed::redis_url().unwrap());
}
