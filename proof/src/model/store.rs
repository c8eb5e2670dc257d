//! The store of the model: it judges each decision, then writes what was decided.

use super::canonical::NOW;
use super::operation_checks::Observed;
use super::world::{Run, Worker, World};
use semel::clock::Time;
use semel::protocol::{Answer, Decision, Operation, Record};

impl World {
    /// Checks a decision and writes what was decided.
    pub(super) fn take(&mut self, operation: &Operation, now: Time, decision: Decision) -> Answer {
        let broken = self.ghost.check(&Observed {
            before: self.record.as_ref(),
            operation,
            now,
            decision: &decision,
        });
        self.broken.extend(broken);
        // What a claim ended, lies about until it is swept.
        if let (Operation::Forget(_), Some(born)) = (operation, decision.ended) {
            self.steps.remove(&born);
        }
        if let Some(record) = decision.write {
            self.record = Some(record);
        }
        if let (Some((lease, _)), Some(step)) = (operation.step(), decision.step) {
            self.broken.extend(self.ghost.check_step_write(lease));
            self.steps.insert(lease.born, step);
        }
        decision.answer
    }

    pub(super) fn sweeps(&mut self) {
        if let Some(record) = self.record.take() {
            self.broken.extend(self.ghost.check_sweep(&record, NOW));
        }
    }

    pub(super) fn sweeps_steps(&mut self) {
        let born = self.record.as_ref().map(|record| record.born);
        self.steps.retain(|step, _| Some(*step) == born);
    }

    /// Whether there is a record, and it is so.
    pub(super) fn has_record(&self, so: impl FnOnce(&Record) -> bool) -> bool {
        self.record.as_ref().is_some_and(so)
    }

    pub(super) fn worker(&mut self, number: usize) -> &mut Worker {
        self.workers
            .get_mut(number)
            .expect("actions name workers that are there")
    }

    pub(super) fn run(&mut self, number: usize) -> &mut Run {
        match self.worker(number) {
            Worker::Running(run) => run,
            Worker::Idle | Worker::Asking(_) => {
                unreachable!("only a worker with a run is asked about it")
            }
        }
    }
}
