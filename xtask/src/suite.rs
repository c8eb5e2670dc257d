//! The compiled tests. Which packages are selected together decides the features of their dependencies, so a whole run
//! compiles the workspace once and runs it part by part, while `--only` selects the packages of its part alone.
//!
//! Everything is compiled with the features that are shipped. The attack alone sees the failpoints of gate and broker.

use crate::{run, workspace};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::Command;

const COMPILE: &str = "test --no-run --message-format=json-render-diagnostics";

/// The library's own tests need these. No shipped code looks at them.
const FEATURES: &str = "semel/conformance,semel/tower";

/// Programs of tests that are compiled and run together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Part {
    Heart,
    Proof,
    Broker,
    Gate,
    Prove,
    Specimens,
    Attack,
}

/// The programs that were compiled.
#[derive(Debug)]
pub(crate) struct Suite {
    whole: bool,
    compiled: BTreeMap<Part, Vec<Program>>,
}

/// One program of tests.
#[derive(Debug)]
struct Program {
    package: String,
    directory: PathBuf,
    file: PathBuf,
}

/// What cargo says about something it built.
#[derive(Deserialize)]
struct Built {
    package_id: String,
    manifest_path: PathBuf,
    executable: Option<PathBuf>,
    profile: Profile,
}

#[derive(Deserialize)]
struct Profile {
    test: bool,
}

// === impl Part ===

impl Part {
    /// The part that runs all tests of a package.
    fn of_package(name: &str) -> Self {
        match name {
            "semel-broker" => Self::Broker,
            "semel-gate" | "semel-cli" => Self::Gate,
            "semel-prove" => Self::Prove,
            "proof" => Self::Proof,
            _ => Self::Heart,
        }
    }

    /// The package and name of its only program, if that is one that a plain `cargo test` leaves out.
    fn target(self) -> Option<(&'static str, &'static str)> {
        match self {
            Self::Heart | Self::Proof | Self::Broker | Self::Gate | Self::Prove => None,
            Self::Specimens => Some(("semel-cli", "specimens")),
            Self::Attack => Some(("proof", "gate")),
        }
    }

    /// The words that select its packages: all of them in a whole run.
    fn selection(self, whole: bool) -> anyhow::Result<String> {
        if self == Self::Attack {
            return Ok(format!(
                "--workspace --features {FEATURES},proof/failpoints"
            ));
        }
        if whole || self.target().is_some() {
            return Ok(format!("--workspace --features {FEATURES}"));
        }
        let packages = workspace::packages()?.into_iter().map(|it| it.name);
        // The step of the heart runs the proof too, so they are compiled together.
        let with = if self == Self::Heart {
            Self::Proof
        } else {
            self
        };
        let packages = packages.filter(|name| [self, with].contains(&Self::of_package(name)));
        let mut words: String = packages.map(|name| format!("--package {name} ")).collect();
        if self == Self::Heart {
            words += &format!("--features {FEATURES}");
        }
        Ok(words)
    }
}

// === impl Suite ===

impl Suite {
    /// Nothing is compiled yet; `whole` when every part will be asked for.
    pub(crate) fn new(whole: bool) -> Self {
        Self {
            whole,
            compiled: BTreeMap::new(),
        }
    }

    /// Compiles every part.
    pub(crate) fn compile(&mut self) -> anyhow::Result<()> {
        for part in [Part::Heart, Part::Specimens, Part::Attack] {
            self.programs(part)?;
        }
        Ok(())
    }

    /// The programs of a part, each as cargo would run it. Compiles them when it is the first to ask.
    pub(crate) fn programs(&mut self, part: Part) -> anyhow::Result<Vec<Command>> {
        if !self.compiled.contains_key(&part) {
            self.compile_for(part)?;
        }
        let programs = self.compiled.get(&part).map(Vec::as_slice);
        let programs = programs.unwrap_or_default().iter();
        Ok(programs.map(Program::command).collect())
    }

    /// The documentation's tests: cargo compiles them as it runs them.
    pub(crate) fn documentation(&self) -> anyhow::Result<Command> {
        let selection = Part::Heart.selection(self.whole)?;
        Ok(run::cargo(&format!("test {selection} --doc")))
    }

    /// The `semel` program, compiled with the same packages beside it as the tests.
    pub(crate) fn semel(&self) -> anyhow::Result<PathBuf> {
        let selection = if self.whole {
            format!("--workspace --features {FEATURES}")
        } else {
            "--package semel-cli".to_owned()
        };
        run::run(&mut run::cargo(&format!("build {selection} --bin semel")))?;
        Ok(run::root().join("target/debug/semel"))
    }

    fn compile_for(&mut self, part: Part) -> anyhow::Result<()> {
        let selection = part.selection(self.whole)?;
        if let Some((package, target)) = part.target() {
            let programs = built(&format!("{selection} --test {target}"))?;
            // Another package may have tests of this name.
            let one = programs.into_iter().filter(|it| it.package == package);
            self.compiled.insert(part, one.collect());
        } else {
            for program in built(&selection)? {
                let its = Part::of_package(&program.package);
                self.compiled.entry(its).or_default().push(program);
            }
        }
        Ok(())
    }
}

// === impl Program ===

impl Program {
    /// In the directory of its package, as cargo runs it. A script that starts xtask in the background makes it ignore
    /// SIGINT and SIGQUIT; tests begin with the default, as from a terminal.
    fn command(&self) -> Command {
        let mut command = Command::new("env");
        command.arg("--default-signal=INT,QUIT").arg(&self.file);
        command.current_dir(&self.directory);
        command
    }

    fn of(built: Built) -> Option<Self> {
        let file = built.executable.filter(|_| built.profile.test)?;
        let directory = built.manifest_path.parent()?.to_owned();
        Some(Self {
            package: package_name(&built.package_id)?.to_owned(),
            directory,
            file,
        })
    }
}

/// From `path+file:///somewhere/name#0.1.0`, or `…#name@0.1.0` when the directory has another name.
fn package_name(id: &str) -> Option<&str> {
    let (path, version) = id.split_once('#')?;
    match version.split_once('@') {
        Some((name, _)) => Some(name),
        None => path.rsplit('/').next(),
    }
}

fn built(words: &str) -> anyhow::Result<Vec<Program>> {
    let said = run::output(&mut run::cargo(&format!("{COMPILE} {words}")))?;
    let messages = said.lines();
    // Other messages have other fields.
    let built = messages.filter_map(|line| serde_json::from_str(line).ok());
    Ok(built.filter_map(Program::of).collect())
}

#[cfg(test)]
mod tests {
    use super::package_name;

    #[test]
    fn package_has_the_name_of_its_directory_unless_it_says_another() {
        let plain = package_name("path+file:///a/crates/semel#0.1.0");
        assert_eq!(plain, Some("semel"));
        let other = package_name("path+file:///a/examples/webhook#webhook-example@0.1.0");
        assert_eq!(other, Some("webhook-example"));
    }
}
