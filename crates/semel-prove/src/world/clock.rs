//! The clock of the processes that may be attacked, put forward through a file by libfaketime.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Where Debian's package `libfaketime` puts its libraries, by the machine's triplet.
const LIBRARY_DIRS: &[&str] = &[
    "/usr/lib/x86_64-linux-gnu/faketime",
    "/usr/lib/aarch64-linux-gnu/faketime",
];

/// For programs with several processes or threads.
const LIBRARY: &str = "libfaketimeMT.so.1";

/// How long a process may go by the old time: it looks into the file when two whole seconds have begun since it last did.
pub(crate) const SEEN_WITHIN: Duration = Duration::from_millis(2_100);

/// A clock that is right until it is put forward.
#[derive(Clone, Debug)]
pub(crate) struct Clock {
    library: PathBuf,
    file: PathBuf,
}

// === impl Clock ===

impl Clock {
    /// None: libfaketime is not installed, or its file cannot be written.
    pub(super) fn new(dir: &Path) -> Option<Self> {
        let mut places = LIBRARY_DIRS.iter().map(|dir| Path::new(dir).join(LIBRARY));
        let clock = Self {
            library: places.find(|path| path.exists())?,
            file: dir.join("clock"),
        };
        clock.put_forward(Duration::ZERO).ok()?;
        Some(clock)
    }

    /// So far ahead of the machine's. In one step: a reader sees the old time or the new.
    pub(super) fn put_forward(&self, ahead: Duration) -> io::Result<()> {
        let next = self.file.with_extension("next");
        std::fs::write(&next, format!("+{}\n", ahead.as_secs_f64()))?;
        std::fs::rename(&next, &self.file)
    }

    /// Lets a process live by this clock. What it waits for is still measured by the machine's.
    pub(super) fn variables(&self) -> [(String, String); 4] {
        // The C library comes second, so that its allocator is found before a program's own: one that asks for the time
        // while it starts would wait for libfaketime, which waits for memory.
        let libraries = format!("{} libc.so.6", self.library.display());
        let file = self.file.display().to_string();
        [
            ("LD_PRELOAD".to_owned(), libraries),
            ("FAKETIME_TIMESTAMP_FILE".to_owned(), file),
            ("FAKETIME_CACHE_DURATION".to_owned(), "1".to_owned()),
            ("FAKETIME_DONT_FAKE_MONOTONIC".to_owned(), "1".to_owned()),
        ]
    }
}
