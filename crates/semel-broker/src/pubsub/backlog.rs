//! The messages of one subscription and where each stands. Pure: it is given the time, and what is to be kept on disk
//! is up to the caller.
//!
//! A message waits, is outstanding with whoever took it, is leaving while its end is being written down, is dying while
//! it is forwarded to the dead-letter topic, or is acknowledged and kept for a seek.

mod line;
mod take;
mod settle;
mod dying;
mod seek;
#[cfg(test)]
mod tests;

pub(super) use seek::Seek;
pub(super) use settle::{End, Ended, Fate};
pub(super) use take::Take;

use crate::clock::Time;
use crate::faults::Plan;
use line::Line;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

/// A message's number in its topic: the order of publishing.
pub(super) type Place = u64;

/// Everything a subscription has not acknowledged, and what it keeps of the rest.
#[derive(Debug)]
pub(super) struct Backlog {
    rules: Rules,
    messages: BTreeMap<Place, Kept>,
    line: Line,
    deadlines: BTreeSet<(Time, Place)>,
    loads: HashMap<Taker, Load>,
    /// Waiting for another message to go first.
    overtaken: Option<Place>,
    /// To be forwarded to the dead-letter topic.
    dying: Vec<Place>,
    /// Grows with every delivery, also from one broker's life to the next.
    deliveries: u64,
    unfinished: usize,
}

/// What a subscription wants.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rules {
    pub(super) ordered: bool,
    pub(super) exactly_once: bool,
    pub(super) retain_acked: bool,
    pub(super) ack_deadline: Duration,
    pub(super) retention: Duration,
    /// The shortest and the longest pause after a refusal; without it there is none.
    pub(super) retry: Option<(Duration, Duration)>,
    /// After so many attempts a message goes to the dead-letter topic.
    pub(super) attempts_max: Option<u32>,
}

/// A message that joins a backlog.
#[derive(Clone, Debug)]
pub(super) struct Arrival {
    pub(super) place: Place,
    pub(super) bytes: usize,
    pub(super) published: Time,
    /// Empty without an ordering key.
    pub(super) key: String,
    pub(super) attempts: u32,
    pub(super) acknowledged: bool,
}

/// Who takes messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Taker {
    /// The broker itself; its calls end by themselves.
    Push,
    /// One Pull call, by its number.
    Pull(u64),
    /// One stream, by its number.
    Stream(u64),
}

/// How much may be taken; a first message may be larger.
#[derive(Clone, Copy, Debug)]
pub(super) struct Room {
    pub(super) messages: usize,
    pub(super) bytes: usize,
}

/// How much a taker has outstanding.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Load {
    pub(super) messages: usize,
    pub(super) bytes: usize,
}

/// A message that was taken.
#[derive(Clone, Debug)]
pub(super) struct Taken {
    pub(super) place: Place,
    pub(super) attempt: u32,
    pub(super) delivery: u64,
    /// A fault: it is delivered twice at once, and this is the second.
    pub(super) twin: Option<u64>,
    pub(super) plan: Plan,
}

#[derive(Debug)]
struct Kept {
    bytes: usize,
    published: Time,
    key: Option<Arc<str>>,
    attempts: u32,
    /// The attempt whose delay or overtaking is over with.
    held_for: u32,
    /// The fault `duplicate` struck; once is enough.
    duplicated: bool,
    delivery: u64,
    standing: Standing,
}

#[derive(Debug)]
enum Standing {
    Waiting,
    Outstanding(Box<Out>),
    /// Acknowledged; that is being written down.
    Leaving,
    /// It had enough attempts.
    Dying,
    Acknowledged,
}

#[derive(Debug)]
struct Out {
    taker: Taker,
    /// Nothing for a push: its call ends by itself.
    deadline: Option<Time>,
    since: Time,
    /// The first of its deliveries; the last is the message's.
    delivery: u64,
    plan: Plan,
    /// Its numbers in the history.
    dispatches: Vec<u64>,
}

// === impl Backlog ===

impl Backlog {
    /// `deliveries` is where the numbers of deliveries begin: higher than any before.
    pub(super) fn new(rules: Rules, deliveries: u64) -> Self {
        Self {
            line: Line::new(rules.ordered),
            rules,
            messages: BTreeMap::new(),
            deadlines: BTreeSet::new(),
            loads: HashMap::new(),
            overtaken: None,
            dying: Vec::new(),
            deliveries,
            unfinished: 0,
        }
    }

