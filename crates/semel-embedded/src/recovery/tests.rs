//! Journals that a real store wrote, damaged in every place.

use super::journals::{self, Flushed, Journals};
use super::{Frontier, batch};
use crate::{EmbeddedSettings, EmbeddedStore};
use bytes::Bytes;
use semel::protocol::{Claim, Claimed};
use semel::store::StoreExt;
use semel::{Error, Fingerprint, Key};
use std::path::{Path, PathBuf};
use std::time::Duration;
use tempfile::TempDir;

/// A closed store, and where the groups of its journal begin and end.
struct Closed {
    _home: TempDir,
    data: PathBuf,
    journal: Vec<u8>,
    ends: Vec<usize>,
}

// === impl Closed ===

impl Closed {
    /// A store that settled three keys: six groups.
    async fn new() -> Self {
        let home = tempfile::tempdir().unwrap();
        let directory = home.path().join("store");
        let store = EmbeddedStore::open(&directory, EmbeddedSettings::default()).unwrap();
        for n in 0..3 {
            settle(&store, n).await;
        }
        drop(store);
        let data = directory.join("data");
        let bytes = std::fs::read(journals::path(&data, 0)).unwrap();
        let mut ends = Vec::new();
        while let Some(batch) = batch::read(&bytes[ends.last().copied().unwrap_or(0)..]) {
            ends.push(ends.last().copied().unwrap_or(0) + batch.bytes);
        }
        assert_eq!(ends.len(), 6);
        Self {
            _home: home,
            data,
            journal: bytes[..ends[5]].to_vec(),
            ends,
        }
    }

    fn put(&self, number: u64, bytes: &[u8]) {
        std::fs::write(journals::path(&self.data, number), bytes).unwrap();
    }

    fn remove(&self, number: u64) {
        std::fs::remove_file(journals::path(&self.data, number)).unwrap();
    }

    fn verify(&self) -> Result<Journals, Error> {
        let frontier = Frontier::open(&self.data).unwrap();
        journals::verify(&self.data, &frontier).map(|verified| verified.journals)
    }

    /// Spreads the groups over three journals, as if the engine had gone on twice.
    fn spread(&self) {
        self.put(0, &self.journal[..self.ends[1]]);
        self.put(1, &self.journal[self.ends[1]..self.ends[3]]);
        self.put(2, &self.journal[self.ends[3]..]);
        let mut frontier = Frontier::open(&self.data).unwrap();
        frontier.reached(2, 6).unwrap();
    }
}

async fn settle(store: &EmbeddedStore, n: u8) {
    let claim = Claim {
        lease: Duration::from_secs(1),
        retention: Duration::from_secs(1),
        ..Claim::new(Key::from_bytes([n; 32]), Fingerprint::off())
    };
    let Ok(Claimed::Granted(lease)) = store.claim(&claim).await else {
        panic!("not granted");
    };
    let done = Bytes::from_static(b"done");
    let held = store.complete(&lease, &done, Duration::from_secs(1)).await;
    assert!(held.is_ok());
}

#[track_caller]
fn names(found: Result<Journals, Error>, path: &Path) {
    let Err(Error::Corrupt(why)) = found else {
        panic!("{found:?} should have refused {}", path.display());
    };
    assert!(why.contains(&*path.to_string_lossy()), "{why}");
}

#[tokio::test]
async fn a_flipped_bit_anywhere_in_the_journal_is_refused_or_changes_nothing() {
    let closed = Closed::new().await;
    let path = journals::path(&closed.data, 0);
    let mut harmless = 0;
    for at in 0..closed.journal.len() {
        let bit = at % 8;
        let mut bytes = closed.journal.clone();
        bytes[at] ^= 1 << bit;
        closed.put(0, &bytes);
        match closed.verify() {
            Err(error) => names(Err(error), &path),
            Ok(found) => {
                // The number that the engine gave a batch, changed so that the order stays.
                let starts = closed.ends.iter().map(|end| end + 5).chain([5]);
                let mut numbers = starts.map(|start| start..start + 8);
                assert!(
                    numbers.any(|number| number.contains(&at)),
                    "byte {at} bit {bit}"
                );
                let frontier = Frontier::open(&closed.data).unwrap();
                assert_eq!(found.join(None, 6, &frontier), Ok(()));
                harmless += 1;
            }
        }
    }
    assert!(harmless < 6 * 8, "{harmless}");
}

#[tokio::test]
async fn a_journal_that_ends_early_is_refused() {
    let closed = Closed::new().await;
    let path = journals::path(&closed.data, 0);
    for length in 0..closed.journal.len() {
        closed.put(0, &closed.journal[..length]);
        match closed.verify() {
            Err(error) => names(Err(error), &path),
            // Without any group it could be a new one; what the tables hold decides.
            Ok(found) => {
                assert_eq!(length, 0);
                let frontier = Frontier::open(&closed.data).unwrap();
                assert!(found.join(None, 0, &frontier).is_err());
            }
        }
    }
}

#[tokio::test]
async fn groups_may_be_spread_over_journals_but_none_may_be_missing() {
    let closed = Closed::new().await;
    closed.spread();
    let frontier = Frontier::open(&closed.data).unwrap();
    assert_eq!(closed.verify().unwrap().join(None, 6, &frontier), Ok(()));

    closed.remove(1);
    names(closed.verify(), &journals::path(&closed.data, 1));
    closed.spread();
    closed.remove(2);
    names(closed.verify(), &journals::path(&closed.data, 2));
    closed.spread();
    closed.put(1, &closed.journal[closed.ends[1]..closed.ends[3] - 1]);
    names(closed.verify(), &journals::path(&closed.data, 1));
    closed.put(1, &closed.journal[closed.ends[1]..closed.ends[2]]);
    assert!(closed.verify().is_err());
}

#[tokio::test]
async fn the_oldest_journal_may_be_missing_only_when_its_groups_are_in_tables() {
    let closed = Closed::new().await;
    closed.spread();
    let sequence = |group: usize| {
        let start = if group == 1 {
            0
        } else {
            closed.ends[group - 2]
        };
        batch::read(&closed.journal[start..]).unwrap().sequence
    };
    closed.remove(0);
    let frontier = Frontier::open(&closed.data).unwrap();
    let found = closed.verify().unwrap();
    let flushed = |group: u64, sequence| Some(Flushed { sequence, group });
    assert!(found.join(None, 6, &frontier).is_err());
    assert!(found.join(flushed(1, sequence(1)), 6, &frontier).is_err());
    assert_eq!(found.join(flushed(2, sequence(2)), 6, &frontier), Ok(()));
    assert_eq!(found.join(flushed(4, sequence(4)), 6, &frontier), Ok(()));
    // The engine would skip the fifth group, or replay the fourth one late.
    assert!(found.join(flushed(4, sequence(5)), 6, &frontier).is_err());
    assert!(found.join(flushed(2, sequence(3)), 6, &frontier).is_err());
    assert!(found.join(flushed(4, sequence(4)), 5, &frontier).is_err());
}
