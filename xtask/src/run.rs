//! Running commands at the root of the repository, and timing them.

use std::fs::File;
use std::io::{Seek, Write};
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

/// Shows the command, runs it, and gives what it printed.
pub(crate) fn output(command: &mut Command) -> anyhow::Result<String> {
    let line = line(command);
    eprintln!("$ {line}");
    let output = command
        .stdin(Stdio::null())
        .stderr(Stdio::inherit())
        .output()
        .with_context(|| format!("cannot run `{line}`"))?;
    if !output.status.success() {
        bail!("`{line}` ended with {}", output.status);
    }
    String::from_utf8(output.stdout).with_context(|| format!("`{line}` prints no text"))
}

/// Runs two lists of commands at once. What the second list says is shown when both have ended, so that neither talks
/// into the other.
pub(crate) fn run_beside(first: Vec<Command>, second: Vec<Command>) -> anyhow::Result<()> {
    let mut said = tempfile::tempfile().context("cannot keep what a command says")?;
    let (first, second) = std::thread::scope(|scope| {
        let beside = scope.spawn(|| run_aside(second, &said));
        let first = first.into_iter().try_for_each(|mut it| run(&mut it));
        (
            first,
            beside.join().expect("running commands does not panic"),
        )
    });
    said.rewind()?;
    std::io::copy(&mut said, &mut std::io::stderr())?;
    first.and(second)
}

/// Runs commands one after the other; they talk into a file.
fn run_aside(commands: Vec<Command>, said: &File) -> anyhow::Result<()> {
    for mut command in commands {
        let mut heard = said.try_clone()?;
        writeln!(heard, "$ {}", line(&command))?;
        command.stdout(said.try_clone()?).stderr(heard);
        run(&mut command)?;
    }
    Ok(())
}

fn line(command: &Command) -> String {
    let mut words = vec![command.get_program().to_string_lossy()];
    words.extend(command.get_args().map(|word| word.to_string_lossy()));
    words.join(" ")
}
