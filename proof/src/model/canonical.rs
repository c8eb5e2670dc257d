//! Time and names. Only the distance of times from now, and the order of old fences, matter to the
//! protocol; so now stays in its place, and what is long past is moved together. That makes the
//! worlds finite though the clock may run for ever.

use super::Settings;
use super::world::{Worker, World};
use semel::clock::Time;
use semel::protocol::{Fence, InDoubt, Owner, Record};
use std::time::Duration;

/// The present moment of every world.
pub const NOW: Time = Time(1_000 * TICK_MICROS);
/// How long a grant lasts unless it is renewed.
pub const LEASE: Duration = ticks(1);
/// How long an end is remembered.
pub const RETENTION: Duration = ticks(2);
/// The pause after a retryable failure.
pub const DELAY: Duration = ticks(1);
/// How long a run may act, where that matters: beyond its lease, within its retention.
pub const ACTS: Duration = ticks(2);
/// Age of work that a release parks: more than the fences of one tick are apart, less than a tick.
pub const OLD: Duration = Duration::from_micros(TICK_MICROS / 2);
/// A tick is the unit of the model's clock. A fence is a number of microseconds, so many fit into one.
const TICK_MICROS: u64 = 1_000;

/// So many ticks.
#[must_use]
pub const fn ticks(count: u64) -> Duration {
    Duration::from_micros(count * TICK_MICROS)
}

/// The moment so many ticks before now.
#[must_use]
pub const fn ago(ticks: u64) -> Time {
    Time(NOW.0 - ticks * TICK_MICROS)
}

fn micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).expect("it is a few ticks")
}

// === impl World ===

impl World {
    /// A tick passes: everything is a tick older.
    pub fn grow_older(&mut self) {
        self.each_time(|time| time.0 -= TICK_MICROS);
        self.each_fence(|fence| fence.0 -= TICK_MICROS);
    }

    /// The store's clock steps back by a tick: everything is a tick younger.
    pub fn grow_younger(&mut self) {
        self.each_time(|time| time.0 += TICK_MICROS);
        self.each_fence(|fence| fence.0 += TICK_MICROS);
    }

    /// Forgets distinctions that can make no difference any more. `reach` is how many ticks before now
    /// a claim may still take for now, `grace` how many sweep lets an expired record lie, `ages` how many it takes until
    /// work is old.
    pub fn canonicalize(&mut self, reach: u64, grace: u64, ages: u64) {
        self.canonical_times(ago(reach), ago(reach + grace));
        self.canonical_incarnations();
        self.canonical_workers();
        self.canonical_fences(Fence(ago(reach + ages).0));
        self.canonical_owners();
    }

    /// Forgets what nothing is decided by under these settings.
    pub fn canonical_doubts(&mut self, settings: &Settings, reach: u64) {
        let probes = settings.in_doubt == InDoubt::Probe;
        let counts = settings.max_in_doubt.is_some();
        // A first doubt that is old enough is as good as an older one.
        let age = settings.max_in_doubt.map(|max| max.age);
        let old = age.map(|age| Time(ago(reach).0 - micros(age)));
        let doubted_at = |first: Option<Time>| first.max(old).filter(|_| first.is_some());
        if let Some(record) = &mut self.record {
            record.in_doubt &= probes;
            record.doubts *= u32::from(counts);
            record.doubted_at = doubted_at(record.doubted_at).filter(|_| counts);
            // How a run failed is for people, until the work is settled.
            if record.state.ending().is_none() {
                record.result = None;
            }
        }
        for incarnation in self.ghost.incarnations.values_mut() {
            incarnation.doubts *= u8::from(counts);
            incarnation.doubted_at = doubted_at(incarnation.doubted_at).filter(|_| counts);
            incarnation.findings *= u8::from(probes);
        }
        for worker in &mut self.workers {
            if let Worker::Running(run) = worker {
                run.lease.in_doubt &= probes;
            }
        }
    }

    /// What is over is over, and what was long over was no longer over than that.
    fn canonical_times(&mut self, over: Time, long_over: Time) {
        if let Some(record) = &mut self.record {
            // Both together: what leaves `parked` gets the difference as its retention.
            let by = long_over.since(record.expires_at);
            record.expires_at = record.expires_at.plus(by);
            record.lease_until = record.lease_until.plus(by);
            record.acts_until = record.acts_until.filter(|end| *end > over);
        }
        self.handlers.retain(|handler| handler.acts_until > over);
        self.handlers.sort_unstable();
        for worker in &mut self.workers {
            if let Worker::Running(run) = worker {
                run.acts_until = run.acts_until.map(|end| end.max(over));
            }
        }
        self.ghost.lease_end = self.ghost.lease_end.filter(|end| *end > over);
    }

