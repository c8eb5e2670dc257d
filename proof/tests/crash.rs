//! Kills and pauses worker processes while they run deliveries, and counts effects in a ledger outside.
//!
//! The worker processes are this same program, started again.

use proof::crash;
use proof::harness::{self, Profile};
use std::process::ExitCode;

fn main() -> ExitCode {
    harness::main("crash", crash::work, prove)
}

/// Tries the cases whose name contains `filter`; without one, what is broken on purpose as well.
fn prove(filter: &str) -> anyhow::Result<()> {
    let profile = Profile::from_environment()?;
    let program = std::env::current_exe()?;
    harness::prove(
        &profile.command("crash"),
        filter,
        crash::prove(profile, &program, filter),
        crash::convict_broken_builds(profile, &program),
    )
}
