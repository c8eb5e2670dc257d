//! Claiming: who may run.

use super::{
    Decision, DoubtLimit, Fence, Lease, Limits, Owner, Record, Settled, State, Superseded, look,
};
use crate::clock::Time;
use crate::{Fingerprint, Key};
use bytes::Bytes;
use std::num::NonZeroU32;
use std::time::Duration;

/// Asking to run.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Claim {
    /// Which piece of work.
    pub key: Key,
    /// What was delivered under that key.
    pub fingerprint: Fingerprint,
    /// The random id of this claim; the same one when an answer was lost and the claim is repeated.
    pub owner: Owner,
    /// How long the right to run lasts unless it is renewed.
    pub lease: Duration,
    /// How long the outcome is remembered.
    pub retention: Duration,
    /// What a lapsed lease means.
    pub in_doubt: InDoubt,
    /// How many runs before the work is parked; `None` is no limit.
    pub max_attempts: Option<NonZeroU32>,
    /// Limit on runs that end in doubt, beyond which the work is parked; `None` is no limit.
    pub max_in_doubt: Option<DoubtLimit>,
    /// How old the work may get before it is parked, after [`PARK_AFTER_ATTEMPTS`](super::PARK_AFTER_ATTEMPTS) runs;
    /// `None` is no limit.
    pub park_after: Option<Duration>,
    /// For how long after the grant the run may act, its lease aside; [`InDoubt::Probe`] grants no other run before that.
    pub acts_for: Option<Duration>,
    /// What the work is about, for people; empty is none. Kept if this claim begins an incarnation, and part of no
    /// decision.
    pub label: Bytes,
    /// Who claims, for people, as the name of a gate; empty is nobody. Kept in the history of an attempt that this claim
    /// supersedes, and part of no decision.
    pub by: Bytes,
}

/// The answer to a claim.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[must_use]
pub enum Claimed {
    /// Run it.
    Granted(Lease),
    /// It was settled earlier: here is what was recorded.
    Replayed(Settled),
    /// Somebody is running it, or may still act, until then at the latest.
    Busy {
        /// What is left of the other's lease, or of its time to act.
        retry_after: Duration,
    },
    /// It failed, and its next run is not due yet.
    NotYet {
        /// Until it is due.
        retry_after: Duration,
    },
    /// A person must look first.
    Parked,
    /// The key is known with another fingerprint.
    Mismatched,
}

/// What becomes of a run whose effect may or may not have happened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum InDoubt {
    /// Run again: at least one effect.
    #[default]
    Retry,
    /// Stop, and let a person decide: at most one effect.
    Park,
    /// Once that run can no longer act, grant another, which is told so ([`Lease::in_doubt`]) and must find out what
    /// happened before it does anything: exactly one effect, if finding out is reliable.
    Probe,
}

/// Asks to run: granted to whoever finds the key absent, waiting and due, or lapsed.
pub(super) fn claim(record: Option<&Record>, claim: &Claim, now: Time) -> Decision<Claimed> {
    let Some(old) = look(record, now) else {
        return grant(record, None, claim, now);
    };
    if old.fingerprint != claim.fingerprint {
        return Decision::unchanged(Claimed::Mismatched);
    }
    if let Some(settled) = old.settled(now) {
        return Decision::unchanged(Claimed::Replayed(settled));
    }
    let lapsed = old.lease_until <= now;
    let claimable_at = old.claimable_at(claim);
    let claimable = claimable_at <= now;
    match old.state {
        State::Parked => Decision::unchanged(Claimed::Parked),
        // The answer to this very claim was lost, and it is made again.
        State::Running if !lapsed && old.owner == claim.owner => {
            Decision::unchanged(Claimed::Granted(old.lease(claim)))
        }
        State::Running if !lapsed => Decision::unchanged(Claimed::Busy {
            retry_after: old.lease_until.since(now),
        }),
        State::Running if !claimable => Decision::unchanged(Claimed::Busy {
            retry_after: claimable_at.since(now),
        }),
        State::Running => take_over(old.in_one_more_doubt(now), claim, now),
        State::Waiting if !claimable => Decision::unchanged(Claimed::NotYet {
            retry_after: claimable_at.since(now),
        }),
        State::Waiting | State::Succeeded | State::Failed => grant(record, Some(old), claim, now),
    }
}

