//! Suites: programs that start themselves again as the processes they attack, and talk to a person.
#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a suite is a program of its own"
)]

use super::processes::ProcessConfig;
use super::report::Report;
use super::verdict::Verdict;
use anyhow::Context;
use serde::de::DeserializeOwned;
use std::fmt::Debug;
use std::process::ExitCode;
use tokio::runtime::{Builder, Runtime};
use tokio::task::JoinSet;

/// The name under which only what is broken on purpose is tried.
const BROKEN_ONLY: &str = "teeth";

/// How many attacks something broken may pass before it is convicted, and how far apart their dice are.
const CONVICTED_WITHIN: u64 = 4;
const NEXT_DICE: u64 = 1 << 32;

/// The whole of a suite's program: a process of it if it was started as one, or else the suite, with what of it to
/// run. `cargo test` hands the name on; all of it runs unless one is given.
pub fn main(
    name: &str,
    work: fn(&str) -> anyhow::Result<()>,
    prove: fn(&str) -> anyhow::Result<()>,
) -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let done = match arguments.as_slice() {
        [worker, config] if worker == "worker" => work(config),
        _ => {
            let mut names = arguments.iter().filter(|it| !it.starts_with('-'));
            prove(names.next().map_or("", String::as_str))
        }
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{name}: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// Makes an attack and shows its report; without a filter, tries what is broken on purpose as well.
///
/// # Errors
/// When something could not be tried, a rule was broken, a run was too easy to mean anything, or something broken
/// passed. `again` says how to repeat it.
pub fn prove(
    again: &str,
    filter: &str,
    attack: impl Future<Output = anyhow::Result<Report>>,
    convict: impl Future<Output = anyhow::Result<Vec<String>>>,
) -> anyhow::Result<()> {
    println!("to repeat: {again}");
    let runtime = Runtime::new()?;
    if filter != BROKEN_ONLY {
        let mut report = runtime.block_on(attack)?;
        if !filter.is_empty() {
            // A part alone need not have met everything.
            report.invalid.clear();
        }
        println!("{report}");
        let complaints = report.complaints().join("\n");
        anyhow::ensure!(complaints.is_empty(), "\n{complaints}\nto repeat: {again}");
    }
    if filter.is_empty() || filter == BROKEN_ONLY {
        for convicted in runtime.block_on(convict)? {
            println!("{convicted}");
        }
    }
    Ok(())
}

/// Attacks something that is broken on purpose until one of these rules is seen broken, each time with other dice:
/// what brings a fault to light is drawn.
///
/// # Errors
/// When it could not be attacked, or passed every time.
pub(crate) async fn convict<R: Copy + Debug + Ord, F>(
    what: &str,
    rules: &[R],
    attack: impl Fn(u64) -> F,
) -> anyhow::Result<String>
where
    F: Future<Output = anyhow::Result<Verdict<R>>>,
{
    let mut others = 0;
    for time in 1..=CONVICTED_WITHIN {
        let verdict = attack(time * NEXT_DICE).await?;
        let times: usize = rules.iter().map(|rule| verdict.count(*rule)).sum();
        if times > 0 {
            return Ok(format!(
                "{what}: convicted in attack {time}, {rules:?} broken {times} times"
            ));
        }
        others += verdict.violations.len();
    }
    anyhow::bail!(
        "the checker has no teeth: {what} passed {CONVICTED_WITHIN} times ({rules:?} never seen broken; {others} other violations)"
    )
}

/// Runs a process from what it was started with.
pub(crate) fn run_process<S: DeserializeOwned>(
    config: &str,
    mut runtime: Builder,
    run: impl AsyncFnOnce(ProcessConfig<S>) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    let config = serde_json::from_str(config).context("this is not what a process starts with")?;
    runtime.enable_all().build()?.block_on(run(config))
}

/// Runs all of these, so many at a time, and hands on what each came to.
pub(crate) async fn side_by_side<F, T>(
    limit: usize,
    parts: impl IntoIterator<Item = F>,
    mut done: impl FnMut(T),
) -> anyhow::Result<()>
where
    F: Future<Output = anyhow::Result<T>> + Send + 'static,
    T: Send + 'static,
{
    let mut parts = parts.into_iter();
    let mut running = JoinSet::new();
    loop {
        while running.len() < limit
            && let Some(part) = parts.next()
        {
            running.spawn(part);
        }
        let Some(ended) = running.join_next().await else {
            return Ok(());
        };
        done(ended??);
    }
}
