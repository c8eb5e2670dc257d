//! Who may take which waiting message, and when.
//!
//! Without ordering every waiting message is free for all. With it, of each ordering key only the first waiting one is
//! listed: free for all while nothing of its key is outstanding, and else only for the consumer who holds the key.

use super::{Consumer, Sequence};
use crate::clock::Time;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

type Ready = BTreeSet<(Time, Sequence)>;

#[derive(Debug)]
pub(super) struct ReadyQueue {
    ordered: bool,
    free: Ready,
    /// When each free message without an order of its own is ready.
    ready: HashMap<Sequence, Time>,
    /// For the consumers who hold a key.
    following: HashMap<Consumer, Ready>,
    keys: HashMap<Arc<str>, KeyQueue>,
}

/// The messages of one ordering key.
#[derive(Debug, Default)]
struct KeyQueue {
    waiting: BTreeMap<Sequence, Time>,
    out: BTreeSet<Sequence>,
    holder: Option<Consumer>,
}

// === impl ReadyQueue ===

impl ReadyQueue {
    pub(super) fn new(ordered: bool) -> Self {
        Self {
            ordered,
            free: Ready::new(),
            ready: HashMap::new(),
            following: HashMap::new(),
            keys: HashMap::new(),
        }
    }

    /// The same text, shared with the other messages of this key.
    pub(super) fn known(&self, key: &str) -> Arc<str> {
        let known = self.keys.get_key_value(key);
        known.map_or_else(|| key.into(), |(key, _)| Arc::clone(key))
    }

    /// It waits, and may be leased from `ready` on.
    pub(super) fn wait(&mut self, sequence: Sequence, key: Option<&Arc<str>>, ready: Time) {
        let Some(key) = key.filter(|_| self.ordered) else {
            self.unlist(sequence);
            self.ready.insert(sequence, ready);
            self.free.insert((ready, sequence));
            return;
        };
        self.with_key(key, |key_queue| {
            key_queue.leave(sequence);
            key_queue.waiting.insert(sequence, ready);
        });
    }

    /// It was leased.
    pub(super) fn leased(
        &mut self,
        sequence: Sequence,
        key: Option<&Arc<str>>,
        consumer: Consumer,
    ) {
        let Some(key) = key.filter(|_| self.ordered) else {
            self.unlist(sequence);
            return;
        };
        self.with_key(key, |key_queue| {
            key_queue.waiting.remove(&sequence);
            key_queue.out.insert(sequence);
            key_queue.holder = Some(consumer);
        });
    }

    /// It is neither waiting nor outstanding.
    pub(super) fn gone(&mut self, sequence: Sequence, key: Option<&Arc<str>>) {
        let Some(key) = key.filter(|_| self.ordered) else {
            self.unlist(sequence);
            return;
        };
        self.with_key(key, |key_queue| key_queue.leave(sequence));
        if self.keys.get(key).is_some_and(KeyQueue::is_empty) {
            self.keys.remove(key);
        }
    }

    /// The outstanding messages that come after this one in the order of its key.
    pub(super) fn out_after(&self, sequence: Sequence, key: Option<&Arc<str>>) -> Vec<Sequence> {
        let key_queue = key.filter(|_| self.ordered);
        let key_queue = key_queue.and_then(|key| self.keys.get(key));
        key_queue.map_or_else(Vec::new, |key_queue| {
            key_queue.out.range(sequence + 1..).copied().collect()
        })
    }

    /// Whether another message comes before this one in the order of its key.
    pub(super) fn is_behind(&self, sequence: Sequence, key: Option<&Arc<str>>) -> bool {
        let key_queue = key.filter(|_| self.ordered);
        let key_queue = key_queue.and_then(|key| self.keys.get(key));
        key_queue.is_some_and(|key_queue| {
            let waiting = key_queue.waiting.keys().next();
            let first = waiting.into_iter().chain(key_queue.out.first()).min();
            first.is_some_and(|first| *first < sequence)
        })
    }

    /// The first that this consumer may take now.
    pub(super) fn first(&self, now: Time, consumer: Consumer) -> Option<Sequence> {
        let free = self.free.first();
        let following = self.following.get(&consumer).and_then(|it| it.first());
        let first = free.into_iter().chain(following).min()?;
        (first.0 <= now).then_some(first.1)
    }

    /// The next moment after this one at which somebody may take another.
    pub(super) fn next_after(&self, now: Time) -> Option<Time> {
        let lists = std::iter::once(&self.free).chain(self.following.values());
        let after = (now, Sequence::MAX);
        let next = lists.filter_map(|list| list.range(after..).find(|it| it.0 > now));
        next.map(|(ready, _)| *ready).min()
    }

    fn unlist(&mut self, sequence: Sequence) {
        if let Some(ready) = self.ready.remove(&sequence) {
            self.free.remove(&(ready, sequence));
        }
    }

    fn with_key(&mut self, key: &Arc<str>, change: impl FnOnce(&mut KeyQueue)) {
        let key_queue = self.keys.entry(Arc::clone(key)).or_default();
        let before = key_queue.listed();
        change(key_queue);
        let after = key_queue.listed();
        if let Some((sequence, holder)) = before {
            match holder {
                None => self.free.remove(&sequence),
                Some(holder) => self
                    .following
                    .get_mut(&holder)
                    .is_some_and(|list| list.remove(&sequence)),
            };
            if let Some(holder) = holder
                && self.following.get(&holder).is_some_and(Ready::is_empty)
            {
                self.following.remove(&holder);
            }
        }
        if let Some((sequence, holder)) = after {
            match holder {
                None => self.free.insert(sequence),
                Some(holder) => self.following.entry(holder).or_default().insert(sequence),
            };
        }
    }
}

// === impl KeyQueue ===

impl KeyQueue {
    /// Which of its messages may be leased, and whether by one consumer only.
    fn listed(&self) -> Option<((Time, Sequence), Option<Consumer>)> {
        let (sequence, ready) = self.waiting.first_key_value()?;
        let listed = (*ready, *sequence);
        match self.holder {
            None => Some((listed, None)),
            Some(holder @ (Consumer::Pull(_) | Consumer::Stream(_))) => {
                Some((listed, Some(holder)))
            }
            Some(Consumer::Push) => None,
        }
    }

    fn leave(&mut self, sequence: Sequence) {
        self.waiting.remove(&sequence);
        self.out.remove(&sequence);
        if self.out.is_empty() {
            self.holder = None;
        }
    }

    fn is_empty(&self) -> bool {
        self.waiting.is_empty() && self.out.is_empty()
    }
}
