//! Node with the packages that a directory of the repository asks for, in a directory of its own below `target/`.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Context;

use crate::command::run;
use crate::environment::{Environment, root};
use crate::packages::find_program;

/// Google's clients as programs that tests run.
const CLIENTS: Sources = Sources {
    directory: "clients/node",
    environment: "node",
    links: &[("", "programs")],
};

/// The npm package, with its tests.
const PACKAGE: Sources = Sources {
    directory: "node",
    environment: "node-package",
    links: &[
        ("index.js", "index.js"),
        ("index.d.ts", "index.d.ts"),
        ("records.js", "records.js"),
        ("test", "test"),
    ],
};

/// The tests that look at the page in a browser.
const BROWSER: Sources = Sources {
    directory: "browser",
    environment: "node-browser",
    links: &[("test", "test")],
};

/// What npm reads, copied beside the packages.
const ASKED: &[&str] = &["package.json", "package-lock.json", ".npmrc"];

/// Code for Node. It is linked beside its packages, because Node looks for them beside and above
/// the program.
struct Sources {
    /// In the repository.
    directory: &'static str,
    /// Below `target/`.
    environment: &'static str,
    /// What is linked there, and by which name.
    links: &'static [(&'static str, &'static str)],
}

/// A command that runs a program of `clients/node` with its packages, which are fetched into `target/` first if they
/// are not there or were fetched for other versions. Only one process fetches them; others wait.
///
/// # Errors
/// When Node or npm is not installed, or the packages cannot be fetched.
pub fn node(program: &str) -> anyhow::Result<Command> {
    let home = CLIENTS.made()?;
    let mut command = Command::new(program_of("node", "nodejs")?);
    command
        .args(["--preserve-symlinks", "--preserve-symlinks-main"])
        .arg(home.join("programs").join(program));
    Ok(command)
}

/// A command that runs a script of `node/package.json`, likewise.
///
/// # Errors
/// As those of [`node`].
pub fn npm_run(script: &str) -> anyhow::Result<Command> {
    PACKAGE.npm_run(script)
}

/// A command that runs a script of `browser/package.json`, likewise.
///
/// # Errors
/// As those of [`node`].
pub fn browser_run(script: &str) -> anyhow::Result<Command> {
    BROWSER.npm_run(script)
}

// === impl Sources ===

impl Sources {
    /// The directory with the packages and the links.
    fn made(&self) -> anyhow::Result<PathBuf> {
        let environment = Environment {
            name: self.environment,
            stamp: "made-for",
            asked: &self.asked()?,
        };
        environment.made(|_| true, |home| self.make(home))
    }

    fn npm_run(&self, script: &str) -> anyhow::Result<Command> {
        let mut command = Command::new(program_of("npm", "npm")?);
        command
            .args(["run", "--silent", script])
            .current_dir(self.made()?);
        Ok(command)
    }

    fn path(&self) -> PathBuf {
        root().join(self.directory)
    }

    /// All that decides which packages are fetched, and how.
    fn asked(&self) -> anyhow::Result<String> {
        let mut asked = self.path().display().to_string();
        for name in ASKED {
            asked += &fs::read_to_string(self.path().join(name))
                .with_context(|| format!("cannot read {}/{name}", self.directory))?;
        }
        Ok(asked)
    }

    fn make(&self, home: &Path) -> anyhow::Result<()> {
        let directory = self.directory;
        for name in ASKED {
            fs::copy(self.path().join(name), home.join(name))
                .with_context(|| format!("cannot copy {directory}/{name}"))?;
        }
        // Keeps the environment, because a proxy or a mirror may be set there.
        run(Command::new(program_of("npm", "npm")?)
            .args(["ci", "--loglevel=error"])
            .current_dir(home))
        .with_context(|| {
            format!("cannot fetch the packages of {directory}/package.json; a retry is safe")
        })?;
        for (source, name) in self.links {
            let link = home.join(name);
            // The repository may have been moved since.
            if link.is_symlink() {
                fs::remove_file(&link).with_context(|| format!("cannot remove the link {name}"))?;
            }
            symlink(self.path().join(source), link)
                .with_context(|| format!("cannot link {name}"))?;
        }
        Ok(())
    }
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
