//! The handler that is usually written by hand, in an environment of its own below `target/`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, bail};

use super::running::{Ready, Running};
use crate::disk;
use crate::pattern::connect;

/// The handler, running.
#[derive(Debug)]
pub(crate) struct FastApi {
    _running: Running,
    port: u16,
}

/// Named with their versions, so that two measurements are of the same thing.
const REQUIREMENTS: &str = "\
fastapi==0.162.4
starlette==1.10.0
pydantic==2.14.3
uvicorn==0.54.0
uvloop==0.23.0
httptools==0.9.0
asyncpg==0.32.0
";

const SOURCES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/src/gate");
const TABLE: &str = "CREATE TABLE done (key text PRIMARY KEY, result text)";
const WORKERS: &str = "2";

/// In sentences, for the report.
pub(crate) fn conditions() -> String {
    format!(
        "FastAPI, by hand: `INSERT … ON CONFLICT DO NOTHING`, the work itself in place of a handler behind it, \
         `UPDATE … SET result`; no lease, no fence, no expiry. {WORKERS} workers of uvicorn with uvloop and httptools, no \
         access log, 32 connections of asyncpg each. {}.",
        REQUIREMENTS.trim().replace("==", " ").replace('\n', ", ")
    )
}

// === impl FastApi ===

impl FastApi {
    pub(crate) async fn start(database: &str) -> anyhow::Result<Self> {
        let python = environment()?;
        connect(database).await?.batch_execute(TABLE).await?;
        let port = testbed::free_port()?;
        let mut command = Command::new(python.join("bin/uvicorn"));
        command
            .env_clear()
            .env("DATABASE_URL", database)
            .env("PYTHONDONTWRITEBYTECODE", "1")
            .args(["handler:app", "--app-dir", SOURCES])
            .args([
                "--workers",
                WORKERS,
                "--loop",
                "uvloop",
                "--http",
                "httptools",
            ])
            .args(["--no-access-log", "--log-level", "warning"])
            .args(["--host", "127.0.0.1", "--port"])
            .arg(port.to_string());
        let ready = Ready {
            port,
            path: "/ready",
        };
        Ok(Self {
            _running: Running::start("uvicorn", disk::directory()?, &mut command, ready).await?,
            port,
        })
    }

    pub(crate) fn port(&self) -> u16 {
        self.port
    }
}

/// The directory of a Python environment with the requirements, made when it is not there.
fn environment() -> anyhow::Result<PathBuf> {
    let program = std::env::current_exe().context("cannot tell where this program is")?;
    let beside = program.parent().context("this program has no directory")?;
    let dir = beside.join("bench-python");
    let installed = dir.join("installed.txt");
    if fs::read_to_string(&installed).is_ok_and(|text| text == REQUIREMENTS) {
        return Ok(dir);
    }
    eprintln!("  fetching FastAPI and asyncpg from PyPI");
    let mut venv = Command::new("python3");
    run(venv.args(["-m", "venv", "--clear"]).arg(&dir))?;
    install(&dir)?;
    fs::write(installed, REQUIREMENTS).context("cannot note what was installed")?;
    Ok(dir)
}

fn install(dir: &Path) -> anyhow::Result<()> {
    let mut pip = Command::new(dir.join("bin/pip"));
    pip.args(["install", "--quiet"]).args(REQUIREMENTS.lines());
    run(&mut pip)
}

fn run(command: &mut Command) -> anyhow::Result<()> {
    let program = command.get_program().to_string_lossy().into_owned();
    let status = command
        .status()
        .with_context(|| format!("cannot run {program}"))?;
    if !status.success() {
        bail!(
            "{program} failed with {status}; Python 3.9 or later with venv, and PyPI, are needed"
        );
    }
    Ok(())
}
