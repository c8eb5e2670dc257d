//! What is verified before the engine sees a directory, because the engine would go on without it.
//!
//! The engine cuts a journal at the first batch it cannot read, deletes keyspaces whose manifest
//! it cannot find, and starts an empty journal when one is missing; all of that without a word. Here
//! every file is looked at first. A torn tail that nobody was promised is cut; anything else
//! that is not as it was written refuses the directory, by the name of the file.

mod active;
mod batch;
mod frontier;
mod journals;
mod tables;
#[cfg(test)]
mod tests;

pub(crate) use active::ActiveJournal;
pub(crate) use frontier::Frontier;
pub(crate) use journals::{Flushed, Verified};

use crate::failure::{corrupt, unavailable};
use semel::Error;
use std::io;
use std::path::{Path, PathBuf};
use tables::Depth;

/// The number that the engine gave to the store's only keyspace.
const KEYSPACE_NUMBER: u64 = 1;

/// The engine's own keyspace, which names the others.
const CATALOGUE_NUMBER: u64 = 0;

/// What the engine's version marker holds.
const ENGINE_VERSION: &[u8] = b"FJL\x03";

/// How often the search for damage begins anew because the files changed under it.
const SEARCHES_MAX: usize = 3;

/// Verifies a closed directory; changes nothing.
pub(crate) fn verify(data: &Path, frontier: &Frontier) -> Result<Verified, Error> {
    let version = data.join("version");
    if read(&version)? != ENGINE_VERSION {
        return Err(corrupt(version.display(), "is not what was written"));
    }
    // The catalogue is a few kilobytes, and the engine deletes what it does not name.
    tables::verify(&tree(data, CATALOGUE_NUMBER), Depth::Whole)?;
    tables::verify(&tree(data, KEYSPACE_NUMBER), Depth::Outline)?;
    journals::verify(data, frontier)
}

/// Looks for the file that an error of the engine was about, which the engine does not name.
pub(crate) fn find_damage(data: &Path) -> Option<Error> {
    let trees = [tree(data, CATALOGUE_NUMBER), tree(data, KEYSPACE_NUMBER)];
    trees.iter().find_map(|tree| {
        for _ in 0..SEARCHES_MAX {
            let before = tables::current(tree).ok();
            let error = tables::verify(tree, Depth::Whole).err()?;
            // Tables come and go while the store is open; only a manifest that stood still counts.
            if tables::current(tree).ok() == before {
                return matches!(error, Error::Corrupt(_)).then_some(error);
            }
        }
        None
    })
}

fn tree(data: &Path, number: u64) -> PathBuf {
    data.join("keyspaces").join(number.to_string())
}

/// The bytes of a file that must be there.
fn read(path: &Path) -> Result<Vec<u8>, Error> {
    std::fs::read(path).map_err(|error| read_error(path, error))
}

fn read_error(path: &Path, error: io::Error) -> Error {
    if error.kind() == io::ErrorKind::NotFound {
        return corrupt(path.display(), "is missing");
    }
    unavailable("read", path, error)
}
