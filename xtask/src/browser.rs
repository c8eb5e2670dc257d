//! The page in a real browser: the path of a person, every screen, and the pictures of `docs/ui.md`.

use crate::run;
use crate::servers::Environment;
use crate::suite::Suite;
use std::process::Command;

/// The path of a person; with `long`, every screen in both schemes and at the width of a phone too.
pub(crate) fn test(suite: &Suite, environment: Environment, long: bool) -> anyhow::Result<()> {
    let script = if long { "test-long" } else { "test" };
    run::run(command(suite, script)?.envs(environment))
}

/// Makes the pictures anew.
pub(crate) fn shots() -> anyhow::Result<()> {
    testbed::install(&testbed::missing_tools())?;
    let mut shots = command(&Suite::new(false), "shots")?;
    run::run(shots.env("SEMEL_SHOTS", run::root().join("docs/ui")))
}

/// A script with the program as the other tests have compiled it.
fn command(suite: &Suite, script: &str) -> anyhow::Result<Command> {
    let mut command = testbed::browser_run(script)?;
    command.env("SEMEL_BIN", suite.semel()?);
    Ok(command)
}
