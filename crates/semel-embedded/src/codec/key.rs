//! Under which keys rows are kept. The first byte says what a row is, so that one ordered
//! keyspace holds them all and every batch of the journal touches the same one.

use fjall::Slice;
use semel::Key;
use semel::clock::Time;
use semel::letter::LetterId;
use semel::protocol::Fence;
use std::ops::Bound;

/// The one row that every group writes.
pub(crate) const HEAD: &[u8] = b"h";

const DUE: u8 = b'e';
const INDEX: u8 = b'i';
const INDEXED: u8 = b'k';
const LETTER: u8 = b'l';
const ORDER: u8 = b'o';
const RECORD: u8 = b'r';
const STEP: u8 = b's';
const TOMBSTONE: u8 = b't';
const UNINDEX: u8 = b'u';

/// The name of the row of a history, among those of steps: no step has a NUL in its name.
const HISTORY: &str = "\0";

/// The digest of a transport id.
pub(crate) type IndexId = [u8; 32];

/// The key of a row.
pub(crate) type RowKey = Slice;

/// A stretch of rows.
pub(crate) type RowRange = (Bound<RowKey>, Bound<RowKey>);

/// Where the record of `key` is kept. Made for every call: on the stack, then copied once.
pub(crate) fn record(key: &Key) -> RowKey {
    let mut row = [RECORD; 33];
    row[1..].copy_from_slice(key.as_bytes());
    row.into()
}

/// All records after that one; without it, from the first.
pub(crate) fn records(after: Option<&Key>) -> RowRange {
    range(RECORD, after.map(record))
}

/// Where a step of an incarnation is kept.
pub(crate) fn step(key: &Key, born: Fence, name: &str) -> RowKey {
    let born = born.0.to_be_bytes();
    prefixed(STEP, [key.as_bytes().as_slice(), &born, name.as_bytes()])
}

/// How the keys of an incarnation's steps begin.
pub(crate) fn steps(key: &Key, born: Fence) -> RowKey {
    step(key, born, "")
}

/// Where the history of an incarnation is kept: among its steps, so that it goes with them, under a name that none can have.
pub(crate) fn history(key: &Key, born: Fence) -> RowKey {
    step(key, born, HISTORY)
}

/// The name of the step that a row is of; the history of an incarnation is none.
pub(crate) fn step_name(row: &RowKey) -> Option<&str> {
    let name = std::str::from_utf8(row.get(41..)?).ok()?;
    Some(name).filter(|name| *name != HISTORY)
}

/// Where a key is kept under a transport id.
pub(crate) fn index(id: &IndexId, key: &Key) -> RowKey {
    prefixed(INDEX, [id.as_slice(), key.as_bytes()])
}

/// How the keys of all that is kept under a transport id begin.
pub(crate) fn index_of(id: &IndexId) -> RowKey {
    prefixed(INDEX, [id.as_slice()])
}

/// The key that a row of the index finds.
pub(crate) fn index_key(row: &RowKey) -> Option<Key> {
    let key = row.get(33..)?.try_into().ok()?;
    Some(Key::from_bytes(key))
}

/// Where it is kept that a key is found under a transport id.
pub(crate) fn indexed(key: &Key, id: &IndexId) -> RowKey {
    prefixed(INDEXED, [key.as_bytes().as_slice(), id])
}

/// How the keys of all ids of a key begin.
pub(crate) fn indexed_of(key: &Key) -> RowKey {
    prefixed(INDEXED, [key.as_bytes().as_slice()])
}

/// The transport id that such a row speaks of.
pub(crate) fn indexed_id(row: &RowKey) -> Option<IndexId> {
    row.get(33..)?.try_into().ok()
}

/// Where it is kept that a key is no longer found under a transport id from then on.
pub(crate) fn unindex(at: Time, id: &IndexId, key: &Key) -> RowKey {
    let at = at.0.to_be_bytes();
    prefixed(UNINDEX, [at.as_slice(), id, key.as_bytes()])
}

/// All that is no longer found from then on or earlier, the earliest first.
pub(crate) fn unindexes(until: Time) -> RowRange {
    let end = until.0.saturating_add(1).to_be_bytes();
    let end = prefixed(UNINDEX, [end.as_slice()]);
    (Bound::Included([UNINDEX].into()), Bound::Excluded(end))
}

/// What such a row speaks of.
pub(crate) fn unindex_of(row: &RowKey) -> Option<(IndexId, Key)> {
    let (id, key) = row.get(9..)?.split_first_chunk::<32>()?;
    Some((*id, Key::from_bytes(key.try_into().ok()?)))
}

