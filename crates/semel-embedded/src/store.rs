//! The store: a directory that is open, and the two threads that belong to it.

mod calls;

use crate::engine::Engine;
use crate::group::Running;
use crate::open::{self, Opened};
use crate::request::{Pending, Reply, Request, StepAct};
use crate::syncer::Syncer;
use crate::writer::Writer;
use bytes::Bytes;
use semel::clock::{Clock, SystemClock};
use semel::record::{Acted, Held, Lease, Operation};
use semel::store::validate_step_name;
use semel::{Error, Key};
use std::path::Path;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;
use tokio::sync::mpsc;

/// How many calls may wait for the writer before further callers wait for room.
const QUEUE_ITEMS_MAX: usize = 4_096;

/// How many records go in one request of a sweep: the writer is busy with them for less than a
/// millisecond.
const SWEEP_CHUNK_ITEMS_MAX: usize = 64;

/// A store in a directory of this machine, for one process.
///
/// Two threads belong to it: one that decides and writes, one that syncs. Dropping the store ends
/// both, after everything that was asked has been answered.
///
/// ```
/// use semel::{Key, Store};
/// use semel_embedded::{EmbeddedSettings, EmbeddedStore};
///
/// # let home = tempfile::tempdir().unwrap();
/// # let directory = home.path().join("semel-data");
/// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
/// let store = EmbeddedStore::open(&directory, EmbeddedSettings::default()).unwrap();
/// assert_eq!(store.look(&Key::from_bytes([1; 32])).await.unwrap(), None);
/// # });
/// ```
#[derive(Debug)]
pub struct EmbeddedStore {
    engine: Arc<Engine>,
    /// `None` only while the store is dropped.
    requests: Option<mpsc::Sender<Pending>>,
    threads: Vec<JoinHandle<()>>,
}

/// How an embedded store is opened. How it syncs is not a setting: completions, failures,
/// steps, letters and operators' acts are on disk before they are answered.
///
/// ```
/// use semel_embedded::EmbeddedSettings;
/// use std::time::Duration;
///
/// assert_eq!(EmbeddedSettings::default().grace, Duration::from_secs(60));
/// ```
#[derive(Clone, Debug)]
pub struct EmbeddedSettings {
    /// Where the store's time comes from; by default the clocks of this machine.
    pub clock: Arc<dyn Clock>,
    /// How long an expired record stays before a sweep removes it; by default 60 s. Longer than a
    /// claim can stall, or a fence could fall.
    pub grace: Duration,
}

// === impl EmbeddedStore ===

impl EmbeddedStore {
    /// Opens the store in a directory; makes directory and store if there are none.
    ///
    /// Every file is verified first; what a crash left unfinished is cut. It blocks while it reads
    /// the journals, at most some hundred megabytes.
    ///
    /// # Errors
    /// `Unavailable` when another process has the directory open or the disk fails, `Invalid` when
    /// everybody may write to the directory or it holds something else, `Corrupt` when a file is
    /// not as it was written.
    ///
    /// ```
    /// use semel_embedded::{EmbeddedSettings, EmbeddedStore};
    ///
    /// # let home = tempfile::tempdir().unwrap();
    /// # let directory = home.path().join("semel-data");
    /// let store = EmbeddedStore::open(&directory, EmbeddedSettings::default()).unwrap();
    /// let error = EmbeddedStore::open(&directory, EmbeddedSettings::default()).unwrap_err();
    /// assert!(error.to_string().contains("is open in another process"));
    /// # drop(store);
    /// ```
    pub fn open(path: impl AsRef<Path>, settings: EmbeddedSettings) -> Result<Self, Error> {
        let Opened {
            engine,
            journal,
            frontier,
            group,
            letters,
        } = open::open(path.as_ref(), settings)?;
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

    #[cfg(test)]
    pub(crate) fn engine(&self) -> &Engine {
        &self.engine
    }

    /// Asks the writer and waits for its reply.
    pub(crate) async fn ask(&self, request: Request) -> Result<Reply, Error> {
        let (pending, reply) = Pending::new(request);
        let requests = self.requests.as_ref().ok_or_else(closed)?;
        requests.send(pending).await.map_err(|_| closed())?;
        reply.await.map_err(|_| closed())?
    }

    async fn act_on(&self, key: Key, operation: Operation) -> Result<Acted, Error> {
        self.ask(Request::Record(key, operation)).await?.acted()
    }

    async fn hold(&self, key: Key, operation: Operation) -> Result<Held, Error> {
        self.ask(Request::Record(key, operation)).await?.held()
    }

    async fn step(&self, lease: &Lease, name: &str, act: StepAct) -> Result<Reply, Error> {
        validate_step_name(name)?;
        let request = Request::Step(lease.clone(), name.to_owned(), act);
        self.ask(request).await
    }

    /// Reads many rows away from the threads that serve calls.
    pub(crate) async fn read<T: Send + 'static>(
        &self,
        read: impl FnOnce(&Engine) -> Result<T, Error> + Send + 'static,
    ) -> Result<T, Error> {
        let engine = Arc::clone(&self.engine);
        tokio::task::spawn_blocking(move || read(&engine))
            .await
            .map_err(|error| Error::Bug(format!("a reading thread failed: {error}")))?
    }
}

impl Drop for EmbeddedStore {
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

// === impl EmbeddedSettings ===

impl Default for EmbeddedSettings {
    fn default() -> Self {
        Self {
            clock: Arc::new(SystemClock::new()),
            grace: Duration::from_secs(60),
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

fn validate_bytes(what: &str, bytes: &Bytes, max: usize) -> Result<(), Error> {
    if bytes.len() > max {
        return Err(Error::Invalid(format!(
            "the {what} has {} bytes, the limit is {max}; nothing was written, keep less of it \
             before you retry",
            bytes.len()
        )));
    }
    Ok(())
}

fn closed() -> Error {
    Error::Unavailable(
        "the store was closed while a call was under way; open it again, repeating the call is safe"
            .to_owned(),
    )
}

#[cfg(test)]
mod tests;
