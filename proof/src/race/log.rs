//! The log of a worker: one line of JSON per call.

use super::call::Call;
use anyhow::Context;
use std::fs::File;
use std::io::{BufRead, BufReader, BufWriter, Write};
use std::path::Path;
use std::sync::Mutex;

/// Where a worker writes its calls down.
#[derive(Debug)]
pub(super) struct Log {
    file: Mutex<BufWriter<File>>,
}

// === impl Log ===

impl Log {
    pub(super) fn create(path: &Path) -> anyhow::Result<Self> {
        let file = File::create(path).context("cannot make a log of calls")?;
        Ok(Self {
            file: Mutex::new(BufWriter::new(file)),
        })
    }

    pub(super) fn write(&self, call: &Call) -> anyhow::Result<()> {
        let mut line = serde_json::to_vec(call)?;
        line.push(b'\n');
        let mut file = self.file.lock().expect("no holder of this lock panics");
        file.write_all(&line).context("cannot log a call")
    }

    pub(super) fn close(&self) -> anyhow::Result<()> {
        let mut file = self.file.lock().expect("no holder of this lock panics");
        file.flush().context("cannot log the last calls")
    }
}

/// Reads what a worker wrote.
pub(super) fn read(path: &Path) -> anyhow::Result<Vec<Call>> {
    let file = File::open(path).with_context(|| format!("no log {}", path.display()))?;
    BufReader::new(file)
        .lines()
        .map(|line| Ok(serde_json::from_str(&line?)?))
        .collect()
}
