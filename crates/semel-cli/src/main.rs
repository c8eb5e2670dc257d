//! The `semel` command. It alone reads arguments and the environment, prints, and exits.
#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "this is the program that talks"
)]

mod args;
mod store_url;
mod commands {
    pub(crate) mod dev;
    pub(crate) mod key;
    pub(crate) mod migrate;
}

use args::{Args, Command};
use clap::Parser;
use std::process::ExitCode;

fn main() -> ExitCode {
    let args = match Args::try_parse() {
        Ok(args) => args,
        Err(error) => return usage(&error),
    };
    match run(args.command) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("semel: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// Help goes to stdout with 0, a mistake to stderr with 64.
fn usage(error: &clap::Error) -> ExitCode {
    // A closed pipe while printing help is nobody's mistake.
    drop(error.print());
    if error.use_stderr() {
        ExitCode::from(64)
    } else {
        ExitCode::SUCCESS
    }
}

fn run(command: Command) -> anyhow::Result<()> {
    let runtime = tokio::runtime::Runtime::new()?;
    match command {
        Command::Dev => runtime.block_on(commands::dev::run()),
        Command::Key(args) => commands::key::run(&args),
        Command::Migrate(args) => runtime.block_on(commands::migrate::run(&args)),
    }
}
