//! A queue at work: its configuration, its schedule of tasks, and the loop that sends them out.
//!
//! What is in the schedule is in storage: a task enters it after it was committed, and leaves it with the commit that
//! ends it. The state is guarded by one mutex that is never held over an await; the order of commits by `changes`.

mod change;
mod finish;

pub(super) use finish::{FinishedAttempt, Trigger};

use super::dispatch;
use super::errors;
use super::names::TaskId;
use super::rows;
use super::schedule::{Limits, NextStep, RateLimiter, Schedule, Stage};
use crate::clock::Time;
use crate::context::Context;
use crate::proto::tasks::{Queue, StoredTask};
use crate::storage::StorageError;
use std::collections::HashSet;
use std::sync::atomic::AtomicU32;
use std::sync::{Arc, Mutex, MutexGuard, Weak};
use tokio::sync::{Notify, RwLock, watch};
use tonic::Status;
use url::Url;

/// What all queues of a broker share.
#[derive(Debug)]
pub(super) struct TasksShared {
    pub(super) context: Arc<Context>,
    /// Where tasks for App Engine go that are routed nowhere here.
    pub(super) app_engine_url: Option<Url>,
    /// Counts up whenever a queue may have become idle.
    pub(super) changed: watch::Sender<u64>,
    /// How many names were used up since they were last swept.
    pub(super) tombstones: AtomicU32,
}

/// A queue at work.
#[derive(Debug)]
pub(super) struct QueueRunner {
    pub(super) name: String,
    pub(super) shared: Arc<TasksShared>,
    /// Shared by changes to different tasks, and held alone by changes to the queue, and by changes to a task that
    /// something else may be changing: two commits to the same row never race.
    changes: RwLock<()>,
    state: Mutex<State>,
    wake: Arc<Notify>,
}

#[derive(Debug)]
struct State {
    queue: Arc<Queue>,
    limits: Limits,
    schedule: Schedule,
    rate_limiter: RateLimiter,
    /// Tasks that are being created or deleted right now.
    changing: HashSet<TaskId>,
    sequences: SequenceNumbers,
    /// Calls whose answers are no longer waited for.
    left_running: u32,
    /// The queue was deleted.
    gone: bool,
}

/// What the tasks of a queue are numbered with: the dice of the faults look at it.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct SequenceNumbers {
    pub(super) next: u64,
    /// In storage: no task has this number or a higher one, whether it is still there or not. A restart goes on
    /// from here, so that what it finds there does not change the dice.
    pub(super) reserved: u64,
}

// === impl TasksShared ===

impl TasksShared {
    /// Wakes who waits for idleness, to look again.
    pub(super) fn tell(&self) {
        self.changed
            .send_modify(|count| *count = count.wrapping_add(1));
    }
}

// === impl QueueRunner ===

impl QueueRunner {
    /// A queue with the tasks that are in storage already; it begins to send them out.
    pub(super) fn start(
        shared: Arc<TasksShared>,
        queue: Queue,
        schedule: Schedule,
        sequences: SequenceNumbers,
    ) -> Arc<Self> {
        let wake = Arc::new(Notify::new());
        let runner = Arc::new(Self {
            name: queue.name.clone(),
            shared,
            changes: RwLock::new(()),
            state: Mutex::new(State {
                limits: Limits::of(&queue),
                queue: Arc::new(queue),
                schedule,
                rate_limiter: RateLimiter::new(),
                changing: HashSet::new(),
                sequences,
                left_running: 0,
                gone: false,
            }),
            wake: Arc::clone(&wake),
        });
        tokio::spawn(run(Arc::downgrade(&runner), wake));
        runner
    }

    pub(super) fn context(&self) -> &Arc<Context> {
        &self.shared.context
    }

    pub(super) fn app_engine_url(&self) -> Option<&Url> {
        self.shared.app_engine_url.as_ref()
    }

    pub(super) fn now(&self) -> Time {
        self.context().clock.now()
    }

    pub(super) fn queue(&self) -> Arc<Queue> {
        Arc::clone(&self.state().queue)
    }

    /// How many tasks there are, and how many dispatches of them are in flight.
    pub(super) fn counts(&self) -> (usize, u32) {
        self.state().schedule.counts()
    }

