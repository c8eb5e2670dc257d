//! The batches of a journal, as the engine writes them.
//!
//! Start `1`, number of items (u32), sequence number (u64) · items `2`, type, compression,
//! keyspace (u64), lengths of key (u16) and value (u32, twice), key, value · end `3`, XXH3 of the
//! items (u64), magic. All little-endian. The engine's checksum leaves out the start, hence the
//! rules about sequence numbers in [`journals`](super::journals).

use super::KEYSPACE_NUMBER;
use crate::codec::{self, HEAD, Head, Row};
use xxhash_rust::xxh3::xxh3_64;

const START: u8 = 1;
const ITEM: u8 = 2;
const END: u8 = 3;
const MAGIC: [u8; 4] = *b"FJL\x03";

/// The store asks for no compression.
const UNCOMPRESSED: u8 = 0;

/// A sound batch: one group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Batch {
    /// The engine's number.
    pub(super) sequence: u64,
    /// Our number.
    pub(super) group: u64,
    /// The last group that was known to be on disk when this one was written.
    pub(super) synced: u64,
    /// How long it is.
    pub(super) bytes: usize,
}

struct Cursor<'a> {
    bytes: &'a [u8],
    at: usize,
}

/// The batch that `bytes` begin with, if it is sound.
pub(super) fn read(bytes: &[u8]) -> Option<Batch> {
    let mut cursor = Cursor { bytes, at: 0 };
    if cursor.u8()? != START {
        return None;
    }
    let items = cursor.u32()?;
    let sequence = cursor.u64()?;
    let from = cursor.at;
    let mut head = None;
    for _ in 0..items {
        let (key, value) = cursor.item()?;
        if key == HEAD {
            head = codec::unseal::<Head>(key, value).ok();
        }
    }
    let checksum = xxh3_64(bytes.get(from..cursor.at)?);
    if cursor.u8()? != END || cursor.u64()? != checksum || cursor.array()? != MAGIC {
        return None;
    }
    let Row { value, group } = head?;
    Some(Batch {
        sequence,
        group,
        synced: value.synced,
        bytes: cursor.at,
    })
}

/// All sound batches anywhere in `bytes`, found by trying every place one could begin at.
pub(super) fn search(bytes: &[u8]) -> impl Iterator<Item = Batch> {
    let starts = bytes.iter().enumerate().filter(|(_, byte)| **byte == START);
    starts.filter_map(|(at, _)| read(bytes.get(at..)?))
}

// === impl Cursor ===

impl<'a> Cursor<'a> {
    fn item(&mut self) -> Option<(&'a [u8], &'a [u8])> {
        let [tag, _value_type, compression] = self.array()?;
        let keyspace = self.u64()?;
        let key_bytes = usize::from(self.array().map(u16::from_le_bytes)?);
        let (value_bytes, stored_bytes) = (self.u32()?, self.u32()?);
        let is_ours = tag == ITEM
            && compression == UNCOMPRESSED
            && keyspace == KEYSPACE_NUMBER
            && value_bytes == stored_bytes;
        if !is_ours {
            return None;
        }
        let key = self.slice(key_bytes)?;
        let value = self.slice(usize::try_from(stored_bytes).ok()?)?;
        Some((key, value))
    }

    fn slice(&mut self, bytes: usize) -> Option<&'a [u8]> {
        let end = self.at.checked_add(bytes)?;
        let slice = self.bytes.get(self.at..end)?;
        self.at = end;
        Some(slice)
    }

    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        self.slice(N)?.try_into().ok()
    }

    fn u8(&mut self) -> Option<u8> {
        self.array().map(u8::from_le_bytes)
    }

    fn u32(&mut self) -> Option<u32> {
        self.array().map(u32::from_le_bytes)
    }

    fn u64(&mut self) -> Option<u64> {
        self.array().map(u64::from_le_bytes)
    }
}
