//! `bench broker`: the local cloud as a program, against the one other program that plays Cloud Tasks.

mod tasks;
mod push;
mod footprint;
mod servers;
mod calls;
mod deliveries;

use clap::ValueEnum;
use std::num::NonZeroU64;
use std::path::PathBuf;
use std::time::Duration;

use crate::gate::semel::Binary;
use crate::measurement::Flags;

/// What to measure, and how much of it.
#[derive(Debug, clap::Args)]
pub(crate) struct BrokerArgs {
    #[command(flatten)]
    flags: Flags<BrokerPart>,
    /// How many tasks or messages a measurement takes.
    #[arg(long, default_value = "20000")]
    count: NonZeroU64,
    /// How many tasks are scheduled at once where memory is measured.
    #[arg(long, default_value = "1000000")]
    scheduled: NonZeroU64,
    /// The program to measure; built from this repository unless given.
    #[arg(long, value_name = "PATH")]
    semel: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum BrokerPart {
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
pub(crate) async fn broker(args: &BrokerArgs) -> anyhow::Result<String> {
    let binary = Binary::given(args.semel.as_deref())?;
    let (count, scheduled) = (args.count.get(), args.scheduled.get());
    // What is measured here is counted, not timed.
    let pace = args.flags.pace(Duration::ZERO, Duration::ZERO);
    let measure = async |part: &BrokerPart| match part {
        BrokerPart::Tasks => tasks::measure(&binary, pace, count).await,
        BrokerPart::Push => push::measure(&binary, pace, count).await,
        BrokerPart::Footprint => footprint::measure(&binary, scheduled).await,
    };
    args.flags.report(pace, measure).await
}
