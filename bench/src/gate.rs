//! `bench gate`: the real program behind real sockets, against what it would stand in place of.

mod embedded;
mod latency;
mod postgres;
mod tls;
mod watched;
mod page;
mod issuer;
mod crowd;
mod footprint;
pub(crate) mod deliveries;
pub(crate) mod wrk;
pub(crate) mod semel;
mod nginx;
mod fastapi;

use std::num::NonZeroU64;
use std::path::PathBuf;
use std::time::Duration;

use clap::ValueEnum;

use crate::measurement::Flags;
use semel::Binary;

/// What to measure, and how long.
#[derive(Debug, clap::Args)]
pub(crate) struct GateArgs {
    #[command(flatten)]
    flags: Flags<GatePart>,
    /// How many whole seconds a measurement takes, after a warm-up of a quarter of it, but at least a second.
    #[arg(long, default_value = "5")]
    seconds: NonZeroU64,
    /// How many records the page is measured with.
    #[arg(long, default_value = "1000000")]
    page_records: u64,
    /// The program to measure; built from this repository unless given.
    #[arg(long, value_name = "PATH")]
    semel: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum GatePart {
    /// First runs and duplicates on the embedded store against nginx.
    Embedded,
    /// A single connection against the bare handler and the disk.
    Latency,
    /// First runs on PostgreSQL against a handler written by hand.
    Postgres,
    /// First runs with TLS to the handler and to PostgreSQL against the same without it.
    Tls,
    /// First runs with verified senders, traces and metrics against the same without.
    Watched,
    /// The page on a store with many records, and first runs while it is open.
    Page,
    /// Others' latency, and memory, with 5,000 slow or silent connections.
    Crowd,
    /// Memory, start and size.
    Footprint,
}

/// Measures, and returns what there is to say.
pub(crate) async fn gate(args: &GateArgs) -> anyhow::Result<String> {
    testbed::install(&testbed::missing_bench_packages())?;
    let binary = Binary::given(args.semel.as_deref())?;
    // wrk takes whole seconds only.
    let seconds = args.seconds.get();
    let warm_up = Duration::from_secs(seconds.div_ceil(4));
    let pace = args.flags.pace(warm_up, Duration::from_secs(seconds));
    let measure = async |part: &GatePart| match part {
        GatePart::Embedded => embedded::measure(&binary, pace).await,
        GatePart::Latency => latency::measure(&binary, pace).await,
        GatePart::Postgres => postgres::measure(&binary, pace).await,
        GatePart::Tls => tls::measure(&binary, pace).await,
        GatePart::Watched => watched::measure(&binary, pace).await,
        GatePart::Page => page::measure(&binary, pace, args.page_records).await,
        GatePart::Crowd => crowd::measure(&binary, pace).await,
        GatePart::Footprint => footprint::measure(&binary, pace).await,
    };
    args.flags.report(pace, measure).await
}
