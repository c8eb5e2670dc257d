//! `bench gate`: the real program behind real sockets, against what it would stand in place of.

mod embedded;
mod latency;
mod postgres;
mod footprint;
mod deliveries;
mod wrk;
pub(crate) mod semel;
mod nginx;
mod fastapi;
pub(crate) mod upstream;
pub(crate) mod running;
pub(crate) mod report;

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, bail};
use clap::ValueEnum;

use crate::machine::{Machine, now};
use crate::rounds::Pace;
use report::{Group, Report};
use semel::Binary;

/// What to measure, and how long.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// How many rounds; each has every contender once.
    #[arg(long, default_value_t = 5)]
    rounds: usize,
    /// How many whole seconds a measurement takes, after a warm-up of a quarter of it, but at least a second.
    #[arg(long, default_value_t = 5)]
    seconds: u64,
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
    /// First runs and duplicates on the embedded store against nginx.
    Embedded,
    /// A single connection against the bare handler and the disk.
    Latency,
    /// First runs on PostgreSQL against a handler written by hand.
    Postgres,
    /// Memory, start and size.
    Footprint,
}

/// Measures, and returns what there is to say.
pub(crate) async fn gate(args: &Args) -> anyhow::Result<String> {
    let pace = args.pace()?;
    testbed::install(&testbed::missing_bench_packages())?;
    let binary = match &args.semel {
        Some(path) => Binary::at(path)?,
        None => Binary::build()?,
    };
    let mut groups = Vec::new();
    for part in args.parts() {
        eprintln!("{}", part.word());
        groups.push(part.measure(&binary, pace).await?);
    }
    let report = Report::new(Machine::this(now()), pace, groups);
    if args.json {
        return serde_json::to_string_pretty(&report).context("cannot write the report as JSON");
    }
    Ok(report.table())
}

// === impl Args ===

impl Args {
    /// wrk takes whole seconds only.
    fn pace(&self) -> anyhow::Result<Pace> {
        if self.rounds == 0 || self.seconds == 0 {
            bail!("no rounds, or rounds of no length, measure nothing: give at least 1 of each");
        }
        Ok(Pace {
            rounds: self.rounds,
            warm_up: Duration::from_secs(self.seconds.div_ceil(4)),
            window: Duration::from_secs(self.seconds),
        })
    }

    fn parts(&self) -> Vec<Part> {
        let all = Part::value_variants().iter().copied();
        all.filter(|part| self.only.is_empty() || self.only.contains(part))
            .collect()
    }
}

// === impl Part ===

impl Part {
    const fn word(self) -> &'static str {
        match self {
            Self::Embedded => "embedded",
            Self::Latency => "latency",
            Self::Postgres => "postgres",
            Self::Footprint => "footprint",
        }
    }

    async fn measure(self, binary: &Binary, pace: Pace) -> anyhow::Result<Group> {
        match self {
            Self::Embedded => embedded::measure(binary, pace).await,
            Self::Latency => latency::measure(binary, pace).await,
            Self::Postgres => postgres::measure(binary, pace).await,
            Self::Footprint => footprint::measure(binary, pace).await,
        }
    }
}
