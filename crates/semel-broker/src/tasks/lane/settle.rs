//! The end of an attempt: the task is done, waits for the next one, or is given up.

use super::Lane;
use crate::clock::Time;
use crate::failpoint::{Point, pass};
use crate::proto::tasks::KeptTask;
use crate::storage::{Batch, StorageError};
use crate::tasks::names::TaskId;
use crate::tasks::outcome::Outcome;
use crate::tasks::queue::Stage;
use crate::tasks::record::{self, After, Flown};
use crate::tasks::rows;

/// Why a task was sent out.
#[derive(Clone, Copy, Debug)]
pub(in crate::tasks) enum Cause {
    /// It was due.
    Due,
    /// Somebody asked for it.
    Asked { called: Time },
}

/// An attempt that is over.
#[derive(Debug)]
pub(in crate::tasks) struct Landing {
    pub(in crate::tasks) id: TaskId,
    pub(in crate::tasks) cause: Cause,
    pub(in crate::tasks) started: Time,
    pub(in crate::tasks) outcome: Outcome,
    /// As it was when the attempt began.
    pub(in crate::tasks) kept: KeptTask,
}

/// What became of the task.
enum Fate {
    /// It is done, or given up.
    Ended,
    /// It is tried again.
    Waits(Time),
    /// Somebody else ended it meanwhile.
    Gone,
}

impl Lane {
    /// Writes an attempt's end down, and lets the queue go on.
    pub(in crate::tasks) async fn settle(&self, landing: Landing) {
        let several = self.state().line.flights_of(&landing.id) > 1;
        let fate = if several {
            let _alone = self.changes.write().await;
            self.settle_guarded(&landing).await
        } else {
            let _shared = self.changes.read().await;
            self.settle_guarded(&landing).await
        };
        if let Err(error) = fate {
            // The task stays in storage, and is sent out again by the next broker that opens it.
            tracing::error!(queue = self.name, task = %landing.id, %error, "the end of an attempt could not be kept");
        }
        self.wake.notify_one();
        self.ground.tell();
    }

    async fn settle_guarded(&self, landing: &Landing) -> Result<(), StorageError> {
        let fate = self.write_down(landing).await;
        let mut state = self.state();
        state.pace.feel(landing.outcome.strain());
        match fate {
            Ok(Fate::Ended) => drop(state.line.remove(&landing.id)),
            Ok(Fate::Waits(until)) => state.line.wait_until(&landing.id, until, Stage::Retry),
            Ok(Fate::Gone) | Err(_) => {}
        }
        state.line.land(&landing.id);
        drop(state);
        fate.map(drop)
    }

    async fn write_down(&self, landing: &Landing) -> Result<Fate, StorageError> {
        let sequence = landing.kept.sequence;
        if !self.state().line.holds_numbered(&landing.id, sequence) {
            return Ok(Fate::Gone);
        }
        let id = landing.id.to_string();
        let mut batch = Batch::default();
        let fate = match landing.outcome {
            Outcome::Success | Outcome::TooOld => Fate::Ended,
            Outcome::Failure { code, retry_after } => {
                // Another dispatch of it may have ended since this one began.
                let Some(mut kept) = self.kept(&id)? else {
                    return Ok(Fate::Gone);
                };
                let flown = self.flown(landing, code);
                match record::failed(&mut kept, &self.queue(), &flown, retry_after) {
                    After::GivenUp => Fate::Ended,
                    After::Again(at) => {
                        rows::put_task(&mut batch, &self.name, &id, &kept);
                        Fate::Waits(at)
                    }
                }
            }
        };
        if let Fate::Ended = fate {
            let named = landing.kept.named;
            rows::end_task(&mut batch, &self.name, &id, named, self.now());
            self.sweep_if_needed(&mut batch, u32::from(named))?;
        }
        // Should a power cut take it back, the task is delivered once more.
        self.context().storage.write(batch).await?;
        match fate {
            Fate::Ended => pass(Point::EndKept),
            Fate::Waits(_) => pass(Point::RetryKept),
            Fate::Gone => {}
        }
        Ok(fate)
    }

    fn flown(&self, landing: &Landing, code: u16) -> Flown {
        let ended = self.now();
        let task = landing.kept.task.as_ref();
        Flown {
            scheduled: task.and_then(|task| task.schedule_time),
            started: landing.started,
            ended,
            backoff_from: match landing.cause {
                Cause::Due => ended,
                Cause::Asked { called } => called,
            },
            code,
        }
    }
}
