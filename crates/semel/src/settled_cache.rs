//! The settled cache: a duplicate of what this process has seen settled needs no store.

use crate::record::Ending;
use crate::work::Work;
use crate::{Fingerprint, Key, Outcome};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;
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
        let entry = CacheEntry {
            fingerprint: work.fingerprint,
            recorded: Arc::clone(recorded),
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
