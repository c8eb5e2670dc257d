//! Files of processes that are no more: each is cut at its last newline, synced and renamed. A file that is locked is
//! another process's, and left alone.

use std::ffi::OsStr;
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, BufRead, BufReader};
use std::path::Path;
use std::time::Duration;

/// How the name of a file ends that is being written.
pub(super) const OPEN: &str = "open";

/// Whoever makes a file, or takes over another's, holds this one.
const LOCK: &str = ".lock";

/// How much is read at a time.
const CHUNK: usize = 64 * 1024;

/// How often the lock is asked for, and how long after one another: a process that holds it for three seconds is paused,
/// or not one of ours.
const LOCK_TRIES: u32 = 300;
const LOCK_AGAIN: Duration = Duration::from_millis(10);

/// Holds the directory's lock until it is dropped.
#[expect(
    clippy::disallowed_methods,
    reason = "a file's lock cannot be waited for within a limit"
)]
pub(super) fn lock(directory: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    let options = options.create(true).truncate(false).write(true);
    let file = options.open(directory.join(LOCK))?;
    for _ in 0..LOCK_TRIES {
        match file.try_lock() {
            Ok(()) => return Ok(file),
            Err(TryLockError::WouldBlock) => std::thread::sleep(LOCK_AGAIN),
            Err(TryLockError::Error(error)) => return Err(error),
        }
    }
    let held = LOCK_AGAIN * LOCK_TRIES;
    let why = format!("another process has held {LOCK} for {held:?}: end it");
    Err(io::Error::new(io::ErrorKind::TimedOut, why))
}

/// Renames what processes left here that are no more.
pub(super) fn close(directory: &Path) -> io::Result<()> {
    let _directory_lock = lock(directory)?;
    for entry in std::fs::read_dir(directory)? {
        let entry = entry?;
        if entry.file_type()?.is_file() && is_ours(&entry.file_name()) {
            close_one(&entry.path())?;
        }
    }
    File::open(directory)?.sync_all()
}

/// Whether it is named as landing files are: others' files are left alone.
fn is_ours(name: &OsStr) -> bool {
    let name = name.to_str().and_then(|name| name.strip_suffix(OPEN));
    name.is_some_and(|name| name.ends_with(".jsonl."))
}

fn close_one(path: &Path) -> io::Result<()> {
    let file = OpenOptions::new().read(true).write(true).open(path)?;
    match file.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => return Ok(()),
        Err(TryLockError::Error(error)) => return Err(error),
    }
    let whole = whole_lines(&file)?;
    if whole == 0 {
        return std::fs::remove_file(path);
    }
    file.set_len(whole)?;
    file.sync_all()?;
    tracing::info!(path = %path.display(), bytes = whole, "closed a landing file that was left open");
    std::fs::rename(path, path.with_extension(""))
}

/// How far the file goes that has whole lines only. A file system that lost its power may leave zeros where something
/// was being written; lines have none, and nothing from there on was acknowledged.
fn whole_lines(file: &File) -> io::Result<u64> {
    let (mut whole, mut read) = (0, 0);
    let mut lines = BufReader::with_capacity(CHUNK, file);
    let mut line = Vec::new();
    while lines.read_until(b'\n', &mut line)? > 0 {
        read += line.len() as u64;
        if line.contains(&0) || !line.ends_with(b"\n") {
            break;
        }
        whole = read;
        line.clear();
    }
    Ok(whole)
}
