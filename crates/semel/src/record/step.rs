//! Steps: begun once per incarnation, done once, or in doubt.

use super::hold::not_held;
use super::{Decision, Fence, Held, Lease, Record, Settled, State};
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

/// Begins a step of a run that holds its lease.
pub(super) fn begin(
    record: Option<&Record>,
    step: Option<&StepRecord>,
    lease: &Lease,
    now: Time,
) -> Decision<StepBegun> {
    if let Err(held) = running(record, lease, now) {
        return Decision::unchanged(held.into());
    }
    match step {
        None => Decision::step_written(StepRecord::begun(lease), StepBegun::Run),
        Some(StepRecord {
            fence,
            result: Some(result),
        }) => {
            let (fence, result) = (*fence, result.clone());
            Decision::unchanged(StepBegun::Memo { fence, result })
        }
        Some(step) if step.fence == lease.fence => Decision::unchanged(StepBegun::Run),
        Some(step) => Decision::unchanged(StepBegun::InDoubt(step.fence)),
    }
}

/// Begins a step again that an earlier run left in doubt.
pub(super) fn restart(
    record: Option<&Record>,
    step: Option<&StepRecord>,
    lease: &Lease,
    now: Time,
) -> Decision<Held> {
    if let Err(held) = running(record, lease, now) {
        return Decision::unchanged(held);
    }
    match step {
        Some(StepRecord { result: None, .. }) => {
            Decision::step_written(StepRecord::begun(lease), Held::Applied(State::Running))
        }
        Some(StepRecord {
            result: Some(_), ..
        })
        | None => Decision::unchanged(Held::Stale),
    }
}

/// Records the result of a step that this run began. What is recorded stays, whichever run of this incarnation recorded it;
/// a step that this run has not begun is not its to end.
pub(super) fn complete(
    record: Option<&Record>,
    step: Option<&StepRecord>,
    lease: &Lease,
    result: &Bytes,
    now: Time,
) -> Decision<Held> {
    if let Err(held) = running(record, lease, now) {
        return Decision::unchanged(held);
    }
    match step {
        Some(StepRecord {
            result: Some(_), ..
        }) => Decision::unchanged(Held::Already(State::Running)),
        Some(step) if step.fence == lease.fence => {
            let done = StepRecord {
                fence: lease.fence,
                result: Some(result.clone()),
            };
            Decision::step_written(done, Held::Applied(State::Running))
        }
        Some(_) | None => Decision::unchanged(Held::Stale),
    }
}

fn running<'a>(record: Option<&'a Record>, lease: &Lease, now: Time) -> Result<&'a Record, Held> {
    record
        .filter(|old| old.is_of(lease) && old.state == State::Running)
        .ok_or_else(|| not_held(record, lease, None, now))
}

// === impl StepRecord ===

impl StepRecord {
    /// A step as this run begins it.
    const fn begun(lease: &Lease) -> Self {
        Self {
            fence: lease.fence,
            result: None,
        }
    }
}

// === impl StepBegun ===

impl From<Held> for StepBegun {
    fn from(held: Held) -> Self {
        match held {
            Held::Settled(settled) => Self::Settled(settled),
            Held::Parked => Self::Parked,
            Held::Applied(_) | Held::Already(_) | Held::Stale => Self::Stale,
        }
    }
}
