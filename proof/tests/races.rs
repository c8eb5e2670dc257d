//! Races many processes against each other on a few hot keys, and judges every answer.
//!
//! The racing processes are this same program, started again.

use proof::harness::{self, Profile};
use proof::{commit, race};
use std::process::ExitCode;

fn main() -> ExitCode {
    harness::main("races", race::work, prove)
}

/// Races on the stores whose name contains `filter`; without one, on stores that are broken on purpose as well.
fn prove(filter: &str) -> anyhow::Result<()> {
    let profile = Profile::from_environment()?;
    let program = std::env::current_exe()?;
    harness::prove(
        &profile.command("races"),
        filter,
        race::prove(profile, &program, filter),
        race::convict_broken_builds(profile, &program),
    )?;
    harness::prove(
        &profile.command("races"),
        filter,
        commit::prove(profile, filter),
        commit::convict_broken_builds(profile),
    )
}
