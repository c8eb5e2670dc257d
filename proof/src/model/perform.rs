//! How an action changes the world. Every decision is the protocol's, and every one is checked.

use super::action::{Action, OperatorAct, Reading, Reply};
use super::canonical::{LEASE, NOW, RETENTION, ago};
use super::invariant::Invariant;
use super::request::{KEY, STEP};
use super::world::{Handler, Run, RunEnd, Stage, Work, Worker, World};
use super::{Semel, request};
use bytes::Bytes;
use semel::protocol::{
    Acted, Answer, Finding, Held, InDoubt, Lease, Operation, Resolution, StepBegun,
};

impl Semel {
    /// Does it; `None` when nothing can come of it.
    pub(super) fn perform(&self, world: &mut World, action: Action) -> Option<()> {
        match action {
            Action::Tick => world.grow_older(),
            Action::ClockBack => {
                world.budget.clock_back -= 1;
                world.grow_younger();
            }
            Action::Claim(number, reading, reply) => self.claims(world, number, reading, reply)?,
            Action::Begin(number) => self.begins(world, number),
            Action::Effect(number) => self.takes_effect(world, number)?,
            Action::Probe(number) => world.probes(number),
            Action::LateEffect(handler) => world.takes_effect_late(handler),
            Action::Retain => self.retains(world)?,
            Action::Commit(number, reply) => self.commits(world, number, reply),
            Action::Report(number, end, reply) => self.says(world, number, end, reply),
            Action::Renew(number) => self.renews(world, number),
            Action::StepBegin(number, reply) => self.begins_step(world, number, reply),
            Action::StepRestart(number, reply) => self.restarts_step(world, number, reply),
            Action::StepComplete(number, reply) => self.completes_step(world, number, reply),
            Action::Crash(number) => {
                world.leaves_a_handler(number);
                *world.worker(number) = Worker::Idle;
            }
            Action::Operator(act) => self.operator_acts(world, act)?,
            Action::Sweep => world.sweeps(),
            Action::SweepSteps => world.sweeps_steps(),
        }
        Some(())
    }

    fn claims(
        &self,
        world: &mut World,
        number: usize,
        reading: Reading,
        reply: Reply,
    ) -> Option<()> {
        let now = match reading {
            Reading::Fresh => NOW,
            Reading::Stalled => ago(self.settings.stall),
        };
        let owner = world.owner(number);
        let operation = Operation::Claim(self.claim(owner));
        let decision = self.decide(world, &operation, now);
        if request::granted(&decision).is_some() && decision.write.is_some() {
            world.budget.grants = world.budget.grants.checked_sub(1)?;
        }
        let lease = request::granted(&decision).cloned();
        let _answer = world.take(&operation, now, decision);
        let acts_until = world.record.as_ref().and_then(|record| record.acts_until);
        *world.worker(number) = match (reply, lease) {
            (Reply::Lost, _) => Worker::Asking(owner),
            (Reply::Heard, None) => Worker::Idle,
            (Reply::Heard, Some(lease)) => Worker::Running(Run {
                lease,
                stage: Stage::Granted,
                acts_until,
                incarnation: world.ghost.incarnation,
            }),
        };
        Some(())
    }

    fn begins(&self, world: &mut World, number: usize) {
        self.starts(world, number);
        world.run(number).stage = Stage::Begun;
    }

    fn takes_effect(&self, world: &mut World, number: usize) -> Option<()> {
        if world.work == Work::Step {
            self.starts(world, number);
        }
        let run = world.run(number);
        if run.acts_until.is_some_and(|end| end <= NOW) {
            return None;
        }
        run.stage = Stage::Done;
        let incarnation = run.incarnation;
        world.ghost.incarnation_mut(incarnation).effects += 1;
        Some(())
    }

    fn retains(&self, world: &mut World) -> Option<()> {
        world.budget.retains -= 1;
        let operation = Operation::Retain {
            key: KEY,
            retention: RETENTION,
        };
        let answer = self.take(world, &operation);
        let matters = answer == Answer::Acted(Acted::Applied) || !world.broken.is_empty();
        matters.then_some(())
    }

