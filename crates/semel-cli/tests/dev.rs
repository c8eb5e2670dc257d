//! `semel dev`: the lines it prints, copied into a shell as they are.
#![allow(clippy::unwrap_used, reason = "a test may stop at the first surprise")]

mod support;

use std::process::Command;
use support::counter::Counter;
use support::root;
use testbed::Program;

/// README.md names the lines of the usual port after this mark.
const README_MARK: &str = "<!-- semel dev -->";
const README_ADDRESS: &str = "127.0.0.1:8080";

/// A running `semel dev`.
struct Dev {
    program: Program,
    /// Where it listens.
    address: String,
}

// === impl Dev ===

impl Dev {
    fn start(args: &[&str]) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_semel"));
        let mut program = Program::start(command.arg("dev").args(args)).unwrap();
        program
            .wait_until(|it| it.log().contains("Ctrl-C ends it"))
            .unwrap();
        let log = program.log();
        let (_, after) = log.split_once("Semel listens on http://").unwrap();
        let address = after.split_whitespace().next().unwrap().to_owned();
        Self { program, address }
    }

    /// The lines to copy.
    fn lines(&self) -> Vec<String> {
        let log = self.program.log();
        let lines = log.lines().filter_map(|line| line.strip_prefix("  "));
        lines.map(str::to_owned).collect()
    }
}

/// A port that is free together with the next one, which is for the admin address.
fn free_ports() -> String {
    let mut port = testbed::free_port().unwrap();
    loop {
        let next = testbed::free_port().unwrap();
        if next == port + 1 {
            return port.to_string();
        }
        port = next;
    }
}

fn shell(line: &str) -> String {
    let output = Command::new("sh").args(["-c", line]).output().unwrap();
    assert!(output.status.success(), "{line}: {output:?}");
    String::from_utf8(output.stdout).unwrap()
}

/// The lines of the first screen of README.md, for this address.
fn readme_lines(address: &str) -> Vec<String> {
    let readme = std::fs::read_to_string(root().join("README.md")).unwrap();
    let (_, after) = readme
        .split_once(README_MARK)
        .expect("README.md has the mark");
    let block = after.split("```").nth(1).expect("a block follows the mark");
    let lines = block.lines().skip(1).filter(|line| !line.is_empty());
    lines
        .map(|line| line.replace(README_ADDRESS, address))
        .collect()
}

#[test]
fn the_printed_lines_are_those_of_the_readme_and_take_effect_once_each() {
    let port = free_ports();
    let mut dev = Dev::start(&["--port", &port]);
    assert_eq!(dev.address, format!("127.0.0.1:{port}"));
    let lines = dev.lines();
    assert_eq!(lines, readme_lines(&dev.address));
    let (look, deliveries) = lines.split_last().unwrap();
    assert_eq!(deliveries.len(), 3);
    for line in deliveries {
        let said = shell(line).to_lowercase();
        assert_eq!(said.matches("http/1.1 20").count(), 2, "{line}: {said}");
        assert_eq!(
            said.matches("idempotent-replayed: true").count(),
            1,
            "{line}: {said}"
        );
    }
    let effects = r#"{"effects_by_order":{"A-1":1,"A-2":1,"A-3":1}}"#;
    assert_eq!(shell(look).trim(), effects);
    assert_eq!(dev.program.stop().unwrap().code(), Some(0));
    assert!(
        dev.program.log().contains("stopped"),
        "{}",
        dev.program.log()
    );
}

#[test]
fn a_taken_port_is_left_alone() {
    let port = free_ports();
    let (first, second) = (
        Dev::start(&["--port", &port]),
        Dev::start(&["--port", &port]),
    );
    assert_ne!(first.address, second.address);
    shell(&format!("curl -sf http://{}/ledger", second.address));
}

#[test]
fn a_handler_of_ones_own_takes_its_place() {
    let counter = Counter::start(std::time::Duration::ZERO);
    let port = free_ports();
    let upstream = format!("http://127.0.0.1:{}", counter.port);
    let dev = Dev::start(&["--port", &port, "--upstream", &upstream]);
    let lines = dev.lines();
    assert_eq!(lines.len(), 3, "{lines:?}");
    for line in &lines {
        let said = shell(line).to_lowercase();
        assert_eq!(said.matches("http/1.1 20").count(), 2, "{line}: {said}");
        assert_eq!(
            said.matches("idempotent-replayed: true").count(),
            1,
            "{line}: {said}"
        );
    }
    assert_eq!(counter.effects().len(), 3);
}
