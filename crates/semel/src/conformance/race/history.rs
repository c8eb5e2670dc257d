//! What everybody was told in a storm.
//!
//! Time passes between rounds only. The order of what happened within a round is not known.

use crate::Fingerprint;
use crate::conformance::answer::{Judged, that};
use crate::record::{Acted, Claimed, Ending, Fence, Held, Lease, Record, State, StepBegun};
use bytes::Bytes;
use std::collections::BTreeMap;
use std::time::Duration;

/// Everything that was told, of every key.
#[derive(Debug, Default)]
pub(super) struct History {
    /// How much time had passed in all when a round began.
    began: Vec<Duration>,
    pub(super) events: Vec<Event>,
}

/// Something that was told in a round.
#[derive(Clone, Debug)]
pub(super) struct Event {
    pub(super) round: usize,
    pub(super) spot: usize,
    pub(super) what: What,
}

#[derive(Clone, Debug)]
pub(super) enum What {
    Claimed(Fingerprint, Claimed),
    Said {
        lease: Lease,
        word: Word,
        held: Held,
    },
    Begun {
        lease: Lease,
        name: &'static str,
        begun: StepBegun,
    },
    Done {
        lease: Lease,
        name: &'static str,
        result: Bytes,
        held: Held,
    },
    Acted(OperatorAct, Acted),
    Looked(Record),
}

/// A run's word about itself.
#[derive(Clone, Debug)]
pub(super) enum Word {
    Renew,
    /// It came to an end, with this result.
    End(Bytes),
    /// It failed or was released.
    GiveUp,
}

/// An operator's act.
#[derive(Clone, Debug)]
pub(super) enum OperatorAct {
    /// Resolved, with this result.
    End(Ending, Bytes),
    /// Resolved to run again, redriven, or released.
    Again,
    Forget,
}

/// What was told of one key, sorted.
pub(super) struct Told<'a> {
    pub(super) history: &'a History,
    pub(super) grants: BTreeMap<Fence, Grant>,
    pub(super) events: Vec<&'a Event>,
}

/// A grant, as first told.
#[derive(Clone, Debug)]
pub(super) struct Grant {
    pub(super) round: usize,
    pub(super) lease: Lease,
    pub(super) fingerprint: Fingerprint,
}

// === impl History ===

impl History {
    /// Another round begins, after so much time.
    pub(super) fn passes(&mut self, by: Duration) {
        let before = self.began.last().copied().unwrap_or_default();
        self.began.push(before + by);
    }

    fn passed(&self, from: usize, to: usize) -> Duration {
        let at = |round: usize| self.began.get(round).copied().unwrap_or_default();
        at(to).saturating_sub(at(from))
    }

    /// What was told of one key.
    pub(super) fn of(&self, spot: usize) -> Judged<Told<'_>> {
        let events = self.events.iter().filter(|event| event.spot == spot);
        let mut told = Told {
            history: self,
            grants: BTreeMap::new(),
            events: events.collect(),
        };
        told.events.sort_by_key(|event| event.round);
        for event in &told.events {
            if let What::Claimed(fingerprint, Claimed::Granted(lease)) = &event.what {
                let grant = Grant {
                    round: event.round,
                    lease: lease.clone(),
                    fingerprint: *fingerprint,
                };
                let first = told.grants.entry(lease.fence).or_insert(grant);
                let so = first.lease == *lease;
                that(so, "I2: a fence is given to one owner", (first, lease))?;
            }
        }
        Ok(told)
    }
}

// === impl Told ===

impl Told<'_> {
    /// Grants in the order of their fences, each with the next one.
    pub(super) fn successions(&self) -> impl Iterator<Item = (&Grant, &Grant)> {
        self.grants.values().zip(self.grants.values().skip(1))
    }

    /// The grant of this lease, unless it was made up.
    pub(super) fn grant(&self, lease: &Lease) -> Option<&Grant> {
        let grant = self.grants.get(&lease.fence);
        grant.filter(|grant| grant.lease.owner == lease.owner)
    }

    /// The words of runs, with the round they were said in.
    pub(super) fn said(&self) -> impl Iterator<Item = (usize, &Lease, &Word, &Held)> {
        self.events.iter().filter_map(|event| {
            let What::Said { lease, word, held } = &event.what else {
                return None;
            };
            Some((event.round, lease, word, held))
        })
    }

    /// What claims were told, grants aside.
    pub(super) fn claimed(&self) -> impl Iterator<Item = (usize, &Fingerprint, &Claimed)> {
        self.events.iter().filter_map(|event| {
            let What::Claimed(fingerprint, claimed) = &event.what else {
                return None;
            };
            Some((event.round, fingerprint, claimed))
        })
    }

    /// The acts of operators that were applied.
    pub(super) fn acts(&self) -> impl Iterator<Item = (usize, &OperatorAct)> {
        self.events.iter().filter_map(|event| {
            let What::Acted(act, Acted::Applied) = &event.what else {
                return None;
            };
            Some((event.round, act))
        })
    }

    /// Whether an operator acted in one of these rounds.
    pub(super) fn acted(&self, from: usize, to: usize) -> bool {
        self.acts().any(|(round, _)| from <= round && round <= to)
    }

    /// Whether an operator forgot the key in one of these rounds.
    pub(super) fn forgotten(&self, from: usize, to: usize) -> bool {
        let mut acts = self.acts();
        acts.any(|(round, act)| from <= round && round <= to && matches!(act, OperatorAct::Forget))
    }

    /// Whether the run gave up by this round.
    pub(super) fn gave_up(&self, lease: &Lease, by: usize) -> bool {
        self.said().any(|(round, whose, word, held)| {
            round <= by
                && whose == lease
                && matches!(word, Word::GiveUp)
                && *held == Held::Applied(State::Waiting)
        })
    }

    /// How much time passed from one round to a later one.
    pub(super) fn passed(&self, from: usize, to: usize) -> Duration {
        self.history.passed(from, to)
    }
}

/// The state a word led to, if it was applied.
pub(super) const fn applied(held: &Held) -> Option<State> {
    match held {
        Held::Applied(state) => Some(*state),
        Held::Already(_) | Held::Settled(_) | Held::Parked | Held::Stale => None,
    }
}
