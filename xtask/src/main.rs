//! The repository's own commands. `cargo xtask` lists them.
#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "xtask talks to a person"
)]

mod test;
mod step;
mod suite;
mod watch;
mod tidy;
mod dependencies;
mod features;
mod python;
mod browser;
mod warehouse;
mod workspace;
mod report;
mod bench;
mod prove;
mod servers;
mod run;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Build, test and measure Semel.
#[derive(Debug, Parser)]
#[command(bin_name = "cargo xtask", arg_required_else_help = true)]
struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Everything that must pass before a change is merged; `test --help` lists the steps.
    Test(test::TestArgs),
    /// Compare sizes, module cycles, language and links with their limits.
    Tidy(tidy::TidyArgs),
    /// Measure (`stores`, `gate`, `broker`, `python`), with the servers it needs installed.
    Bench(bench::BenchArgs),
    /// Attack for longer than a test may (`gate`, `specimens`), with what that needs installed.
    Prove(prove::ProveArgs),
    /// Make the pictures of `docs/ui.md` anew, in Chromium.
    Shots,
    /// Start private servers, print their addresses, keep them until Ctrl-C or the end of stdin.
    Servers(servers::ServersArgs),
}

fn main() -> ExitCode {
    let result = match Args::parse().command {
        Command::Test(args) => test::test(&args),
        Command::Tidy(args) => tidy::tidy(&args),
        Command::Bench(args) => bench::bench(&args),
        Command::Prove(args) => prove::prove(&args),
        Command::Shots => browser::shots(),
        Command::Servers(args) => servers::keep(&args),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("xtask: {error:#}");
            ExitCode::FAILURE
        }
    }
}
