//! Damage: whatever happens to a file, no settled key is granted again and no answer is replayed
//! that was not recorded. A torn tail is not damage.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]

mod common;

use common::{claim, grant, is_replayed, key, letter, open, place, result, settle};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use semel::Error;
use semel::letter::Put;
use semel::protocol::{Claimed, State};
use semel::store::{Letters, StoreExt};
use std::fs::{self, File};
use std::io::{Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// How many settled records the damaged directories hold.
const SETTLED: u64 = 120;

/// How many damaged copies are looked at, of each kind.
const FLIPS: usize = 220;
const TRUNCATIONS: usize = 60;

/// A directory with records in tables, in a flushed part of the journal and in the rest of it.
struct Base {
    _home: TempDir,
    directory: PathBuf,
}

// === impl Base ===

impl Base {
    async fn build() -> Self {
        let (home, directory) = place();
        for third in 0..3 {
            let store = open(&directory).unwrap();
            for n in third * SETTLED / 3..(third + 1) * SETTLED / 3 {
                settle(&store, n).await;
            }
            assert_eq!(store.put(&letter(third)).await, Ok(Put::Applied));
            drop(store);
            if third < 2 {
                flush(&directory);
            }
        }
        // Opened once more, so that the journal has lost its preallocated tail.
        drop(open(&directory).unwrap());
        Self {
            _home: home,
            directory,
        }
    }

    /// A fresh copy, in which only the path differs.
    fn copy(&self) -> (TempDir, PathBuf) {
        let (home, directory) = place();
        copy(&self.directory, &directory);
        (home, directory)
    }
}

/// Makes the engine write a table of what is in memory.
fn flush(directory: &Path) {
    let database = fjall::Database::builder(directory.join("data"))
        .open()
        .unwrap();
    let keyspace = database
        .keyspace("semel", fjall::KeyspaceCreateOptions::default)
        .unwrap();
    keyspace.rotate_memtable_and_wait().unwrap();
}

/// Copies files without writing out their trailing zeros.
fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for file in fs::read_dir(from).unwrap() {
        let file = file.unwrap();
        let target = to.join(file.file_name());
        if file.file_type().unwrap().is_dir() {
            copy(&file.path(), &target);
            continue;
        }
        let bytes = fs::read(file.path()).unwrap();
        let end = bytes
            .iter()
            .rposition(|byte| *byte != 0)
            .map_or(0, |at| at + 1);
        let mut target = File::create(target).unwrap();
        target.write_all(&bytes[..end]).unwrap();
        target.set_len(bytes.len() as u64).unwrap();
    }
}

/// All files below a directory that hold anything, by their relative paths.
fn files(directory: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![directory.to_owned()];
    while let Some(folder) = folders.pop() {
        for file in fs::read_dir(folder).unwrap() {
            let file = file.unwrap();
            if file.file_type().unwrap().is_dir() {
                folders.push(file.path());
            } else if file.metadata().unwrap().len() > 0 {
                found.push(file.path().strip_prefix(directory).unwrap().to_owned());
            }
        }
    }
    found.sort();
    found
}

/// The error is about damage, and names the file.
#[track_caller]
fn names(error: &Error, file: &Path, what: &str) {
    let named = error.to_string().contains(&*file.to_string_lossy());
    assert!(
        matches!(error, Error::Corrupt(_)) && named,
        "{what}: {error}"
    );
}

/// Everything in the directory is either as it was written or refused.
async fn judge(directory: &Path, damaged: &Path, what: &str) -> Verdict {
    let file = directory.join(damaged);
    let store = match open(directory) {
        Ok(store) => store,
        Err(error) => {
            names(&error, &file, what);
            return Verdict::RefusedAtOpen;
        }
    };
    let mut verdict = Verdict::Intact;
    for n in 0..SETTLED {
        match store.claim(&claim(n)).await {
            Ok(Claimed::Replayed(settled)) => assert_eq!(settled.result, result(n), "{what}"),
            Ok(other) => panic!("{what}: settled key {n} got {other:?}"),
            Err(error) => {
                names(&error, &file, what);
                verdict = Verdict::RefusedAtRead;
            }
        }
    }
    for n in 0..3 {
        match store.get(&letter(n).id).await {
            Ok(found) => assert_eq!(found, Some(letter(n)), "{what}"),
            Err(error) => names(&error, &file, what),
        }
    }
    verdict
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    Intact,
    RefusedAtRead,
    RefusedAtOpen,
}

#[tokio::test]
async fn no_flipped_byte_leads_to_a_wrong_answer() {
    let base = Base::build().await;
    let files = files(&base.directory);
    let mut random = StdRng::seed_from_u64(0x5E3E1);
    let mut verdicts = Vec::new();
    for round in 0..FLIPS {
        let damaged = &files[round % files.len()];
        let (_home, directory) = base.copy();
        let mut bytes = fs::read(directory.join(damaged)).unwrap();
        let at = random.random_range(0..bytes.len());
        let flip = 1 << random.random_range(0..8);
        bytes[at] ^= flip;
        fs::write(directory.join(damaged), bytes).unwrap();
        let what = format!("{} with byte {at} ^ {flip:#04x}", damaged.display());
        verdicts.push(judge(&directory, damaged, &what).await);
    }
    let count = |verdict| verdicts.iter().filter(|found| **found == verdict).count();
    // The damage was there: most flips are noticed, some only when the block is read.
    assert!(count(Verdict::RefusedAtOpen) > FLIPS / 3, "{verdicts:?}");
    assert!(count(Verdict::RefusedAtRead) > 0, "{verdicts:?}");
}

