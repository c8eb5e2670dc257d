//! Directories on a real disk, and how much of it they take.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use anyhow::{Context, bail};
use tempfile::TempDir;

/// What Linux calls the file systems that are only memory.
const TMPFS_MAGIC: i64 = 0x0102_1994;
const RAMFS_MAGIC: i64 = 0x8584_58f6;

/// The unit of [`MetadataExt::blocks`], whatever the file system's own is.
const BLOCK_BYTES: u64 = 512;

/// An empty directory beside this program, that is, in `target/`: on the disk that the project is on.
pub(crate) fn directory() -> anyhow::Result<TempDir> {
    let program = std::env::current_exe().context("cannot tell where this program is")?;
    let beside = program.parent().context("this program has no directory")?;
    must_be_real(beside)?;
    tempfile::Builder::new()
        .prefix("bench-")
        .tempdir_in(beside)
        .with_context(|| format!("cannot make a directory in {}", beside.display()))
}

/// Whether the servers of the testbed have a disk.
pub(crate) fn servers_have_one() -> anyhow::Result<()> {
    must_be_real(&std::env::temp_dir())
}

/// Refuses memory that looks like a disk: syncing to it costs nothing.
fn must_be_real(dir: &Path) -> anyhow::Result<()> {
    let system = rustix::fs::statfs(dir)
        .with_context(|| format!("cannot ask for the file system of {}", dir.display()))?;
    if [TMPFS_MAGIC, RAMFS_MAGIC].contains(&system.f_type) {
        bail!(
            "{} is memory, not a disk, so nothing durable can be measured there: set TMPDIR (for servers) or \
             CARGO_TARGET_DIR (for the embedded store) to a directory on a disk",
            dir.display()
        );
    }
    Ok(())
}

/// How much of the disk a directory takes.
pub(crate) fn bytes(dir: &Path) -> anyhow::Result<u64> {
    let mut sum = 0;
    for found in fs::read_dir(dir).with_context(|| format!("cannot read {}", dir.display()))? {
        let found = found?;
        // A file that the engine removes meanwhile takes nothing.
        let Ok(about) = found.metadata() else {
            continue;
        };
        sum += if about.is_dir() {
            bytes(&found.path())?
        } else {
            about.blocks() * BLOCK_BYTES
        };
    }
    Ok(sum)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn directory_weighs_what_is_below_it() {
        let dir = directory().unwrap();
        fs::create_dir(dir.path().join("below")).unwrap();
        let file = dir.path().join("below/file");
        fs::write(&file, vec![1; 100_000]).unwrap();
        fs::File::open(&file).unwrap().sync_all().unwrap();
        let bytes = bytes(dir.path()).unwrap();
        assert!((100_000..200_000).contains(&bytes), "{bytes}");
    }
}
