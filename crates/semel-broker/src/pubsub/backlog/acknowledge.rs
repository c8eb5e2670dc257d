//! How deliveries end: acknowledged, refused, extended, late.

use super::{Backlog, BacklogMessage, MessageState, Outstanding, Sequence};
use crate::clock::Time;
use std::time::Duration;

/// What became of one acknowledgement, refusal or extension.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) enum AckOutcome {
    /// The message is to be acknowledged: store that, then say so with [`Backlog::acknowledged`].
    Acknowledging,
    /// There is nothing to write down.
    Done,
    /// With exactly-once delivery: this delivery does not count any more.
    Invalid,
}

/// A delivery that ended, for the history.
#[derive(Debug, PartialEq, Eq)]
pub(in super::super) struct EndedDelivery {
    pub(in super::super) dispatches: Vec<u64>,
    pub(in super::super) since: Time,
    pub(in super::super) end: DeliveryEnd,
}

/// How a delivery ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) enum DeliveryEnd {
    Acknowledged,
    /// It was acknowledged, and a fault made that go unheard.
    AckLost,
    Refused,
    Expired,
}

// === impl Backlog ===

impl Backlog {
    /// A delivery is acknowledged.
    pub(in super::super) fn acknowledge(
        &mut self,
        sequence: Sequence,
        delivery: u64,
        now: Time,
    ) -> (AckOutcome, Option<EndedDelivery>) {
        let exactly_once = self.policy.exactly_once;
        let Some(message) = self.messages.get_mut(&sequence) else {
            return (unknown(exactly_once), None);
        };
        if delivery <= message.void {
            return (unknown(exactly_once), None);
        }
        let current = message.is_current(delivery);
        match &mut message.state {
            MessageState::Acknowledging if exactly_once && delivery != message.delivery => {
                (AckOutcome::Invalid, None)
            }
            // Its end is not in storage yet: whoever says so again waits for that too.
            MessageState::Acknowledging => (AckOutcome::Acknowledging, None),
            MessageState::DeadLettering | MessageState::Acknowledged => {
                (unknown(exactly_once), None)
            }
            MessageState::Waiting if exactly_once => (AckOutcome::Invalid, None),
            // It was revoked behind one that was refused: it is delivered again, after that one.
            MessageState::Waiting if self.ready_queue.is_behind(sequence, message.key.as_ref()) => {
                (AckOutcome::Done, None)
            }
            MessageState::Outstanding(_) if exactly_once && !current => (AckOutcome::Invalid, None),
            MessageState::Outstanding(_)
                if !current && self.ready_queue.is_behind(sequence, message.key.as_ref()) =>
            {
                (AckOutcome::Done, None)
            }
            MessageState::Outstanding(out) if current && out.plan.lose_answer => {
                let ended = out.ended(DeliveryEnd::AckLost);
                (AckOutcome::Done, Some(ended))
            }
            MessageState::Outstanding(out) if current && out.plan.duplicate => {
                let ended = out.ended(DeliveryEnd::Acknowledged);
                message.duplicated = true;
                drop(self.revoke(sequence));
                self.wait(sequence, now);
                (AckOutcome::Done, Some(ended))
            }
            MessageState::Waiting | MessageState::Outstanding(_) => {
                let out = self.revoke(sequence);
                self.leave(sequence);
                let ended = out.map(|mut out| out.ended(DeliveryEnd::Acknowledged));
                (AckOutcome::Acknowledging, ended)
            }
        }
    }

    /// Waiting or not, it is nobody's until its end is written down.
    fn leave(&mut self, sequence: Sequence) {
        let Some(message) = self.messages.get_mut(&sequence) else {
            return;
        };
        if let MessageState::Waiting = message.state {
            self.ready_queue.gone(sequence, message.key.as_ref());
        }
        message.state = MessageState::Acknowledging;
    }

    /// Its acknowledgement is in storage.
    pub(in super::super) fn acknowledged(&mut self, sequence: Sequence) {
        if !self.policy.retain_acked {
            self.forget(sequence);
            return;
        }
        let Some(message) = self.messages.get_mut(&sequence) else {
            return;
        };
        if !matches!(message.state, MessageState::Acknowledged) {
            message.state = MessageState::Acknowledged;
            self.ready_queue.gone(sequence, message.key.as_ref());
            self.unfinished = self.unfinished.saturating_sub(1);
        }
    }

    /// A delivery is refused: the message is available again, perhaps after a pause.
    pub(in super::super) fn refuse(
        &mut self,
        sequence: Sequence,
        delivery: u64,
        now: Time,
    ) -> (AckOutcome, Vec<EndedDelivery>) {
        let outcome = self.outcome(sequence, delivery);
        if !self.is_out(sequence, delivery) {
            return (outcome, Vec::new());
        }
        let ended = self.make_available_again(sequence, DeliveryEnd::Refused, now);
        (outcome, ended)
    }

