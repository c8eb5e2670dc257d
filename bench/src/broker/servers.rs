//! The programs that are measured.

use std::process::Command;

use crate::disk;
use crate::gate::semel::Binary;
use crate::running::{Ready, Running};

/// Where ours keeps what it accepts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Keep {
    Directory,
    Memory,
}

/// The one other program, from the cargo registry. It keeps everything in memory.
pub(crate) const PEER: &str = testbed::CLOUD_TASKS_EMULATOR;

/// `semel broker`.
pub(crate) async fn ours(binary: &Binary, keep: Keep) -> anyhow::Result<Running> {
    let dir = disk::directory()?;
    let port = testbed::free_port()?;
    let mut command = Command::new(binary.path());
    command
        .env_clear()
        .args(["broker", "--listen"])
        .arg(format!("127.0.0.1:{port}"));
    match keep {
        Keep::Directory => command.arg("--dir").arg(dir.path().join("kept")),
        Keep::Memory => command.arg("--memory"),
    };
    Running::start("semel broker", dir, &mut command, port, ready(port)).await
}

/// The other one, fetched and built first if it is not there.
pub(crate) async fn peer() -> anyhow::Result<Running> {
    let port = testbed::free_port()?;
    let mut command = testbed::cloud_tasks_emulator(port)?;
    Running::start(PEER, disk::directory()?, &mut command, port, ready(port)).await
}

/// Both answer 200 here as soon as they answer at all.
fn ready(port: u16) -> Ready {
    Ready {
        port,
        path: "/v2/projects/bench/locations/here/queues",
    }
}
