//! An exhaustive model of the protocol: a small world in which everything that can happen, happens,
//! in every order, and a checker who knows only the rules.
//!
//! Every decision is made by the real functions of [`semel::protocol`]; the model adds the workers
//! that forget, pause and repeat themselves, the clock, the operator, and the checker. To read it:
//! [`world`] is what there is, [`action`] what can happen, [`invariant`] what must hold. Two smaller models stand beside it:
//! [`letters`] of unfinished work, and the [`sickness`] of work and handlers.

pub mod world;
pub mod action;
pub mod invariant;
pub mod mutant;
mod perform;
mod request;
mod store;
pub mod canonical;
pub mod ghost;
pub mod operation_checks;
mod state_checks;
mod example;
pub mod letters;
pub mod sickness;

use action::Action;
use canonical::{ACTS, NOW, OLD, ticks};
use invariant::Invariant;
use mutant::{Mutant, Mutation};
use semel::clock::Time;
use semel::protocol::{
    Decision, DoubtLimit, InDoubt, Lease, Operation, Record, StepRecord, decide, sweepable,
};
use stateright::{Model, Property};
use std::num::NonZeroU32;
use std::time::Duration;
use world::{Budget, Work, World};

/// The model: how large its world is, and whose decisions are tried.
#[derive(Clone, Copy, Debug)]
pub struct Semel {
    /// How large the world is, and the policy of every claim.
    pub settings: Settings,
    /// What a mutant changes; nothing, and the decisions are the library's own.
    pub change: Option<Mutation>,
}

/// How large a world is, and the policy of every claim in it.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// What runs have to do, one world for each.
    pub works: &'static [Work],
    /// How many workers.
    pub workers: usize,
    /// How often happens what does not happen any number of times.
    pub budget: Budget,
    /// How many ticks before its turn a claim may have read the store's clock.
    pub stall: u64,
    /// What becomes of a run in doubt.
    pub in_doubt: InDoubt,
    /// How many runs before the work is parked.
    pub max_attempts: Option<NonZeroU32>,
    /// Limit on runs that end in doubt, beyond which the work is parked.
    pub max_in_doubt: Option<DoubtLimit>,
    /// Age from which a release parks the work.
    pub park_after: Option<Duration>,
}

// === impl Semel ===

impl Semel {
    /// The library's own decisions in a world of this size.
    #[must_use]
    pub const fn real(settings: Settings) -> Self {
        Self {
            settings,
            change: None,
        }
    }

    /// A mutant's decisions.
    #[must_use]
    pub const fn mutant(mutant: &Mutant) -> Self {
        Self {
            settings: mutant.settings,
            change: Some(mutant.change),
        }
    }

    /// The world after an action, as it comes; `None` when nothing can come of it.
    #[must_use]
    pub fn after(&self, last: &World, action: Action) -> Option<World> {
        let mut world = last.clone();
        self.perform(&mut world, action)?;
        Some(world)
    }

    /// The same world without distinctions that can make no difference.
    #[must_use]
    pub fn canonical(&self, mut world: World) -> World {
        let reach = self.settings.stall + u64::from(world.budget.clock_back);
        let ages = u64::from(self.settings.park_after.is_some());
        world.canonical_doubts(&self.settings, reach);
        world.canonicalize(reach, self.settings.grace(), ages);
        world
    }

    fn decide(&self, world: &World, operation: &Operation, now: Time) -> Decision {
        let step = operation.step();
        let step = step.and_then(|(lease, _)| self.step_found(world, lease));
        let record = world.record.as_ref();
        match self.change {
            None => decide(record, step, operation, now),
            Some(change) => change.decide(record, step, operation, now),
        }
    }

    fn step_found<'a>(&self, world: &'a World, lease: &Lease) -> Option<&'a StepRecord> {
        match self.change {
            Some(Mutation::StepFound(step_found)) => step_found(&world.steps, lease),
            Some(Mutation::Input(_) | Mutation::Decision(_) | Mutation::Sweepable(_)) | None => {
                world.steps.get(&lease.born)
            }
        }
    }

    fn sweepable(&self, record: &Record) -> bool {
        let sweepable = match self.change {
            Some(Mutation::Sweepable(sweepable)) => sweepable,
            Some(Mutation::Input(_) | Mutation::Decision(_) | Mutation::StepFound(_)) | None => {
                sweepable
            }
        };
        sweepable(record, ticks(self.settings.grace()), NOW)
    }
}

