//! The directory itself: made for this user alone, held by one process, and remembered to have been
//! a store.

use crate::failure::{corrupt, unavailable};
use semel::Error;
use std::fs::{DirBuilder, File, OpenOptions, TryLockError};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};

/// The file that whoever has the directory open holds.
const NAME: &str = "guard";

/// Where the engine lives inside the store's directory.
pub(crate) const DATA: &str = "data";

/// Where it is made, so that a creation that is interrupted leaves no half of a store.
pub(crate) const DATA_NEW: &str = "data.new";

/// What the file says once the directory holds a store.
const MARK: &[u8] = b"semel embedded store, version 4\n";

/// What it said before records had notes of when they can be swept, before they knew of doubt, and before they had labels.
const MARKS_BEFORE: [&[u8]; 3] = [
    b"semel embedded store, version 1\n",
    b"semel embedded store, version 2\n",
    b"semel embedded store, version 3\n",
];

/// A directory that nobody else has open, for as long as this lives.
#[derive(Debug)]
pub(crate) struct Guard {
    directory: PathBuf,
    file: File,
}

// === impl Guard ===

impl Guard {
    /// Makes the directory if there is none, and takes hold of it.
    pub(crate) fn take(directory: &Path) -> Result<Self, Error> {
        make_private(directory).map_err(|error| unavailable("create", directory, error))?;
        refuse_open_to_all(directory)?;
        refuse_strangers(directory)?;
        let path = directory.join(NAME);
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false);
        let file = private(&mut options)
            .open(&path)
            .map_err(|error| unavailable("open", &path, error))?;
        match file.try_lock() {
            Ok(()) => Ok(Self {
                directory: directory.to_owned(),
                file,
            }),
            Err(TryLockError::WouldBlock) => Err(held_elsewhere(directory)),
            Err(TryLockError::Error(error)) => Err(unavailable("take hold of", &path, error)),
        }
    }

    /// Whether a store was ever completed here.
    pub(crate) fn is_marked(&self) -> Result<bool, Error> {
        let mut said = Vec::new();
        (&self.file)
            .read_to_end(&mut said)
            .map_err(|error| unavailable("read", &self.directory.join(NAME), error))?;
        if MARKS_BEFORE.contains(&said.as_slice()) {
            return Err(made_before(&self.directory));
        }
        Ok(!said.is_empty())
    }

    /// Notes down that the directory holds a store from now on.
    pub(crate) fn mark(&self) -> Result<(), Error> {
        (&self.file)
            .write_all(MARK)
            .and_then(|()| self.file.sync_all())
            .map_err(|error| unavailable("write", &self.directory.join(NAME), error))
    }
}

/// Refuses a directory that holds something else: a store is not mixed with other things.
fn refuse_strangers(directory: &Path) -> Result<(), Error> {
    let cannot = |error| unavailable("list", directory, error);
    for file in std::fs::read_dir(directory).map_err(cannot)? {
        let name = file.map_err(cannot)?.file_name();
        if ![NAME, DATA, DATA_NEW].iter().any(|ours| name == **ours) {
            return Err(Error::invalid(format!(
                "{} holds {} and is not a store: name an empty or a new directory; nothing in it was \
                 changed",
                directory.display(),
                name.to_string_lossy()
            )));
        }
    }
    Ok(())
}

fn made_before(directory: &Path) -> Error {
    Error::invalid(format!(
        "{} holds a store of an earlier version, from before the first release, and this build reads version 4: finish its work \
         with the build that made it, then name a new directory; nothing was changed, and a retry fails again",
        directory.display()
    ))
}

fn held_elsewhere(directory: &Path) -> Error {
    Error::unavailable(format!(
        "the directory {} is open in another process, or twice in this one, and the embedded store \
         belongs to one process: stop the other one, name another directory, or use PostgreSQL \
         (`postgres://`) or Redis (`redis://`) for many gates; nothing was changed, and a retry \
         succeeds once the other one has ended",
        directory.display()
    ))
}

/// Makes a directory that only this user can enter; one that exists stays as it is.
pub(crate) fn make_private(directory: &Path) -> std::io::Result<()> {
    if directory.is_dir() {
        return Ok(());
    }
    let mut builder = DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(directory)
}

fn private(options: &mut OpenOptions) -> &mut OpenOptions {
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(options, 0o600);
    options
}

#[cfg(unix)]
fn refuse_open_to_all(directory: &Path) -> Result<(), Error> {
    use std::os::unix::fs::PermissionsExt;
    let metadata = directory.metadata();
    let metadata = metadata.map_err(|error| unavailable("look at", directory, error))?;
    if metadata.permissions().mode() & 0o002 == 0 {
        return Ok(());
    }
    Err(Error::invalid(format!(
        "everybody on this machine may write to {0}, so anybody could change what is replayed: run \
         `chmod o-w {0}` or name another directory; nothing was changed",
        directory.display()
    )))
}

#[cfg(not(unix))]
fn refuse_open_to_all(_directory: &Path) -> Result<(), Error> {
    Ok(())
}

/// The error of a store whose directory was emptied.
pub(crate) fn emptied(data: &Path) -> Error {
    corrupt(
        data.display(),
        "is missing from a directory that held a store",
    )
}
