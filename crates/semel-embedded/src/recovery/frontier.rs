//! The frontier: a small file that says which group is on disk.
//!
//! It is written after each sync of the journal and before anybody is answered, but is itself
//! synced only with a new journal and at the end: it never says too much, and after a kill it
//! says it all. Without it, damage at the end of a journal would look like a torn tail.

use super::read;
use crate::failure::{corrupt, unavailable};
use semel::Error;
use std::fs::{File, OpenOptions};
use std::io::{Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use xxhash_rust::xxh3::xxh3_64;

const NAME: &str = "frontier";

/// How far the journal is known to be on disk.
#[derive(Debug)]
pub(crate) struct Frontier {
    path: PathBuf,
    file: File,
    journal: u64,
    group: u64,
}

// === impl Frontier ===

impl Frontier {
    /// The frontier of an engine's directory that was just made.
    pub(crate) fn create(data: &Path) -> Result<(), Error> {
        let path = data.join(NAME);
        let create = || {
            let mut file = File::create_new(&path)?;
            file.write_all(&encode(0, 0))?;
            file.sync_all()
        };
        create().map_err(|error| unavailable("create", &path, error))
    }

    /// The frontier of an engine's directory.
    pub(crate) fn open(data: &Path) -> Result<Self, Error> {
        let path = data.join(NAME);
        let Some((journal, group)) = decode(&read(&path)?) else {
            return Err(corrupt(path.display(), "is not what was written"));
        };
        let file = OpenOptions::new()
            .write(true)
            .open(&path)
            .map_err(|error| unavailable("open", &path, error))?;
        Ok(Self {
            path,
            file,
            journal,
            group,
        })
    }

    /// The newest journal that is known to exist.
    pub(crate) const fn journal(&self) -> u64 {
        self.journal
    }

    /// The last group that is known to be on disk.
    pub(crate) const fn group(&self) -> u64 {
        self.group
    }

    /// Notes down that everything up to `group` is on disk.
    pub(crate) fn reached(&mut self, journal: u64, group: u64) -> Result<(), Error> {
        let is_new_journal = journal != self.journal;
        (self.journal, self.group) = (journal, group);
        self.write()
            .map_err(|error| unavailable("write", &self.path, error))?;
        if is_new_journal {
            self.sync()?;
        }
        Ok(())
    }

    /// Brings the frontier itself to disk.
    pub(crate) fn sync(&self) -> Result<(), Error> {
        self.file
            .sync_data()
            .map_err(|error| unavailable("sync", &self.path, error))
    }

    fn write(&mut self) -> std::io::Result<()> {
        self.file.seek(SeekFrom::Start(0))?;
        self.file.write_all(&encode(self.journal, self.group))
    }
}

fn encode(journal: u64, group: u64) -> [u8; 24] {
    let mut bytes = [0; 24];
    let (said, checksum) = bytes.split_at_mut(16);
    let (first, second) = said.split_at_mut(8);
    first.copy_from_slice(&journal.to_be_bytes());
    second.copy_from_slice(&group.to_be_bytes());
    checksum.copy_from_slice(&xxh3_64(said).to_be_bytes());
    bytes
}

fn decode(bytes: &[u8]) -> Option<(u64, u64)> {
    let (journal, rest) = bytes.split_first_chunk::<8>()?;
    let (group, _) = rest.split_first_chunk::<8>()?;
    let (journal, group) = (u64::from_be_bytes(*journal), u64::from_be_bytes(*group));
    (encode(journal, group) == bytes).then_some((journal, group))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_says_what_was_noted_down_last() {
        let data = tempfile::tempdir().unwrap();
        Frontier::create(data.path()).unwrap();
        let mut frontier = Frontier::open(data.path()).unwrap();
        frontier.reached(2, 70).unwrap();
        frontier.reached(2, 71).unwrap();
        let frontier = Frontier::open(data.path()).unwrap();
        assert_eq!((frontier.journal(), frontier.group()), (2, 71));
    }

    #[test]
    fn a_changed_byte_is_refused() {
        let good = encode(2, 71);
        for at in 0..good.len() {
            let mut bad = good;
            bad[at] ^= 1;
            assert_eq!(decode(&bad), None);
        }
        assert_eq!(decode(&good[..23]), None);
    }
}
