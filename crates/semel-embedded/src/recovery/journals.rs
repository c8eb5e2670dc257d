//! The journals of a closed directory: whether every group that somebody was promised is there.

use super::batch::{self, Batch};
use super::{Frontier, read_error};
use crate::failure::{corrupt, unavailable};
use semel::Error;
use std::fs::{File, OpenOptions};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

/// How far the engine's numbers of two neighbouring groups lie apart at the most. The engine uses up
/// a few for its own housekeeping; more is a flipped bit.
const SEQUENCE_GAP_MAX: u64 = 1 << 20;

/// How much of a journal is read at once.
const READ_BYTES: usize = 256 * 1024;

/// The end of a batch may be zeros itself, but far fewer than these.
const ZEROS_KEPT: usize = 4_096;

/// What a directory was found to hold.
#[derive(Debug)]
pub(crate) struct Verified {
    pub(crate) journals: Journals,
    /// The torn tail, still there.
    tail: Option<Tail>,
}

/// The groups of all journals: numbered without a gap, their sequence numbers rising.
#[derive(Debug, Default)]
pub(crate) struct Journals {
    first_group: u64,
    sequences: Vec<u64>,
}

/// The newest group in the engine's tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Flushed {
    pub(crate) sequence: u64,
    pub(crate) group: u64,
}

#[derive(Debug)]
struct Tail {
    journal: PathBuf,
    from: u64,
}

/// Verifies every batch of every journal.
pub(super) fn verify(data: &Path, frontier: &Frontier) -> Result<Verified, Error> {
    let numbered = numbered(data)?;
    let (oldest, newest) = (numbered.first(), numbered.last());
    let from = oldest.map_or(frontier.journal(), |(number, _)| *number);
    let to = newest.map_or(from, |(number, _)| (*number).max(frontier.journal()));
    let mut journals = Journals::default();
    let mut tail = None;
    for number in from..=to {
        let path = path(data, number);
        let bytes = read_journal(&path).map_err(|error| read_error(&path, error))?;
        let sound = journals.take_batches(&bytes);
        let rest = bytes.get(sound..).unwrap_or_default();
        let written = without_trailing_zeros(rest);
        let is_newest = number == to;
        if !written.is_empty() {
            journals
                .judge_tail(written, is_newest, frontier)
                .map_err(|how| {
                    corrupt(path.display(), format!("is damaged at byte {sound}: {how}"))
                })?;
        }
        if is_newest {
            journals.reach(frontier, &path)?;
            tail = (!rest.is_empty()).then_some(Tail {
                journal: path,
                from: sound as u64,
            });
        }
    }
    Ok(Verified { journals, tail })
}

/// The journals of a directory, oldest first.
pub(super) fn numbered(data: &Path) -> Result<Vec<(u64, PathBuf)>, Error> {
    let listing = || -> std::io::Result<Vec<_>> {
        let mut found = Vec::new();
        for file in std::fs::read_dir(data)? {
            let path = file?.path();
            if path.extension().is_some_and(|extension| extension == "jnl") {
                let number = path
                    .file_stem()
                    .and_then(|stem| stem.to_str()?.parse().ok());
                found.extend(number.map(|number: u64| (number, path)));
            }
        }
        found.sort_unstable();
        Ok(found)
    };
    listing().map_err(|error| unavailable("list", data, error))
}

/// Where the engine keeps its `number`th journal.
pub(super) fn path(data: &Path, number: u64) -> PathBuf {
    data.join(format!("{number}.jnl"))
}

/// Reads a journal, but few of the zeros at its end. The engine preallocates 64 MiB, which nobody
/// should have in memory at every start.
fn read_journal(path: &Path) -> io::Result<Vec<u8>> {
    let mut file = File::open(path)?;
    let mut piece = vec![0; READ_BYTES];
    let (mut bytes, mut zeros) = (Vec::new(), 0);
    loop {
        let read = file.read(&mut piece)?;
        let piece = piece.get(..read).unwrap_or_default();
        if piece.is_empty() {
            bytes.resize(bytes.len() + zeros.min(ZEROS_KEPT), 0);
            return Ok(bytes);
        }
        let written = without_trailing_zeros(piece);
        if !written.is_empty() {
            bytes.resize(bytes.len() + zeros, 0);
            bytes.extend_from_slice(written);
            zeros = 0;
        }
        zeros += piece.len() - written.len();
    }
}

/// The engine preallocates its journals: most of a young one is zeros.
fn without_trailing_zeros(mut bytes: &[u8]) -> &[u8] {
    const ZEROS: &[u8] = &[0; 4_096];
    while let Some(rest) = bytes.strip_suffix(ZEROS) {
        bytes = rest;
    }
    let end = bytes.iter().rposition(|byte| *byte != 0);
    end.map_or(&[], |at| bytes.get(..=at).unwrap_or_default())
}

