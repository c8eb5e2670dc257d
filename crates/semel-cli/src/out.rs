//! The only place that prints. A reader that has seen enough, as `head` has, is nobody's mistake.

use anyhow::Context;
use std::convert::Infallible;
use std::io::{ErrorKind, Write, stderr, stdout};
use std::sync::mpsc;
use std::time::Duration;

/// Data, on standard output. What nobody reads any more is not printed.
///
/// # Errors
/// When it cannot be written for another reason, as to a disk that is full.
pub(crate) fn to_stdout(text: &str) -> anyhow::Result<()> {
    let mut stdout = stdout().lock();
    let written = stdout
        .write_all(text.as_bytes())
        .and_then(|()| stdout.flush());
    match written {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        other => other.context("standard output cannot be written"),
    }
}

/// An error with its causes. Some of them repeat what was said before, and nothing is said twice.
pub(crate) fn told(error: &anyhow::Error) -> String {
    let mut told = String::new();
    for cause in error.chain().map(ToString::to_string) {
        if told.contains(&cause) {
            continue;
        }
        if !told.is_empty() {
            told.push_str(": ");
        }
        told.push_str(&cause);
    }
    told
}

/// Talk, on standard error. There is nobody else to tell when that fails.
pub(crate) fn to_stderr(text: &str) {
    let mut stderr = stderr().lock();
    drop(
        stderr
            .write_all(text.as_bytes())
            .and_then(|()| stderr.flush()),
    );
}

/// The same, for whoever must not wait for ever for a reader.
pub(crate) fn to_stderr_within(text: String, limit: Duration) {
    if text.is_empty() {
        return;
    }
    let (said, heard) = mpsc::channel::<Infallible>();
    std::thread::spawn(move || {
        to_stderr(&text);
        drop(said);
    });
    // It ends with the other side, or with the limit: either way there is no more to do.
    heard.recv_timeout(limit).ok();
}
