//! The messages of one subscription and where each stands. Pure: it is given the time, and what is to be stored
//! is up to the caller.
//!
//! A message waits, is outstanding with whoever took it, is being acknowledged while that is written to storage, is dead-lettering while
//! it is forwarded to the dead-letter topic, or is acknowledged and retained for a seek.

mod ready_queue;
mod lease;
mod acknowledge;
mod dead_letter;
mod seek;
#[cfg(test)]
mod tests;

pub(super) use acknowledge::{AckOutcome, DeliveryEnd, EndedDelivery};
pub(super) use lease::LeaseResult;
pub(super) use seek::Seek;

use crate::clock::Time;
use crate::faults::Plan;
use ready_queue::ReadyQueue;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

/// A message's number in its topic: the order of publishing.
pub(super) type Sequence = u64;

/// Everything a subscription has not acknowledged, and what it keeps of the rest.
#[derive(Debug)]
pub(super) struct Backlog {
    policy: DeliveryPolicy,
    messages: BTreeMap<Sequence, BacklogMessage>,
    ready_queue: ReadyQueue,
    deadlines: BTreeSet<(Time, Sequence)>,
    loads: HashMap<Consumer, Load>,
    /// Waiting for another message to go first.
    held_for_reorder: Option<Sequence>,
    /// To be forwarded to the dead-letter topic.
    dead_lettering: Vec<Sequence>,
    /// Grows with every delivery, also from one broker's life to the next.
    deliveries: u64,
    unfinished: usize,
}

/// What a subscription wants.
#[derive(Clone, Copy, Debug)]
pub(super) struct DeliveryPolicy {
    pub(super) ordered: bool,
    pub(super) exactly_once: bool,
    pub(super) retain_acked: bool,
    pub(super) ack_deadline: Duration,
    pub(super) retention: Duration,
    /// The shortest and the longest pause after a refusal; without it there is none.
    pub(super) retry: Option<(Duration, Duration)>,
    /// After so many attempts a message goes to the dead-letter topic.
    pub(super) attempts_max: Option<u32>,
}

/// A message that joins a backlog.
#[derive(Clone, Debug)]
pub(super) struct NewMessage {
    pub(super) sequence: Sequence,
    pub(super) bytes: usize,
    pub(super) published: Time,
    /// Empty without an ordering key.
    pub(super) key: String,
    pub(super) attempts: u32,
    pub(super) acknowledged: bool,
}

/// Who takes messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Consumer {
    /// The broker itself; its calls end by themselves.
    Push,
    /// One Pull call, by its number.
    Pull(u64),
    /// One stream, by its number.
    Stream(u64),
}

/// How much may be leased; a first message may be larger.
#[derive(Clone, Copy, Debug)]
pub(super) struct Capacity {
    pub(super) messages: usize,
    pub(super) bytes: usize,
}

/// How much a consumer has outstanding.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Load {
    pub(super) messages: usize,
    pub(super) bytes: usize,
}

/// A message that was leased.
#[derive(Clone, Debug)]
pub(super) struct Lease {
    pub(super) sequence: Sequence,
    pub(super) attempt: u32,
    pub(super) delivery: u64,
    /// A fault: it is delivered twice at once, and this is the second.
    pub(super) duplicate_delivery: Option<u64>,
    pub(super) plan: Plan,
}

#[derive(Debug)]
struct BacklogMessage {
    bytes: usize,
    published: Time,
    key: Option<Arc<str>>,
    attempts: u32,
    /// The attempt whose delay or overtaking is over with.
    held_for: u32,
    /// The fault `duplicate` struck; once is enough.
    duplicated: bool,
    delivery: u64,
    /// Deliveries up to this one do not count any more: a seek came after them.
    void: u64,
    state: MessageState,
}

#[derive(Debug)]
enum MessageState {
    Waiting,
    Outstanding(Box<Outstanding>),
    /// Acknowledged; that is being written down.
    Acknowledging,
    /// It had enough attempts.
    DeadLettering,
    Acknowledged,
}

#[derive(Debug)]
struct Outstanding {
    consumer: Consumer,
    /// Nothing for a push: its call ends by itself.
    deadline: Option<Time>,
    since: Time,
    /// The first of its deliveries; the last is the message's.
    delivery: u64,
    plan: Plan,
    /// Its numbers in the history.
    dispatches: Vec<u64>,
}

// === impl Backlog ===

impl Backlog {
    /// `deliveries` is where the numbers of deliveries begin: higher than any before.
    pub(super) fn new(policy: DeliveryPolicy, deliveries: u64) -> Self {
        Self {
            ready_queue: ReadyQueue::new(policy.ordered),
            policy,
            messages: BTreeMap::new(),
            deadlines: BTreeSet::new(),
            loads: HashMap::new(),
            held_for_reorder: None,
            dead_lettering: Vec::new(),
            deliveries,
            unfinished: 0,
        }
    }

