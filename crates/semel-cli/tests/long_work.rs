//! Work that takes longer than its sender waits, with gates that are stopped and killed meanwhile, and with the broker.

use crate::support::broker::{Broker, ask, there_is_time};
use crate::support::counter::Counter;
use crate::support::gate::Gate;
use crate::support::sender::send;
use crate::support::wait_for;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use http::Method;
use semel_rig::http::Request;
use serde_json::{Value, json};
use std::time::Duration;
use tokio::time::Instant;

/// The handler holds work of this name until it is let go.
const WORK: &str = "held-report";

/// How long the test takes that is only for those who have time: an hour, and a little.
const LONG: Duration = Duration::from_secs(3600 + 30);

/// A route whose sender hears after 1.1 s that the work is running, and delivers thrice.
const ROUTE: &str = r#"
[[route]]
name = "report"
path = "/report"
source = "cloud-tasks"
deadline = "2100ms"
timeout = "6s"
sender_attempts = 3
lease = "1s"
"#;

/// Gates on one store before one handler.
struct Scene {
    counter: Counter,
    gates: Vec<Gate>,
}

fn attempt(number: u32) -> Request {
    attempt_of(WORK, number)
}

fn attempt_of(work: &'static str, number: u32) -> Request {
    Request::post("/report", work)
        .header("X-CloudTasks-QueueName", "reports")
        .header("X-CloudTasks-TaskName", "1")
        .header("X-CloudTasks-TaskRetryCount", (number - 1).to_string())
}

// === impl Scene ===

impl Scene {
    fn new(store: &str, gates: usize, top: &str, route: &str) -> Self {
        let counter = Counter::start(Duration::ZERO);
        let rest = format!("namespace = \"{}\"\n{top}{ROUTE}{route}\n", counter.port);
        let start = |_| Gate::start(store, counter.port, &rest);
        Self {
            gates: (0..gates).map(start).collect(),
            counter,
        }
    }

    /// A sender's first attempt; it runs when this returns, and its sender has heard so.
    fn runs_on(&self) {
        let heard = send(self.gates[0].port, attempt(1));
        wait_for("the effect", || self.counter.count(WORK) > 0);
        assert_eq!(heard.join().unwrap().unwrap().status, 409);
        assert_eq!(self.letters(0), [json!(["unfinished", "running"])]);
    }

    /// Why each open letter was kept, and how its work stands, as this gate lists them.
    fn letters(&self, gate: usize) -> Vec<Value> {
        let letters = self.listed(gate);
        let pair = |letter: &Value| json!([letter["reason"], letter["record"]]);
        letters.iter().map(pair).collect()
    }

    fn listed(&self, gate: usize) -> Vec<Value> {
        let said: Value = serde_json::from_str(&self.gates[gate].ask("/letters")).unwrap();
        said["letters"].as_array().unwrap().clone()
    }

    /// Redrives the one letter; what this gate says of it.
    fn redriven(&self, gate: usize) -> Value {
        let letters = self.listed(gate);
        assert_eq!(letters.len(), 1, "{letters:?}");
        let id = letters[0]["id"].as_str().unwrap();
        let redrive = Request::post(format!("/letters/{id}/redrive"), "");
        let answer = redrive.send_blocking(self.gates[gate].admin()).unwrap();
        serde_json::from_str(&answer.body).unwrap()
    }
}

// === The gate dies ===

/// The sender has given up, and its gate dies: the letter is all there is, and enough.
fn killed(store: &str, gates: usize) {
    let mut scene = Scene::new(store, gates, "", "");
    scene.runs_on();
    scene.gates[0].kill();
    let other = gates - 1;
    if other == 0 {
        scene.gates[0].again();
    }
    assert_eq!(scene.letters(other), [json!(["unfinished", "running"])]);
    scene.counter.let_go();
    // Until its lease has lapsed it may be running, for all that others know.
    let mut said = Value::Null;
    wait_for("the redrive", || {
        said = scene.redriven(other);
        said["outcome"] != "running"
    });
    assert_eq!(said["closed"], true, "{said}");
    // `retry` may repeat what was in doubt; nothing repeats what was recorded.
    assert_eq!(scene.counter.count(WORK), 2);
    let again = attempt(2).send_blocking(scene.gates[other].port).unwrap();
    assert_eq!((again.status, scene.counter.count(WORK)), (200, 2));
    assert_eq!(scene.letters(other), Vec::<Value>::new());
}

