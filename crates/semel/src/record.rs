//! What a store remembers of a key, and the words of a claim and its answers.
//!
//! The state machine itself is [`decide`](fn@decide): pure, and the oracle every store is compared with.

mod decide;

pub use decide::{
    Answer, Decision, Operation, StepDecision, claim, complete, decide, fail, forget, look,
    redrive, release, release_by_operator, renew, resolve, step_begin, step_complete, step_restart,
    sweepable,
};

use crate::clock::Time;
use crate::{Fingerprint, Key};
use bytes::Bytes;
use std::fmt;
use std::num::NonZeroU32;
use std::time::Duration;

/// What a store remembers of a key.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Record {
    /// The fingerprint of the delivery that made this record.
    pub fingerprint: Fingerprint,
    /// Where the work stands.
    pub state: State,
    /// How many runs were started in this incarnation.
    pub attempts: u32,
    /// The fence of the first grant of this incarnation of the key.
    pub born: Fence,
    /// The number of the latest grant or operator's act.
    pub fence: Fence,
    /// Whose grant it was.
    pub owner: Owner,
    /// Running: the end of the lease. Waiting: not before. Otherwise: when it got there.
    pub lease_until: Time,
    /// The end of retention; without meaning while parked.
    pub expires_at: Time,
    /// The outcome, encoded; of a waiting or parked record the last failure.
    pub result: Option<Bytes>,
}

/// Where a piece of work stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum State {
    /// Somebody holds the lease.
    Running,
    /// It took effect; absorbing until the end of retention.
    Succeeded,
    /// It failed for good; absorbing until the end of retention, `forget` or `redrive`.
    Failed,
    /// It failed and may be tried again.
    Waiting,
    /// A person must look. Never expires.
    Parked,
}

/// The right to run for a while, as granted by a claim.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Lease {
    /// What may be run.
    pub key: Key,
    /// Whose right it is.
    pub owner: Owner,
    /// Its rising number: a downstream can refuse a lower one than it has seen.
    pub fence: Fence,
    /// The incarnation of the key.
    pub born: Fence,
    /// Which run of this incarnation it is, from 1.
    pub attempt: u32,
}

/// A rising number per key: `max(previous + 1, the store's clock in µs)`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Fence(pub u64);

/// A random id of one claim. It is also an authority, so it is never shown by `Debug`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Owner(pub [u8; 16]);

/// What becomes of a run whose effect may or may not have happened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum InDoubt {
    /// Run again: at least one effect.
    #[default]
    Retry,
    /// Stop, and let a person decide: at most one effect.
    Park,
}

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
}

/// The answer to a claim.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[must_use]
pub enum Claimed {
    /// Run it.
    Granted(Lease),
    /// It was settled earlier: here is what was recorded.
    Replayed(Settled),
    /// Somebody is running it, until then at the latest.
    Busy {
        /// What is left of the other's lease.
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

/// A recorded end.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Settled {
    /// Success or final failure.
    pub ending: Ending,
    /// The outcome, encoded as [`Outcome`](crate::Outcome) says.
    pub result: Bytes,
    /// What is left of its retention.
    pub keep: Duration,
}

/// The two ends a piece of work can come to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Ending {
    /// It took effect.
    Succeeded,
    /// It failed for good.
    Failed,
}

/// Whether a write was made under a lease that still holds.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[must_use]
pub enum Held {
    /// Written; the record is now in this state.
    Applied(State),
    /// An earlier, equal call had landed already.
    Already(State),
    /// This run was settled by somebody who had the right to, as by the handler's own transaction.
    Settled(Settled),
    /// Parked while it ran; its own late word would still count.
    Parked,
    /// This run is no longer the owner. Nothing was written.
    Stale,
}

/// How a run failed, as a store is told.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Fail {
    /// How it failed.
    pub kind: FailKind,
    /// The policy for a run in doubt.
    pub in_doubt: InDoubt,
    /// How many runs before the work is parked; `None` is no limit.
    pub max_attempts: Option<NonZeroU32>,
    /// How long the record is remembered.
    pub retention: Duration,
    /// What is kept of the failure, encoded as [`Outcome`](crate::Outcome) says.
    pub result: Bytes,
}

