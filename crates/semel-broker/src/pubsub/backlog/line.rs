//! Who may take which waiting message, and when.
//!
//! Without ordering every waiting message is free for all. With it, of each ordering key only the first waiting one is
//! listed: free for all while nothing of its key is outstanding, and else only for the taker who holds the key.

use super::{Place, Taker};
use crate::clock::Time;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

type Ready = BTreeSet<(Time, Place)>;

#[derive(Debug)]
pub(super) struct Line {
    ordered: bool,
    free: Ready,
    /// When each free message without an order of its own is ready.
    ready: HashMap<Place, Time>,
    /// For the takers who hold a key.
    following: HashMap<Taker, Ready>,
    keys: HashMap<Arc<str>, Row>,
}

/// The messages of one ordering key.
#[derive(Debug, Default)]
struct Row {
    waiting: BTreeMap<Place, Time>,
    out: BTreeSet<Place>,
    holder: Option<Taker>,
}

// === impl Line ===

impl Line {
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

    /// It waits, and may be taken from `ready` on.
    pub(super) fn wait(&mut self, place: Place, key: Option<&Arc<str>>, ready: Time) {
        let Some(key) = key.filter(|_| self.ordered) else {
            self.unlist(place);
            self.ready.insert(place, ready);
            self.free.insert((ready, place));
            return;
        };
        self.with_row(key, |row| {
            row.leave(place);
            row.waiting.insert(place, ready);
        });
    }

    /// It was taken.
    pub(super) fn taken(&mut self, place: Place, key: Option<&Arc<str>>, taker: Taker) {
        let Some(key) = key.filter(|_| self.ordered) else {
            self.unlist(place);
            return;
        };
        self.with_row(key, |row| {
            row.waiting.remove(&place);
            row.out.insert(place);
            row.holder = Some(taker);
        });
    }

    /// It is neither waiting nor outstanding.
    pub(super) fn gone(&mut self, place: Place, key: Option<&Arc<str>>) {
        let Some(key) = key.filter(|_| self.ordered) else {
            self.unlist(place);
            return;
        };
        self.with_row(key, |row| row.leave(place));
        if self.keys.get(key).is_some_and(Row::is_empty) {
            self.keys.remove(key);
        }
    }

    /// The outstanding messages that come after this one in the order of its key.
    pub(super) fn out_after(&self, place: Place, key: Option<&Arc<str>>) -> Vec<Place> {
        let row = key.filter(|_| self.ordered);
        let row = row.and_then(|key| self.keys.get(key));
        row.map_or_else(Vec::new, |row| {
            row.out.range(place + 1..).copied().collect()
        })
    }

    /// Whether another message comes before this one in the order of its key.
    pub(super) fn is_behind(&self, place: Place, key: Option<&Arc<str>>) -> bool {
        let row = key.filter(|_| self.ordered);
        let row = row.and_then(|key| self.keys.get(key));
        row.is_some_and(|row| {
            let waiting = row.waiting.keys().next();
            let first = waiting.into_iter().chain(row.out.first()).min();
            first.is_some_and(|first| *first < place)
        })
    }

    /// The first that this taker may take now.
    pub(super) fn first(&self, now: Time, taker: Taker) -> Option<Place> {
        let free = self.free.first();
        let following = self.following.get(&taker).and_then(|it| it.first());
        let first = free.into_iter().chain(following).min()?;
        (first.0 <= now).then_some(first.1)
    }

    /// The next moment after this one at which somebody may take another.
    pub(super) fn next_after(&self, now: Time) -> Option<Time> {
        let lists = std::iter::once(&self.free).chain(self.following.values());
        let after = (now, Place::MAX);
        let next = lists.filter_map(|list| list.range(after..).find(|it| it.0 > now));
        next.map(|(ready, _)| *ready).min()
    }

    fn unlist(&mut self, place: Place) {
        if let Some(ready) = self.ready.remove(&place) {
            self.free.remove(&(ready, place));
        }
    }

    fn with_row(&mut self, key: &Arc<str>, change: impl FnOnce(&mut Row)) {
        let row = self.keys.entry(Arc::clone(key)).or_default();
        let before = row.listed();
        change(row);
        let after = row.listed();
        if let Some((place, holder)) = before {
            match holder {
                None => self.free.remove(&place),
                Some(holder) => self
                    .following
                    .get_mut(&holder)
                    .is_some_and(|list| list.remove(&place)),
            };
            if let Some(holder) = holder
                && self.following.get(&holder).is_some_and(Ready::is_empty)
            {
                self.following.remove(&holder);
            }
        }
        if let Some((place, holder)) = after {
            match holder {
                None => self.free.insert(place),
                Some(holder) => self.following.entry(holder).or_default().insert(place),
            };
        }
    }
}

// === impl Row ===

impl Row {
    /// Which of its messages may be taken, and whether by one taker only.
    fn listed(&self) -> Option<((Time, Place), Option<Taker>)> {
        let (place, ready) = self.waiting.first_key_value()?;
        let listed = (*ready, *place);
        match self.holder {
            None => Some((listed, None)),
            Some(holder @ (Taker::Pull(_) | Taker::Stream(_))) => Some((listed, Some(holder))),
            Some(Taker::Push) => None,
        }
    }

    fn leave(&mut self, place: Place) {
        self.waiting.remove(&place);
        self.out.remove(&place);
        if self.out.is_empty() {
            self.holder = None;
        }
    }

    fn is_empty(&self) -> bool {
        self.waiting.is_empty() && self.out.is_empty()
    }
}
