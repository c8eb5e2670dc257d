//! Log lines: JSON, one per line. A gate writes them to standard output, as platforms collect them.

mod json;

use json::JsonLine;
use std::io::{self, Write};
use std::mem;
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::thread;
use std::time::Duration;
use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt::MakeWriter;

/// Everything that is told without asking: deliveries, audits, warnings, and the program's own story.
const USUAL: &str = "info";

/// How many bytes of lines may wait to be written; whoever has more to say waits.
const WAITING_BYTES_MAX: usize = 1024 * 1024;

/// Lines are written together when so many bytes have come, or after a moment.
const GATHER_BYTES: usize = 64 * 1024;
const GATHER_FOR: Duration = Duration::from_millis(5);

/// Lines on their way to standard output. One thread writes all that has come while it wrote, so that
/// a delivery does not wait for a pipe, and a thousand lines are not a thousand writes.
#[derive(Clone, Debug, Default)]
struct Lines(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    waiting: Vec<u8>,
    closed: bool,
}

/// Writes what is left when it is dropped.
#[derive(Debug)]
#[must_use]
pub(crate) struct Log {
    lines: Lines,
    writer: Option<thread::JoinHandle<()>>,
}

/// Begins to write log lines; `SEMEL_LOG` chooses which, as in `warn,delivery=info`.
///
/// # Errors
/// When no thread can be started: lines would gather and nobody would write them.
pub(crate) fn begin() -> io::Result<Log> {
    let filter = EnvFilter::builder()
        .with_env_var("SEMEL_LOG")
        .try_from_env()
        .unwrap_or_else(|_| EnvFilter::new(USUAL));
    let lines = Lines::default();
    subscribe(filter, lines.clone());
    let theirs = lines.clone();
    let writer = thread::Builder::new()
        .name("semel-log".into())
        .spawn(move || theirs.write_all())?;
    let writer = Some(writer);
    Ok(Log { lines, writer })
}

/// Begins to write warnings to standard error, for a program whose output is for people; `SEMEL_LOG`
/// chooses more.
pub(crate) fn begin_aside() {
    let filter = EnvFilter::builder()
        .with_env_var("SEMEL_LOG")
        .try_from_env()
        .unwrap_or_else(|_| EnvFilter::new("warn"));
    subscribe(filter, io::stderr);
}

/// Begins to write only what an operator does, to standard error.
pub(crate) fn begin_audit() {
    subscribe(EnvFilter::new("off,audit=info"), io::stderr);
}

fn subscribe(filter: EnvFilter, writer: impl for<'a> MakeWriter<'a> + Send + Sync + 'static) {
    tracing_subscriber::fmt()
        .event_format(JsonLine)
        .with_env_filter(filter)
        .with_writer(writer)
        .init();
}

// === impl Lines ===

impl Lines {
    /// Writes until it is closed and empty.
    fn write_all(&self) {
        let mut batch = Vec::new();
        loop {
            let mut state = self.lock();
            while state.waiting.is_empty() && !state.closed {
                state = self
                    .0
                    .changed
                    .wait(state)
                    .expect("no holder of this lock panics");
            }
            if state.waiting.is_empty() {
                return;
            }
            let (gathered, _) = self
                .0
                .changed
                .wait_timeout_while(state, GATHER_FOR, |state| {
                    state.waiting.len() < GATHER_BYTES && !state.closed
                })
                .expect("no holder of this lock panics");
            state = gathered;
            mem::swap(&mut batch, &mut state.waiting);
            drop(state);
            self.0.changed.notify_all();
            // A closed standard output must not end the gate.
            drop(io::stdout().lock().write_all(&batch));
            batch.clear();
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().expect("no holder of this lock panics")
    }
}

impl Write for Lines {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        let mut state = self.lock();
        while state.waiting.len() > WAITING_BYTES_MAX && !state.closed {
            state = self
                .0
                .changed
                .wait(state)
                .expect("no holder of this lock panics");
        }
        let before = state.waiting.len();
        state.waiting.extend_from_slice(line);
        let after = state.waiting.len();
        drop(state);
        let wakes = before == 0 || (before < GATHER_BYTES && after >= GATHER_BYTES);
        if wakes {
            self.0.changed.notify_all();
        }
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl MakeWriter<'_> for Lines {
    type Writer = Self;

    fn make_writer(&self) -> Self {
        self.clone()
    }
}

// === impl Log ===

impl Drop for Log {
    fn drop(&mut self) {
        self.lines.lock().closed = true;
        self.lines.0.changed.notify_all();
        if let Some(writer) = self.writer.take() {
            // A thread that panicked has nothing left to say.
            drop(writer.join());
        }
    }
}
