//! Where the broker keeps what it accepted: a directory, or memory.
//!
//! What was accepted is changed by [`Storage::commit`]: when it answers, the change is on disk. Everybody who comes while
//! one sync runs shares the next one. What was done about it is changed by [`Storage::write`]: a `kill -9` cannot take that
//! back, a power cut may, and then it is done again. Reads see changes that were answered.

mod directory;
mod memory;

use bytes::Bytes;
use directory::Directory;
use memory::Memory;
use std::path::Path;
use std::sync::Arc;
use tonic::Status;

/// How many rows of a table are counted.
const COUNTED_MAX: usize = 10_000;

/// Rows read at once in the beginning: each may be a message of 10 MB.
const ROWS_AT_ONCE: usize = 64;

/// Rows read at once when they turn out to be small.
const SMALL_ROWS_AT_ONCE: usize = 4096;

const SMALL_ROW_BYTES: usize = 2048;

/// What kind of row it is. The number is its place on disk: never change one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub(crate) enum Table {
    /// Single values by name.
    Meta = 1,
    /// Queues by name.
    Queues = 2,
    /// Tasks by queue and id.
    Tasks = 3,
    /// Names of tasks and queues that are not to be used again for a while.
    Tombstones = 4,
    /// Topics by name.
    Topics = 5,
    /// Subscriptions by name.
    Subscriptions = 6,
    /// Snapshots by name.
    Snapshots = 7,
    /// Messages by their backlog and place in it.
    Messages = 8,
    /// Policies of access by the names of their resources.
    Policies = 9,
    /// Schemas by name.
    Schemas = 10,
}

/// Changes that happen together or not at all.
#[derive(Debug, Default)]
pub(crate) struct Batch {
    changes: Vec<Change>,
}

#[derive(Debug)]
struct Change {
    key: Vec<u8>,
    /// Nothing: the row is taken away.
    value: Option<Bytes>,
}

/// What a change survives when it is answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Durability {
    /// The end of this process.
    Written,
    /// A power cut.
    Synced,
}

/// A row that was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Row {
    /// Without the table.
    pub(crate) key: Bytes,
    /// What was put there.
    pub(crate) value: Bytes,
}

/// Rows that are read a page at a time.
#[derive(Debug)]
pub(crate) struct Rows<'a> {
    storage: &'a Storage,
    table: Table,
    prefix: &'a [u8],
    page: std::vec::IntoIter<Row>,
    after: Option<Bytes>,
    at_once: usize,
}

/// Where everything is kept; clones are the same place.
#[derive(Clone, Debug)]
pub(crate) struct Storage(Arc<Backend>);

#[derive(Debug)]
enum Backend {
    Directory(Directory),
    Memory(Memory),
}

/// The directory cannot be used. Nothing that was answered is lost.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct StorageError(pub(crate) String);

// === impl StorageError ===

impl From<StorageError> for Status {
    fn from(error: StorageError) -> Self {
        Self::unavailable(format!("{error}. Nothing changed that was not answered"))
    }
}

// === impl Batch ===

impl Batch {
    /// Puts a row, in place of what is there.
    pub(crate) fn put(&mut self, table: Table, key: &[u8], value: impl Into<Bytes>) {
        self.changes.push(Change {
            key: full_key(table, key),
            value: Some(value.into()),
        });
    }

    /// Takes a row away, if it is there.
    pub(crate) fn delete(&mut self, table: Table, key: &[u8]) {
        self.changes.push(Change {
            key: full_key(table, key),
            value: None,
        });
    }

    /// How many changes it holds.
    #[must_use]
    pub(crate) fn len(&self) -> usize {
        self.changes.len()
    }

    /// Whether it changes nothing.
    #[must_use]
    pub(crate) fn is_empty(&self) -> bool {
        self.changes.is_empty()
    }
}

// === impl Storage ===

impl Storage {
    /// Opens a directory; makes it if there is none. One process at a time.
    ///
    /// # Errors
    /// When it cannot be made or read, or another process has it open.
    pub(crate) fn open(directory: &Path) -> Result<Self, StorageError> {
        let directory = Directory::open(directory)?;
        Ok(Self(Arc::new(Backend::Directory(directory))))
    }

    /// Keeps everything in memory, until the process ends.
    #[must_use]
    pub(crate) fn in_memory() -> Self {
        Self(Arc::new(Backend::Memory(Memory::default())))
    }

