//! Mutants that decide wrongly about a record.

use super::super::request;
use bytes::Bytes;
use semel::clock::Time;
use semel::protocol::{
    Answer, Claim, Claimed, Decision, Fail, Fence, Held, InDoubt, Lease, Operation, Record, State,
    StepRecord, decide, sweepable,
};
use std::time::Duration;

pub(super) fn claim_ignores_the_lease(
    record: Option<&Record>,
    step: Option<&StepRecord>,
    operation: &Operation,
    now: Time,
) -> Decision {
    if let (Some(old), Operation::Claim(_)) = (record, operation) {
        let lapsed = Record {
            lease_until: now.min(old.lease_until),
            ..old.clone()
        };
        return decide(Some(&lapsed), step, operation, now);
    }
    decide(record, step, operation, now)
}

pub(super) fn forget_takes_a_live_lease(
    record: Option<&Record>,
    step: Option<&StepRecord>,
    operation: &Operation,
    now: Time,
) -> Decision {
    if let (Some(old), Operation::Forget(_)) = (record, operation) {
        let lapsed = Record {
            lease_until: now.min(old.lease_until),
            ..old.clone()
        };
        return decide(Some(&lapsed), step, operation, now);
    }
    decide(record, step, operation, now)
}

pub(super) fn fence_from_the_clock_alone(
    record: Option<&Record>,
    step: Option<&StepRecord>,
    operation: &Operation,
    now: Time,
) -> Decision {
    let mut decision = decide(record, step, operation, now);
    if let (Some(lease), Some(write)) = (
        request::granted_mut(&mut decision.answer),
        &mut decision.write,
    ) {
        write.fence = Fence(now.0);
        lease.fence = Fence(now.0);
    }
    decision
}

pub(super) fn sweep_without_grace(record: &Record, _: Duration, now: Time) -> bool {
    sweepable(record, Duration::ZERO, now)
}

pub(super) fn sweep_takes_running(record: &Record, grace: Duration, now: Time) -> bool {
    let lapsed = record.state == State::Running && record.lease_until <= now;
    lapsed || sweepable(record, grace, now)
}

pub(super) fn sweep_takes_parked(record: &Record, grace: Duration, now: Time) -> bool {
    let waiting = Record {
        state: State::Waiting,
        ..record.clone()
    };
    sweepable(&waiting, grace, now)
}

pub(super) fn complete_without_fence(
    record: Option<&Record>,
    step: Option<&StepRecord>,
    operation: &Operation,
    now: Time,
) -> Decision {
    if let (
        Some(old),
        Operation::Complete {
            lease,
            result,
            retention,
        },
    ) = (record, operation)
    {
        let complete = Operation::Complete {
            lease: lease_of(old, lease),
            result: result.clone(),
            retention: *retention,
        };
        return decide(record, step, &complete, now);
    }
    decide(record, step, operation, now)
}

pub(super) fn renew_without_fence(
    record: Option<&Record>,
    step: Option<&StepRecord>,
    operation: &Operation,
    now: Time,
) -> Decision {
    if let (
        Some(old),
        Operation::Renew {
            lease,
            lease_for,
            retention,
        },
    ) = (record, operation)
    {
        let renew = Operation::Renew {
            lease: lease_of(old, lease),
            lease_for: *lease_for,
            retention: *retention,
        };
        return decide(record, step, &renew, now);
    }
    decide(record, step, operation, now)
}

pub(super) fn parking_takes_the_fence(
    record: Option<&Record>,
    step: Option<&StepRecord>,
    operation: &Operation,
    now: Time,
) -> Decision {
    let mut decision = decide(record, step, operation, now);
    if let (Operation::Claim(_), Some(write)) = (operation, &mut decision.write)
        && write.state == State::Parked
    {
        write.fence.0 += 1;
    }
    decision
}

pub(super) fn lapse_revokes(
    record: Option<&Record>,
    step: Option<&StepRecord>,
    operation: &Operation,
    now: Time,
) -> Decision {
    let lapsed = record.is_some_and(|old| old.state == State::Running && old.lease_until <= now);
    if let (true, Operation::Complete { .. }) = (lapsed, operation) {
        return Decision::unchanged(Answer::Held(Held::Stale));
    }
    decide(record, step, operation, now)
}

pub(super) fn success_does_not_absorb(
    record: Option<&Record>,
    step: Option<&StepRecord>,
    operation: &Operation,
    now: Time,
) -> Decision {
    if let (Some(old), Operation::Claim(_)) = (record, operation)
        && old.state == State::Succeeded
    {
        let waiting = in_state(old, State::Waiting);
        return decide(Some(&waiting), step, operation, now);
    }
    decide(record, step, operation, now)
}

