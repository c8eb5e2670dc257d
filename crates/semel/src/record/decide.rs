//! The state machine: `decide(record, operation, now)` says what is written and what is answered.
//!
//! Nothing here reads a clock or a disk. The memory and embedded stores call these functions;
//! SQL and Lua must agree with them, and the conformance suite compares the two.

use super::{
    Acted, Claim, Claimed, Fail, FailKind, Fence, Held, InDoubt, Lease, Record, Resolution, State,
    StepBegun, StepRecord,
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
    /// An operator decides about a parked record.
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

/// What an operation does to a step.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use]
pub struct StepDecision<A> {
    /// The step as it is from now on; `None` leaves it as it was.
    pub write: Option<StepRecord>,
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

/// Asks to run: granted to whoever finds the key absent, waiting and due, or lapsed.
pub fn claim(record: Option<&Record>, claim: &Claim, now: Time) -> Decision<Claimed> {
    let Some(old) = look(record, now) else {
        return grant(record, None, claim, now);
    };
    if old.fingerprint != claim.fingerprint {
        return Decision::unchanged(Claimed::Mismatched);
    }
    if let Some(settled) = old.settled(now) {
        return Decision::unchanged(Claimed::Replayed(settled));
    }
    let retry_after = old.lease_until.since(now);
    let due = old.lease_until <= now;
    match old.state {
        State::Parked => Decision::unchanged(Claimed::Parked),
        State::Waiting if !due => Decision::unchanged(Claimed::NotYet { retry_after }),
        // The answer to this very claim was lost, and it is made again.
        State::Running if !due && old.owner == claim.owner => {
            Decision::unchanged(Claimed::Granted(old.lease(claim)))
        }
        State::Running if !due => Decision::unchanged(Claimed::Busy { retry_after }),
        State::Running if lapse_parks(old, claim) => park(old, claim, now),
        State::Running | State::Waiting | State::Succeeded | State::Failed => {
            grant(record, Some(old), claim, now)
        }
    }
}

/// Prolongs the lease of a run that still holds it.
pub fn renew(
    record: Option<&Record>,
    lease: &Lease,
    lease_for: Duration,
    retention: Duration,
    now: Time,
) -> Decision<Held> {
    match record {
        Some(old) if old.is_of(lease) && old.state == State::Running => {
            let lease_until = old.lease_until.max(now.plus(lease_for));
            let expires_at = old.expires_at.max(now.plus(lease_for).plus(retention));
            write_held(Record {
                lease_until,
                expires_at,
                ..old.clone()
            })
        }
        Some(_) | None => Decision::unchanged(not_held(record, lease, None, now)),
    }
}

/// Records success.
pub fn complete(
    record: Option<&Record>,
    lease: &Lease,
    result: &Bytes,
    retention: Duration,
    now: Time,
) -> Decision<Held> {
    match held(record, lease) {
        Some(old) => write_held(Record {
            state: State::Succeeded,
            result: Some(result.clone()),
            lease_until: now,
            expires_at: old.expires_at.max(now.plus(retention)),
            ..old.clone()
        }),
        None => Decision::unchanged(not_held(record, lease, Some(State::Succeeded), now)),
    }
}

/// Records a failure: for good, to be tried again, or parked.
pub fn fail(record: Option<&Record>, lease: &Lease, how: &Fail, now: Time) -> Decision<Held> {
    let Some(old) = held(record, lease) else {
        let mine = if how.kind == FailKind::Final {
            State::Failed
        } else {
            State::Waiting
        };
        return Decision::unchanged(not_held(record, lease, Some(mine), now));
    };
    let again = if below(old.attempts, how.max_attempts) {
        State::Waiting
    } else {
        State::Parked
    };
    let (state, delay) = match (how.kind, how.in_doubt) {
        (FailKind::Final, _) => (State::Failed, Duration::ZERO),
        (FailKind::InDoubt { delay }, InDoubt::Park) => (State::Parked, delay),
        (FailKind::InDoubt { delay }, InDoubt::Retry) | (FailKind::Retryable { delay }, _) => {
            (again, delay)
        }
    };
    write_held(Record {
        state,
        result: Some(how.result.clone()),
        lease_until: now.plus(delay),
        expires_at: old.expires_at.max(now.plus(delay).plus(how.retention)),
        ..old.clone()
    })
}

/// Gives the right to run back; only when nothing of the effect was begun.
pub fn release(record: Option<&Record>, lease: &Lease, now: Time) -> Decision<Held> {
    match held(record, lease) {
        Some(old) => write_held(Record {
            attempts: old.attempts.saturating_sub(1),
            result: None,
            ..waiting_now(old, old.fence, now)
        }),
        None => Decision::unchanged(not_held(record, lease, Some(State::Waiting), now)),
    }
}

/// The record, unless it is absent or expired.
#[must_use]
pub fn look(record: Option<&Record>, now: Time) -> Option<&Record> {
    record.filter(|record| !record.expired(now))
}

/// An operator says what became of a parked run; the run itself is stale from then on.
pub fn resolve(record: Option<&Record>, how: &Resolution, now: Time) -> Decision<Acted> {
    let Some(old) = look(record, now).filter(|old| old.state == State::Parked) else {
        return gone(record, now);
    };
    let waiting = waiting_now(old, old.next_fence(now), now);
    write_acted(match how {
        Resolution::Retry => waiting,
        Resolution::Succeeded(result) => Record {
            state: State::Succeeded,
            result: Some(result.clone()),
            ..waiting
        },
        Resolution::Failed(result) => Record {
            state: State::Failed,
            result: Some(result.clone()),
            ..waiting
        },
    })
}

/// An operator makes a parked or failed record claimable again; its steps stay done.
pub fn redrive(record: Option<&Record>, now: Time) -> Decision<Acted> {
    act_on(record, &[State::Parked, State::Failed], now)
}

/// An operator takes the right to run from whoever has it; that run is stale from then on.
pub fn release_by_operator(record: Option<&Record>, now: Time) -> Decision<Acted> {
    act_on(record, &[State::Running, State::Waiting], now)
}

/// An operator ends the incarnation. The husk keeps its fence until it is swept, so that the next
/// grant goes above it.
pub fn forget(record: Option<&Record>, now: Time) -> Decision<Acted> {
    let Some(old) = look(record, now) else {
        return gone(record, now);
    };
    if old.state == State::Running && old.lease_until > now {
        return Decision::unchanged(Acted::Refused);
    }
    let husk = Record {
        state: State::Waiting,
        result: None,
        lease_until: now,
        expires_at: now,
        ..old.clone()
    };
    Decision {
        ended: Some(old.born),
        ..write_acted(husk)
    }
}

/// Whether sweep may remove the record. `grace` is longer than a claim can stall, or a fence
/// could fall.
#[must_use]
pub fn sweepable(record: &Record, grace: Duration, now: Time) -> bool {
    let leased = record.state == State::Running && record.lease_until > now;
    record.state != State::Parked && record.expires_at.plus(grace) <= now && !leased
}

/// Begins a step of a run that holds its lease.
pub fn step_begin(
    record: Option<&Record>,
    step: Option<&StepRecord>,
    lease: &Lease,
    now: Time,
) -> StepDecision<StepBegun> {
    if let Err(held) = running(record, lease, now) {
        return StepDecision::unchanged(held.into());
    }
    match step {
        None => StepDecision {
            write: Some(StepRecord {
                fence: lease.fence,
                result: None,
            }),
            answer: StepBegun::Run,
        },
        Some(StepRecord {
            fence,
            result: Some(result),
        }) => {
            let (fence, result) = (*fence, result.clone());
            StepDecision::unchanged(StepBegun::Memo { fence, result })
        }
        Some(step) if step.fence == lease.fence => StepDecision::unchanged(StepBegun::Run),
        Some(step) => StepDecision::unchanged(StepBegun::InDoubt(step.fence)),
    }
}

/// Begins a step again that an earlier run left in doubt.
pub fn step_restart(
    record: Option<&Record>,
    step: Option<&StepRecord>,
    lease: &Lease,
    now: Time,
) -> StepDecision<Held> {
    if let Err(held) = running(record, lease, now) {
        return StepDecision::unchanged(held);
    }
    match step {
        Some(StepRecord { result: None, .. }) => StepDecision {
            write: Some(StepRecord {
                fence: lease.fence,
                result: None,
            }),
            answer: Held::Applied(State::Running),
        },
        Some(StepRecord {
            result: Some(_), ..
        })
        | None => StepDecision::unchanged(Held::Stale),
    }
}

/// Records the result of a step that this run began.
pub fn step_complete(
    record: Option<&Record>,
    step: Option<&StepRecord>,
    lease: &Lease,
    result: &Bytes,
    now: Time,
) -> StepDecision<Held> {
    if let Err(held) = running(record, lease, now) {
        return StepDecision::unchanged(held);
    }
    match step {
        Some(step) if step.fence == lease.fence && step.result.is_none() => StepDecision {
            write: Some(StepRecord {
                fence: lease.fence,
                result: Some(result.clone()),
            }),
            answer: Held::Applied(State::Running),
        },
        Some(step) if step.fence == lease.fence => {
            StepDecision::unchanged(Held::Already(State::Running))
        }
        Some(_) | None => StepDecision::unchanged(Held::Stale),
    }
}

// Below: what the functions above say aloud.

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
        born: old.map_or(fence, |old| old.born),
        fence,
        owner: claim.owner,
        lease_until: now.plus(claim.lease),
        expires_at: record.map_or(end, |record| record.expires_at.max(end)),
        result: None,
    };
    let lease = new.lease(claim);
    let ended = record.map(|record| record.born).filter(|_| old.is_none());
    Decision {
        write: Some(new),
        ended,
        answer: Claimed::Granted(lease),
    }
}