impl Model for Semel {
    type State = World;
    type Action = Action;

    fn init_states(&self) -> Vec<World> {
        let Settings {
            works,
            workers,
            budget,
            ..
        } = self.settings;
        let worlds = works.iter().map(|work| World::new(*work, workers, budget));
        worlds.collect()
    }

    fn actions(&self, world: &World, actions: &mut Vec<Action>) {
        self.possible(world, actions);
    }

    fn next_state(&self, last: &World, action: Action) -> Option<World> {
        self.after(last, action).map(|world| self.canonical(world))
    }

    fn properties(&self) -> Vec<Property<Self>> {
        invariants().chain(self.examples()).collect()
    }
}

// === impl Settings ===

impl Settings {
    /// Two workers, three grants, one operator's act; a run in doubt is tried again.
    pub const RETRY: Self = Self {
        works: &[Work::Effect, Work::Guarded, Work::Step],
        workers: 2,
        budget: Budget {
            grants: 3,
            acts: 1,
            clock_back: 0,
            retains: 0,
        },
        stall: 0,
        in_doubt: InDoubt::Retry,
        max_attempts: None,
        max_in_doubt: None,
        park_after: None,
    };

    /// The same, but a run in doubt is parked.
    pub const PARK: Self = Self {
        in_doubt: InDoubt::Park,
        ..Self::RETRY
    };

    /// The same, but the work is parked after two attempts.
    pub const TWO_ATTEMPTS: Self = Self {
        max_attempts: NonZeroU32::new(2),
        ..Self::RETRY
    };

    /// The same, but the work is parked after two runs in doubt, the first of them a tick ago.
    pub const TWO_DOUBTS: Self = Self {
        works: &[Work::Effect],
        max_in_doubt: Some(DoubtLimit {
            runs: NonZeroU32::new(2).expect("two is not zero"),
            age: ticks(1),
        }),
        ..Self::RETRY
    };

    /// The same, but a run in doubt is followed by one that finds out, once the first can no longer act.
    pub const PROBE: Self = Self {
        works: &[Work::Effect],
        in_doubt: InDoubt::Probe,
        ..Self::RETRY
    };

    /// Two grants only, but a keeper retains the record once, and a release parks old work.
    pub const KEEPER: Self = Self {
        works: &[Work::Effect],
        budget: Budget {
            grants: 2,
            retains: 1,
            ..Self::RETRY.budget
        },
        park_after: Some(OLD),
        ..Self::RETRY
    };

    /// Two grants only, but the store's clock steps back once, and claims stall after reading it.
    pub const UNSTEADY_CLOCK: Self = Self {
        budget: Budget {
            grants: 2,
            acts: 1,
            clock_back: 1,
            retains: 0,
        },
        stall: 1,
        ..Self::RETRY
    };

    /// The same with so many grants.
    #[must_use]
    pub const fn with_grants(self, grants: u8) -> Self {
        let budget = Budget {
            grants,
            ..self.budget
        };
        Self { budget, ..self }
    }

    /// For how long after its grant a run may act, where that matters.
    #[must_use]
    pub fn acts_for(&self) -> Option<Duration> {
        (self.in_doubt == InDoubt::Probe).then_some(ACTS)
    }

    /// How many ticks sweep lets an expired record lie: longer than a claim can stall and the clock
    /// step back together, or a fence could fall.
    #[must_use]
    pub fn grace(&self) -> u64 {
        self.stall + u64::from(self.budget.clock_back) + 1
    }
}

/// Each invariant as a property: no world that can be reached breaks it.
fn invariants() -> impl Iterator<Item = Property<Semel>> {
    // A property's condition is a plain function, so each invariant needs one of its own.
    let conditions = [
        at::<0>, at::<1>, at::<2>, at::<3>, at::<4>, at::<5>, at::<6>, at::<7>, at::<8>, at::<9>,
        at::<10>, at::<11>, at::<12>, at::<13>, at::<14>, at::<15>, at::<16>, at::<17>,
    ];
    let invariants = Invariant::ALL.into_iter().zip(conditions);
    invariants.map(|(invariant, holds)| Property::always(invariant.name(), holds))
}

/// Whether a world keeps the nth invariant.
fn at<const N: usize>(model: &Semel, world: &World) -> bool {
    let invariant = Invariant::ALL.get(N);
    invariant.is_some_and(|invariant| model.keeps(world, *invariant))
}