    pub(super) fn policy(&self) -> &DeliveryPolicy {
        &self.policy
    }

    /// What is wanted from now on. Whether messages are ordered cannot change.
    pub(super) fn set_policy(&mut self, policy: DeliveryPolicy) {
        self.policy = DeliveryPolicy {
            ordered: self.policy.ordered,
            ..policy
        };
    }

    /// A message joins; it waits, or is there for a seek.
    pub(super) fn add(&mut self, new_message: NewMessage, now: Time) {
        let key = Some(new_message.key).filter(|key| !key.is_empty());
        let key = key.map(|key| self.ready_queue.known(&key));
        let state = match new_message.acknowledged {
            true => MessageState::Acknowledged,
            false => {
                self.ready_queue
                    .wait(new_message.sequence, key.as_ref(), now);
                self.unfinished += 1;
                MessageState::Waiting
            }
        };
        let message = BacklogMessage {
            bytes: new_message.bytes,
            published: new_message.published,
            key,
            attempts: new_message.attempts,
            held_for: 0,
            duplicated: false,
            delivery: 0,
            void: 0,
            state,
        };
        self.messages.insert(new_message.sequence, message);
    }

    /// Whether it holds this message.
    pub(super) fn holds(&self, sequence: Sequence) -> bool {
        self.messages.contains_key(&sequence)
    }

    /// The newest it holds.
    pub(super) fn last(&self) -> Option<Sequence> {
        self.messages
            .last_key_value()
            .map(|(sequence, _)| *sequence)
    }

    /// What is not acknowledged, in order, and when it was published.
    pub(super) fn unacknowledged(&self) -> Vec<(Sequence, Time)> {
        let all = self.messages.iter();
        let open = all.filter(|(_, message)| !matches!(message.state, MessageState::Acknowledged));
        open.map(|(sequence, message)| (*sequence, message.published))
            .collect()
    }

    /// How many are not acknowledged.
    pub(super) fn unfinished(&self) -> usize {
        self.unfinished
    }

    /// How many wait, whether or not they may be leased yet.
    pub(super) fn waiting(&self) -> usize {
        let out: usize = self.loads.values().map(|load| load.messages).sum();
        self.unfinished.saturating_sub(out)
    }

    /// What a consumer has outstanding.
    pub(super) fn load(&self, consumer: Consumer) -> Load {
        self.loads.get(&consumer).copied().unwrap_or_default()
    }

    /// The next moment at which something becomes available or late, if nobody does anything.
    pub(super) fn next_moment(&self, now: Time) -> Option<Time> {
        let late = self.deadlines.first().map(|(deadline, _)| *deadline);
        let ready = self.ready_queue.next_after(now);
        late.into_iter()
            .chain(ready)
            .chain(self.oldest_ends())
            .min()
    }

    /// Remembers under which number the history has a delivery of this message.
    pub(super) fn note(&mut self, sequence: Sequence, dispatch: u64) {
        if let Some(message) = self.messages.get_mut(&sequence)
            && let MessageState::Outstanding(out) = &mut message.state
        {
            out.dispatches.push(dispatch);
        }
    }

    fn wait(&mut self, sequence: Sequence, ready: Time) {
        let Some(message) = self.messages.get_mut(&sequence) else {
            return;
        };
        message.state = MessageState::Waiting;
        self.ready_queue.wait(sequence, message.key.as_ref(), ready);
    }

    /// It is not outstanding any more; what it was comes back.
    fn revoke(&mut self, sequence: Sequence) -> Option<Box<Outstanding>> {
        let message = self.messages.get_mut(&sequence)?;
        if !matches!(message.state, MessageState::Outstanding(_)) {
            return None;
        }
        let state = std::mem::replace(&mut message.state, MessageState::Acknowledging);
        let MessageState::Outstanding(out) = state else {
            return None;
        };
        if let Some(deadline) = out.deadline {
            self.deadlines.remove(&(deadline, sequence));
        }
        if let Some(load) = self.loads.get_mut(&out.consumer) {
            load.messages = load.messages.saturating_sub(1);
            load.bytes = load.bytes.saturating_sub(message.bytes);
            if load.messages == 0 {
                self.loads.remove(&out.consumer);
            }
        }
        Some(out)
    }

    /// It is gone for good.
    fn forget(&mut self, sequence: Sequence) {
        drop(self.revoke(sequence));
        let Some(message) = self.messages.remove(&sequence) else {
            return;
        };
        self.ready_queue.gone(sequence, message.key.as_ref());
        match message.state {
            MessageState::Waiting
            | MessageState::Outstanding(_)
            | MessageState::Acknowledging
            | MessageState::DeadLettering => {
                self.unfinished = self.unfinished.saturating_sub(1);
            }
            MessageState::Acknowledged => {}
        }
    }
}