    /// A task as it is stored, with the dispatches that are in flight counted; nothing if there is none.
    pub(super) fn shown(&self, id: &str) -> Result<Option<StoredTask>, StorageError> {
        let in_flight_by_task = self.state().schedule.in_flight_of(&TaskId::new(id));
        let mut stored = self.stored(id)?;
        if let Some(task) = stored.as_mut().and_then(|stored| stored.task.as_mut()) {
            let in_flight_by_task = i32::try_from(in_flight_by_task).unwrap_or(i32::MAX);
            task.dispatch_count = task.dispatch_count.saturating_add(in_flight_by_task);
        }
        Ok(stored)
    }

    pub(super) fn stored(&self, id: &str) -> Result<Option<StoredTask>, StorageError> {
        rows::task(&self.context().storage, &self.name, id)
    }

    /// Sends a task out now, whatever it waits for. Answers what is stored of it and how many dispatches of it were
    /// in flight.
    pub(super) fn run(self: &Arc<Self>, id: &str) -> Result<(StoredTask, u32), Status> {
        let called = self.now();
        let due_task = self.state().schedule.dispatch_now(&TaskId::new(id));
        let due_task = due_task.ok_or_else(errors::not_found)?;
        let others = due_task.others;
        let stored = self.stored(id);
        let (runner, trigger) = (Arc::clone(self), Trigger::RunTask { called });
        tokio::spawn(dispatch::dispatch(runner, due_task, trigger));
        Ok((stored?.ok_or_else(errors::not_found)?, others))
    }

    /// A dispatch that does not take place now: the task waits for a moment instead.
    pub(super) fn put_back(&self, id: &TaskId, until: Time, lets_others_first: bool) {
        let mut state = self.state();
        state.rate_limiter.give_back();
        state.schedule.end_dispatch(id);
        if lets_others_first {
            state.schedule.yield_until(id, until);
        } else {
            state.schedule.wait_until(id, until, Stage::PutBack);
        }
        drop(state);
        self.wake.notify_one();
        self.shared.tell();
    }

    /// A dispatch of a task that is no longer there.
    pub(super) fn cancel_dispatch(&self, id: &TaskId) {
        self.state().schedule.end_dispatch(id);
        self.wake.notify_one();
        self.shared.tell();
    }

    /// Notes that a call goes on whose answer nobody waits for, or that it is over.
    pub(super) fn leave_running(&self) {
        self.state().left_running += 1;
    }

    pub(super) fn left_one_ended(&self) {
        self.state().left_running -= 1;
        self.shared.tell();
    }

    /// What keeps it from being idle, in words.
    pub(super) fn busy(&self) -> Vec<String> {
        let now = self.now();
        let state = self.state();
        let activity = state.schedule.activity(&state.limits, now);
        let (on_the_way, left) = (activity.in_flight as usize, state.left_running as usize);
        drop(state);
        let some = |count: usize, are: &str| (count > 0).then(|| format!("{count} {are}"));
        let lines = [
            some(on_the_way, "dispatches on the way"),
            activity.due.then(|| "a task is due".to_owned()),
            some(activity.retries, "tasks wait for their next attempt"),
            some(left, "calls still run after their answer was given up"),
        ];
        let lines = lines.into_iter().flatten();
        lines.map(|line| format!("{}: {line}", self.name)).collect()
    }

    fn next(&self) -> NextStep {
        let now = self.now();
        let mut state = self.state();
        let State {
            schedule,
            limits,
            rate_limiter,
            ..
        } = &mut *state;
        schedule.next(limits, rate_limiter, now)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("nobody panics holding it")
    }
}

impl Drop for QueueRunner {
    fn drop(&mut self) {
        self.wake.notify_one();
    }
}

/// Sends tasks out as they fall due, until the queue is gone.
async fn run(runner: Weak<QueueRunner>, wake: Arc<Notify>) {
    while let Some(runner) = runner.upgrade() {
        match runner.next() {
            NextStep::Dispatch(due_task) => {
                tokio::spawn(dispatch::dispatch(runner, due_task, Trigger::Due));
            }
            NextStep::At(moment) => {
                let clock = runner.context().clock.clone();
                drop(runner);
                tokio::select! {
                    () = wake.notified() => {}
                    () = clock.sleep_until(moment) => {}
                }
            }
            NextStep::Wait => {
                drop(runner);
                wake.notified().await;
            }
        }
    }
}