/// The kinds of failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FailKind {
    /// For good: replayed like a success.
    Final,
    /// May be tried again, not before `delay` has passed.
    Retryable {
        /// The pause before the next run.
        delay: Duration,
    },
    /// The effect may or may not have happened: parked, or tried again, by the policy.
    InDoubt {
        /// The pause before the next run, if there is one.
        delay: Duration,
    },
}

/// What an operator decides about a parked record.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Resolution {
    /// It did happen, and this is its outcome.
    Succeeded(Bytes),
    /// It did not and will not happen.
    Failed(Bytes),
    /// It did not happen: run it again.
    Retry,
}

/// The answer to an operator's act.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[must_use]
pub enum Acted {
    /// Done.
    Applied,
    /// Not done: it is running under a live lease.
    Refused,
    /// Not done: the record is in no state this act is for; `None` is absent.
    Gone(Option<State>),
}

/// What a store remembers of a step. It belongs to (key, born, name).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct StepRecord {
    /// The run that started it last.
    pub fence: Fence,
    /// `None` while started, the result once done.
    pub result: Option<Bytes>,
}

/// The answer to beginning a step.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[must_use]
pub enum StepBegun {
    /// Run it.
    Run,
    /// It was done, by the run with this fence, with this result.
    Memo {
        /// The run that did it.
        fence: Fence,
        /// What it recorded.
        result: Bytes,
    },
    /// An earlier run started it and did not say how it ended.
    InDoubt(Fence),
    /// The whole run is settled already.
    Settled(Settled),
    /// The run was parked.
    Parked,
    /// This run is no longer the owner.
    Stale,
}

// === impl Record ===

impl Record {
    /// Whether this record counts as absent at `now`.
    #[must_use]
    pub fn expired(&self, now: Time) -> bool {
        self.state != State::Parked && self.expires_at <= now
    }

    /// Whether it is this very run's.
    #[must_use]
    pub fn is_of(&self, lease: &Lease) -> bool {
        self.fence == lease.fence && self.owner == lease.owner
    }

    /// The recorded end, if the record has come to one.
    #[must_use]
    pub fn settled(&self, now: Time) -> Option<Settled> {
        Some(Settled {
            ending: self.state.ending()?,
            result: self.result.clone().unwrap_or_default(),
            keep: self.expires_at.since(now),
        })
    }
}

// === impl State ===

impl State {
    /// All states, by the number that stores keep.
    pub const ALL: [Self; 5] = [
        Self::Running,
        Self::Succeeded,
        Self::Failed,
        Self::Waiting,
        Self::Parked,
    ];

    /// The number that stores keep.
    #[must_use]
    pub const fn number(self) -> u8 {
        match self {
            Self::Running => 1,
            Self::Succeeded => 2,
            Self::Failed => 3,
            Self::Waiting => 4,
            Self::Parked => 5,
        }
    }

    /// The state with that number.
    #[must_use]
    pub fn from_number(number: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.number() == number)
    }

    /// The word for it.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Succeeded => "succeeded",
            Self::Failed => "failed",
            Self::Waiting => "waiting",
            Self::Parked => "parked",
        }
    }

    /// The end it stands for, if it is one.
    #[must_use]
    pub const fn ending(self) -> Option<Ending> {
        match self {
            Self::Succeeded => Some(Ending::Succeeded),
            Self::Failed => Some(Ending::Failed),
            Self::Running | Self::Waiting | Self::Parked => None,
        }
    }
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}

// === impl Owner ===

impl Owner {
    /// A fresh random id.
    #[must_use]
    #[expect(clippy::disallowed_methods, reason = "this is where ids come in")]
    pub fn random() -> Self {
        Self(*uuid::Uuid::new_v4().as_bytes())
    }
}

impl fmt::Display for Owner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", uuid::Uuid::from_bytes(self.0))
    }
}

impl fmt::Debug for Owner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Owner(..)")
    }
}

// === impl Fence ===

impl fmt::Display for Fence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}
