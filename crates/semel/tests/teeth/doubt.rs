//! What can be wrong with a store that counts runs in doubt, limits them and has them probed.

use super::fault::Fault;
use semel::clock::Time;
use semel::protocol::{
    Answer, Claimed, FailKind, InDoubt, Operation, PARK_AFTER_ATTEMPTS, Record, State,
};

impl Fault {
    /// The record as the decision is shown it.
    pub(crate) fn shows_doubt(self, record: &mut Record, operation: &Operation) {
        let probes =
            matches!(operation, Operation::Claim(claim) if claim.in_doubt == InDoubt::Probe);
        let running = record.state == State::Running;
        if self == Self::AgeParksAtOnce && matches!(operation, Operation::Fail { .. }) {
            record.attempts = record.attempts.max(PARK_AFTER_ATTEMPTS);
        }
        if self == Self::ProbesWhileTheRunMayAct && probes {
            record.acts_until = None;
        }
        if self == Self::TwoProbers && probes && record.in_doubt && running {
            (record.lease_until, record.acts_until) = (Time(0), None);
        }
    }

    /// The operation as the store understands it.
    pub(crate) fn understands_doubt(self, operation: &mut Operation) {
        match operation {
            Operation::Claim(claim) => {
                if self == Self::DoubtsWithoutLimit {
                    claim.max_in_doubt = None;
                }
                if self == Self::AgeWithoutLimit {
                    claim.park_after = None;
                }
            }
            Operation::Fail { how, .. } => {
                if self == Self::DoubtsWithoutLimit {
                    how.max_in_doubt = None;
                }
                if self == Self::AgeWithoutLimit {
                    how.park_after = None;
                }
            }
            _ => {}
        }
    }

    /// The record as it is written.
    pub(crate) fn writes_doubt(
        self,
        operation: &Operation,
        old: Option<&Record>,
        new: &mut Record,
    ) {
        let Some(old) = old else {
            return;
        };
        match operation {
            Operation::Claim(_) => {
                if self == Self::DoubtsAreNotCounted {
                    new.doubts = 0;
                }
                if self == Self::DoubtsOutliveTheIncarnation && new.fence == new.born {
                    new.doubts = old.doubts;
                }
            }
            Operation::Fail { how, .. } => self.writes_failure(how.kind, old, new),
            Operation::Redrive { .. } if self == Self::RedriveEndsTheDoubt => new.in_doubt = false,
            Operation::ReleaseByOperator { .. } if self == Self::RunsTakenAwayAreNotInDoubt => {
                new.in_doubt = old.in_doubt;
            }
            Operation::Resolve { .. } if self == Self::ResolutionsKeepTheDoubt => {
                new.in_doubt = old.in_doubt;
            }
            _ => {}
        }
    }

    fn writes_failure(self, kind: FailKind, old: &Record, new: &mut Record) {
        match (self, kind) {
            (Self::DoubtsAreNotCounted, FailKind::InDoubt { .. }) => new.doubts = 0,
            (Self::AnsweredFailuresAreCounted, FailKind::Retryable { .. })
            | (Self::UnansweredProbesCount, FailKind::StillInDoubt { .. }) => new.doubts += 1,
            (Self::RepeatedDoubtsAreCounted, FailKind::InDoubt { .. })
                if old.state == State::Parked =>
            {
                new.doubts += 1;
            }
            (Self::AnswersKeepTheDoubt, FailKind::Retryable { .. }) => new.in_doubt = old.in_doubt,
            (Self::UnansweredProbesEndTheDoubt, FailKind::StillInDoubt { .. }) => {
                new.in_doubt = false;
            }
            (Self::UnansweredProbesMayAct, FailKind::StillInDoubt { .. }) => {
                new.acts_until = old.acts_until;
            }
            (_, _) => {}
        }
    }

    /// What the caller is told.
    pub(crate) fn tells_doubt(self, answer: &mut Answer) {
        if let Answer::Claimed(Claimed::Granted(lease)) = answer
            && self == Self::ProbersAreNotTold
        {
            lease.in_doubt = false;
        }
    }
}
