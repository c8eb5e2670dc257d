//! Which task of a queue goes next, and when: decided from what is handed in, without I/O.

mod pace;
mod retry;

pub(super) use pace::{Limits, Pace, Strain};
pub(super) use retry::{Retry, is_too_old};

use super::names::TaskId;
use crate::clock::Time;
use std::collections::{BTreeMap, HashMap};

/// The tasks of a queue: who waits for when, and who is on the way to a handler.
#[derive(Debug, Default)]
pub(super) struct Line {
    waiting: BTreeMap<Slot, TaskId>,
    /// A tree: a table that doubles would take twice the memory just after a million tasks.
    places: BTreeMap<TaskId, Place>,
    /// How many dispatches of a task are on the way; tasks without one are not here.
    flights: HashMap<TaskId, u32>,
    flying: u32,
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
struct Place {
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
pub(super) struct Departure {
    pub(super) id: TaskId,
    pub(super) stage: Stage,
    /// How many dispatches of this task are already on the way.
    pub(super) others: u32,
}

/// What a queue does next.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Next {
    Go(Departure),
    /// Nothing before this moment, unless something changes.
    At(Time),
    /// Nothing until something changes.
    Wait,
}

/// What keeps a queue from being idle.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Unrest {
    pub(super) flying: u32,
    pub(super) due: bool,
    pub(super) retries: usize,
}

// === impl Line ===

impl Line {
    /// Adds a task.
    pub(super) fn add(&mut self, id: &TaskId, sequence: u64, at: Time, stage: Stage) {
        let slot = Slot { at, sequence };
        self.wait(id, slot, stage);
    }

    pub(super) fn holds(&self, id: &TaskId) -> bool {
        self.places.contains_key(id)
    }

    /// Whether this very task is here, and not a later one of the same name.
    pub(super) fn holds_numbered(&self, id: &TaskId, sequence: u64) -> bool {
        let place = self.places.get(id);
        place.is_some_and(|place| place.slot.sequence == sequence)
    }

    /// How many dispatches of this task are on the way.
    pub(super) fn flights_of(&self, id: &TaskId) -> u32 {
        self.flights.get(id).copied().unwrap_or(0)
    }

    /// What to do now; a departure is on its way with this.
    pub(super) fn next(&mut self, limits: &Limits, pace: &mut Pace, now: Time) -> Next {
        let Some((slot, _)) = self.waiting.first_key_value() else {
            return Next::Wait;
        };
        if limits.paused || self.flying >= limits.concurrent {
            return Next::Wait;
        }
        if slot.at > now {
            return Next::At(slot.at);
        }
        if let Err(later) = pace.take(limits, now) {
            return Next::At(later);
        }
        let (_, id) = self.waiting.pop_first().expect("it was there just now");
        Next::Go(self.set_out(id, now))
    }

    /// Sends a task on its way now, whatever it waits for; nothing if it is not here.
    pub(super) fn force(&mut self, id: &TaskId) -> Option<Departure> {
        let place = *self.places.get(id)?;
        if place.waits {
            self.waiting.remove(&place.slot);
        }
        Some(self.depart(id.clone()))
    }

    /// A dispatch is over; the task waits again only if it is told to.
    pub(super) fn land(&mut self, id: &TaskId) {
        let Some(count) = self.flights.get_mut(id) else {
            return;
        };
        *count -= 1;
        self.flying = self.flying.saturating_sub(1);
        if *count == 0 {
            self.flights.remove(id);
        }
    }

    /// Lets a task wait (again) for this moment, if it is still here.
    pub(super) fn wait_until(&mut self, id: &TaskId, at: Time, stage: Stage) {
        let Some(place) = self.places.get(id).copied() else {
            return;
        };
        self.leave(place);
        let slot = Slot {
            at,
            sequence: place.slot.sequence,
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
        let Some(place) = self.places.remove(id) else {
            return false;
        };
        self.leave(place);
        true
    }

    /// Takes all tasks out. Those on the way land without a place.
    pub(super) fn clear(&mut self) {
        self.waiting = BTreeMap::new();
        self.places = BTreeMap::new();
        self.yielding.clear();
        self.retries = 0;
    }

    pub(super) fn unrest(&self, limits: &Limits, now: Time) -> Unrest {
        let first = self.waiting.first_key_value();
        let mut unrest = Unrest {
            flying: self.flying,
            ..Unrest::default()
        };
        if !limits.paused {
            unrest.due = first.is_some_and(|(slot, _)| slot.at <= now);
            unrest.retries = self.retries;
        }
        unrest
    }

    fn set_out(&mut self, id: TaskId, now: Time) -> Departure {
        let mut departure = self.depart(id);
        for other in std::mem::take(&mut self.yielding) {
            // Who is waited for does not step back itself, or nobody would ever go.
            departure.stage = match departure.stage {
                Stage::Fresh | Stage::PutBack => Stage::PutBack,
                Stage::Retry => Stage::Retry,
            };
            self.wait_until(&other, now, Stage::PutBack);
        }
        departure
    }

    /// The task no longer stands in `waiting`.
    fn depart(&mut self, id: TaskId) -> Departure {
        self.yielding.retain(|other| *other != id);
        let mut stage = Stage::Fresh;
        if let Some(place) = self.places.get_mut(&id) {
            stage = place.stage;
            if place.waits && stage != Stage::Fresh {
                self.retries -= 1;
            }
            place.waits = false;
        }
        let count = self.flights.entry(id.clone()).or_insert(0);
        let others = *count;
        *count += 1;
        self.flying += 1;
        Departure { id, stage, others }
    }

    fn leave(&mut self, place: Place) {
        if place.waits {
            self.waiting.remove(&place.slot);
            if place.stage != Stage::Fresh {
                self.retries -= 1;
            }
        }
    }

    fn wait(&mut self, id: &TaskId, slot: Slot, stage: Stage) {
        if stage != Stage::Fresh {
            self.retries += 1;
        }
        let place = Place {
            slot,
            waits: true,
            stage,
        };
        self.places.insert(id.clone(), place);
        self.waiting.insert(slot, id.clone());
    }
}

#[cfg(test)]
mod tests;
