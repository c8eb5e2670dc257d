//! Gates whose deliveries land, as processes: killed, told to stop, and without their database.

use crate::support::gate::{Gate, GateFile};
use crate::support::said::{Says, command};
use crate::support::wait_for;
use semel_rig::http::Request;
use serde_json::Value;
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use tempfile::TempDir;
use testbed::{Postgres, Program};

/// No handler is there.
const NOBODY: u16 = 9;

fn route(land: &str) -> String {
    format!(
        "[[route]]\nname = \"orders\"\npath = \"/orders\"\nsource = \"cloud-tasks\"\nrecord = \"none\"\nland = \"{land}\"\n"
    )
}

fn task(name: &str) -> Request {
    Request::post("/orders", "{}")
        .header("X-CloudTasks-QueueName", "orders")
        .header("X-CloudTasks-TaskName", name)
}

/// The message ids in files that readers take.
fn landed(directory: &Path) -> BTreeSet<String> {
    let mut ids = BTreeSet::new();
    for entry in std::fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|it| it == "jsonl") {
            for line in std::fs::read_to_string(path).unwrap().lines() {
                let row: Value = serde_json::from_str(line).unwrap();
                ids.insert(row["message_id"].as_str().unwrap().to_owned());
            }
        }
    }
    ids
}

/// Delivers from four senders until it is told to stop; what was acknowledged.
fn deliver_while(
    port: u16,
    round: usize,
    meanwhile: impl FnOnce(&dyn Fn() -> usize),
) -> BTreeSet<String> {
    let (acknowledged, over) = (Mutex::new(BTreeSet::new()), AtomicBool::new(false));
    std::thread::scope(|scope| {
        for sender in 0..4 {
            let (acknowledged, over) = (&acknowledged, &over);
            scope.spawn(move || {
                for n in 0.. {
                    if over.load(Ordering::Relaxed) {
                        return;
                    }
                    let name = format!("{round}-{sender}-{n}");
                    if let Ok(answer) = task(&name).send_blocking(port)
                        && answer.status == 204
                    {
                        acknowledged.lock().unwrap().insert(name);
                    }
                }
            });
        }
        meanwhile(&|| acknowledged.lock().unwrap().len());
        over.store(true, Ordering::Relaxed);
    });
    acknowledged.into_inner().unwrap()
}

#[test]
fn a_killed_gate_has_landed_what_it_acknowledged_and_one_that_stops_closes_its_file() {
    let home = TempDir::new().unwrap();
    let land = format!("file:{}", home.path().display());
    // The store is one that nobody could open, and nobody does.
    let mut gate = Gate::start("redis://127.0.0.1:1", NOBODY, &route(&land));
    gate.log().has("none: no route keeps records");
    let mut acknowledged = BTreeSet::new();
    for round in 0..2 {
        let before = acknowledged.len();
        let more = deliver_while(gate.port, round, |count| {
            wait_for("some have landed", || count() > 50);
            gate.kill();
        });
        acknowledged.extend(more);
        assert!(acknowledged.len() > before);
        gate.again();
        assert!(acknowledged.is_subset(&landed(home.path())));
    }
    let last = task("last").send_blocking(gate.port).unwrap();
    assert_eq!(last.status, 204, "{last:?}");
    assert_eq!(gate.stop().code(), Some(0));
    assert!(landed(home.path()).contains("last"));
}

#[test]
fn without_its_database_a_gate_says_503_and_lands_when_it_is_back() {
    let mut postgres = Postgres::start().unwrap();
    let url = postgres.create_database("shop").unwrap();
    let land = url.replacen("/shop", "/shop/landing", 1);
    let file = GateFile::write("redis://127.0.0.1:1", NOBODY, &route(&land));
    let mut refused = Program::start(&mut file.command()).unwrap();
    assert_eq!(refused.ended().unwrap().code(), Some(64));
    refused.log().has("there is no table \"landing\"");

    let tables = command("warehouse sql --dialect postgres --part ddl").output();
    let tables = String::from_utf8(tables.unwrap().stdout).unwrap();
    testbed::query(&url, &tables).unwrap();
    postgres.stop().unwrap();
    let mut program = Program::start(&mut file.command()).unwrap();
    program
        .wait_until(|it| it.log().contains("waiting for the landing"))
        .unwrap();
    wait_for("it listens", || task("t").send_blocking(file.port).is_ok());
    let answer = task("t").send_blocking(file.port).unwrap();
    assert_eq!(answer.status, 503, "{answer:?}");
    answer.body.has("errors.md#not-landed");
    assert!(answer.header("retry-after").is_some(), "{answer:?}");
    assert_eq!(file.ready().unwrap(), 503);

    postgres.restart().unwrap();
    wait_for("it lands", || {
        let answer = task("t").send_blocking(file.port);
        answer.is_ok_and(|answer| answer.status == 204)
    });
    let acknowledged = deliver_while(file.port, 0, |count| {
        wait_for("some have landed", || count() > 50);
        postgres.kill().unwrap();
        postgres.restart().unwrap();
        let before = count();
        wait_for("more have landed", || count() > before + 20);
    });
    assert_eq!(program.stop().unwrap().code(), Some(0));
    let found = testbed::query(&url, "SELECT message_id FROM landing").unwrap();
    let landed: BTreeSet<_> = found.lines().map(str::to_owned).collect();
    assert!(
        acknowledged.is_subset(&landed),
        "{} of {}",
        acknowledged.len(),
        landed.len()
    );
}
