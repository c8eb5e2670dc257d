//! Recording: what a run says at its end, written until the store has it.

mod in_hand;

use super::{Ended, Failed, POLL_FIRST, POLL_MAX, Semel, jittered};
use crate::Outcome;
use crate::flight::Recorded;
use crate::lease::Term;
use crate::record::{Ending, Held, Lease, Settled};
use crate::store::Error;
use crate::work::{Failure, FailureKind, Work};
use in_hand::{InHand, Recording, Truth};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{Instant, sleep, timeout_at};

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
enum Read {
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
        let said = bounded(said, settings.answer_bytes_max);
        let mut hand = InHand::new(&self.inner.outcomes, lease, work, term, said, deadline);
        match timeout_at(deadline, self.settle(&mut hand, POLL_MAX)).await {
            Ok(ended) => ended,
            Err(_) => {
                let told = hand.told.clone();
                self.settle_later(hand);
                told
            }
        }
    }

    fn settle_later(&self, mut hand: InHand) {
        let semel = self.clone();
        hand.goes_on_alone();
        tokio::spawn(async move {
            // Remembered as settled before the hand lets go of it.
            let _ended = semel.settle(&mut hand, PENDING_POLL_MAX).await;
            drop(hand);
        });
    }

    /// Says what is in hand until the store has answered, or there is no use in saying it.
    async fn settle(&self, hand: &mut InHand, poll_max: Duration) -> Ended {
        if hand.truth == Truth::InTheRecord {
            match self.read(hand, poll_max).await {
                Read::Recorded(recorded) => return Ended::Ran(recorded),
                Read::NotRecorded => hand.was_not_completed(),
                Read::GivenUp => return hand.told.clone(),
            }
        }
        match self.write(hand, poll_max).await {
            Written::Held(held) => {
                hand.log(&held);
                self.recorded(hand, held)
            }
            Written::GivenUp => hand.told.clone(),
        }
    }

    /// Writes, and repeats whatever the store says: every write may be repeated, and one that is
    /// denied can be made once somebody has fixed the store.
    async fn write(&self, hand: &mut InHand, poll_max: Duration) -> Written {
        let mut poll = POLL_FIRST;
        loop {
            match self.say(hand).await {
                Ok(held) => return Written::Held(held),
                Err(Error::Invalid(_)) if hand.drops_body() => continue,
                Err(Error::Invalid(why)) => {
                    tracing::error!(key = %hand.lease.key, why, "an outcome cannot be recorded");
                    return Written::GivenUp;
                }
                Err(error) => hand.was_not_taken(&error),
            }
            if let Some(held) = self.renew_in_hand(hand).await {
                return Written::Held(held);
            }
            let Some(left) = hand.left() else {
                hand.log_given_up();
                return Written::GivenUp;
            };
            sleep(jittered(poll).min(left)).await;
            poll = poll_max.min(poll * 2);
        }
    }

    async fn say(&self, hand: &InHand) -> Result<Held, Error> {
        let (store, lease) = (self.store(), &hand.lease);
        match hand.recording() {
            Recording::Complete(result) => {
                store.complete(lease, &result, hand.work.retention).await
            }
            Recording::Fail(fail) => store.fail(lease, &fail).await,
            Recording::Release => store.release(lease).await,
        }
    }

    /// Keeps the right to say it, as far as the store lets us; an answer if that told how it stands.
    async fn renew_in_hand(&self, hand: &mut InHand) -> Option<Held> {
        if !hand.is_renewed_now() {
            return None;
        }
        let (sent, work) = (Instant::now(), &hand.work);
        let renewed = self.store().renew(&hand.lease, work.lease, work.retention);
        match renewed.await {
            Ok(Held::Applied(_) | Held::Already(_)) => hand.was_renewed(sent),
            // Its own late word still counts.
            Ok(Held::Parked) => {}
            Ok(held @ (Held::Settled(_) | Held::Stale)) => return Some(held),
            Err(error) => {
                tracing::debug!(key = %hand.lease.key, %error, "a lease was not renewed");
            }
        }
        None
    }

    fn recorded(&self, hand: &InHand, held: Held) -> Ended {
        let state = match held {
            Held::Applied(state) | Held::Already(state) => state,
            Held::Parked => return Ended::Parked,
            Held::Stale => return Ended::Stale,
            Held::Settled(settled) => {
                return match self.remember(&hand.work, &settled) {
                    Ok(recorded) => Ended::Ran(recorded),
                    Err(error) => {
                        let key = &hand.lease.key;
                        tracing::error!(%key, %error, "a recorded outcome cannot be read");
                        hand.told.clone()
                    }
                };
            }
        };
        match &hand.said {
            Ok(outcome) => Ended::Ran(self.settled(hand, Ending::Succeeded, outcome)),
            Err(failure) if failure.kind == FailureKind::Final => {
                Ended::Ran(self.settled(hand, Ending::Failed, &failure.outcome))
            }
            Err(failure) => Ended::Failed(Arc::new(Failed {
                failure: failure.clone(),
                state,
            })),
        }
    }

    /// What the caller hears. What is remembered is what was written.
    fn settled(&self, hand: &InHand, ending: Ending, outcome: &Outcome) -> Arc<Recorded> {
        let whole = match &hand.told {
            Ended::Unrecorded(recorded) => Arc::clone(recorded),
            Ended::Ran(_)
            | Ended::Replayed(_)
            | Ended::Failed(_)
            | Ended::Unread
            | Ended::Busy { .. }
            | Ended::NotYet { .. }
            | Ended::Full { .. }
            | Ended::Parked
            | Ended::Mismatched
            | Ended::Stale => Arc::new(Recorded {
                ending,
                outcome: outcome.clone(),
            }),
        };
        let written = if hand.is_kept_whole() {
            Arc::clone(&whole)
        } else {
            let outcome = hand.kept(outcome).into_owned();
            Arc::new(Recorded { ending, outcome })
        };
        self.cache(&hand.work, &written, hand.work.retention);
        whole
    }

    /// What the effect's own transaction recorded, if it committed. Nothing is taken for failed
    /// before the store has said so.
    async fn read(&self, hand: &mut InHand, poll_max: Duration) -> Read {
        let mut poll = POLL_FIRST;
        let record = loop {
            match self.store().look(&hand.lease.key).await {
                Ok(Some(record)) => break record,
                Ok(None) => return Read::NotRecorded,
                Err(error) => hand.was_not_taken(&error),
            }
            let Some(left) = hand.left() else {
                hand.log_given_up();
                return Read::GivenUp;
            };
            sleep(jittered(poll).min(left)).await;
            poll = poll_max.min(poll * 2);
        };
        let ending = record.state.ending().filter(|_| record.is_of(&hand.lease));
        let Some(ending) = ending else {
            return Read::NotRecorded;
        };
        let settled = Settled {
            ending,
            result: record.result.unwrap_or_default(),
            keep: hand.work.retention,
        };
        match self.remember(&hand.work, &settled) {
            Ok(recorded) => Read::Recorded(recorded),
            Err(_) => Read::NotRecorded,
        }
    }
}

/// The same, a body that is too large dropped: of a failure as of a success.
fn bounded(said: Result<Outcome, Failure>, max: usize) -> Result<Outcome, Failure> {
    match said {
        Ok(outcome) => Ok(outcome.bounded(max)),
        Err(failure) => Err(Failure {
            outcome: failure.outcome.bounded(max),
            ..failure
        }),
    }
}
