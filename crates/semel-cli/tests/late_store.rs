//! Gates whose store is not there when they start, and commands that cannot reach theirs.

use crate::support::counter::Counter;
use crate::support::fleet::work;
use crate::support::gate::{API_ROUTE, Gate, GateFile};
use crate::support::said::{Said, Says, command};
use crate::support::sender::deliver;
use crate::support::wait_for;
use semel_rig::http::Request;
use std::time::Duration;
use testbed::{Postgres, Program};

/// A server that is down, and a gate that was started nevertheless.
struct Waiting {
    postgres: Postgres,
    counter: Counter,
    file: GateFile,
    program: Program,
}

// === impl Waiting ===

impl Waiting {
    /// With the URL that is made of the one of a good database.
    fn start(url: impl FnOnce(String) -> String) -> Self {
        let mut postgres = Postgres::start().unwrap();
        let url = url(postgres.create_database("shop").unwrap());
        postgres.stop().unwrap();
        let counter = Counter::start(Duration::ZERO);
        let file = GateFile::write(&url, counter.port, API_ROUTE);
        let mut program = Program::start(&mut file.command()).unwrap();
        program
            .wait_until(|it| it.log().contains("waiting for the store"))
            .unwrap();
        Self {
            postgres,
            counter,
            file,
            program,
        }
    }
}

#[test]
fn a_gate_waits_for_its_store_and_says_so() {
    let mut world = Waiting::start(|url| url);
    assert_eq!(world.file.ready().unwrap(), 503);
    let alive = world.file.admin(&Request::get("/healthz"));
    alive.has("alive");
    let answer = work("early").send_blocking(world.file.port).unwrap();
    assert_eq!(answer.status, 503, "{answer:?}");
    answer.body.has("errors.md#store-unavailable");
    assert!(answer.header("retry-after").is_some(), "{answer:?}");
    assert_eq!(world.counter.effects().len(), 0);
    world.program.log().lacks("\"ready\"");

    world.postgres.restart().unwrap();
    wait_for("the gate is ready", || world.file.ready().unwrap() == 200);
    for _ in 0..2 {
        assert_eq!(deliver(world.file.port, &work("early")).status, 200);
    }
    assert_eq!(world.counter.effects().len(), 1);
    world.program.log().has("\"ready\"");
    assert_eq!(world.program.stop().unwrap().code(), Some(0));
}

#[test]
fn a_gate_that_waits_can_be_stopped() {
    let mut world = Waiting::start(|url| url);
    assert_eq!(world.program.stop().unwrap().code(), Some(0));
}

#[test]
fn waiting_ends_when_it_is_of_no_use() {
    let mut world = Waiting::start(|url| url.replacen("shop", "elsewhere", 1));
    world.postgres.restart().unwrap();
    assert_eq!(world.program.ended().unwrap().code(), Some(64));
    world
        .program
        .log()
        .has("create the database, or fix the URL");
}

#[test]
fn a_gate_waits_for_the_one_before_it_to_let_go_of_a_directory() {
    let counter = Counter::start(Duration::ZERO);
    let directory = tempfile::tempdir().unwrap();
    let store = format!("dir:{}", directory.path().display());
    let mut first = Gate::start(&store, counter.port, API_ROUTE);
    assert_eq!(deliver(first.port, &work("w")).status, 200);
    let file = GateFile::write(&store, counter.port, API_ROUTE);
    let mut second = Program::start(&mut file.command()).unwrap();
    second
        .wait_until(|it| it.log().contains("is open in another process"))
        .unwrap();
    assert_eq!(file.ready().unwrap(), 503);
    first.stop();
    wait_for("the second is ready", || file.ready().unwrap() == 200);
    assert_eq!(deliver(file.port, &work("w")).status, 200);
    assert_eq!(counter.effects().len(), 1);
    assert_eq!(second.stop().unwrap().code(), Some(0));
}

#[test]
fn a_store_that_cannot_be_reached_is_69_and_one_that_refuses_is_64() {
    let nobody = testbed::free_port().unwrap();
    let postgres = testbed::fresh_database("cli_codes").unwrap();
    let (server, _) = postgres.rsplit_once('/').unwrap();
    for (store, code, says) in [
        (
            format!("postgres://u@127.0.0.1:{nobody}/d"),
            69,
            "a retry is safe",
        ),
        (format!("redis://127.0.0.1:{nobody}"), 69, "is safe"),
        (
            format!("{server}/there_is_none"),
            64,
            "create the database, or fix the URL",
        ),
    ] {
        let flags = format!(
            "gate --fail-fast --listen 127.0.0.1:0 --admin 127.0.0.1:0 --caller shared --upstream http://127.0.0.1:9 --store {store}"
        );
        let mut gate = command(&flags);
        let said: Said = gate.output().unwrap().into();
        said.ends(code, says);
        if store.starts_with("postgres") {
            let mut migrate = command(&format!("migrate --store {store}"));
            let said: Said = migrate.output().unwrap().into();
            said.ends(code, says);
        }
    }
}
