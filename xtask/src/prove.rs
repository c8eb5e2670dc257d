//! `cargo xtask prove`: the prover on every specimen, at every crash point.

use crate::run;
use crate::step::SPECIMENS;

pub(crate) fn prove() -> anyhow::Result<()> {
    testbed::install(&testbed::missing_packages())?;
    run::run(
        run::cargo(SPECIMENS)
            .args(["--", "--nocapture"])
            .env("SEMEL_TEST_LONG", "1"),
    )
}
