//! Kills and pauses worker processes while they run deliveries, and counts effects in a ledger outside.
//!
//! The worker processes are this same program, started again with an order.
#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "this program is a test of its own and talks to a person"
)]

use proof::crash;
use proof::harness::{self, Profile};
use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let done = match arguments.as_slice() {
        [worker, config] if worker == "worker" => crash::work(config),
        _ => prove(harness::name_filter(&arguments)),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("crash: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// Tries the cases whose name contains `only`; without it, asks whether all of them together met enough faults to mean
/// something, and shows the checker's teeth as well.
fn prove(only: &str) -> anyhow::Result<()> {
    let profile = Profile::from_environment()?;
    let program = std::env::current_exe()?;
    let again = profile.command("crash");
    println!("crash runs, seed {}; to repeat: {again}", profile.seed);
    let runtime = tokio::runtime::Runtime::new()?;
    let report = runtime.block_on(crash::prove(profile, &program, only))?;
    println!("{report}");
    let mut complaints = report.broken();
    if only.is_empty() {
        complaints.extend(report.invalid());
    }
    anyhow::ensure!(
        complaints.is_empty(),
        "\n{}\nto repeat: {again}",
        complaints.join("\n")
    );
    if only.is_empty() {
        for build in runtime.block_on(crash::convict_broken_builds(profile, &program))? {
            println!("{build}");
        }
    }
    Ok(())
}
