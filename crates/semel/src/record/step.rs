//! Steps: begun once per incarnation, done once, or in doubt.

use super::hold::not_held;
use super::{Fence, Held, Lease, Record, Settled, State};
use crate::clock::Time;
use bytes::Bytes;

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

/// What an operation does to a step.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use]
pub struct StepDecision<A> {
    /// The step as it is from now on; `None` leaves it as it was.
    pub write: Option<StepRecord>,
    /// What the caller is told.
    pub answer: A,
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

/// Records the result of a step that this run began. What is recorded stays, whichever run of this incarnation recorded it;
/// a step that this run has not begun is not its to end.
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
        Some(StepRecord {
            result: Some(_), ..
        }) => StepDecision::unchanged(Held::Already(State::Running)),
        Some(step) if step.fence == lease.fence => StepDecision {
            write: Some(StepRecord {
                fence: lease.fence,
                result: Some(result.clone()),
            }),
            answer: Held::Applied(State::Running),
        },
        Some(_) | None => StepDecision::unchanged(Held::Stale),
    }
}

fn running<'a>(record: Option<&'a Record>, lease: &Lease, now: Time) -> Result<&'a Record, Held> {
    record
        .filter(|old| old.is_of(lease) && old.state == State::Running)
        .ok_or_else(|| not_held(record, lease, None, now))
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
