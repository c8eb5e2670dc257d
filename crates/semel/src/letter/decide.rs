//! What putting and marking do to a letter. Pure, like [`record::decide`](fn@crate::record::decide): the
//! memory and embedded stores call these functions, SQL and Lua must agree with them.

use super::{Letter, Mark, Marked, Put};
use crate::clock::Time;
use crate::record::Fence;

/// What a store keeps under a letter's id.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Stored {
    /// The letter.
    Open(Letter),
    /// What is left of it once it is closed.
    Closed(Tombstone),
}

/// A closed letter, without its delivery: it keeps duplicates from bringing the letter back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tombstone {
    /// The letter's fence: only a higher one reopens it.
    pub fence: Fence,
    /// From then on it counts as absent, and sweep removes it.
    pub expires_at: Time,
}

/// What an operation does to a letter.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use]
pub struct LetterDecision<A> {
    /// What is kept from now on; `None` leaves it as it was.
    pub write: Option<Stored>,
    /// What the caller is told.
    pub answer: A,
}

/// Keeps a letter, unless it is kept already or this is a duplicate of one that was closed.
///
/// ```
/// use semel::clock::Time;
/// use semel::letter::{self, Letter, LetterId, Mark, Put, Reason};
/// use semel::protocol::Fence;
/// use std::time::Duration;
///
/// let letter = Letter {
///     id: LetterId([1; 32]),
///     key: None,
///     route: "charge".into(),
///     reason: Reason::Invalid,
///     fence: Fence(0),
///     retention: Duration::from_secs(1),
///     redriven: false,
///     alarmed: false,
///     delivery: "POST /charge".into(),
/// };
/// let open = letter::put(None, &letter, Time(0)).write;
/// let closed = letter::mark(open.as_ref(), Mark::Closed, Time(0)).write;
/// assert_eq!(letter::put(closed.as_ref(), &letter, Time(999_999)).answer, Put::Closed);
/// assert_eq!(letter::put(closed.as_ref(), &letter, Time(1_000_000)).answer, Put::Applied);
/// ```
pub fn put(stored: Option<&Stored>, new: &Letter, now: Time) -> LetterDecision<Put> {
    match stored {
        Some(Stored::Open(old)) if old.fence < new.fence => {
            // Whoever closes it now closes what came under the higher fence, too.
            let risen = Letter {
                fence: new.fence,
                ..old.clone()
            };
            written(Stored::Open(risen), Put::Already)
        }
        Some(Stored::Open(_)) => unchanged(Put::Already),
        Some(Stored::Closed(old)) if !old.expired(now) && new.fence <= old.fence => {
            unchanged(Put::Closed)
        }
        Some(Stored::Closed(_)) | None => written(Stored::Open(new.clone()), Put::Applied),
    }
}

/// Notes something on an open letter.
pub fn mark(stored: Option<&Stored>, mark: Mark, now: Time) -> LetterDecision<Marked> {
    let Some(Stored::Open(old)) = stored else {
        return unchanged(Marked::Gone);
    };
    let marked = match mark {
        Mark::Redriven => Stored::Open(Letter {
            redriven: true,
            ..old.clone()
        }),
        Mark::Alarmed => Stored::Open(Letter {
            alarmed: true,
            ..old.clone()
        }),
        Mark::Closed => Stored::Closed(Tombstone {
            fence: old.fence,
            expires_at: now.plus(old.retention),
        }),
    };
    written(marked, Marked::Applied)
}

const fn written<A>(stored: Stored, answer: A) -> LetterDecision<A> {
    LetterDecision {
        write: Some(stored),
        answer,
    }
}

const fn unchanged<A>(answer: A) -> LetterDecision<A> {
    LetterDecision {
        write: None,
        answer,
    }
}

// === impl Stored ===

impl Stored {
    /// The letter, if it is open.
    #[must_use]
    pub const fn open(&self) -> Option<&Letter> {
        match self {
            Self::Open(letter) => Some(letter),
            Self::Closed(_) => None,
        }
    }

    /// Whether sweep may remove it.
    #[must_use]
    pub fn sweepable(&self, now: Time) -> bool {
        match self {
            Self::Open(_) => false,
            Self::Closed(tombstone) => tombstone.expired(now),
        }
    }
}

// === impl Tombstone ===

impl Tombstone {
    /// Whether it counts as absent.
    #[must_use]
    pub fn expired(&self, now: Time) -> bool {
        self.expires_at <= now
    }
}
