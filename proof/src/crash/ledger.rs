//! The ledger: an append-only file per worker process, outside the system under test. What write(2) has taken, a
//! SIGKILL cannot take back.

use super::case::WorkId;
use super::message::ArmedPoint;
use super::point::ProcessFault;
use anyhow::Context;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::Path;
use std::sync::Arc;

/// One line of the ledger.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Line {
    /// A delivery arrived at the worker.
    Received {
        /// Which.
        delivery: u64,
        /// Of what.
        work: WorkId,
    },
    /// An effect was given a lease and is about to begin.
    Begun(Attempt),
    /// An effect happened: this line is the effect.
    Effect {
        /// Under which lease.
        attempt: Attempt,
        /// Of the whole work, or of its step.
        part: EffectPart,
        /// Drawn for this one execution.
        nonce: String,
        /// When, in µs since 1970.
        at: u64,
    },
    /// The worker reached the point where its fault waits.
    FaultHit(ArmedPoint),
    /// A process reached the point where its fault waits, by the point's word.
    PointHit {
        /// Where.
        point: String,
        /// What.
        fault: ProcessFault,
    },
    /// The connection was cut under this delivery, after its effect.
    Cut {
        /// Which.
        delivery: u64,
    },
    /// A gate lost the handler under this delivery, and says that its end is in doubt.
    Doubted {
        /// Which.
        delivery: u64,
        /// When, in µs since 1970.
        at: u64,
    },
    /// The processor was elsewhere, or the store did not answer, for a good part of a lease.
    Stalled {
        /// For how long.
        ms: u64,
    },
    /// The delivery is answered.
    Answered {
        /// Which.
        delivery: u64,
    },
}

/// One run of a piece of work, as its effect knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Attempt {
    /// The delivery that runs it.
    pub delivery: u64,
    /// The work.
    pub work: WorkId,
    /// Its fence.
    pub fence: u64,
    /// Which attempt it is.
    pub attempt: u32,
}

/// What an effect is an effect of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum EffectPart {
    /// The work.
    Work,
    /// Its step.
    Step,
}

/// Where a worker writes.
#[derive(Clone, Debug)]
pub struct Ledger {
    file: Arc<File>,
}

// === impl Ledger ===

impl Ledger {
    /// Opens a worker's file.
    ///
    /// # Errors
    /// When it cannot be made.
    pub fn open(path: &Path) -> anyhow::Result<Self> {
        let file = OpenOptions::new()
            .append(true)
            .create(true)
            .open(path)
            .with_context(|| format!("cannot open the ledger {}", path.display()))?;
        Ok(Self {
            file: Arc::new(file),
        })
    }

    /// Appends a line, in one write.
    ///
    /// # Panics
    /// When the disk refuses it: a ledger with gaps proves nothing.
    pub fn write(&self, line: &Line) {
        let mut text = serde_json::to_vec(line).expect("a line is plain data");
        text.push(b'\n');
        let written = (&*self.file).write(&text).expect("the ledger takes a line");
        assert_eq!(written, text.len(), "the ledger takes a whole line");
    }
}

/// The deliveries that were received and not answered by the end of these lines.
pub(crate) fn open(lines: &[Line]) -> BTreeSet<u64> {
    let mut open = BTreeSet::new();
    for line in lines {
        match line {
            Line::Received { delivery, .. } => {
                open.insert(*delivery);
            }
            Line::Answered { delivery } => {
                open.remove(delivery);
            }
            Line::Begun(_)
            | Line::Effect { .. }
            | Line::FaultHit(_)
            | Line::PointHit { .. }
            | Line::Cut { .. }
            | Line::Doubted { .. }
            | Line::Stalled { .. } => {}
        }
    }
    open
}

/// Reads what a worker wrote so far.
///
/// # Errors
/// When the file cannot be read, or a line is none.
pub(crate) fn read(path: &Path) -> anyhow::Result<Vec<Line>> {
    let text = match std::fs::read_to_string(path) {
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
        .with_context(|| format!("{} has a line that is none", path.display()))
}
