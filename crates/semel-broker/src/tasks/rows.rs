//! How queues, tasks and used-up names lie in storage.
//!
//! A used-up name has two rows: one found by the name, and one in the order of their ends, by which they are swept.

use crate::clock::Time;
use crate::proto::tasks::{Queue, StoredTask};
use crate::storage::{Batch, Storage, StorageError, Table};
use bytes::Bytes;
use prost::Message;
use std::time::Duration;

/// How many rows are taken away at a time.
pub(super) const PAGE_ROWS: usize = 1000;

/// How long a task's name is refused after its end.
pub(super) const TASK_TOMBSTONE_LIFE: Duration = Duration::from_secs(3600);

/// How long a queue's name is refused after its end.
pub(super) const QUEUE_TOMBSTONE_LIFE: Duration = Duration::from_secs(3 * 24 * 3600);

const BY_NAME: u8 = b'n';
const BY_END: u8 = b'e';

/// Whose name is used up: a queue's full name, or a task's.
pub(super) fn queue_key(queue: &str) -> Vec<u8> {
    queue.as_bytes().to_vec()
}

pub(super) fn task_key(queue: &str, id: &str) -> Vec<u8> {
    let mut key = task_prefix(queue);
    key.extend_from_slice(id.as_bytes());
    key
}

/// What the keys of all tasks of a queue begin with.
pub(super) fn task_prefix(queue: &str) -> Vec<u8> {
    let mut key = queue_key(queue);
    key.push(0);
    key
}

/// The queue's name and the task's id in a key.
pub(super) fn split_task_key(key: &[u8]) -> Option<(&str, &str)> {
    let text = std::str::from_utf8(key).ok()?;
    // The last one: what a project or a location is called is not for us to say.
    text.rsplit_once('\0')
}

/// Puts a queue; none of its tasks has the number `reserved` or a higher one.
pub(super) fn put_queue(batch: &mut Batch, queue: &Queue, reserved: u64) {
    let mut row = reserved.to_be_bytes().to_vec();
    row.extend_from_slice(&queue.encode_to_vec());
    batch.put(Table::Queues, &queue_key(&queue.name), row);
}

pub(super) fn put_task(batch: &mut Batch, queue: &str, id: &str, stored: &StoredTask) {
    batch.put(Table::Tasks, &task_key(queue, id), stored.encode_to_vec());
}

/// Takes a task away at its end; a name that was chosen is used up for a while.
pub(super) fn end_task(batch: &mut Batch, queue: &str, id: &str, named: bool, now: Time) {
    let key = task_key(queue, id);
    batch.delete(Table::Tasks, &key);
    if named {
        put_tombstone(batch, &key, now.plus(TASK_TOMBSTONE_LIFE));
    }
}

/// Refuses a name until `end`.
pub(super) fn put_tombstone(batch: &mut Batch, name: &[u8], end: Time) {
    let end = end.0.to_be_bytes();
    batch.put(Table::Tombstones, &prefixed(BY_NAME, &[name]), end.to_vec());
    batch.put(
        Table::Tombstones,
        &prefixed(BY_END, &[&end, name]),
        Vec::new(),
    );
}

/// Whether a name is still refused.
pub(super) fn has_tombstone(
    storage: &Storage,
    name: &[u8],
    now: Time,
) -> Result<bool, StorageError> {
    Ok(end_of(storage, name)?.is_some_and(|end| end > now))
}

/// Takes away names that may be used again, the oldest first, at most a page of them.
pub(super) fn sweep(storage: &Storage, batch: &mut Batch, now: Time) -> Result<(), StorageError> {
    for row in storage.scan(Table::Tombstones, &[BY_END], None, PAGE_ROWS)? {
        let Some((end, name)) = row.key.get(1..).and_then(<[u8]>::split_first_chunk) else {
            continue;
        };
        let end = Time(i64::from_be_bytes(*end));
        if end > now {
            break;
        }
        batch.delete(Table::Tombstones, &row.key);
        // The name may have been used, and used up, again since.
        if end_of(storage, name)? == Some(end) {
            batch.delete(Table::Tombstones, &prefixed(BY_NAME, &[name]));
        }
    }
    Ok(())
}