    /// The first byte leaves: from here on the effect may have happened.
    fn starts(&self, world: &mut World, number: usize) {
        // Only park promises anything about starts; not to count them keeps the worlds few.
        if self.settings.in_doubt != InDoubt::Park {
            return;
        }
        let (work, incarnation) = (world.work, world.run(number).incarnation);
        let incarnation = world.ghost.incarnation_mut(incarnation);
        incarnation.starts += 1;
        let allowed = match work {
            Work::Effect | Work::Guarded => 1 + incarnation.acts,
            // A step in doubt stays in doubt, whatever an operator does with the run.
            Work::Step => 1,
        };
        if incarnation.starts > allowed {
            world.broken.push(Invariant::OneUnknownStart);
        }
    }

    fn commits(&self, world: &mut World, number: usize, reply: Reply) {
        let (lease, incarnation) = world.granted(number);
        match self.held(world, &self.end_operation(RunEnd::Complete, &lease)) {
            Held::Applied(_) => world.ghost.incarnation_mut(incarnation).commits += 1,
            // The statement raises: effect and completion are rolled back together.
            Held::Already(_) | Held::Settled(_) | Held::Parked | Held::Stale => {}
        }
        if reply == Reply::Heard {
            *world.worker(number) = Worker::Idle;
        }
    }

    fn says(&self, world: &mut World, number: usize, what: RunEnd, reply: Reply) {
        let (lease, incarnation) = world.granted(number);
        let held = self.held(world, &self.end_operation(what, &lease));
        if what == RunEnd::FailInDoubt {
            world.leaves_a_handler(number);
        }
        // The run knows that its effect did not happen: that start is accounted for.
        let failed = matches!(what, RunEnd::FailFinal | RunEnd::FailRetryable);
        if failed && world.work != Work::Step && matches!(held, Held::Applied(_)) {
            let incarnation = world.ghost.incarnation_mut(incarnation);
            incarnation.starts = incarnation.starts.saturating_sub(1);
        }
        match reply {
            Reply::Heard => *world.worker(number) = Worker::Idle,
            Reply::Lost => world.run(number).stage = Stage::Reporting(what),
        }
    }

    fn renews(&self, world: &mut World, number: usize) {
        let lease = world.run(number).lease.clone();
        let operation = Operation::Renew {
            lease,
            lease_for: LEASE,
            retention: RETENTION,
        };
        match self.held(world, &operation) {
            Held::Stale => *world.worker(number) = Worker::Idle,
            Held::Applied(_) | Held::Already(_) | Held::Settled(_) | Held::Parked => {}
        }
    }

    fn begins_step(&self, world: &mut World, number: usize, reply: Reply) {
        let lease = world.run(number).lease.clone();
        let name = STEP.to_owned();
        let begun = self.take(world, &Operation::StepBegin { lease, name });
        let begun = begun.step_begun().expect("it answers the operation");
        world.hears_begun(number, &begun, reply);
    }

    fn restarts_step(&self, world: &mut World, number: usize, reply: Reply) {
        let lease = world.run(number).lease.clone();
        let name = STEP.to_owned();
        let begun = match self.held(world, &Operation::StepRestart { lease, name }) {
            Held::Applied(_) | Held::Already(_) => StepBegun::Run,
            Held::Settled(settled) => StepBegun::Settled(settled),
            Held::Parked => StepBegun::Parked,
            Held::Stale => StepBegun::Stale,
        };
        world.hears_begun(number, &begun, reply);
    }

    fn completes_step(&self, world: &mut World, number: usize, reply: Reply) {
        let (lease, incarnation) = world.granted(number);
        let result = Bytes::from_static(b"done");
        let completion = Operation::StepComplete {
            lease,
            name: STEP.to_owned(),
            result: result.clone(),
        };
        let held = self.held(world, &completion);
        if matches!(held, Held::Applied(_))
            && world
                .ghost
                .incarnation_mut(incarnation)
                .step
                .replace(result)
                .is_some()
        {
            world.broken.push(Invariant::StepsRemembered);
        }
        if reply == Reply::Lost {
            return;
        }
        match held {
            // Parked: the step cannot be recorded, but the run's own word still counts.
            Held::Applied(_) | Held::Already(_) | Held::Parked => {
                world.run(number).stage = Stage::Recorded;
            }
            Held::Settled(_) | Held::Stale => *world.worker(number) = Worker::Idle,
        }
    }

