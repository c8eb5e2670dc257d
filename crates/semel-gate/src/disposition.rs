//! What becomes of a delivery. It is decided once; the reply, the word in log lines and metrics, and
//! whether a letter is kept all follow from it.

use crate::delivery::Invalid;
use crate::letters::unfinished::Moment;
use crate::naming::NamingError;
use crate::reply::meaning::says_success;
use crate::settings::{OnInvalid, Source};
use semel::letter::Reason;
use semel::protocol::{Ending, State};
use semel::run::Failed;
use semel::work::FailureKind;
use semel::{Ended, Error, Outcome, Recorded};
use std::sync::Arc;
use std::time::Duration;

/// What becomes of a delivery.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Disposition {
    /// The handler ran, and what it came to is recorded, where the route keeps records.
    Ran(Arc<Recorded>),
    /// The work was settled before: this is what was recorded.
    Replayed(Arc<Recorded>),
    /// The handler ran, and the store could not be told yet.
    Unrecorded(Arc<Recorded>),
    /// The handler ran, and the store could not be asked yet whether its transaction committed.
    Unread,
    /// The handler failed, and may be tried again.
    Retryable(Arc<Failed>),
    /// This delivery's own run goes on, longer than its sender waits.
    Running {
        /// When to ask again.
        retry_after: Duration,
    },
    /// The same work is running.
    Busy {
        /// When to ask again.
        retry_after: Duration,
    },
    /// The last run failed, and the next one is not due.
    NotYet {
        /// When it is.
        retry_after: Duration,
    },
    /// Too much work is in hand.
    Full {
        /// When to ask again.
        retry_after: Duration,
    },
    /// This run was overtaken.
    Stale,
    /// A person must look first, and an API client hears so.
    Parked,
    /// The key stands for other work, and an API client hears so.
    Mismatched,
    /// It can have no key, and its sender hears so.
    Invalid(Invalid),
    /// It can have no key, and has landed among the faults.
    Fault(Invalid),
    /// It can have no key, and has not landed: its sender must keep it.
    FaultNotLanded(Invalid),
    /// The store could not be asked before the run.
    Store(Error),
    /// There is no room in memory to read its payload.
    NoRoom,
    /// It is acknowledged without success, so it is kept as a letter first.
    Letter(Undelivered),
    /// It would be acknowledged as a letter, but none is kept: its sender must keep it.
    NotKept(Undelivered, NotKept),
}

/// Why a broker's delivery is given up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Undelivered {
    /// It failed for good.
    Failed(Arc<Recorded>),
    /// The work failed for good before. Whoever came first may have died before it wrote the letter.
    FailedBefore(Arc<Recorded>),
    /// A person must look first, because of this run.
    Parked(Arc<Failed>),
    /// A person must look first, since before this delivery.
    ParkedBefore,
    /// Its key stands for other work.
    Mismatched,
    /// It can have no key.
    Invalid(Invalid),
    /// Its sender does not deliver it again, and this is what became of it.
    Exhausted(Box<Disposition>),
}

/// Why a delivery is not kept as a letter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotKept {
    /// The work that its key stands for is not settled, so neither is what becomes of it.
    Unsettled,
    /// The route's quota of letters is used up.
    Full,
    /// The store did not take it.
    Store,
}

// === impl Disposition ===

impl Disposition {
    /// What becomes of a delivery of this sender whose run ended so.
    #[must_use]
    pub fn of_run(source: Source, ended: Result<Ended, Error>) -> Self {
        let is_broker = source.is_broker();
        let gives_up = |recorded: &Recorded| is_broker && recorded.ending == Ending::Failed;
        match ended {
            Err(error) => Self::Store(error),
            Ok(Ended::Ran(recorded)) if gives_up(&recorded) => {
                Self::Letter(Undelivered::Failed(recorded))
            }
            Ok(Ended::Ran(recorded)) => Self::Ran(recorded),
            Ok(Ended::Replayed(recorded)) if gives_up(&recorded) => {
                Self::Letter(Undelivered::FailedBefore(recorded))
            }
            Ok(Ended::Replayed(recorded)) => Self::Replayed(recorded),
            Ok(Ended::Unrecorded(recorded)) => Self::Unrecorded(recorded),
            Ok(Ended::Unread) => Self::Unread,
            Ok(Ended::Failed(failed)) if failed.state != State::Parked => Self::Retryable(failed),
            Ok(Ended::Failed(failed)) if is_broker => Self::Letter(Undelivered::Parked(failed)),
            Ok(Ended::Parked) if is_broker => Self::Letter(Undelivered::ParkedBefore),
            Ok(Ended::Failed(_) | Ended::Parked) => Self::Parked,
            Ok(Ended::Mismatched) if is_broker => Self::Letter(Undelivered::Mismatched),
            Ok(Ended::Mismatched) => Self::Mismatched,
            Ok(Ended::Busy { retry_after }) => Self::Busy { retry_after },
            Ok(Ended::NotYet { retry_after }) => Self::NotYet { retry_after },
            Ok(Ended::Full { retry_after }) => Self::Full { retry_after },
            Ok(Ended::Stale) => Self::Stale,
        }
    }