    /// Numbers the fences from the tick they were given in. Of those below `recent` only the order counts,
    /// since no claim can read a clock as low: they are moved up to it.
    fn canonical_fences(&mut self, recent: Fence) {
        let mut fences = Vec::with_capacity(16);
        self.each_fence(|fence| fences.push(*fence));
        fences.sort_unstable();
        fences.dedup();
        let old = fences.partition_point(|fence| *fence < recent) as u64;
        let mut next = Fence(recent.0 - old);
        let names: Vec<Fence> = fences
            .iter()
            .map(|fence| {
                if *fence >= recent {
                    next = next.max(Fence(fence.0 - fence.0 % TICK_MICROS));
                }
                next.0 += 1;
                Fence(next.0 - 1)
            })
            .collect();
        self.each_fence(|fence| {
            let place = fences.binary_search(fence).ok();
            let name = place.and_then(|place| names.get(place));
            *fence = *name.expect("every fence was given a name");
        });
    }

    /// Drops the incarnations nobody believes in, and numbers the others from 0.
    fn canonical_incarnations(&mut self) {
        let mut incarnations: Vec<u8> = self.runs().map(|run| run.incarnation).collect();
        incarnations.push(self.ghost.incarnation);
        incarnations.extend(self.handlers.iter().map(|handler| handler.incarnation));
        incarnations.sort_unstable();
        incarnations.dedup();
        let number = |incarnation: u8| {
            incarnations
                .binary_search(&incarnation)
                .ok()
                .and_then(|at| u8::try_from(at).ok())
        };
        let present = self.ghost.incarnation;
        self.ghost.incarnations = std::mem::take(&mut self.ghost.incarnations)
            .into_iter()
            .filter_map(|(incarnation, what)| {
                let what = if incarnation == present {
                    what
                } else {
                    what.in_the_past()
                };
                Some((number(incarnation)?, what))
            })
            .collect();
        self.ghost.incarnation = number(present).unwrap_or_default();
        for handler in &mut self.handlers {
            handler.incarnation = number(handler.incarnation).unwrap_or_default();
        }
        for worker in &mut self.workers {
            if let Worker::Running(run) = worker {
                run.incarnation = number(run.incarnation).unwrap_or_default();
            }
        }
    }

    /// Workers are alike: their order does not matter.
    fn canonical_workers(&mut self) {
        let known = self.record.as_ref().map(|record| record.owner);
        for worker in &mut self.workers {
            // A repeated claim is as good as a fresh one when no record has its owner.
            if matches!(worker, Worker::Asking(owner) if Some(*owner) != known) {
                *worker = Worker::Idle;
            }
        }
        self.workers.sort_by_key(|worker| match worker {
            Worker::Idle => (0, None),
            Worker::Asking(_) => (1, None),
            Worker::Running(run) => (
                2,
                Some((run.lease.fence, run.lease.attempt, run.incarnation)),
            ),
        });
    }

    /// Numbers owners as they appear.
    fn canonical_owners(&mut self) {
        let mut known = Vec::with_capacity(4);
        self.each_owner(|owner| {
            let place = known
                .iter()
                .position(|other| other == owner)
                .unwrap_or_else(|| {
                    known.push(*owner);
                    known.len() - 1
                });
            *owner = Owner([u8::try_from(place).expect("owners are few"); 16]);
        });
    }

    fn each_time(&mut self, mut change: impl FnMut(&mut Time)) {
        if let Some(record) = &mut self.record {
            change(&mut record.lease_until);
            change(&mut record.expires_at);
            record.acts_until.iter_mut().for_each(&mut change);
            record.doubted_at.iter_mut().for_each(&mut change);
        }
        for incarnation in self.ghost.incarnations.values_mut() {
            incarnation.doubted_at.iter_mut().for_each(&mut change);
        }
        for handler in &mut self.handlers {
            change(&mut handler.acts_until);
        }
        for worker in &mut self.workers {
            if let Worker::Running(run) = worker {
                run.acts_until.iter_mut().for_each(&mut change);
            }
        }
        self.ghost.lease_end.iter_mut().for_each(change);
    }

    fn each_fence(&mut self, mut change: impl FnMut(&mut Fence)) {
        if let Some(Record { born, fence, .. }) = &mut self.record {
            change(born);
            change(fence);
        }
        for (mut born, mut step) in std::mem::take(&mut self.steps) {
            change(&mut born);
            change(&mut step.fence);
            self.steps.insert(born, step);
        }
        for worker in &mut self.workers {
            if let Worker::Running(run) = worker {
                change(&mut run.lease.fence);
                change(&mut run.lease.born);
            }
        }
        self.ghost.highest.iter_mut().for_each(&mut change);
        if let Some((fence, _)) = &mut self.ghost.holder {
            change(fence);
        }
        for incarnation in self.ghost.incarnations.values_mut() {
            if let Some(end) = &mut incarnation.end {
                change(&mut end.fence);
            }
        }
    }

    fn each_owner(&mut self, mut change: impl FnMut(&mut Owner)) {
        if let Some(record) = &mut self.record {
            change(&mut record.owner);
        }
        if let Some((_, owner)) = &mut self.ghost.holder {
            change(owner);
        }
        for worker in &mut self.workers {
            match worker {
                Worker::Idle => {}
                Worker::Asking(owner) => change(owner),
                Worker::Running(run) => change(&mut run.lease.owner),
            }
        }
    }
}
