//! Running commands at the root of the repository, and timing them.

use std::fs::File;
use std::io::{Seek, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Context, bail};

use crate::watch::{Count, Limits, watch};

/// Real time since a step began.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Stopwatch {
    started: Instant,
}

// === impl Stopwatch ===

impl Stopwatch {
    #[expect(
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

/// A cargo command, its words separated by spaces. It does not see what the cargo that runs xtask says of xtask's own
/// package: build scripts ask for it, and everything would be compiled again after each command of another kind.
pub(crate) fn cargo(words: &str) -> Command {
    let mut command = program("cargo", words);
    for (name, _) in std::env::vars_os() {
        let own = ["CARGO_PKG_", "CARGO_MANIFEST_"];
        if own
            .iter()
            .any(|it| name.as_encoded_bytes().starts_with(it.as_bytes()))
        {
            command.env_remove(name);
        }
    }
    command
}

/// A command at the root of the repository.
pub(crate) fn program(name: &str, words: &str) -> Command {
    let mut command = Command::new(name);
    command.args(words.split_whitespace()).current_dir(root());
    command
}

/// Shows the command, runs it, and fails when it does.
pub(crate) fn run(command: &mut Command) -> anyhow::Result<()> {
    output(command.stdout(Stdio::inherit())).map(drop)
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

/// Runs two lists of test programs at once. The output of the second list is shown when both have ended, so that they
/// do not mix.
pub(crate) fn run_beside(
    first: Vec<Command>,
    second: Vec<Command>,
    limits: Limits,
) -> anyhow::Result<Count> {
    let mut kept = tempfile::tempfile().context("cannot keep the output of a command")?;
    let (first, second) = std::thread::scope(|scope| {
        let beside = scope.spawn(|| run_aside(second, limits, &kept));
        let first = run_tests(first, limits, &mut std::io::stdout());
        (
            first,
            beside.join().expect("running commands does not panic"),
        )
    });
    kept.rewind()?;
    std::io::copy(&mut kept, &mut std::io::stdout())?;
    let mut passed = first?;
    passed += second?;
    Ok(passed)
}

/// Runs test programs one after the other; their output goes to a file.
fn run_aside(mut programs: Vec<Command>, limits: Limits, kept: &File) -> anyhow::Result<Count> {
    for program in &mut programs {
        program.stderr(kept.try_clone()?);
    }
    run_tests(programs, limits, &mut kept.try_clone()?)
}

fn run_tests(
    programs: Vec<Command>,
    limits: Limits,
    shown: &mut dyn Write,
) -> anyhow::Result<Count> {
    let mut passed = Count::default();
    for program in programs {
        writeln!(shown, "$ {}", line(&program))?;
        passed += watch(program, limits, shown)?;
    }
    Ok(passed)
}

pub(crate) fn line(command: &Command) -> String {
    let mut words = vec![command.get_program().to_string_lossy()];
    words.extend(command.get_args().map(|word| word.to_string_lossy()));
    words.join(" ")
}