    /// What becomes of a delivery of this sender that has no key.
    #[must_use]
    pub fn of_unnamed(source: Source, on_invalid: OnInvalid, error: NamingError) -> Self {
        match (error, on_invalid) {
            (NamingError::NoRoom, _) => Self::NoRoom,
            (NamingError::Invalid(invalid), OnInvalid::Letter) if source.is_broker() => {
                Self::Letter(Undelivered::Invalid(invalid))
            }
            (NamingError::Invalid(invalid), OnInvalid::Land) if source.is_broker() => {
                Self::Fault(invalid)
            }
            (
                NamingError::Invalid(invalid),
                OnInvalid::Letter | OnInvalid::Reject | OnInvalid::Land,
            ) => Self::Invalid(invalid),
        }
    }

    /// The word for it in log lines and metrics.
    #[must_use]
    pub fn word(&self) -> &'static str {
        match self {
            Self::Ran(recorded) if recorded.ending == Ending::Failed => "failed",
            Self::Ran(_) => "ran",
            Self::Replayed(_) => "replayed",
            Self::Unrecorded(_) => "unrecorded",
            Self::Unread => "unread",
            Self::Retryable(failed) if answered_without_completing(failed) => {
                "answered_without_completing"
            }
            Self::Retryable(_) => "retryable",
            Self::Running { .. } => "running",
            Self::Busy { .. } => "busy",
            Self::NotYet { .. } => "not_yet",
            Self::Full { .. } => "full",
            Self::Stale => "stale",
            Self::Parked => "parked",
            Self::Mismatched => "mismatched",
            Self::Invalid(_) | Self::Fault(_) => "invalid",
            Self::FaultNotLanded(_) => "not_landed",
            Self::Store(_) => "store_unavailable",
            Self::NoRoom => "no_room",
            Self::NotKept(_, NotKept::Full) => "letters_full",
            Self::Letter(why) | Self::NotKept(why, NotKept::Unsettled | NotKept::Store) => {
                why.word()
            }
        }
    }

    /// Whether it ran nothing because the same work is settled, running or not due.
    #[must_use]
    pub const fn is_duplicate(&self) -> bool {
        match self {
            Self::Replayed(_) | Self::Busy { .. } | Self::NotYet { .. } => true,
            Self::Letter(why) | Self::NotKept(why, NotKept::Unsettled | NotKept::Store) => {
                why.is_duplicate()
            }
            Self::Ran(_)
            | Self::Unrecorded(_)
            | Self::Unread
            | Self::Retryable(_)
            | Self::Running { .. }
            | Self::Full { .. }
            | Self::Stale
            | Self::Parked
            | Self::Mismatched
            | Self::Invalid(_)
            | Self::Fault(_)
            | Self::FaultNotLanded(_)
            | Self::Store(_)
            | Self::NoRoom
            | Self::NotKept(_, NotKept::Full) => false,
        }
    }

    /// Whether its key stands for other work.
    #[must_use]
    pub fn is_mismatched(&self) -> bool {
        let of_letter =
            matches!(self, Self::Letter(why) | Self::NotKept(why, _) if why.is_mismatched());
        matches!(self, Self::Mismatched) || of_letter
    }

    /// Whether the work may have run because of this delivery.
    #[must_use]
    pub fn may_have_run(&self) -> bool {
        match self {
            Self::Ran(_)
            | Self::Unrecorded(_)
            | Self::Unread
            | Self::Retryable(_)
            | Self::Running { .. }
            | Self::Stale
            | Self::Parked
            | Self::Store(_) => true,
            Self::Letter(why) | Self::NotKept(why, _) => match why {
                Undelivered::Failed(_) | Undelivered::Parked(_) => true,
                Undelivered::Exhausted(it) => it.may_have_run(),
                Undelivered::FailedBefore(_)
                | Undelivered::ParkedBefore
                | Undelivered::Mismatched
                | Undelivered::Invalid(_) => false,
            },
            Self::Replayed(_)
            | Self::Busy { .. }
            | Self::NotYet { .. }
            | Self::Full { .. }
            | Self::Mismatched
            | Self::Invalid(_)
            | Self::Fault(_)
            | Self::FaultNotLanded(_)
            | Self::NoRoom => false,
        }
    }

    /// Why a person should look at it: it can have no key, or is parked.
    #[must_use]
    pub fn warning(&self) -> Option<String> {
        match self {
            Self::Invalid(invalid) | Self::Fault(invalid) | Self::FaultNotLanded(invalid) => {
                Some(invalid.detail.clone())
            }
            Self::Parked => Some(Undelivered::ParkedBefore.why()),
            Self::Letter(why) | Self::NotKept(why, _) => match why.reason() {
                Reason::Parked | Reason::Invalid => Some(why.why()),
                Reason::Failed | Reason::Mismatched | Reason::Unfinished => None,
            },
            Self::Ran(_)
            | Self::Running { .. }
            | Self::Replayed(_)
            | Self::Unrecorded(_)
            | Self::Unread
            | Self::Retryable(_)
            | Self::Busy { .. }
            | Self::NotYet { .. }
            | Self::Full { .. }
            | Self::Stale
            | Self::Mismatched
            | Self::Store(_)
            | Self::NoRoom => None,
        }
    }

    /// Why a letter must be kept before the sender hears the reply; `None`: it need not.
    #[must_use]
    pub const fn letter(&self) -> Option<Reason> {
        let Self::Letter(why) = self else {
            return None;
        };
        Some(why.reason())
    }

    /// The moment at which it leaves its work unfinished, as far as its sender knows; `None`: its sender may forget it, or
    /// nothing is known that a letter could keep.
    pub(crate) fn moment(&self) -> Option<Moment> {
        match self {
            Self::Unrecorded(recorded) if recorded.ending == Ending::Succeeded => None,
            Self::Ran(_) | Self::Replayed(_) | Self::Fault(_) | Self::NoRoom | Self::Letter(_) => {
                None
            }
            Self::Running { .. } => Some(Moment::StillRunning),
            Self::Retryable(failed) if failed.failure.kind.began_nothing() => Some(Moment::Refused),
            Self::Unrecorded(_)
            | Self::Unread
            | Self::Retryable(_)
            | Self::Stale
            | Self::Parked => Some(Moment::Ended),
            Self::Busy { .. }
            | Self::NotYet { .. }
            | Self::Full { .. }
            | Self::Mismatched
            | Self::Invalid(_)
            | Self::FaultNotLanded(_)
            | Self::Store(_)
            | Self::NotKept(..) => Some(Moment::Refused),
        }
    }

    /// Whether another delivery may end otherwise. What was refused on purpose is refused again.
    pub(crate) const fn is_retried(&self) -> bool {
        !matches!(
            self,
            Self::Invalid(_) | Self::Fault(_) | Self::FaultNotLanded(_)
        )
    }

    /// Whether the work has succeeded, by this delivery or before it.
    #[must_use]
    pub fn has_succeeded(&self) -> bool {
        matches!(self, Self::Ran(it) | Self::Replayed(it) if it.ending == Ending::Succeeded)
    }

    /// The handler's status, if it was heard.
    #[must_use]
    pub fn handler_status(&self) -> Option<u16> {
        self.outcome().map(|outcome| outcome.status)
    }

    /// What the run came to, this delivery's or an earlier one's, if it is known.
    #[must_use]
    pub fn outcome(&self) -> Option<&Outcome> {
        match self {
            Self::Ran(recorded)
            | Self::Replayed(recorded)
            | Self::Unrecorded(recorded)
            | Self::Letter(Undelivered::Failed(recorded) | Undelivered::FailedBefore(recorded)) => {
                Some(&recorded.outcome)
            }
            Self::Retryable(failed) | Self::Letter(Undelivered::Parked(failed)) => {
                Some(&failed.failure.outcome)
            }
            Self::Letter(Undelivered::Exhausted(it)) => it.outcome(),
            Self::Unread
            | Self::Running { .. }
            | Self::Busy { .. }
            | Self::NotYet { .. }
            | Self::Full { .. }
            | Self::Stale
            | Self::Parked
            | Self::Mismatched
            | Self::Invalid(_)
            | Self::Fault(_)
            | Self::FaultNotLanded(_)
            | Self::Store(_)
            | Self::NoRoom
            | Self::Letter(
                Undelivered::ParkedBefore | Undelivered::Mismatched | Undelivered::Invalid(_),
            )
            | Self::NotKept(..) => None,
        }
    }
}

