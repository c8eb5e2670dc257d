//! Leasing messages, and what faults do to that.

use super::{Backlog, Capacity, Consumer, Lease, MessageState, Outstanding, Sequence};
use crate::clock::Time;
use crate::faults::Plan;
use std::time::Duration;

/// One that the fault `reorder` strikes waits at most this long for another to go first.
const REORDER_WAIT_MAX: Duration = Duration::from_secs(1);

/// What was leased, and what was too old.
#[derive(Debug, Default)]
pub(in super::super) struct LeaseResult {
    pub(in super::super) leased: Vec<Lease>,
    /// Too old; they are not in the backlog any more.
    pub(in super::super) dropped: Vec<Sequence>,
}

// === impl Backlog ===

impl Backlog {
    /// Takes what is available, oldest first. `plan` says what goes wrong with an attempt.
    pub(in super::super) fn take(
        &mut self,
        now: Time,
        consumer: Consumer,
        deadline: Duration,
        capacity: Capacity,
        plan: &mut dyn FnMut(Sequence, u32) -> Plan,
    ) -> LeaseResult {
        let mut take = LeaseResult {
            leased: Vec::new(),
            dropped: self.sweep(now),
        };
        let mut bytes = 0_usize;
        while take.leased.len() < capacity.messages && bytes < capacity.bytes {
            let Some(sequence) = self.ready_queue.first(now, consumer) else {
                break;
            };
            if self.is_stale(sequence, now) {
                self.forget(sequence);
                take.dropped.push(sequence);
                continue;
            }
            let Some(message) = self.messages.get_mut(&sequence) else {
                break;
            };
            let size = message.bytes;
            if !take.leased.is_empty() && bytes.saturating_add(size) > capacity.bytes {
                break;
            }
            let attempt = message.attempts + 1;
            let mut plan = plan(sequence, attempt);
            plan.duplicate &= !message.duplicated;
            if message.held_for < attempt {
                message.held_for = attempt;
                if let Some(until) = self.held_until(sequence, &plan, now) {
                    self.wait(sequence, until);
                    continue;
                }
            }
            bytes = bytes.saturating_add(size);
            take.leased
                .extend(self.lease_one(sequence, consumer, now, deadline, plan));
        }
        take
    }

    /// Until when a fault holds a message back.
    fn held_until(&mut self, sequence: Sequence, plan: &Plan, now: Time) -> Option<Time> {
        let keyed = self
            .messages
            .get(&sequence)
            .is_some_and(|it| it.key.is_some());
        let may_be_overtaken = self.held_for_reorder.is_none() && !(self.policy.ordered && keyed);
        if plan.reorder && may_be_overtaken {
            self.held_for_reorder = Some(sequence);
            return Some(now.plus(plan.delay.unwrap_or_default().max(REORDER_WAIT_MAX)));
        }
        plan.delay.map(|delay| now.plus(delay))
    }

    fn lease_one(
        &mut self,
        sequence: Sequence,
        consumer: Consumer,
        now: Time,
        deadline: Duration,
        plan: Plan,
    ) -> Option<Lease> {
        let message = self.messages.get_mut(&sequence)?;
        message.attempts += 1;
        self.deliveries += 1;
        let delivery = self.deliveries;
        let duplicate_delivery = plan.duplicate_at_once.then(|| {
            self.deliveries += 1;
            self.deliveries
        });
        message.delivery = self.deliveries;
        let deadline = match consumer {
            Consumer::Push => None,
            Consumer::Pull(_) | Consumer::Stream(_) => {
                Some(now.plus(plan.overlap.unwrap_or(deadline)))
            }
        };
        self.deadlines.extend(deadline.map(|at| (at, sequence)));
        let load = self.loads.entry(consumer).or_default();
        load.messages += 1;
        load.bytes += message.bytes;
        message.state = MessageState::Outstanding(Box::new(Outstanding {
            consumer,
            deadline,
            since: now,
            delivery,
            plan: plan.clone(),
            dispatches: Vec::new(),
        }));
        let attempt = message.attempts;
        self.ready_queue
            .leased(sequence, message.key.as_ref(), consumer);
        self.release_reordered(sequence, now);
        Some(Lease {
            sequence,
            attempt,
            delivery,
            duplicate_delivery,
            plan,
        })
    }

    /// Another message went first: that was what this one waited for.
    fn release_reordered(&mut self, overtaker: Sequence, now: Time) {
        let Some(sequence) = self.held_for_reorder.take() else {
            return;
        };
        let Some(message) = self.messages.get(&sequence) else {
            return;
        };
        if sequence != overtaker && matches!(message.state, MessageState::Waiting) {
            // Before everything that was published later.
            let ready = message.published.min(now);
            self.wait(sequence, ready);
        }
    }

    /// Drops the oldest as long as they are too old.
    pub(in super::super) fn sweep(&mut self, now: Time) -> Vec<Sequence> {
        let mut dropped = Vec::new();
        while self.oldest_ends().is_some_and(|end| end <= now) {
            let Some(sequence) = self.messages.keys().next().copied() else {
                break;
            };
            self.forget(sequence);
            dropped.push(sequence);
        }
        dropped
    }

    /// When the oldest is too old; nothing while somebody is busy with it.
    pub(super) fn oldest_ends(&self) -> Option<Time> {
        let (_, message) = self.messages.first_key_value()?;
        match message.state {
            MessageState::Waiting | MessageState::Acknowledged => {
                Some(message.published.plus(self.policy.retention))
            }
            MessageState::Outstanding(_)
            | MessageState::Acknowledging
            | MessageState::DeadLettering => None,
        }
    }

    fn is_stale(&self, sequence: Sequence, now: Time) -> bool {
        self.messages
            .get(&sequence)
            .is_some_and(|message| message.published.plus(self.policy.retention) <= now)
    }
}