    /// A delivery has until `now + span`.
    pub(in super::super) fn extend(
        &mut self,
        sequence: Sequence,
        delivery: u64,
        span: Duration,
        now: Time,
    ) -> AckOutcome {
        let outcome = self.outcome(sequence, delivery);
        if !self.is_out(sequence, delivery) {
            return outcome;
        }
        if let Some(message) = self.messages.get_mut(&sequence)
            && let MessageState::Outstanding(out) = &mut message.state
            && out.plan.overlap.is_none()
            && let Some(deadline) = out.deadline.replace(now.plus(span))
        {
            self.deadlines.remove(&(deadline, sequence));
            self.deadlines.insert((now.plus(span), sequence));
        }
        outcome
    }

    /// Everything whose deadline passed is available again.
    pub(in super::super) fn expire(&mut self, now: Time) -> Vec<EndedDelivery> {
        let mut ended = Vec::new();
        while let Some((deadline, sequence)) = self.deadlines.first().copied() {
            if deadline > now {
                break;
            }
            ended.extend(self.make_available_again(sequence, DeliveryEnd::Expired, now));
            self.deadlines.remove(&(deadline, sequence));
        }
        ended
    }

    /// Nothing is left; answers what was outstanding.
    pub(in super::super) fn abandon(&mut self) -> Vec<EndedDelivery> {
        let fresh = Self::new(self.policy, self.deliveries);
        let Self { messages, .. } = std::mem::replace(self, fresh);
        let mut ended = Vec::new();
        for message in messages.into_values() {
            if let MessageState::Outstanding(mut out) = message.state {
                ended.push(out.ended(DeliveryEnd::Expired));
            }
        }
        ended
    }

    /// How many attempts it had.
    pub(in super::super) fn attempts(&self, sequence: Sequence) -> u32 {
        self.messages
            .get(&sequence)
            .map_or(0, |message| message.attempts)
    }

    /// It waits again, and so does everything after it in the order of its key.
    fn make_available_again(
        &mut self,
        sequence: Sequence,
        end: DeliveryEnd,
        now: Time,
    ) -> Vec<EndedDelivery> {
        let Some(mut out) = self.revoke(sequence) else {
            return Vec::new();
        };
        let mut ended = vec![out.ended(end)];
        ended.extend(self.revoke_after(sequence, now));
        let attempts = self.attempts(sequence);
        if self.policy.attempts_max.is_some_and(|max| attempts >= max) {
            self.dead_letter(sequence);
        } else {
            let pause = self.pause(attempts);
            self.wait(sequence, now.plus(pause));
        }
        ended
    }

    /// What is outstanding and comes after this one in the order of its key waits again.
    pub(super) fn revoke_after(&mut self, sequence: Sequence, now: Time) -> Vec<EndedDelivery> {
        let key = self.messages.get(&sequence).and_then(|it| it.key.as_ref());
        let mut ended = Vec::new();
        for later in self.ready_queue.out_after(sequence, key) {
            if let Some(mut out) = self.revoke(later) {
                ended.push(out.ended(DeliveryEnd::Expired));
                self.wait(later, now);
            }
        }
        ended
    }

    /// The pause after so many attempts.
    pub(super) fn pause(&self, attempts: u32) -> Duration {
        let Some((min, max)) = self.policy.retry else {
            return Duration::ZERO;
        };
        let doublings = attempts.saturating_sub(1).min(30);
        min.saturating_mul(1 << doublings).min(max)
    }

    fn is_out(&self, sequence: Sequence, delivery: u64) -> bool {
        let message = self.messages.get(&sequence);
        message.is_some_and(|message| message.is_current(delivery))
    }

    fn outcome(&self, sequence: Sequence, delivery: u64) -> AckOutcome {
        match self.is_out(sequence, delivery) {
            true => AckOutcome::Done,
            false => unknown(self.policy.exactly_once),
        }
    }
}

// === impl BacklogMessage ===

impl BacklogMessage {
    /// Whether this is the delivery, or one of the two, that is outstanding.
    fn is_current(&self, delivery: u64) -> bool {
        let is_one_of = |out: &Outstanding| (out.delivery..=self.delivery).contains(&delivery);
        matches!(&self.state, MessageState::Outstanding(out) if is_one_of(out))
    }
}

// === impl Outstanding ===

impl Outstanding {
    pub(super) fn ended(&mut self, end: DeliveryEnd) -> EndedDelivery {
        EndedDelivery {
            dispatches: std::mem::take(&mut self.dispatches),
            since: self.since,
            end,
        }
    }
}

/// What is said of a delivery nobody knows any more.
fn unknown(exactly_once: bool) -> AckOutcome {
    match exactly_once {
        true => AckOutcome::Invalid,
        false => AckOutcome::Done,
    }
}
