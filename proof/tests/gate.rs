//! Kills, pauses, cuts and floods gates, broker and handler, and counts effects in a ledger outside.
//!
//! The processes are this same program, started again with an order. `cargo xtask prove gate` runs the long form.
#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "this program is a test of its own and talks to a person"
)]

use proof::bed::{self, Profile};
use proof::gate::{self, Plan};
use std::process::ExitCode;
use std::time::Duration;

/// How long each scene of the short form is fought.
const SHORT: Duration = Duration::from_secs(4);

/// How long each scene of the long form is fought, unless it is told.
const LONG_SECONDS: u64 = 60;

/// How long what is broken on purpose is fought.
const TEETH: Duration = Duration::from_secs(6);

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let done = match arguments.as_slice() {
        [play, order] if play == "play" => gate::play(order),
        _ => prove(bed::only(&arguments)),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("gate: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// Fights the scenes whose name contains `only`; without it, asks whether all of them together met enough faults to
/// mean something, and shows the checker's teeth as well. `teeth` shows only those.
fn prove(only: &str) -> anyhow::Result<()> {
    let profile = Profile::from_environment()?;
    let seconds = seconds()?;
    let again = command(profile, seconds);
    println!(
        "the gate under attack, seed {}; to repeat: {again}",
        profile.seed
    );
    let plan = Plan {
        program: std::env::current_exe()?,
        seed: profile.seed,
        lasts: if profile.long {
            Duration::from_secs(seconds)
        } else {
            SHORT
        },
        only: only.to_owned(),
        whole: profile.long,
        side_by_side: if profile.long { 2 } else { 5 },
    };
    let runtime = tokio::runtime::Runtime::new()?;
    if only != "teeth" {
        let table = runtime.block_on(gate::prove(&plan, |line| println!("{line}")))?;
        println!("{table}\n{} points met", table.points_met());
        let mut complaints = table.broken();
        if only.is_empty() {
            complaints.extend(plan.invalid(&table));
        }
        anyhow::ensure!(
            complaints.is_empty(),
            "\n{}\nto repeat: {again}",
            complaints.join("\n")
        );
    }
    if only.is_empty() || only == "teeth" {
        let plan = Plan {
            lasts: TEETH,
            ..plan
        };
        for tooth in runtime.block_on(gate::show_teeth(&plan))? {
            println!("{tooth}");
        }
    }
    Ok(())
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
