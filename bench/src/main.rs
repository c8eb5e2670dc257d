//! Measurements: `cargo xtask bench stores`, `gate`, `broker` and `landing`.
//!
//! Contenders take turns in rounds, so that a slow minute of the machine is shared by all of them, and
//! what is judged is a ratio within a round wherever there is something to compare with.
#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "the table goes to stdout, progress to stderr"
)]
#![expect(
    clippy::disallowed_methods,
    reason = "loads are random; what is measured does not depend on which"
)]

mod stores;
mod gate;
mod broker;
mod landing;
mod measurement;
mod postgres;
mod pattern;
mod embedded;
mod plain_disk;
mod redis;
mod redis_benchmark;
mod settled;
mod labels;
mod growth;
mod grown;
mod first_run;
mod rounds;
mod load;
mod table;
mod report;
mod running;
mod upstream;
mod machine;
mod disk;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Measure Semel.
#[derive(Debug, Parser)]
#[command(bin_name = "cargo xtask bench")]
struct BenchArgs {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    /// First runs, settled duplicates and growth on every store, each against its baseline.
    Stores(stores::StoresArgs),
    /// The gate, as a program, against a proxy, a handler written by hand, and its limits.
    Gate(gate::GateArgs),
    /// The local cloud, as a program, against another one that plays Cloud Tasks.
    Broker(broker::BrokerArgs),
    /// Rows in groups against rows one by one, and routes without records.
    Landing(landing::LandingArgs),
    /// The handler that `gate` and `broker` measure with.
    #[command(hide = true)]
    Upstream(upstream::UpstreamArgs),
}

#[tokio::main]
async fn main() -> ExitCode {
    let result = match BenchArgs::parse().what {
        What::Stores(args) => stores::stores(&args).await,
        What::Gate(args) => gate::gate(&args).await,
        What::Broker(args) => broker::broker(&args).await,
        What::Landing(args) => landing::landing(&args).await,
        What::Upstream(args) => upstream::serve(&args).await,
    };
    match result {
        Ok(report) => {
            println!("{report}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("bench: {error:#}");
            ExitCode::FAILURE
        }
    }
}
