//! Kills, pauses, cuts and floods gates, broker and handler, and counts effects in a ledger outside.
//!
//! The processes are this same program, started again. `cargo xtask prove gate` runs the long form.
#![allow(
    clippy::print_stdout,
    reason = "this program is a test of its own and talks to a person"
)]

use proof::gate::{self, Plan};
use proof::harness::{self, Profile};
use std::process::ExitCode;
use std::time::Duration;

/// How long each deployment of the short form is attacked.
const SHORT: Duration = Duration::from_secs(4);

/// How long each deployment of the long form is attacked, unless it is told.
const LONG_SECONDS: u64 = 60;

/// How long what is broken on purpose is attacked.
const BROKEN: Duration = Duration::from_secs(6);

fn main() -> ExitCode {
    harness::main("gate", gate::work, prove)
}

/// Attacks the deployments whose name contains `filter`; without one, asks whether all of them together met enough
/// faults to mean something, and attacks what is broken on purpose as well. `teeth` attacks only that.
fn prove(filter: &str) -> anyhow::Result<()> {
    let profile = Profile::from_environment()?;
    let seconds = seconds()?;
    let plan = Plan {
        program: std::env::current_exe()?,
        seed: profile.seed,
        lasts: if profile.long {
            Duration::from_secs(seconds)
        } else {
            SHORT
        },
        filter: filter.to_owned(),
        whole: profile.long,
        side_by_side: if profile.long { 2 } else { 5 },
    };
    let broken = Plan {
        lasts: BROKEN,
        ..plan.clone()
    };
    harness::prove(
        &command(profile, seconds),
        filter,
        gate::prove(&plan, |line| println!("{line}")),
        gate::convict_broken_gates(&broken),
    )
}

/// The command that makes the same choices again.
fn command(profile: Profile, seconds: u64) -> String {
    let seed = profile.seed;
    if profile.long {
        format!("cargo xtask prove gate --seconds {seconds} --seed {seed}")
    } else {
        format!("SEMEL_TEST_SEED={seed} cargo test -p proof --all-features --test gate")
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "a test has no command line: the environment is how it is told"
)]
fn seconds() -> anyhow::Result<u64> {
    match std::env::var("SEMEL_PROVE_SECONDS") {
        Ok(text) => Ok(text.parse()?),
        Err(_) => Ok(LONG_SECONDS),
    }
}
