//! The journal that the engine writes to, through a handle of our own.
//!
//! The engine numbers its journals, syncs one before it begins the next, and deletes them oldest
//! first. So what was written before a moment at which journal n+1 did not exist yet is in n or
//! in an earlier, synced one.

use super::journals;
use crate::failure::{corrupt, unavailable};
use semel::Error;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

/// The newest journal.
#[derive(Debug)]
pub(crate) struct ActiveJournal {
    data: PathBuf,
    number: u64,
    file: File,
}

// === impl ActiveJournal ===

impl ActiveJournal {
    /// The newest journal of a directory.
    pub(crate) fn find(data: &Path) -> Result<Self, Error> {
        let Some((number, path)) = journals::numbered(data)?.pop() else {
            return Err(corrupt(data.display(), "has no journal"));
        };
        let file = File::open(&path).map_err(|error| unavailable("open", &path, error))?;
        Ok(Self {
            data: data.to_owned(),
            number,
            file,
        })
    }

    /// Brings everything that was written before this call to disk; the number of the journal.
    pub(crate) fn sync(&mut self) -> Result<u64, Error> {
        self.follow()?;
        self.sync_file()?;
        Ok(self.number)
    }

    /// Goes on to the journal that the engine has gone on to. That n+1 is absent is looked at
    /// before that n is present: the other way round, both could have come and gone in between.
    fn follow(&mut self) -> Result<(), Error> {
        loop {
            let next = self.path(self.number + 1);
            match File::open(&next) {
                Ok(file) => {
                    self.sync_file()?;
                    self.file = file;
                    self.number += 1;
                }
                Err(error) if error.kind() != io::ErrorKind::NotFound => {
                    return Err(unavailable("open", &next, error));
                }
                Err(_) if self.is_present()? => return Ok(()),
                Err(_) => *self = Self::find(&self.data)?,
            }
        }
    }

    fn is_present(&self) -> Result<bool, Error> {
        let path = self.path(self.number);
        path.try_exists()
            .map_err(|error| unavailable("look for", &path, error))
    }

    fn sync_file(&self) -> Result<(), Error> {
        self.file
            .sync_data()
            .map_err(|error| unavailable("sync", &self.path(self.number), error))
    }

    fn path(&self, number: u64) -> PathBuf {
        journals::path(&self.data, number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn journal(data: &Path, number: u64) {
        std::fs::write(journals::path(data, number), b"batches").unwrap();
    }

    #[test]
    fn it_follows_the_engine_from_journal_to_journal() {
        let data = tempfile::tempdir().unwrap();
        journal(data.path(), 3);
        let mut active = ActiveJournal::find(data.path()).unwrap();
        assert_eq!(active.sync().unwrap(), 3);
        journal(data.path(), 4);
        journal(data.path(), 5);
        assert_eq!(active.sync().unwrap(), 5);
    }

    #[test]
    fn it_finds_the_engine_again_after_journals_that_came_and_went_unseen() {
        let data = tempfile::tempdir().unwrap();
        journal(data.path(), 3);
        let mut active = ActiveJournal::find(data.path()).unwrap();
        std::fs::remove_file(journals::path(data.path(), 3)).unwrap();
        journal(data.path(), 7);
        assert_eq!(active.sync().unwrap(), 7);
    }

    #[test]
    fn it_never_syncs_a_journal_that_is_gone_for_the_active_one() {
        let data = tempfile::tempdir().unwrap();
        journal(data.path(), 3);
        let mut active = ActiveJournal::find(data.path()).unwrap();
        std::fs::remove_file(journals::path(data.path(), 3)).unwrap();
        assert!(matches!(active.sync(), Err(Error::Corrupt(_))));
    }
}
