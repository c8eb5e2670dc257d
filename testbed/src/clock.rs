//! A clock that jumps: a server under libfaketime, whose time is moved through a file while it runs.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Context;

/// Where Debian's package `libfaketime` puts its libraries, by the machine's triplet.
const LIBRARY_DIRS: &[&str] = &[
    "/usr/lib/x86_64-linux-gnu/faketime",
    "/usr/lib/aarch64-linux-gnu/faketime",
];

/// For programs with several processes or threads.
const LIBRARY: &str = "libfaketimeMT.so.1";

/// Where a server's clock is set.
#[derive(Debug, Clone)]
pub(crate) struct Clock {
    libraries: OsString,
    file: PathBuf,
}

// === impl Clock ===

impl Clock {
    /// A clock that is right, set through a file in `dir`.
    ///
    /// # Errors
    /// When libfaketime is not installed, or the file cannot be written.
    pub(crate) fn new(dir: &Path) -> anyhow::Result<Self> {
        let clock = Self {
            libraries: libraries()?,
            file: dir.join("clock"),
        };
        clock.jump(0)?;
        Ok(clock)
    }

    /// Sets the clock so many seconds off the machine's. In one step: a reader sees the old time or the new.
    pub(crate) fn jump(&self, seconds: i64) -> anyhow::Result<()> {
        let next = self.file.with_extension("next");
        fs::write(&next, format!("{seconds:+}\n")).context("cannot set a clock")?;
        fs::rename(&next, &self.file).context("cannot set a clock")
    }

    /// Lets a command live by this clock. What it waits for is still measured by the machine's.
    pub(crate) fn give(&self, command: &mut Command) {
        command
            .env("LD_PRELOAD", &self.libraries)
            .env("FAKETIME_TIMESTAMP_FILE", &self.file)
            .env("FAKETIME_NO_CACHE", "1")
            .env("FAKETIME_DONT_FAKE_MONOTONIC", "1");
    }
}

/// The C library comes second, so that its allocator is found before a server's own: one that asks for the time while
/// it starts would wait for libfaketime, which waits for memory.
fn libraries() -> anyhow::Result<OsString> {
    let mut libraries = library()?.into_os_string();
    libraries.push(" libc.so.6");
    Ok(libraries)
}

/// Where libfaketime is.
///
/// # Errors
/// When it is not installed.
pub(crate) fn library() -> anyhow::Result<PathBuf> {
    let mut places = LIBRARY_DIRS.iter().map(|dir| Path::new(dir).join(LIBRARY));
    places
        .find(|path| path.exists())
        .context("libfaketime is not installed: apt-get install libfaketime, then retry")
}
