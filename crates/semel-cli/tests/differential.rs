//! The same calls to `semel broker` and to another Cloud Tasks emulator, whose answers agree with recordings of the
//! real service.
#![allow(
    dead_code,
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "each test uses its part, may stop at the first surprise, and says when it is skipped"
)]

#[path = "clients/broker.rs"]
mod broker;

use broker::{Broker, python, root, there_is_time};
use std::net::TcpStream;
use std::path::PathBuf;
use std::process::Command;
use testbed::Program;

const PEER: &str = "cloud-tasks-emulator";
const PEER_VERSION: &str = "0.1.3";

#[test]
fn answers_as_the_peer_does() {
    if !there_is_time("the comparison with another emulator") {
        return;
    }
    let (peer, _program) = start_peer(&install_peer());
    let broker = Broker::in_memory();
    broker.serves(python("differential.py").args([&peer, &broker.address()]));
}

/// Compiles it once; cargo sees that it is there after that.
fn install_peer() -> PathBuf {
    let home = root().join("target/peer");
    let output = Command::new(env!("CARGO"))
        .args([
            "install",
            "--quiet",
            "--locked",
            // Compiles in about half the time.
            "--debug",
            PEER,
            "--version",
            PEER_VERSION,
            "--root",
        ])
        .arg(&home)
        .env("CARGO_TARGET_DIR", home.join("target"))
        .env("CARGO_PROFILE_DEV_DEBUG", "0")
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    home.join("bin").join(PEER)
}

fn start_peer(path: &PathBuf) -> (String, Program) {
    let port = testbed::free_port().unwrap();
    let address = format!("127.0.0.1:{port}");
    let mut command = Command::new(path);
    command
        .env("LISTEN_ADDR", &address)
        .env("OIDC_ISSUER", format!("http://{address}"))
        .env("QUEUES", "");
    let mut program = Program::start(&mut command).unwrap();
    program
        .wait_until(|_| TcpStream::connect(("127.0.0.1", port)).is_ok())
        .unwrap();
    (address, program)
}
