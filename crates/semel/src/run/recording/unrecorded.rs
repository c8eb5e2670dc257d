//! What one run came to, and how long it is worth saying.

use super::{Ended, Failed};
use crate::Outcome;
use crate::lease::Term;
use crate::outcome::Body;
use crate::pending::{BodyRoom, EntryGuard, PendingOutcomes};
use crate::record::{Ending, Fail, FailKind, Held, InDoubt, Lease, Operation, State};
use crate::settled_cache::Recorded;
use crate::store::Error;
use crate::work::{Completes, Failure, FailureKind, Work};
use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// An outcome that the store does not have yet.
pub(super) struct UnrecordedOutcome {
    pub(super) lease: Lease,
    pub(super) work: Work,
    pub(super) said: Result<Outcome, Failure>,
    /// What whoever asks now is told, while nothing is recorded.
    pub(super) told: Ended,
    /// Where it is to be found what became of the work.
    pub(super) truth: Truth,
    term: Term,
    /// The pause that a failure asks for, drawn once.
    delay: Duration,
    /// How long its own sender waits to hear that it is recorded.
    sender_waits_until: Instant,
    until: Instant,
    renew_at: Instant,
    body: BodyRoom,
    tries: u32,
    listed: EntryGuard,
}

/// Where the truth about a run is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Truth {
    /// In hand: it is what the effect said.
    InHand,
    /// In the record, which the effect's own transaction settles or does not.
    InTheRecord,
}

/// How many times a renewal that failed would be tried again in the length of a lease.
const RENEWAL_RETRIES_PER_LEASE: u32 = 10;

// === impl UnrecordedOutcome ===

