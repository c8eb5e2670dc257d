//! Outcomes in hand: what runs came to, until the store has answered, by key.
//!
//! A run that has ended stands here before its first write. Duplicates that reach this process hear
//! it from here and run nothing, a process that goes down can name what it leaves, and while the
//! store denies one of them nothing more is claimed: each further run could end in the same place.

use crate::Fingerprint;
use crate::Key;
use crate::record::{Ending, Fence, Lease, Owner};
use crate::run::Ended;
use crate::store::Error;
use crate::work::Work;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard};
use tokio::sync::Notify;

/// A success or a final failure that the store does not have yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PendingOutcome {
    /// Of which work.
    pub key: Key,
    /// Of which run.
    pub fence: Fence,
    /// Success or final failure.
    pub ending: Ending,
    /// What the effect said.
    pub status: u16,
}

/// Why nothing is claimed for the time being.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Paused {
    /// The store was reached and does not take an outcome: what it said. Somebody must fix it.
    Denied(String),
    /// As many outcomes wait for the store as may.
    Full {
        /// So many.
        outcomes: usize,
    },
}

/// The outcomes in hand of one process on one store.
#[derive(Debug)]
pub(crate) struct PendingOutcomes {
    pending_max: usize,
    bytes_max: usize,
    entries: Mutex<Entries>,
    emptied: Notify,
}

#[derive(Debug, Default)]
struct Entries {
    by_key: HashMap<Key, Entry>,
    /// How many of them the store did not take at the first try, and the bytes of their bodies.
    pending: usize,
    bytes: usize,
    /// How many of them the store denies.
    denied: usize,
}

#[derive(Debug)]
struct Entry {
    lease: Lease,
    fingerprint: Fingerprint,
    /// What a duplicate hears.
    told: Ended,
    store_state: StoreState,
}

/// How far the store has come with an outcome.
#[derive(Debug)]
enum StoreState {
    /// It is being asked for the first time.
    Asked,
    /// It could not be reached, or has not answered.
    Away { bytes: usize },
    /// It answered, and did not take it. That stays so until it has: one that then also cannot be
    /// reached is not better off.
    Denied { bytes: usize, why: String },
}

/// What becomes of a body when its outcome is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BodyRoom {
    /// It is kept with its outcome.
    Enough,
    /// There is no room for it: the outcome is recorded as not kept.
    NoneForTheBody,
}

/// Keeps an outcome on the list until it is dropped.
#[derive(Debug)]
pub(crate) struct EntryGuard {
    outcomes: Arc<PendingOutcomes>,
    key: Key,
    owner: Owner,
}

// === impl PendingOutcomes ===

impl PendingOutcomes {
    pub(crate) fn new(pending_max: usize, bytes_max: usize) -> Self {
        Self {
            pending_max,
            bytes_max,
            entries: Mutex::default(),
            emptied: Notify::new(),
        }
    }

    /// Puts an outcome on the list.
    pub(crate) fn list(self: &Arc<Self>, lease: &Lease, work: &Work, told: Ended) -> EntryGuard {
        let outcome = Entry {
            lease: lease.clone(),
            fingerprint: work.fingerprint,
            told,
            store_state: StoreState::Asked,
        };
        self.lock().insert(lease.key, outcome);
        EntryGuard {
            outcomes: Arc::clone(self),
            key: lease.key,
            owner: lease.owner,
        }
    }

    /// What a delivery hears whose outcome is in hand.
    pub(crate) fn of(&self, work: &Work) -> Option<Ended> {
        let entries = self.lock();
        let outcome = entries.by_key.get(&work.key)?;
        if outcome.fingerprint != work.fingerprint {
            return Some(Ended::Mismatched);
        }
        Some(outcome.told.clone())
    }

    /// Whether a success or a final failure of this work is in hand.
    pub(crate) fn knows(&self, key: &Key) -> bool {
        let entries = self.lock();
        entries
            .by_key
            .get(key)
            .is_some_and(|it| it.pending().is_some())
    }

    /// Why nothing may be claimed now, if so.
    pub(crate) fn paused(&self) -> Option<Paused> {
        let entries = self.lock();
        if entries.denied > 0 {
            let why = entries.by_key.values().find_map(Entry::denied);
            return Some(Paused::Denied(why.unwrap_or_default().to_owned()));
        }
        (entries.pending >= self.pending_max).then_some(Paused::Full {
            outcomes: entries.pending,
        })
    }

    /// How many outcomes the store did not take at the first try.
    pub(crate) fn count(&self) -> usize {
        self.lock().pending
    }

    /// The successes and final failures in hand. What else there is says no more than a lapse.
    pub(crate) fn all(&self) -> Vec<PendingOutcome> {
        let entries = self.lock();
        entries.by_key.values().filter_map(Entry::pending).collect()
    }