    fn operator_acts(&self, world: &mut World, act: OperatorAct) -> Option<()> {
        let said = Bytes::from_static(b"operator");
        let resolve = |how| Operation::Resolve {
            key: KEY,
            how,
            by: Bytes::new(),
        };
        let operation = match act {
            OperatorAct::ResolveSucceeded => resolve(Resolution::new(Finding::Succeeded(said))),
            OperatorAct::ResolveFailed => resolve(Resolution::new(Finding::Failed(said))),
            OperatorAct::ResolveRetry => resolve(Resolution::new(Finding::Retry)),
            OperatorAct::ResolveRun => {
                let fence = world.record.as_ref()?.fence;
                resolve(Resolution::new(Finding::Succeeded(said)).of_run(fence))
            }
            OperatorAct::Redrive => Operation::Redrive {
                key: KEY,
                by: Bytes::new(),
            },
            OperatorAct::Release => Operation::ReleaseByOperator {
                key: KEY,
                by: Bytes::new(),
            },
            OperatorAct::Forget => Operation::Forget(KEY),
        };
        let decision = self.decide(world, &operation, NOW);
        if decision.answer != Answer::Acted(Acted::Applied) {
            return None;
        }
        world.budget.acts -= 1;
        let _answer = world.take(&operation, NOW, decision);
        Some(())
    }

    fn held(&self, world: &mut World, operation: &Operation) -> Held {
        let answer = self.take(world, operation);
        answer.held().expect("it answers the operation")
    }

    fn take(&self, world: &mut World, operation: &Operation) -> Answer {
        let decision = self.decide(world, operation, NOW);
        world.take(operation, NOW, decision)
    }
}

// === impl World ===

impl World {
    /// The lease of a worker's run, and the incarnation in which it was granted.
    fn granted(&mut self, number: usize) -> (Lease, u8) {
        let run = self.run(number);
        (run.lease.clone(), run.incarnation)
    }

    /// The downstream says what became of the run before: the truth, and it can no longer change.
    fn probes(&mut self, number: usize) {
        let incarnation = self.run(number).incarnation;
        let happened = self.ghost.incarnation_mut(incarnation).effects > 0;
        let run = self.run(number);
        run.lease.in_doubt = false;
        if happened {
            run.stage = Stage::Done;
        }
    }

    /// A gate gives its handler up, which may act for a while.
    fn leaves_a_handler(&mut self, number: usize) {
        if let Some(Worker::Running(run)) = self.workers.get(number)
            && run.stage == Stage::Begun
            && let Some(acts_until) = run.acts_until.filter(|end| *end > NOW)
        {
            self.handlers.push(Handler {
                acts_until,
                incarnation: run.incarnation,
            });
        }
    }

    fn takes_effect_late(&mut self, handler: usize) {
        let handler = self.handlers.remove(handler);
        if handler.acts_until > NOW {
            let incarnation = self.ghost.incarnation_mut(handler.incarnation);
            incarnation.effects += 1;
        }
    }

    /// A worker learns, or does not learn, whether to run the step.
    fn hears_begun(&mut self, number: usize, begun: &StepBegun, reply: Reply) {
        let (lease, incarnation) = self.granted(number);
        self.broken
            .extend(self.ghost.check_step_begin(&lease, incarnation, begun));
        let next = match (reply, begun) {
            (Reply::Lost, _) | (Reply::Heard, StepBegun::Parked) => return,
            (Reply::Heard, StepBegun::Run) => Stage::Begun,
            (Reply::Heard, StepBegun::Memo { .. }) => Stage::Recorded,
            (Reply::Heard, StepBegun::InDoubt(_)) => Stage::InDoubt,
            (Reply::Heard, StepBegun::Settled(_) | StepBegun::Stale) => {
                *self.worker(number) = Worker::Idle;
                return;
            }
        };
        self.run(number).stage = next;
    }
}
