//! `semel dev`: the lines it prints, copied into a shell as they are.

use crate::support::counter::Counter;
use crate::support::root;
use crate::support::said::Says;
use std::process::Command;
use testbed::Program;

/// README.md has the lines for the default ports after these marks.
const README_MARK: &str = "<!-- semel dev -->";
const README_PYTHON_MARK: &str = "<!-- semel dev, python -->";
const README_GATE: &str = "127.0.0.1:8080";
const README_BROKER: &str = "127.0.0.1:8085";

/// A running `semel dev`.
struct Dev {
    program: Program,
    /// Where the gate listens.
    gate: String,
    /// Where the broker listens.
    broker: String,
}

// === impl Dev ===

impl Dev {
    fn start(args: &[&str]) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_semel"));
        Self::started(command.arg("dev").args(args))
    }

    /// As somebody sees it who types it: on a terminal of its own.
    fn start_on_a_terminal() -> Self {
        let (port, broker) = (free_ports(), testbed::free_port().unwrap());
        let semel = env!("CARGO_BIN_EXE_semel");
        let line = format!("'{semel}' dev --port {port} --broker-port {broker}");
        Self::started(Command::new("script").args(["-qfec", &line, "/dev/null"]))
    }

    fn started(command: &mut Command) -> Self {
        let mut program = Program::start(command).unwrap();
        program
            .wait_until(|it| it.log().contains("Ctrl-C ends it"))
            .unwrap();
        let log = program.log();
        let address = |who: &str| {
            let (_, after) = log
                .split_once(&format!("Semel's {who} listens on http://"))
                .unwrap();
            let address = after.split_whitespace().next().unwrap();
            address.trim_end_matches(':').to_owned()
        };
        let (gate, broker) = (address("gate"), address("broker"));
        Self {
            program,
            gate,
            broker,
        }
    }

    /// A start on ports that were free.
    fn start_anywhere(args: &[&str]) -> Self {
        let (port, broker) = (free_ports(), testbed::free_port().unwrap().to_string());
        let ports = ["--port", &port, "--broker-port", &broker];
        let dev = Self::start(&[&ports, args].concat());
        assert_eq!(dev.gate, format!("127.0.0.1:{port}"));
        assert_eq!(dev.broker, format!("127.0.0.1:{broker}"));
        dev
    }

    /// The lines to copy.
    fn lines(&self) -> Vec<String> {
        let log = self.program.log();
        let lines = log.lines().filter_map(|line| line.strip_prefix("  "));
        lines.map(str::to_owned).collect()
    }

    /// A block of README.md, for these ports.
    fn readme_block(&self, mark: &str) -> String {
        let readme = std::fs::read_to_string(root().join("README.md")).unwrap();
        let (_, after) = readme.split_once(mark).expect("README.md has the mark");
        let block = after.split("```").nth(1).expect("a block follows the mark");
        let (_, code) = block.split_once('\n').expect("a block has lines");
        code.replace(README_GATE, &self.gate)
            .replace(README_BROKER, &self.broker)
    }

    /// How often what was delivered to a path behind the gate, with success, by the broker's history.
    fn deliveries(&self, line: &str, path: &str) -> usize {
        let history: serde_json::Value = serde_json::from_str(&shell(line)).unwrap();
        let dispatches = history["dispatches"].as_array().unwrap().iter();
        let target = format!("http://{}{path}", self.gate);
        dispatches
            .filter(|it| it["target"] == target && it["success"] == true)
            .count()
    }

    fn ledger(&self) -> String {
        shell(&format!("curl -sf {}/ledger", self.gate))
            .trim()
            .to_owned()
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

#[test]
fn the_printed_lines_are_those_of_the_readme_and_take_effect_once_each() {
    let mut dev = Dev::start_anywhere(&[]);
    let lines = dev.lines();
    let readme = dev.readme_block(README_MARK);
    assert_eq!(lines, readme.lines().collect::<Vec<_>>());
    let [task, message, calls, wait, history, look] = lines.as_slice() else {
        panic!("{lines:?}");
    };
    assert!(shell(task).contains("\"name\""));
    assert!(shell(message).contains("\"messageIds\""));
    assert_eq!(shell(calls).matches("\"charged\":1").count(), 2);
    assert!(shell(wait).contains("\"idle\":true"));
    assert_eq!(dev.deliveries(history, "/charge"), 2);
    assert_eq!(dev.deliveries(history, "/invoice"), 2);
    let effects = r#"{"effects_by_order":{"A-1":1,"A-2":1,"A-3":1}}"#;
    assert_eq!(shell(look).trim(), effects);
    assert_eq!(dev.program.stop().unwrap().code(), Some(0));
    dev.program.log().has("stopped");
}

#[test]
fn googles_python_client_of_the_readme_takes_effect_once() {
    let dev = Dev::start_anywhere(&[]);
    let code = dev.readme_block(README_PYTHON_MARK);
    let ran = Command::new(testbed::python().unwrap())
        .args(["-c", &code])
        .output()
        .unwrap();
    let name = String::from_utf8(ran.stdout).unwrap();
    assert!(
        name.contains("/queues/orders/tasks/"),
        "{name}{:?}",
        ran.stderr
    );
    let lines = dev.lines();
    assert!(shell(&lines[3]).contains("\"idle\":true"));
    assert_eq!(dev.deliveries(&lines[4], "/charge"), 2);
    assert_eq!(dev.ledger(), r#"{"effects_by_order":{"A-4":1}}"#);
}

#[test]
fn taken_ports_are_left_alone() {
    let first = Dev::start_anywhere(&[]);
    let port = |address: &str| address.rsplit(':').next().unwrap().to_owned();
    let (gate, broker) = (port(&first.gate), port(&first.broker));
    let second = Dev::start(&["--port", &gate, "--broker-port", &broker]);
    assert_ne!(first.gate, second.gate);
    assert_ne!(first.broker, second.broker);
    assert_eq!(second.ledger(), r#"{"effects_by_order":{}}"#);
    first.program.log().lacks("is taken");
    let log = second.program.log();
    for (port, said) in [
        (
            &gate,
            format!("the gate listens on {} instead", second.gate),
        ),
        (
            &broker,
            format!("the broker listens on {} instead", second.broker),
        ),
    ] {
        log.has(&format!("Port {port} is taken by another program: {said}"));
    }
}

#[test]
fn a_handler_of_ones_own_takes_its_place() {
    let counter = Counter::start(std::time::Duration::ZERO);
    let upstream = format!("http://127.0.0.1:{}", counter.port);
    let dev = Dev::start_anywhere(&["--upstream", &upstream]);
    let lines = dev.lines();
    assert_eq!(lines.len(), 5, "{lines:?}");
    for line in &lines[..4] {
        shell(line);
    }
    assert_eq!(dev.deliveries(&lines[4], "/"), 4);
    assert_eq!(counter.effects().len(), 3);
}

#[test]
fn deliveries_are_shown_as_they_arrive() {
    let dev = Dev::start_anywhere(&["--watch"]);
    dev.program.log().has("/ui\n");
    shows_deliveries(dev);
}

#[test]
fn a_terminal_is_shown_deliveries_unasked() {
    shows_deliveries(Dev::start_on_a_terminal());
}

fn shows_deliveries(mut dev: Dev) {
    let lines = dev.lines();
    for line in &lines[..3] {
        shell(line);
    }
    for shown in [
        "task A-1 · delivered 2 × · effect 1 ×",
        "message A-2 · delivered 2 × · effect 1 ×",
        "request key-1 · delivered 2 × · effect 1 ×",
    ] {
        dev.program
            .wait_until(|it| it.log().contains(shown))
            .unwrap();
    }
}
