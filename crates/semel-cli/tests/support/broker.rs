//! `semel broker` as a process that can be killed and started again on its port, and programs that talk to it.

use super::said::{Said, semel};
use super::{listens, root};
use http::Method;
use semel_rig::http::Request;
use serde_json::Value;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;
use tempfile::TempDir;
use testbed::Program;

/// No program takes longer, also on a busy machine.
const BOUND: Duration = Duration::from_secs(120);

/// The end of what a broker prints when it is ready.
const LAST_WORDS: &str = "Ctrl-C ends it";

/// A broker of a test's own.
#[derive(Debug)]
pub(crate) struct Broker {
    port: u16,
    flags: Vec<String>,
    program: Program,
    dir: Option<TempDir>,
}

// === impl Broker ===

impl Broker {
    /// A broker that forgets everything at its end.
    pub(crate) fn in_memory() -> Self {
        Self::start(&["--memory"])
    }

    /// A broker that misbehaves: `KIND=RATE[:ARGUMENT][@RESOURCE]` on each line.
    pub(crate) fn with_faults(faults: &str) -> Self {
        let faults = faults.lines().flat_map(|fault| ["--fault", fault]);
        Self::start(&["--memory"].into_iter().chain(faults).collect::<Vec<_>>())
    }

    /// A broker that can be started again.
    pub(crate) fn in_directory() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let broker = Self::start(&["--dir", &dir.path().display().to_string()]);
        Self {
            dir: Some(dir),
            ..broker
        }
    }

    pub(crate) fn start(flags: &[&str]) -> Self {
        let port = testbed::free_port().unwrap();
        let flags: Vec<_> = flags.iter().map(|flag| (*flag).to_owned()).collect();
        let program = launch(port, &flags);
        Self {
            port,
            flags,
            program,
            dir: None,
        }
    }

    /// Runs a command that asks it.
    pub(crate) fn ask(&self, line: &str) -> Said {
        semel(&format!("broker {line} --url http://{}", self.address()))
    }

    /// Kills it (SIGKILL), and starts it again in its storage and on its port.
    pub(crate) fn restart(&mut self) {
        self.program.kill().unwrap();
        self.program = launch(self.port, &self.flags);
    }

    /// Where it listens.
    pub(crate) fn address(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    /// All that it said, once it said this.
    pub(crate) fn log_with(&mut self, words: &str) -> String {
        let said = |program: &Program| program.log().contains(words);
        self.program.wait_until(said).unwrap();
        self.program.log()
    }

    /// The lines it prints for a shell, so that clients find it.
    pub(crate) fn exports(&self) -> String {
        let log = self.program.log();
        let exports: Vec<_> = log
            .lines()
            .map(str::trim)
            .filter(|line| line.starts_with("export "))
            .collect();
        assert!(!exports.is_empty(), "no export lines in:\n{log}");
        exports.join("\n")
    }

    /// Runs a program to its good end.
    pub(crate) fn serves(&self, command: &mut Command) {
        let mut program = Program::start(command).unwrap();
        let status = program.ended_within(BOUND).unwrap();
        assert!(
            status.success(),
            "{command:?} ended with {status}:\n{}\nthe broker's log:\n{}",
            program.log(),
            self.program.log()
        );
    }
}

fn launch(port: u16, flags: &[String]) -> Program {
    let mut command = Command::new(env!("CARGO_BIN_EXE_semel"));
    command.args(["broker", "--listen", &format!("127.0.0.1:{port}")]);
    let mut program = Program::start(command.args(flags)).unwrap();
    // It listens first, and says so afterwards.
    program
        .wait_until(|program| program.log().contains(LAST_WORDS) && listens(port))
        .unwrap();
    program
}

/// Asks a broker for something that it must grant.
pub(crate) fn ask(broker: &Broker, method: Method, path: &str, body: &Value) {
    let address = broker.address();
    let port = address.rsplit_once(':').unwrap().1.parse().unwrap();
    let request = Request::post_json(path, body.to_string()).method(method);
    let answer = request.send_blocking(port).unwrap();
    assert_eq!(answer.status, 200, "{path}: {answer:?}");
}

/// A program of `clients/python`.
pub(crate) fn python(program: &str) -> Command {
    let mut command = Command::new(testbed::python().unwrap());
    command
        .arg(clients().join("python").join(program))
        .env("PYTHONDONTWRITEBYTECODE", "1");
    command
}

/// A program of `clients/node`.
pub(crate) fn node(program: &str) -> Command {
    let mut command = testbed::node(program).unwrap();
    // Else the clients look for a machine of Google's first.
    command.env("METADATA_SERVER_DETECTION", "none");
    command
}

/// The same command, in a shell that read these lines first.
pub(crate) fn after(lines: &str, command: &Command) -> Command {
    let mut shell = Command::new("sh");
    shell
        .args(["-c", &format!("{lines}\nexec \"$@\""), "sh"])
        .arg(command.get_program())
        .args(command.get_args());
    for (name, value) in command.get_envs() {
        shell.env(name, value.unwrap_or_default());
    }
    shell
}

/// The directory of the client programs.
pub(crate) fn clients() -> PathBuf {
    root().join("clients")
}

/// Whether there is time for tests that compile other people's programs: `SEMEL_TEST_LONG=1`.
pub(crate) fn there_is_time(what: &str) -> bool {
    let long = std::env::var_os("SEMEL_TEST_LONG").is_some();
    if !long {
        println!("{what}: not tested, SEMEL_TEST_LONG is not set");
    }
    long
}
