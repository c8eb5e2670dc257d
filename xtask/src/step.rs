//! The steps of `cargo xtask test`, in their order.

use std::fmt;
use std::process::Command;

use anyhow::{Context, bail};
use clap::ValueEnum;

use crate::run::{self, cargo, program};
use crate::servers::Servers;

/// The test vectors' own check, in another language than the library.
const VECTORS_CHECK: &str = "vectors/check.py";

/// What the tests of each part are.
const HEART: &str = "test --workspace --all-features --exclude semel-gate --exclude semel-broker \
                     --exclude semel-prove --exclude semel-cli --exclude proof";
const PROOF: &str = "test --package proof --all-features";
const BROKER: &str = "test --package semel-broker --all-features";
const PROVE: &str = "test --package semel-prove --all-features";
// The packages of the gate's step, so that nothing is compiled once more.
pub(crate) const SPECIMENS: &str =
    "test --package semel-gate --package semel-cli --all-features --test specimens";
const GATE: &str = "test --package semel-gate --package semel-cli --all-features";

/// One step; its name is what `--only` takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Step {
    /// Fetch the servers and the Python packages that are missing.
    Install,
    /// The code is formatted.
    Format,
    /// The lints are content.
    Lint,
    /// Start the servers the tests share.
    Servers,
    /// Compile the tests, so that their own time can be told apart.
    Compile,
    /// The tests of the library and the stores, and the proof beside them. Doc tests are compiled here
    /// too.
    Heart,
    /// The tests of the local cloud.
    Broker,
    /// The tests of the gate and the command, Google's clients among them.
    Gate,
    /// The tests of the prover, and its verdicts on the specimens.
    Prove,
    /// The vectors agree with an implementation that is not ours.
    Vectors,
}

/// What a step's time is spent on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Prepare,
    Compile,
    Test,
}

/// What steps leave for later steps.
#[derive(Debug)]
pub(crate) struct World {
    long: bool,
    servers: Option<Servers>,
}

// === impl Step ===

impl Step {
    pub(crate) const IN_ORDER: [Self; 10] = [
        Self::Install,
        Self::Format,
        Self::Lint,
        Self::Servers,
        Self::Compile,
        Self::Heart,
        Self::Broker,
        Self::Gate,
        Self::Prove,
        Self::Vectors,
    ];

    pub(crate) fn kind(self) -> Kind {
        match self {
            Self::Install | Self::Servers => Kind::Prepare,
            Self::Lint | Self::Compile => Kind::Compile,
            Self::Format
            | Self::Heart
            | Self::Broker
            | Self::Gate
            | Self::Prove
            | Self::Vectors => Kind::Test,
        }
    }

    pub(crate) fn run(self, world: &mut World) -> anyhow::Result<()> {
        match self {
            Self::Install => install(),
            Self::Format => run::run(&mut cargo("fmt --all --check")),
            Self::Lint => run::run(&mut cargo(
                "clippy --workspace --all-targets --all-features -- -D warnings",
            )),
            Self::Servers => world.servers().map(|_| ()),
            Self::Compile => compile(),
            Self::Heart => world.run_beside(cargo(HEART), cargo(PROOF)),
            Self::Broker => world.run(cargo(BROKER)),
            Self::Gate => world.run(cargo(GATE)),
            Self::Prove => {
                world.run(cargo(PROVE))?;
                world.run(cargo(SPECIMENS))
            }
            Self::Vectors => vectors(world),
        }
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let value = self.to_possible_value().expect("no step is skipped");
        f.pad(value.get_name())
    }
}

// === impl Kind ===

impl Kind {
    pub(crate) const ALL: [Self; 3] = [Self::Prepare, Self::Compile, Self::Test];
}

// === impl World ===

impl World {
    pub(crate) fn new(long: bool) -> Self {
        Self {
            long,
            servers: None,
        }
    }

    /// Starts them when the first step asks.
    fn servers(&mut self) -> anyhow::Result<&Servers> {
        match &mut self.servers {
            Some(servers) => Ok(servers),
            none => Ok(none.insert(Servers::start()?)),
        }
    }

    /// Runs a command that may use the servers.
    fn run(&mut self, command: Command) -> anyhow::Result<()> {
        run::run(&mut self.at_home(command)?)
    }

    /// Runs two commands at once that may use the servers.
    fn run_beside(&mut self, first: Command, second: Command) -> anyhow::Result<()> {
        let (mut first, mut second) = (self.at_home(first)?, self.at_home(second)?);
        run::run_beside(&mut first, &mut second)
    }

    /// The command, told where the servers are.
    fn at_home(&mut self, mut command: Command) -> anyhow::Result<Command> {
        command.envs(self.servers()?.environment());
        if self.long {
            command.env("SEMEL_TEST_LONG", "1");
        }
        Ok(command)
    }
}

/// Part by part, because the parts of the workspace that are tested together decide how its
/// dependencies are compiled.
fn compile() -> anyhow::Result<()> {
    for part in [HEART, PROOF, BROKER, GATE, PROVE, SPECIMENS] {
        run::run(cargo(part).arg("--no-run"))?;
    }
    // The specimens in Rust are programs that no test of theirs would compile.
    run::run(&mut cargo("build --package webhook-example"))
}

fn install() -> anyhow::Result<()> {
    let mut missing = testbed::missing_packages();
    missing.extend(testbed::missing_tools());
    if missing.is_empty() {
        eprintln!("nothing is missing");
    }
    testbed::install(&missing)?;
    let python = testbed::python()?;
    eprintln!("Python: {}", python.display());
    // Says the versions of Google's packages for Node, which are fetched first if they are not there.
    run::run(&mut testbed::node("packages.mjs")?)
}

fn vectors(world: &mut World) -> anyhow::Result<()> {
    let root = run::root();
    if !root
        .join(VECTORS_CHECK)
        .try_exists()
        .context("cannot look for the vectors")?
    {
        bail!("{VECTORS_CHECK} is not there: the vectors were not checked");
    }
    world.run(program("python3", VECTORS_CHECK))
}
