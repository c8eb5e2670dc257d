//! The named points of a run where a worker can be killed or paused.

use super::case::Mode;
use crate::harness::{ArmedFault, InjectedFault, ProcessFault, WorkId};
use serde::{Deserialize, Serialize};

/// A point of a run, in the order they come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub(crate) enum Point {
    /// Nothing was sent to the store yet.
    BeforeClaim,
    /// The claim is under way.
    ClaimSent,
    /// The claim is granted.
    ClaimAnswered,
    /// A renewal is under way.
    RenewSent,
    /// The effect is about to happen.
    EffectBegun,
    /// The effect has happened.
    EffectDone,
    /// The effect's row is written in an open transaction.
    TransactionWritten,
    /// The completion is written in the same open transaction.
    TransactionCompleted,
    /// The commit is under way.
    CommitSent,
    /// The commit was answered.
    Committed,
    /// The step was begun, and its effect is about to happen.
    StepBegun,
    /// The step's effect has happened.
    StepDone,
    /// The step is recorded.
    StepRecorded,
    /// The completion is under way.
    CompleteSent,
    /// The completion was answered.
    CompleteAnswered,
    /// The run has ended, and the sender has not heard.
    BeforeAnswer,
}

/// A fault that waits at a point.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub(crate) struct ArmedPoint {
    pub(crate) point: Point,
    pub(crate) fault: ProcessFault,
}

// === impl Point ===

impl Point {
    pub(crate) const ALL: [Self; 16] = [
        Self::BeforeClaim,
        Self::ClaimSent,
        Self::ClaimAnswered,
        Self::RenewSent,
        Self::EffectBegun,
        Self::EffectDone,
        Self::TransactionWritten,
        Self::TransactionCompleted,
        Self::CommitSent,
        Self::Committed,
        Self::StepBegun,
        Self::StepDone,
        Self::StepRecorded,
        Self::CompleteSent,
        Self::CompleteAnswered,
        Self::BeforeAnswer,
    ];

    /// Its name in ledgers and reports.
    pub(crate) fn name(self) -> String {
        format!("{self:?}")
    }

    /// Whether a run of this work can come by this point.
    pub(crate) const fn is_on_the_way_of(self, mode: Mode, work: WorkId) -> bool {
        let in_transaction = matches!(mode, Mode::Transaction);
        match self {
            Self::BeforeClaim
            | Self::ClaimSent
            | Self::ClaimAnswered
            | Self::RenewSent
            | Self::EffectBegun
            | Self::BeforeAnswer => true,
            Self::TransactionWritten
            | Self::TransactionCompleted
            | Self::CommitSent
            | Self::Committed => in_transaction,
            Self::EffectDone | Self::CompleteSent | Self::CompleteAnswered => !in_transaction,
            Self::StepBegun | Self::StepDone | Self::StepRecorded => {
                !in_transaction && work.has_step()
            }
        }
    }

    /// Whether only a run that lasts longer than a renewal comes by this point.
    pub(crate) const fn needs_a_long_run(self) -> bool {
        matches!(self, Self::RenewSent)
    }
}

// === impl ArmedPoint ===

impl ArmedPoint {
    /// Every pair of point and fault.
    pub(crate) fn all() -> impl Iterator<Item = Self> {
        let points = Point::ALL.into_iter();
        points.flat_map(|point| ProcessFault::ALL.map(|fault| Self { point, fault }))
    }

    /// Its name in reports.
    pub(crate) fn name(self) -> String {
        format!("{:?} at {}", self.fault, self.point.name())
    }

    /// The name of the pair that a fault was, if it was met at a point.
    pub(crate) fn name_of(injected: &InjectedFault) -> Option<String> {
        let (_, fault) = injected.kind.to_process()?;
        Some(format!("{fault:?} at {}", injected.point.as_ref()?))
    }

    /// The fault as a worker process is armed with it.
    pub(crate) fn armed(self) -> ArmedFault {
        ArmedFault {
            point: self.point.name(),
            fault: self.fault,
            visit: 1,
            again: false,
        }
    }
}
