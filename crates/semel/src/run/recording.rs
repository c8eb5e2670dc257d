//! Recording: what a run says at its end, written until the store has it.

use super::{Ended, Failed, POLL_FIRST, POLL_MAX, Semel, jittered};
use crate::Outcome;
use crate::flight::Recorded;
use crate::record::{Ending, Fail, FailKind, Held, Lease, Settled, State};
use crate::store::Error;
use crate::work::{Completes, Failure, FailureKind, Work};
use bytes::Bytes;
use std::sync::Arc;
use tokio::time::{Instant, sleep, timeout_at};

/// What a run wants recorded.
#[derive(Clone, Debug)]
enum Recording {
    Complete(Bytes),
    Fail(Fail),
    Release,
}

// === impl Semel ===

impl Semel {
    /// Records what the effect said. When the store cannot be told in time, the caller hears the
    /// real answer, and the record follows as long as this process lives.
    pub(super) async fn record(
        &self,
        lease: &Lease,
        work: &Work,
        said: Result<Outcome, Failure>,
    ) -> Ended {
        let deadline = Instant::now() + self.inner.settings.record_within;
        let said = match work.completes {
            Completes::Run => said,
            Completes::Handler => match timeout_at(deadline, self.handlers_word(lease, work)).await
            {
                Ok(Some(recorded)) => return Ended::Ran(recorded),
                Ok(None) | Err(_) => Err(said.map_or_else(|failure| failure, without_completing)),
            },
        };
        let said = said.map(|outcome| outcome.bounded(self.inner.settings.answer_bytes_max));
        let recording = Recording::of(&said, lease, work);
        match timeout_at(deadline, self.write(lease, work, &recording)).await {
            Ok(Ok(held)) => self.recorded(lease, work, said, held),
            Ok(Err(error)) => {
                tracing::error!(key = %lease.key, %error, "an outcome cannot be recorded");
                unrecorded(said)
            }
            Err(_) => {
                self.write_later(lease, work, recording);
                unrecorded(said)
            }
        }
    }

    /// Writes, and repeats while the store cannot be reached: every write may be repeated.
    async fn write(&self, lease: &Lease, work: &Work, what: &Recording) -> Result<Held, Error> {
        let mut poll = POLL_FIRST;
        loop {
            let held = match what {
                Recording::Complete(result) => {
                    self.store().complete(lease, result, work.retention).await
                }
                Recording::Fail(fail) => self.store().fail(lease, fail).await,
                Recording::Release => self.store().release(lease).await,
            };
            match held {
                Err(Error::Unavailable(why)) => {
                    tracing::warn!(key = %lease.key, why, "an outcome is not recorded yet; trying again");
                }
                answered => return answered,
            }
            sleep(jittered(poll)).await;
            poll = POLL_MAX.min(poll * 2);
        }
    }

    fn write_later(&self, lease: &Lease, work: &Work, recording: Recording) {
        let (semel, lease, work) = (self.clone(), lease.clone(), work.clone());
        tokio::spawn(async move {
            match semel.write(&lease, &work, &recording).await {
                Ok(held) => {
                    tracing::info!(key = %lease.key, ?held, "a pending outcome was recorded")
                }
                Err(error) => {
                    tracing::error!(key = %lease.key, %error, "a pending outcome is lost")
                }
            }
        });
    }

    fn recorded(
        &self,
        lease: &Lease,
        work: &Work,
        said: Result<Outcome, Failure>,
        held: Held,
    ) -> Ended {
        let state = match held {
            Held::Applied(state) | Held::Already(state) => state,
            Held::Parked => return Ended::Parked,
            Held::Stale => return Ended::Stale,
            Held::Settled(settled) => {
                return match self.remember(work, &settled) {
                    Ok(recorded) => Ended::Ran(recorded),
                    Err(error) => {
                        tracing::error!(key = %lease.key, %error, "a recorded outcome cannot be read");
                        unrecorded(said)
                    }
                };
            }
        };
        match said {
            Ok(outcome) => Ended::Ran(self.settled(work, Ending::Succeeded, outcome)),
            Err(failure) if failure.kind == FailureKind::Final => {
                Ended::Ran(self.settled(work, Ending::Failed, failure.outcome))
            }
            Err(failure) => Ended::Failed(Arc::new(Failed { failure, state })),
        }
    }

    fn settled(&self, work: &Work, ending: Ending, outcome: Outcome) -> Arc<Recorded> {
        let recorded = Arc::new(Recorded { ending, outcome });
        self.cache(work, &recorded, work.retention);
        recorded
    }

    /// What the effect's own transaction recorded, if it committed.
    async fn handlers_word(&self, lease: &Lease, work: &Work) -> Option<Arc<Recorded>> {
        let mut poll = POLL_FIRST;
        let record = loop {
            match self.store().look(&lease.key).await {
                Ok(record) => break record?,
                Err(error) => {
                    tracing::warn!(key = %lease.key, %error, "a record cannot be read yet")
                }
            }
            sleep(jittered(poll)).await;
            poll = POLL_MAX.min(poll * 2);
        };
        let ending = record.state.ending().filter(|_| record.is_of(lease))?;
        let result = record.result.unwrap_or_default();
        self.remember(
            work,
            &Settled {
                ending,
                result,
                keep: work.retention,
            },
        )
        .ok()
    }
}

/// The effect's own answer, for a caller who cannot be told that it is recorded.
fn unrecorded(said: Result<Outcome, Failure>) -> Ended {
    let (ending, outcome) = match said {
        Ok(outcome) => (Ending::Succeeded, outcome),
        Err(failure) if failure.kind == FailureKind::Final => (Ending::Failed, failure.outcome),
        Err(failure) => {
            return Ended::Failed(Arc::new(Failed {
                failure,
                state: State::Waiting,
            }));
        }
    };
    Ended::Unrecorded(Arc::new(Recorded { ending, outcome }))
}

/// The effect says it succeeded, but its transaction did not commit: it has not.
fn without_completing(outcome: Outcome) -> Failure {
    Failure {
        kind: FailureKind::Retryable,
        outcome,
        after: None,
    }
}

// === impl Recording ===

impl Recording {
    fn of(said: &Result<Outcome, Failure>, lease: &Lease, work: &Work) -> Self {
        let failure = match said {
            Ok(outcome) => return Self::Complete(outcome.encode()),
            Err(failure) => failure,
        };
        let delay = failure.after.unwrap_or_else(|| {
            work.backoff
                .delay(lease.attempt, rand::random_range(0.0..1.0))
        });
        let kind = match failure.kind {
            FailureKind::NotStarted => return Self::Release,
            FailureKind::Retryable => FailKind::Retryable { delay },
            FailureKind::InDoubt => FailKind::InDoubt { delay },
            FailureKind::Final => FailKind::Final,
        };
        Self::Fail(Fail {
            kind,
            in_doubt: work.doubt(),
            max_attempts: work.max_attempts,
            retention: work.retention,
            result: failure.outcome.encode(),
        })
    }
}
