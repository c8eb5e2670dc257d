//! The store: what its callers hold.

mod calls;

use crate::engine::Engine;
use crate::group::{Decided, Group};
use crate::reopening::ReopeningSession;
use crate::session::Session;
use semel::Error;
use semel::clock::{Clock, SystemClock};
use std::future::Future;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Mutex;
use tokio::time::timeout;

/// How many records go in one request of a sweep, unless one group noted more of them: the writer is busy with them for
/// about a millisecond, and then takes what else is queued.
const SWEEP_CHUNK_ITEMS_MAX: usize = 64;

/// A store in a directory of this machine, for one process.
///
/// Two threads belong to it: one that decides and writes, one that syncs. Dropping the store ends
/// both, after everything that was asked has been answered.
///
/// After a failed write or sync, as on a full disk, it gives up: every call is answered with an error. The calls that
/// follow open the directory again, once a second at the most, until that succeeds.
///
/// It is used inside a tokio runtime with its time enabled.
///
/// ```
/// use semel::Key;
/// use semel::store::StoreExt;
/// use semel_embedded::{EmbeddedSettings, EmbeddedStore};
///
/// # let home = tempfile::tempdir().unwrap();
/// # let directory = home.path().join("semel-data");
/// # tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(async {
/// let store = EmbeddedStore::open(&directory, EmbeddedSettings::default()).unwrap();
/// assert_eq!(store.look(&Key::from_bytes([1; 32])).await.unwrap(), None);
/// # });
/// ```
#[derive(Debug)]
pub struct EmbeddedStore {
    reopening: Arc<ReopeningSession>,
    answer_timeout: Duration,
    /// Held by whoever sweeps: a second sweep would only find the same.
    sweeping: Mutex<()>,
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
    /// How long an answer may take; by default 10 s. A disk that takes longer is as good as away: whether an unanswered
    /// write was made is unknown.
    pub answer_timeout: Duration,
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
        let answer_timeout = settings.answer_timeout;
        let reopening = ReopeningSession::open(path.as_ref().to_owned(), settings)?;
        Ok(Self {
            reopening: Arc::new(reopening),
            answer_timeout,
            sweeping: Mutex::new(()),
        })
    }

    /// The open directory. One that gave up is opened again first.
    pub(crate) async fn session(&self) -> Result<Arc<Session>, Error> {
        match self.reopening.session() {
            Ok(session) => Ok(session),
            Err((why, false)) => Err(why),
            Err((_, true)) => {
                let reopening = Arc::clone(&self.reopening);
                blocking(move || reopening.reopen()).await
            }
        }
    }

    /// Lets the writer decide, and waits for the answer as long as one may take.
    pub(crate) async fn ask<A: Send + 'static>(
        &self,
        decide: impl FnOnce(&mut Group<'_>) -> Result<Decided<A>, Error> + Send + 'static,
    ) -> Result<A, Error> {
        self.within(async { self.session().await?.ask(decide).await })
            .await
    }

    async fn within<T>(&self, call: impl Future<Output = Result<T, Error>>) -> Result<T, Error> {
        let answered = timeout(self.answer_timeout, call).await;
        answered.unwrap_or_else(|_| Err(self.silent()))
    }

    fn silent(&self) -> Error {
        Error::unavailable(format!(
            "the disk did not answer within {:?}; whether the write was made is unknown, repeating the call is safe",
            self.answer_timeout
        ))
    }

    /// Reads away from the threads that serve calls: a disk may be slow, or stuck.
    pub(crate) async fn read<T: Send + 'static>(
        &self,
        read: impl FnOnce(&Engine) -> Result<T, Error> + Send + 'static,
    ) -> Result<T, Error> {
        let reading = async {
            let session = self.session().await?;
            blocking(move || read(&session.engine)).await
        };
        self.within(reading).await
    }
}

// === impl EmbeddedSettings ===

impl Default for EmbeddedSettings {
    fn default() -> Self {
        Self {
            clock: Arc::new(SystemClock::new()),
            grace: Duration::from_secs(60),
            answer_timeout: Duration::from_secs(10),
        }
    }
}

async fn blocking<T: Send + 'static>(
    call: impl FnOnce() -> Result<T, Error> + Send + 'static,
) -> Result<T, Error> {
    tokio::task::spawn_blocking(call)
        .await
        .map_err(|error| Error::bug(format!("a reading thread failed: {error}")))?
}

#[cfg(test)]
mod tests;
