//! Waiting for other processes, always with a bound.

use std::io;
use std::time::Duration;

/// Longest wait for a program to be ready or to end. Crash recovery on a slow disk takes seconds, not half a minute.
pub const BOUND: Duration = Duration::from_secs(30);

/// How long to leave the processor to the other process between two looks.
const PAUSE: Duration = Duration::from_millis(20);

/// Looks again and again until `done` says so; `false` when `bound` passed first.
///
/// # Errors
/// The first of `done`.
#[expect(
    clippy::disallowed_methods,
    reason = "another process gives no signal to wait for, and it lives in real time"
)]
pub fn until(bound: Duration, mut done: impl FnMut() -> io::Result<bool>) -> io::Result<bool> {
    let start = std::time::Instant::now();
    while !done()? {
        if start.elapsed() > bound {
            return Ok(false);
        }
        std::thread::sleep(PAUSE);
    }
    Ok(true)
}
