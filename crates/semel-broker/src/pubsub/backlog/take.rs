//! Taking messages, and what faults do to that.

use super::{Backlog, Out, Place, Room, Standing, Taken, Taker};
use crate::clock::Time;
use crate::faults::Plan;
use std::time::Duration;

/// One that the fault `reorder` strikes waits at most this long for another to go first.
const OVERTAKEN_MAX: Duration = Duration::from_secs(1);

/// What came of taking.
#[derive(Debug, Default)]
pub(in super::super) struct Take {
    pub(in super::super) taken: Vec<Taken>,
    /// Too old; they are not in the backlog any more.
    pub(in super::super) dropped: Vec<Place>,
}

// === impl Backlog ===

impl Backlog {
    /// Takes what is available, oldest first. `plan` says what goes wrong with an attempt.
    pub(in super::super) fn take(
        &mut self,
        now: Time,
        taker: Taker,
        deadline: Duration,
        room: Room,
        plan: &mut dyn FnMut(Place, u32) -> Plan,
    ) -> Take {
        let mut take = Take {
            taken: Vec::new(),
            dropped: self.sweep(now),
        };
        let mut bytes = 0_usize;
        while take.taken.len() < room.messages && bytes < room.bytes {
            let Some(place) = self.line.first(now, taker) else {
                break;
            };
            if self.is_stale(place, now) {
                self.forget(place);
                take.dropped.push(place);
                continue;
            }
            let Some(kept) = self.messages.get_mut(&place) else {
                break;
            };
            let size = kept.bytes;
            if !take.taken.is_empty() && bytes.saturating_add(size) > room.bytes {
                break;
            }
            let attempt = kept.attempts + 1;
            let mut plan = plan(place, attempt);
            plan.duplicate &= !kept.duplicated;
            if kept.held_for < attempt {
                kept.held_for = attempt;
                if let Some(until) = self.held_until(place, &plan, now) {
                    self.wait(place, until);
                    continue;
                }
            }
            bytes = bytes.saturating_add(size);
            take.taken
                .extend(self.give(place, taker, now, deadline, plan));
        }
        take
    }

    /// Until when a fault holds a message back.
    fn held_until(&mut self, place: Place, plan: &Plan, now: Time) -> Option<Time> {
        let keyed = self.messages.get(&place).is_some_and(|it| it.key.is_some());
        let may_be_overtaken = self.overtaken.is_none() && !(self.rules.ordered && keyed);
        if plan.reorder && may_be_overtaken {
            self.overtaken = Some(place);
            return Some(now.plus(plan.delay.unwrap_or_default().max(OVERTAKEN_MAX)));
        }
        plan.delay.map(|delay| now.plus(delay))
    }

    fn give(
        &mut self,
        place: Place,
        taker: Taker,
        now: Time,
        deadline: Duration,
        plan: Plan,
    ) -> Option<Taken> {
        let kept = self.messages.get_mut(&place)?;
        kept.attempts += 1;
        self.deliveries += 1;
        let delivery = self.deliveries;
        let twin = plan.duplicate_at_once.then(|| {
            self.deliveries += 1;
            self.deliveries
        });
        kept.delivery = self.deliveries;
        let deadline = match taker {
            Taker::Push => None,
            Taker::Pull(_) | Taker::Stream(_) => Some(now.plus(plan.overlap.unwrap_or(deadline))),
        };
        self.deadlines.extend(deadline.map(|at| (at, place)));
        let load = self.loads.entry(taker).or_default();
        load.messages += 1;
        load.bytes += kept.bytes;
        kept.standing = Standing::Outstanding(Box::new(Out {
            taker,
            deadline,
            since: now,
            delivery,
            plan: plan.clone(),
            dispatches: Vec::new(),
        }));
        let attempt = kept.attempts;
        self.line.taken(place, kept.key.as_ref(), taker);
        self.let_overtaken_go(place, now);
        Some(Taken {
            place,
            attempt,
            delivery,
            twin,
            plan,
        })
    }

    /// Another message went first: that was what this one waited for.
    fn let_overtaken_go(&mut self, overtaker: Place, now: Time) {
        let Some(place) = self.overtaken.take() else {
            return;
        };
        let Some(kept) = self.messages.get(&place) else {
            return;
        };
        if place != overtaker && matches!(kept.standing, Standing::Waiting) {
            // Before everything that was published later.
            let ready = kept.published.min(now);
            self.wait(place, ready);
        }
    }

    /// Drops the oldest as long as they are too old.
    pub(in super::super) fn sweep(&mut self, now: Time) -> Vec<Place> {
        let mut dropped = Vec::new();
        while self.oldest_ends().is_some_and(|end| end <= now) {
            let Some(place) = self.messages.keys().next().copied() else {
                break;
            };
            self.forget(place);
            dropped.push(place);
        }
        dropped
    }

    /// When the oldest is too old; nothing while somebody is busy with it.
    pub(super) fn oldest_ends(&self) -> Option<Time> {
        let (_, kept) = self.messages.first_key_value()?;
        match kept.standing {
            Standing::Waiting | Standing::Acknowledged => {
                Some(kept.published.plus(self.rules.retention))
            }
            Standing::Outstanding(_) | Standing::Leaving | Standing::Dying => None,
        }
    }

    fn is_stale(&self, place: Place, now: Time) -> bool {
        self.messages
            .get(&place)
            .is_some_and(|kept| kept.published.plus(self.rules.retention) <= now)
    }
}
