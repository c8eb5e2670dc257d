//! What a store remembers of a key, and the words of a claim and its answers.
//!
//! The state machine itself is [`decide`](fn@decide): pure, and the oracle every store is compared with.

mod operation;
mod decide;
mod limits;
mod claim;
mod hold;
mod history;
mod operator;
mod step;

pub use claim::{Claim, Claimed, InDoubt};
pub use decide::{Decision, decide, look};
pub use history::{
    BY_BYTES_MAX, HISTORY_ITEMS_MAX, HISTORY_RESULT_BYTES_MAX, Superseded, act_by, cut_by,
    decode_history, encode_history,
};
pub use hold::{Ending, Fail, FailKind, Held, Settled};
pub use limits::{DoubtLimit, PARK_AFTER_ATTEMPTS};
pub use operation::{Answer, Operation};
pub use operator::{Acted, Finding, Resolution, sweepable};
pub use step::{StepBegun, StepRecord};

use decide::waiting_now;
use limits::Limits;

use crate::clock::Time;
use crate::{Fingerprint, Key};
use bytes::Bytes;
use std::fmt;

/// What a store remembers of a key.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Record {
    /// The fingerprint of the delivery that made this record.
    pub fingerprint: Fingerprint,
    /// Where the work stands.
    pub state: State,
    /// How many runs were started in this incarnation.
    pub attempts: u32,
    /// How many of them ended in doubt: failed so, or lapsed and were found so.
    pub doubts: u32,
    /// Time of the first of these doubts; a sick piece of work is told from a sick handler by its age.
    pub doubted_at: Option<Time>,
    /// Whether the last run that began may or may not have had its effect, and nobody has found out. While another runs: of
    /// the one before it. Without meaning once settled.
    pub in_doubt: bool,
    /// Until when the last run may still act, if its claim said so; nobody is granted a run under
    /// [`InDoubt::Probe`] before that.
    pub acts_until: Option<Time>,
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
    /// The outcome, encoded; of a waiting or parked record the last failure. While another runs: how the run before failed, if
    /// that left it in doubt.
    pub result: Option<Bytes>,
    /// What this incarnation is about, for people: as the claim that began it said. Empty is none. Nothing is ever
    /// decided by it, so a store may keep it apart and hand in records without it.
    pub label: Bytes,
    /// The attempts of this incarnation that were superseded, oldest first, at most [`HISTORY_ITEMS_MAX`]. Only a look
    /// shows them. As with the label, nothing is decided by them.
    pub history: Vec<Superseded>,
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
    /// Whether the run before this one may or may not have had its effect. Under [`InDoubt::Probe`] whoever is granted this
    /// finds out before anything else.
    pub in_doubt: bool,
}

/// A rising number per key: `max(previous + 1, the store's clock in µs)`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Fence(pub u64);

/// A random id of one claim. It is also an authority, so it is never shown by `Debug`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Owner(pub [u8; 16]);

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

    /// Whether its last run may or may not have had its effect, now that nobody runs it any more: it said so, or it lapsed.
    #[must_use]
    pub fn ended_in_doubt(&self) -> bool {
        self.in_doubt || self.state == State::Running
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
    /// A fresh random id, from a generator that nobody can foresee and that asks the system only now and
    /// then.
    #[must_use]
    #[allow(clippy::disallowed_methods, reason = "this is where ids come in")]
    pub fn random() -> Self {
        let id = uuid::Builder::from_random_bytes(rand::random());
        Self(*id.as_uuid().as_bytes())
    }
}

impl Owner {
    /// Reads what `Display` wrote.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let id = uuid::Uuid::try_parse(text).ok()?;
        Some(Self(*id.as_bytes()))
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