#[tokio::test]
async fn no_truncated_file_leads_to_a_wrong_answer() {
    let base = Base::build().await;
    let files = files(&base.directory);
    let mut random = StdRng::seed_from_u64(0x7A11);
    for round in 0..TRUNCATIONS {
        let damaged = &files[round % files.len()];
        let (_home, directory) = base.copy();
        let file = to_write(&directory.join(damaged));
        let length = file.metadata().unwrap().len();
        let kept = random.random_range(0..length);
        file.set_len(kept).unwrap();
        let what = format!("{} cut from {length} to {kept}", damaged.display());
        let verdict = judge(&directory, damaged, &what).await;
        let matters = damaged != Path::new("guard");
        assert_eq!(verdict != Verdict::Intact, matters, "{what}");
    }
}

#[tokio::test]
async fn a_missing_file_is_refused_by_its_name() {
    let base = Base::build().await;
    for missing in files(&base.directory) {
        let (_home, directory) = base.copy();
        fs::remove_file(directory.join(&missing)).unwrap();
        let what = format!("{} removed", missing.display());
        let verdict = judge(&directory, &missing, &what).await;
        let matters = missing != Path::new("guard");
        assert_eq!(verdict == Verdict::RefusedAtOpen, matters, "{what}");
    }
}

/// A copy of a store that is killed after it settled keys 0 to 4 and granted keys 5 to 9.
async fn killed() -> (TempDir, PathBuf, Vec<u64>) {
    let (home, directory) = place();
    let store = open(&directory).unwrap();
    let mut ends = Vec::new();
    for n in 0..10 {
        if n < 5 {
            settle(&store, n).await;
        } else {
            grant(&store, n).await;
        }
        ends.push(end(&directory.join("data/0.jnl")));
    }
    let crashed = home.path().join("crashed");
    copy(&directory, &crashed);
    (home, crashed, ends)
}

/// Where the batches of a journal end.
fn end(journal: &Path) -> u64 {
    let bytes = fs::read(journal).unwrap();
    bytes.iter().rposition(|byte| *byte != 0).unwrap() as u64 + 1
}

/// The first five keys are settled; of the others those below `granted` are still held.
async fn is_as_left(directory: &Path, granted: u64) {
    let store = open(directory).unwrap();
    for n in 0..5 {
        is_replayed(&store, n).await;
    }
    for n in 5..10 {
        let record = store.look(&key(n)).await.unwrap();
        let state = record.map(|record| record.state);
        assert_eq!(state, (n < granted).then_some(State::Running), "key {n}");
    }
    settle(&store, 10).await;
    drop(store);
    let store = open(directory).unwrap();
    is_replayed(&store, 10).await;
}

#[tokio::test]
async fn what_a_killed_process_wrote_is_all_there() {
    let (_home, directory, _) = killed().await;
    is_as_left(&directory, 10).await;
}

#[tokio::test]
async fn a_torn_tail_is_cut() {
    let (_home, directory, ends) = killed().await;
    let file = to_write(&directory.join("data/0.jnl"));
    file.set_len(ends[8] + 20).unwrap();
    is_as_left(&directory, 9).await;
}

#[tokio::test]
async fn garbage_behind_the_last_group_is_cut() {
    let (_home, directory, ends) = killed().await;
    let garbage: Vec<u8> = (0..9_000_u32).map(|n| n.to_le_bytes()[0] | 1).collect();
    overwrite(&directory, ends[9], &garbage);
    is_as_left(&directory, 10).await;
}

#[tokio::test]
async fn a_hole_in_what_was_never_synced_is_cut_with_what_follows() {
    let (_home, directory, ends) = killed().await;
    overwrite(&directory, ends[5], &[0; 30]);
    is_as_left(&directory, 6).await;
}

#[tokio::test]
async fn a_hole_in_what_was_synced_is_refused() {
    let (_home, directory, ends) = killed().await;
    let journal = directory.join("data/0.jnl");
    overwrite(&directory, ends[2] + 3, &[0; 30]);
    names(&open(&directory).unwrap_err(), &journal, "a hole");
}

#[tokio::test]
async fn a_hole_is_refused_by_later_groups_even_when_the_frontier_lags_behind() {
    let (_home, directory, ends) = killed().await;
    let journal = directory.join("data/0.jnl");
    // As after a power cut that took the last writes of the frontier.
    let (_new_home, new) = place();
    drop(open(&new).unwrap());
    let frontier = "data/frontier";
    fs::copy(new.join(frontier), directory.join(frontier)).unwrap();
    overwrite(&directory, ends[2] + 3, &[0; 30]);
    names(&open(&directory).unwrap_err(), &journal, "a hole");
}

/// Writes over a part of the journal.
fn overwrite(directory: &Path, from: u64, bytes: &[u8]) {
    let mut file = to_write(&directory.join("data/0.jnl"));
    file.seek(SeekFrom::Start(from)).unwrap();
    file.write_all(bytes).unwrap();
}

fn to_write(path: &Path) -> File {
    File::options().write(true).open(path).unwrap()
}