    pub(super) fn rules(&self) -> &Rules {
        &self.rules
    }

    /// What is wanted from now on. Whether messages are ordered cannot change.
    pub(super) fn set_rules(&mut self, rules: Rules) {
        self.rules = Rules {
            ordered: self.rules.ordered,
            ..rules
        };
    }

    /// A message joins; it waits, or is there for a seek.
    pub(super) fn add(&mut self, arrival: Arrival, now: Time) {
        let key = Some(arrival.key).filter(|key| !key.is_empty());
        let key = key.map(|key| self.line.known(&key));
        let standing = match arrival.acknowledged {
            true => Standing::Acknowledged,
            false => {
                self.line.wait(arrival.place, key.as_ref(), now);
                self.unfinished += 1;
                Standing::Waiting
            }
        };
        let kept = Kept {
            bytes: arrival.bytes,
            published: arrival.published,
            key,
            attempts: arrival.attempts,
            held_for: 0,
            duplicated: false,
            delivery: 0,
            standing,
        };
        self.messages.insert(arrival.place, kept);
    }

    /// Whether it holds this message.
    pub(super) fn holds(&self, place: Place) -> bool {
        self.messages.contains_key(&place)
    }

    /// The newest it holds.
    pub(super) fn last(&self) -> Option<Place> {
        self.messages.last_key_value().map(|(place, _)| *place)
    }

    /// What is not acknowledged, in order, and when it was published.
    pub(super) fn unacknowledged(&self) -> Vec<(Place, Time)> {
        let all = self.messages.iter();
        let open = all.filter(|(_, kept)| !matches!(kept.standing, Standing::Acknowledged));
        open.map(|(place, kept)| (*place, kept.published)).collect()
    }

    /// How many are not acknowledged.
    pub(super) fn unfinished(&self) -> usize {
        self.unfinished
    }

    /// How many wait, whether or not they may be taken yet.
    pub(super) fn waiting(&self) -> usize {
        let out: usize = self.loads.values().map(|load| load.messages).sum();
        self.unfinished.saturating_sub(out)
    }

    /// What a taker has outstanding.
    pub(super) fn load(&self, taker: Taker) -> Load {
        self.loads.get(&taker).copied().unwrap_or_default()
    }

    /// The next moment at which something becomes available or late, if nobody does anything.
    pub(super) fn next_moment(&self, now: Time) -> Option<Time> {
        let late = self.deadlines.first().map(|(deadline, _)| *deadline);
        let ready = self.line.next_after(now);
        late.into_iter()
            .chain(ready)
            .chain(self.oldest_ends())
            .min()
    }

    /// Remembers under which number the history has a delivery of this message.
    pub(super) fn note(&mut self, place: Place, dispatch: u64) {
        let Some(kept) = self.messages.get_mut(&place) else {
            return;
        };
        if let Standing::Outstanding(out) = &mut kept.standing {
            out.dispatches.push(dispatch);
        }
    }

    fn wait(&mut self, place: Place, ready: Time) {
        let Some(kept) = self.messages.get_mut(&place) else {
            return;
        };
        kept.standing = Standing::Waiting;
        self.line.wait(place, kept.key.as_ref(), ready);
    }

    /// It is not outstanding any more; what it was comes back.
    fn call_back(&mut self, place: Place) -> Option<Box<Out>> {
        let kept = self.messages.get_mut(&place)?;
        if !matches!(kept.standing, Standing::Outstanding(_)) {
            return None;
        }
        let standing = std::mem::replace(&mut kept.standing, Standing::Leaving);
        let Standing::Outstanding(out) = standing else {
            return None;
        };
        if let Some(deadline) = out.deadline {
            self.deadlines.remove(&(deadline, place));
        }
        if let Some(load) = self.loads.get_mut(&out.taker) {
            load.messages = load.messages.saturating_sub(1);
            load.bytes = load.bytes.saturating_sub(kept.bytes);
            if load.messages == 0 {
                self.loads.remove(&out.taker);
            }
        }
        Some(out)
    }

    /// It is gone for good.
    fn forget(&mut self, place: Place) {
        drop(self.call_back(place));
        let Some(kept) = self.messages.remove(&place) else {
            return;
        };
        self.line.gone(place, kept.key.as_ref());
        match kept.standing {
            Standing::Waiting | Standing::Outstanding(_) | Standing::Leaving | Standing::Dying => {
                self.unfinished = self.unfinished.saturating_sub(1);
            }
            Standing::Acknowledged => {}
        }
    }
}
