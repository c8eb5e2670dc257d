//! What the directory of the embedded store is on.

use rustix::fs::{FsWord, statfs};
use std::path::Path;

/// What a directory is on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Disk {
    /// A file system of this machine that keeps what was synced.
    Local,
    /// Memory: gone with the machine.
    Memory,
    /// What this cannot be told of: a container's layer, a network.
    Unknown,
    /// A machine that its platform may replace.
    Replaced,
}

const MEMORY: [FsWord; 2] = [
    0x0102_1994, // tmpfs
    0x8584_58f6, // ramfs
];

const LOCAL: [FsWord; 6] = [
    0xef53,      // ext2, ext3, ext4
    0x5846_5342, // xfs
    0x9123_683e, // btrfs
    0x2fc1_2fc1, // zfs
    0xf2f5_2010, // f2fs
    0xca45_1a4e, // bcachefs
];

// === impl Disk ===

impl Disk {
    /// Of a directory that is there, or will be.
    pub(crate) fn under(directory: &Path) -> Self {
        let mut above = directory.ancestors().map(|path| match path.as_os_str() {
            none if none.is_empty() => Path::new("."),
            _ => path,
        });
        let stat = above.find(|path| path.exists()).map(statfs);
        match stat.and_then(Result::ok).map(|stat| stat.f_type) {
            Some(kind) if MEMORY.contains(&kind) => Self::Memory,
            Some(kind) if LOCAL.contains(&kind) => Self::Local,
            Some(_) | None => Self::Unknown,
        }
    }
}
