//! Races many processes against each other on a few hot keys, and judges every answer.
//!
//! The racing processes are this same program, started again with an order.
#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "this program is a test of its own and talks to a person"
)]

use proof::harness::Profile;
use proof::race::{self, RaceReport};
use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let done = match arguments.as_slice() {
        [worker, config] if worker == "worker" => race::work(config),
        _ => prove(proof::harness::name_filter(&arguments)),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("races: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// Races on the stores whose name contains `only`; without it, shows the checker's teeth as well.
fn prove(only: &str) -> anyhow::Result<()> {
    let profile = Profile::from_environment()?;
    let program = std::env::current_exe()?;
    let again = profile.command("races");
    println!("races, seed {}; to repeat: {again}", profile.seed);
    let runtime = tokio::runtime::Runtime::new()?;
    let reports = runtime.block_on(race::prove(profile, &program, only))?;
    println!("{}", RaceReport::HEAD);
    for report in &reports {
        println!("{report}");
    }
    let complaints: Vec<String> = reports.iter().flat_map(RaceReport::complaints).collect();
    anyhow::ensure!(
        complaints.is_empty(),
        "\n{}\nto repeat: {again}",
        complaints.join("\n")
    );
    if only.is_empty() {
        for build in runtime.block_on(race::convict_broken_builds(profile, &program))? {
            println!("{build}");
        }
    }
    Ok(())
}
