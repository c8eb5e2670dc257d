//! The functions under test: the library's own, unless a mutant replaces one of them.

use semel::clock::Time;
use semel::protocol::{self, Decision, Fence, Lease, Operation, Record, StepRecord};
use std::collections::BTreeMap;
use std::time::Duration;

/// Every decision the protocol makes.
#[derive(Clone, Copy, Debug)]
pub struct Protocol {
    /// What becomes of a record and a step of it.
    pub decide: Decide,
    /// Whether a record is removed.
    pub sweepable: fn(&Record, Duration, Time) -> bool,
    /// Which step a run finds.
    pub step_found: for<'a> fn(&'a Steps, &Lease) -> Option<&'a StepRecord>,
}

/// A decision by the record, the step and the operation.
pub type Decide = fn(Option<&Record>, Option<&StepRecord>, &Operation, Time) -> Decision;

/// The one step of the key, by the incarnation it belongs to.
pub type Steps = BTreeMap<Fence, StepRecord>;

// === impl Protocol ===

impl Protocol {
    /// The library's own functions.
    pub const REAL: Self = Self {
        decide: protocol::decide,
        sweepable: protocol::sweepable,
        step_found: step_of_this_incarnation,
    };
}

fn step_of_this_incarnation<'a>(steps: &'a Steps, lease: &Lease) -> Option<&'a StepRecord> {
    steps.get(&lease.born)
}
