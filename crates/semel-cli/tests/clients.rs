//! Google's own clients against `semel broker`: each program of `clients/` says what it checks.

use crate::support::broker::{Broker, after, clients, node, python, there_is_time};
use crate::support::said::{Said, semel};
use crate::support::{listens, root};
use serde_json::Value;
use std::collections::BTreeSet;
use std::process::Command;
use std::time::Duration;
use testbed::Program;

/// So often is the broker killed under load,
const KILLS: usize = 3;

/// each time after so many more tasks and messages were accepted.
const BETWEEN_KILLS: usize = 40;

/// Google's emulator leaves some cases waiting until their patience ends.
const EMULATOR_BOUND: Duration = Duration::from_secs(280);

/// Runs a program of Google's clients against a new broker, whose address is its first argument.
fn served(mut program: Command, args: &[&str]) {
    let broker = Broker::in_memory();
    broker.serves(program.arg(broker.address()).args(args));
}

#[test]
fn python_tasks_over_grpc() {
    served(python("tasks.py"), &["grpc"]);
}

#[test]
fn python_tasks_over_rest() {
    served(python("tasks.py"), &["rest"]);
}

#[test]
fn python_pubsub() {
    served(python("pubsub.py"), &[]);
}

#[test]
fn python_pubsub_push() {
    served(python("pubsub_push.py"), &[]);
}

/// By Google's own descriptors: nothing is dropped in silence.
#[test]
fn every_method_and_field_is_served_or_refused() {
    served(python("interface.py"), &[]);
}

#[test]
fn every_field_that_is_served_comes_back() {
    for transport in ["grpc", "rest"] {
        served(python("round_trip.py"), &[transport]);
    }
}

#[test]
fn every_field_of_a_request_does_something() {
    for transport in ["grpc", "rest"] {
        served(python("effects.py"), &[transport]);
    }
}

#[test]
fn cases_of_others_tests_of_pubsub() {
    served(python("pubsub_cases.py"), &[]);
}

#[test]
fn cases_of_others_tests_of_tasks() {
    let port = testbed::free_port().unwrap().to_string();
    let url = format!("http://127.0.0.1:{port}");
    let broker = Broker::start(&["--memory", "--app-engine-url", &url]);
    let mut cases = python("tasks_cases.py");
    broker.serves(cases.args([broker.address(), port]));
}

#[test]
fn cases_of_others_tests_of_pubsub_in_node() {
    let broker = Broker::in_memory();
    broker.serves(&mut after(&broker.exports(), &node("cases.mjs")));
}

/// The same cases against Google's own emulator: it does otherwise where `clients/cases.toml` says so, and only there.
#[test]
fn googles_emulator_differs_where_it_is_said() {
    if !there_is_time("the comparison with Google's emulator of Pub/Sub") {
        return;
    }
    // The end of the test command says so.
    if !testbed::has_pubsub_emulator() {
        return;
    }
    let port = testbed::free_port().unwrap();
    let mut emulator = Program::start(&mut testbed::pubsub_emulator(port).unwrap()).unwrap();
    emulator.wait_until(|_| listens(port)).unwrap();
    let mut cases = python("pubsub_cases.py");
    let mut program = Program::start(cases.arg(format!("127.0.0.1:{port}"))).unwrap();
    program.ended_within(EMULATOR_BOUND).unwrap();
    let differs: BTreeSet<_> = program.log().lines().filter_map(not_held).collect();
    let list = std::fs::read_to_string(clients().join("cases.toml")).unwrap();
    let list: toml::Table = list.parse().unwrap();
    let said = list["emulator"].as_table().unwrap().keys().cloned();
    assert_eq!(differs, said.collect(), "{}", program.log());
}

/// The case of a line of results, if it did not hold.
fn not_held(line: &str) -> Option<String> {
    let result: Value = serde_json::from_str(line).ok()?;
    let case = result["case"].as_str()?.to_owned();
    (result["held"] == false).then_some(case)
}

#[test]
fn python_verifies_tokens() {
    served(python("oidc.py"), &[]);
}

#[test]
fn python_sees_faults() {
    let faults = Said::from(python("faults.py").output().unwrap()).good();
    let broker = Broker::with_faults(&faults);
    broker.serves(python("faults.py").arg(broker.address()));
}

#[test]
fn node_tasks_over_grpc() {
    served(node("tasks.mjs"), &["grpc"]);
}

#[test]
fn node_tasks_over_rest() {
    served(node("tasks.mjs"), &["rest"]);
}

/// Finds the broker by the lines that it prints.
#[test]
fn node_pubsub() {
    let broker = Broker::in_memory();
    broker.serves(&mut after(&broker.exports(), &node("pubsub.mjs")));
}

/// Finds the broker by the lines that it prints.
#[test]
fn firebase_functions() {
    let broker = Broker::in_memory();
    broker.serves(&mut after(&broker.exports(), &node("functions.mjs")));
}

#[test]
fn rust_tasks_and_pubsub() {
    if !there_is_time("Google's Rust clients") {
        return;
    }
    testbed::run(
        Command::new(env!("CARGO"))
            .args(["build", "--quiet", "--manifest-path"])
            .arg(clients().join("rust/Cargo.toml"))
            .env("CARGO_TARGET_DIR", root().join("target/clients-rust")),
    )
    .unwrap();
    let program = root().join("target/clients-rust/debug/semel-clients");
    let broker = Broker::in_memory();
    for service in ["tasks", "pubsub"] {
        broker.serves(Command::new(&program).args([&broker.address(), service]));
    }
}

#[test]
fn what_was_accepted_survives_kills() {
    let mut broker = Broker::in_directory();
    let dir = tempfile::tempdir().unwrap();
    let enough = dir.path().join("enough");
    let mut client = python("survive.py");
    client.arg(broker.address()).arg(&enough);
    let mut program = Program::start(&mut client).unwrap();
    for kills in 0..=KILLS {
        let accepted = |program: &Program| program.log().matches("accepted ").count();
        let before = accepted(&program);
        program
            .wait_until(|program| accepted(program) >= before + BETWEEN_KILLS)
            .unwrap();
        if kills < KILLS {
            broker.restart();
        }
    }
    std::fs::write(&enough, "").unwrap();
    let status = program.ended().unwrap();
    assert!(status.success(), "{}", program.log());
}

/// The same calls to another emulator, whose answers agree with recordings of the real service.
#[test]
fn answers_as_the_peer_does() {
    if !there_is_time("the comparison with another emulator") {
        return;
    }
    let port = testbed::free_port().unwrap();
    let mut peer = Program::start(&mut testbed::cloud_tasks_emulator(port).unwrap()).unwrap();
    peer.wait_until(|_| listens(port)).unwrap();
    let (peer, broker) = (format!("127.0.0.1:{port}"), Broker::in_memory());
    broker.serves(python("differential.py").args([peer, broker.address()]));
}

/// What a user pastes into a program connects it.
#[test]
fn snippets_run() {
    let broker = Broker::in_memory();
    let line = format!("broker snippets python --address {}", broker.address());
    let mut code = semel(&line).good();
    code += "\nprint(list(tasks.list_queues(parent='projects/p/locations/l')))\n";
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("snippet.py");
    std::fs::write(&file, code).unwrap();
    broker.serves(Command::new(testbed::python().unwrap()).arg(&file));
}
