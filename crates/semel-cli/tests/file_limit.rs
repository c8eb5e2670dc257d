//! `connections_max` and the files that a process may open.
#![allow(clippy::unwrap_used, reason = "a test may stop at the first surprise")]

mod support;

use semel_rig::http::Request;
use std::net::TcpStream;
use std::process::Command;
use support::wait_for;
use tempfile::TempDir;
use testbed::Program;

/// A gate that was started by a shell with a limit of its own.
struct LimitedGate {
    program: Program,
    port: u16,
    admin_port: u16,
    _dir: TempDir,
}

// === impl LimitedGate ===

impl LimitedGate {
    fn start(ulimit: &str, connections_max: usize) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let [port, admin_port] = [(); 2].map(|()| testbed::free_port().unwrap());
        let config = dir.path().join("semel.toml");
        let text = format!(
            "listen = \"127.0.0.1:{port}\"\nadmin = \"127.0.0.1:{admin_port}\"\nstore = \"dir:{}/store\"\n\
             upstream = \"http://127.0.0.1:9\"\nconnections_max = {connections_max}\n\
             [[route]]\nname = \"orders\"\npath = \"/orders\"\nsource = \"pubsub\"\n",
            dir.path().display()
        );
        std::fs::write(&config, text).unwrap();
        let mut command = Command::new("sh");
        command
            .args(["-c", &format!("ulimit {ulimit} && exec \"$0\" \"$@\"")])
            .arg(env!("CARGO_BIN_EXE_semel"))
            .args(["gate", "--config"])
            .arg(&config)
            .env_clear();
        let mut program = Program::start(&mut command).unwrap();
        program
            .wait_until(|it| it.log().contains("\"ready\""))
            .unwrap();
        Self {
            program,
            port,
            admin_port,
            _dir: dir,
        }
    }

    fn admin(&self, path: &str) -> String {
        let answer = Request::get(path).send_blocking(self.admin_port).unwrap();
        assert_eq!(answer.status, 200, "{answer:?}");
        answer.body
    }
}

#[test]
fn a_limit_that_may_be_raised_is_raised() {
    let gate = LimitedGate::start("-S -n 256", 1_000);
    let log = gate.program.log();
    assert!(log.contains("raised the limit of open files"), "{log}");
    assert!(!log.contains("may open too few files"), "{log}");
}

#[test]
fn a_limit_that_may_not_is_told_and_leaves_room_for_health() {
    let gate = LimitedGate::start("-n 256", 10_000);
    let log = gate.program.log();
    assert!(log.contains("may open too few files"), "{log}");
    assert!(log.contains("\"connections_max\":64"), "{log}");
    let flood: Vec<_> = (0..150)
        .map(|_| TcpStream::connect(("127.0.0.1", gate.port)).unwrap())
        .collect();
    wait_for("a flood", || {
        let line = "semel_connections{listener=\"deliveries\"} 64\n";
        gate.admin("/metrics").contains(line)
    });
    for path in ["/healthz", "/readyz"] {
        gate.admin(path);
    }
    let log = gate.program.log();
    let told = log.matches("all connections are taken").count();
    assert_eq!(told, 1, "{log}");
    assert!(!log.contains("a connection was not accepted"), "{log}");
    drop(flood);
}