pub(super) fn completion_is_overwritten(
    record: Option<&Record>,
    step: Option<&StepRecord>,
    operation: &Operation,
    now: Time,
) -> Decision {
    if let (Some(old), Operation::Complete { .. }) = (record, operation)
        && old.state == State::Succeeded
    {
        let running = in_state(old, State::Running);
        return decide(Some(&running), step, operation, now);
    }
    decide(record, step, operation, now)
}

pub(super) fn replay_loses_the_result(
    record: Option<&Record>,
    step: Option<&StepRecord>,
    operation: &Operation,
    now: Time,
) -> Decision {
    let mut decision = decide(record, step, operation, now);
    if let Answer::Claimed(Claimed::Replayed(settled)) = &mut decision.answer {
        settled.result = Bytes::new();
    }
    decision
}

pub(super) fn mismatch_is_ignored(
    record: Option<&Record>,
    step: Option<&StepRecord>,
    operation: &Operation,
    now: Time,
) -> Decision {
    if let (Some(old), Operation::Claim(claim)) = (record, operation) {
        let claim = Claim {
            fingerprint: old.fingerprint,
            ..claim.clone()
        };
        return decide(record, step, &Operation::Claim(claim), now);
    }
    decide(record, step, operation, now)
}

pub(super) fn expires_at_goes_back(
    record: Option<&Record>,
    step: Option<&StepRecord>,
    operation: &Operation,
    now: Time,
) -> Decision {
    let mut decision = decide(record, step, operation, now);
    if let (Operation::Complete { retention, .. }, Some(write)) = (operation, &mut decision.write) {
        write.expires_at = now.plus(*retention);
    }
    decision
}

pub(super) fn parked_expires(
    record: Option<&Record>,
    step: Option<&StepRecord>,
    operation: &Operation,
    now: Time,
) -> Decision {
    if let (Some(old), Operation::Claim(_)) = (record, operation)
        && old.state == State::Parked
    {
        let waiting = in_state(old, State::Waiting);
        if waiting.expired(now) {
            return decide(Some(&waiting), step, operation, now);
        }
    }
    decide(record, step, operation, now)
}

pub(super) fn completion_is_not_written(
    record: Option<&Record>,
    step: Option<&StepRecord>,
    operation: &Operation,
    now: Time,
) -> Decision {
    let decision = decide(record, step, operation, now);
    if let Operation::Complete { .. } = operation {
        return Decision::unchanged(decision.answer);
    }
    decision
}

pub(super) fn in_doubt_retries_under_park(
    record: Option<&Record>,
    step: Option<&StepRecord>,
    operation: &Operation,
    now: Time,
) -> Decision {
    if let Operation::Fail { lease, how } = operation {
        let how = Fail {
            in_doubt: InDoubt::Retry,
            ..how.clone()
        };
        return decide(
            record,
            step,
            &Operation::Fail {
                lease: lease.clone(),
                how,
            },
            now,
        );
    }
    decide(record, step, operation, now)
}

pub(super) fn lapse_retries_under_park(
    record: Option<&Record>,
    step: Option<&StepRecord>,
    operation: &Operation,
    now: Time,
) -> Decision {
    if let Operation::Claim(claim) = operation {
        let claim = Claim {
            in_doubt: InDoubt::Retry,
            ..claim.clone()
        };
        return decide(record, step, &Operation::Claim(claim), now);
    }
    decide(record, step, operation, now)
}

pub(super) fn attempts_are_not_counted(
    record: Option<&Record>,
    step: Option<&StepRecord>,
    operation: &Operation,
    now: Time,
) -> Decision {
    if let Operation::Claim(claim) = operation {
        let claim = Claim {
            max_attempts: None,
            ..claim.clone()
        };
        return decide(record, step, &Operation::Claim(claim), now);
    }
    decide(record, step, operation, now)
}

pub(super) fn release_counts_as_success(
    record: Option<&Record>,
    step: Option<&StepRecord>,
    operation: &Operation,
    now: Time,
) -> Decision {
    let mut decision = decide(record, step, operation, now);
    if let (Operation::Release(_), Some(write)) = (operation, &mut decision.write) {
        write.state = State::Succeeded;
    }
    decision
}

pub(super) fn lapse_stays_busy(
    record: Option<&Record>,
    step: Option<&StepRecord>,
    operation: &Operation,
    now: Time,
) -> Decision {
    let running = record.is_some_and(|old| old.state == State::Running && !old.expired(now));
    if let (true, Operation::Claim(_)) = (running, operation) {
        let retry_after = Duration::ZERO;
        return Decision::unchanged(Answer::Claimed(Claimed::Busy { retry_after }));
    }
    decide(record, step, operation, now)
}

/// The lease that the record's own run has.
fn lease_of(record: &Record, lease: &Lease) -> Lease {
    Lease {
        fence: record.fence,
        owner: record.owner,
        ..lease.clone()
    }
}

fn in_state(record: &Record, state: State) -> Record {
    Record {
        state,
        ..record.clone()
    }
}
