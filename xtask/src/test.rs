//! `cargo xtask test`: one list of steps, each timed, the first failure ends it.

use anyhow::bail;

use crate::report::{self, Took};
use crate::run::Stopwatch;
use crate::step::{Step, World};

/// What to test, and how long.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Take the time for the long tests too (they see SEMEL_TEST_LONG=1).
    #[arg(long)]
    long: bool,
    /// Run one step alone.
    #[arg(long, value_name = "NAME")]
    only: Option<Step>,
}

pub(crate) fn test(args: &Args) -> anyhow::Result<()> {
    let steps = match args.only {
        Some(step) => vec![step],
        None => Step::IN_ORDER.to_vec(),
    };
    let mut world = World::new(args.long);
    let mut table = Vec::new();
    let whole = Stopwatch::start();
    for step in steps {
        eprintln!("\n=== {step}");
        let watch = Stopwatch::start();
        let result = step.run(&mut world);
        let seconds = watch.seconds();
        if let Err(error) = result {
            let repeat = repeat(step, args.long);
            bail!("{step} failed after {seconds:.1} s: {error:#}\nto repeat only it: {repeat}");
        }
        eprintln!("--- {step} {seconds:.1} s");
        table.push(Took { step, seconds });
    }
    print!("\n{}", report::table(&table));
    println!("all passed in {:.1} s", whole.seconds());
    Ok(())
}

fn repeat(step: Step, long: bool) -> String {
    let long = if long { " --long" } else { "" };
    format!("cargo xtask test{long} --only {step}")
}