    /// Makes the changes together. They are there, and stay there, when this answers. They are made
    /// even if the caller goes away.
    ///
    /// # Errors
    /// When the disk refused; then it stays refused until the directory is opened again.
    pub(crate) async fn commit(&self, batch: Batch) -> Result<(), StorageError> {
        self.change(batch, Durability::Synced).await
    }

    /// Makes the changes together. They are there when this answers, whatever becomes of this process; the disk has
    /// them with the next [`Storage::commit`]. For what may be done once more when it is lost.
    ///
    /// # Errors
    /// When the disk refused; then it stays refused until the directory is opened again.
    pub(crate) async fn write(&self, batch: Batch) -> Result<(), StorageError> {
        self.change(batch, Durability::Written).await
    }

    async fn change(&self, batch: Batch, durability: Durability) -> Result<(), StorageError> {
        if batch.is_empty() {
            return Ok(());
        }
        match &*self.0 {
            Backend::Directory(directory) => directory.change(batch, durability).await,
            Backend::Memory(memory) => {
                memory.commit(batch);
                Ok(())
            }
        }
    }

    /// The row under a key.
    ///
    /// # Errors
    /// When the disk refused.
    pub(crate) fn get(&self, table: Table, key: &[u8]) -> Result<Option<Bytes>, StorageError> {
        let key = full_key(table, key);
        match &*self.0 {
            Backend::Directory(directory) => directory.get(&key),
            Backend::Memory(memory) => Ok(memory.get(&key)),
        }
    }

    /// Rows whose keys begin with `prefix` and come after `after` (a whole key), in the order of
    /// their keys, at most `limit`.
    ///
    /// # Errors
    /// When the disk refused.
    pub(crate) fn scan(
        &self,
        table: Table,
        prefix: &[u8],
        after: Option<&[u8]>,
        limit: usize,
    ) -> Result<Vec<Row>, StorageError> {
        let prefix = full_key(table, prefix);
        let after = after.map(|key| full_key(table, key));
        match &*self.0 {
            Backend::Directory(directory) => directory.scan(&prefix, after, limit),
            Backend::Memory(memory) => Ok(memory.scan(&prefix, after, limit)),
        }
    }

    /// All rows whose keys begin with `prefix`, in the order of their keys. They are read a page at a time: what is
    /// taken away meanwhile is not passed over again.
    pub(crate) fn rows<'a>(&'a self, table: Table, prefix: &'a [u8]) -> Rows<'a> {
        Rows {
            storage: self,
            table,
            prefix,
            page: Vec::new().into_iter(),
            after: None,
            at_once: ROWS_AT_ONCE,
        }
    }

    /// How many rows a table has; beyond a limit it is said to have so many.
    pub(crate) fn count(&self, table: Table) -> usize {
        self.scan(table, &[], None, COUNTED_MAX)
            .map_or(0, |rows| rows.len())
    }
}

// === impl Rows ===

impl Rows<'_> {
    fn read_page(&mut self) -> Result<(), StorageError> {
        let after = self.after.as_deref();
        let page = self
            .storage
            .scan(self.table, self.prefix, after, self.at_once)?;
        let bytes: usize = page.iter().map(|row| row.value.len()).sum();
        self.at_once = match bytes <= page.len() * SMALL_ROW_BYTES {
            true => (self.at_once * 2).min(SMALL_ROWS_AT_ONCE),
            false => ROWS_AT_ONCE,
        };
        self.after = page.last().map(|row| row.key.clone()).or(self.after.take());
        self.page = page.into_iter();
        Ok(())
    }
}

impl Iterator for Rows<'_> {
    type Item = Result<Row, StorageError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.page.len() == 0
            && let Err(error) = self.read_page()
        {
            return Some(Err(error));
        }
        self.page.next().map(Ok)
    }
}

fn full_key(table: Table, key: &[u8]) -> Vec<u8> {
    let mut full = Vec::with_capacity(1 + key.len());
    full.push(table as u8);
    full.extend_from_slice(key);
    full
}

/// Where a scan begins.
fn scan_start(prefix: &[u8], after: Option<Vec<u8>>) -> std::ops::Bound<Vec<u8>> {
    match after {
        Some(key) if key.as_slice() >= prefix => std::ops::Bound::Excluded(key),
        Some(_) | None => std::ops::Bound::Included(prefix.to_vec()),
    }
}

#[cfg(test)]
mod tests;