// === impl Verified ===

impl Verified {
    /// Cuts what a crash left behind the last whole group. The engine would cut some of it
    /// itself, and stumble over the rest.
    pub(crate) fn cut_tail(&self) -> Result<(), Error> {
        let Some(Tail { journal, from }) = &self.tail else {
            return Ok(());
        };
        let cut = || {
            let file = OpenOptions::new().write(true).open(journal)?;
            file.set_len(*from)?;
            file.sync_all()
        };
        cut().map_err(|error| unavailable("cut the torn tail of", journal, error))
    }
}

// === impl Journals ===

impl Journals {
    /// The last group, if there is any.
    fn last_group(&self) -> Option<u64> {
        let groups = self.sequences.len() as u64;
        (groups > 0).then(|| self.first_group + groups - 1)
    }

    /// Takes one sound batch after the other; how many bytes they have together.
    fn take_batches(&mut self, bytes: &[u8]) -> usize {
        let mut at = 0;
        while let Some(batch) = bytes.get(at..).and_then(batch::read) {
            if !self.is_next(&batch) {
                break;
            }
            if self.sequences.is_empty() {
                self.first_group = batch.group;
            }
            self.sequences.push(batch.sequence);
            at += batch.bytes;
        }
        at
    }

    fn is_next(&self, batch: &Batch) -> bool {
        let Some(last) = self.last_group() else {
            return true;
        };
        let before = self.sequences.last().copied().unwrap_or_default();
        let gap = batch.sequence.saturating_sub(before);
        batch.group == last + 1 && (1..=SEQUENCE_GAP_MAX).contains(&gap)
    }

    /// What is behind the last sound batch: a torn tail that was never on disk, or damage. A crash
    /// may leave sound batches behind a hole, but none of them can know the hole to be on disk.
    fn judge_tail(
        &self,
        rest: &[u8],
        is_newest: bool,
        frontier: &Frontier,
    ) -> Result<(), &'static str> {
        if !is_newest {
            return Err("a batch is unsound, and later journals exist");
        }
        let last = self.last_group().unwrap_or(0);
        if frontier.group() > last {
            return Err("a batch is unsound that was on disk");
        }
        if batch::search(rest).any(|batch| batch.synced > last) {
            return Err("a batch is unsound, and later ones say that it was on disk");
        }
        Ok(())
    }

    /// Whether the newest journal goes as far as the frontier says.
    fn reach(&self, frontier: &Frontier, newest: &Path) -> Result<(), Error> {
        match self.last_group() {
            Some(last) if last < frontier.group() => Err(corrupt(
                newest.display(),
                "ends before the last group that was on disk",
            )),
            Some(_) | None => Ok(()),
        }
    }

    /// Whether tables and journals together hold every group up to `head`, the one that the open
    /// engine shows.
    pub(crate) fn join(
        &self,
        flushed: Option<Flushed>,
        head: u64,
        frontier: &Frontier,
    ) -> Result<(), String> {
        let in_tables = flushed.map_or(0, |flushed| flushed.group);
        let last = self.last_group().unwrap_or(0).max(in_tables);
        if self.last_group().is_some() && in_tables + 1 < self.first_group {
            let missing = (in_tables + 1, self.first_group - 1);
            return Err(format!(
                "lacks the journal with groups {} to {}",
                missing.0, missing.1
            ));
        }
        if let Some(flushed) = flushed {
            self.meets(flushed)?;
        }
        if head != last || head < frontier.group() {
            let known = last.max(frontier.group());
            return Err(format!(
                "should end with group {known}, but ends with group {head}"
            ));
        }
        Ok(())
    }

    /// The engine skips what its sequence number says to be in tables already; so the number of
    /// the newest group there must be the one its journal gives it.
    fn meets(&self, flushed: Flushed) -> Result<(), String> {
        let in_order = match flushed.group.checked_sub(self.first_group) {
            _ if self.sequences.is_empty() => true,
            None => self.sequences.first() > Some(&flushed.sequence),
            Some(place) => match usize::try_from(place)
                .ok()
                .and_then(|at| self.sequences.get(at))
            {
                Some(sequence) => *sequence == flushed.sequence,
                None => self.sequences.last() < Some(&flushed.sequence),
            },
        };
        if in_order {
            return Ok(());
        }
        Err(format!(
            "has a journal whose sequence numbers are wrong around group {}",
            flushed.group
        ))
    }
}
