//! Running commands at the root of the repository, and timing them.

use std::io::Seek;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Context, bail};

/// Real time since a step began.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Stopwatch {
    started: Instant,
}

// === impl Stopwatch ===

impl Stopwatch {
    #[allow(
        clippy::disallowed_methods,
        reason = "commands take real time; nothing here is paused by a test"
    )]
    pub(crate) fn start() -> Self {
        Self {
            started: Instant::now(),
        }
    }

    pub(crate) fn seconds(self) -> f64 {
        self.started.elapsed().as_secs_f64()
    }
}

/// The root of the repository.
pub(crate) fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .expect("xtask is a directory of the repository")
}

/// A cargo command, its words separated by spaces.
pub(crate) fn cargo(words: &str) -> Command {
    program("cargo", words)
}

/// A command at the root of the repository.
pub(crate) fn program(name: &str, words: &str) -> Command {
    let mut command = Command::new(name);
    command.args(words.split_whitespace()).current_dir(root());
    command
}

/// Shows the command, runs it, and fails when it does.
pub(crate) fn run(command: &mut Command) -> anyhow::Result<()> {
    let line = line(command);
    eprintln!("$ {line}");
    let status = command
        .stdin(Stdio::null())
        .status()
        .with_context(|| format!("cannot run `{line}`"))?;
    if !status.success() {
        bail!("`{line}` ended with {status}");
    }
    Ok(())
}

/// Runs two commands at once. What the second says is shown when both have ended, so that neither
/// talks into the other.
pub(crate) fn run_beside(first: &mut Command, second: &mut Command) -> anyhow::Result<()> {
    let line = line(second);
    eprintln!("$ {line} (beside)");
    let mut said = tempfile::tempfile().context("cannot keep what a command says")?;
    let mut beside = second
        .stdin(Stdio::null())
        .stdout(said.try_clone()?)
        .stderr(said.try_clone()?)
        .spawn()
        .with_context(|| format!("cannot run `{line}`"))?;
    let first = run(first);
    let status = beside.wait().context("a command was lost")?;
    said.rewind()?;
    eprintln!("$ {line}");
    std::io::copy(&mut said, &mut std::io::stderr())?;
    first?;
    if !status.success() {
        bail!("`{line}` ended with {status}");
    }
    Ok(())
}

fn line(command: &Command) -> String {
    let mut words = vec![command.get_program().to_string_lossy()];
    words.extend(command.get_args().map(|word| word.to_string_lossy()));
    words.join(" ")
}