/// Parks a lapsed run. Its fence and owner stay: its own late word still counts.
fn park(old: &Record, claim: &Claim, now: Time) -> Decision<Claimed> {
    let end = now.plus(claim.lease).plus(claim.retention);
    let write = Record {
        state: State::Parked,
        expires_at: old.expires_at.max(end),
        result: None,
        ..old.clone()
    };
    Decision {
        write: Some(write),
        ended: None,
        answer: Claimed::Parked,
    }
}

fn lapse_parks(old: &Record, claim: &Claim) -> bool {
    claim.in_doubt == InDoubt::Park || !below(old.attempts, claim.max_attempts)
}

fn below(attempts: u32, max: Option<NonZeroU32>) -> bool {
    max.is_none_or(|max| attempts < max.get())
}

/// The record, if this run may still say how it ended.
fn held<'a>(record: Option<&'a Record>, lease: &Lease) -> Option<&'a Record> {
    record.filter(|old| old.is_of(lease) && matches!(old.state, State::Running | State::Parked))
}

fn running<'a>(record: Option<&'a Record>, lease: &Lease, now: Time) -> Result<&'a Record, Held> {
    record
        .filter(|old| old.is_of(lease) && old.state == State::Running)
        .ok_or_else(|| not_held(record, lease, None, now))
}

