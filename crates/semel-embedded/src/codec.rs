//! Rows: how the store keeps things under keys.
//!
//! A value is a version byte, the fields, the number of the group that wrote it, and a checksum
//! over key and value. The checksum is XXH3 with 64 bits: on rows of a few hundred bytes it costs
//! some 20 ns, no single damaged block of memory or disk passes it by luck, and the engine below
//! uses it too, so it adds no code. It is seeded with the key's own hash: a sound value under
//! the wrong key fails as well.

mod key;
mod rows;
mod due;

pub(crate) use due::{Due, Incarnation};
pub(crate) use key::{
    HEAD, IndexId, RowKey, RowRange, describe, due, due_at, dues, history, index, index_key,
    index_of, indexed, indexed_id, indexed_of, letter, order, orders, record, records, step,
    step_name, steps, tombstone, tombstone_of, tombstones, unindex, unindex_of, unindexes,
};
pub(crate) use rows::{FoundUntil, Head, History, KeptLetter, Nothing, Outline};

use fjall::Slice;
use std::fmt;
use xxhash_rust::xxh3::{xxh3_64, xxh3_64_with_seed};

/// The first byte of every value. Version 1 had letters without route and fence, version 2 records that knew nothing of
/// doubt, version 3 labels in rows of their own, version 4 neither the time of the first doubt nor alarms; none was released.
const VERSION: u8 = 5;

/// The number of the group and the checksum.
const TRAILER_BYTES: usize = 16;

/// A row as it was read, its checksum verified.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Row<T> {
    /// What is kept.
    pub(crate) value: T,
    /// The group that wrote it: it is on disk once that group is.
    pub(crate) group: u64,
}

/// What can be kept.
pub(crate) trait Encode {
    /// Appends the fields.
    fn encode(&self, out: &mut Vec<u8>);
}

/// What can be read back.
pub(crate) trait Decode: Sized {
    /// Reads the fields; `None` when they make no sense.
    fn decode(fields: Fields<'_>) -> Option<Self>;
}

/// The bytes of a row that are still to be read.
#[derive(Debug)]
pub(crate) struct Fields<'a>(&'a [u8]);

/// Why a row cannot be trusted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Damage {
    /// Shorter than the shortest row.
    CutOff,
    /// Key or value are not what was written.
    Checksum,
    /// Sound, but written by another version of this program.
    Version(u8),
    /// Sound, but its fields make no sense.
    Fields,
}

/// The value to keep under `key`. `scratch` saves an allocation per row.
pub(crate) fn seal(key: &[u8], value: &impl Encode, group: u64, scratch: &mut Vec<u8>) -> Slice {
    scratch.clear();
    scratch.push(VERSION);
    value.encode(scratch);
    scratch.extend_from_slice(&group.to_be_bytes());
    let checksum = checksum(key, scratch);
    scratch.extend_from_slice(&checksum.to_be_bytes());
    Slice::new(scratch)
}

/// Reads a value back, after its checksum was found right.
pub(crate) fn unseal<T: Decode>(key: &[u8], bytes: &[u8]) -> Result<Row<T>, Damage> {
    let (sealed, expected) = bytes.split_last_chunk::<8>().ok_or(Damage::CutOff)?;
    if sealed.len() + 8 <= TRAILER_BYTES {
        return Err(Damage::CutOff);
    }
    if checksum(key, sealed) != u64::from_be_bytes(*expected) {
        return Err(Damage::Checksum);
    }
    let (payload, group) = sealed.split_last_chunk::<8>().ok_or(Damage::CutOff)?;
    let (version, fields) = payload.split_first().ok_or(Damage::CutOff)?;
    if *version != VERSION {
        return Err(Damage::Version(*version));
    }
    Ok(Row {
        value: T::decode(Fields(fields)).ok_or(Damage::Fields)?,
        group: u64::from_be_bytes(*group),
    })
}

fn checksum(key: &[u8], sealed: &[u8]) -> u64 {
    xxh3_64_with_seed(sealed, xxh3_64(key))
}

// === impl Fields ===

impl<'a> Fields<'a> {
    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (array, rest) = self.0.split_first_chunk::<N>()?;
        self.0 = rest;
        Some(*array)
    }

    fn u8(&mut self) -> Option<u8> {
        self.array::<1>().map(|[byte]| byte)
    }

    fn u16(&mut self) -> Option<u16> {
        self.array().map(u16::from_be_bytes)
    }

    /// As many bytes.
    fn bytes(&mut self, length: usize) -> Option<&'a [u8]> {
        let (bytes, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(bytes)
    }

    fn u32(&mut self) -> Option<u32> {
        self.array().map(u32::from_be_bytes)
    }

    fn u64(&mut self) -> Option<u64> {
        self.array().map(u64::from_be_bytes)
    }

    fn flag(&mut self) -> Option<bool> {
        match self.u8()? {
            0 => Some(false),
            1 => Some(true),
            2.. => None,
        }
    }

    const fn rest(self) -> &'a [u8] {
        self.0
    }

    /// `value`, if nothing is left over.
    fn end<T>(self, value: T) -> Option<T> {
        self.0.is_empty().then_some(value)
    }
}

// === impl Damage ===

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::CutOff => f.write_str("is cut off"),
            Self::Checksum => f.write_str("fails its checksum"),
            Self::Version(version) => {
                write!(
                    f,
                    "has version {version}, this build reads version {VERSION}"
                )
            }
            Self::Fields => f.write_str("passes its checksum but makes no sense"),
        }
    }
}
