//! `cargo xtask bench`: measurements with optimised code and real servers.

use crate::servers::Servers;
use crate::{python, run};

/// What to measure.
#[derive(Debug, clap::Args)]
pub(crate) struct BenchArgs {
    /// A measurement of the crate `bench`, such as `stores`; or `python`, the Python package.
    what: String,
    /// Handed on to it.
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    rest: Vec<String>,
}

pub(crate) fn bench(args: &BenchArgs) -> anyhow::Result<()> {
    testbed::install(&testbed::missing_packages())?;
    if args.what == "python" {
        return python::bench(Servers::start()?.environment(), &args.rest);
    }
    let mut command = run::cargo("run --release --package bench --");
    command.arg(&args.what).args(&args.rest);
    run::run(&mut command)
}
