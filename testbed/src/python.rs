//! A Python with the packages of `requirements.txt`, in a virtual environment of the repository's own.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::Context;

use crate::command::run;

const REQUIREMENTS: &str = include_str!("../requirements.txt");

/// Looked at in this order; the first that can make a virtual environment is taken.
const INTERPRETERS: &[&str] = &["python3", "/usr/bin/python3"];

/// Inside the environment: the requirements it was made for. Written last.
const STAMP: &str = "requirements.txt";

/// The interpreter of the virtual environment under `target/`, which is made first if it is not there or was made
/// for other requirements. Only one process makes it; others wait.
///
/// # Errors
/// When there is no Python that can make one, or its packages cannot be fetched.
pub fn python() -> anyhow::Result<PathBuf> {
    let target = target();
    fs::create_dir_all(&target).context("cannot make the directory target")?;
    let turn =
        File::create(target.join("python.turn")).context("cannot make target/python.turn")?;
    // The kernel gives the turn back when this process ends, however it ends.
    turn.lock().context("cannot wait for target/python.turn")?;
    let home = target.join("python");
    let interpreter = home.join("bin/python");
    if !is_made(&home) {
        make(&home, &interpreter)?;
    }
    Ok(interpreter)
}

/// Debian's packages that [`python`] needs and that are not here.
pub(crate) fn missing() -> Vec<&'static str> {
    if interpreter().is_ok() {
        return Vec::new();
    }
    vec!["python3", "python3-venv"]
}

fn target() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .expect("testbed is a directory of the repository")
        .join("target")
}

/// Its interpreter is a link: gone when the Python it was made with is.
fn is_made(home: &Path) -> bool {
    home.join("bin/python").exists()
        && fs::read_to_string(home.join(STAMP)).is_ok_and(|made_for| made_for == REQUIREMENTS)
}

fn make(home: &Path, interpreter: &Path) -> anyhow::Result<()> {
    let asked = home.with_extension("asked.txt");
    fs::write(&asked, REQUIREMENTS).context("cannot write the requirements")?;
    run(Command::new(self::interpreter()?)
        .args(["-m", "venv", "--clear"])
        .arg(home))
    .context("cannot make a Python environment")?;
    // Keeps the environment, because a proxy or a mirror may be set there.
    run(Command::new(interpreter)
        .args(["-m", "pip", "install", "--quiet", "--requirement"])
        .arg(&asked))
    .context("cannot fetch the Python packages of testbed/requirements.txt; a retry is safe")?;
    fs::rename(&asked, home.join(STAMP)).context("cannot finish the Python environment")
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
