//! The compiled tests. They are compiled once, for the whole workspace, and run part by part: which packages are built
//! together decides how their dependencies are compiled, so that building each part by itself compiles most of it anew.

use crate::run;
use anyhow::Context;
use serde::Deserialize;
use std::path::{Path, PathBuf};
use std::process::Command;

const WHOLE: &str =
    "test --workspace --all-features --no-run --message-format=json-render-diagnostics";

/// The tests that a plain `cargo test` leaves out, for they take minutes.
const APART: &str = "--test gate --test specimens";

/// The tests of the workspace.
#[derive(Debug)]
pub(crate) struct Suite(Vec<Test>);

/// One program of tests.
#[derive(Debug)]
struct Test {
    /// Its package's directory, from the root of the repository.
    package: PathBuf,
    name: String,
    program: PathBuf,
}

/// What cargo says about something it built.
#[derive(Deserialize)]
struct Built {
    manifest_path: PathBuf,
    target: Target,
    executable: Option<PathBuf>,
    profile: Profile,
}

#[derive(Deserialize)]
struct Target {
    name: String,
}

#[derive(Deserialize)]
struct Profile {
    test: bool,
}

// === impl Suite ===

impl Suite {
    /// Compiles all of them.
    pub(crate) fn compile() -> anyhow::Result<Self> {
        let mut tests = built("")?;
        tests.extend(Self::apart()?.0);
        Ok(Self(tests))
    }

    /// Compiles only those that a plain `cargo test` leaves out.
    pub(crate) fn apart() -> anyhow::Result<Self> {
        let apart = built(APART)?.into_iter().filter(Test::is_apart);
        Ok(Self(apart.collect()))
    }

    /// One program, by its package's directory and its name.
    pub(crate) fn one(&self, package: &str, name: &str) -> anyhow::Result<Command> {
        let mut tests = self.0.iter();
        let test = tests.find(|test| test.package == Path::new(package) && test.name == name);
        let test = test.with_context(|| format!("{package} has no tests named {name}"))?;
        Ok(test.command())
    }

    /// The programs of the packages in these directories.
    pub(crate) fn of(&self, packages: &[&str]) -> Vec<Command> {
        self.where_package(|package| packages.contains(&package))
    }

    /// The programs of all other packages.
    pub(crate) fn of_others(&self, packages: &[&str]) -> Vec<Command> {
        self.where_package(|package| !packages.contains(&package))
    }

    fn where_package(&self, fits: impl Fn(&str) -> bool) -> Vec<Command> {
        let tests = self.0.iter().filter(|test| !test.is_apart());
        tests
            .filter(|test| fits(&test.package.to_string_lossy()))
            .map(Test::command)
            .collect()
    }
}

// === impl Test ===

impl Test {
    /// As cargo runs it: in the directory of its package.
    fn command(&self) -> Command {
        let mut command = Command::new(&self.program);
        command.current_dir(run::root().join(&self.package));
        command
    }

    fn is_apart(&self) -> bool {
        matches!(
            (self.package.to_str(), self.name.as_str()),
            (Some("proof"), "gate") | (Some("crates/semel-cli"), "specimens")
        )
    }
}

fn built(targets: &str) -> anyhow::Result<Vec<Test>> {
    let said = run::output(run::cargo(WHOLE).args(targets.split_whitespace()))?;
    let mut tests = Vec::new();
    for line in said.lines() {
        // Other messages have other fields.
        let Ok(built) = serde_json::from_str::<Built>(line) else {
            continue;
        };
        if let Some(program) = built.executable.filter(|_| built.profile.test) {
            let package = built
                .manifest_path
                .parent()
                .context("a package has a directory")?;
            let package = package.strip_prefix(run::root())?.to_owned();
            let name = built.target.name;
            tests.push(Test {
                package,
                name,
                program,
            });
        }
    }
    Ok(tests)
}
