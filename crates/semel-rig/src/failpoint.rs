//! Named points in a program, where a test may end or stop the process, or let what comes next fail.

use std::io;
use std::sync::OnceLock;

type Listener = Box<dyn Fn(&'static str) + Send + Sync>;
type Judge = Box<dyn Fn(&'static str) -> bool + Send + Sync>;

static LISTENER: OnceLock<Listener> = OnceLock::new();
static JUDGE: OnceLock<Judge> = OnceLock::new();

/// From now on `listener` is told of every point that is passed, on the task that passes it. The first one stays.
pub fn listen(listener: impl Fn(&'static str) + Send + Sync + 'static) {
    LISTENER.get_or_init(|| Box::new(listener));
}

/// Tells whoever listens.
pub fn pass(point: &'static str) {
    if let Some(listener) = LISTENER.get() {
        listener(point);
    }
}

/// From now on `judge` says whether what comes after a point fails, each time that it is reached. The first one stays.
pub fn fail_if(judge: impl Fn(&'static str) -> bool + Send + Sync + 'static) {
    JUDGE.get_or_init(|| Box::new(judge));
}

/// Instead of what comes after a point.
///
/// # Errors
/// When whoever judges says so.
pub fn judge(point: &'static str) -> io::Result<()> {
    match JUDGE.get() {
        Some(fails) if fails(point) => Err(io::Error::other(format!("{point}: a test says so"))),
        Some(_) | None => Ok(()),
    }
}
