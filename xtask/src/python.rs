//! The Python package: built as the tests were, and tried by its own tests.

use crate::run::{self, cargo};
use crate::servers::{self, Environment};
use anyhow::Context;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

const REQUIREMENTS: &str = include_str!("../../python/tests/requirements.txt");

/// Some of those have no version for this Python any more.
const REQUIREMENTS_3_10: &str = include_str!("../../python/tests/long/requirements-3.10.txt");

/// What the package is measured against.
const PEERS: &str = include_str!("../../bench/python/requirements.txt");

/// The project file names what builds the wheel.
const PROJECT: &str = include_str!("../../python/pyproject.toml");

/// What Python imports.
const IMPORTED: &str = "python/semel/_native.abi3.so";

/// The versions that the package is for, and what its tests need there.
const VERSIONS: [(&str, &str); 5] = [
    ("3.10", REQUIREMENTS_3_10),
    ("3.11", REQUIREMENTS),
    ("3.12", REQUIREMENTS),
    ("3.13", REQUIREMENTS),
    ("3.14", REQUIREMENTS),
];

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
pub(crate) fn test(environment: &Environment) -> anyhow::Result<()> {
    let python = testbed::python_with("python-package", REQUIREMENTS)?;
    run::run(&mut command(&python, "-m mypy semel tests"))?;
    run::run(tests(&python, 120).envs(environment.clone()))
}

/// The same, then the long tests: RabbitMQ, many kills, the built wheel; and the tests on other versions of Python.
/// Gives what could not be run.
pub(crate) fn test_long(environment: &Environment) -> anyhow::Result<Vec<String>> {
    let rabbitmq = servers::rabbitmq()?;
    let python = testbed::python_with("python-package", REQUIREMENTS)?;
    run::run(&mut command(&python, "-m mypy semel tests"))?;
    let mut long = tests(&python, 600);
    long.envs(environment.clone())
        .envs([servers::rabbitmq_variable(&rabbitmq)])
        .env("SEMEL_TEST_WHEEL", wheel()?)
        .env("SEMEL_TEST_LONG", "1");
    run::run(&mut long)?;
    let own = version(&python)?;
    let mut not_run = Vec::new();
    for (version, requirements) in VERSIONS.into_iter().filter(|(it, _)| *it != own) {
        let name = format!("python-package-{version}");
        match testbed::python_of(version, &name, requirements)? {
            Some(python) => run::run(tests(&python, 120).envs(environment.clone()))?,
            None => not_run.push(format!(
                "the tests of the Python package on Python {version}: not installed"
            )),
        }
    }
    Ok(not_run)
}

/// Builds the wheel, optimised, from a source distribution: so both are whole.
fn wheel() -> anyhow::Result<PathBuf> {
    let maturin = PROJECT.split('"').find(|it| it.starts_with("maturin=="));
    let maturin = maturin.context("python/pyproject.toml pins no maturin")?;
    let python = testbed::python_with("python-maturin", maturin)?;
    let target = run::root().join("target");
    let wheels = target.join("wheels");
    if wheels.exists() {
        fs::remove_dir_all(&wheels).context("cannot remove the last wheel")?;
    }
    let mut build = command(&python, "-m maturin build --sdist --out");
    build.arg(&wheels).env_remove("PYTHONPATH");
    // What others have written is compiled once, wherever the source distribution lies.
    run::run(build.env("CARGO_TARGET_DIR", &target))?;
    let built = fs::read_dir(&wheels).context("no wheel was built")?;
    let mut built = built.filter_map(|it| Some(it.ok()?.path()));
    built
        .find(|path| path.extension().is_some_and(|it| it == "whl"))
        .context("no wheel was built")
}

/// The version of an interpreter, as `3.11`.
fn version(python: &Path) -> anyhow::Result<String> {
    let words = "import sys; print('%d.%d' % sys.version_info[:2])";
    let said = run::output(Command::new(python).args(["-c", words]))?;
    Ok(said.trim().to_owned())
}

/// All tests but the long ones, unless these are asked for; none may take longer than so many seconds.
fn tests(python: &Path, seconds: u32) -> Command {
    let words = format!("-X dev -m pytest --quiet --timeout {seconds} --durations 5 tests");
    command(python, &words)
}

/// This Python, in the package's directory. Tests begin with default signals, also under a script that starts xtask in
/// the background and so makes it ignore Ctrl-C.
fn command(python: &Path, words: &str) -> Command {
    let mut command = Command::new("env");
    command
        .arg("--default-signal=INT,QUIT")
        .arg(python)
        .args(words.split_whitespace())
        .current_dir(run::root().join("python"))
        .env("PYTHONPATH", run::root().join("python"));
    command
}

/// Measures the package, optimised, against what people use today.
pub(crate) fn bench(environment: Environment, rest: &[String]) -> anyhow::Result<()> {
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
