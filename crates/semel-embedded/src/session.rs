//! A directory while it is open: the engine and the two threads that belong to it.

use crate::call::{Call, call};
use crate::engine::Engine;
use crate::group::{Decided, Group, Running};
use crate::open::{self, Opened};
use crate::store::EmbeddedSettings;
use crate::syncer::Syncer;
use crate::writer::Writer;
use semel::Error;
use std::path::Path;
use std::sync::Arc;
use std::thread::JoinHandle;
use tokio::sync::mpsc;

/// How many calls may wait for the writer before further callers wait for room.
const QUEUE_ITEMS_MAX: usize = 4_096;

/// An open directory. Dropping it ends its threads, after everything that was asked has been answered.
#[derive(Debug)]
pub(crate) struct Session {
    pub(crate) engine: Arc<Engine>,
    /// `None` only while the session is dropped.
    calls: Option<mpsc::Sender<Box<dyn Call>>>,
    threads: Vec<JoinHandle<()>>,
}

// === impl Session ===

impl Session {
    /// Verifies and opens the directory, and starts the threads.
    pub(crate) fn open(path: &Path, settings: &EmbeddedSettings) -> Result<Self, Error> {
        let Opened {
            engine,
            journal,
            frontier,
            group,
            letters,
        } = open::open(path, settings.clone())?;
        let engine = Arc::new(engine);
        let (calls, queue) = mpsc::channel(QUEUE_ITEMS_MAX);
        let (to_syncer, waiting) = std::sync::mpsc::channel();
        let writer = Writer {
            group,
            letters,
            running: Running::default(),
            syncer: to_syncer,
        };
        let syncer = Syncer { journal, frontier };
        let for_writer = Arc::clone(&engine);
        let for_syncer = Arc::clone(&engine);
        let threads = vec![
            spawn("semel-writer", move || writer.run(&for_writer, queue))?,
            spawn("semel-syncer", move || syncer.run(&for_syncer, &waiting))?,
        ];
        Ok(Self {
            engine,
            calls: Some(calls),
            threads,
        })
    }

    /// A session whose writer is the test.
    #[cfg(test)]
    pub(crate) fn without_writer(engine: Engine) -> (Self, mpsc::Receiver<Box<dyn Call>>) {
        let (calls, queue) = mpsc::channel(QUEUE_ITEMS_MAX);
        let session = Self {
            engine: Arc::new(engine),
            calls: Some(calls),
            threads: Vec::new(),
        };
        (session, queue)
    }

    /// Lets the writer decide, and waits for the answer.
    pub(crate) async fn ask<A: Send + 'static>(
        &self,
        decide: impl FnOnce(&mut Group<'_>) -> Result<Decided<A>, Error> + Send + 'static,
    ) -> Result<A, Error> {
        let (call, answered) = call(decide);
        let calls = self.calls.as_ref().ok_or_else(closed)?;
        calls.send(call).await.map_err(|_| closed())?;
        answered.await.map_err(|_| closed())?
    }
}

impl Drop for Session {
    /// Lets writer and syncer finish, so that the directory is free once this returns.
    fn drop(&mut self) {
        self.calls = None;
        for thread in self.threads.drain(..) {
            if thread.join().is_err() {
                tracing::error!("a thread of the embedded store panicked");
            }
        }
    }
}

fn spawn(name: &str, run: impl FnOnce() + Send + 'static) -> Result<JoinHandle<()>, Error> {
    std::thread::Builder::new()
        .name(name.to_owned())
        .spawn(run)
        .map_err(|error| {
            Error::unavailable(format!(
                "cannot start the thread {name}: {error}; nothing was changed, try again once \
                 the machine has threads to spare"
            ))
        })
}

fn closed() -> Error {
    Error::unavailable(
        "the store was closed while a call was under way; open it again, repeating the call is safe",
    )
}
