//! The Python package: built as the tests were, and tried by its own tests.

use crate::run::{self, cargo};
use anyhow::Context;
use std::fs;
use std::process::Command;

const REQUIREMENTS: &str = include_str!("../../python/tests/requirements.txt");

/// What the package is measured against.
const PEERS: &str = include_str!("../../bench/python/requirements.txt");

/// What Python imports.
const IMPORTED: &str = "python/semel/_native.abi3.so";

/// Builds the extension as tests are built.
pub(crate) fn build() -> anyhow::Result<()> {
    build_as("debug", "build --package semel-python")
}

/// Builds the extension and puts it where Python finds it.
fn build_as(profile: &str, words: &str) -> anyhow::Result<()> {
    run::run(&mut cargo(words))?;
    let built = run::root()
        .join("target")
        .join(profile)
        .join("lib_native.so");
    let imported = run::root().join(IMPORTED);
    // A process that has the old one open keeps it.
    let new = imported.with_extension("new");
    fs::copy(&built, &new).with_context(|| format!("cannot copy {}", built.display()))?;
    fs::rename(&new, &imported).context("cannot put the extension in place")
}

/// The types hold, and the tests pass.
pub(crate) fn test(environment: [(&'static str, String); 3], long: bool) -> anyhow::Result<()> {
    let python = testbed::python_with("python-package", REQUIREMENTS)?;
    let command = |words: &str| {
        let mut command = Command::new(&python);
        let words = words.split_whitespace();
        command
            .args(words)
            .current_dir(run::root().join("python"))
            .env("PYTHONPATH", run::root().join("python"));
        command
    };
    run::run(&mut command("-m mypy semel tests"))?;
    let mut tests = command("-X dev -m pytest --quiet --timeout 120 --durations 5 tests");
    tests.envs(environment);
    if long {
        tests.env("SEMEL_TEST_LONG", "1");
    }
    run::run(&mut tests)
}

/// Measures the package, optimised, against what people use today.
pub(crate) fn bench(
    environment: [(&'static str, String); 3],
    rest: &[String],
) -> anyhow::Result<()> {
    build_as("release", "build --release --package semel-python")?;
    let python = testbed::python_with("python-bench", PEERS)?;
    let mut rounds = Command::new(python);
    rounds
        .arg("-W")
        .arg("ignore")
        .arg("bench/python/rounds.py")
        .args(rest)
        .current_dir(run::root())
        .env("PYTHONPATH", run::root().join("python"))
        .envs(environment);
    run::run(&mut rounds)
}
