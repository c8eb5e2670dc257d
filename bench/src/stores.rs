//! `bench stores`: every store against its baseline.

use std::time::Duration;

use anyhow::{Context, bail};
use clap::ValueEnum;

use crate::machine::{Machine, now};
use crate::report::{Group, Report};
use crate::rounds::Pace;
use crate::{embedded, growth, postgres, redis, settled, table};

/// What to measure, and how long.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// How many rounds; each has every contender once.
    #[arg(long, default_value_t = 5)]
    rounds: usize,
    /// How long a measurement takes, after a warm-up of a quarter of it.
    #[arg(long, default_value_t = 1.5)]
    seconds: f64,
    /// Only these groups; all unless given.
    #[arg(long, value_enum, value_delimiter = ',')]
    only: Vec<Part>,
    /// How many settled keys the larger stores of `growth` have; the smaller ones have a hundredth of it.
    #[arg(long, default_value_t = 1_000_000)]
    growth_keys: u64,
    /// The report as JSON.
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Part {
    /// First runs on PostgreSQL against the hand-written pattern.
    Postgres,
    /// First runs on the embedded store against plain writes and against its engine.
    Embedded,
    /// First runs on Redis against redis-benchmark.
    Redis,
    /// Duplicates of settled keys.
    Settled,
    /// First runs beside many settled keys against first runs beside few.
    Growth,
}

/// Measures, and returns what there is to say.
pub(crate) async fn stores(args: &Args) -> anyhow::Result<String> {
    let pace = args.pace()?;
    let mut groups = Vec::new();
    for part in args.parts() {
        eprintln!("{}", part.word());
        groups.push(part.measure(args, pace).await?);
    }
    let report = Report::new(Machine::this(now()), pace, groups);
    if args.json {
        return serde_json::to_string_pretty(&report).context("cannot write the report as JSON");
    }
    Ok(table::table(&report))
}

// === impl Args ===

impl Args {
    fn pace(&self) -> anyhow::Result<Pace> {
        if self.rounds == 0 {
            bail!("--rounds 0 measures nothing: give at least 1");
        }
        let window = Duration::try_from_secs_f64(self.seconds)
            .ok()
            .filter(|window| !window.is_zero())
            .with_context(|| format!("--seconds {} is no length of time", self.seconds))?;
        Ok(Pace::new(self.rounds, window))
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
            Self::Postgres => "postgres",
            Self::Embedded => "embedded",
            Self::Redis => "redis",
            Self::Settled => "settled",
            Self::Growth => "growth",
        }
    }

    async fn measure(self, args: &Args, pace: Pace) -> anyhow::Result<Group> {
        match self {
            Self::Postgres => postgres::measure(pace).await,
            Self::Embedded => embedded::measure(pace).await,
            Self::Redis => redis::measure(pace).await,
            Self::Settled => settled::measure(pace).await,
            Self::Growth => growth::measure(pace, args.growth_keys).await,
        }
    }
}
