//! What driver and workers tell each other, a line of JSON each.

use super::point::ArmedPoint;
use crate::harness::WorkId;
use semel::protocol::Ending;
use semel::{Ended, Error};
use serde::{Deserialize, Serialize};

/// One delivery, from the driver to a worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Delivery {
    /// The delivery's own number, never used twice.
    pub(crate) id: u64,
    /// Which piece of work.
    pub(crate) work: WorkId,
    /// What its effect does, if it comes to run.
    pub(crate) behaviour: EffectBehaviour,
    /// What happens to the worker on the way.
    pub(crate) armed: Option<ArmedPoint>,
}

/// What an effect does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum EffectBehaviour {
    /// Takes effect within this time.
    Acts {
        /// Most of the run.
        ms: u64,
    },
    /// Says that it did not happen, and may be tried again.
    Fails,
    /// Says that nothing of it was begun.
    NotStarted,
    /// Says that it will never happen.
    FailsForGood,
}

/// From a worker to the driver.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum WorkerMessage {
    /// The store is open.
    Ready,
    /// A delivery was answered.
    Answered { delivery: u64, answer: SenderAnswer },
}

/// What a sender hears.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum SenderAnswer {
    /// It is settled: whether it succeeded, and the outcome as the store keeps it, in hex.
    Settled(bool, String),
    Parked,
    /// Try again: what was said.
    Again(String),
    /// Something no sender may ever hear here.
    Wrong(String),
}

// === impl SenderAnswer ===

impl SenderAnswer {
    /// What the sender makes of how a run ended.
    pub(crate) fn of(ended: &Result<Ended, Error>) -> Self {
        match ended {
            Ok(Ended::Ran(recorded) | Ended::Replayed(recorded)) => Self::Settled(
                recorded.ending == Ending::Succeeded,
                hex::encode(recorded.outcome.encode()),
            ),
            Ok(Ended::Parked) => Self::Parked,
            Ok(
                Ended::Failed(_)
                | Ended::Unread
                | Ended::Busy { .. }
                | Ended::NotYet { .. }
                | Ended::Full { .. }
                | Ended::Stale
                | Ended::Unrecorded(_),
            )
            | Err(Error::Unavailable(_) | Error::Denied(_)) => Self::Again(format!("{ended:?}")),
            Ok(Ended::Mismatched) | Err(Error::Invalid(_) | Error::Corrupt(_) | Error::Bug(_)) => {
                Self::Wrong(format!("{ended:?}"))
            }
        }
    }
}
