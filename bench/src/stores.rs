//! `bench stores`: every store against its baseline.

use std::time::Duration;

use anyhow::Context;
use clap::ValueEnum;

use crate::measurement::Flags;
use crate::{embedded, growth, labels, postgres, redis, settled};

/// What to measure, and how long.
#[derive(Debug, clap::Args)]
pub(crate) struct StoresArgs {
    #[command(flatten)]
    flags: Flags<StoresPart>,
    /// How long a measurement takes, after a warm-up of a quarter of it.
    #[arg(long, default_value_t = 1.5)]
    seconds: f64,
    /// How many settled keys the larger stores of `growth` have; the smaller ones have a hundredth of it.
    #[arg(long, default_value_t = 1_000_000)]
    growth_keys: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum StoresPart {
    /// First runs on PostgreSQL against the hand-written pattern.
    Postgres,
    /// First runs on the embedded store against plain writes and against its engine.
    Embedded,
    /// First runs on Redis against redis-benchmark.
    Redis,
    /// Duplicates of settled keys.
    Settled,
    /// First runs whose records say what they are about against first runs that say nothing.
    Labels,
    /// First runs beside many settled keys against first runs beside few.
    Growth,
}

/// Measures, and returns what there is to say.
pub(crate) async fn stores(args: &StoresArgs) -> anyhow::Result<String> {
    let window = Duration::try_from_secs_f64(args.seconds)
        .ok()
        .filter(|window| !window.is_zero())
        .with_context(|| format!("--seconds {} is not a length of time", args.seconds))?;
    // A quarter of a window has filled caches and connections.
    let pace = args.flags.pace(window / 4, window);
    let measure = async |part: &StoresPart| match part {
        StoresPart::Postgres => postgres::measure(pace).await,
        StoresPart::Embedded => embedded::measure(pace).await,
        StoresPart::Redis => redis::measure(pace).await,
        StoresPart::Settled => settled::measure(pace).await,
        StoresPart::Labels => labels::measure(pace).await,
        StoresPart::Growth => growth::measure(pace, args.growth_keys).await,
    };
    args.flags.report(pace, measure).await
}
