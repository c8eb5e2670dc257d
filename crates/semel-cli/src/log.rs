//! Log lines: JSON, one per line. A gate writes them to standard output, as platforms collect them.
//!
//! Nobody waits for a reader of the log but one thread: lines are queued, and dropped and counted when
//! the queue is full. What an operator did has room of its own in it.

mod json;
mod queue;

use json::JsonLine;
use queue::Queue;
use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::thread;
use std::time::Duration;
use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt::MakeWriter;

/// Everything that is told without asking: deliveries, audits, warnings, and the program's own story.
const FILTER_DEFAULT: &str = "info";

/// What a program tells whose output is for people.
const FILTER_ASIDE: &str = "warn";

/// How long the end of the process waits for a reader of the last lines: shorter than the pause
/// between SIGTERM and SIGKILL leaves after a drain.
const FLUSH_WITHIN: Duration = Duration::from_secs(1);

/// A log at work. When it is dropped, what is left is written, if somebody reads it soon.
#[derive(Debug)]
#[must_use]
pub(crate) struct Log {
    queue: Queue,
}

/// Begins to write log lines; `SEMEL_LOG` chooses which, as in `warn,delivery=info`.
///
/// # Errors
/// When no thread can be started: lines would gather and nobody would write them.
pub(crate) fn begin() -> io::Result<Log> {
    let stdout = io::stdout().as_fd().try_clone_to_owned()?;
    start(FILTER_DEFAULT, stdout.into())
}

/// Begins to write warnings to standard error, for a program whose output is for people; `SEMEL_LOG`
/// chooses more.
///
/// # Errors
/// When no thread can be started.
pub(crate) fn begin_aside() -> io::Result<Log> {
    let stderr = io::stderr().as_fd().try_clone_to_owned()?;
    start(FILTER_ASIDE, stderr.into())
}

/// Begins to write only what an operator does, to standard error: a command of theirs may wait.
pub(crate) fn begin_audit() {
    subscribe(EnvFilter::new("off,audit=info"), io::stderr);
}

/// `to` is a file of its own: a thread that waits for its reader holds no lock that others need.
fn start(default: &str, to: File) -> io::Result<Log> {
    let filter = EnvFilter::builder()
        .with_env_var("SEMEL_LOG")
        .try_from_env()
        .unwrap_or_else(|_| EnvFilter::new(default));
    let queue = Queue::default();
    subscribe(filter, queue.clone());
    let lines = queue.clone();
    thread::Builder::new()
        .name("semel-log".into())
        .spawn(move || lines.write_to(to))?;
    Ok(Log { queue })
}

fn subscribe(filter: EnvFilter, writer: impl for<'a> MakeWriter<'a> + Send + Sync + 'static) {
    tracing_subscriber::fmt()
        .event_format(JsonLine)
        .with_env_filter(filter)
        .with_writer(writer)
        .init();
}

// === impl Log ===

impl Log {
    /// How many lines nobody will read.
    pub(crate) fn dropped(&self) -> Arc<AtomicU64> {
        self.queue.dropped()
    }
}

impl Drop for Log {
    fn drop(&mut self) {
        self.queue.close(FLUSH_WITHIN);
    }
}