/// Finds a run lapsed: parks it, or grants another.
fn take_over(lapsed: Record, claim: &Claim, now: Time) -> Decision<Claimed> {
    if claim.in_doubt == InDoubt::Park || Limits::of_claim(claim).are_reached(&lapsed, now) {
        return park(lapsed, claim, now);
    }
    grant(Some(&lapsed), Some(&lapsed), claim, now)
}

/// Grants the claim. `old` is the record when it is neither absent nor expired.
fn grant(
    record: Option<&Record>,
    old: Option<&Record>,
    claim: &Claim,
    now: Time,
) -> Decision<Claimed> {
    let fence = record.map_or(Fence(now.0), |record| record.next_fence(now));
    let end = now.plus(claim.lease).plus(claim.retention);
    let new = Record {
        fingerprint: claim.fingerprint,
        state: State::Running,
        attempts: old.map_or(0, |old| old.attempts) + 1,
        doubts: old.map_or(0, |old| old.doubts),
        doubted_at: old.and_then(|old| old.doubted_at),
        in_doubt: old.is_some_and(|old| old.in_doubt),
        acts_until: claim.acts_for.map(|acts_for| now.plus(acts_for)),
        born: old.map_or(fence, |old| old.born),
        fence,
        owner: claim.owner,
        lease_until: now.plus(claim.lease),
        expires_at: record.map_or(end, |record| record.expires_at.max(end)),
        result: old.and_then(Record::reason_of_doubt),
        label: old.map_or_else(|| claim.label.clone(), |old| old.label.clone()),
        history: old.map_or_else(Vec::new, |old| old.history.clone()),
    };
    let lease = new.lease(claim);
    let ended = record.map(|record| record.born).filter(|_| old.is_none());
    Decision {
        ended,
        superseded: old.map(|old| Superseded::of(old, &claim.by, now)),
        ..Decision::written(new, Claimed::Granted(lease))
    }
}

/// Parks a lapsed run. Its fence and owner stay: its own late word still counts.
fn park(lapsed: Record, claim: &Claim, now: Time) -> Decision<Claimed> {
    let end = now.plus(claim.lease).plus(claim.retention);
    let write = Record {
        state: State::Parked,
        expires_at: lapsed.expires_at.max(end),
        result: None,
        ..lapsed
    };
    Decision::written(write, Claimed::Parked)
}

// === impl Claim ===

impl Claim {
    /// A claim by a new owner, on the default terms: a lease of 30 s, remembered for 24 h, doubt is retried, nothing is
    /// limited, without a label.
    #[must_use]
    pub fn new(key: Key, fingerprint: Fingerprint) -> Self {
        Self {
            key,
            fingerprint,
            owner: Owner::random(),
            lease: Duration::from_secs(30),
            retention: Duration::from_secs(24 * 60 * 60),
            in_doubt: InDoubt::Retry,
            max_attempts: None,
            max_in_doubt: None,
            park_after: None,
            acts_for: None,
            label: Bytes::new(),
            by: Bytes::new(),
        }
    }
}

// === impl Record ===

impl Record {
    fn lease(&self, claim: &Claim) -> Lease {
        Lease {
            key: claim.key,
            owner: self.owner,
            fence: self.fence,
            born: self.born,
            attempt: self.attempts,
            in_doubt: self.in_doubt,
        }
    }

    /// How its last run failed, where that left it in doubt: whoever runs it again can read why. A lapse left no word.
    fn reason_of_doubt(&self) -> Option<Bytes> {
        let said_so = self.state == State::Waiting && self.in_doubt;
        self.result.clone().filter(|_| said_so)
    }

    /// When somebody else may run it: its lease or its pause is over, and for a claim that probes, its run acts no more if
    /// that is in doubt.
    fn claimable_at(&self, claim: &Claim) -> Time {
        match self.acts_until {
            Some(acts_until) if claim.in_doubt == InDoubt::Probe && self.ended_in_doubt() => {
                self.lease_until.max(acts_until)
            }
            Some(_) | None => self.lease_until,
        }
    }
}
