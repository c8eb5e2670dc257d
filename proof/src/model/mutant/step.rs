//! Mutants that forget a step, or remember one that is another's.

use super::super::protocol::Steps;
use super::super::request;
use semel::clock::Time;
use semel::record::{
    self, Answer, Decision, Lease, Operation, Record, StepBegun, StepDecision, StepRecord,
};

pub(super) fn take_over_gives_a_new_born(
    record: Option<&Record>,
    operation: &Operation,
    now: Time,
) -> Decision<Answer> {
    let mut decision = record::decide(record, operation, now);
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
    operation: &Operation,
    now: Time,
) -> Decision<Answer> {
    let mut decision = record::decide(record, operation, now);
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
    lease: &Lease,
    now: Time,
) -> StepDecision<StepBegun> {
    let forgotten = step.filter(|step| step.result.is_none());
    record::step_begin(record, forgotten, lease, now)
}

pub(super) fn step_in_doubt_runs(
    record: Option<&Record>,
    step: Option<&StepRecord>,
    lease: &Lease,
    now: Time,
) -> StepDecision<StepBegun> {
    let known = step.filter(|step| step.result.is_some() || step.fence == lease.fence);
    record::step_begin(record, known, lease, now)
}