pub(super) fn task(
    storage: &Storage,
    queue: &str,
    id: &str,
) -> Result<Option<StoredTask>, StorageError> {
    let row = storage.get(Table::Tasks, &task_key(queue, id))?;
    row.map(stored_task).transpose()
}

/// The body stays where it is: a part of the row.
pub(super) fn stored_task(row: Bytes) -> Result<StoredTask, StorageError> {
    StoredTask::decode(row).map_err(|error| unreadable("task", &error))
}

/// A queue, and the number that its next task has at least.
pub(super) fn queue(row: &[u8]) -> Result<(Queue, u64), StorageError> {
    let too_short = || unreadable("queue", &"it is too short");
    let (reserved, queue) = row.split_first_chunk().ok_or_else(too_short)?;
    let queue = Queue::decode(queue).map_err(|error| unreadable("queue", &error))?;
    Ok((queue, u64::from_be_bytes(*reserved)))
}

/// Takes away all rows of a table whose keys begin with `prefix`, a page at a time.
pub(super) async fn clear(
    storage: &Storage,
    table: Table,
    prefix: &[u8],
) -> Result<(), StorageError> {
    let mut batch = Batch::default();
    for row in storage.rows(table, prefix) {
        batch.delete(table, &row?.key);
        if batch.len() >= PAGE_ROWS {
            storage.commit(std::mem::take(&mut batch)).await?;
        }
    }
    storage.commit(batch).await
}

fn end_of(storage: &Storage, name: &[u8]) -> Result<Option<Time>, StorageError> {
    let row = storage.get(Table::Tombstones, &prefixed(BY_NAME, &[name]))?;
    let end = row.and_then(|row| <[u8; 8]>::try_from(&*row).ok());
    Ok(end.map(|end| Time(i64::from_be_bytes(end))))
}

fn prefixed(kind: u8, parts: &[&[u8]]) -> Vec<u8> {
    let mut key = vec![kind];
    for part in parts {
        key.extend_from_slice(part);
    }
    key
}

fn unreadable(what: &str, error: &dyn std::fmt::Display) -> StorageError {
    StorageError(format!(
        "a {what} in storage cannot be read ({error}): the directory was written by something else; use another one"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_name_is_refused_until_its_end_and_then_swept() {
        let storage = Storage::in_memory();
        let mut batch = Batch::default();
        put_tombstone(&mut batch, b"early", Time(10));
        put_tombstone(&mut batch, b"late", Time(20));
        storage.commit(batch).await.unwrap();
        assert!(has_tombstone(&storage, b"early", Time(9)).unwrap());
        assert!(!has_tombstone(&storage, b"early", Time(10)).unwrap());
        let mut batch = Batch::default();
        sweep(&storage, &mut batch, Time(15)).unwrap();
        storage.commit(batch).await.unwrap();
        let left = storage.scan(Table::Tombstones, &[], None, 10).unwrap();
        assert_eq!(left.len(), 2);
        assert!(has_tombstone(&storage, b"late", Time(15)).unwrap());
    }

    #[test]
    fn a_task_is_found_whatever_its_project_is_called() {
        let queue = "projects/p/locations/l\0/queues/q";
        let key = task_key(queue, "t");
        assert_eq!(split_task_key(&key), Some((queue, "t")));
    }

    #[tokio::test]
    async fn sweeping_an_old_end_keeps_a_newer_one() {
        let storage = Storage::in_memory();
        for end in [10, 20] {
            let mut batch = Batch::default();
            put_tombstone(&mut batch, b"name", Time(end));
            storage.commit(batch).await.unwrap();
        }
        let mut batch = Batch::default();
        sweep(&storage, &mut batch, Time(15)).unwrap();
        storage.commit(batch).await.unwrap();
        assert!(has_tombstone(&storage, b"name", Time(15)).unwrap());
    }
}
