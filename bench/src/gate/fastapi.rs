//! The handler that is usually written by hand, in an environment of its own below `target/`.

use std::process::Command;

use crate::disk;
use crate::pattern::connect;
use crate::running::{Ready, Running};

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

/// Starts it on an empty database.
pub(crate) async fn start(database: &str) -> anyhow::Result<Running> {
    eprintln!("  fetching FastAPI and asyncpg from PyPI, if they are not there");
    let python = testbed::python_with("bench-python", REQUIREMENTS)?;
    connect(database).await?.batch_execute(TABLE).await?;
    let port = testbed::free_port()?;
    let mut command = Command::new(python.with_file_name("uvicorn"));
    command
        .env_clear()
        .env("DATABASE_URL", database)
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .args(["handler:app", "--app-dir", SOURCES])
        .args(["--workers", WORKERS])
        .args(["--loop", "uvloop", "--http", "httptools"])
        .args(["--no-access-log", "--log-level", "warning"])
        .args(["--host", "127.0.0.1", "--port", &port.to_string()]);
    let path = "/ready";
    let ready = Ready { port, path };
    Running::start("uvicorn", disk::directory()?, &mut command, port, ready).await
}
