//! `connections_max` and the files that a process may open.

use crate::support::gate::{API_ROUTE, Gate, GateFile};
use crate::support::said::Says;
use crate::support::wait_for;
use std::net::TcpStream;
use std::process::Command;

/// A gate that was started by a shell with a limit of its own.
fn limited_gate(ulimit: &str, connections_max: usize) -> Gate {
    let rest = format!("connections_max = {connections_max}\n{API_ROUTE}");
    let file = GateFile::write("dir:./store", 9, &rest);
    let gate = file.command();
    let mut shell = Command::new("sh");
    shell
        .args(["-c", &format!("ulimit {ulimit} && exec \"$0\" \"$@\"")])
        .arg(gate.get_program())
        .args(gate.get_args())
        .env_clear();
    Gate::start_by(&mut shell, file)
}

#[test]
fn a_limit_that_may_be_raised_is_raised() {
    let gate = limited_gate("-S -n 256", 1_000);
    let log = gate.log();
    log.has("raised the limit of open files");
    log.lacks("may open too few files");
}

#[test]
fn a_limit_that_may_not_is_told_and_leaves_room_for_health() {
    let gate = limited_gate("-n 256", 10_000);
    let log = gate.log();
    log.has("may open too few files");
    log.has("\"connections_max\":64");
    let flood: Vec<_> = (0..150)
        .map(|_| TcpStream::connect(("127.0.0.1", gate.port)).unwrap())
        .collect();
    wait_for("a flood", || {
        let line = "semel_connections{listener=\"deliveries\"} 64\n";
        gate.ask("/metrics").contains(line)
    });
    for path in ["/healthz", "/readyz"] {
        gate.ask(path);
    }
    let told = || gate.log().matches("all connections are taken").count();
    wait_for("the line about it", || told() > 0);
    let log = gate.log();
    assert_eq!(told(), 1, "{log}");
    log.lacks("a connection was not accepted");
    drop(flood);
}
