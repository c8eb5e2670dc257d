//! The only place that prints. A reader that has seen enough, as `head` has, is nobody's mistake.

use anyhow::Context;
use std::io::{ErrorKind, Write, stderr, stdout};

/// Data, on standard output. What nobody reads any more is not printed.
///
/// # Errors
/// When it cannot be written for another reason, as to a disk that is full.
pub(crate) fn out(text: &str) -> anyhow::Result<()> {
    let mut stdout = stdout().lock();
    let written = stdout
        .write_all(text.as_bytes())
        .and_then(|()| stdout.flush());
    match written {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        other => other.context("standard output cannot be written"),
    }
}

/// Talk, on standard error. There is nobody else to tell when that fails.
pub(crate) fn aside(text: &str) {
    let mut stderr = stderr().lock();
    drop(
        stderr
            .write_all(text.as_bytes())
            .and_then(|()| stderr.flush()),
    );
}
