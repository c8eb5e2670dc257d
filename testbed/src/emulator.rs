//! Other programs that play Cloud Tasks and Pub/Sub, to compare the broker with.

use std::process::Command;

use anyhow::Context;

use crate::command::{run, tool};
use crate::environment::{Environment, root};
use crate::firestore::{jar, java};

/// Its name in the cargo registry.
pub const CLOUD_TASKS_EMULATOR: &str = "cloud-tasks-emulator";

const VERSION: &str = "0.1.3";

/// Debian's package of Google's emulator of Pub/Sub, of Google's own repository.
const PUBSUB_EMULATOR: &str = "google-cloud-cli-pubsub-emulator";

/// What is said where it is not installed.
pub const PUBSUB_NOT_RUN: &str = "comparison with Google's emulator of Pub/Sub: not installed (install \
                                  google-cloud-cli-pubsub-emulator and Java)";

/// How the name of its program ends; the version stands before.
const PUBSUB_JAR: &str = "-all.jar";

/// A command that serves on this port of 127.0.0.1. The program is fetched and built first if it is not there.
///
/// # Errors
/// When cargo cannot build it.
pub fn cloud_tasks_emulator(port: u16) -> anyhow::Result<Command> {
    let environment = Environment {
        name: "emulator",
        stamp: "made-for",
        asked: VERSION,
    };
    let home = environment.made(
        |_| true,
        |home| {
            run(Command::new("cargo")
                .args(["install", "--quiet", "--locked", CLOUD_TASKS_EMULATOR])
                .args(["--version", VERSION, "--root"])
                .arg(home)
                .env("CARGO_TARGET_DIR", root().join("target/emulator-build")))
            .context("a retry is safe")
        },
    )?;
    let address = format!("127.0.0.1:{port}");
    let mut command = Command::new(home.join("bin").join(CLOUD_TASKS_EMULATOR));
    command
        .env_clear()
        .env("LISTEN_ADDR", &address)
        .env("OIDC_ISSUER", format!("http://{address}"))
        .env("QUEUES", "");
    Ok(command)
}

/// Whether Google's emulator of Pub/Sub can be started here.
#[must_use]
pub fn has_pubsub_emulator() -> bool {
    pubsub_emulator(0).is_ok()
}

/// A command that serves Google's emulator of Pub/Sub on this port of 127.0.0.1.
///
/// # Errors
/// When it or Java is not installed.
pub fn pubsub_emulator(port: u16) -> anyhow::Result<Command> {
    let mut command = tool(&java()?);
    command.arg("-jar").arg(jar(PUBSUB_EMULATOR, PUBSUB_JAR)?);
    command.args(["--host=127.0.0.1", &format!("--port={port}")]);
    Ok(command)
}
