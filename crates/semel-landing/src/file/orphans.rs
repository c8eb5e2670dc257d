//! Files of processes that are no more: each is cut at its last newline, synced and renamed. A file that is locked is
//! another process's, and left alone.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;

/// How the name of a file ends that is being written.
pub(super) const OPEN: &str = "open";

/// Whoever makes a file, or takes over another's, holds this one.
const LOCK: &str = ".lock";

/// How much is looked through at a time for the last newline.
const CHUNK: u64 = 64 * 1024;

/// Holds the directory's lock until it is dropped.
pub(super) fn lock(directory: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    let options = options.create(true).truncate(false).write(true);
    let file = options.open(directory.join(LOCK))?;
    file.lock()?;
    Ok(file)
}

/// Renames what processes left here that are no more.
pub(super) fn close(directory: &Path) -> io::Result<()> {
    let _directory_lock = lock(directory)?;
    for entry in std::fs::read_dir(directory)? {
        let path = entry?.path();
        if path.extension().is_some_and(|it| it == OPEN) {
            close_one(&path)?;
        }
    }
    File::open(directory)?.sync_all()
}

fn close_one(path: &Path) -> io::Result<()> {
    let mut file = OpenOptions::new().read(true).write(true).open(path)?;
    match file.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => return Ok(()),
        Err(TryLockError::Error(error)) => return Err(error),
    }
    let whole = whole_lines(&mut file)?;
    if whole == 0 {
        return std::fs::remove_file(path);
    }
    file.set_len(whole)?;
    file.sync_all()?;
    tracing::info!(path = %path.display(), bytes = whole, "closed a landing file that was left open");
    std::fs::rename(path, path.with_extension(""))
}

/// How far the file goes that has whole lines only.
fn whole_lines(file: &mut File) -> io::Result<u64> {
    let mut end = file.metadata()?.len();
    let mut chunk = Vec::new();
    while end > 0 {
        let begin = end.saturating_sub(CHUNK);
        file.seek(SeekFrom::Start(begin))?;
        chunk.clear();
        file.take(end - begin).read_to_end(&mut chunk)?;
        if let Some(last) = chunk.iter().rposition(|byte| *byte == b'\n') {
            return Ok(begin + last as u64 + 1);
        }
        end = begin;
    }
    Ok(0)
}
