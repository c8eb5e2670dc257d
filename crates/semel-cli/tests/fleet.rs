//! Several gates on one store: restarted one after another, killed, and without their store for a while.

use crate::support::counter::Counter;
use crate::support::fleet::{Fleet, Traffic, deliver_from, work};
use crate::support::gate::{API_ROUTE, Gate};
use crate::support::sender::{deliver, send};
use crate::support::{listens, wait_for};
use std::time::Duration;
use testbed::Postgres;

/// At least so many pieces of work see each story.
const WORKS_MIN: usize = 60;

#[test]
fn a_rolling_restart_on_postgres_repeats_and_loses_nothing() {
    rolling_restart(&testbed::fresh_database("fleet").unwrap());
}

#[test]
fn a_rolling_restart_on_redis_repeats_and_loses_nothing() {
    rolling_restart(&testbed::redis_url().unwrap());
}

fn rolling_restart(store: &str) {
    // A gate that is told to stop leaves nothing to lapse.
    let mut fleet = Fleet::start(store, "30s");
    let traffic = Traffic::default();
    let ports = fleet.ports.clone();
    traffic.during(&ports, WORKS_MIN, || {
        for gate in &mut fleet.gates {
            let before = traffic.answered().len();
            assert_eq!(gate.stop().code(), Some(0), "{}", gate.log());
            assert_eq!(told_left(gate), 0, "{}", gate.log());
            gate.again();
            // The next one only after work has gone on.
            wait_for("work after a restart", || {
                traffic.answered().len() >= before + 5
            });
        }
    });
    let works = traffic.works();
    assert!(works.len() >= WORKS_MIN);
    for name in &works {
        assert_eq!(fleet.counter.count(name), 1, "{name}");
    }
    assert_eq!(fleet.counter.effects().len(), works.len());
}

#[test]
fn a_killed_gate_on_postgres_repeats_only_what_was_in_flight() {
    kill_one(&testbed::fresh_database("fleet").unwrap());
}

#[test]
fn a_killed_gate_on_redis_repeats_only_what_was_in_flight() {
    kill_one(&testbed::redis_url().unwrap());
}

fn kill_one(store: &str) {
    let mut fleet = Fleet::start(store, "2s");
    let traffic = Traffic::default();
    let ports = fleet.ports.clone();
    let killed_gate = fleet.gates[0].steps_port;
    let held = ["held-1", "held-2", "held-3"];
    let mut answered_before = Default::default();
    std::thread::scope(|scope| {
        for name in held {
            let ports = &ports;
            scope.spawn(move || deliver_from(ports, 0, name));
        }
        // These have taken effect, and their gate does not know it.
        wait_for("held runs", || {
            held.iter().all(|name| fleet.counter.count(name) == 1)
        });
        traffic.during(&ports, WORKS_MIN, || {
            wait_for("traffic", || traffic.answered().len() >= 10);
            answered_before = traffic.answered();
            fleet.gates[0].kill();
            fleet.counter.let_go();
        });
    });
    let mut works = traffic.works();
    works.extend(held.map(str::to_owned));
    let effects = fleet.counter.effects();
    for name in &works {
        let gates: Vec<_> = effects
            .iter()
            .filter(|effect| &effect.work == name)
            .map(|effect| effect.gate)
            .collect();
        match gates[..] {
            [_] => assert!(!held.contains(&&**name), "{name} was in flight at the kill"),
            [first, second] => {
                assert_eq!(
                    first, killed_gate,
                    "{name} took effect twice without a crash"
                );
                assert_ne!(second, killed_gate, "{name} ran at a dead gate");
                assert!(
                    !answered_before.contains(name),
                    "{name} was answered before"
                );
            }
            _ => panic!("{name} took effect {} times", gates.len()),
        }
    }
}

/// What a gate said was left when it stopped.
fn told_left(gate: &Gate) -> usize {
    let log = gate.log();
    let last = log.lines().last().unwrap_or_default();
    let line: serde_json::Value = serde_json::from_str(last).unwrap();
    assert_eq!(line["message"], "stopped", "{log}");
    line["left"].as_u64().unwrap().try_into().unwrap()
}

