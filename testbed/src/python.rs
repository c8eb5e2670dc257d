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
    let environment = Environment {
        name,
        stamp: "requirements.txt",
        asked: requirements,
    };
    // The interpreter is a link: gone when the Python it was made with is.
    let whole = |home: &Path| interpreter_of(home).exists();
    let home = environment.made(whole, |home| make(home, requirements))?;
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

fn make(home: &Path, requirements: &str) -> anyhow::Result<()> {
    let asked = home.with_extension("asked.txt");
    std::fs::write(&asked, requirements).context("cannot write the requirements")?;
    run(Command::new(interpreter()?)
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
fn interpreter() -> anyhow::Result<&'static str> {
    let able = |program: &&&str| {
        Command::new(program)
            .args(["-c", "import ensurepip, venv"])
            .stdin(Stdio::null())
            .stderr(Stdio::null())
            .status()
            .is_ok_and(|status| status.success())
    };
    INTERPRETERS.iter().find(able).copied().context(
        "no Python here can make a virtual environment: apt-get install python3-venv, then retry",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

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
