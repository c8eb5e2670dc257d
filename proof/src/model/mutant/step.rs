//! Mutants that forget a step, or remember one that is another's.

use super::super::protocol::Steps;
use super::super::request;
use semel::clock::Time;
use semel::protocol::{Decision, Lease, Operation, Record, StepRecord, decide};

pub(super) fn take_over_gives_a_new_born(
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
        write.born = write.fence;
        lease.born = write.fence;
    }
    decision
}

pub(super) fn take_over_ends_the_incarnation(
    record: Option<&Record>,
    step: Option<&StepRecord>,
    operation: &Operation,
    now: Time,
) -> Decision {
    let mut decision = decide(record, step, operation, now);
    if request::granted(&decision).is_some() && decision.write.is_some() {
        decision.ended = record.map(|old| old.born);
    }
    decision
}

pub(super) fn step_of_any_incarnation<'a>(
    steps: &'a Steps,
    lease: &Lease,
) -> Option<&'a StepRecord> {
    steps.get(&lease.born).or_else(|| steps.values().next())
}

pub(super) fn step_done_runs_again(
    record: Option<&Record>,
    step: Option<&StepRecord>,
    operation: &Operation,
    now: Time,
) -> Decision {
    let begins = matches!(operation, Operation::StepBegin { .. });
    let forgotten = step.filter(|step| !begins || step.result.is_none());
    decide(record, forgotten, operation, now)
}

pub(super) fn step_in_doubt_runs(
    record: Option<&Record>,
    step: Option<&StepRecord>,
    operation: &Operation,
    now: Time,
) -> Decision {
    let begins = matches!(operation, Operation::StepBegin { .. });
    let begun_by = operation
        .lease()
        .filter(|_| begins)
        .map(|lease| lease.fence);
    let doubted =
        |step: &StepRecord| step.result.is_none() && begun_by.is_some_and(|f| f != step.fence);
    let known = step.filter(|step| !doubted(step));
    decide(record, known, operation, now)
}
