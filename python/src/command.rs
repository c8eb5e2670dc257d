//! The `semel` command, carried by the package.

use pyo3::prelude::*;
use std::ffi::OsString;

/// Runs the command to its end; its exit code. The first argument is the name of the program.
#[pyfunction]
pub(crate) fn main(py: Python<'_>, arguments: Vec<OsString>) -> u8 {
    py.detach(|| semel_cli::run(arguments))
}
