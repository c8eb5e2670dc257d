//! What an operator may do to a record, and what sweep may remove.

use super::{Decision, Fence, Record, State, Superseded, look, waiting_now};
use crate::clock::Time;
use bytes::Bytes;
use std::time::Duration;

/// What an operator decides about a parked record, or about the one run that it names.
///
/// ```
/// use semel::protocol::{Fence, Finding, Resolution};
///
/// let parked = Resolution::new(Finding::Retry);
/// let one_run = Resolution::new(Finding::Retry).of_run(Fence(7));
/// assert_eq!((parked.fence, one_run.fence), (None, Some(Fence(7))));
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Resolution {
    /// What became of the run.
    pub finding: Finding,
    /// Which run it was. With it, a run whose lease has lapsed is resolved as well as a parked one,
    /// and no other run than this.
    pub fence: Option<Fence>,
}

/// What an operator found out about a run.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Finding {
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

/// An operator says what became of a parked run, or of the run that it names if its lease has
/// lapsed; the run itself is stale from then on.
pub(super) fn resolve(
    record: Option<&Record>,
    how: &Resolution,
    by: &Bytes,
    now: Time,
) -> Decision<Acted> {
    let Some(old) = look(record, now).filter(|old| how.is_for(old)) else {
        return gone(record, now);
    };
    if old.state == State::Running && old.lease_until > now {
        return Decision::unchanged(Acted::Refused);
    }
    let waiting = Record {
        in_doubt: false,
        ..waiting_now(old, old.next_fence(now), now)
    };
    let new = match &how.finding {
        Finding::Retry => waiting,
        Finding::Succeeded(result) => Record {
            state: State::Succeeded,
            result: Some(result.clone()),
            ..waiting
        },
        Finding::Failed(result) => Record {
            state: State::Failed,
            result: Some(result.clone()),
            ..waiting
        },
    };
    supersede(old, new, by, now)
}

/// A keeper prolongs the retention of a record that has not succeeded: an open letter refers to it. Parked records never
/// expire.
pub(super) fn retain(record: Option<&Record>, retention: Duration, now: Time) -> Decision<Acted> {
    match look(record, now) {
        Some(old) if [State::Running, State::Waiting, State::Failed].contains(&old.state) => {
            write_acted(Record {
                expires_at: old.expires_at.max(now.plus(retention)),
                ..old.clone()
            })
        }
        Some(_) | None => gone(record, now),
    }
}

/// An operator makes a parked or failed record claimable again; its steps stay done.
pub(super) fn redrive(record: Option<&Record>, by: &Bytes, now: Time) -> Decision<Acted> {
    act_on(record, &[State::Parked, State::Failed], by, now)
}

/// An operator takes the right to run from whoever has it; that run is stale from then on.
pub(super) fn release(record: Option<&Record>, by: &Bytes, now: Time) -> Decision<Acted> {
    act_on(record, &[State::Running, State::Waiting], by, now)
}

/// An operator ends the incarnation. The husk keeps its fence until it is swept, so that the next
/// grant goes above it.
pub(super) fn forget(record: Option<&Record>, now: Time) -> Decision<Acted> {
    let Some(old) = look(record, now) else {
        return gone(record, now);
    };
    if old.state == State::Running && old.lease_until > now {
        return Decision::unchanged(Acted::Refused);
    }
    let husk = Record {
        state: State::Waiting,
        result: None,
        label: Bytes::new(),
        history: Vec::new(),
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

fn act_on(record: Option<&Record>, states: &[State], by: &Bytes, now: Time) -> Decision<Acted> {
    let Some(old) = look(record, now).filter(|old| states.contains(&old.state)) else {
        return gone(record, now);
    };
    let new = Record {
        in_doubt: old.ended_in_doubt(),
        ..waiting_now(old, old.next_fence(now), now)
    };
    supersede(old, new, by, now)
}

/// Writes what an act makes of the record, and remembers what it was.
fn supersede(old: &Record, new: Record, by: &Bytes, now: Time) -> Decision<Acted> {
    Decision {
        superseded: Some(Superseded::of(old, by, now)),
        ..write_acted(new)
    }
}

fn write_acted(new: Record) -> Decision<Acted> {
    Decision::written(new, Acted::Applied)
}

fn gone(record: Option<&Record>, now: Time) -> Decision<Acted> {
    Decision::unchanged(Acted::Gone(look(record, now).map(|old| old.state)))
}

// === impl Resolution ===

impl Resolution {
    /// Of a parked record.
    #[must_use]
    pub const fn new(finding: Finding) -> Self {
        Self {
            finding,
            fence: None,
        }
    }

    /// The same, of this very run.
    #[must_use]
    pub fn of_run(self, fence: Fence) -> Self {
        Self {
            fence: Some(fence),
            ..self
        }
    }

    fn is_for(&self, old: &Record) -> bool {
        match self.fence {
            None => old.state == State::Parked,
            Some(fence) => {
                old.fence == fence && matches!(old.state, State::Parked | State::Running)
            }
        }
    }
}
