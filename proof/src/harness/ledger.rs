//! Ledgers: an append-only file of JSON lines per process, outside the system under test. What write(2) has taken, a
//! SIGKILL cannot take back.

use super::injected::ProcessFault;
use anyhow::Context;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Something that happened in a process, as a line of its ledger.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Event {
    /// A delivery arrived at the process.
    Received { delivery: u64, work: WorkId },
    /// An effect was given a lease and is about to begin.
    Begun(Attempt),
    /// An effect happened: this line is the effect.
    Effect {
        attempt: Attempt,
        /// Of the whole work, or of its step.
        part: EffectPart,
        /// Drawn for this one execution.
        nonce: String,
    },
    /// The process reached the point where a fault was armed.
    PointHit { point: String, fault: ProcessFault },
    /// The connection was cut under this delivery, after its effect.
    Cut { delivery: u64 },
    /// A gate lost the handler under this delivery, and says that its end is in doubt.
    Doubted {
        delivery: u64,
        /// When, in µs since 1970.
        at: u64,
    },
    /// The handler was asked, under this fence, what became of the runs before, and says this.
    Probed {
        work: WorkId,
        fence: u64,
        status: u16,
    },
    /// The processor was elsewhere, or the store did not answer, for a good part of a lease.
    Stalled,
    /// The delivery is answered.
    Answered { delivery: u64 },
}

/// One run of a piece of work, as its effect knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) struct Attempt {
    /// The delivery that runs it.
    pub(crate) delivery: u64,
    pub(crate) work: WorkId,
    pub(crate) fence: u64,
    pub(crate) attempt: u32,
}

/// One piece of work, by number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub(crate) struct WorkId(pub u32);

/// What an effect is an effect of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub(crate) enum EffectPart {
    Work,
    Step,
}

/// Where a process writes.
#[derive(Clone, Debug)]
pub(crate) struct Ledger {
    file: Arc<File>,
}

// === impl Ledger ===

impl Ledger {
    /// Where a process keeps its ledger.
    pub(crate) fn path(dir: &Path, process: u32) -> PathBuf {
        dir.join(format!("{process}.ledger"))
    }

    /// Opens the ledger of a process.
    pub(crate) fn open(dir: &Path, process: u32) -> anyhow::Result<Self> {
        let path = Self::path(dir, process);
        let file = OpenOptions::new().append(true).create(true).open(&path);
        let file = file.with_context(|| format!("cannot open the ledger {}", path.display()))?;
        Ok(Self {
            file: Arc::new(file),
        })
    }

    /// Appends a line, in one write.
    pub(crate) fn write<T: Serialize>(&self, line: &T) {
        let mut text = serde_json::to_vec(line).expect("a line is plain data");
        text.push(b'\n');
        let written = (&*self.file).write(&text).expect("the ledger takes a line");
        assert_eq!(written, text.len(), "the ledger takes a whole line");
    }

    /// Reads what a process wrote so far.
    pub(crate) fn read<T: DeserializeOwned>(dir: &Path, process: u32) -> anyhow::Result<Vec<T>> {
        let path = Self::path(dir, process);
        let text = match std::fs::read_to_string(&path) {
            Ok(text) => text,
            // It died before it opened its ledger.
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => String::new(),
            Err(error) => return Err(error).context("cannot read a ledger"),
        };
        // A SIGKILL can cut the line that is being written: that one did not happen.
        let whole = text.rfind('\n').map_or("", |end| &text[..end]);
        let lines = whole.lines().map(serde_json::from_str);
        lines
            .collect::<Result<_, _>>()
            .with_context(|| format!("{} has a line that is not one", path.display()))
    }
}

/// The deliveries that were received and not answered by the end of these events.
pub(crate) fn in_flight(events: &[Event]) -> BTreeSet<u64> {
    let mut open = BTreeSet::new();
    for event in events {
        if let Event::Received { delivery, .. } = event {
            open.insert(*delivery);
        }
        if let Event::Answered { delivery } = event {
            open.remove(delivery);
        }
    }
    open
}

// === impl WorkId ===

impl WorkId {
    /// Every second piece of work does a part of itself as a step.
    pub(crate) const fn has_step(self) -> bool {
        self.0 % 2 == 1
    }
}