#[test]
fn a_gate_told_to_stop_finishes_what_is_in_hand() {
    let counter = Counter::start(Duration::ZERO);
    let mut gate = Gate::start("dir:./store", counter.port, API_ROUTE);
    let port = gate.port;
    let delivery = send(port, work("held"));
    wait_for("a run", || counter.count("held") == 1);
    gate.process().terminate().unwrap();
    wait_for("the gate to refuse", || !listens(port));
    counter.let_go();
    let answer = delivery.join().unwrap().unwrap();
    assert_eq!((answer.status, &*answer.body), (200, "did held"));
    assert_eq!(gate.ended().code(), Some(0));
    assert_eq!(told_left(&gate), 0);
    gate.again();
    let again = deliver(port, &work("held"));
    assert_eq!(again.header("idempotent-replayed"), Some("true"));
    assert_eq!(counter.count("held"), 1);
}

#[test]
fn a_gate_whose_grace_is_over_says_what_it_leaves() {
    let counter = Counter::start(Duration::ZERO);
    let rest = format!("grace = \"300ms\"\n{API_ROUTE}lease = \"1s\"\n");
    let mut gate = Gate::start("dir:./store", counter.port, &rest);
    let port = gate.port;
    let delivery = send(port, work("held"));
    wait_for("a run", || counter.count("held") == 1);
    assert_eq!(gate.stop().code(), Some(0), "{}", gate.log());
    assert_eq!(told_left(&gate), 1);
    let left = "left: sent to its handler and not ended";
    assert_eq!(gate.log().matches(left).count(), 1, "{}", gate.log());
    // Nobody claims to know how it ended.
    match delivery.join().unwrap() {
        Ok(answer) => assert!(answer.status >= 500, "{answer:?}"),
        Err(_cut) => {}
    }
    counter.let_go();
    gate.again();
    assert_eq!(deliver(port, &work("held")).status, 200);
    // Doubt is retried on this route.
    assert_eq!(counter.count("held"), 2);
}

#[test]
fn a_store_that_is_away_for_a_while_repeats_and_loses_nothing() {
    let mut postgres = Postgres::start().unwrap();
    let counter = Counter::start(Duration::ZERO);
    let gate = Gate::start(&postgres.url(), counter.port, API_ROUTE);
    assert_eq!(deliver(gate.port, &work("first")).status, 200);

    // Before a run: nothing is run.
    postgres.stop().unwrap();
    let refused = work("second").send_blocking(gate.port).unwrap();
    assert_eq!(refused.status, 503, "{refused:?}");
    assert!(refused.header("retry-after").is_some());
    assert_eq!(counter.count("second"), 0);
    assert_eq!(gate.ready(), 503);
    postgres.restart().unwrap();
    assert_eq!(deliver(gate.port, &work("second")).status, 200);
    assert_eq!(counter.count("second"), 1);
    wait_for("a ready gate", || gate.ready() == 200);

    // After a run: the sender hears the answer, and the record is made when the store is back.
    let port = gate.port;
    let delivery = send(port, work("held"));
    wait_for("a run", || counter.count("held") == 1);
    postgres.stop().unwrap();
    counter.let_go();
    let answer = delivery.join().unwrap().unwrap();
    assert_eq!((answer.status, &*answer.body), (200, "did held"));
    assert_eq!(answer.header("semel-recorded"), Some("pending"));
    postgres.restart().unwrap();
    wait_for("the record", || {
        let settled = "SELECT count(*) FROM semel.rec WHERE state = 2";
        testbed::query(&postgres.url(), settled).is_ok_and(|count| count == "3")
    });
    // The gate may hear of it a moment later than the database has it.
    wait_for("a gate that knows it", || {
        let again = deliver(gate.port, &work("held"));
        assert_eq!((again.status, &*again.body), (200, "did held"));
        again.header("idempotent-replayed") == Some("true")
    });
    assert_eq!(counter.count("held"), 1);
}
