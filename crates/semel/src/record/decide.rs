//! The state machine: `decide(record, operation, now)` says what is written and what is answered.
//!
//! Nothing here reads a clock or a disk. The memory and embedded stores call the functions of this
//! module; SQL and Lua must agree with them, and the conformance suite compares the two.

use super::{
    Acted, Claim, Claimed, Fail, Fence, Held, Lease, Record, Resolution, State, claim, complete,
    fail, forget, redrive, release, release_by_operator, renew, resolve,
};
use crate::clock::Time;
use bytes::Bytes;
use std::num::NonZeroU32;
use std::time::Duration;

/// One operation on the record of one key.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Operation {
    /// Ask to run.
    Claim(Claim),
    /// Keep the right to run: the new lease and the retention.
    Renew(Lease, Duration, Duration),
    /// Record success: the result and the retention.
    Complete(Lease, Bytes, Duration),
    /// Record a failure.
    Fail(Lease, Fail),
    /// Give the right to run back: nothing was sent.
    Release(Lease),
    /// Read.
    Look,
    /// An operator decides about a parked record, or about one run.
    Resolve(Resolution),
    /// An operator makes a parked or failed record claimable again.
    Redrive,
    /// An operator takes the right to run from whoever has it.
    ReleaseByOperator,
    /// An operator ends the incarnation.
    Forget,
}

/// The answer to an [`Operation`].
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Answer {
    /// To a claim.
    Claimed(Claimed),
    /// To renew, complete, fail and release.
    Held(Held),
    /// To look.
    Looked(Option<Record>),
    /// To an operator's act.
    Acted(Acted),
}

/// What an operation does to a record.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use]
pub struct Decision<A> {
    /// The record as it is from now on; `None` leaves it as it was.
    pub write: Option<Record>,
    /// The incarnation that ended: its steps go with it.
    pub ended: Option<Fence>,
    /// What the caller is told.
    pub answer: A,
}

/// Decides one operation. An expired record is an absent one whose fence is still a floor.
///
/// ```
/// use semel::clock::Time;
/// use semel::record::{Answer, Operation, decide};
///
/// let decision = decide(None, &Operation::Look, Time(0));
/// assert_eq!(decision.answer, Answer::Looked(None));
/// assert_eq!(decision.write, None);
/// ```
pub fn decide(record: Option<&Record>, operation: &Operation, now: Time) -> Decision<Answer> {
    match operation {
        Operation::Claim(c) => claim(record, c, now).map(Answer::Claimed),
        Operation::Renew(l, lease, keep) => renew(record, l, *lease, *keep, now).map(Answer::Held),
        Operation::Complete(l, result, keep) => {
            complete(record, l, result, *keep, now).map(Answer::Held)
        }
        Operation::Fail(l, how) => fail(record, l, how, now).map(Answer::Held),
        Operation::Release(l) => release(record, l, now).map(Answer::Held),
        Operation::Look => Decision::unchanged(Answer::Looked(look(record, now).cloned())),
        Operation::Resolve(how) => resolve(record, how, now).map(Answer::Acted),
        Operation::Redrive => redrive(record, now).map(Answer::Acted),
        Operation::ReleaseByOperator => release_by_operator(record, now).map(Answer::Acted),
        Operation::Forget => forget(record, now).map(Answer::Acted),
    }
}

/// The record, unless it is absent or expired.
#[must_use]
pub fn look(record: Option<&Record>, now: Time) -> Option<&Record> {
    record.filter(|record| !record.expired(now))
}

/// Whether one more run is allowed.
pub(super) fn below(attempts: u32, max: Option<NonZeroU32>) -> bool {
    max.is_none_or(|max| attempts < max.get())
}

/// The record as waiting and due, with the retention it had.
pub(super) fn waiting_now(old: &Record, fence: Fence, now: Time) -> Record {
    let retention = old.expires_at.since(old.lease_until);
    Record {
        state: State::Waiting,
        fence,
        lease_until: now,
        expires_at: old.expires_at.max(now.plus(retention)),
        ..old.clone()
    }
}

impl<A> Decision<A> {
    /// Nothing is written.
    pub const fn unchanged(answer: A) -> Self {
        Self {
            write: None,
            ended: None,
            answer,
        }
    }

    fn map<B>(self, into: impl FnOnce(A) -> B) -> Decision<B> {
        Decision {
            write: self.write,
            ended: self.ended,
            answer: into(self.answer),
        }
    }
}

impl Record {
    /// Above every fence this key ever had.
    pub(super) fn next_fence(&self, now: Time) -> Fence {
        Fence(now.0.max(self.fence.0 + 1))
    }
}
