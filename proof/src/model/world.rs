//! The world of the model: one key, what the store keeps of it, the workers, and what the checker
//! remembers.

use super::ghost::Ghost;
use super::invariant::Invariant;
use semel::clock::Time;
use semel::protocol::{Fence, Lease, Owner, Record, StepRecord};
use std::collections::BTreeMap;

/// Everything there is at one moment. The moment is always [`NOW`](super::canonical::NOW): time passes by making
/// everything else a tick older.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct World {
    /// What a run has to do.
    pub work: Work,
    /// The record of the key, expired or not, as long as it is there physically.
    pub record: Option<Record>,
    /// The one step, by the incarnation it belongs to.
    pub steps: Steps,
    /// Gates with their handlers. One that does nothing for long is a paused one.
    pub workers: Vec<Worker>,
    /// Handlers whose gate has given them up, and which may still act.
    pub handlers: Vec<Handler>,
    /// What is left of the things that are bounded.
    pub budget: Budget,
    /// What the checker remembers. No action reads it.
    pub ghost: Ghost,
    /// The rules that the last action broke. Nothing happens after that.
    pub broken: Vec<Invariant>,
}

/// The one step of the key, by the incarnation it belongs to.
pub type Steps = BTreeMap<Fence, StepRecord>;

/// What a run has to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Work {
    /// One effect somewhere in the world, then `complete`.
    Effect,
    /// One effect in the store's own database, committed together with `complete`.
    Guarded,
    /// One named step with an effect somewhere in the world, then `complete`.
    Step,
}

/// A gate with its handler. A crash makes it [`Idle`](Self::Idle): it forgets everything.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Worker {
    /// Knows nothing.
    Idle,
    /// Claimed and did not hear the answer.
    Asking(Owner),
    /// Was granted a run, and may by now be the last to believe in it.
    Running(Run),
}

/// A run in a worker's hands.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Run {
    /// What the worker was granted.
    pub lease: Lease,
    /// How far it got.
    pub stage: Stage,
    /// When it acts no more, if ever.
    pub acts_until: Option<Time>,
    /// For the checker: the incarnation in which it was granted, as the checker counts them.
    pub incarnation: u8,
}

/// A handler whose gate has given it up. Only runs that are probed have one: all others may act at any time, and what they
/// do is what a worker that pauses does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Handler {
    /// When it acts no more.
    pub acts_until: Time,
    /// For the checker: the incarnation in which its run was granted.
    pub incarnation: u8,
}

/// How far a run got.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Stage {
    /// Nothing was sent.
    Granted,
    /// The request is on its way to the handler; a step: it was begun.
    Begun,
    /// A step: an earlier run began it and did not say how it ended.
    InDoubt,
    /// The effect has happened.
    Done,
    /// A step: its result is known.
    Recorded,
    /// The worker said how the run ended, and did not hear the answer: it will say it again.
    Reporting(RunEnd),
}

/// How a worker says that its run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RunEnd {
    /// It took effect.
    Complete,
    /// It failed for good.
    FailFinal,
    /// It failed without an effect, and may be tried again after a tick.
    FailRetryable,
    /// Nobody knows whether it took effect.
    FailInDoubt,
    /// Nobody could say whether the run before took effect, and nothing was sent.
    FailStillInDoubt,
    /// Nothing was sent.
    Release,
}

/// What is left of the things that are bounded; everything else may happen any number of times.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Budget {
    /// Grants of a new fence.
    pub grants: u8,
    /// Operator's acts.
    pub acts: u8,
    /// Steps of the store's clock back by a tick.
    pub clock_back: u8,
    /// Records that a keeper retains.
    pub retains: u8,
}

// === impl World ===

impl World {
    /// A key that nobody has heard of.
    #[must_use]
    pub fn new(work: Work, workers: usize, budget: Budget) -> Self {
        Self {
            work,
            record: None,
            steps: Steps::new(),
            workers: vec![Worker::Idle; workers],
            handlers: Vec::new(),
            budget,
            ghost: Ghost::default(),
            broken: Vec::new(),
        }
    }

    /// The runs in workers' hands.
    pub fn runs(&self) -> impl Iterator<Item = &Run> {
        self.workers.iter().filter_map(|worker| match worker {
            Worker::Running(run) => Some(run),
            Worker::Idle | Worker::Asking(_) => None,
        })
    }
}

// === impl Worker ===

impl Worker {
    /// The owner it claims or runs under.
    #[must_use]
    pub const fn owner(&self) -> Option<Owner> {
        match self {
            Self::Idle => None,
            Self::Asking(owner) => Some(*owner),
            Self::Running(run) => Some(run.lease.owner),
        }
    }
}