/// Where a group notes what is due at that time.
pub(crate) fn due(at: Time, group: u64) -> RowKey {
    prefixed(DUE, [at.0.to_be_bytes().as_slice(), &group.to_be_bytes()])
}

/// All notes from that one on that are due by then.
pub(crate) fn dues((from, group): (Time, u64), until: Time) -> RowRange {
    let from = due(from, group);
    let end = due(until, u64::MAX);
    // An empty stretch, where nothing is due yet, must not run backwards.
    let end = if end < from { from.clone() } else { end };
    (Bound::Included(from), Bound::Included(end))
}

/// Which time, and which group, a note is of.
pub(crate) fn due_at(row: &RowKey) -> Option<(Time, u64)> {
    let (at, group) = row.get(1..)?.split_first_chunk::<8>()?;
    let group = group.try_into().ok()?;
    Some((Time(u64::from_be_bytes(*at)), u64::from_be_bytes(group)))
}

/// Where a letter is kept.
pub(crate) fn letter(id: &LetterId) -> RowKey {
    prefixed(LETTER, [id.0.as_slice()])
}

/// Where the head of the letter that was put as the `number`th is kept.
pub(crate) fn order(number: u64) -> RowKey {
    prefixed(ORDER, [number.to_be_bytes().as_slice()])
}

/// All heads of letters after that one; without it, from the oldest.
pub(crate) fn orders(after: Option<u64>) -> RowRange {
    range(ORDER, after.map(order))
}

/// Where it is kept that the tombstone of a letter expires then.
pub(crate) fn tombstone(expires_at: Time, id: &LetterId) -> RowKey {
    let expires_at = expires_at.0.to_be_bytes();
    prefixed(TOMBSTONE, [expires_at.as_slice(), &id.0])
}

/// All tombstones that expire then or earlier, the earliest first.
pub(crate) fn tombstones(until: Time) -> RowRange {
    let end = until.0.saturating_add(1).to_be_bytes();
    let end = prefixed(TOMBSTONE, [end.as_slice()]);
    (Bound::Included([TOMBSTONE].into()), Bound::Excluded(end))
}

/// Whose tombstone a row speaks of.
pub(crate) fn tombstone_of(row: &RowKey) -> Option<LetterId> {
    let id = row.get(9..)?.try_into().ok()?;
    Some(LetterId(id))
}

/// The key of a row in words, for messages.
pub(crate) fn describe(row: &[u8]) -> String {
    let rest = row.get(1..).unwrap_or_default();
    match row.first() {
        Some(&RECORD) => format!("record {}", written(rest)),
        Some(&STEP) => match rest.split_first_chunk::<40>() {
            Some((of, [0])) => {
                format!("history of {}", written(of.get(..32).unwrap_or_default()))
            }
            Some((of, name)) => format!(
                "step {:?} of {}",
                String::from_utf8_lossy(name),
                written(of.get(..32).unwrap_or_default())
            ),
            None => "a step".to_owned(),
        },
        Some(&LETTER) => match <[u8; 32]>::try_from(rest) {
            Ok(id) => format!("letter {}", LetterId(id)),
            Err(_) => "a letter".to_owned(),
        },
        Some(&ORDER) => "the list of letters".to_owned(),
        Some(&TOMBSTONE) => "the list of closed letters".to_owned(),
        Some(&DUE) => "the list of what is due".to_owned(),
        Some(&INDEX | &INDEXED | &UNINDEX) => "the index of transport ids".to_owned(),
        Some(_) | None => "the head row".to_owned(),
    }
}

fn written(key: &[u8]) -> String {
    match <[u8; 32]>::try_from(key) {
        Ok(key) => Key::from_bytes(key).to_string(),
        Err(_) => "of an unreadable key".to_owned(),
    }
}

fn prefixed<const N: usize>(kind: u8, parts: [&[u8]; N]) -> RowKey {
    let mut key = Vec::with_capacity(1 + parts.iter().map(|part| part.len()).sum::<usize>());
    key.push(kind);
    for part in parts {
        key.extend_from_slice(part);
    }
    key.into()
}

fn range(kind: u8, after: Option<RowKey>) -> RowRange {
    let from = after.map_or_else(|| Bound::Included([kind].into()), Bound::Excluded);
    (from, Bound::Excluded([kind + 1].into()))
}
