//! Rows in a directory: one thread writes whatever is queued as one batch, answers who needs no more, syncs, and then
//! answers the others.

use super::{Batch, Durability, Row, StorageError, scan_start};
use bytes::Bytes;
use fjall::config::CompressionPolicy;
use fjall::{CompressionType, Database, Keyspace, KeyspaceCreateOptions, PersistMode};
use std::fmt;
use std::fs::{File, TryLockError};
use std::ops::Bound;
use std::path::{Path, PathBuf};
use std::sync::mpsc;
use tokio::sync::oneshot;

const KEYSPACE: &str = "broker";
const DATA: &str = "data";
const GUARD: &str = "guard";

/// Blocks kept in memory.
const CACHE_BYTES: u64 = 16 * 1024 * 1024;

/// How much is collected in memory before a table is written.
const MEMTABLE_BYTES: u64 = 8 * 1024 * 1024;

/// All journals together; it bounds how much is read again after a crash.
const JOURNALS_BYTES_MAX: u64 = 256 * 1024 * 1024;

/// Threads that write and merge tables.
const WORKERS: usize = 2;

/// Changes that share one sync; bounds the memory of a batch.
const GROUP_CHANGES_MAX: usize = 10_000;

/// An open directory.
pub(super) struct Directory {
    path: PathBuf,
    keyspace: Keyspace,
    queue: mpsc::Sender<PendingWrite>,
    #[expect(dead_code, reason = "held for as long as the directory is open")]
    guard: File,
}

struct PendingWrite {
    batch: Batch,
    durability: Durability,
    done: oneshot::Sender<Result<(), StorageError>>,
}

struct DirectoryWriter {
    path: PathBuf,
    database: Database,
    keyspace: Keyspace,
    /// Why it gave up: after a failed sync nobody knows what the disk holds.
    failure: Option<StorageError>,
}

// === impl Directory ===

impl Directory {
    pub(super) fn open(path: &Path) -> Result<Self, StorageError> {
        std::fs::create_dir_all(path).map_err(|error| cannot("make", path, &error))?;
        let guard = lock(path)?;
        let (database, keyspace) =
            open_engine(&path.join(DATA)).map_err(|error| cannot("open", path, &error))?;
        let (queue, waiting) = mpsc::channel();
        let writer = DirectoryWriter {
            path: path.to_owned(),
            database,
            keyspace: keyspace.clone(),
            failure: None,
        };
        std::thread::Builder::new()
            .name("storage".into())
            .spawn(move || writer.run(&waiting))
            .map_err(|error| cannot("start the writer of", path, &error))?;
        Ok(Self {
            path: path.to_owned(),
            keyspace,
            queue,
            guard,
        })
    }

    pub(super) async fn change(
        &self,
        batch: Batch,
        durability: Durability,
    ) -> Result<(), StorageError> {
        let (done, answer) = oneshot::channel();
        let gone = || cannot("write to", &self.path, &"its writer ended");
        self.queue
            .send(PendingWrite {
                batch,
                durability,
                done,
            })
            .map_err(|_| gone())?;
        answer.await.map_err(|_| gone())?
    }

    pub(super) fn get(&self, key: &[u8]) -> Result<Option<Bytes>, StorageError> {
        match self.keyspace.get(key) {
            Ok(value) => Ok(value.map(|value| Bytes::copy_from_slice(&value))),
            Err(error) => Err(cannot("read", &self.path, &error)),
        }
    }

    pub(super) fn scan(
        &self,
        prefix: &[u8],
        after: Option<Vec<u8>>,
        limit: usize,
    ) -> Result<Vec<Row>, StorageError> {
        let mut rows = Vec::new();
        let range = (scan_start(prefix, after), Bound::<Vec<u8>>::Unbounded);
        for item in self.keyspace.range(range).take(limit) {
            let (key, value) = item
                .into_inner()
                .map_err(|error| cannot("read", &self.path, &error))?;
            if !key.starts_with(prefix) {
                break;
            }
            rows.push(Row {
                key: Bytes::copy_from_slice(key.get(1..).unwrap_or_default()),
                value: Bytes::copy_from_slice(&value),
            });
        }
        Ok(rows)
    }
}

