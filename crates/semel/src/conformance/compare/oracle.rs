//! The oracle: what [`decide`](fn@crate::record::decide) makes of one key.

use crate::clock::Time;
use crate::record::{Answer, Fence, Operation, Record, State, StepRecord, decide, look};
use std::collections::BTreeMap;
use std::time::Duration;

/// How close to the end of a lease or a retention nothing is tried. A case takes far less.
const EDGE: Duration = Duration::from_secs(120);

/// What the oracle remembers of one key.
#[derive(Clone, Debug, Default)]
pub(super) struct Oracle {
    record: Option<Record>,
    written: Time,
    steps: BTreeMap<(Fence, String), StepRecord>,
}

// === impl Oracle ===

impl Oracle {
    /// Whether a lease or a retention ends so close to now that the time the calls take could
    /// change an answer. What ended in the very moment it was written has ended on both sides.
    pub(super) fn is_on_an_edge(&self, now: Time) -> bool {
        let close =
            |edge: Time| edge != self.written && edge.since(now).max(now.since(edge)) < EDGE;
        self.record
            .as_ref()
            .is_some_and(|record| match record.state {
                State::Running | State::Waiting => {
                    close(record.lease_until)
                        || close(record.expires_at)
                        || record.acts_until.is_some_and(close)
                }
                State::Succeeded | State::Failed => close(record.expires_at),
                State::Parked => false,
            })
    }

    /// What may be answered, and what is remembered after it. An expired record may or may not have
    /// been swept, so there may be two ways.
    pub(super) fn ways(&self, operation: &Operation, now: Time) -> Vec<(Answer, Self)> {
        let mut ways = vec![self.clone().apply(operation, now)];
        if self.record.as_ref().is_some_and(|old| old.expired(now)) {
            ways.push(Self::default().apply(operation, now));
        }
        ways
    }

    fn apply(mut self, operation: &Operation, now: Time) -> (Answer, Self) {
        let step = operation
            .step()
            .map(|(lease, name)| (lease.born, name.to_owned()));
        let found = step.as_ref().and_then(|step| self.steps.get(step));
        let decision = decide(self.record.as_ref(), found, operation, now);
        if let Some(ended) = decision.ended {
            self.steps.retain(|(born, _), _| *born != ended);
        }
        if let Some(mut record) = decision.write {
            record.remember(decision.superseded);
            self.record = Some(record);
            self.written = now;
        }
        if let (Some(at), Some(step)) = (step, decision.step) {
            self.steps.insert(at, step);
        }
        let answer = if let Operation::Steps(_) = operation {
            Answer::Steps(self.steps(now))
        } else {
            decision.answer
        };
        (answer, self)
    }

    /// The steps of the incarnation that is there, by name.
    fn steps(&self, now: Time) -> Vec<(String, StepRecord)> {
        let born = look(self.record.as_ref(), now).map(|record| record.born);
        let mine = self.steps.iter().filter(|((b, _), _)| Some(*b) == born);
        mine.map(|((_, name), step)| (name.clone(), step.clone()))
            .collect()
    }
}
