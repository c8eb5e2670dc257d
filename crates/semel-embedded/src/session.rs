//! A directory while it is open: the engine and the two threads that belong to it.

use crate::engine::Engine;
use crate::group::Running;
use crate::open::{self, Opened};
use crate::request::{Pending, Reply, Request};
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
    requests: Option<mpsc::Sender<Pending>>,
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
        let (requests, queue) = mpsc::channel(QUEUE_ITEMS_MAX);
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
            requests: Some(requests),
            threads,
        })
    }

    /// A session whose writer is the test.
    #[cfg(test)]
    pub(crate) fn without_writer(engine: Engine) -> (Self, mpsc::Receiver<Pending>) {
        let (requests, queue) = mpsc::channel(QUEUE_ITEMS_MAX);
        let session = Self {
            engine: Arc::new(engine),
            requests: Some(requests),
            threads: Vec::new(),
        };
        (session, queue)
    }

    /// Asks the writer and waits for its reply.
    pub(crate) async fn ask(&self, request: Request) -> Result<Reply, Error> {
        let (pending, reply) = Pending::new(request);
        let requests = self.requests.as_ref().ok_or_else(closed)?;
        requests.send(pending).await.map_err(|_| closed())?;
        reply.await.map_err(|_| closed())?
    }
}

impl Drop for Session {
    /// Lets writer and syncer finish, so that the directory is free once this returns.
    fn drop(&mut self) {
        self.requests = None;
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
            Error::Unavailable(format!(
                "cannot start the thread {name}: {error}; nothing was changed, try again once \
                 the machine has threads to spare"
            ))
        })
}

fn closed() -> Error {
    Error::Unavailable(
        "the store was closed while a call was under way; open it again, repeating the call is safe"
            .to_owned(),
    )
}
