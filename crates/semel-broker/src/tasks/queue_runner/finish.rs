//! The end of an attempt: the task is done, waits for the next one, or is given up.

use super::QueueRunner;
use crate::clock::Time;
use crate::failpoint::{Point, pass};
use crate::proto::tasks::StoredTask;
use crate::storage::{Batch, StorageError};
use crate::tasks::attempt::{self, AfterFailure, FailedAttempt};
use crate::tasks::names::TaskId;
use crate::tasks::outcome::AttemptOutcome;
use crate::tasks::rows;
use crate::tasks::schedule::Stage;

/// Why a task was sent out.
#[derive(Clone, Copy, Debug)]
pub(in crate::tasks) enum Trigger {
    /// It was due.
    Due,
    /// Somebody asked for it.
    RunTask { called: Time },
}

/// An attempt that is over.
#[derive(Debug)]
pub(in crate::tasks) struct FinishedAttempt {
    pub(in crate::tasks) id: TaskId,
    pub(in crate::tasks) trigger: Trigger,
    pub(in crate::tasks) started: Time,
    pub(in crate::tasks) outcome: AttemptOutcome,
    /// As it was when the attempt began.
    pub(in crate::tasks) stored: StoredTask,
}

/// What became of the task.
enum NextState {
    /// It is done, or given up.
    Ended,
    /// It is tried again.
    Waits(Time),
    /// Somebody else ended it meanwhile.
    Gone,
}

impl QueueRunner {
    /// Writes an attempt's end down, and lets the queue go on.
    pub(in crate::tasks) async fn finish_attempt(&self, finished: FinishedAttempt) {
        let several = self.state().schedule.in_flight_of(&finished.id) > 1;
        let next_state = if several {
            let _alone = self.changes.write().await;
            self.finish_guarded(&finished).await
        } else {
            let _shared = self.changes.read().await;
            self.finish_guarded(&finished).await
        };
        if let Err(error) = next_state {
            // The task stays in storage, and is sent out again by the next broker that opens it.
            tracing::error!(queue = self.name, task = %finished.id, %error, "the end of an attempt could not be stored");
        }
        self.wake.notify_one();
        self.shared.tell();
    }

    async fn finish_guarded(&self, finished: &FinishedAttempt) -> Result<(), StorageError> {
        let next_state = self.write_end(finished).await;
        let mut state = self.state();
        state.rate_limiter.adapt(finished.outcome.load());
        match next_state {
            Ok(NextState::Ended) => drop(state.schedule.remove(&finished.id)),
            Ok(NextState::Waits(until)) => {
                state.schedule.wait_until(&finished.id, until, Stage::Retry)
            }
            Ok(NextState::Gone) | Err(_) => {}
        }
        state.schedule.end_dispatch(&finished.id);
        drop(state);
        next_state.map(drop)
    }

    async fn write_end(&self, finished: &FinishedAttempt) -> Result<NextState, StorageError> {
        let sequence = finished.stored.sequence;
        if !self.state().schedule.holds_numbered(&finished.id, sequence) {
            return Ok(NextState::Gone);
        }
        let id = finished.id.to_string();
        let mut batch = Batch::default();
        let next_state = match finished.outcome {
            AttemptOutcome::Success | AttemptOutcome::TooOld => NextState::Ended,
            AttemptOutcome::Failure { code, retry_after } => {
                // Another dispatch of it may have ended since this one began.
                let Some(mut stored) = self.stored(&id)? else {
                    return Ok(NextState::Gone);
                };
                let failed = self.failed_attempt(finished, code);
                match attempt::failed(&mut stored, &self.queue(), &failed, retry_after) {
                    AfterFailure::GiveUp => NextState::Ended,
                    AfterFailure::Retry(at) => {
                        rows::put_task(&mut batch, &self.name, &id, &stored);
                        NextState::Waits(at)
                    }
                }
            }
        };
        if let NextState::Ended = next_state {
            let named = finished.stored.named;
            rows::end_task(&mut batch, &self.name, &id, named, self.now());
            self.sweep_if_needed(&mut batch, u32::from(named))?;
        }
        // Should a power cut take it back, the task is delivered once more.
        self.context().storage.write(batch).await?;
        match next_state {
            NextState::Ended => pass(Point::EndKept),
            NextState::Waits(_) => pass(Point::RetryKept),
            NextState::Gone => {}
        }
        Ok(next_state)
    }

    fn failed_attempt(&self, finished: &FinishedAttempt, code: u16) -> FailedAttempt {
        let ended = self.now();
        let task = finished.stored.task.as_ref();
        FailedAttempt {
            scheduled: task.and_then(|task| task.schedule_time),
            started: finished.started,
            ended,
            backoff_from: match finished.trigger {
                Trigger::Due => ended,
                Trigger::RunTask { called } => called,
            },
            code,
        }
    }
}
