//! The functions under test: the library's own, unless a mutant replaces one of them.

use bytes::Bytes;
use semel::clock::Time;
use semel::record::{
    self, Answer, Decision, Fence, Held, Lease, Operation, Record, StepBegun, StepDecision,
    StepRecord,
};
use std::collections::BTreeMap;
use std::time::Duration;

/// Every decision the protocol makes.
#[derive(Clone, Copy, Debug)]
pub struct Protocol {
    /// What becomes of a record.
    pub decide: fn(Option<&Record>, &Operation, Time) -> Decision<Answer>,
    /// Whether a step is run.
    pub step_begin: StepBegin<StepBegun>,
    /// Whether a step in doubt is run again.
    pub step_restart: StepBegin<Held>,
    /// Whether the result of a step is kept.
    pub step_complete: StepComplete,
    /// Whether a record is removed.
    pub sweepable: fn(&Record, Duration, Time) -> bool,
    /// Which step a run finds.
    pub step_found: for<'a> fn(&'a Steps, &Lease) -> Option<&'a StepRecord>,
}

/// A decision about beginning a step, by the record, the step and the lease.
pub type StepBegin<A> = fn(Option<&Record>, Option<&StepRecord>, &Lease, Time) -> StepDecision<A>;

/// A decision about a step's result.
pub type StepComplete =
    fn(Option<&Record>, Option<&StepRecord>, &Lease, &Bytes, Time) -> StepDecision<Held>;

/// The one step of the key, by the incarnation it belongs to.
pub type Steps = BTreeMap<Fence, StepRecord>;

// === impl Protocol ===

impl Protocol {
    /// The library's own functions.
    pub const REAL: Self = Self {
        decide: record::decide,
        step_begin: record::step_begin,
        step_restart: record::step_restart,
        step_complete: record::step_complete,
        sweepable: record::sweepable,
        step_found: step_of_this_incarnation,
    };
}

fn step_of_this_incarnation<'a>(steps: &'a Steps, lease: &Lease) -> Option<&'a StepRecord> {
    steps.get(&lease.born)
}
