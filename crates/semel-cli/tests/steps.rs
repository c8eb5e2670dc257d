//! The steps example behind a real gate: killed after its second step, it resumes at the third.

use crate::support::gate::{API_ROUTE, Gate};
use crate::support::python::{Handler, Points, example, script};
use crate::support::sender::{Sent, deliver, send};
use crate::support::{lines, wait_for};
use semel_rig::http::Request;
use tempfile::TempDir;

const TERMS: &str = "lease = \"2s\"\nwait = \"1s\"\n";

const ALL_DONE: &str = r#"["charged A-1", "packed A-1", "sent A-1"]"#;

/// A gate before the example, on a store of its own.
struct StepsBehindGate {
    handler: Handler,
    gate: Gate,
    points: Points,
    dir: TempDir,
}

// === impl StepsBehindGate ===

impl StepsBehindGate {
    fn new(store: &str) -> Self {
        let (points, dir) = (Points::new(), tempfile::tempdir().unwrap());
        let ledger = dir.path().join("ledger").display().to_string();
        let env = vec![
            points.env(),
            ("EXAMPLE", example("steps")),
            ("LEDGER", ledger),
        ];
        let handler = Handler::start(&script("steps_at.py"), env);
        // Redis is shared with other tests: the namespace keeps keys apart.
        let rest = format!(
            "namespace = \"{}\"\n{API_ROUTE}{TERMS}",
            dir.path().display()
        );
        let gate = Gate::start(store, handler.port, &rest);
        Self {
            handler,
            gate,
            points,
            dir,
        }
    }

    /// The first delivery, under way in a thread of its own; returns when it has stopped after the second step.
    fn begin(&self) -> Sent {
        let delivery = send(self.gate.port, order().header("X-At", "after-pack"));
        self.points.wait_reached("after-pack");
        assert_eq!(self.effects(), ["charged A-1", "packed A-1"]);
        delivery
    }

    fn effects(&self) -> Vec<String> {
        lines(&self.dir.path().join("ledger"))
    }

    /// Delivers until it is done, and once more.
    fn finish(&self, store: &str) {
        let answer = deliver(self.gate.port, &order());
        assert_eq!((answer.status, &*answer.body), (200, ALL_DONE), "{store}");
        let again = deliver(self.gate.port, &order());
        assert_eq!(again.header("idempotent-replayed"), Some("true"), "{store}");
        assert_eq!(again.body, ALL_DONE, "{store}");
        assert_eq!(
            self.effects(),
            ["charged A-1", "packed A-1", "sent A-1"],
            "{store}"
        );
    }
}

fn order() -> Request {
    Request::post("/orders", r#"{"order": "A-1"}"#).header("Idempotency-Key", "A-1")
}

fn on_every_store(judge: impl Fn(&str) + Sync) {
    let postgres = testbed::fresh_database("steps").unwrap();
    let redis = testbed::redis_url().unwrap();
    std::thread::scope(|scope| {
        for store in ["dir:./store", &postgres, &redis] {
            let judge = &judge;
            scope.spawn(move || judge(store));
        }
    });
}

#[test]
fn a_handler_killed_after_its_second_step_resumes_at_the_third() {
    on_every_store(|store| {
        let mut steps = StepsBehindGate::new(store);
        let first = steps.begin();
        steps.handler.kill();
        let first = first.join().unwrap().unwrap();
        assert_eq!(first.status, 502, "{store}: {first:?}");
        steps.handler.again();
        steps.finish(store);
    });
}

#[test]
fn a_run_whose_gate_was_killed_is_overtaken_and_stops() {
    on_every_store(|store| {
        let mut steps = StepsBehindGate::new(store);
        let first = steps.begin();
        steps.gate.kill();
        assert!(first.join().unwrap().is_err(), "{store}");
        steps.gate.again();
        steps.finish(store);
        // The old run goes on now, and must not send a second time: its steps are refused with 410.
        steps.points.go("after-pack");
        wait_for("the end of the old run", || {
            steps.handler.log().contains("HTTP Error 410")
        });
        assert_eq!(steps.effects().len(), 3, "{store}");
    });
}
