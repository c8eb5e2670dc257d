//! Work: what a caller asks to have done once, and what an effect says when it fails.

use crate::record::{BY_BYTES_MAX, Claim, DoubtLimit, InDoubt, Owner};
use crate::slots::{SlotWait, Slots};
use crate::store::{Error, LABEL_BYTES_MAX, validate_acts_for, validate_bytes, validate_lease};
use crate::{Fingerprint, Key, Outcome};
use bytes::Bytes;
use std::num::NonZeroU32;
use std::time::Duration;
use tokio::sync::mpsc;

/// A piece of work to be done once: its key, and the terms on which it runs.
///
/// ```
/// use semel::work::{Backoff, Duplicates, Work};
/// use semel::protocol::InDoubt;
/// use semel::{Fingerprint, Key};
/// use std::time::Duration;
///
/// let work = Work::new(Key::from_bytes([1; 32]), Fingerprint::of(b"payload"))
///     .lease(Duration::from_secs(10))
///     .retention(Duration::from_secs(7 * 24 * 3600))
///     .in_doubt(InDoubt::Park)
///     .max_attempts(9)
///     .max_in_doubt(5)
///     .backoff(Backoff { first: Duration::from_secs(1), max: Duration::from_secs(60) })
///     .duplicates(Duplicates::Reject);
/// assert!(work.validate().is_ok());
/// assert!(work.retention(Duration::from_secs(1)).validate().is_err());
/// ```
#[derive(Clone, Debug)]
#[must_use]
pub struct Work {
    pub(crate) key: Key,
    pub(crate) fingerprint: Fingerprint,
    pub(crate) lease: Duration,
    pub(crate) retention: Duration,
    pub(crate) unfinished_retention: Duration,
    pub(crate) timeout: Duration,
    pub(crate) in_doubt: InDoubt,
    pub(crate) max_attempts: Option<NonZeroU32>,
    pub(crate) max_in_doubt: Option<NonZeroU32>,
    pub(crate) doubt_age: Duration,
    pub(crate) park_after: Option<Duration>,
    pub(crate) margin: Duration,
    pub(crate) backoff: Backoff,
    pub(crate) duplicates: Duplicates,
    pub(crate) completes: Completes,
    pub(crate) uncompleted: Option<mpsc::UnboundedSender<()>>,
    pub(crate) slots: Option<Slots>,
    pub(crate) slot_wait: SlotWait,
    pub(crate) label: Bytes,
    pub(crate) by: Bytes,
}

/// What a duplicate does while the first delivery still runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Duplicates {
    /// Wait for the running one, that long at the most.
    Wait(Duration),
    /// Hear `busy` at once.
    Reject,
}

/// Who records success.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Completes {
    /// The run, when its effect has ended.
    Run,
    /// The effect itself, inside its own database transaction. A run that ends without that
    /// has not succeeded, whatever it says.
    Handler,
}

/// The pause before the next run: doubled with each attempt, with jitter, up to `max`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Backoff {
    /// The pause after the first failure; zero lets the sender pace.
    pub first: Duration,
    /// The longest pause.
    pub max: Duration,
}

/// How an effect failed.
///
/// ```
/// use semel::work::{Failure, FailureKind};
///
/// let failure = Failure::retryable("the mail server said 451");
/// assert_eq!(failure.kind, FailureKind::Retryable);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// What the failure means for the next delivery.
    pub kind: FailureKind,
    /// What is told to the sender, and kept.
    pub outcome: Outcome,
    /// A pause that the failing party asked for; otherwise the work's backoff holds.
    pub after: Option<Duration>,
}

/// What a failure means for the next delivery.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FailureKind {
    /// Not one byte of the effect was begun: the attempt does not count.
    NotStarted,
    /// The same for a reason of the caller's own, which says nothing of the work: old work is not parked for it.
    Withdrawn,
    /// It did not happen, and may be tried again.
    Retryable,
    /// It did not and will not happen: recorded and replayed like a success.
    Final,
    /// It may or may not have happened: the work's policy decides.
    InDoubt,
    /// The run before may or may not have had its effect ([`Run::in_doubt`](crate::Run::in_doubt)), and nobody could say;
    /// this one began nothing. Tried again, and no run more that ended in doubt.
    StillInDoubt,
    /// It may or may not have happened, and whatever the policy, a person must look.
    Park,
}

/// The default of [`Work::doubt_age`].
pub const DOUBT_AGE_MIN: Duration = Duration::from_secs(10 * 60);

/// The default of [`Work::margin`].
const MARGIN: Duration = Duration::from_secs(10);

// === impl Work ===

