//! The sink of files: JSON lines in a directory, one sync per group. A file that is being written has `.open` behind its
//! name; when it is full or old it is renamed, and readers take renamed files only.
//!
//! Rows are in the directory itself, faults in `faults/` below it.

mod orphans;
mod rotating;

use crate::row::Row;
use crate::sink::{Sink, WriteError};
use async_trait::async_trait;
use rotating::Rotating;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tokio::task::spawn_blocking;
use tokio::time::Instant;

/// Where files are written, and when they are renamed.
#[derive(Clone, Debug)]
pub struct FileSettings {
    /// The directory; made if it is not there.
    pub directory: PathBuf,
    /// How long a file gets before it is renamed: 64 MiB unless set.
    pub file_bytes_max: u64,
    /// How long after its first row it is renamed at the latest: a minute unless set. Readers see rows that much later.
    pub file_age_max: Duration,
}

/// A sink of files in a directory. Several processes may write to one directory: each has files of its own.
pub struct FileSink {
    directory: PathBuf,
    /// Away only while a group is written.
    files: Option<Files>,
}

#[derive(Debug)]
struct Files {
    rows: Rotating,
    faults: Rotating,
}

// === impl FileSettings ===

impl FileSettings {
    /// The default settings for this directory.
    #[must_use]
    pub fn new(directory: impl Into<PathBuf>) -> Self {
        Self {
            directory: directory.into(),
            file_bytes_max: 64 * 1024 * 1024,
            file_age_max: Duration::from_secs(60),
        }
    }
}

// === impl FileSink ===

impl FileSink {
    /// Makes the directory, and renames what a process left there that is no more: up to its last whole line.
    ///
    /// # Errors
    /// When the directory cannot be made, read or written.
    pub fn open(settings: FileSettings) -> io::Result<Self> {
        let faults = settings.directory.join("faults");
        std::fs::create_dir_all(&faults)?;
        for directory in [&settings.directory, &faults] {
            orphans::close(directory)?;
        }
        if let Some(parent) = std::fs::canonicalize(&settings.directory)?.parent() {
            std::fs::File::open(parent)?.sync_all()?;
        }
        Ok(Self {
            files: Some(Files {
                rows: Rotating::new(settings.directory.clone(), &settings),
                faults: Rotating::new(faults, &settings),
            }),
            directory: settings.directory,
        })
    }

    /// Does something with the files where it may block.
    async fn blocking<T: Send + 'static>(
        &mut self,
        act: impl FnOnce(&mut Files) -> io::Result<T> + Send + 'static,
    ) -> Result<T, WriteError> {
        let Some(mut files) = self.files.take() else {
            return Err(self.unavailable("a write before this one panicked"));
        };
        let acted = spawn_blocking(move || {
            let did = act(&mut files);
            (files, did)
        });
        match acted.await {
            Ok((files, did)) => {
                self.files = Some(files);
                did.map_err(|error| self.unavailable(error))
            }
            Err(error) => Err(self.unavailable(error)),
        }
    }

    fn unavailable(&self, why: impl fmt::Display) -> WriteError {
        let directory = self.directory.display();
        WriteError::Unavailable(format!("{directory}: {why}; a retry is safe"))
    }
}

#[async_trait]
impl Sink for FileSink {
    async fn write(&mut self, group: &[&Row]) -> Result<(), WriteError> {
        let (mut rows, mut faults) = (String::new(), String::new());
        for row in group {
            let lines = match row.fault {
                None => &mut rows,
                Some(_) => &mut faults,
            };
            lines.push_str(&row.line());
        }
        self.blocking(move |files| {
            files.rows.append(rows.as_bytes())?;
            files.faults.append(faults.as_bytes())
        })
        .await
    }

    async fn ready(&mut self) -> Result<(), WriteError> {
        self.blocking(|files| files.rows.ready()).await
    }

    async fn try_marker(&mut self, bytes: usize) -> Result<(), WriteError> {
        self.blocking(move |files| files.rows.try_marker(bytes))
            .await
    }

    fn due(&self) -> Option<Instant> {
        let files = self.files.as_ref()?;
        [files.rows.due(), files.faults.due()]
            .into_iter()
            .flatten()
            .min()
    }

    async fn tend(&mut self) {
        let tended = self.blocking(|files| {
            let now = Instant::now();
            files.rows.close_if(|due| due <= now);
            files.faults.close_if(|due| due <= now);
            Ok(())
        });
        drop(tended.await);
    }

    async fn close(&mut self) {
        let closed = self.blocking(|files| {
            files.rows.close_if(|_| true);
            files.faults.close_if(|_| true);
            Ok(())
        });
        drop(closed.await);
    }
}

impl fmt::Debug for FileSink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let directory: &Path = &self.directory;
        f.debug_tuple("FileSink").field(&directory).finish()
    }
}
