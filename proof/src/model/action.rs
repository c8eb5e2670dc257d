//! What can happen next. Pauses need no action: a worker that does nothing for a while is a paused
//! one, and it may go on after its lease has lapsed.

use super::Semel;
use super::world::{Run, RunEnd, Stage, Work, Worker, World};
use semel::protocol::InDoubt;

/// One thing that happens, atomically. A number is a worker's place in the list; workers are alike, so
/// the list is put in order after every action.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// A tick passes on the store's clock.
    Tick,
    /// The store's clock steps back by a tick.
    ClockBack,
    /// Claims: with a fresh owner, or with the same one if the answer was lost.
    Claim(usize, Reading, Reply),
    /// Sends the request to the handler: from here on the effect may happen.
    Begin(usize),
    /// The effect happens, somewhere in the world.
    Effect(usize),
    /// The handler commits its effect and the completion in one transaction, or rolls both back.
    Commit(usize, Reply),
    /// Says how the run ended.
    Report(usize, RunEnd, Reply),
    /// Prolongs the lease.
    Renew(usize),
    /// Begins the step.
    StepBegin(usize, Reply),
    /// Begins the step again that an earlier run left in doubt.
    StepRestart(usize, Reply),
    /// Records the step's result.
    StepComplete(usize, Reply),
    /// Asks what became of the run before.
    Probe(usize),
    /// A handler whose gate gave it up acts, the one with this place in the list.
    LateEffect(usize),
    /// Forgets everything.
    Crash(usize),
    /// An operator acts.
    Operator(OperatorAct),
    /// A keeper prolongs the retention of unfinished work.
    Retain,
    /// The store removes the record.
    Sweep,
    /// The store removes steps that belong to no record.
    SweepSteps,
}

/// Whether an answer arrives. A request that does not arrive is the same as none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reply {
    /// It does.
    Heard,
    /// It was done, and nobody knows.
    Lost,
}

/// When the store read its clock for a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reading {
    /// Just now.
    Fresh,
    /// Some ticks before the claim got its turn.
    Stalled,
}

/// What an operator can do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OperatorAct {
    /// Resolves a parked record: it did happen.
    ResolveSucceeded,
    /// Resolves a parked record: it did not and will not happen.
    ResolveFailed,
    /// Resolves a parked record: it did not happen, run it again.
    ResolveRetry,
    /// Resolves the run that the record is of, by its fence: it did happen.
    ResolveRun,
    /// Makes a parked or failed record claimable again.
    Redrive,
    /// Takes the right to run from whoever has it.
    Release,
    /// Ends the incarnation.
    Forget,
}

impl Reply {
    const BOTH: [Self; 2] = [Self::Heard, Self::Lost];
}

impl OperatorAct {
    const ALL: [Self; 7] = [
        Self::ResolveSucceeded,
        Self::ResolveFailed,
        Self::ResolveRetry,
        Self::ResolveRun,
        Self::Redrive,
        Self::Release,
        Self::Forget,
    ];
}

impl Semel {
    /// Everything that can happen next in a world that keeps the rules.
    pub(super) fn possible(&self, world: &World, actions: &mut Vec<Action>) {
        if !world.broken.is_empty() {
            return;
        }
        self.of_store(world, actions);
        if world.budget.acts > 0 {
            actions.extend(OperatorAct::ALL.map(Action::Operator));
        }
        if world.budget.retains > 0 {
            actions.push(Action::Retain);
        }
        actions.extend((0..world.handlers.len()).map(Action::LateEffect));
        for (number, worker) in world.workers.iter().enumerate() {
            match worker {
                Worker::Idle => self.of_claimant(number, actions),
                Worker::Asking(_) => {
                    self.of_claimant(number, actions);
                    actions.push(Action::Crash(number));
                }
                Worker::Running(run) if self.must_probe(run) => of_prober(number, actions),
                Worker::Running(run) => self.of_run(world.work, run.stage, number, actions),
            }
        }
    }

    /// Whether a run has to find out about the one before, and has done nothing yet.
    fn must_probe(&self, run: &Run) -> bool {
        let probes = self.settings.in_doubt == InDoubt::Probe;
        probes && run.lease.in_doubt && run.stage == Stage::Granted
    }

