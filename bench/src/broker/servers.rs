//! The programs that are measured.

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, bail};

use crate::disk;
use crate::gate::running::{Ready, Running};
use crate::gate::semel::Binary;

/// A broker, running.
#[derive(Debug)]
pub(crate) struct Server {
    pub(crate) running: Running,
    pub(crate) port: u16,
}

/// Where ours keeps what it accepts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Keep {
    Directory,
    Memory,
}

/// The one other program, from the cargo registry. It keeps everything in memory.
pub(crate) const PEER: &str = "cloud-tasks-emulator";
const PEER_VERSION: &str = "0.1.3";

/// Both answer 200 here as soon as they answer at all.
const READY_PATH: &str = "/v2/projects/bench/locations/here/queues";

// === impl Server ===

impl Server {
    /// `semel broker`.
    pub(crate) async fn ours(binary: &Binary, keep: Keep) -> anyhow::Result<Self> {
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
        let running = Running::start("semel broker", dir, &mut command, ready(port)).await?;
        Ok(Self { running, port })
    }

    /// The other one, fetched and built first if it is not there.
    pub(crate) async fn peer() -> anyhow::Result<Self> {
        let port = testbed::free_port()?;
        let mut command = Command::new(peer()?);
        command
            .env_clear()
            .env("LISTEN_ADDR", format!("127.0.0.1:{port}"))
            .env("OIDC_ISSUER", format!("http://127.0.0.1:{port}"))
            .env("QUEUES", "");
        let running = Running::start(PEER, disk::directory()?, &mut command, ready(port)).await?;
        Ok(Self { running, port })
    }
}

fn ready(port: u16) -> Ready {
    Ready {
        port,
        path: READY_PATH,
    }
}

/// Its program, in `target/`.
fn peer() -> anyhow::Result<PathBuf> {
    let here = std::env::current_exe().context("cannot tell where this program is")?;
    let target = here
        .ancestors()
        .nth(2)
        .context("this program is not in a target directory")?;
    let root = target.join("bench-peer");
    let program = root.join("bin").join(PEER);
    if program.exists() {
        return Ok(program);
    }
    let installed = Command::new("cargo")
        .args(["install", "--locked", PEER, "--version", PEER_VERSION])
        .arg("--root")
        .arg(&root)
        .status()
        .context("cannot run cargo")?;
    if !installed.success() {
        bail!("cargo could not install {PEER}: {installed}; a retry is safe");
    }
    Ok(program)
}
