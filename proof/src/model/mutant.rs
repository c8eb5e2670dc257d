//! Mutants: the protocol with one of its decisions changed. [`faults`](crate::faults) lists them.

use super::Settings;
use super::invariant::Invariant;
use super::world::Steps;
use semel::clock::Time;
use semel::protocol::{
    Claim, Decision, DoubtLimit, Fail, FailKind, Lease, Operation, Record, State, StepRecord,
    decide,
};
use std::time::Duration;

/// A mutant, and what it must be convicted of.
#[derive(Clone, Copy, Debug)]
pub struct Mutant {
    /// A world in which it shows.
    pub settings: Settings,
    /// The invariant that convicts it.
    pub invariant: Invariant,
    /// What is changed.
    pub change: Mutation,
}

/// The one thing that a mutant changes.
#[derive(Clone, Copy, Debug)]
pub enum Mutation {
    /// What a decision is made from.
    Input(fn(&mut Input)),
    /// What was decided.
    Decision(fn(&Input, &mut Decision)),
    /// Whether a record is removed.
    Sweepable(fn(&Record, Duration, Time) -> bool),
    /// Which step a run finds.
    StepFound(for<'a> fn(&'a Steps, &Lease) -> Option<&'a StepRecord>),
}

/// What a decision is made from.
#[derive(Clone, Debug)]
pub struct Input {
    /// The record of the key.
    pub record: Option<Record>,
    /// The step that the operation names.
    pub step: Option<StepRecord>,
    /// What is asked.
    pub operation: Operation,
    /// The store's reading of its clock.
    pub now: Time,
}

// === impl Mutation ===

impl Mutation {
    pub(super) fn decide(
        self,
        record: Option<&Record>,
        step: Option<&StepRecord>,
        operation: &Operation,
        now: Time,
    ) -> Decision {
        let mut input = Input {
            record: record.cloned(),
            step: step.cloned(),
            operation: operation.clone(),
            now,
        };
        if let Self::Input(change) = self {
            change(&mut input);
        }
        let Input { record, step, .. } = &input;
        let mut decision = decide(record.as_ref(), step.as_ref(), &input.operation, now);
        if let Self::Decision(change) = self {
            change(&input, &mut decision);
        }
        decision
    }
}

// === impl Input ===

impl Input {
    /// Whether the record is in this state.
    pub(crate) fn is(&self, state: State) -> bool {
        let record = self.record.as_ref();
        record.is_some_and(|record| record.state == state)
    }

    /// Whether the record is of a run whose lease has lapsed.
    pub(crate) fn has_lapsed(&self) -> bool {
        let record = self.record.as_ref();
        self.is(State::Running) && record.is_some_and(|record| record.lease_until <= self.now)
    }

    /// Shows a record that is in one state as if it were in another.
    pub(crate) fn show(&mut self, state: State, other: State) {
        if let Some(record) = self.record.as_mut().filter(|it| it.state == state) {
            record.state = other;
        }
    }

    /// Shows the record as if its lease had lapsed.
    pub(crate) fn lapse(&mut self) {
        let now = self.now;
        if let Some(record) = &mut self.record {
            record.lease_until = record.lease_until.min(now);
        }
    }

    /// Whether it is a claim.
    pub(crate) const fn is_claim(&self) -> bool {
        matches!(self.operation, Operation::Claim(_))
    }

    /// Whether it is a completion.
    pub(crate) const fn is_completion(&self) -> bool {
        matches!(self.operation, Operation::Complete { .. })
    }

    /// Makes a change if it is a claim.
    pub(crate) fn on_claim(&mut self, change: impl FnOnce(&mut Self)) {
        if self.is_claim() {
            change(self);
        }
    }

    /// Makes a change if it is a completion.
    pub(crate) fn on_completion(&mut self, change: impl FnOnce(&mut Self)) {
        if self.is_completion() {
            change(self);
        }
    }

    /// Whether a step is begun.
    pub(crate) const fn begins_step(&self) -> bool {
        matches!(self.operation, Operation::StepBegin { .. })
    }

    /// Changes the claim, if it is one.
    pub(crate) fn change_claim(&mut self, change: impl FnOnce(&mut Claim)) {
        if let Operation::Claim(claim) = &mut self.operation {
            change(claim);
        }
    }

    /// Changes how a run fails, if it does.
    pub(crate) fn change_failure(&mut self, change: impl FnOnce(&mut Fail)) {
        if let Operation::Fail { how, .. } = &mut self.operation {
            change(how);
        }
    }

    /// Changes the limit on runs in doubt, where one is named.
    pub(crate) fn change_doubt_limit(&mut self, change: impl FnOnce(&mut DoubtLimit)) {
        if let Operation::Claim(Claim { max_in_doubt, .. })
        | Operation::Fail {
            how: Fail { max_in_doubt, .. },
            ..
        } = &mut self.operation
            && let Some(limit) = max_in_doubt
        {
            change(limit);
        }
    }

    /// How a run fails, if it does.
    pub(crate) const fn fails(&self) -> Option<FailKind> {
        if let Operation::Fail { how, .. } = &self.operation {
            return Some(how.kind);
        }
        None
    }

    /// Changes the record that the decision is shown.
    pub(crate) fn change_record(&mut self, change: impl FnOnce(&mut Record)) {
        if let Some(record) = &mut self.record {
            change(record);
        }
    }

    /// Lets a completion or a renewal speak for the run that the record is of.
    pub(crate) fn speak_for_record(&mut self) {
        if let Operation::Complete { lease, .. } | Operation::Renew { lease, .. } =
            &mut self.operation
            && let Some(record) = &self.record
        {
            lease.fence = record.fence;
            lease.owner = record.owner;
        }
    }
}
