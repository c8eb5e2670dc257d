//! Google's own clients against `semel broker`: each program of `clients/` says what it checks.
#![allow(
    dead_code,
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "each test uses its part, may stop at the first surprise, and says when it is skipped"
)]

mod broker;

use broker::{Broker, after, clients, node, python, root, there_is_time};
use std::process::Command;
use testbed::Program;

/// So often is the broker killed under load,
const KILLS: usize = 3;

/// each time after so many more tasks and messages were accepted.
const BETWEEN_KILLS: usize = 40;

#[test]
fn python_tasks_over_grpc() {
    let broker = Broker::in_memory();
    broker.serves(python("tasks.py").args([&broker.address(), "grpc"]));
}

#[test]
fn python_tasks_over_rest() {
    let broker = Broker::in_memory();
    broker.serves(python("tasks.py").args([&broker.address(), "rest"]));
}

#[test]
fn python_pubsub() {
    let broker = Broker::in_memory();
    broker.serves(python("pubsub.py").arg(broker.address()));
}

#[test]
fn python_pubsub_push() {
    let broker = Broker::in_memory();
    broker.serves(python("pubsub_push.py").arg(broker.address()));
}

#[test]
fn python_verifies_tokens() {
    let broker = Broker::in_memory();
    broker.serves(python("oidc.py").arg(broker.address()));
}

#[test]
fn python_sees_faults() {
    let output = python("faults.py").output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let faults = String::from_utf8(output.stdout).unwrap();
    let broker = Broker::with_faults(faults.lines().map(str::to_owned).collect());
    broker.serves(python("faults.py").arg(broker.address()));
}

#[test]
fn node_tasks_over_grpc() {
    let broker = Broker::in_memory();
    broker.serves(node("tasks.mjs").args([&broker.address(), "grpc"]));
}

#[test]
fn node_tasks_over_rest() {
    let broker = Broker::in_memory();
    broker.serves(node("tasks.mjs").args([&broker.address(), "rest"]));
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
    let build = Command::new(env!("CARGO"))
        .args(["build", "--quiet", "--manifest-path"])
        .arg(clients().join("rust/Cargo.toml"))
        .env("CARGO_TARGET_DIR", root().join("target/clients-rust"))
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&build.stderr);
    assert!(build.status.success(), "{said}");
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

/// What a user pastes into a program connects it.
#[test]
fn snippets_run() {
    let broker = Broker::in_memory();
    let output = Command::new(env!("CARGO_BIN_EXE_semel"))
        .args([
            "broker",
            "snippets",
            "python",
            "--address",
            &broker.address(),
        ])
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    let mut code = String::from_utf8(output.stdout).unwrap();
    code += "\nprint(list(tasks.list_queues(parent='projects/p/locations/l')))\n";
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("snippet.py");
    std::fs::write(&file, code).unwrap();
    broker.serves(Command::new(testbed::python().unwrap()).arg(&file));
}
