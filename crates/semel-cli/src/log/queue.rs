//! Lines on their way to their reader. One thread writes all that has come while it wrote, so that a
//! thousand lines are not a thousand writes; whoever has something to say never waits for it.

use super::format::LogFormat;
use std::io::{self, Write};
use std::mem;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tracing::Metadata;
use tracing_subscriber::fmt::MakeWriter;

/// How many bytes of lines may wait to be written. 1 MiB: some seconds of a busy gate.
const WAITING_BYTES_MAX: usize = 1024 * 1024;

/// How many more may wait of what operators did: nobody can read up on that elsewhere.
const AUDIT_BYTES_RESERVED: usize = 256 * 1024;

/// The target of lines about what operators did.
const AUDIT: &str = "audit";

/// Lines are written together when so many bytes have come, or after a moment.
const GATHER_BYTES: usize = 64 * 1024;
const GATHER_FOR: Duration = Duration::from_millis(5);

/// See the module.
#[derive(Clone, Debug, Default)]
pub(super) struct Queue(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
    /// All that were dropped, ever.
    dropped: Arc<AtomicU64>,
}

#[derive(Debug, Default)]
struct State {
    waiting: Vec<u8>,
    /// Lines that were dropped and not told of.
    untold: u64,
    closed: bool,
    written: bool,
}

/// Takes one line.
#[derive(Debug)]
pub(super) struct Line {
    queue: Queue,
    bytes_max: usize,
}

// === impl Queue ===

impl Queue {
    pub(super) fn dropped(&self) -> Arc<AtomicU64> {
        Arc::clone(&self.0.dropped)
    }

    /// Writes until the queue is closed and empty.
    pub(super) fn write_to(&self, format: &LogFormat, mut to: impl Write) {
        let mut batch = Vec::new();
        while let Some(untold) = self.gather(&mut batch) {
            let lines = batch.iter().filter(|byte| **byte == b'\n').count() as u64;
            if untold > 0 {
                batch.extend_from_slice(format.dropped(untold).as_bytes());
            }
            // A reader that went away must not end the gate.
            if to.write_all(&batch).and_then(|()| to.flush()).is_err() {
                self.0.dropped.fetch_add(lines, Ordering::Relaxed);
                self.lock().untold += untold + lines;
            }
            batch.clear();
        }
        self.lock().written = true;
        self.0.changed.notify_all();
    }

    /// Waits for lines, takes them, and says how many were dropped; `None` when no more will come.
    fn gather(&self, batch: &mut Vec<u8>) -> Option<u64> {
        let changed = &self.0.changed;
        let nothing = |state: &mut State| state.waiting.is_empty() && !state.closed;
        let state = changed.wait_while(self.lock(), nothing);
        let few = |state: &mut State| state.waiting.len() < GATHER_BYTES && !state.closed;
        let state = state.unwrap_or_else(PoisonError::into_inner);
        let gathered = changed.wait_timeout_while(state, GATHER_FOR, few);
        let (mut state, _) = gathered.unwrap_or_else(PoisonError::into_inner);
        if state.waiting.is_empty() {
            return None;
        }
        mem::swap(batch, &mut state.waiting);
        Some(mem::take(&mut state.untold))
    }

    /// Takes no more lines, and waits until those it has are written, but not for ever.
    pub(super) fn close(&self, within: Duration) {
        let mut state = self.lock();
        state.closed = true;
        self.0.changed.notify_all();
        let waited = self
            .0
            .changed
            .wait_timeout_while(state, within, |state| !state.written);
        drop(waited.unwrap_or_else(PoisonError::into_inner));
    }

    fn push(&self, line: &[u8], bytes_max: usize) {
        let mut state = self.lock();
        let before = state.waiting.len();
        if before + line.len() > bytes_max || state.closed {
            state.untold += 1;
            drop(state);
            self.0.dropped.fetch_add(1, Ordering::Relaxed);
            return;
        }
        state.waiting.extend_from_slice(line);
        let after = state.waiting.len();
        drop(state);
        let wakes = before == 0 || (before < GATHER_BYTES && after >= GATHER_BYTES);
        if wakes {
            self.0.changed.notify_all();
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl MakeWriter<'_> for Queue {
    type Writer = Line;

    fn make_writer(&self) -> Line {
        Line {
            queue: self.clone(),
            bytes_max: WAITING_BYTES_MAX,
        }
    }

    fn make_writer_for(&self, meta: &Metadata<'_>) -> Line {
        let mut line = self.make_writer();
        if meta.target() == AUDIT {
            line.bytes_max += AUDIT_BYTES_RESERVED;
        }
        line
    }
}

impl Write for Line {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        self.queue.push(line, self.bytes_max);
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::json::JsonLine;
    use super::*;
    use std::io::Read;
    use std::thread;

    fn json() -> LogFormat {
        LogFormat::Json(JsonLine::default())
    }

    fn full(queue: &Queue) {
        let line = [[b'x'; 1023].as_slice(), b"\n"].concat();
        for _ in 0..2 * WAITING_BYTES_MAX / line.len() {
            queue.push(&line, WAITING_BYTES_MAX);
        }
    }

    #[test]
    fn a_full_queue_drops_counts_and_tells() {
        let queue = Queue::default();
        full(&queue);
        let dropped = queue.dropped().load(Ordering::Relaxed);
        assert_eq!(dropped, 1024);
        queue.push(b"an act\n", WAITING_BYTES_MAX + AUDIT_BYTES_RESERVED);
        assert_eq!(queue.dropped().load(Ordering::Relaxed), dropped);

        let (mut reader, writer) = io::pipe().unwrap();
        let theirs = queue.clone();
        let thread = thread::spawn(move || theirs.write_to(&json(), writer));
        queue.close(Duration::ZERO);
        let mut text = String::new();
        reader.read_to_string(&mut text).unwrap();
        thread.join().unwrap();
        let last: Vec<_> = text.lines().skip(1024).collect();
        assert_eq!(last.len(), 2, "{last:?}");
        assert_eq!(last[0], "an act");
        assert!(last[1].contains("1024 log lines were dropped"), "{last:?}");
    }

    #[test]
    fn the_end_does_not_wait_for_ever() {
        let (_reader, writer) = io::pipe().unwrap();
        let queue = Queue::default();
        full(&queue);
        let theirs = queue.clone();
        // It stays in its write: nobody reads.
        let _thread = thread::spawn(move || theirs.write_to(&json(), writer));
        queue.close(Duration::from_millis(50));
        assert!(!queue.lock().written);
    }

    #[test]
    fn lines_that_cannot_be_written_count_as_dropped() {
        let (reader, writer) = io::pipe().unwrap();
        drop(reader);
        let queue = Queue::default();
        queue.push(b"one\n", WAITING_BYTES_MAX);
        queue.push(b"two\n", WAITING_BYTES_MAX);
        let theirs = queue.clone();
        let thread = thread::spawn(move || theirs.write_to(&json(), writer));
        queue.close(Duration::from_secs(5));
        thread.join().unwrap();
        assert_eq!(queue.dropped().load(Ordering::Relaxed), 2);
    }
}
