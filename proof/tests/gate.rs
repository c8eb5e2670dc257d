//! Kills, pauses, cuts and floods gates, broker and handler, and counts effects in a ledger outside.
//!
//! The processes are this same program, started again with an order. `cargo xtask prove gate` runs the long form.
#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
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
const BROKEN_GATES: Duration = Duration::from_secs(6);

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let done = match arguments.as_slice() {
        [run_process, config] if run_process == "play" => gate::run_process(config),
        _ => prove(harness::name_filter(&arguments)),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("gate: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// Attacks the deployments whose name contains `only`; without it, asks whether all of them together met enough faults to
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
        let report = runtime.block_on(gate::prove(&plan, |line| println!("{line}")))?;
        println!("{report}\n{} points met", report.points_met());
        let mut complaints = report.broken();
        if only.is_empty() {
            complaints.extend(plan.invalid(&report));
        }
        anyhow::ensure!(
            complaints.is_empty(),
            "\n{}\nto repeat: {again}",
            complaints.join("\n")
        );
    }
    if only.is_empty() || only == "teeth" {
        let plan = Plan {
            lasts: BROKEN_GATES,
            ..plan
        };
        for gate in runtime.block_on(gate::convict_broken_gates(&plan))? {
            println!("{gate}");
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
