//! What processes print is kept in files, and kept small: a handler that prints without end fills no disk.

use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;
use tokio::task::JoinHandle;

/// A log that is larger loses its beginning.
const LOG_BYTES_MAX: u64 = 4 << 20;
/// As much of its end is kept, and shown at most.
const TAIL_BYTES: u64 = 64 << 10;
const LOOK: Duration = Duration::from_millis(200);

/// Looks after the logs of one world, until it is dropped.
#[derive(Debug)]
pub(super) struct LogKeeper(JoinHandle<()>);

// === impl LogKeeper ===

impl LogKeeper {
    pub(super) fn start(home: &Path) -> Self {
        let home = home.to_owned();
        Self(tokio::spawn(async move {
            loop {
                tokio::time::sleep(LOOK).await;
                for log in logs(&home) {
                    // One that is gone needs no keeping.
                    cap(&log).ok();
                }
            }
        }))
    }
}

impl Drop for LogKeeper {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// The end of a log.
pub(super) fn tail(path: &Path) -> String {
    let tail = read_tail(path).unwrap_or_default();
    String::from_utf8_lossy(&tail).into_owned()
}

fn logs(home: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(home).into_iter().flatten();
    let paths = entries.filter_map(|entry| Some(entry.ok()?.path()));
    paths
        .filter(|path| path.extension().is_some_and(|it| it == "log"))
        .collect()
}

/// Who prints appends, so it goes on behind what is left.
fn cap(path: &Path) -> io::Result<()> {
    if fs::metadata(path)?.len() <= LOG_BYTES_MAX {
        return Ok(());
    }
    let tail = read_tail(path)?;
    let mut log = File::options().append(true).open(path)?;
    log.set_len(0)?;
    log.write_all(&tail)
}

fn read_tail(path: &Path) -> io::Result<Vec<u8>> {
    let mut log = File::open(path)?;
    let skipped = log.metadata()?.len().saturating_sub(TAIL_BYTES);
    log.seek(SeekFrom::Start(skipped))?;
    let mut tail = Vec::new();
    log.take(TAIL_BYTES).read_to_end(&mut tail)?;
    Ok(tail)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_log_keeps_its_end() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("handler.log");
        let lines = "a line of a log\n".repeat(400_000);
        fs::write(&path, lines + "the end\n").unwrap();
        assert_eq!(logs(dir.path()), [path.as_path()]);
        cap(&path).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().len(), TAIL_BYTES);
        assert!(tail(&path).ends_with("the end\n"));
        cap(&path).unwrap();
        assert!(tail(&path).ends_with("the end\n"));
    }
}