impl Work {
    /// Work on the default terms: a lease of 30 s, a timeout of 60 s, remembered for 24 h,
    /// duplicates wait 5 s, doubt is retried, nothing is limited. Only who knows the sender knows good limits.
    pub fn new(key: Key, fingerprint: Fingerprint) -> Self {
        Self {
            key,
            fingerprint,
            lease: Duration::from_secs(30),
            retention: Duration::from_secs(24 * 60 * 60),
            unfinished_retention: Duration::ZERO,
            timeout: Duration::from_secs(60),
            in_doubt: InDoubt::Retry,
            max_attempts: None,
            max_in_doubt: None,
            doubt_age: DOUBT_AGE_MIN,
            park_after: None,
            margin: MARGIN,
            backoff: Backoff {
                first: Duration::ZERO,
                max: Duration::ZERO,
            },
            duplicates: Duplicates::Wait(Duration::from_secs(5)),
            completes: Completes::Run,
            uncompleted: None,
            slots: None,
            slot_wait: SlotWait::default(),
            label: Bytes::new(),
            by: Bytes::new(),
        }
    }

    /// Which work it is.
    #[must_use]
    pub const fn key(&self) -> &Key {
        &self.key
    }

    /// How long the right to run lasts unless renewed; a run renews it every third of that.
    pub fn lease(self, lease: Duration) -> Self {
        Self { lease, ..self }
    }

    /// How long the outcome is remembered.
    pub fn retention(self, retention: Duration) -> Self {
        Self { retention, ..self }
    }

    /// Sets how long the record of work is remembered after a run that failed, if that is longer than its
    /// [`retention`](Self::retention): its age counts as long as its sender delivers it.
    pub fn unfinished_retention(self, unfinished_retention: Duration) -> Self {
        Self {
            unfinished_retention,
            ..self
        }
    }

    /// How long the effect may take; past that it is cancelled and in doubt.
    pub fn timeout(self, timeout: Duration) -> Self {
        Self { timeout, ..self }
    }

    /// What becomes of a run whose effect may or may not have happened; under
    /// [`Completes::Handler`] of its steps only.
    pub fn in_doubt(self, in_doubt: InDoubt) -> Self {
        Self { in_doubt, ..self }
    }

    /// What the work is about, for whoever looks at its record later: kept with the first run, part of no decision,
    /// at most [`LABEL_BYTES_MAX`] bytes.
    pub fn label(self, label: impl Into<Bytes>) -> Self {
        Self {
            label: label.into(),
            ..self
        }
    }

    /// Who runs it, for whoever looks at its record later, as the name of this process: kept with an attempt that this one
    /// takes the place of, part of no decision, at most [`BY_BYTES_MAX`] bytes.
    pub fn by(self, by: impl Into<Bytes>) -> Self {
        Self {
            by: by.into(),
            ..self
        }
    }

    /// How many runs before the work is parked; zero is no limit.
    pub fn max_attempts(self, max_attempts: u32) -> Self {
        Self {
            max_attempts: NonZeroU32::new(max_attempts),
            ..self
        }
    }

    /// Sets how many runs may end in doubt (time out, break off, lapse) before the work is parked; zero is no limit. The first
    /// of these doubts must be older than [`doubt_age`](Self::doubt_age): an outage puts many runs in doubt, and no work is
    /// parked for that.
    pub fn max_in_doubt(self, max_in_doubt: u32) -> Self {
        Self {
            max_in_doubt: NonZeroU32::new(max_in_doubt),
            ..self
        }
    }

    /// Sets the minimum age of the first doubt before [`max_in_doubt`](Self::max_in_doubt) parks the work; default: 10 minutes.
    /// A caller that has seen other work succeed after the first doubt knows that the handler is not to blame.
    pub fn doubt_age(self, doubt_age: Duration) -> Self {
        Self { doubt_age, ..self }
    }

    /// How old the work may get, from its first run on, before one more run that does not succeed parks it, if there were
    /// [`PARK_AFTER_ATTEMPTS`](crate::protocol::PARK_AFTER_ATTEMPTS) by then; `None` is no limit. A run that began nothing
    /// parks old work however few there were.
    pub fn park_after(self, park_after: Option<Duration>) -> Self {
        Self { park_after, ..self }
    }

    /// How long an effect may still go on once its run gave it up, as a handler does that was not stopped. Under
    /// [`InDoubt::Probe`] nobody asks what became of it before that.
    pub fn margin(self, margin: Duration) -> Self {
        Self { margin, ..self }
    }

    /// The pause after a retryable failure.
    pub fn backoff(self, backoff: Backoff) -> Self {
        Self { backoff, ..self }
    }

    /// What a duplicate does while the first delivery still runs.
    pub fn duplicates(self, duplicates: Duplicates) -> Self {
        Self { duplicates, ..self }
    }

    /// Who records success.
    pub fn completes(self, completes: Completes) -> Self {
        Self { completes, ..self }
    }

    /// Sets where a run reports that its effect said success and did not record it ([`Completes::Handler`]): at once, or once
    /// the store can be asked.
    pub fn reports_uncompleted(self, to: mpsc::UnboundedSender<()>) -> Self {
        Self {
            uncompleted: Some(to),
            ..self
        }
    }

    /// A limit on runs that this work shares with other work.
    pub fn slots(self, slots: &Slots) -> Self {
        Self {
            slots: Some(slots.clone()),
            ..self
        }
    }

    /// How long this very delivery has waited for a slot: read it when the work has been run.
    #[must_use]
    pub fn slot_wait(&self) -> SlotWait {
        self.slot_wait.clone()
    }

