//! A Node with the packages of `clients/node/package.json`, in a directory of the repository's own.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Context;

use crate::command::run;
use crate::environment::{Environment, root};
use crate::packages::find_program;

/// What npm reads, copied beside the packages.
const ASKED: &[&str] = &["package.json", "package-lock.json", ".npmrc"];

/// Beside the packages, because Node looks for them beside and above the program: a link to the programs.
const PROGRAMS: &str = "programs";

/// A command that runs a program of `clients/node` with its packages, which are fetched into `target/` first if they
/// are not there or were fetched for other versions. Only one process fetches them; others wait.
///
/// # Errors
/// When Node or npm is not installed, or the packages cannot be fetched.
pub fn node(program: &str) -> anyhow::Result<Command> {
    let sources = root().join("clients/node");
    let environment = Environment {
        name: "node",
        stamp: "made-for",
        asked: &asked(&sources)?,
    };
    let home = environment.made(|_| true, |home| make(home, &sources))?;
    let mut command = Command::new(program_of("node", "nodejs")?);
    command
        .args(["--preserve-symlinks", "--preserve-symlinks-main"])
        .arg(home.join(PROGRAMS).join(program));
    Ok(command)
}

/// All that decides which packages are fetched, and how.
fn asked(sources: &Path) -> anyhow::Result<String> {
    let mut asked = sources.display().to_string();
    for name in ASKED {
        asked += &fs::read_to_string(sources.join(name))
            .with_context(|| format!("cannot read clients/node/{name}"))?;
    }
    Ok(asked)
}

fn make(home: &Path, sources: &Path) -> anyhow::Result<()> {
    for name in ASKED {
        fs::copy(sources.join(name), home.join(name))
            .with_context(|| format!("cannot copy clients/node/{name}"))?;
    }
    // Keeps the environment, because a proxy or a mirror may be set there.
    run(Command::new(program_of("npm", "npm")?)
        .args(["ci", "--loglevel=error"])
        .current_dir(home))
    .context("cannot fetch the packages of clients/node/package.json; a retry is safe")?;
    let programs = home.join(PROGRAMS);
    // The repository may have been moved since.
    if programs.is_symlink() {
        fs::remove_file(&programs).context("cannot remove the link to the programs")?;
    }
    symlink(sources, programs).context("cannot link the programs")
}

/// The program, or the package to install.
fn program_of(program: &str, package: &str) -> anyhow::Result<PathBuf> {
    find_program(program).with_context(|| format!("apt-get install {package}, then retry"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_find_their_packages() {
        run(&mut node("packages.mjs").unwrap()).unwrap();
    }
}