#[test]
fn a_gate_that_is_killed_leaves_the_letter_on_disk() {
    killed("dir:./data", 1);
}

#[test]
fn a_gate_that_is_killed_leaves_the_letter_to_the_others_on_postgres() {
    killed(&testbed::fresh_database("long_killed").unwrap(), 2);
}

#[test]
fn under_park_a_gate_that_is_killed_leaves_it_to_a_person() {
    let url = testbed::fresh_database("long_parked").unwrap();
    let mut scene = Scene::new(&url, 2, "", "in_doubt = \"park\"");
    scene.runs_on();
    scene.gates[0].kill();
    scene.counter.let_go();
    let port = scene.gates[1].port;
    wait_for("the last attempt", || {
        let answer = attempt(2).send_blocking(port).unwrap();
        answer.status == 200
    });
    assert_eq!(scene.letters(1), [json!(["unfinished", "parked"])]);
    assert_eq!(scene.counter.count(WORK), 1);
}

// === The gate is told to stop ===

#[test]
fn a_gate_that_is_told_to_stop_finishes_it_and_the_others_replay_it() {
    let url = testbed::fresh_database("long_stopped").unwrap();
    let mut scene = Scene::new(&url, 2, "grace = \"20s\"\n", "");
    scene.runs_on();
    let process = scene.gates[0].process();
    process.terminate().unwrap();
    wait_for("the drain", || scene.gates[0].ready() == 503);
    scene.counter.let_go();
    assert!(scene.gates[0].ended().success());
    let answer = attempt(2).send_blocking(scene.gates[1].port).unwrap();
    assert_eq!((answer.status, scene.counter.count(WORK)), (200, 1));
    assert_eq!(scene.letters(1), Vec::<Value>::new());
}

#[test]
fn a_gate_whose_grace_ends_first_leaves_it_in_doubt_with_its_letter() {
    let url = testbed::fresh_database("long_grace").unwrap();
    let mut scene = Scene::new(&url, 2, "grace = \"100ms\"\n", "in_doubt = \"park\"");
    scene.runs_on();
    scene.gates[0].stop();
    scene.counter.let_go();
    let port = scene.gates[1].port;
    wait_for("the last attempt", || {
        let answer = attempt(3).send_blocking(port).unwrap();
        answer.status == 200
    });
    assert_eq!(scene.letters(1), [json!(["unfinished", "parked"])]);
    assert_eq!(scene.counter.count(WORK), 1);
}

// === The sender gives up ===

/// All attempts are used up while it runs; it succeeds after that, and nobody is told.
#[test]
fn a_sender_that_gives_up_in_mid_run_loses_nothing() {
    let url = testbed::fresh_database("long_given_up").unwrap();
    let scene = Scene::new(&url, 2, "", "");
    scene.runs_on();
    let second = attempt(2).send_blocking(scene.gates[1].port).unwrap();
    assert_eq!(second.status, 409);
    let last = attempt(3).send_blocking(scene.gates[0].port).unwrap();
    assert_eq!(last.status, 200, "it is kept, so the sender may forget it");
    scene.counter.let_go();
    wait_for("the end", || scene.letters(1).is_empty());
    assert_eq!(scene.counter.count(WORK), 1);
}

// === With the broker ===

/// A topic whose messages are pushed to this URL, by a subscription that also has these members.
fn pushed(broker: &Broker, topic: &str, url: &str, members: &Value) {
    let name = format!("projects/p/topics/{topic}");
    ask(broker, Method::PUT, &format!("/v1/{name}"), &json!({}));
    let push = json!({"pushEndpoint": url, "noWrapper": {"writeMetadata": true}});
    let mut subscription = json!({"topic": name, "pushConfig": push});
    let all = subscription.as_object_mut().unwrap();
    all.extend(members.as_object().unwrap().clone());
    let path = format!("/v1/projects/p/subscriptions/{topic}");
    ask(broker, Method::PUT, &path, &subscription);
}

fn publish(broker: &Broker, topic: &str, data: &str) {
    let path = format!("/v1/projects/p/topics/{topic}:publish");
    let message = json!({"messages": [{"data": STANDARD.encode(data)}]});
    ask(broker, Method::POST, &path, &message);
}

