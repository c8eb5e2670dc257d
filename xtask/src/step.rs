//! The steps of `cargo xtask test`, in their order.

use std::fmt;
use std::process::Command;

use clap::ValueEnum;

use crate::run::{self, cargo, program};
use crate::servers::Servers;
use crate::suite::{Part, Suite};
use crate::watch::{Count, Limits};
use crate::{browser, dependencies, features, python, tidy, warehouse};

const LIMITS: Limits = Limits {
    test_seconds: 300.0,
    silence_seconds: 600.0,
};

/// The long tests take the time they are given.
const LIMITS_LONG: Limits = Limits {
    test_seconds: 4.0 * 3600.0,
    silence_seconds: 4.0 * 3600.0,
};

/// One step; its name is what `--only` takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Step {
    /// Fetch the servers and the Python and Node packages that are missing.
    Install,
    /// The code is formatted.
    Format,
    /// Sizes, module cycles, language and links are within their limits.
    Tidy,
    /// Licences, bans, sources and duplicate versions of what we build from (deny.toml).
    Dependencies,
    /// Clippy has no complaint.
    Lint,
    /// Each package uses the dependencies that it declares (cargo machete).
    Unused,
    /// The documentation of all crates builds without a warning.
    Doc,
    /// Start the servers that the tests share.
    Servers,
    /// Compile the tests, so that their own time can be told apart.
    Compile,
    /// The tests of the library, the stores and the documentation, and the proof beside them.
    Heart,
    /// The tests of the local cloud.
    Broker,
    /// The tests of the gate and the command, Google's clients among them.
    Gate,
    /// The page in Chromium, as a person uses it.
    Browser,
    /// The tests of the prover.
    Prove,
    /// The prover's verdicts on the specimens.
    Specimens,
    /// The Python package: its types, and its tests with real workers.
    Python,
    /// The npm package: its types, and its tests on the Firestore emulator.
    Node,
    /// The warehouse's SQL and the dbt package, executed on PostgreSQL and DuckDB.
    Warehouse,
    /// Gates, a broker and a handler under attack: the only step with failpoints.
    Attack,
    /// Each crate builds alone, with each of its features.
    Features,
    /// The key vectors agree with an implementation in Python.
    Vectors,
}

/// What a step's time is spent on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Prepare,
    Compile,
    Test,
}

/// What steps leave for later steps and for the report.
#[derive(Debug)]
pub(crate) struct World {
    long: bool,
    servers: Option<Servers>,
    suite: Suite,
    pub(crate) passed: Count,
    pub(crate) not_run: Vec<String>,
}

// === impl Step ===

impl Step {
    pub(crate) fn kind(self) -> Kind {
        match self {
            Self::Install | Self::Servers => Kind::Prepare,
            Self::Lint | Self::Doc | Self::Compile | Self::Features => Kind::Compile,
            Self::Format
            | Self::Tidy
            | Self::Unused
            | Self::Dependencies
            | Self::Heart
            | Self::Broker
            | Self::Gate
            | Self::Prove
            | Self::Browser
            | Self::Specimens
            | Self::Python
            | Self::Node
            | Self::Warehouse
            | Self::Attack
            | Self::Vectors => Kind::Test,
        }
    }

