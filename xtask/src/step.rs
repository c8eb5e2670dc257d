//! The steps of `cargo xtask test`, in their order.

use std::fmt;
use std::process::Command;

use anyhow::{Context, bail};
use clap::ValueEnum;

use crate::run::{self, cargo, program};
use crate::servers::Servers;
use crate::suite::Suite;

/// The test vectors' own check, in another language than the library.
const VECTORS_CHECK: &str = "vectors/check.py";

/// The packages of each part, by their directories.
const BROKER: [&str; 1] = ["crates/semel-broker"];
const GATE: [&str; 2] = ["crates/semel-gate", "crates/semel-cli"];
const PROOF: [&str; 1] = ["proof"];
const PROVE: [&str; 1] = ["crates/semel-prove"];
/// All but the heart's.
const NOT_THE_HEART: [&str; 5] = [
    "crates/semel-broker",
    "crates/semel-gate",
    "crates/semel-cli",
    "proof",
    "crates/semel-prove",
];

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
    /// Gates, a broker and a handler under attack.
    Attack,
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
    suite: Option<Suite>,
}

// === impl Step ===

impl Step {
    pub(crate) const IN_ORDER: [Self; 11] = [
        Self::Install,
        Self::Format,
        Self::Lint,
        Self::Servers,
        Self::Compile,
        Self::Heart,
        Self::Broker,
        Self::Gate,
        Self::Prove,
        Self::Attack,
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
            | Self::Attack
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
            Self::Compile => world.suite().map(|_| ()),
            Self::Heart => {
                let mut heart = world.suite()?.of_others(&NOT_THE_HEART);
                heart.push(cargo("test --workspace --all-features --doc"));
                let proof = world.suite()?.of(&PROOF);
                world.run_beside(heart, proof)
            }
            Self::Broker => world.run_all(&BROKER),
            Self::Gate => world.run_all(&GATE),
            Self::Prove => {
                world.run_all(&PROVE)?;
                let specimens = specimens(world.suite()?)?;
                world.run(specimens)
            }
            Self::Attack => {
                let attack = attack(world.suite()?)?;
                world.run(attack)
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
            suite: None,
        }
    }

    /// Starts them when the first step asks.
    fn servers(&mut self) -> anyhow::Result<&Servers> {
        match &mut self.servers {
            Some(servers) => Ok(servers),
            none => Ok(none.insert(Servers::start()?)),
        }
    }

    /// Compiles them when the first step asks.
    fn suite(&mut self) -> anyhow::Result<&Suite> {
        match &mut self.suite {
            Some(suite) => Ok(suite),
            none => Ok(none.insert(Suite::compile()?)),
        }
    }

    /// Runs a command that may use the servers.
    fn run(&mut self, command: Command) -> anyhow::Result<()> {
        run::run(&mut self.at_home(command)?)
    }

    /// Runs the tests of some packages.
    fn run_all(&mut self, packages: &[&str]) -> anyhow::Result<()> {
        let tests = self.suite()?.of(packages);
        tests.into_iter().try_for_each(|test| self.run(test))
    }

    /// Runs two lists of commands at once that may use the servers.
    fn run_beside(&mut self, first: Vec<Command>, second: Vec<Command>) -> anyhow::Result<()> {
        let mut at_home = |commands: Vec<Command>| {
            let commands = commands.into_iter();
            commands
                .map(|command| self.at_home(command))
                .collect::<anyhow::Result<Vec<_>>>()
        };
        let (first, second) = (at_home(first)?, at_home(second)?);
        run::run_beside(first, second)
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

/// The prover's verdicts on the specimens.
pub(crate) fn specimens(suite: &Suite) -> anyhow::Result<Command> {
    suite.one("crates/semel-cli", "specimens")
}

/// Gates, a broker and a handler under attack.
pub(crate) fn attack(suite: &Suite) -> anyhow::Result<Command> {
    suite.one("proof", "gate")
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