/// What became of a run whose write was not made. `mine` is the state its own call leads to.
fn not_held(record: Option<&Record>, lease: &Lease, mine: Option<State>, now: Time) -> Held {
    let Some(old) = record.filter(|old| old.is_of(lease)) else {
        return Held::Stale;
    };
    if Some(old.state) == mine {
        return Held::Already(old.state);
    }
    match old.settled(now) {
        Some(settled) => Held::Settled(settled),
        None if old.state == State::Parked => Held::Parked,
        None => Held::Stale,
    }
}

fn act_on(record: Option<&Record>, states: &[State], now: Time) -> Decision<Acted> {
    match look(record, now).filter(|old| states.contains(&old.state)) {
        Some(old) => write_acted(waiting_now(old, old.next_fence(now), now)),
        None => gone(record, now),
    }
}

/// The record as waiting and due, with the retention it had.
fn waiting_now(old: &Record, fence: Fence, now: Time) -> Record {
    let retention = old.expires_at.since(old.lease_until);
    Record {
        state: State::Waiting,
        fence,
        lease_until: now,
        expires_at: old.expires_at.max(now.plus(retention)),
        ..old.clone()
    }
}

const fn write_held(new: Record) -> Decision<Held> {
    let answer = Held::Applied(new.state);
    Decision {
        write: Some(new),
        ended: None,
        answer,
    }
}

const fn write_acted(new: Record) -> Decision<Acted> {
    Decision {
        write: Some(new),
        ended: None,
        answer: Acted::Applied,
    }
}

fn gone(record: Option<&Record>, now: Time) -> Decision<Acted> {
    Decision::unchanged(Acted::Gone(look(record, now).map(|old| old.state)))
}

// === impl Decision ===

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

impl<A> StepDecision<A> {
    const fn unchanged(answer: A) -> Self {
        Self {
            write: None,
            answer,
        }
    }
}

impl From<Held> for StepBegun {
    fn from(held: Held) -> Self {
        match held {
            Held::Settled(settled) => Self::Settled(settled),
            Held::Parked => Self::Parked,
            Held::Applied(_) | Held::Already(_) | Held::Stale => Self::Stale,
        }
    }
}

// === impl Record ===

impl Record {
    fn next_fence(&self, now: Time) -> Fence {
        Fence(now.0.max(self.fence.0 + 1))
    }

    fn lease(&self, claim: &Claim) -> Lease {
        Lease {
            key: claim.key,
            owner: self.owner,
            fence: self.fence,
            born: self.born,
            attempt: self.attempts,
        }
    }
}