    pub(crate) fn run(self, world: &mut World) -> anyhow::Result<()> {
        match self {
            Self::Install => install(world.long),
            Self::Format => run::run(&mut cargo("fmt --all --check")),
            Self::Tidy => tidy::check(),
            Self::Dependencies => {
                world
                    .not_run
                    .extend(dependencies::check()?.map(String::from));
                Ok(())
            }
            Self::Lint => run::run(&mut cargo(
                "clippy --workspace --all-targets --all-features -- -D warnings",
            )),
            Self::Unused => dependencies::unused(),
            Self::Doc => run::run(
                cargo("doc --workspace --all-features --no-deps")
                    .env("RUSTDOCFLAGS", "-D warnings"),
            ),
            Self::Servers => world.servers().map(|_| ()),
            Self::Compile => {
                world.suite.compile()?;
                python::build()
            }
            Self::Heart => world.heart(),
            Self::Broker => world.run_part(Part::Broker),
            Self::Gate => world.gate(),
            Self::Prove => world.run_part(Part::Prove),
            Self::Browser => {
                let long = world.long;
                let environment = world.servers()?.environment();
                browser::test(&world.suite, environment, long)
            }
            Self::Specimens => {
                python::build()?;
                world.run_part(Part::Specimens)
            }
            Self::Python => world.python(),
            Self::Node => {
                run::run(&mut testbed::npm_run("types")?)?;
                let environment = world.servers()?.environment();
                run::run(testbed::npm_run("test")?.envs(environment))
            }
            Self::Warehouse => {
                let long = world.long;
                warehouse::test(world.servers()?.environment(), long)
            }
            Self::Attack => world.run_part(Part::Attack),
            Self::Features => features::check(),
            Self::Vectors => run::run(&mut program("python3", "vectors/check.py")),
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
    pub(crate) fn new(long: bool, whole: bool) -> Self {
        Self {
            long,
            servers: None,
            suite: Suite::new(whole),
            passed: Count::default(),
            not_run: Vec::new(),
        }
    }

    /// Starts them when the first step asks.
    fn servers(&mut self) -> anyhow::Result<&Servers> {
        match &mut self.servers {
            Some(servers) => Ok(servers),
            none => {
                let servers = Servers::start()?;
                self.not_run.extend(servers.not_run().map(String::from));
                Ok(none.insert(servers))
            }
        }
    }

    fn python(&mut self) -> anyhow::Result<()> {
        python::build()?;
        let long = self.long;
        let environment = self.servers()?.environment();
        if !long {
            return python::test(&environment);
        }
        self.not_run.extend(python::test_long(&environment)?);
        Ok(())
    }

    fn gate(&mut self) -> anyhow::Result<()> {
        if self.long && !testbed::has_pubsub_emulator() {
            self.not_run.push(testbed::PUBSUB_NOT_RUN.into());
        }
        self.run_part(Part::Gate)
    }

    fn run_part(&mut self, part: Part) -> anyhow::Result<()> {
        let programs = self.suite.programs(part)?;
        self.run_beside(programs, Vec::new())
    }

    /// The proof mostly waits, so it runs beside the other tests.
    fn heart(&mut self) -> anyhow::Result<()> {
        let mut heart = self.suite.programs(Part::Heart)?;
        heart.push(self.suite.documentation()?);
        let proof = self.suite.programs(Part::Proof)?;
        self.run_beside(heart, proof)
    }

    /// Runs two lists of programs at once, and counts what passed.
    fn run_beside(
        &mut self,
        mut first: Vec<Command>,
        mut second: Vec<Command>,
    ) -> anyhow::Result<()> {
        let long = self.long;
        let environment = self.servers()?.environment();
        for command in first.iter_mut().chain(&mut second) {
            command.envs(environment.clone());
            if long {
                command.env("SEMEL_TEST_LONG", "1");
            }
        }
        let limits = if long { LIMITS_LONG } else { LIMITS };
        self.passed += run::run_beside(first, second, limits)?;
        Ok(())
    }
}

fn install(long: bool) -> anyhow::Result<()> {
    let mut missing = testbed::missing_packages();
    missing.extend(testbed::missing_tools());
    if long {
        missing.extend(testbed::missing_long_packages());
    }
    if missing.is_empty() {
        eprintln!("nothing is missing");
    }
    testbed::install(&missing)?;
    for python in [testbed::python()?, warehouse::python()?] {
        eprintln!("Python: {}", python.display());
    }
    // Prints the versions of Google's packages for Node, which are fetched first if they are not there.
    run::run(&mut testbed::node("packages.mjs")?)
}
