//! The state machine: `decide(record, step, operation, now)` says what is written and what is answered.
//!
//! Nothing here reads a clock or a disk. The memory and embedded stores call this function; SQL and Lua must
//! agree with it, and the conformance suite compares the two.

use super::{Answer, Fence, Operation, Record, State, StepRecord, Superseded};
use super::{claim, hold, operator, step};
use crate::clock::Time;
use bytes::Bytes;

/// What an operation does to the record of a key and to a step of it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use]
pub struct Decision<A = Answer> {
    /// The record as it is from now on; `None` leaves it as it was.
    pub write: Option<Record>,
    /// The attempt that another takes the place of: the store adds it to the record's history
    /// ([`Record::remember`]), wherever it keeps that.
    pub superseded: Option<Superseded>,
    /// The incarnation that ended: its steps and its history go with it.
    pub ended: Option<Fence>,
    /// The step as it is from now on; `None` leaves it as it was.
    pub step: Option<StepRecord>,
    /// What the caller is told.
    pub answer: A,
}

/// Decides one operation on the record of its key. `step` is the step that the operation names, of the incarnation
/// that its lease names; other operations have none. An expired record is an absent one whose fence is still a floor.
///
/// ```
/// use semel::clock::Time;
/// use semel::protocol::{Answer, Claim, Claimed, InDoubt, Operation, Owner, State, decide};
/// use semel::{Fingerprint, Key};
///
/// let claim = Claim::new(Key::from_bytes([1; 32]), Fingerprint::of(b"payload"));
/// let claim = Claim { in_doubt: InDoubt::Park, ..claim };
/// let granted = decide(None, None, &Operation::Claim(claim.clone()), Time(1_000_000));
/// assert!(matches!(granted.answer, Answer::Claimed(Claimed::Granted(_))));
///
/// // Nobody renewed or completed; under `park`, the next claim after the lapse finds a doubt.
/// let other = Operation::Claim(Claim { owner: Owner::random(), ..claim });
/// let later = decide(granted.write.as_ref(), None, &other, Time(60_000_000));
/// assert_eq!(later.answer, Answer::Claimed(Claimed::Parked));
/// assert_eq!(later.write.unwrap().state, State::Parked);
/// ```
pub fn decide(
    record: Option<&Record>,
    step: Option<&StepRecord>,
    operation: &Operation,
    now: Time,
) -> Decision {
    match operation {
        Operation::Claim(claim) => claim::claim(record, claim, now).map(Answer::Claimed),
        Operation::Renew {
            lease,
            lease_for,
            retention,
        } => hold::renew(record, lease, *lease_for, *retention, now).map(Answer::Held),
        Operation::Complete {
            lease,
            result,
            retention,
        } => hold::complete(record, lease, result, *retention, now).map(Answer::Held),
        Operation::Fail { lease, how } => hold::fail(record, lease, how, now).map(Answer::Held),
        Operation::Release { lease, park_after } => {
            hold::release(record, lease, *park_after, now).map(Answer::Held)
        }
        Operation::Look(_) => Decision::unchanged(Answer::Looked(look(record, now).cloned())),
        Operation::StepBegin { lease, .. } => {
            step::begin(record, step, lease, now).map(Answer::StepBegun)
        }
        Operation::StepRestart { lease, .. } => {
            step::restart(record, step, lease, now).map(Answer::Held)
        }
        Operation::StepComplete { lease, result, .. } => {
            step::complete(record, step, lease, result, now).map(Answer::Held)
        }
        Operation::Resolve { how, by, .. } => {
            operator::resolve(record, how, by, now).map(Answer::Acted)
        }
        Operation::Redrive { by, .. } => operator::redrive(record, by, now).map(Answer::Acted),
        Operation::Retain { retention, .. } => {
            operator::retain(record, *retention, now).map(Answer::Acted)
        }
        Operation::ReleaseByOperator { by, .. } => {
            operator::release(record, by, now).map(Answer::Acted)
        }
        Operation::Forget(_) => operator::forget(record, now).map(Answer::Acted),
        Operation::Ready => Decision::unchanged(Answer::Ready),
        // What these show and keep is beside the record: the store's own to read and to write.
        Operation::Steps(_) => Decision::unchanged(Answer::Steps(Vec::new())),
        Operation::Index { .. } => Decision::unchanged(Answer::Indexed),
        Operation::Find(_) => Decision::unchanged(Answer::Found(Vec::new())),
    }
}

/// The record, unless it is absent or expired.
#[must_use]
pub fn look(record: Option<&Record>, now: Time) -> Option<&Record> {
    record.filter(|record| !record.expired(now))
}

/// The record as waiting and due, with the retention it had.
pub(super) fn waiting_now(old: &Record, fence: Fence, now: Time) -> Record {
    let retention = old.expires_at.since(old.lease_until);
    Record {
        state: State::Waiting,
        fence,
        lease_until: now,
        expires_at: old.expires_at.max(now.plus(retention)),
        result: old.last_failure(),
        ..old.clone()
    }
}

// === impl Decision ===

impl<A> Decision<A> {
    /// Nothing is written.
    pub const fn unchanged(answer: A) -> Self {
        Self {
            write: None,
            superseded: None,
            ended: None,
            step: None,
            answer,
        }
    }

    /// The record is written.
    pub(super) fn written(record: Record, answer: A) -> Self {
        Self {
            write: Some(record),
            ..Self::unchanged(answer)
        }
    }

    /// The step is written.
    pub(super) fn step_written(step: StepRecord, answer: A) -> Self {
        Self {
            step: Some(step),
            ..Self::unchanged(answer)
        }
    }

    /// The answer, unless something should have been written.
    pub fn unless_written(self) -> Option<A> {
        (self.write.is_none() && self.step.is_none()).then_some(self.answer)
    }

    fn map<B>(self, into: impl FnOnce(A) -> B) -> Decision<B> {
        Decision {
            write: self.write,
            superseded: self.superseded,
            ended: self.ended,
            step: self.step,
            answer: into(self.answer),
        }
    }
}

// === impl Record ===

impl Record {
    /// The same once its run has ended in doubt: failed so, or is found lapsed.
    pub(super) fn in_one_more_doubt(&self, now: Time) -> Self {
        Self {
            doubts: self.doubts + 1,
            doubted_at: self.doubted_at.or(Some(now)),
            in_doubt: true,
            ..self.clone()
        }
    }

    /// How its last run failed, once that run is over. What a running record has is of the run before.
    pub(super) fn last_failure(&self) -> Option<Bytes> {
        let is_over = self.state != State::Running;
        self.result.clone().filter(|_| is_over)
    }

    /// Above every fence this key ever had.
    pub(super) fn next_fence(&self, now: Time) -> Fence {
        Fence(now.0.max(self.fence.0 + 1))
    }
}
