//! The files of one of the engine's trees: `current` names a manifest `vN` and its checksum, the
//! manifest names the tables and theirs.

use super::{read, read_error};
use crate::failure::corrupt;
use semel::Error;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use xxhash_rust::xxh3::{Xxh3Default, xxh3_128};

/// How thoroughly tables are looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Depth {
    /// That each is there and its table of contents is sound. The engine verifies each block when
    /// it reads it.
    Outline,
    /// Every byte.
    Whole,
}

/// What `current` says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Current {
    manifest: u64,
    checksum: u128,
}

struct Table {
    path: PathBuf,
    checksum: u128,
}

/// The end of a table: magic, version, checksum type, checksum, position and length of the table
/// of contents.
const TRAILER_BYTES: usize = 38;
const TRAILER_MAGIC: [u8; 6] = *b"SFA!\x01\x00";

/// How much of a table is read at once.
const READ_BYTES: usize = 1 << 20;

/// Verifies a tree; changes nothing.
pub(super) fn verify(tree: &Path, depth: Depth) -> Result<(), Error> {
    let manifest = manifest(tree, current(tree)?)?;
    for table in manifest {
        let sound = match depth {
            Depth::Outline => has_sound_contents(&table.path),
            Depth::Whole => is_whole(&table),
        };
        if !sound.map_err(|error| read_error(&table.path, error))? {
            return Err(corrupt(table.path.display(), "is not what was written"));
        }
    }
    Ok(())
}

/// Which manifest counts.
pub(super) fn current(tree: &Path) -> Result<Current, Error> {
    let path = tree.join("current");
    let bytes = read(&path)?;
    decode_current(&bytes).ok_or_else(|| corrupt(path.display(), "is not what was written"))
}

fn decode_current(bytes: &[u8]) -> Option<Current> {
    let (manifest, rest) = bytes.split_first_chunk::<8>()?;
    let (checksum, rest) = rest.split_first_chunk::<16>()?;
    (rest == [0]).then_some(Current {
        manifest: u64::from_le_bytes(*manifest),
        checksum: u128::from_le_bytes(*checksum),
    })
}

/// The tables of a manifest that has the checksum `current` gives.
fn manifest(tree: &Path, current: Current) -> Result<Vec<Table>, Error> {
    let path = tree.join(format!("v{}", current.manifest));
    let named_by = tree.join("current");
    let pair = format!("{} (named by {})", path.display(), named_by.display());
    let bytes = match std::fs::read(&path) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return Err(corrupt(pair, "is missing"));
        }
        Err(error) => return Err(read_error(&path, error)),
    };
    if xxh3_128(&bytes) != current.checksum {
        return Err(corrupt(pair, "does not have the checksum it should have"));
    }
    let tables = sfa::Reader::from_reader(&mut io::Cursor::new(&bytes))
        .ok()
        .and_then(|reader| section(&reader, &bytes))
        .and_then(|section| decode_tables(tree, section));
    tables.ok_or_else(|| corrupt(pair, "passes its checksum but makes no sense"))
}

fn section<'a>(reader: &sfa::Reader, bytes: &'a [u8]) -> Option<&'a [u8]> {
    let place = reader.toc().section(b"tables")?;
    let from = usize::try_from(place.pos()).ok()?;
    bytes.get(from..from.checked_add(usize::try_from(place.len()).ok()?)?)
}

/// Levels (u8) of runs (u8) of tables (u32): id (u64), checksum type (u8), checksum (u128), and a
/// number that does not matter here (u64).
fn decode_tables(tree: &Path, mut bytes: &[u8]) -> Option<Vec<Table>> {
    fn take<const N: usize>(bytes: &mut &[u8]) -> Option<[u8; N]> {
        let (taken, rest) = bytes.split_first_chunk::<N>()?;
        *bytes = rest;
        Some(*taken)
    }
    let mut tables = Vec::new();
    let [levels] = take(&mut bytes)?;
    for _ in 0..levels {
        let [runs] = take(&mut bytes)?;
        for _ in 0..runs {
            for _ in 0..u32::from_le_bytes(take(&mut bytes)?) {
                let id = u64::from_le_bytes(take(&mut bytes)?);
                let [_checksum_type] = take(&mut bytes)?;
                let checksum = u128::from_le_bytes(take(&mut bytes)?);
                let _global_sequence: [u8; 8] = take(&mut bytes)?;
                let path = tree.join("tables").join(id.to_string());
                tables.push(Table { path, checksum });
            }
        }
    }
    Some(tables)
}

fn is_whole(table: &Table) -> io::Result<bool> {
    let mut file = File::open(&table.path)?;
    let mut hash = Xxh3Default::new();
    let mut buffer = vec![0; READ_BYTES];
    loop {
        match file.read(&mut buffer)? {
            0 => return Ok(hash.digest128() == table.checksum),
            n => hash.update(buffer.get(..n).unwrap_or_default()),
        }
    }
}

/// The engine reserves memory for as many sections as a table says it has, before it verifies
/// that: a flipped bit there would end the process.
fn has_sound_contents(path: &Path) -> io::Result<bool> {
    let mut file = File::open(path)?;
    let length = file.metadata()?.len();
    let Some(end) = length.checked_sub(TRAILER_BYTES as u64) else {
        return Ok(false);
    };
    let mut trailer = [0; TRAILER_BYTES];
    file.seek(SeekFrom::Start(end))?;
    file.read_exact(&mut trailer)?;
    let Some((checksum, at, bytes)) = decode_trailer(&trailer) else {
        return Ok(false);
    };
    if at.checked_add(bytes) != Some(end) {
        return Ok(false);
    }
    let mut contents = Vec::new();
    file.seek(SeekFrom::Start(at))?;
    file.take(bytes).read_to_end(&mut contents)?;
    Ok(xxh3_128(&contents) == checksum)
}

fn decode_trailer(trailer: &[u8]) -> Option<(u128, u64, u64)> {
    let rest = trailer.strip_prefix(&TRAILER_MAGIC)?;
    let (checksum, rest) = rest.split_first_chunk::<16>()?;
    let (at, rest) = rest.split_first_chunk::<8>()?;
    let bytes = <[u8; 8]>::try_from(rest).ok()?;
    Some((
        u128::from_le_bytes(*checksum),
        u64::from_le_bytes(*at),
        u64::from_le_bytes(bytes),
    ))
}
