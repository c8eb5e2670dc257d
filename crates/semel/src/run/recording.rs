//! Recording: what a run says at its end, written until the store has it.

mod unrecorded;

use super::{Ended, Failed, POLL_FIRST, POLL_MAX, Semel, jittered};
use crate::Outcome;
use crate::lease::Term;
use crate::record::{Ending, Held, Lease, Settled};
use crate::settled_cache::Recorded;
use crate::store::{Error, StoreExt};
use crate::work::{Failure, FailureKind, Work};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{Instant, sleep, timeout_at};
use unrecorded::{Truth, UnrecordedOutcome, with_outcome};

/// The longest pause between two tries to record an outcome whose sender has its reply: many of them
/// may wait, and a store that is in trouble is not asked more often than that by each.
const PENDING_POLL_MAX: Duration = Duration::from_secs(1);

/// How a write came to its end.
enum Written {
    /// The store answered.
    Held(Held),
    /// It did not, and there is no use in asking any longer.
    GivenUp,
}

/// What the effect's own transaction recorded.
enum OwnRecord {
    /// It committed.
    Recorded(Arc<Recorded>),
    /// It did not.
    NotRecorded,
    /// Nobody knows, and the retention is over.
    GivenUp,
}

// === impl Semel ===

impl Semel {
    /// Records what the effect said. When the store cannot be told in time, the caller hears the
    /// real answer, and the record follows as long as this process lives.
    pub(super) async fn record(
        &self,
        lease: &Lease,
        work: &Work,
        term: &Term,
        said: Result<Outcome, Failure>,
    ) -> Ended {
        let settings = &self.inner.settings;
        let deadline = Instant::now() + settings.record_within;
        let said = with_outcome(said, |outcome| outcome.bounded(settings.answer_bytes_max));
        let mut unrecorded =
            UnrecordedOutcome::new(&self.inner.outcomes, lease, work, term, said, deadline);
        match timeout_at(deadline, self.settle(&mut unrecorded, POLL_MAX)).await {
            Ok(ended) => ended,
            Err(_) => {
                let told = unrecorded.told.clone();
                self.settle_later(unrecorded);
                told
            }
        }
    }

    fn settle_later(&self, mut unrecorded: UnrecordedOutcome) {
        let semel = self.clone();
        unrecorded.goes_on_alone();
        tokio::spawn(async move {
            // Remembered as settled before it leaves the list.
            let _ended = semel.settle(&mut unrecorded, PENDING_POLL_MAX).await;
            drop(unrecorded);
        });
    }

    /// Says what is in hand until the store has answered, or there is no use in saying it.
    async fn settle(&self, unrecorded: &mut UnrecordedOutcome, poll_max: Duration) -> Ended {
        if unrecorded.truth == Truth::InTheRecord {
            match self.read(unrecorded, poll_max).await {
                OwnRecord::Recorded(recorded) => return Ended::Ran(recorded),
                OwnRecord::NotRecorded => unrecorded.was_not_completed(),
                OwnRecord::GivenUp => return unrecorded.told.clone(),
            }
        }
        match self.write(unrecorded, poll_max).await {
            Written::Held(held) => {
                unrecorded.log(&held);
                self.recorded(unrecorded, held)
            }
            Written::GivenUp => unrecorded.told.clone(),
        }
    }

    /// Writes, and repeats whatever the store says: every write may be repeated, and one that is
    /// denied can be made once somebody has fixed the store.
    async fn write(&self, unrecorded: &mut UnrecordedOutcome, poll_max: Duration) -> Written {
        let mut poll = POLL_FIRST;
        loop {
            match self.say(unrecorded).await {
                Ok(held) => return Written::Held(held),
                Err(Error::Invalid(_)) if unrecorded.drops_body() => continue,
                Err(Error::Invalid(why)) => {
                    tracing::error!(key = %unrecorded.lease.key, %why, "an outcome cannot be recorded");
                    return Written::GivenUp;
                }
                Err(error) => unrecorded.was_not_taken(&error),
            }
            if let Some(held) = self.renew_unrecorded(unrecorded).await {
                return Written::Held(held);
            }
            let Some(left) = unrecorded.left() else {
                unrecorded.log_given_up();
                return Written::GivenUp;
            };
            sleep(jittered(poll).min(left)).await;
            poll = poll_max.min(poll * 2);
        }
    }

