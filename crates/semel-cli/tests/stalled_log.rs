//! A gate whose log nobody reads: it goes on, and says afterwards what is missing.

use crate::support::counter::Counter;
use crate::support::gate::GateFile;
use crate::support::wait_for;
use semel_rig::http::Request;
use serde_json::{Value, json};
use std::io::{PipeReader, Read, pipe};
use std::process::{Child, ExitStatus, Stdio};
use std::time::Duration;
use testbed::Process;

/// Each delivery is a log line of 16 KB, so that these are more than a pipe and the queue hold.
const DELIVERIES: usize = 300;
const NAME_BYTES: usize = 8_000;

const ROUTE: &str = r#"
[[route]]
name = "orders"
path = "/orders"
source = "pubsub"
"#;

/// A gate with its output on a pipe.
struct PipedGate {
    child: Child,
    file: GateFile,
    log: Option<PipeReader>,
}

// === impl PipedGate ===

impl PipedGate {
    fn start(upstream: u16) -> Self {
        let file = GateFile::write("dir:./store", upstream, ROUTE);
        let (log, writer) = pipe().unwrap();
        let mut command = file.command();
        command.stdin(Stdio::null());
        command.stdout(writer.try_clone().unwrap()).stderr(writer);
        let gate = Self {
            child: command.spawn().unwrap(),
            file,
            log: Some(log),
        };
        wait_for("a gate that is ready", || gate.file.ready() == Ok(200));
        gate
    }

    fn deliver(&self, number: usize) {
        let id = format!("{number}-{}", "i".repeat(NAME_BYTES));
        let body = json!({
            "message": { "data": "e30=", "messageId": id },
            "subscription": "s".repeat(NAME_BYTES),
        });
        let answer = Request::post("/orders", body.to_string()).send_blocking(self.file.port);
        assert_eq!(answer.unwrap().status, 200, "delivery {number}");
    }

    fn lines_dropped(&self) -> u64 {
        let metrics = self.file.admin(&Request::get("/metrics"));
        let mut lines = metrics.lines();
        let line = lines.find_map(|line| line.strip_prefix("semel_log_lines_dropped_total "));
        line.unwrap().parse().unwrap()
    }

    fn stop(&mut self) -> ExitStatus {
        Process::of(&self.child).terminate().unwrap();
        let mut status = None;
        wait_for("the end of the gate", || {
            status = self.child.try_wait().unwrap();
            status.is_some()
        });
        status.unwrap()
    }
}

impl Drop for PipedGate {
    fn drop(&mut self) {
        // It may have ended by itself.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

fn numbers(lines: &[Value], name: &str) -> u64 {
    lines.iter().filter_map(|line| line[name].as_u64()).sum()
}

#[test]
fn a_stalled_reader_of_the_log_stops_nothing_and_is_told_what_it_missed() {
    let handler = Counter::start(Duration::ZERO);
    let mut gate = PipedGate::start(handler.port);
    for number in 0..DELIVERIES {
        gate.deliver(number);
    }
    for path in ["/healthz", "/readyz"] {
        gate.file.admin(&Request::get(path));
    }
    let dropped = gate.lines_dropped();
    assert!(dropped > 0);
    let records: Value = serde_json::from_str(&gate.file.admin(&Request::get("/records"))).unwrap();
    let key = records["records"][0]["key"].as_str().unwrap();
    gate.file
        .admin(&Request::post(format!("/records/{key}/forget"), ""));
    assert_eq!(gate.lines_dropped(), dropped, "an act has its room");

    let mut log = gate.log.take().unwrap();
    let reader = std::thread::spawn(move || {
        let mut text = String::new();
        log.read_to_string(&mut text).unwrap();
        text
    });
    assert_eq!(gate.stop().code(), Some(0));
    let text = reader.join().unwrap();
    let lines: Vec<Value> = text
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let of = |target: &str| lines.iter().filter(|line| line["target"] == target).count();
    assert_eq!(numbers(&lines, "dropped"), dropped);
    assert!(text.contains(&format!("{dropped} log lines were dropped")));
    assert_eq!(of("audit"), 1);
    assert_eq!(of("delivery") as u64 + dropped, DELIVERIES as u64);
    assert!(text.contains("\"stopped\""), "the last line is there");
}

#[test]
fn a_gate_ends_although_nobody_reads_its_last_lines() {
    let handler = Counter::start(Duration::ZERO);
    let mut gate = PipedGate::start(handler.port);
    for number in 0..DELIVERIES {
        gate.deliver(number);
    }
    assert!(gate.lines_dropped() > 0);
    assert_eq!(gate.stop().code(), Some(0));
}
