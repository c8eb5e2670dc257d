//! Thousands of connections that stay and say next to nothing.

use crate::support::BOUND;
use crate::support::broker::there_is_time;
use crate::support::counter::Counter;
use crate::support::fleet::work;
use crate::support::gate::{API_ROUTE, Gate};
use crate::support::sender::deliver;
use semel_rig::Crowd;
use std::time::Duration;
use tokio::time::Instant;

const CONNECTIONS: usize = 5_000;

/// How much the crowd may take. With what the program takes as it ships that is less than 150 MiB, which
/// `cargo xtask bench gate --only crowd` measures; a build for tests takes more before anybody comes.
const CROWD_KIB_MAX: u64 = 134 * 1024;

/// Longer than a gate lets anybody take over a head, so that some were cut and came again.
const STAYS: Duration = Duration::from_secs(15);

/// The most memory that a process has had for itself.
fn resident_kib(process: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kib = line.unwrap().trim().strip_suffix(" kB").unwrap();
    kib.parse().unwrap()
}

#[test]
fn others_are_served_in_a_crowd_and_memory_is_bounded() {
    if !there_is_time("a crowd of 5,000 connections") {
        return;
    }
    let counter = Counter::start(Duration::ZERO);
    let gate = Gate::start("dir:./store", counter.port, API_ROUTE);
    let before = resident_kib(gate.id());
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let guard = runtime.enter();
    let mut crowd = Crowd::gather(gate.port, "/slow", CONNECTIONS);
    assert!(runtime.block_on(crowd.complete(BOUND)), "cannot connect");
    drop(guard);
    let (begun, mut sent) = (Instant::now(), 0);
    while begun.elapsed() < STAYS {
        let answer = deliver(gate.port, &work(&format!("w{sent}")));
        assert_eq!(answer.status, 200, "{answer:?}");
        sent += 1;
    }
    assert_eq!(counter.effects().len(), sent);
    let taken = resident_kib(gate.id()) - before;
    assert!(taken <= CROWD_KIB_MAX, "{taken} KiB");
    let metrics = gate.ask("/metrics");
    let count = metrics.lines().find_map(|line| {
        let value = line.strip_prefix("semel_connections{listener=\"deliveries\"} ");
        value.and_then(|value| value.parse::<usize>().ok())
    });
    // Those that were cut a moment ago are on their way back.
    assert!(
        count.is_some_and(|count| count > CONNECTIONS / 2),
        "{metrics}"
    );
}