/// A success code of the handler that its own transaction should have recorded, and did not.
fn answered_without_completing(failed: &Failed) -> bool {
    let is_doubt = matches!(
        failed.failure.kind,
        FailureKind::InDoubt | FailureKind::Park
    );
    is_doubt && says_success(&failed.failure)
}

// === impl NotKept ===

impl NotKept {
    /// The word for it in log lines.
    pub(crate) const fn word(self) -> &'static str {
        match self {
            Self::Unsettled => "Unsettled",
            Self::Full => "Full",
            Self::Store => "Store",
        }
    }
}

// === impl Undelivered ===

impl Undelivered {
    /// The word for it in log lines and metrics.
    #[must_use]
    pub const fn word(&self) -> &'static str {
        match self {
            Self::Failed(_) => "failed",
            Self::FailedBefore(_) => "replayed",
            Self::Parked(_) | Self::ParkedBefore => "parked",
            Self::Mismatched => "mismatched",
            Self::Invalid(_) => "invalid",
            Self::Exhausted(_) => "exhausted",
        }
    }

    /// Whether it ran nothing because the same work is settled, running or not due.
    const fn is_duplicate(&self) -> bool {
        match self {
            Self::FailedBefore(_) => true,
            Self::Exhausted(it) => it.is_duplicate(),
            Self::Failed(_)
            | Self::Parked(_)
            | Self::ParkedBefore
            | Self::Mismatched
            | Self::Invalid(_) => false,
        }
    }

    /// Whether its key stands for other work.
    fn is_mismatched(&self) -> bool {
        matches!(self, Self::Mismatched)
            || matches!(self, Self::Exhausted(it) if it.is_mismatched())
    }

    /// The reason that its letter names.
    #[must_use]
    pub const fn reason(&self) -> Reason {
        match self {
            Self::Failed(_) | Self::FailedBefore(_) => Reason::Failed,
            Self::Parked(_) | Self::ParkedBefore => Reason::Parked,
            Self::Mismatched => Reason::Mismatched,
            Self::Invalid(_) => Reason::Invalid,
            Self::Exhausted(_) => Reason::Unfinished,
        }
    }

    /// What a person reads on the letter.
    #[must_use]
    pub fn why(&self) -> String {
        match self {
            Self::Failed(recorded) | Self::FailedBefore(recorded) => {
                let status = recorded.outcome.status;
                format!("the handler's answer was {status}, a failure for good")
            }
            Self::Parked(failed) => {
                let status = failed.failure.outcome.status;
                match failed.failure.kind {
                    _ if answered_without_completing(failed) => format!(
                        "the handler answered {status} and did not complete the run: whether it took effect is unknown"
                    ),
                    FailureKind::InDoubt | FailureKind::StillInDoubt | FailureKind::Park => {
                        format!("it may or may not have taken effect (status {status})")
                    }
                    FailureKind::NotStarted | FailureKind::Withdrawn => {
                        "the handler could not be reached for longer than `park_after`".into()
                    }
                    FailureKind::Retryable | FailureKind::Final => {
                        format!("the handler's answer was {status}, and its attempts are used up")
                    }
                }
            }
            Self::ParkedBefore => "its record is parked: a person must look first".into(),
            Self::Mismatched => "its key is known for other work (see `fingerprint`)".into(),
            Self::Invalid(invalid) => invalid.detail.clone(),
            Self::Exhausted(_) => "its sender's attempts are used up".into(),
        }
    }
}

#[cfg(test)]
mod tests;
