//! Gates, handlers and senders as processes and threads of their own, for tests from outside.
#![allow(
    dead_code,
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "each test uses its part, may stop at the first surprise, and says when it is skipped"
)]

pub(crate) mod broker;
pub(crate) mod counter;
pub(crate) mod fleet;
pub(crate) mod gate;
pub(crate) mod python;
pub(crate) mod said;
pub(crate) mod sender;
pub(crate) mod stock;

use std::net::TcpStream;
use std::path::Path;
use std::time::Duration;

/// Longest wait for anything another process does.
pub(crate) const BOUND: Duration = Duration::from_secs(30);

/// Waits until `done` says so.
pub(crate) fn wait_for(what: &str, mut done: impl FnMut() -> bool) {
    let came = testbed::until(BOUND, || Ok(done())).unwrap();
    assert!(came, "not within {BOUND:?}: {what}");
}

/// Whether somebody listens there.
pub(crate) fn listens(port: u16) -> bool {
    TcpStream::connect(("127.0.0.1", port)).is_ok()
}

/// The root of the repository.
pub(crate) fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .ancestors()
        .nth(2)
        .unwrap()
}

/// The lines of a file that handlers append to; none while there is no file.
pub(crate) fn lines(path: &Path) -> Vec<String> {
    let text = std::fs::read_to_string(path).unwrap_or_default();
    text.lines().map(str::to_owned).collect()
}