impl UnrecordedOutcome {
    /// Puts an outcome on the list.
    #[allow(
        clippy::disallowed_methods,
        reason = "jitter: nothing that is stored depends on it"
    )]
    pub(super) fn new(
        outcomes: &Arc<PendingOutcomes>,
        lease: &Lease,
        work: &Work,
        term: &Term,
        said: Result<Outcome, Failure>,
        sender_waits_until: Instant,
    ) -> Self {
        let truth = match work.completes {
            Completes::Run => Truth::InHand,
            Completes::Handler => Truth::InTheRecord,
        };
        let backoff = || {
            let jitter = rand::random_range(0.0..1.0);
            work.backoff.delay(lease.attempt, jitter)
        };
        let after = said.as_ref().err().and_then(|failure| failure.after);
        let told = told(truth, &said);
        let mut unrecorded = Self {
            lease: lease.clone(),
            work: work.clone(),
            said,
            told: told.clone(),
            truth,
            term: term.clone(),
            delay: after.unwrap_or_else(backoff),
            sender_waits_until,
            until: sender_waits_until,
            renew_at: term.renew_at(),
            body: BodyRoom::Enough,
            tries: 0,
            listed: outcomes.list(lease, work, told),
        };
        unrecorded.until = unrecorded.worth_saying_until();
        unrecorded
    }

    /// What is written of an outcome.
    pub(super) fn kept<'a>(&self, outcome: &'a Outcome) -> Cow<'a, Outcome> {
        match self.body {
            BodyRoom::Enough => Cow::Borrowed(outcome),
            BodyRoom::NoneForTheBody => Cow::Owned(without_body(outcome)),
        }
    }

    /// Whether all of it is written.
    pub(super) fn is_kept_whole(&self) -> bool {
        self.body == BodyRoom::Enough
    }

    /// What the store is told.
    pub(super) fn operation(&self) -> Operation {
        let (lease, retention) = (self.lease.clone(), self.work.retention);
        let failure = match &self.said {
            Ok(outcome) => {
                return Operation::Complete {
                    lease,
                    result: self.kept(outcome).encode(),
                    retention,
                };
            }
            Err(failure) => failure,
        };
        let (delay, doubt) = (self.delay, self.work.doubt());
        let (kind, in_doubt) = match failure.kind {
            FailureKind::NotStarted => {
                return Operation::Release {
                    lease,
                    park_after: self.work.park_after,
                };
            }
            FailureKind::Withdrawn => {
                return Operation::Release {
                    lease,
                    park_after: None,
                };
            }
            FailureKind::Retryable => (FailKind::Retryable { delay }, doubt),
            FailureKind::InDoubt => (FailKind::InDoubt { delay }, doubt),
            FailureKind::StillInDoubt => (FailKind::StillInDoubt { delay }, doubt),
            FailureKind::Park => (FailKind::InDoubt { delay }, InDoubt::Park),
            FailureKind::Final => (FailKind::Final, doubt),
        };
        let how = Fail {
            kind,
            in_doubt,
            max_attempts: self.work.max_attempts,
            max_in_doubt: self.work.doubt_limit(self.term.waited()),
            park_after: self.work.park_after,
            retention: retention.max(self.work.unfinished_retention),
            result: self.kept(&failure.outcome).encode(),
        };
        Operation::Fail { lease, how }
    }

    /// Notes that the effect's own transaction did not commit: the work has not succeeded. An effect that reported success all
    /// the same may have committed elsewhere, so what it did is in doubt.
    pub(super) fn was_not_completed(&mut self) {
        self.truth = Truth::InHand;
        if let Ok(outcome) = &self.said {
            if let Some(to) = &self.work.uncompleted {
                // Its caller may not wait for it any more.
                let _heard = to.send(());
            }
            self.said = Err(Failure {
                kind: match self.work.in_doubt {
                    InDoubt::Park => FailureKind::Park,
                    InDoubt::Retry | InDoubt::Probe => FailureKind::InDoubt,
                },
                outcome: outcome.clone(),
                after: None,
            });
        }
        self.until = self.worth_saying_until();
        self.told = told(self.truth, &self.said);
        self.tell();
    }

    /// The store did not take it.
    pub(super) fn was_not_taken(&mut self, error: &Error) {
        let bytes = self.body_bytes();
        let room = match error {
            Error::Unavailable(_) => self.listed.is_away(bytes),
            Error::Denied(_) | Error::Invalid(_) | Error::Corrupt(_) | Error::Bug(_) => {
                self.listed.is_denied(bytes, error)
            }
        };
        self.has(room);
        self.tries += 1;
        // A store that is away for an hour is told of a dozen times, not thousands.
        if self.tries.is_power_of_two() {
            let (key, fence, tries) = (&self.lease.key, self.lease.fence.0, self.tries);
            tracing::warn!(%key, fence, tries, %error, "an outcome is not recorded yet; trying again");
        }
    }

    /// Nobody waits for it any more. What is not going to be recorded is not kept either.
    pub(super) fn goes_on_alone(&mut self) {
        if self.tries == 0 {
            let room = self.listed.is_away(self.body_bytes());
            self.has(room);
        }
        if self.body == BodyRoom::NoneForTheBody {
            self.said = with_outcome(self.said.clone(), |outcome| without_body(&outcome));
            self.told = told(self.truth, &self.said);
        }
    }

    /// Does without the body, if there is one: the store does not take it as it is.
    pub(super) fn drops_body(&mut self) -> bool {
        let drops = self.body == BodyRoom::Enough && self.body_bytes() > 0;
        if drops {
            self.has(BodyRoom::NoneForTheBody);
        }
        drops
    }

    /// How long it is still worth saying; `None` when it is not.
    pub(super) fn left(&self) -> Option<Duration> {
        let left = self.until.saturating_duration_since(Instant::now());
        (!left.is_zero()).then_some(left)
    }

    /// Whether others are to be kept from running it, and it is time to say so.
    pub(super) fn is_renewed_now(&mut self) -> bool {
        let now = Instant::now();
        if !self.is_an_end() || now < self.renew_at {
            return false;
        }
        self.renew_at = now + self.work.lease / RENEWAL_RETRIES_PER_LEASE;
        true
    }

    pub(super) fn was_renewed(&mut self, sent: Instant) {
        self.term.begin_at(sent);
        self.renew_at = self.term.renew_at();
    }

    /// What became of an outcome that had to wait; of the others nobody needs to hear.
    pub(super) fn log(&self, held: &Held) {
        if self.tries == 0 {
            return;
        }
        let (key, fence) = (&self.lease.key, self.lease.fence.0);
        match held {
            Held::Applied(state) => {
                tracing::info!(%key, fence, %state, "a pending outcome is recorded");
            }
            Held::Already(state) => {
                tracing::info!(%key, fence, %state, "a pending outcome was recorded by an earlier try");
            }
            Held::Settled(_) => {
                tracing::warn!(%key, fence, "a pending outcome was not recorded: its run was settled otherwise, and that stands");
            }
            Held::Parked => {
                tracing::warn!(%key, fence, "a pending outcome was not recorded: its record is parked");
            }
            Held::Stale => {
                tracing::error!(%key, fence, "a pending outcome was not recorded: another run or an operator owns this work now, and it may take effect again");
            }
        }
    }

    pub(super) fn log_given_up(&self) {
        let (key, fence) = (&self.lease.key, self.lease.fence.0);
        if self.is_an_end() || self.truth == Truth::InTheRecord {
            tracing::error!(%key, fence, "a pending outcome is given up: its retention is over");
        } else {
            tracing::info!(%key, fence, "a pending failure is left to lapse: its lease is over, which says the same");
        }
    }

    /// A success or a final failure, which no lapse can say.
    fn is_an_end(&self) -> bool {
        let is_an_end = match &self.said {
            Ok(_) => true,
            Err(failure) => failure.kind == FailureKind::Final,
        };
        self.truth == Truth::InHand && is_an_end
    }

    /// An end is worth saying as long as it would be remembered, and so is looking for one; what a
    /// lapse says as well, until then, or as long as its sender waits: it may turn out to be settled.
    fn worth_saying_until(&self) -> Instant {
        if self.is_an_end() || self.truth == Truth::InTheRecord {
            Instant::now() + self.work.retention
        } else {
            self.term.ends_at().max(self.sender_waits_until)
        }
    }

    fn has(&mut self, room: BodyRoom) {
        if room == BodyRoom::NoneForTheBody && self.body == BodyRoom::Enough {
            self.body = room;
            self.tell();
        }
    }

    /// Tells duplicates what will be in the record.
    fn tell(&self) {
        let said = with_outcome(self.said.clone(), |outcome| {
            self.kept(&outcome).into_owned()
        });
        self.listed.tells(told(self.truth, &said));
    }

    fn body_bytes(&self) -> usize {
        let outcome = match &self.said {
            Ok(outcome) => outcome,
            Err(failure) => &failure.outcome,
        };
        match (&outcome.body, self.body) {
            (Body::Kept(bytes), BodyRoom::Enough) => bytes.len(),
            (Body::Kept(_), BodyRoom::NoneForTheBody) | (Body::NotKept, _) => 0,
        }
    }
}

/// The same with another outcome: of a failure as of a success.
pub(super) fn with_outcome(
    said: Result<Outcome, Failure>,
    change: impl FnOnce(Outcome) -> Outcome,
) -> Result<Outcome, Failure> {
    match said {
        Ok(outcome) => Ok(change(outcome)),
        Err(failure) => Err(Failure {
            outcome: change(failure.outcome),
            ..failure
        }),
    }
}

fn without_body(outcome: &Outcome) -> Outcome {
    Outcome {
        body: Body::NotKept,
        ..outcome.clone()
    }
}

/// The effect's own answer, for whoever cannot be told that it is recorded.
fn told(truth: Truth, said: &Result<Outcome, Failure>) -> Ended {
    if truth == Truth::InTheRecord {
        return Ended::Unread;
    }
    let (ending, outcome) = match said {
        Ok(outcome) => (Ending::Succeeded, outcome.clone()),
        Err(failure) if failure.kind == FailureKind::Final => {
            (Ending::Failed, failure.outcome.clone())
        }
        Err(failure) => {
            return Ended::Failed(Arc::new(Failed {
                failure: failure.clone(),
                state: State::Waiting,
            }));
        }
    };
    Ended::Unrecorded(Arc::new(Recorded { ending, outcome }))
}
