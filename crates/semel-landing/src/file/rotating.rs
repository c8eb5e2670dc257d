//! One file after the other: appended to, synced, and renamed when it is full or old.

use super::FileSettings;
use super::orphans::{OPEN, lock};
use crate::failpoint::{Point, judge, pass};
use jiff::Timestamp;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tokio::time::Instant;

/// One file after the other, in one directory.
#[derive(Debug)]
pub(super) struct Rotating {
    directory: PathBuf,
    bytes_max: u64,
    age_max: Duration,
    open: Option<OpenFile>,
}

/// The file that is being written. Whoever else opens it finds it locked as long as this process lives.
#[derive(Debug)]
struct OpenFile {
    file: File,
    path: PathBuf,
    /// So much of it is known to be on the disk.
    durable: u64,
    since: Instant,
}

// === impl Rotating ===

impl Rotating {
    pub(super) const fn new(directory: PathBuf, settings: &FileSettings) -> Self {
        Self {
            directory,
            bytes_max: settings.file_bytes_max,
            age_max: settings.file_age_max,
            open: None,
        }
    }

    /// Appends whole lines and waits until they are on the disk. What failed once is never synced again: whether the
    /// system has dropped what it could not write is unknown, so the lines go into a new file.
    pub(super) fn append(&mut self, lines: &[u8]) -> io::Result<()> {
        if lines.is_empty() {
            return Ok(());
        }
        if let Err(error) = self.try_append(lines) {
            let directory = self.directory.display();
            tracing::warn!(%directory, %error, "a landing file was not written; trying a new one");
            self.abandon();
            if let Err(error) = self.try_append(lines) {
                self.abandon();
                return Err(error);
            }
        }
        let bytes_max = self.bytes_max;
        if self.open.as_ref().is_some_and(|it| it.durable >= bytes_max) {
            self.close_if(|_| true);
        }
        Ok(())
    }

    fn try_append(&mut self, lines: &[u8]) -> io::Result<()> {
        let open = match &mut self.open {
            Some(open) => open,
            none @ None => none.insert(OpenFile::create(&self.directory)?),
        };
        open.file.write_all(lines)?;
        pass(Point::Written);
        judge(Point::Written).and_then(|()| open.file.sync_data())?;
        open.is_in_place()?;
        open.durable += lines.len() as u64;
        Ok(())
    }

    /// Whether a file can be made here.
    pub(super) fn ready(&self) -> io::Result<()> {
        if self.open.is_some() {
            return Ok(());
        }
        let probe = OpenFile::create(&self.directory)?;
        std::fs::remove_file(&probe.path)
    }

    /// Writes and syncs a separate file, and removes it.
    pub(super) fn try_marker(&self, bytes: usize) -> io::Result<()> {
        let mut marker = OpenFile::create(&self.directory)?;
        let written = marker.file.write_all(&vec![b'\n'; bytes]);
        let synced = written.and_then(|()| marker.file.sync_data());
        std::fs::remove_file(&marker.path).and(synced)
    }

    /// When the file is too old to wait for more.
    pub(super) fn due(&self) -> Option<Instant> {
        let open = self.open.as_ref()?;
        Some(open.since + self.age_max)
    }

    /// Renames the file, if there is one that is due so. One that cannot be renamed is renamed by the next start.
    pub(super) fn close_if(&mut self, is_due: impl Fn(Instant) -> bool) {
        if !self.due().is_some_and(is_due) {
            return;
        }
        let Some(open) = self.open.take() else {
            return;
        };
        pass(Point::BeforeRename);
        if let Err(error) = open.rename(&self.directory) {
            let path = open.path.display();
            tracing::warn!(%path, %error, "a landing file was not renamed; if it is still in its directory, the next start does it");
        }
    }

    /// Gives up the file after a failure: what was durable before is renamed, the rest cut off.
    fn abandon(&mut self) {
        let Some(open) = self.open.take() else {
            return;
        };
        let given_up = if open.durable == 0 {
            std::fs::remove_file(&open.path)
        } else {
            open.cut().and_then(|()| open.rename(&self.directory))
        };
        if let Err(error) = given_up {
            let path = open.path.display();
            tracing::warn!(%path, %error, "a landing file that failed is left as it is; if it is still in its directory, the next start closes it");
        }
    }
}

// === impl OpenFile ===

impl OpenFile {
    /// A file that nobody had before. It is locked before anybody else may look whether its process lives.
    fn create(directory: &Path) -> io::Result<Self> {
        let _directory_lock = lock(directory)?;
        let path = directory.join(name());
        let file = OpenOptions::new()
            .append(true)
            .create_new(true)
            .open(&path)?;
        file.lock()?;
        File::open(directory)?.sync_all()?;
        Ok(Self {
            file,
            path,
            durable: 0,
            since: Instant::now(),
        })
    }

    /// That its name still leads to it: what is written into a file that was removed, or whose disk was unmounted, is
    /// synced without an error, and gone.
    fn is_in_place(&self) -> io::Result<()> {
        let (named, held) = (std::fs::metadata(&self.path)?, self.file.metadata()?);
        if (named.dev(), named.ino()) == (held.dev(), held.ino()) {
            return Ok(());
        }
        Err(io::Error::other("it was replaced while it was written"))
    }

    fn cut(&self) -> io::Result<()> {
        self.file.set_len(self.durable)?;
        self.file.sync_all()
    }

    fn rename(&self, directory: &Path) -> io::Result<()> {
        std::fs::rename(&self.path, self.path.with_extension(""))?;
        File::open(directory)?.sync_all()
    }
}

/// By when it was begun, and by chance.
#[allow(
    clippy::disallowed_methods,
    reason = "files are told apart by their time and by chance"
)]
fn name() -> String {
    let now = Timestamp::now().strftime("%Y%m%dT%H%M%SZ");
    format!("{now}-{:016x}.jsonl.{OPEN}", rand::random::<u64>())
}
