//! The repository's own commands: `cargo xtask test`, `cargo xtask bench`, `cargo xtask prove`,
//! `cargo xtask servers`.
#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "xtask talks to a person"
)]

mod test;
mod step;
mod suite;
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
    /// Attack for longer than a test may, with what that needs installed.
    Prove(prove::Args),
    /// Start private servers, say where they are, keep them until Ctrl-C or the end of stdin.
    Servers,
}

fn main() -> ExitCode {
    let result = match Args::parse().command {
        Command::Test(args) => test::test(&args),
        Command::Bench(args) => bench::bench(&args),
        Command::Prove(args) => prove::prove(&args),
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
