//! `cargo xtask prove`: the long forms of the proof, with what they need installed.

use crate::suite::{Part, Suite};
use crate::{python, run};
use anyhow::Context;
use clap::ValueEnum;

/// What to prove, and how hard to try.
#[derive(Debug, clap::Args)]
pub(crate) struct ProveArgs {
    /// What is attacked.
    #[arg(default_value = "specimens")]
    what: Attacked,
    /// How long each store and mode is attacked: of the gate.
    #[arg(long, default_value_t = 60)]
    seconds: u64,
    /// What every choice is drawn from: of the gate; drawn itself unless it is given.
    #[arg(long)]
    seed: Option<u64>,
    /// Only what has this in its name: `redis`, `postgres park`, `teeth`; of the specimens `payment`.
    #[arg(long, value_name = "NAME")]
    only: Option<String>,
}

/// What can be attacked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Attacked {
    /// Gates, a broker and a handler as processes, on every store.
    Gate,
    /// The specimens of `examples/`, by the prover, at every crash point.
    Specimens,
}

pub(crate) fn prove(args: &ProveArgs) -> anyhow::Result<()> {
    testbed::install(&testbed::missing_packages())?;
    let part = match args.what {
        Attacked::Gate => Part::Attack,
        Attacked::Specimens => {
            python::build()?; // Celery's specimens import it.
            Part::Specimens
        }
    };
    let programs = Suite::new(false).programs(part)?;
    let mut command = programs
        .into_iter()
        .next()
        .context("nothing was compiled")?;
    command.env("SEMEL_TEST_LONG", "1");
    command.env("SEMEL_PROVE_SECONDS", args.seconds.to_string());
    if let Some(seed) = args.seed {
        command.env("SEMEL_TEST_SEED", seed.to_string());
    }
    command.args(&args.only);
    if args.what == Attacked::Specimens {
        command.arg("--nocapture");
    }
    run::run(&mut command)
}
