//! The gate as users run it: the program itself, with a configuration file.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Context;
use tempfile::TempDir;

use crate::disk;
use crate::running::{Ready, Running};
use crate::upstream::Upstream;

/// The program `semel`.
#[derive(Debug)]
pub(crate) struct Binary(PathBuf);

/// Where a gate keeps its records.
#[derive(Debug, Clone)]
pub(crate) enum Store {
    /// In its own directory.
    Embedded,
    /// In a directory that was there before.
    Directory(PathBuf),
    /// In a database, by its URL.
    Postgres(String),
}

/// Which log lines a gate writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Log {
    /// The default: one JSON line for each delivery.
    Default,
    /// Warnings only.
    Warnings,
}

/// The route lets as many run as any measurement here has connections.
const CONCURRENCY: usize = 256;
const QUEUE: usize = 10_000;

// === impl Binary ===

impl Binary {
    /// The program that `--semel` names, or one that is built from this repository.
    pub(crate) fn given(path: Option<&Path>) -> anyhow::Result<Self> {
        path.map_or_else(Self::build, Self::at)
    }

    fn at(path: &Path) -> anyhow::Result<Self> {
        let path = path.canonicalize();
        Ok(Self(
            path.context("the program given by --semel is not there")?,
        ))
    }

    /// Built from this repository, optimised as this program is.
    fn build() -> anyhow::Result<Self> {
        let mut cargo = Command::new("cargo");
        cargo
            .args(["build", "--package", "semel-cli"])
            .current_dir(env!("CARGO_MANIFEST_DIR"));
        if !cfg!(debug_assertions) {
            cargo.arg("--release");
        }
        eprintln!("  building semel");
        testbed::run(&mut cargo)?;
        let here = std::env::current_exe().context("cannot tell where this program is")?;
        Self::at(&here.with_file_name("semel"))
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    /// How large it is without symbols.
    pub(crate) fn stripped_bytes(&self) -> anyhow::Result<u64> {
        let dir = disk::directory()?;
        let copy = dir.path().join("semel");
        testbed::run(Command::new("strip").arg("-o").arg(&copy).arg(&self.0))
            .context("strip is in Debian's package binutils")?;
        Ok(fs::metadata(&copy).context("strip made no copy")?.len())
    }
}

/// Starts a gate with one route for Cloud Tasks.
pub(crate) async fn start(
    binary: &Binary,
    store: &Store,
    handler: &Upstream,
    log: Log,
) -> anyhow::Result<Running> {
    start_before(binary, store, &handler.base(), log).await
}

/// The same, before the handler's port with TLS.
pub(crate) async fn start_with_tls(
    binary: &Binary,
    store: &Store,
    handler: &Upstream,
    log: Log,
) -> anyhow::Result<Running> {
    start_before(binary, store, &handler.base_with_tls()?, log).await
}

async fn start_before(
    binary: &Binary,
    store: &Store,
    handler: &str,
    log: Log,
) -> anyhow::Result<Running> {
    let variables: &[_] = match log {
        Log::Default => &[],
        Log::Warnings => &[("SEMEL_LOG", "warn")],
    };
    let started = start_so(binary, store, handler, "", variables).await;
    Ok(started?.0)
}

/// The same on the embedded store, with more said of the route and with these variables; its admin port, too.
pub(crate) async fn start_watched(
    binary: &Binary,
    handler: &Upstream,
    route: &str,
    variables: &[(&str, &str)],
) -> anyhow::Result<(Running, u16)> {
    start_so(binary, &Store::Embedded, &handler.base(), route, variables).await
}

/// A gate whose page is looked at, with this text behind its route; its admin port, too.
pub(crate) async fn start_with_page(
    binary: &Binary,
    store: &Store,
    handler: &Upstream,
    more: &str,
) -> anyhow::Result<(Running, u16)> {
    start_so(binary, store, &handler.base(), more, &[]).await
}

async fn start_so(
    binary: &Binary,
    store: &Store,
    handler: &str,
    route: &str,
    variables: &[(&str, &str)],
) -> anyhow::Result<(Running, u16)> {
    let dir = disk::directory()?;
    let (port, admin) = (testbed::free_port()?, testbed::free_port()?);
    let file = dir.path().join("semel.toml");
    let settings = settings(port, admin, &store.url(&dir), handler) + route;
    fs::write(&file, settings).context("cannot write semel.toml")?;
    let mut command = Command::new(&binary.0);
    command.env_clear().args(["gate", "--config"]).arg(file);
    command.envs(variables.iter().copied());
    let ready = Ready {
        port: admin,
        path: "/readyz",
    };
    let running = Running::start("semel", dir, &mut command, port, ready).await?;
    Ok((running, admin))
}

fn settings(port: u16, admin: u16, store: &str, handler: &str) -> String {
    format!(
        r#"listen = "127.0.0.1:{port}"
admin = "127.0.0.1:{admin}"
store = "{store}"
{handler}

[[route]]
name = "orders"
path = "/orders"
source = "cloud-tasks"
concurrency = {CONCURRENCY}
queue = {QUEUE}
"#
    )
}

// === impl Store ===

impl Store {
    fn url(&self, dir: &TempDir) -> String {
        match self {
            Self::Embedded => format!("dir:{}", dir.path().join("store").display()),
            Self::Directory(path) => format!("dir:{}", path.display()),
            Self::Postgres(url) => url.clone(),
        }
    }
}
