//! A queue at work: its configuration, its line of tasks, and the loop that sends them out.
//!
//! What is in the line is in storage: a task enters it after it was committed, and leaves it with the commit that
//! ends it. The state is guarded by one mutex that is never held over an await; the order of commits by `changes`.

mod change;
mod settle;

pub(super) use settle::{Cause, Landing};

use super::dispatch;
use super::errors;
use super::names::TaskId;
use super::queue::{Departure, Limits, Line, Next, Pace, Stage, Unrest};
use super::rows;
use crate::clock::Time;
use crate::context::Context;
use crate::proto::tasks::{KeptTask, Queue};
use crate::storage::StorageError;
use std::collections::HashSet;
use std::sync::atomic::AtomicU32;
use std::sync::{Arc, Mutex, MutexGuard, Weak};
use tokio::sync::{Notify, RwLock, watch};
use tonic::Status;

/// What all queues of a broker share.
#[derive(Debug)]
pub(super) struct Ground {
    pub(super) context: Arc<Context>,
    /// Counts up whenever a queue may have become idle.
    pub(super) changed: watch::Sender<u64>,
    /// How many names were used up since they were last swept.
    pub(super) used_up: AtomicU32,
}

/// A queue at work.
#[derive(Debug)]
pub(super) struct Lane {
    pub(super) name: String,
    pub(super) ground: Arc<Ground>,
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
    line: Line,
    pace: Pace,
    /// Tasks that are being created or deleted right now.
    changing: HashSet<TaskId>,
    numbers: Numbers,
    /// Calls whose answers are no longer waited for.
    left_running: u32,
    /// The queue was deleted.
    gone: bool,
}

/// What the tasks of a queue are numbered with: the dice of the faults look at it.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Numbers {
    pub(super) next: u64,
    /// In storage: no task has this number or a higher one, whether it is still there or not. A restart goes on
    /// from here, so that what it finds there does not change the dice.
    pub(super) reserved: u64,
}

// === impl Ground ===

impl Ground {
    /// Wakes who waits for idleness, to look again.
    pub(super) fn tell(&self) {
        self.changed
            .send_modify(|count| *count = count.wrapping_add(1));
    }
}

// === impl Lane ===

impl Lane {
    /// A queue with the tasks that are in storage already; it begins to send them out.
    pub(super) fn start(
        ground: Arc<Ground>,
        queue: Queue,
        line: Line,
        numbers: Numbers,
    ) -> Arc<Self> {
        let wake = Arc::new(Notify::new());
        let lane = Arc::new(Self {
            name: queue.name.clone(),
            ground,
            changes: RwLock::new(()),
            state: Mutex::new(State {
                limits: Limits::of(&queue),
                queue: Arc::new(queue),
                line,
                pace: Pace::new(),
                changing: HashSet::new(),
                numbers,
                left_running: 0,
                gone: false,
            }),
            wake: Arc::clone(&wake),
        });
        tokio::spawn(run(Arc::downgrade(&lane), wake));
        lane
    }

    pub(super) fn context(&self) -> &Arc<Context> {
        &self.ground.context
    }

    pub(super) fn now(&self) -> Time {
        self.context().clock.now()
    }

    pub(super) fn queue(&self) -> Arc<Queue> {
        Arc::clone(&self.state().queue)
    }

    /// A task as it is kept, with the dispatches that are on the way counted; nothing if there is none.
    pub(super) fn shown(&self, id: &str) -> Result<Option<KeptTask>, StorageError> {
        let flights = self.state().line.flights_of(&TaskId::new(id));
        let mut kept = self.kept(id)?;
        if let Some(task) = kept.as_mut().and_then(|kept| kept.task.as_mut()) {
            let flights = i32::try_from(flights).unwrap_or(i32::MAX);
            task.dispatch_count = task.dispatch_count.saturating_add(flights);
        }
        Ok(kept)
    }

    pub(super) fn kept(&self, id: &str) -> Result<Option<KeptTask>, StorageError> {
        rows::task(&self.context().storage, &self.name, id)
    }

    /// Sends a task out now, whatever it waits for. Answers what is kept of it and how many dispatches of it were
    /// on the way.
    pub(super) fn run(self: &Arc<Self>, id: &str) -> Result<(KeptTask, u32), Status> {
        let called = self.now();
        let departure = self.state().line.force(&TaskId::new(id));
        let departure = departure.ok_or_else(errors::not_found)?;
        let others = departure.others;
        let kept = self.kept(id);
        tokio::spawn(dispatch::fly(
            Arc::clone(self),
            departure,
            Cause::Asked { called },
        ));
        let kept = kept.map_err(|error| errors::storage(&error))?;
        Ok((kept.ok_or_else(errors::not_found)?, others))
    }

    /// A departure that does not take place now: the task waits for a moment instead.
    pub(super) fn put_back(&self, id: &TaskId, until: Time, lets_others_first: bool) {
        let mut state = self.state();
        state.pace.give_back();
        state.line.land(id);
        if lets_others_first {
            state.line.yield_until(id, until);
        } else {
            state.line.wait_until(id, until, Stage::PutBack);
        }
        drop(state);
        self.wake.notify_one();
        self.ground.tell();
    }

    /// A departure of a task that is no longer there.
    pub(super) fn call_off(&self, id: &TaskId) {
        self.state().line.land(id);
        self.wake.notify_one();
        self.ground.tell();
    }

    /// Notes that a call goes on whose answer nobody waits for, or that it is over.
    pub(super) fn leave_running(&self) {
        self.state().left_running += 1;
    }

    pub(super) fn left_one_ended(&self) {
        self.state().left_running -= 1;
        self.ground.tell();
    }

    /// What keeps it from being idle, in words.
    pub(super) fn busy(&self) -> Vec<String> {
        let now = self.now();
        let state = self.state();
        let Unrest {
            flying,
            due,
            retries,
        } = state.line.unrest(&state.limits, now);
        let left = state.left_running;
        drop(state);
        let name = &self.name;
        let mut lines = Vec::new();
        if flying > 0 {
            lines.push(format!("{name}: {flying} dispatches on the way"));
        }
        if due {
            lines.push(format!("{name}: a task is due"));
        }
        if retries > 0 {
            lines.push(format!(
                "{name}: {retries} tasks wait for their next attempt"
            ));
        }
        if left > 0 {
            lines.push(format!(
                "{name}: {left} calls still run after their answer was given up"
            ));
        }
        lines
    }

    fn next(&self) -> Next {
        let now = self.now();
        let mut state = self.state();
        let State {
            line, limits, pace, ..
        } = &mut *state;
        line.next(limits, pace, now)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("nobody panics holding it")
    }
}

impl Drop for Lane {
    fn drop(&mut self) {
        self.wake.notify_one();
    }
}

/// Sends tasks out as they fall due, until the queue is gone.
async fn run(lane: Weak<Lane>, wake: Arc<Notify>) {
    while let Some(lane) = lane.upgrade() {
        match lane.next() {
            Next::Go(departure) => send_out(lane, departure),
            Next::At(moment) => {
                let clock = lane.context().clock.clone();
                drop(lane);
                tokio::select! {
                    () = wake.notified() => {}
                    () = clock.sleep_until(moment) => {}
                }
            }
            Next::Wait => {
                drop(lane);
                wake.notified().await;
            }
        }
    }
}

fn send_out(lane: Arc<Lane>, departure: Departure) {
    tokio::spawn(dispatch::fly(lane, departure, Cause::Due));
}