    async fn say(&self, unrecorded: &UnrecordedOutcome) -> Result<Held, Error> {
        self.store().apply(&unrecorded.operation()).await?.held()
    }

    /// Keeps the right to say it, as far as the store lets us; an answer if that told how it stands.
    async fn renew_unrecorded(&self, unrecorded: &mut UnrecordedOutcome) -> Option<Held> {
        if !unrecorded.is_renewed_now() {
            return None;
        }
        let (sent, work) = (Instant::now(), &unrecorded.work);
        let renewed = self
            .store()
            .renew(&unrecorded.lease, work.lease, work.retention);
        match renewed.await {
            Ok(Held::Applied(_) | Held::Already(_)) => unrecorded.was_renewed(sent),
            // Its own late word still counts.
            Ok(Held::Parked) => {}
            Ok(held @ (Held::Settled(_) | Held::Stale)) => return Some(held),
            Err(error) => {
                tracing::debug!(key = %unrecorded.lease.key, %error, "a lease was not renewed");
            }
        }
        None
    }

    fn recorded(&self, unrecorded: &UnrecordedOutcome, held: Held) -> Ended {
        let state = match held {
            Held::Applied(state) | Held::Already(state) => state,
            Held::Parked => return Ended::Parked,
            Held::Stale => return Ended::Stale,
            Held::Settled(settled) => {
                return match self.remember(&unrecorded.work, &settled) {
                    Ok(recorded) => Ended::Ran(recorded),
                    Err(error) => {
                        let key = &unrecorded.lease.key;
                        tracing::error!(%key, %error, "a recorded outcome cannot be read");
                        unrecorded.told.clone()
                    }
                };
            }
        };
        match &unrecorded.said {
            Ok(outcome) => Ended::Ran(self.settled(unrecorded, Ending::Succeeded, outcome)),
            Err(failure) if failure.kind == FailureKind::Final => {
                Ended::Ran(self.settled(unrecorded, Ending::Failed, &failure.outcome))
            }
            Err(failure) => Ended::Failed(Arc::new(Failed {
                failure: failure.clone(),
                state,
            })),
        }
    }

    /// What the caller hears. What is remembered is what was written.
    fn settled(
        &self,
        unrecorded: &UnrecordedOutcome,
        ending: Ending,
        outcome: &Outcome,
    ) -> Arc<Recorded> {
        let whole = if let Ended::Unrecorded(recorded) = &unrecorded.told {
            Arc::clone(recorded)
        } else {
            let outcome = outcome.clone();
            Arc::new(Recorded { ending, outcome })
        };
        let written = if unrecorded.is_kept_whole() {
            Arc::clone(&whole)
        } else {
            let outcome = unrecorded.kept(outcome).into_owned();
            Arc::new(Recorded { ending, outcome })
        };
        self.cache(&unrecorded.work, &written, unrecorded.work.retention);
        whole
    }

    /// What the effect's own transaction recorded, if it committed. Nothing is taken for failed
    /// before the store has said so.
    async fn read(&self, unrecorded: &mut UnrecordedOutcome, poll_max: Duration) -> OwnRecord {
        let mut poll = POLL_FIRST;
        let record = loop {
            match self.store().look(&unrecorded.lease.key).await {
                Ok(Some(record)) => break record,
                Ok(None) => return OwnRecord::NotRecorded,
                Err(error) => unrecorded.was_not_taken(&error),
            }
            let Some(left) = unrecorded.left() else {
                unrecorded.log_given_up();
                return OwnRecord::GivenUp;
            };
            sleep(jittered(poll).min(left)).await;
            poll = poll_max.min(poll * 2);
        };
        let ending = record
            .state
            .ending()
            .filter(|_| record.is_of(&unrecorded.lease));
        let Some(ending) = ending else {
            return OwnRecord::NotRecorded;
        };
        let settled = Settled {
            ending,
            result: record.result.unwrap_or_default(),
            keep: unrecorded.work.retention,
        };
        match self.remember(&unrecorded.work, &settled) {
            Ok(recorded) => OwnRecord::Recorded(recorded),
            Err(_) => OwnRecord::NotRecorded,
        }
    }
}