/// Whether the log has a delivery that came to this.
fn logged(gate: &Gate, outcome: &str, status: u16) -> bool {
    let (outcome, status) = (
        format!("\"outcome\":\"{outcome}\""),
        format!("\"status\":{status}"),
    );
    let log = gate.log();
    let mut lines = log.lines();
    lines.any(|line| line.contains(&outcome) && line.contains(&status))
}

fn has_no_letter(gate: &Gate) -> bool {
    gate.ask("/letters").matches("\"id\"").count() == 0
}

/// What cost seven calls in a minute: 12 s of work behind Pub/Sub's own deadline, with nothing set at all.
#[test]
fn a_call_of_12_s_behind_a_deadline_of_10_s_is_made_once_by_default() {
    const CALL: Duration = Duration::from_secs(12);
    let (broker, counter) = (Broker::in_memory(), Counter::start(CALL));
    let route = "[[route]]\nname = \"model\"\npath = \"/model\"\nsource = \"pubsub\"\n";
    let gate = Gate::start("dir:./data", counter.port, route);
    let url = format!("http://127.0.0.1:{}/model", gate.port);
    pushed(&broker, "model", &url, &json!({}));
    publish(&broker, "model", "prompt");
    wait_for("the acknowledgement", || logged(&gate, "replayed", 200));
    assert!(logged(&gate, "running", 409), "{}", gate.log());
    assert_eq!(counter.effects().len(), 1);
    assert!(has_no_letter(&gate));
}

/// The subscription gives up in mid run, and its dead-letter topic delivers a copy under another id.
#[test]
fn a_message_that_is_dead_lettered_in_mid_run_is_the_same_work() {
    let (broker, counter) = (Broker::in_memory(), Counter::start(Duration::ZERO));
    let route = "[[route]]\nname = \"model\"\npath = \"/model\"\nsource = \"pubsub\"\nkey = \"body\"\n\
                 deadline = \"2100ms\"\ntimeout = \"10s\"\nsender_attempts = 5\non_exhausted = \"nack\"\n";
    let gate = Gate::start("dir:./data", counter.port, route);
    let url = format!("http://127.0.0.1:{}/model", gate.port);
    pushed(&broker, "dead", &url, &json!({}));
    let policy = json!({"deadLetterTopic": "projects/p/topics/dead", "maxDeliveryAttempts": 5});
    pushed(&broker, "model", &url, &json!({"deadLetterPolicy": policy}));
    publish(&broker, "model", "held-prompt");
    wait_for("the copy", || {
        gate.log().contains("projects/p/subscriptions/dead")
    });
    counter.let_go();
    wait_for("the acknowledgement", || logged(&gate, "replayed", 200));
    assert_eq!(counter.effects().len(), 1, "{:?}", counter.effects());
    assert!(has_no_letter(&gate));
}

/// An hour of work on one of two gates; its sender asks both, again and again.
#[test]
fn work_of_an_hour_is_done_once() {
    if !there_is_time("work of an hour") {
        return;
    }
    let url = testbed::fresh_database("long_hour").unwrap();
    let route = format!("timeout = \"{}s\"\n", 2 * LONG.as_secs());
    let counter = Counter::start(LONG);
    let rest = format!(
        "[[route]]\nname = \"report\"\npath = \"/report\"\nsource = \"cloud-tasks\"\ndeadline = \"10s\"\n\
         sender_attempts = \"unlimited\"\n{route}"
    );
    let gates = [(); 2].map(|()| Gate::start(&url, counter.port, &rest));
    let (begun, mut answers) = (Instant::now(), 0);
    loop {
        let port = gates[answers % 2].port;
        let request = attempt_of("report", 1).within(Duration::from_secs(10));
        let answer = request.send_blocking(port).unwrap();
        answers += 1;
        if answer.status == 200 {
            break;
        }
        assert_eq!(answer.status, 409);
        assert!(
            begun.elapsed() < LONG + Duration::from_secs(60),
            "it never ends"
        );
    }
    assert!(begun.elapsed() >= LONG);
    assert_eq!(counter.effects().len(), 1);
    assert!(has_no_letter(&gates[0]));
}
