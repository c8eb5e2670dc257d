//! In-process single-flight and the settled cache: a duplicate that meets its twin in this process
//! needs no store.

use crate::Key;
use crate::record::Ending;
use crate::run::Ended;
use crate::store::Error;
use crate::work::Work;
use crate::{Fingerprint, Outcome};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::Instant;

/// How long a key is not remembered again after an operator acted on it: longer than the moment
/// between a store's answer and its being remembered, so that an answer from before the act cannot
/// come back.
const BARRED_FOR: Duration = Duration::from_secs(1);

/// What a remembered outcome costs beside its text: its place in a table, and the allocations of the
/// outcome and its headers.
const REMEMBERED_BYTES: usize = 768;

/// What a run came to, as it was recorded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recorded {
    /// Success or final failure.
    pub ending: Ending,
    /// The outcome.
    pub outcome: Outcome,
}

/// The runs under way in this process, by key.
#[derive(Debug, Default)]
pub(crate) struct SingleFlight {
    by_key: Mutex<HashMap<Key, Flight>>,
}

#[derive(Debug)]
struct Flight {
    fingerprint: Fingerprint,
    completion: Arc<Completion>,
}

type Completion = watch::Sender<Option<Result<Ended, Error>>>;

/// How a delivery met the runs under way.
pub(crate) enum Joined {
    /// Nobody else in this process runs it.
    Leader(Leader),
    /// Somebody is; this is how it ends.
    Follower(Follower),
    /// Somebody is, with another payload.
    Mismatched,
    /// As many wait for it as may.
    Full,
}

/// A delivery that waits for the leader's end.
pub(crate) struct Follower(watch::Receiver<Option<Result<Ended, Error>>>);

/// The delivery that runs the work. Dropping it ends the flight, so that nobody waits for ever.
pub(crate) struct Leader {
    single_flight: Arc<SingleFlight>,
    key: Key,
    completion: Arc<Completion>,
}

/// A bounded memory of settled outcomes, in two generations: what is used moves to the young one,
/// and the old one goes as a whole when the young one is full.
#[derive(Debug)]
pub(crate) struct SettledCache {
    entries_max: usize,
    bytes_max: usize,
    kept: Mutex<Generations>,
}

#[derive(Debug, Default)]
struct Generations {
    young: HashMap<Key, CacheEntry>,
    young_bytes: usize,
    old: HashMap<Key, CacheEntry>,
    barred: HashMap<Key, Instant>,
}

#[derive(Clone, Debug)]
struct CacheEntry {
    fingerprint: Fingerprint,
    recorded: Arc<Recorded>,
    until: Instant,
}

// === impl SingleFlight ===

impl SingleFlight {
    /// Becomes the leader of this key, or the follower of whoever is.
    pub(crate) fn join(self: &Arc<Self>, work: &Work, waiters_max: usize) -> Joined {
        let mut by_key = self.lock();
        let Some(flight) = by_key.get(&work.key) else {
            let completion = Arc::new(watch::Sender::new(None));
            let flight = Flight {
                fingerprint: work.fingerprint,
                completion: Arc::clone(&completion),
            };
            by_key.insert(work.key, flight);
            return Joined::Leader(Leader {
                single_flight: Arc::clone(self),
                key: work.key,
                completion,
            });
        };
        if flight.fingerprint != work.fingerprint {
            return Joined::Mismatched;
        }
        if flight.completion.receiver_count() >= waiters_max {
            return Joined::Full;
        }
        Joined::Follower(Follower(flight.completion.subscribe()))
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Key, Flight>> {
        self.by_key.lock().expect("no holder of this lock panics")
    }
}

// === impl Leader ===

impl Leader {
    /// Tells everyone attached how it went.
    pub(crate) fn finish(self, how: &Result<Ended, Error>) {
        self.completion.send_replace(Some(how.clone()));
    }
}

impl Drop for Leader {
    fn drop(&mut self) {
        self.single_flight.lock().remove(&self.key);
        self.completion.send_if_modified(|finished| {
            let lost = finished.is_none();
            if lost {
                let why = "the run that this delivery waited for ended without a word";
                *finished = Some(Err(Error::Bug(why.into())));
            }
            lost
        });
    }
}

// === impl Follower ===

impl Follower {
    /// Waits for the completion; `None` when patience runs out first.
    pub(crate) async fn wait(mut self, patience: Duration) -> Option<Result<Ended, Error>> {
        let finished = tokio::time::timeout(patience, self.0.wait_for(Option::is_some)).await;
        finished.ok()?.ok()?.clone()
    }
}

// === impl SettledCache ===

impl SettledCache {
    pub(crate) fn new(entries_max: usize, bytes_max: usize) -> Self {
        Self {
            entries_max,
            bytes_max,
            kept: Mutex::default(),
        }
    }

    /// What was recorded for this work, unless it was long ago or for another payload.
    pub(crate) fn get(&self, work: &Work) -> Option<Arc<Recorded>> {
        let mut kept = self.lock();
        let found = kept.find(&work.key)?;
        let fresh = found.until > Instant::now() && found.fingerprint == work.fingerprint;
        fresh.then_some(found.recorded)
    }

    /// Remembers an outcome for a while.
    pub(crate) fn put(&self, work: &Work, recorded: &Arc<Recorded>, keep: Duration) {
        if keep.is_zero() {
            return;
        }
        let until = Instant::now() + keep;
        let recorded = Arc::clone(recorded);
        let entry = CacheEntry {
            fingerprint: work.fingerprint,
            recorded,
            until,
        };
        let mut kept = self.lock();
        if kept.is_barred(&work.key) {
            return;
        }
        kept.young_bytes += entry.bytes();
        kept.young.insert(work.key, entry);
        if kept.young.len() * 2 > self.entries_max || kept.young_bytes * 2 > self.bytes_max {
            kept.age();
        }
    }

    /// Forgets a key, because an operator acted on it.
    pub(crate) fn drop_key(&self, key: &Key) {
        let mut kept = self.lock();
        kept.young.remove(key);
        kept.old.remove(key);
        let now = Instant::now();
        kept.barred.retain(|_, until| *until > now);
        kept.barred.insert(*key, now + BARRED_FOR);
    }

    fn lock(&self) -> MutexGuard<'_, Generations> {
        self.kept.lock().expect("no holder of this lock panics")
    }
}

// === impl Generations ===

impl Generations {
    fn find(&mut self, key: &Key) -> Option<CacheEntry> {
        if let Some(found) = self.young.get(key) {
            return Some(found.clone());
        }
        let found = self.old.remove(key)?;
        self.young_bytes += found.bytes();
        self.young.insert(*key, found.clone());
        Some(found)
    }

    fn is_barred(&self, key: &Key) -> bool {
        self.barred
            .get(key)
            .is_some_and(|until| *until > Instant::now())
    }

    fn age(&mut self) {
        self.old = std::mem::take(&mut self.young);
        self.young_bytes = 0;
    }
}

impl CacheEntry {
    fn bytes(&self) -> usize {
        let headers = self.recorded.outcome.headers.iter();
        let header_bytes: usize = headers
            .map(|(name, values)| name.len() + values.iter().map(String::len).sum::<usize>())
            .sum();
        REMEMBERED_BYTES + self.recorded.outcome.body_bytes().len() + header_bytes
    }
}
