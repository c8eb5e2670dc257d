//! Plain Python services behind the gate: delivered twice, and eight times at once, each takes effect once.

use crate::support::gate::Gate;
use crate::support::python::{Handler, example};
use crate::support::said::{Said, command};
use crate::support::sender::deliver;
use crate::support::{lines, root};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use semel_rig::http::{Answer, Request};
use std::path::PathBuf;
use tempfile::TempDir;

/// How many deliveries arrive at the same moment.
const AT_ONCE: usize = 8;

/// An example and the gate before it.
struct ExampleBehindGate {
    gate: Gate,
    handler: Handler,
    ledger: PathBuf,
    _dir: TempDir,
}

// === impl ExampleBehindGate ===

impl ExampleBehindGate {
    /// Serves an example with these arguments, behind a gate with the example's own configuration.
    fn new(name: &str, args: &str) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let ledger = dir.path().join("ledger");
        let env = vec![("LEDGER", ledger.display().to_string())];
        let handler = Handler::start(args, env);
        let config = std::fs::read_to_string(example(&format!("{name}/semel.toml"))).unwrap();
        let (_, routes) = config.split_once("[[route]]").unwrap();
        let gate = Gate::start("dir:./store", handler.port, &format!("[[route]]{routes}"));
        Self {
            gate,
            handler,
            ledger,
            _dir: dir,
        }
    }

    /// Delivers twice, one after the other.
    fn twice(&self, request: &Request) -> [Answer; 2] {
        [(); 2].map(|()| deliver(self.gate.port, request))
    }

    /// Delivers eight times at once.
    fn at_once(&self, request: &Request) -> Vec<Answer> {
        std::thread::scope(|scope| {
            let deliveries: Vec<_> = (0..AT_ONCE)
                .map(|_| scope.spawn(|| deliver(self.gate.port, request)))
                .collect();
            let answers = deliveries.into_iter();
            answers.map(|delivery| delivery.join().unwrap()).collect()
        })
    }

    /// Everything that took effect, sorted.
    fn end(self) -> Vec<String> {
        self.handler.stop();
        let mut effects = lines(&self.ledger);
        effects.sort();
        effects
    }
}

fn all_are(answers: &[Answer], status: u16) {
    for answer in answers {
        assert_eq!(answer.status, status, "{answers:#?}");
    }
}

/// How many of these were answered from the record.
fn replays(answers: &[Answer]) -> usize {
    let replayed = |answer: &&Answer| answer.header("idempotent-replayed").is_some();
    answers.iter().filter(replayed).count()
}

#[test]
fn fastapi_takes_effect_once() {
    let dir = example("fastapi");
    let args = format!("-m uvicorn --app-dir {dir} app:app --port PORT");
    let example = ExampleBehindGate::new("fastapi", &args);
    let task = |name: &str, order: &str| {
        Request::post("/tasks/charge", format!(r#"{{"order": "{order}"}}"#))
            .header("X-CloudTasks-QueueName", "charges")
            .header("X-CloudTasks-TaskName", name)
            .header("Content-Type", "application/json")
    };
    let call = |order: &str| {
        Request::post("/orders", format!(r#"{{"order": "{order}"}}"#))
            .header("Idempotency-Key", order)
            .header("X-Client-Id", "shop")
            .header("Content-Type", "application/json")
    };

    let tasks = example.twice(&task("1", "A-1"));
    all_are(&tasks, 200);
    assert_eq!(replays(&tasks), 1);
    all_are(&example.at_once(&task("2", "A-2")), 200);
    // Another task for a known order is the same work.
    all_are(&[deliver(example.gate.port, &task("3", "A-1"))], 200);

    let calls = example.twice(&call("B-1"));
    all_are(&calls, 201);
    assert_eq!((replays(&calls), &calls[0].body), (1, &calls[1].body));
    let calls = example.at_once(&call("B-2"));
    all_are(&calls, 201);
    assert_eq!(replays(&calls), AT_ONCE - 1);
    assert!(calls.iter().all(|call| call.body == calls[0].body));

    // FastAPI's own refusal is an answer for good, too.
    let mut wrong = call("B-3");
    wrong.body = "{}".into();
    let wrong = example.twice(&wrong);
    all_are(&wrong, 422);
    assert_eq!(replays(&wrong), 1);

    let effects = ["charged A-1", "charged A-2", "created B-1", "created B-2"];
    assert_eq!(example.end(), effects);
}

#[test]
fn a_cloud_function_takes_effect_once() {
    let source = example("function/main.py");
    let serve = "--target on_event --host 127.0.0.1 --port PORT";
    let args = format!("-m functions_framework --source {source} {serve}");
    let example = ExampleBehindGate::new("function", &args);
    let push = |id: &str| {
        let data = STANDARD.encode(id);
        let body = format!(
            r#"{{"message": {{"messageId": "{id}", "data": "{data}"}}, "subscription": "projects/p/subscriptions/s"}}"#
        );
        Request::post("/", body).header("Content-Type", "application/json")
    };
    let event = |id: &str| {
        Request::post("/", format!(r#"{{"name": "{id}.csv"}}"#))
            .header("ce-specversion", "1.0")
            .header("ce-type", "file.written")
            .header("ce-source", "//storage/bucket")
            .header("ce-id", id)
            .header("Content-Type", "application/json")
    };
    for one in [push("1"), event("2")] {
        let answers = example.twice(&one);
        all_are(&answers, 200);
        assert_eq!(replays(&answers), 1);
    }
    for one in [push("3"), event("4")] {
        let answers = example.at_once(&one);
        all_are(&answers, 200);
        assert_eq!(replays(&answers), AT_ONCE - 1);
    }
    let effects = [
        "file.written 2.csv",
        "file.written 4.csv",
        "google.cloud.pubsub.topic.v1.messagePublished 1",
        "google.cloud.pubsub.topic.v1.messagePublished 3",
    ];
    assert_eq!(example.end(), effects);
}

#[test]
fn every_example_has_a_good_configuration() {
    let configurations = [
        "cloud-stock/semel",
        "early-landing/semel",
        "failed-row/semel",
        "fastapi/semel",
        "function/semel",
        "hash-key/semel",
        "invoice/semel-keyed",
        "invoice/semel-parked",
        "invoice-warehouse/semel-recorded",
        "invoice-warehouse/semel-stateless",
        "notification/semel",
        "processing-row/semel",
        "raw-merge/semel",
        "redis-lock/semel",
        "scoring/semel",
        "stock/semel",
        "three-steps/semel",
    ];
    for name in configurations {
        let config = example(&format!("{name}.toml"));
        let mut check = command(&format!("check --config {config}"));
        check.env("LANDING_URL", "file:./landing");
        Said::from(check.current_dir(root()).output().unwrap()).good();
    }
}
