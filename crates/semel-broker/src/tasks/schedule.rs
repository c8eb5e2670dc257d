//! Which task of a queue goes next, and when: decided from what is handed in, without I/O.

mod rate_limiter;
mod retry;

pub(super) use rate_limiter::{HandlerLoad, Limits, RateLimiter};
pub(super) use retry::{Retry, is_too_old};

use super::names::TaskId;
use crate::clock::Time;
use std::collections::{BTreeMap, HashMap};

/// The tasks of a queue: who waits for when, and who is on the way to a handler.
#[derive(Debug, Default)]
pub(super) struct Schedule {
    waiting: BTreeMap<Slot, TaskId>,
    /// A tree: a table that doubles would take twice the memory just after a million tasks.
    entries: BTreeMap<TaskId, Entry>,
    /// How many dispatches of a task are in flight; tasks without one are not here.
    in_flight_by_task: HashMap<TaskId, u32>,
    in_flight: u32,
    /// How many of `waiting` were tried before, or were put back.
    retries: usize,
    /// Tasks that let the next one go first.
    yielding: Vec<TaskId>,
}

/// Earliest first; of those, the oldest task.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Slot {
    at: Time,
    sequence: u64,
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    slot: Slot,
    waits: bool,
    stage: Stage,
}

/// How far a waiting task has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    /// Never tried.
    Fresh,
    /// Tried, and to be tried again.
    Retry,
    /// Put back once by a fault: the next time it goes.
    PutBack,
}

/// A task that sets out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct DueTask {
    pub(super) id: TaskId,
    pub(super) stage: Stage,
    /// How many dispatches of this task are already in flight.
    pub(super) others: u32,
}

/// What a queue does next.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum NextStep {
    Dispatch(DueTask),
    /// Nothing before this moment, unless something changes.
    At(Time),
    /// Nothing until something changes.
    Wait,
}

/// What keeps a queue from being idle.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Activity {
    pub(super) in_flight: u32,
    pub(super) due: bool,
    pub(super) retries: usize,
}

// === impl Schedule ===

impl Schedule {
    /// Adds a task.
    pub(super) fn add(&mut self, id: &TaskId, sequence: u64, at: Time, stage: Stage) {
        let slot = Slot { at, sequence };
        self.wait(id, slot, stage);
    }

    pub(super) fn holds(&self, id: &TaskId) -> bool {
        self.entries.contains_key(id)
    }

    /// Whether this very task is here, and not a later one of the same name.
    pub(super) fn holds_numbered(&self, id: &TaskId, sequence: u64) -> bool {
        let entry = self.entries.get(id);
        entry.is_some_and(|entry| entry.slot.sequence == sequence)
    }

    /// How many dispatches of this task are in flight.
    pub(super) fn in_flight_of(&self, id: &TaskId) -> u32 {
        self.in_flight_by_task.get(id).copied().unwrap_or(0)
    }

    /// What to do now; a due task is in flight from here on.
    pub(super) fn next(
        &mut self,
        limits: &Limits,
        rate_limiter: &mut RateLimiter,
        now: Time,
    ) -> NextStep {
        let Some((slot, _)) = self.waiting.first_key_value() else {
            return NextStep::Wait;
        };
        if limits.paused || self.in_flight >= limits.concurrent {
            return NextStep::Wait;
        }
        if slot.at > now {
            return NextStep::At(slot.at);
        }
        if let Err(later) = rate_limiter.take(limits, now) {
            return NextStep::At(later);
        }
        let (_, id) = self.waiting.pop_first().expect("it was there just now");
        NextStep::Dispatch(self.dispatch_first(id, now))
    }

    /// Sends a task on its way now, whatever it waits for; nothing if it is not here.
    pub(super) fn dispatch_now(&mut self, id: &TaskId) -> Option<DueTask> {
        let entry = *self.entries.get(id)?;
        if entry.waits {
            self.waiting.remove(&entry.slot);
        }
        Some(self.begin_dispatch(id.clone()))
    }

