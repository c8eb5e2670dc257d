//! The statements of `semel warehouse sql` and the dbt package, executed by their own tests.

use crate::run;
use crate::servers::Environment;
use std::path::{Path, PathBuf};
use std::process::Command;

const REQUIREMENTS: &str = include_str!("../../warehouse/requirements.txt");

/// dbt for PostgreSQL and BigQuery, which only the long tests start.
const REQUIREMENTS_LONG: &str = include_str!("../../warehouse/requirements-long.txt");

/// A Python with DuckDB; the gate's tests run a pipeline with it, too.
pub(crate) fn python() -> anyhow::Result<PathBuf> {
    testbed::python_with("python-warehouse", REQUIREMENTS)
}

/// On DuckDB and PostgreSQL; with `long`, dbt on PostgreSQL and for BigQuery too.
pub(crate) fn test(environment: Environment, long: bool) -> anyhow::Result<()> {
    let python = python()?;
    let mut tests = tests(&python, if long { 600 } else { 120 });
    tests.envs(environment);
    if long {
        let dbt = testbed::python_with("python-warehouse-long", REQUIREMENTS_LONG)?;
        tests.env("SEMEL_TEST_LONG", "1");
        tests.env("SEMEL_TEST_DBT_PYTHON", dbt);
    }
    run::run(&mut tests)
}

/// None may take longer than so many seconds.
fn tests(python: &Path, seconds: u32) -> Command {
    let words = format!("-m pytest --quiet --timeout {seconds} --durations 5 tests");
    let mut command = Command::new(python);
    command
        .args(words.split_whitespace())
        .current_dir(run::root().join("warehouse"));
    command
}
