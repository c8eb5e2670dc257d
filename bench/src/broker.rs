//! `bench broker`: the local cloud as a program, against the one other program that plays Cloud Tasks.

mod tasks;
mod push;
mod footprint;
mod servers;
mod calls;

use anyhow::{Context, bail};
use clap::ValueEnum;
use std::path::PathBuf;
use std::time::Duration;

use crate::gate::report::{Group, Report};
use crate::gate::semel::Binary;
use crate::machine::{Machine, now};
use crate::rounds::Pace;

/// What to measure, and how much of it.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// How many rounds; each has every contender once.
    #[arg(long, default_value_t = 5)]
    rounds: usize,
    /// How many tasks or messages a measurement takes.
    #[arg(long, default_value_t = 20_000)]
    count: u64,
    /// How many tasks are scheduled at once where memory is measured.
    #[arg(long, default_value_t = 1_000_000)]
    scheduled: u64,
    /// Only these groups; all unless given.
    #[arg(long, value_enum, value_delimiter = ',')]
    only: Vec<Part>,
    /// The program to measure; built from this repository unless given.
    #[arg(long, value_name = "PATH")]
    semel: Option<PathBuf>,
    /// The report as JSON.
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Part {
    /// Create and dispatch tasks.
    Tasks,
    /// Publish and push messages.
    Push,
    /// Memory and idle time with many scheduled tasks.
    Footprint,
}

/// How many calls are under way at once.
pub(crate) const AT_ONCE: usize = 64;

/// Measures, and returns what there is to say.
pub(crate) async fn broker(args: &Args) -> anyhow::Result<String> {
    if args.rounds == 0 || args.count == 0 || args.scheduled == 0 {
        bail!("no rounds, or rounds of nothing, measure nothing: give at least 1 of each");
    }
    let binary = match &args.semel {
        Some(path) => Binary::at(path)?,
        None => Binary::build()?,
    };
    let mut groups = Vec::new();
    for part in Part::value_variants() {
        if args.only.is_empty() || args.only.contains(part) {
            eprintln!("{part:?}");
            groups.push(part.measure(&binary, args).await?);
        }
    }
    let report = Report::new(Machine::this(now()), args.pace(), groups);
    if args.json {
        return serde_json::to_string_pretty(&report).context("cannot write the report as JSON");
    }
    Ok(report.table())
}

// === impl Args ===

impl Args {
    /// What is measured here is counted, not timed.
    fn pace(&self) -> Pace {
        Pace {
            rounds: self.rounds,
            warm_up: Duration::ZERO,
            window: Duration::ZERO,
        }
    }
}

// === impl Part ===

impl Part {
    async fn measure(self, binary: &Binary, args: &Args) -> anyhow::Result<Group> {
        match self {
            Self::Tasks => tasks::measure(binary, args.pace(), args.count).await,
            Self::Push => push::measure(binary, args.pace(), args.count).await,
            Self::Footprint => footprint::measure(binary, args.scheduled).await,
        }
    }
}
