//! What can be wrong with a store that parks by the age of doubts and of work, and that retains unfinished work.

use super::fault::Fault;
use semel::clock::Time;
use semel::protocol::{
    Acted, Answer, Claim, Decision, DoubtLimit, Fail, Operation, PARK_AFTER_ATTEMPTS, Record, State,
};
use std::num::NonZeroU32;
use std::time::Duration;

impl Fault {
    /// The record as the decision is shown it.
    pub(crate) fn shows_age(self, record: &mut Record, operation: &Operation, now: Time) {
        match operation {
            Operation::Fail { .. } if self == Self::DoubtsAgeFromBirth => {
                record.doubted_at = Some(Time(record.born.0));
            }
            Operation::Release { park_after, .. }
                if self == Self::ReleaseParksAgain
                    && park_after.is_some()
                    && record.state == State::Parked =>
            {
                record.state = State::Running;
            }
            Operation::Retain { .. } => match (self, record.state) {
                (Self::RetainShortens, _) if !record.expired(now) => {
                    record.expires_at = now.plus(Duration::from_micros(1));
                }
                (Self::RetainTakesSucceeded, State::Succeeded)
                | (Self::RetainTakesParked, State::Parked) => record.state = State::Waiting,
                (_, _) => {}
            },
            _ => {}
        }
    }

    /// The operation as the store understands it.
    pub(crate) fn understands_age(self, operation: &mut Operation, record: Option<&Record>) {
        match operation {
            Operation::Claim(Claim { max_in_doubt, .. })
            | Operation::Fail {
                how: Fail { max_in_doubt, .. },
                ..
            } => {
                if let Some(limit) = max_in_doubt {
                    self.understands_limit(limit);
                }
            }
            Operation::Release { park_after, .. } => {
                let few = record.is_some_and(|record| record.attempts < PARK_AFTER_ATTEMPTS);
                if self == Self::ReleaseIgnoresAge || (self == Self::ReleaseNeedsEnoughRuns && few)
                {
                    *park_after = None;
                }
            }
            _ => {}
        }
    }

    fn understands_limit(self, limit: &mut DoubtLimit) {
        match self {
            Self::DoubtsWithoutAge => limit.age = Duration::ZERO,
            Self::DoubtsParkByAgeAlone => limit.runs = NonZeroU32::MIN,
            _ => {}
        }
    }

    /// The decision as it is carried out.
    pub(crate) fn decides_age(
        self,
        operation: &Operation,
        old: Option<&Record>,
        decision: &mut Decision,
        now: Time,
    ) {
        let retains = matches!(operation, Operation::Retain { .. });
        let applied = decision.answer == Answer::Acted(Acted::Applied);
        match (self, old) {
            (Self::RetainDoesNothing, _) if retains && applied => decision.write = None,
            (Self::RetainForgetsFailed, Some(old))
                if retains && applied && old.state == State::Failed =>
            {
                let gone = Acted::Gone(Some(State::Failed));
                *decision = Decision::unchanged(Answer::Acted(gone));
            }
            _ => {}
        }
        if let (Some(old), Some(new)) = (old, &mut decision.write) {
            self.writes_age(operation, old, new, now);
        }
    }

    fn writes_age(self, operation: &Operation, old: &Record, new: &mut Record, now: Time) {
        let parks = new.state == State::Parked;
        match (self, operation) {
            (Self::DoubtsAgeFromTheLatest, _) if new.doubts > old.doubts => {
                new.doubted_at = Some(now);
            }
            (Self::FirstDoubtIsNotKept, Operation::Claim(_)) => new.doubted_at = None,
            (Self::FirstDoubtOutlivesTheIncarnation, Operation::Claim(_))
                if new.fence == new.born =>
            {
                new.doubted_at = old.doubted_at;
            }
            (Self::ReleaseThatParksTakesTheFence, Operation::Release { .. }) if parks => {
                new.fence.0 += 1;
            }
            (Self::RetainTakesTheFence, Operation::Retain { .. }) => new.fence.0 += 1,
            (_, Operation::Retain { .. }) => new.state = old.state,
            _ => {}
        }
    }
}