    /// Whether the terms make sense together.
    ///
    /// # Errors
    /// `Invalid`, naming the term.
    pub fn validate(&self) -> Result<(), Error> {
        validate_lease(self.lease, self.retention)?;
        validate_acts_for(self.acts_for(), self.retention)?;
        validate_bytes("label", &self.label, LABEL_BYTES_MAX)?;
        validate_bytes("name of who asks (by)", &self.by, BY_BYTES_MAX)
    }

    /// `waited` is as in [`doubt_limit`](Self::doubt_limit).
    pub(crate) fn claim(&self, waited: Duration) -> Claim {
        Claim {
            key: self.key,
            fingerprint: self.fingerprint,
            owner: Owner::random(),
            lease: self.lease,
            retention: self.retention,
            in_doubt: self.doubt(),
            max_attempts: self.max_attempts,
            max_in_doubt: self.doubt_limit(waited),
            park_after: self.park_after,
            acts_for: self.acts_for(),
            label: self.label.clone(),
            by: self.by.clone(),
        }
    }

    /// What becomes of a run that ended in doubt. Where the effect records itself there is none: a
    /// record that is not settled says that it did not commit, and the fence keeps it from doing so
    /// later.
    pub(crate) const fn doubt(&self) -> InDoubt {
        match self.completes {
            Completes::Run => self.in_doubt,
            Completes::Handler => InDoubt::Retry,
        }
    }

    /// The limit on doubts for a caller that asked `waited` ago: it may have seen no success since.
    pub(crate) fn doubt_limit(&self, waited: Duration) -> Option<DoubtLimit> {
        let age = self.doubt_age.saturating_add(waited);
        self.max_in_doubt.map(|runs| DoubtLimit { runs, age })
    }

    /// For how long after its grant a run may act, where that matters: its effect begins while the lease lasts, and is given
    /// up at its timeout.
    fn acts_for(&self) -> Option<Duration> {
        match self.doubt() {
            InDoubt::Probe => Some(self.lease + self.timeout + self.margin),
            InDoubt::Retry | InDoubt::Park => None,
        }
    }

    pub(crate) const fn patience(&self) -> Duration {
        match self.duplicates {
            Duplicates::Wait(patience) => patience,
            Duplicates::Reject => Duration::ZERO,
        }
    }
}

// === impl Backoff ===

impl Backoff {
    /// The pause after the given attempt. `jitter` is from 0 to 1 and takes off up to half.
    ///
    /// ```
    /// use semel::work::Backoff;
    /// use std::time::Duration;
    ///
    /// let backoff = Backoff { first: Duration::from_secs(1), max: Duration::from_secs(10) };
    /// assert_eq!(backoff.delay(3, 0.0), Duration::from_secs(4));
    /// assert_eq!(backoff.delay(3, 1.0), Duration::from_secs(2));
    /// assert_eq!(backoff.delay(99, 0.0), Duration::from_secs(10));
    /// ```
    #[must_use]
    pub fn delay(&self, attempt: u32, jitter: f64) -> Duration {
        let doublings = attempt.saturating_sub(1).min(31);
        let full = self
            .first
            .saturating_mul(1 << doublings)
            .min(self.max.max(self.first));
        full.mul_f64(1.0 - jitter.clamp(0.0, 1.0) / 2.0)
    }
}

// === impl FailureKind ===

impl FailureKind {
    /// Returns whether not one byte of the effect was begun.
    #[must_use]
    pub const fn began_nothing(self) -> bool {
        match self {
            Self::NotStarted | Self::Withdrawn => true,
            Self::Retryable | Self::Final | Self::InDoubt | Self::StillInDoubt | Self::Park => {
                false
            }
        }
    }
}

// === impl Failure ===

impl Failure {
    /// Not one byte of the effect was begun.
    #[must_use]
    pub fn not_started(why: impl Into<String>) -> Self {
        Self::with(FailureKind::NotStarted, why)
    }

    /// It did not happen, and may be tried again.
    #[must_use]
    pub fn retryable(why: impl Into<String>) -> Self {
        Self::with(FailureKind::Retryable, why)
    }

    /// It did not and will not happen.
    #[must_use]
    pub fn final_failure(why: impl Into<String>) -> Self {
        Self::with(FailureKind::Final, why)
    }

    /// It may or may not have happened.
    #[must_use]
    pub fn in_doubt(why: impl Into<String>) -> Self {
        Self::with(FailureKind::InDoubt, why)
    }

    /// It could not be found out whether the run before had its effect; nothing was begun.
    #[must_use]
    pub fn still_in_doubt(why: impl Into<String>) -> Self {
        Self::with(FailureKind::StillInDoubt, why)
    }

    /// It may or may not have happened, and a person must look.
    #[must_use]
    pub fn park(why: impl Into<String>) -> Self {
        Self::with(FailureKind::Park, why)
    }

    fn with(kind: FailureKind, why: impl Into<String>) -> Self {
        Self {
            kind,
            outcome: Outcome::new(500, why.into()),
            after: None,
        }
    }
}