    /// Waits until nothing is in hand.
    pub(crate) async fn emptied(&self) {
        loop {
            let mut emptied = std::pin::pin!(self.emptied.notified());
            emptied.as_mut().enable();
            if self.lock().by_key.is_empty() {
                return;
            }
            emptied.await;
        }
    }

    fn lock(&self) -> MutexGuard<'_, Entries> {
        self.entries.lock().expect("no holder of this lock panics")
    }
}

// === impl EntryGuard ===

impl EntryGuard {
    /// Notes that the store could not be asked, or did not answer.
    pub(crate) fn is_away(&self, body_bytes: usize) -> BodyRoom {
        self.set_state(body_bytes, |bytes, before| match before {
            Some(why) => StoreState::Denied { bytes, why },
            None => StoreState::Away { bytes },
        })
    }

    /// Notes what the store said instead of taking it.
    pub(crate) fn is_denied(&self, body_bytes: usize, error: &Error) -> BodyRoom {
        let why = error.to_string();
        self.set_state(body_bytes, |bytes, _| StoreState::Denied { bytes, why })
    }

    /// From now on a duplicate hears this.
    pub(crate) fn tells(&self, told: Ended) {
        let mut entries = self.outcomes.lock();
        if let Some(outcome) = entries.by_key.get_mut(&self.key) {
            outcome.told = told;
        }
    }

    fn set_state(
        &self,
        body_bytes: usize,
        store_state: impl FnOnce(usize, Option<String>) -> StoreState,
    ) -> BodyRoom {
        let mut entries = self.outcomes.lock();
        let Some(mut outcome) = entries.remove(&self.key) else {
            return BodyRoom::Enough;
        };
        let (bytes, room) = if entries.bytes + body_bytes <= self.outcomes.bytes_max {
            (body_bytes, BodyRoom::Enough)
        } else {
            (0, BodyRoom::NoneForTheBody)
        };
        let before = outcome.denied().map(str::to_owned);
        outcome.store_state = store_state(bytes, before);
        entries.insert(self.key, outcome);
        room
    }
}

impl Drop for EntryGuard {
    fn drop(&mut self) {
        let mut entries = self.outcomes.lock();
        let is_mine = |outcome: &Entry| outcome.lease.owner == self.owner;
        if entries.by_key.get(&self.key).is_some_and(is_mine) {
            entries.remove(&self.key);
        }
        if entries.by_key.is_empty() {
            self.outcomes.emptied.notify_waiters();
        }
    }
}

// === impl Entries ===

impl Entries {
    fn insert(&mut self, key: Key, outcome: Entry) {
        let (pending, bytes, denied) = outcome.store_state.counts();
        self.pending += pending;
        self.bytes += bytes;
        self.denied += denied;
        if let Some(replaced) = self.by_key.insert(key, outcome) {
            self.uncount(&replaced);
        }
    }

    fn remove(&mut self, key: &Key) -> Option<Entry> {
        let removed = self.by_key.remove(key)?;
        self.uncount(&removed);
        Some(removed)
    }

    const fn uncount(&mut self, outcome: &Entry) {
        let (pending, bytes, denied) = outcome.store_state.counts();
        self.pending -= pending;
        self.bytes -= bytes;
        self.denied -= denied;
    }
}

// === impl Entry ===

impl Entry {
    fn denied(&self) -> Option<&str> {
        match &self.store_state {
            StoreState::Asked | StoreState::Away { .. } => None,
            StoreState::Denied { why, .. } => Some(why),
        }
    }

    fn pending(&self) -> Option<PendingOutcome> {
        let Ended::Unrecorded(recorded) = &self.told else {
            return None;
        };
        Some(PendingOutcome {
            key: self.lease.key,
            fence: self.lease.fence,
            ending: recorded.ending,
            status: recorded.outcome.status,
        })
    }
}

// === impl StoreState ===

impl StoreState {
    /// What it counts for: a pending outcome, bytes, a denied outcome.
    const fn counts(&self) -> (usize, usize, usize) {
        match self {
            Self::Asked => (0, 0, 0),
            Self::Away { bytes } => (1, *bytes, 0),
            Self::Denied { bytes, .. } => (1, *bytes, 1),
        }
    }
}

// === impl Paused ===

impl std::fmt::Display for Paused {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Denied(why) => write!(
                f,
                "the store does not take an outcome that is in hand ({why}): fix the store"
            ),
            Self::Full { outcomes } => {
                write!(
                    f,
                    "{outcomes} outcomes in hand wait for the store (pending_max)"
                )
            }
        }
    }
}

impl From<Paused> for Error {
    fn from(paused: Paused) -> Self {
        Self::unavailable(format!(
            "{paused}; until they are recorded nothing more is claimed; nothing was run, a retry is safe"
        ))
    }
}
