//! The repository's own commands: `cargo xtask test`, `cargo xtask bench`, `prove` and `servers`.
#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "xtask talks to a person"
)]

mod test;
mod step;
mod report;
mod bench;
mod prove;
mod servers;
mod run;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Build, test and measure Semel.
#[derive(Debug, Parser)]
#[command(bin_name = "cargo xtask")]
struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Everything that must pass before a change is taken in.
    Test(test::Args),
    /// Measure, with the servers it needs installed.
    Bench(bench::Args),
    /// Judge every specimen at every crash point; minutes.
    Prove,
    /// Start private servers, say where they are, keep them until Ctrl-C or the end of stdin.
    Servers,
}

fn main() -> ExitCode {
    let result = match Args::parse().command {
        Command::Test(args) => test::test(&args),
        Command::Bench(args) => bench::bench(&args),
        Command::Prove => prove::prove(),
        Command::Servers => servers::keep(),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("xtask: {error:#}");
            ExitCode::FAILURE
        }
    }
}
