//! What must be possible: a world in which nothing happens breaks no rule either. Each example is
//! found by looking at a world, or by asking it what it would answer.

use super::canonical::{NOW, RETENTION};
use super::ghost::By;
use super::request;
use super::world::{Run, RunEnd, Stage, Work, Worker, World};
use super::{Semel, Settings};
use semel::protocol::{
    Acted, Answer, Claimed, Ending, Fence, Held, InDoubt, Operation, Owner, State,
};
use stateright::Property;

/// Something that must be possible, and how to see that it was.
type Example = (&'static str, fn(&Semel, &World) -> bool);

impl Semel {
    /// What must be possible in this world.
    pub(super) fn examples(&self) -> impl Iterator<Item = Property<Self>> {
        let Settings {
            works,
            in_doubt,
            max_attempts,
            max_in_doubt,
            budget,
            ..
        } = self.settings;
        let limited = max_attempts.is_some() || max_in_doubt.is_some();
        let under_policy = match in_doubt {
            InDoubt::Probe => UNDER_PROBE,
            InDoubt::Retry | InDoubt::Park if budget.retains > 0 => WITH_A_KEEPER,
            InDoubt::Retry | InDoubt::Park if limited => UNDER_A_LIMIT,
            InDoubt::Retry => UNDER_RETRY,
            InDoubt::Park => UNDER_PARK,
        };
        let of_step: &[Example] = if works.contains(&Work::Step) {
            OF_STEPS
        } else {
            &[]
        };
        let guarded: &[Example] = if works.contains(&Work::Guarded) {
            GUARDED
        } else {
            &[]
        };
        let under_clock: &[Example] = match budget.clock_back {
            0 => &[],
            _ => &[("a fence is ahead of the clock", fence_ahead)],
        };
        let examples = [EVERYWHERE, of_step, guarded, under_policy, under_clock].concat();
        examples
            .into_iter()
            .map(|(name, seen)| Property::sometimes(name, seen))
    }
}

const EVERYWHERE: &[Example] = &[
    ("a run succeeds", |_, world| ended_by(world, By::Run)),
    ("a run fails for good", |_, world| is(world, State::Failed)),
    ("a duplicate is replayed", |model, world| {
        matches!(claimed(model, world), Claimed::Replayed(_))
    }),
    ("a duplicate is busy", |model, world| {
        matches!(claimed(model, world), Claimed::Busy { .. })
    }),
    ("a duplicate comes too soon", |model, world| {
        matches!(claimed(model, world), Claimed::NotYet { .. })
    }),
    ("a lost grant is given again", granted_again),
    ("a lost completion is already there", |model, world| {
        any_run(world, |run| {
            run.stage == Stage::Reporting(RunEnd::Complete)
                && matches!(completed(model, world, run), Held::Already(_))
        })
    }),
    ("a zombie is refused", |model, world| {
        any_run(world, |run| {
            run.stage == Stage::Done && completed(model, world, run) == Held::Stale
        })
    }),
    ("an operator redrives", |model, world| {
        let redrive = Operation::Redrive {
            key: request::KEY,
            by: bytes::Bytes::new(),
        };
        let redrive = model.decide(world, &redrive, NOW);
        world.budget.acts > 0 && redrive.answer == Answer::Acted(Acted::Applied)
    }),
    ("an operator forgets", |_, world| {
        world.ghost.present().forgotten
    }),
    ("a record is swept", |_, world| {
        world.record.is_none() && world.ghost.highest.is_some()
    }),
    ("a key runs again after its retention", runs_again),
];

const GUARDED: &[Example] = &[
    ("a guarded effect is committed", |_, world| {
        world.ghost.present().commits == 1
    }),
    ("a guarded effect is rolled back", |model, world| {
        world.work == Work::Guarded
            && any_run(world, |run| {
                run.stage == Stage::Begun && completed(model, world, run) == Held::Stale
            })
    }),
];

const OF_STEPS: &[Example] = &[
    ("a step is resumed", step_is_resumed),
    ("a step is in doubt", |_, world| {
        any_run(world, |run| run.stage == Stage::InDoubt)
    }),
    ("an orphan step lies about", |_, world| {
        any_run(world, |run| {
            run.stage == Stage::Granted && world.steps.keys().any(|born| *born < run.lease.born)
        })
    }),
];

const UNDER_RETRY: &[Example] = &[
    ("a lapsed run is taken over", taken_over),
    ("an effect happens twice", |_, world| {
        let incarnation = world.ghost.present();
        incarnation.effects == 2 && incarnation.acts == 0
    }),
    ("a step in doubt is restarted", |_, world| {
        let incarnation = world.ghost.present();
        world.work == Work::Step
            && incarnation.step.is_none()
            && incarnation.effects > 0
            && any_run(world, |run| {
                run.stage == Stage::Begun && is_current(world, run)
            })
    }),
];

const UNDER_PARK: &[Example] = &[
    ("a lapsed run is parked", |_, world| {
        is(world, State::Parked)
    }),
    ("a parked run speaks for itself", |model, world| {
        is(world, State::Parked)
            && any_run(world, |run| {
                run.stage == Stage::Done && matches!(completed(model, world, run), Held::Applied(_))
            })
    }),
    ("an operator resolves", |_, world| {
        ended_by(world, By::Operator)
    }),
];

const UNDER_A_LIMIT: &[Example] = &[
    ("a lapsed run is taken over", taken_over),
    ("a limit is reached", |_, world| used_up(world)),
];

const UNDER_PROBE: &[Example] = &[
    ("a prober finds that it happened", |_, world| {
        let incarnation = world.ghost.present();
        incarnation.effects == 1 && any_run(world, |run| second_run(world, run, Stage::Done))
    }),
    ("a prober runs what had not happened", |_, world| {
        any_run(world, |run| second_run(world, run, Stage::Begun))
    }),
    ("a handler may act on without its gate", |_, world| {
        !world.handlers.is_empty()
    }),
    (
        "a run in doubt waits until it acts no more",
        |model, world| {
            world.has_record(|record| record.lease_until <= NOW)
                && matches!(
                    claimed(model, world),
                    Claimed::NotYet { .. } | Claimed::Busy { .. }
                )
        },
    ),
];

const WITH_A_KEEPER: &[Example] = &[
    ("a keeper retains a lapsed run", |_, world| {
        let untouched = world.ghost.present().acts == 0;
        untouched
            && is(world, State::Running)
            && world.has_record(|record| record.expires_at > record.lease_until.plus(RETENTION))
    }),
    ("a release parks old work", |_, world| {
        used_up(world) && world.has_record(|record| record.attempts == 0)
    }),
    (
        "a run that a release parked speaks again",
        |model, world| {
            is(world, State::Parked)
                && any_run(world, |run| {
                    run.stage == Stage::Reporting(RunEnd::Release)
                        && matches!(completed(model, world, run), Held::Applied(_))
                })
        },
    ),
];

/// Whether a later run of the incarnation got so far, without an operator.
fn second_run(world: &World, run: &Run, stage: Stage) -> bool {
    let untouched = world.ghost.present().acts == 0;
    untouched && run.stage == stage && run.lease.attempt > 1 && is_current(world, run)
}

fn used_up(world: &World) -> bool {
    is(world, State::Parked) && world.ghost.present().acts == 0
}

fn fence_ahead(_: &Semel, world: &World) -> bool {
    let next_tick = NOW.plus(super::canonical::ticks(1));
    world.has_record(|record| record.fence >= Fence(next_tick.0))
}

fn granted_again(model: &Semel, world: &World) -> bool {
    world.workers.iter().any(|worker| match worker {
        Worker::Asking(owner) => {
            let decision = model.would_claim(world, model.claim(*owner), NOW);
            decision.write.is_none() && super::request::granted(&decision).is_some()
        }
        Worker::Idle | Worker::Running(_) => false,
    })
}

fn taken_over(_: &Semel, world: &World) -> bool {
    let untouched = world.ghost.present().acts == 0;
    untouched
        && is(world, State::Running)
        && any_run(world, |run| {
            run.stage == Stage::Begun
                && run.incarnation == world.ghost.incarnation
                && !is_current(world, run)
        })
}

fn runs_again(_: &Semel, world: &World) -> bool {
    let by_itself = world
        .ghost
        .incarnations
        .values()
        .all(|incarnation| incarnation.acts == 0);
    by_itself && world.ghost.incarnation > 0 && is(world, State::Running)
}

fn step_is_resumed(_: &Semel, world: &World) -> bool {
    any_run(world, |run| {
        let step = world.steps.get(&run.lease.born);
        run.stage == Stage::Recorded && step.is_some_and(|step| step.fence < run.lease.fence)
    })
}

// Below: what the examples say aloud.

fn any_run(world: &World, is_so: impl Fn(&Run) -> bool) -> bool {
    world.runs().any(is_so)
}

fn is(world: &World, state: State) -> bool {
    world.has_record(|record| record.state == state)
}

fn is_current(world: &World, run: &Run) -> bool {
    world.has_record(|record| record.is_of(&run.lease))
}

fn ended_by(world: &World, by: By) -> bool {
    let end = world.ghost.present().end.as_ref();
    end.is_some_and(|end| (end.by, end.ending) == (by, Ending::Succeeded))
}

fn claimed(model: &Semel, world: &World) -> Claimed {
    let stranger = model.claim(Owner([0xff; 16]));
    let claimed = model.would_claim(world, stranger, NOW).answer.claimed();
    claimed.expect("it answers the operation")
}

fn completed(model: &Semel, world: &World, run: &Run) -> Held {
    let complete = model.end_operation(RunEnd::Complete, &run.lease);
    let held = model.decide(world, &complete, NOW).answer.held();
    held.expect("it answers the operation")
}
