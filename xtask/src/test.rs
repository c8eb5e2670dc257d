//! `cargo xtask test`: one list of steps, each timed; the first failure ends it.

use anyhow::bail;
use clap::ValueEnum;

use crate::report::{self, Took};
use crate::run::Stopwatch;
use crate::step::{Step, World};

/// What to test, and how long.
#[derive(Debug, clap::Args)]
pub(crate) struct TestArgs {
    /// Run the long tests too (they see SEMEL_TEST_LONG=1).
    #[arg(long)]
    long: bool,
    /// Run one step alone, compiling only what it needs.
    #[arg(long, value_name = "NAME")]
    only: Option<Step>,
}

pub(crate) fn test(args: &TestArgs) -> anyhow::Result<()> {
    let steps = match &args.only {
        Some(step) => std::slice::from_ref(step),
        None => Step::value_variants(),
    };
    let mut world = World::new(args.long, args.only.is_none());
    let mut table = Vec::new();
    let whole = Stopwatch::start();
    let mut failed = None;
    for &step in steps {
        eprintln!("\n=== {step}");
        let watch = Stopwatch::start();
        let result = step.run(&mut world);
        let seconds = watch.seconds();
        eprintln!("--- {step} {seconds:.1} s");
        table.push(Took { step, seconds });
        if let Err(error) = result {
            failed = Some((step, error));
            break;
        }
    }
    print!("\n{}", report::table(&table));
    print!("{}", report::counts(world.passed, &world.not_run));
    let minutes = whole.seconds() / 60.0;
    let Some((step, error)) = failed else {
        println!("all passed in {minutes:.1} min");
        return Ok(());
    };
    if let Some(rest) = steps.get(table.len()..).filter(|rest| !rest.is_empty()) {
        let rest: Vec<String> = rest.iter().map(Step::to_string).collect();
        println!("not reached: {}", rest.join(", "));
    }
    let long = if args.long { " --long" } else { "" };
    bail!("{step} failed: {error:#}\nto repeat only it: cargo xtask test{long} --only {step}");
}
