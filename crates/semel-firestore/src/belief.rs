//! What this process believes without asking: the server's time, the records that it wrote last, and which keys have one.
//!
//! A belief may be written, under the condition that it is true, and is never answered. So a new claim and the words of a
//! run take one round trip; a belief that is wrong costs one, and the next turn reads.

use crate::client::{Client, Committed};
use crate::parts::Parts;
use crate::writes::Version;
use semel::Key;
use semel::clock::Time;
use semel::protocol::{Operation, Record, State};
use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard};

/// How many keys are remembered; beyond that, all are forgotten, and cost a round trip each.
const KEYS_MAX: usize = 65_536;

/// The largest result that is remembered with a record.
const RESULT_BYTES_MAX: usize = 64 * 1024;

/// What this process believes of keys.
#[derive(Debug, Default)]
pub(crate) struct Beliefs(Mutex<HashMap<Key, Belief>>);

/// What it believes of one.
#[derive(Clone, Debug)]
enum Belief {
    /// We wrote this, and nobody has changed it since.
    Ours(Box<Believed>),
    /// There is a record, of which we know nothing.
    Present,
}

/// A record as it was written.
#[derive(Clone, Debug)]
pub(crate) struct Believed {
    pub(crate) record: Record,
    pub(crate) parts: Option<Parts>,
    pub(crate) version: Version,
}

// === impl Beliefs ===

impl Beliefs {
    /// What an operation can be decided on without a read: the record, if there is one, and the time.
    pub(crate) fn for_operation(
        &self,
        client: &Client,
        operation: &Operation,
    ) -> Option<(Option<Believed>, Time)> {
        let now = client.clock.now()?;
        let believed = self.lock().get(operation.key()?).cloned();
        match (operation, believed) {
            (Operation::Claim(_), None) => Some((None, now)),
            (
                Operation::Renew { lease, .. }
                | Operation::Complete { lease, .. }
                | Operation::Fail { lease, .. }
                | Operation::Release { lease, .. },
                Some(Belief::Ours(ours)),
            ) if ours.record.is_of(lease) => Some((Some(*ours), now)),
            _ => None,
        }
    }

    /// There is a record that was read; ours stays ours until a commit on it fails.
    pub(crate) fn is_seen(&self, key: &Key) {
        if !self.lock().contains_key(key) {
            self.set(key, Some(Belief::Present));
        }
    }

    /// Nothing is known any more.
    pub(crate) fn is_unknown(&self, key: &Key) {
        self.set(key, None);
    }

    /// We have written it. Only the holder of a lease has another word to say.
    pub(crate) fn note(
        &self,
        key: &Key,
        record: &Record,
        parts: Option<Parts>,
        committed: &Committed,
    ) {
        let result = record.result.as_ref().map_or(0, bytes::Bytes::len);
        let is_held = record.state == State::Running && result <= RESULT_BYTES_MAX;
        let version = committed.versions.first().copied().flatten();
        let belief = version.filter(|_| is_held).map(|version| {
            Belief::Ours(Box::new(Believed {
                record: record.clone(),
                parts,
                version,
            }))
        });
        self.set(key, Some(belief.unwrap_or(Belief::Present)));
    }

    fn set(&self, key: &Key, belief: Option<Belief>) {
        let mut keys = self.lock();
        if keys.len() >= KEYS_MAX {
            keys.clear();
        }
        match belief {
            Some(belief) => keys.insert(*key, belief),
            None => keys.remove(key),
        };
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Key, Belief>> {
        self.0.lock().expect("no holder of this lock panics")
    }
}