impl fmt::Debug for Directory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Directory").field(&self.path).finish()
    }
}

// === impl DirectoryWriter ===

impl DirectoryWriter {
    fn run(mut self, waiting: &mpsc::Receiver<PendingWrite>) {
        while let Ok(first) = waiting.recv() {
            // Lets callers who are ready to run get into the group.
            std::thread::yield_now();
            let mut changes = first.batch.len();
            let mut group = vec![first];
            while changes < GROUP_CHANGES_MAX {
                let Ok(next) = waiting.try_recv() else { break };
                changes += next.batch.len();
                group.push(next);
            }
            self.answer(group);
        }
    }

    /// Who needs a sync is answered after it, everybody else before.
    fn answer(&mut self, group: Vec<PendingWrite>) {
        let mut batches = Vec::with_capacity(group.len());
        let (mut early, mut late) = (Vec::new(), Vec::new());
        for waiting in group {
            batches.push(waiting.batch);
            match waiting.durability {
                Durability::Written => early.push(waiting.done),
                Durability::Synced => late.push(waiting.done),
            }
        }
        let written = self.unless_failed(|writer| writer.write(batches));
        answer_all(early, &written);
        if !late.is_empty() {
            answer_all(late, &self.unless_failed(Self::sync));
        }
    }

    /// After a failure nobody knows what the disk holds, so nothing is tried any more.
    fn unless_failed(
        &mut self,
        act: impl FnOnce(&Self) -> Result<(), StorageError>,
    ) -> Result<(), StorageError> {
        if let Some(error) = &self.failure {
            return Err(error.clone());
        }
        let result = act(self);
        self.failure = result.clone().err();
        result
    }

    fn write(&self, batches: Vec<Batch>) -> Result<(), StorageError> {
        let mut batch = self.database.batch().durability(Some(PersistMode::Buffer));
        for change in batches.into_iter().flat_map(|batch| batch.changes) {
            match change.value {
                Some(value) => batch.insert(&self.keyspace, change.key, &*value),
                None => batch.remove(&self.keyspace, change.key),
            }
        }
        batch
            .commit()
            .map_err(|error| cannot("write to", &self.path, &error))
    }

    fn sync(&self) -> Result<(), StorageError> {
        self.database
            .persist(PersistMode::SyncData)
            .map_err(|error| cannot("sync", &self.path, &error))
    }
}

fn answer_all(
    callers: Vec<oneshot::Sender<Result<(), StorageError>>>,
    result: &Result<(), StorageError>,
) {
    for caller in callers {
        // Who went away does not wait for the answer.
        drop(caller.send(result.clone()));
    }
}

fn open_engine(data: &Path) -> Result<(Database, Keyspace), fjall::Error> {
    let database = Database::builder(data)
        .cache_size(CACHE_BYTES)
        .max_journaling_size(JOURNALS_BYTES_MAX)
        .worker_threads(WORKERS)
        .open()?;
    let options = || {
        KeyspaceCreateOptions::default()
            .max_memtable_size(MEMTABLE_BYTES)
            .data_block_compression_policy(CompressionPolicy::all(CompressionType::None))
    };
    let keyspace = database.keyspace(KEYSPACE, options)?;
    Ok((database, keyspace))
}

/// Takes hold of the directory, so that two brokers never share it.
fn lock(path: &Path) -> Result<File, StorageError> {
    let guard = File::create(path.join(GUARD)).map_err(|error| cannot("hold", path, &error))?;
    match guard.try_lock() {
        Ok(()) => Ok(guard),
        Err(TryLockError::WouldBlock) => Err(StorageError(format!(
            "the directory {} is held by another broker: stop that one, or name another directory",
            path.display()
        ))),
        Err(TryLockError::Error(error)) => Err(cannot("hold", path, &error)),
    }
}

fn cannot(verb: &str, path: &Path, why: &dyn fmt::Display) -> StorageError {
    StorageError(format!(
        "cannot {verb} the directory {}: {why}",
        path.display()
    ))
}
