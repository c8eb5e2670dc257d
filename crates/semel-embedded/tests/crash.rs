//! kill -9: a child process claims and completes and says what it was told; it is killed in the
//! middle of that, and everything it was told must be true of the directory.
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a test, whose child speaks on its standard output"
)]

mod common;

use common::{RETENTION, claim, granted, is_replayed, letter, open, place, result, settle};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use semel::Error;
use semel::protocol::{Claim, Claimed, InDoubt};
use semel::store::{Letters, StoreExt};
use semel_embedded::EmbeddedStore;
use std::collections::BTreeSet;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// How often a child is killed.
const KILLS: u64 = 20;

/// How often a child is killed while it creates its store.
const CREATIONS: u64 = 8;

/// How many keys a child may use.
const KEYS_PER_CHILD: u64 = 1_000_000;

/// How many runs a child has in hand.
const RUNS: u64 = 16;

/// How many words a child gets to say before it is killed, at the most.
const WORDS_MAX: usize = 600;

/// What a child said before it died.
#[derive(Debug, Default)]
struct Said {
    granted: BTreeSet<u64>,
    completed: BTreeSet<u64>,
    kept: BTreeSet<u64>,
}

fn main() {
    let arguments: Vec<_> = std::env::args().collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [_, "child", directory, first_key] => child(directory, first_key.parse().unwrap()),
        _ => {
            nothing_acknowledged_is_lost();
            a_creation_that_is_killed_can_be_repeated();
            println!("crash: ok, {KILLS} kills");
        }
    }
}

fn nothing_acknowledged_is_lost() {
    let (_home, directory) = place();
    let mut random = StdRng::seed_from_u64(0xC4A5);
    let mut all = Said::default();
    for round in 0..KILLS {
        let mut said = Said::default();
        let (mut child, words) = spawn(&directory, round * KEYS_PER_CHILD);
        let enough = random.random_range(1..WORDS_MAX);
        for (count, word) in words.lines().enumerate() {
            said.hear(&word.unwrap());
            if count == 0 {
                let refused = open(&directory).map(drop);
                assert!(matches!(refused, Err(Error::Unavailable(_))), "{refused:?}");
            }
            if count == enough {
                // SIGKILL; what it had said by then is still in the pipe, and counts.
                child.kill().unwrap();
            }
        }
        assert!(!child.wait().unwrap().success());
        runtime().block_on(said.must_be_true_of(&directory));
        all.add(said);
    }
    runtime().block_on(all.must_be_true_of(&directory));
    assert!(
        all.completed.len() as u64 > KILLS * 10,
        "the children did not get far"
    );
}

fn a_creation_that_is_killed_can_be_repeated() {
    let mut killed_early = 0;
    for _ in 0..CREATIONS {
        let (_home, directory) = place();
        let (mut child, _words) = spawn(&directory, 0);
        while !directory.join("data.new").exists() && !directory.join("data").exists() {
            std::thread::yield_now();
        }
        child.kill().unwrap();
        child.wait().unwrap();
        killed_early += u64::from(!directory.join("data").exists());
        runtime().block_on(async { settle(&open(&directory).unwrap(), KEYS_PER_CHILD).await });
    }
    assert!(
        killed_early > 0,
        "no child was killed before its store was complete"
    );
}

fn spawn(directory: &Path, first_key: u64) -> (Child, BufReader<ChildStdout>) {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["child", directory.to_str().unwrap(), &first_key.to_string()])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let words = BufReader::new(child.stdout.take().unwrap());
    (child, words)
}

/// Claims, completes and puts letters until it is killed; says each thing once it was told.
fn child(directory: &str, first_key: u64) {
    let store = Arc::new(open(Path::new(directory)).unwrap());
    let next = Arc::new(AtomicU64::new(first_key));
    runtime().block_on(async {
        let mut runs = tokio::task::JoinSet::new();
        for _ in 0..RUNS {
            runs.spawn(run(Arc::clone(&store), Arc::clone(&next)));
        }
        runs.join_all().await;
    });
}

async fn run(store: Arc<EmbeddedStore>, next: Arc<AtomicU64>) {
    loop {
        let n = next.fetch_add(1, Ordering::Relaxed);
        let in_doubt = if n.is_multiple_of(3) {
            InDoubt::Park
        } else {
            InDoubt::Retry
        };
        let claim = Claim {
            in_doubt,
            ..claim(n)
        };
        let lease = granted(n, store.claim(&claim).await);
        println!("granted {n}");
        if n.is_multiple_of(5) {
            assert!(store.put(&letter(n)).await.is_ok());
            println!("kept {n}");
        }
        if !n.is_multiple_of(7) {
            let completed = store.complete(&lease, &result(n), RETENTION).await;
            assert!(completed.is_ok());
            println!("completed {n}");
        }
    }
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Runtime::new().unwrap()
}

// === impl Said ===

impl Said {
    fn hear(&mut self, word: &str) {
        // A line goes into the pipe whole or not at all.
        let (what, n) = word.split_once(' ').unwrap();
        let n = n.parse().unwrap();
        let new = match what {
            "granted" => self.granted.insert(n),
            "completed" => self.completed.insert(n),
            "kept" => self.kept.insert(n),
            other => panic!("{other}"),
        };
        assert!(new, "{word} twice");
    }

    fn add(&mut self, mut other: Self) {
        self.granted.append(&mut other.granted);
        self.completed.append(&mut other.completed);
        self.kept.append(&mut other.kept);
    }

    async fn must_be_true_of(&self, directory: &Path) {
        let store = open(directory).unwrap();
        for n in &self.completed {
            is_replayed(&store, *n).await;
        }
        for n in self.granted.difference(&self.completed) {
            let claimed = store.claim(&claim(*n)).await.unwrap();
            let held = matches!(claimed, Claimed::Busy { .. } | Claimed::Replayed(_));
            assert!(held, "{n} was granted, and then {claimed:?}");
        }
        for n in &self.kept {
            let found = store.get(&letter(*n).id).await.unwrap();
            assert_eq!(found, Some(letter(*n)));
        }
    }
}
