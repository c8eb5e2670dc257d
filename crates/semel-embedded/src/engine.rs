//! What the callers' threads, the writer and the syncer share: the database, the clock, and how far
//! the journal is on disk.

use crate::clock::StoreClock;
use crate::codec::{self, Decode, Row};
use crate::failure;
use crate::guard::Guard;
use fjall::{Database, Keyspace, Slice};
use semel::Error;
use semel::clock::Time;
use std::fmt;
use std::path::PathBuf;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// An open directory. The fields are dropped in this order: the guard last.
pub(crate) struct Engine {
    pub(crate) keyspace: Keyspace,
    pub(crate) database: Database,
    pub(crate) clock: StoreClock,
    /// How long an expired record stays, so that fences cannot fall.
    pub(crate) grace: Duration,
    pub(crate) progress: Progress,
    /// The time, in µs, up to which a sweep has taken up everything that was due: what lies before it are the marks
    /// that removed rows leave in an ordered tree, and reading over them again and again is slow.
    swept_to: AtomicU64,
    /// The engine's own directory.
    pub(crate) data: PathBuf,
    /// What made the store give up, if anything did.
    failure: OnceLock<Error>,
    /// The first damage that was met: looking for the file is slow and done once.
    damage: OnceLock<Error>,
    #[expect(dead_code, reason = "held for as long as the directory is open")]
    guard: Guard,
}

/// Which groups were written, and which of them are on disk.
#[derive(Debug)]
pub(crate) struct Progress {
    written: AtomicU64,
    synced: AtomicU64,
}

// === impl Engine ===

impl Engine {
    pub(crate) fn new(
        database: Database,
        keyspace: Keyspace,
        data: PathBuf,
        clock: StoreClock,
        grace: Duration,
        last_group: u64,
        guard: Guard,
    ) -> Self {
        Self {
            keyspace,
            database,
            clock,
            grace,
            progress: Progress::from(last_group),
            swept_to: AtomicU64::new(0),
            data,
            failure: OnceLock::new(),
            damage: OnceLock::new(),
            guard,
        }
    }

    pub(crate) fn now(&self) -> Time {
        self.clock.now()
    }

    /// Up to when everything that was due has been taken up. Whatever is noted later is due later.
    pub(crate) fn swept_to(&self) -> Time {
        Time(self.swept_to.load(Ordering::Acquire))
    }

    pub(crate) fn sweep_reached(&self, time: Time) {
        self.swept_to.fetch_max(time.0, Ordering::AcqRel);
    }

    /// The value under a key, as it is.
    pub(crate) fn get(&self, key: &[u8]) -> Result<Option<Slice>, Error> {
        self.keyspace
            .get(key)
            .map_err(|error| self.engine_error("read", error))
    }

    /// The row under a key, verified.
    pub(crate) fn row<T: Decode>(&self, key: &[u8]) -> Result<Option<Row<T>>, Error> {
        let bytes = self.get(key)?;
        bytes.map(|bytes| self.unseal(key, &bytes)).transpose()
    }

    /// Verifies and reads a value.
    pub(crate) fn unseal<T: Decode>(&self, key: &[u8], bytes: &[u8]) -> Result<Row<T>, Error> {
        codec::unseal(key, bytes).map_err(|damage| {
            let row = codec::describe(key);
            let keyspace = self.keyspace.name().to_string();
            let place = format!("{row} in keyspace {keyspace} of {}", self.data.display());
            failure::corrupt(place, damage)
        })
    }

    pub(crate) fn engine_error(&self, doing: &str, error: fjall::Error) -> Error {
        let is_passing = failure::is_passing(&error);
        let meaning = || failure::from_engine(doing, &self.data, error);
        if is_passing {
            return meaning();
        }
        self.damage.get_or_init(meaning).clone()
    }

    /// Gives up for good: after a failed write or sync nobody knows what the disk holds, and only
    /// opening the directory again can tell.
    pub(crate) fn give_up(&self, error: &Error) {
        self.failure.get_or_init(|| error.clone());
    }

    /// Why the store gave up, if it did.
    pub(crate) fn gave_up(&self) -> Option<&Error> {
        self.failure.get()
    }
}

impl fmt::Debug for Engine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Engine")
            .field("data", &self.data)
            .field("progress", &self.progress)
            .field("failure", &self.failure)
            .finish_non_exhaustive()
    }
}

// === impl Progress ===

impl Progress {
    const fn from(group: u64) -> Self {
        Self {
            written: AtomicU64::new(group),
            synced: AtomicU64::new(group),
        }
    }

    /// The last group that the operating system has.
    pub(crate) fn written(&self) -> u64 {
        self.written.load(Ordering::Acquire)
    }

    /// The last group that is on disk.
    pub(crate) fn synced(&self) -> u64 {
        self.synced.load(Ordering::Acquire)
    }

    pub(crate) fn wrote(&self, group: u64) {
        self.written.store(group, Ordering::Release);
    }

    pub(crate) fn sync_reached(&self, group: u64) {
        self.synced.fetch_max(group, Ordering::AcqRel);
    }
}