    /// A dispatch is over; the task waits again only if it is told to.
    pub(super) fn end_dispatch(&mut self, id: &TaskId) {
        let Some(count) = self.in_flight_by_task.get_mut(id) else {
            return;
        };
        *count -= 1;
        self.in_flight = self.in_flight.saturating_sub(1);
        if *count == 0 {
            self.in_flight_by_task.remove(id);
        }
    }

    /// Lets a task wait (again) for this moment, if it is still here.
    pub(super) fn wait_until(&mut self, id: &TaskId, at: Time, stage: Stage) {
        let Some(entry) = self.entries.get(id).copied() else {
            return;
        };
        self.leave(entry);
        let slot = Slot {
            at,
            sequence: entry.slot.sequence,
        };
        self.wait(id, slot, stage);
    }

    /// Lets a task wait until another one of the queue has set out, at most until this moment.
    pub(super) fn yield_until(&mut self, id: &TaskId, at: Time) {
        self.wait_until(id, at, Stage::PutBack);
        self.yielding.push(id.clone());
    }

    /// Takes a task out; says whether it was here.
    pub(super) fn remove(&mut self, id: &TaskId) -> bool {
        let Some(entry) = self.entries.remove(id) else {
            return false;
        };
        self.leave(entry);
        true
    }

    /// Takes all tasks out. Those in flight end without an entry.
    pub(super) fn clear(&mut self) {
        self.waiting = BTreeMap::new();
        self.entries = BTreeMap::new();
        self.yielding.clear();
        self.retries = 0;
    }

    /// How many tasks there are, and how many dispatches of them are in flight.
    pub(super) fn counts(&self) -> (usize, u32) {
        (self.entries.len(), self.in_flight)
    }

    pub(super) fn activity(&self, limits: &Limits, now: Time) -> Activity {
        let first = self.waiting.first_key_value();
        let mut activity = Activity {
            in_flight: self.in_flight,
            ..Activity::default()
        };
        if !limits.paused {
            activity.due = first.is_some_and(|(slot, _)| slot.at <= now);
            activity.retries = self.retries;
        }
        activity
    }

    fn dispatch_first(&mut self, id: TaskId, now: Time) -> DueTask {
        let mut due_task = self.begin_dispatch(id);
        for other in std::mem::take(&mut self.yielding) {
            // Who is waited for does not step back itself, or nobody would ever go.
            due_task.stage = match due_task.stage {
                Stage::Fresh | Stage::PutBack => Stage::PutBack,
                Stage::Retry => Stage::Retry,
            };
            self.wait_until(&other, now, Stage::PutBack);
        }
        due_task
    }

    /// The task no longer stands in `waiting`.
    fn begin_dispatch(&mut self, id: TaskId) -> DueTask {
        self.yielding.retain(|other| *other != id);
        let mut stage = Stage::Fresh;
        if let Some(entry) = self.entries.get_mut(&id) {
            stage = entry.stage;
            if entry.waits && stage != Stage::Fresh {
                self.retries -= 1;
            }
            entry.waits = false;
        }
        let count = self.in_flight_by_task.entry(id.clone()).or_insert(0);
        let others = *count;
        *count += 1;
        self.in_flight += 1;
        DueTask { id, stage, others }
    }

    fn leave(&mut self, entry: Entry) {
        if entry.waits {
            self.waiting.remove(&entry.slot);
            if entry.stage != Stage::Fresh {
                self.retries -= 1;
            }
        }
    }

    fn wait(&mut self, id: &TaskId, slot: Slot, stage: Stage) {
        if stage != Stage::Fresh {
            self.retries += 1;
        }
        let entry = Entry {
            slot,
            waits: true,
            stage,
        };
        self.entries.insert(id.clone(), entry);
        self.waiting.insert(slot, id.clone());
    }
}

#[cfg(test)]
mod tests;