    fn of_store(&self, world: &World, actions: &mut Vec<Action>) {
        actions.push(Action::Tick);
        if world.budget.clock_back > 0 {
            actions.push(Action::ClockBack);
        }
        if let Some(record) = &world.record
            && self.sweepable(record)
        {
            actions.push(Action::Sweep);
        }
        let born = world.record.as_ref().map(|record| record.born);
        if world.steps.keys().any(|step| Some(*step) != born) {
            actions.push(Action::SweepSteps);
        }
    }

    fn of_claimant(&self, number: usize, actions: &mut Vec<Action>) {
        for reply in Reply::BOTH {
            actions.push(Action::Claim(number, Reading::Fresh, reply));
            if self.settings.stall > 0 {
                actions.push(Action::Claim(number, Reading::Stalled, reply));
            }
        }
    }

    /// What the worker of a run can do, by how far it got.
    fn of_run(&self, work: Work, stage: Stage, number: usize, actions: &mut Vec<Action>) {
        actions.extend([Action::Renew(number), Action::Crash(number)]);
        for end in self.possible_ends(work, stage) {
            actions.extend(Reply::BOTH.map(|reply| Action::Report(number, end, reply)));
        }
        let asked: fn(usize, Reply) -> Action = match (work, stage) {
            (Work::Effect | Work::Guarded, Stage::Granted) => {
                return actions.push(Action::Begin(number));
            }
            (Work::Effect | Work::Step, Stage::Begun) => {
                return actions.push(Action::Effect(number));
            }
            // The handler may still be at work after its gate gave up.
            (
                Work::Guarded,
                Stage::Begun | Stage::Reporting(RunEnd::FailFinal | RunEnd::FailRetryable),
            ) => Action::Commit,
            (Work::Step, Stage::Granted) => Action::StepBegin,
            (Work::Step, Stage::InDoubt) if self.settings.in_doubt != InDoubt::Park => {
                Action::StepRestart
            }
            (Work::Step, Stage::Done) => Action::StepComplete,
            (_, Stage::InDoubt | Stage::Done | Stage::Recorded | Stage::Reporting(_)) => return,
        };
        actions.extend(Reply::BOTH.map(|reply| asked(number, reply)));
    }

    /// How the worker of a run can say that it ended, by how far it got.
    fn possible_ends(&self, work: Work, stage: Stage) -> Vec<RunEnd> {
        match (work, stage) {
            (_, Stage::Reporting(end)) => vec![end],
            (Work::Effect | Work::Guarded, Stage::Granted) => vec![RunEnd::Release],
            (Work::Effect, Stage::Begun) => {
                vec![
                    RunEnd::FailFinal,
                    RunEnd::FailRetryable,
                    RunEnd::FailInDoubt,
                ]
            }
            (Work::Effect, Stage::Done) => vec![RunEnd::Complete, RunEnd::FailInDoubt],
            // The gate reads the record, so it is never in doubt; and it never records a success.
            (Work::Guarded, Stage::Begun) => vec![RunEnd::FailFinal, RunEnd::FailRetryable],
            // Only words that leave the step in another state: the others are tried above.
            (Work::Step, Stage::Begun) => vec![RunEnd::FailRetryable],
            (Work::Step, Stage::InDoubt) => match self.settings.in_doubt {
                InDoubt::Park => vec![RunEnd::FailInDoubt],
                InDoubt::Retry | InDoubt::Probe => Vec::new(),
            },
            (Work::Step, Stage::Recorded) => vec![RunEnd::Complete, RunEnd::FailRetryable],
            (Work::Effect, Stage::InDoubt | Stage::Recorded)
            | (Work::Guarded, Stage::InDoubt | Stage::Done | Stage::Recorded)
            | (Work::Step, Stage::Granted | Stage::Done) => Vec::new(),
        }
    }
}

/// What a worker can do that must ask first.
fn of_prober(number: usize, actions: &mut Vec<Action>) {
    actions.extend([
        Action::Probe(number),
        Action::Renew(number),
        Action::Crash(number),
    ]);
    for end in [RunEnd::FailStillInDoubt, RunEnd::Release] {
        actions.extend(Reply::BOTH.map(|reply| Action::Report(number, end, reply)));
    }
}
