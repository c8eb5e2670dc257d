//! A Python with the packages of `requirements.txt`, in a virtual environment of the repository's own.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::Context;

use crate::command::run;
use crate::environment::Environment;

const REQUIREMENTS: &str = include_str!("../requirements.txt");

/// Looked at in this order; the first that can make a virtual environment is taken.
const INTERPRETERS: &[&str] = &["python3", "/usr/bin/python3"];

/// The interpreter of the virtual environment under `target/`, which is made first if it is not there or was made
/// for other requirements. Only one process makes it; others wait.
///
/// # Errors
/// When there is no Python that can make one, or its packages cannot be fetched.
pub fn python() -> anyhow::Result<PathBuf> {
    python_with("python", REQUIREMENTS)
}

/// The same with these requirements, in a directory of this name.
///
/// # Errors
/// As [`python`].
pub fn python_with(name: &str, requirements: &str) -> anyhow::Result<PathBuf> {
    made(name, requirements, interpreter)
}

/// The same, made with the Python of this version (`3.12`); none where there is no such Python, or it cannot make a
/// virtual environment.
///
/// # Errors
/// When its packages cannot be fetched.
pub fn python_of(version: &str, name: &str, requirements: &str) -> anyhow::Result<Option<PathBuf>> {
    let Some(interpreter) = of_version(version) else {
        return Ok(None);
    };
    made(name, requirements, || Ok(interpreter)).map(Some)
}

fn made(
    name: &str,
    requirements: &str,
    interpreter: impl FnOnce() -> anyhow::Result<PathBuf>,
) -> anyhow::Result<PathBuf> {
    let environment = Environment {
        name,
        stamp: "requirements.txt",
        asked: requirements,
    };
    // The interpreter is a link: gone when the Python it was made with is.
    let whole = |home: &Path| interpreter_of(home).exists();
    let home = environment.made(whole, |home| make(home, requirements, &interpreter()?))?;
    Ok(interpreter_of(&home))
}

/// Debian's packages that [`python`] needs and that are not here.
pub(crate) fn missing() -> Vec<&'static str> {
    if interpreter().is_ok() {
        return Vec::new();
    }
    vec!["python3", "python3-venv"]
}

fn interpreter_of(home: &Path) -> PathBuf {
    home.join("bin/python")
}

fn make(home: &Path, requirements: &str, interpreter: &Path) -> anyhow::Result<()> {
    let asked = home.with_extension("asked.txt");
    std::fs::write(&asked, requirements).context("cannot write the requirements")?;
    run(Command::new(interpreter)
        .args(["-m", "venv", "--clear"])
        .arg(home))
    .context("cannot make a Python environment")?;
    // Keeps the environment, because a proxy or a mirror may be set there.
    run(Command::new(interpreter_of(home))
        .args(["-m", "pip", "install", "--quiet", "--requirement"])
        .arg(&asked))
    .context("cannot fetch the Python packages that are asked for; a retry is safe")
}

/// A Python that has what its own `venv` needs: Debian leaves that out of python3.
fn interpreter() -> anyhow::Result<PathBuf> {
    let mut interpreters = INTERPRETERS.iter().map(PathBuf::from);
    interpreters
        .find(|program| can(program, "import ensurepip, venv"))
        .context(
            "no Python here can make a virtual environment: apt-get install python3-venv, then retry",
        )
}

/// A Python of this version, from the PATH or from pyenv. What pyenv puts on the PATH exists for every version that it
/// has, and works only for the one that is chosen.
fn of_version(version: &str) -> Option<PathBuf> {
    let program = format!("python{version}");
    let home = std::env::var_os("PYENV_ROOT").map(PathBuf::from);
    let home = home.or_else(|| Some(Path::new(&std::env::var_os("HOME")?).join(".pyenv")));
    let installed = home.and_then(|home| std::fs::read_dir(home.join("versions")).ok());
    let installed = installed.into_iter().flatten().filter_map(Result::ok);
    let installed = installed.map(|it| it.path().join("bin").join(&program));
    let words =
        format!("import ensurepip, venv, sys; sys.version.startswith('{version}.') or exit(1)");
    std::iter::once(PathBuf::from(&program))
        .chain(installed)
        .find(|program| can(program, &words))
}

/// Whether this Python runs these words.
fn can(program: &Path, words: &str) -> bool {
    Command::new(program)
        .args(["-c", words])
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_that_is_not_here_is_none() {
        assert_eq!(of_version("2.99"), None);
        let found = of_version(&machine_version()).unwrap();
        assert!(can(&found, "import ensurepip"));
    }

    /// Of the Python that makes environments, as `3.11`.
    fn machine_version() -> String {
        let words = "import sys; print('%d.%d' % sys.version_info[:2])";
        let mut python = Command::new(interpreter().unwrap());
        let output = python.args(["-c", words]).output().unwrap();
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    }

    #[test]
    fn environment_has_the_packages() {
        let python = python().unwrap();
        run(Command::new(python).args([
            "-c",
            "import fastapi, uvicorn, functions_framework, psycopg, jwt, google.auth, google.cloud.pubsub_v1, google.cloud.tasks_v2",
        ]))
        .unwrap();
    }
}
