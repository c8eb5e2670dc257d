//! What a run may say while it holds its lease: renew, complete, fail, release.

use super::{Decision, DoubtLimit, InDoubt, Lease, Limits, Record, State, waiting_now};
use crate::clock::Time;
use bytes::Bytes;
use std::num::NonZeroU32;
use std::time::Duration;

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

/// How a run failed, as a store is told.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Fail {
    /// How it failed.
    pub kind: FailKind,
    /// The policy for a run in doubt.
    pub in_doubt: InDoubt,
    /// How many runs before the work is parked; `None` is no limit.
    pub max_attempts: Option<NonZeroU32>,
    /// Limit on runs that end in doubt, beyond which the work is parked; `None` is no limit.
    pub max_in_doubt: Option<DoubtLimit>,
    /// How old the work may get before it is parked, after [`PARK_AFTER_ATTEMPTS`](super::PARK_AFTER_ATTEMPTS) runs;
    /// `None` is no limit.
    pub park_after: Option<Duration>,
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
    /// This run began nothing, because it could not find out whether the one before it had its effect: as much in doubt as
    /// before, and no run more that ended so.
    StillInDoubt {
        /// The pause before the next run, if there is one.
        delay: Duration,
    },
}

/// Prolongs the lease of a run that still holds it.
pub(super) fn renew(
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
pub(super) fn complete(
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
pub(super) fn fail(
    record: Option<&Record>,
    lease: &Lease,
    how: &Fail,
    now: Time,
) -> Decision<Held> {
    let Some(old) = held(record, lease) else {
        let mine = if how.kind == FailKind::Final {
            State::Failed
        } else {
            State::Waiting
        };
        return Decision::unchanged(not_held(record, lease, Some(mine), now));
    };
    let ended = how.kind.ends(old, now);
    let again = if Limits::of_failure(how).are_reached(&ended, now) {
        State::Parked
    } else {
        State::Waiting
    };
    let (state, delay) = match (how.kind, how.in_doubt) {
        (FailKind::Final, _) => (State::Failed, Duration::ZERO),
        (FailKind::InDoubt { delay }, InDoubt::Park) => (State::Parked, delay),
        (FailKind::InDoubt { delay }, InDoubt::Retry | InDoubt::Probe)
        | (FailKind::Retryable { delay } | FailKind::StillInDoubt { delay }, _) => (again, delay),
    };
    write_held(Record {
        state,
        result: Some(how.result.clone()),
        lease_until: now.plus(delay),
        expires_at: ended.expires_at.max(now.plus(delay).plus(how.retention)),
        ..ended
    })
}

/// Gives up the lease of a run that began nothing: the attempt does not count, and the work keeps its age. Work older than
/// `park_after` is parked, however often it ran: its handler may be unreachable for longer than its sender delivers.
pub(super) fn release(
    record: Option<&Record>,
    lease: &Lease,
    park_after: Option<Duration>,
    now: Time,
) -> Decision<Held> {
    let Some(old) = held(record, lease) else {
        return Decision::unchanged(not_held(record, lease, Some(State::Waiting), now));
    };
    let is_old = park_after.is_some_and(|after| old.age(now) >= after);
    if is_old && old.state == State::Parked {
        return Decision::unchanged(Held::Already(State::Parked));
    }
    write_held(Record {
        state: if is_old {
            State::Parked
        } else {
            State::Waiting
        },
        attempts: old.attempts.saturating_sub(1),
        acts_until: None,
        // What was in doubt before it still is, for the same reason.
        result: old.result.clone().filter(|_| old.in_doubt),
        ..waiting_now(old, old.fence, now)
    })
}

/// The record, if this run may still say how it ended.
fn held<'a>(record: Option<&'a Record>, lease: &Lease) -> Option<&'a Record> {
    record.filter(|old| old.is_of(lease) && matches!(old.state, State::Running | State::Parked))
}

/// What became of a run whose write was not made. `mine` is the state its own call leads to.
pub(super) fn not_held(
    record: Option<&Record>,
    lease: &Lease,
    mine: Option<State>,
    now: Time,
) -> Held {
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

fn write_held(new: Record) -> Decision<Held> {
    let answer = Held::Applied(new.state);
    Decision::written(new, answer)
}

// === impl FailKind ===

impl FailKind {
    /// What is known of the effect when a run fails so.
    fn ends(self, old: &Record, now: Time) -> Record {
        match self {
            Self::Final | Self::Retryable { .. } => Record {
                in_doubt: false,
                ..old.clone()
            },
            // One that is parked was counted when it got there: its word may be a repeated one.
            Self::InDoubt { .. } if old.state == State::Parked => Record {
                in_doubt: true,
                ..old.clone()
            },
            Self::InDoubt { .. } => old.in_one_more_doubt(now),
            Self::StillInDoubt { .. } => Record {
                acts_until: None,
                ..old.clone()
            },
        }
    }
}
