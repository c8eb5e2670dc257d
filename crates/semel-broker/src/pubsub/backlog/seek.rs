//! Going back or forward in time.

use super::{
    Backlog, BacklogMessage, DeliveryEnd, EndedDelivery, MessageState, NewMessage, Sequence,
};
use crate::clock::Time;

/// What a seek changes: first it is written down, then it is done.
#[derive(Debug, Default, PartialEq, Eq)]
pub(in super::super) struct Seek {
    /// Counted as acknowledged.
    pub(in super::super) acknowledge: Vec<Sequence>,
    /// Acknowledged, leased or tried before: as if they had just been published.
    pub(in super::super) restart: Vec<Sequence>,
}

// === impl Backlog ===

impl Backlog {
    /// What has to change so that everything published before `to` is acknowledged and nothing else.
    pub(in super::super) fn seek(&self, to: Time) -> Seek {
        let mut seek = Seek::default();
        for (sequence, message) in &self.messages {
            let before = message.published < to;
            match message.state {
                MessageState::Waiting if !before && message.is_untried() => {}
                MessageState::Waiting
                | MessageState::Outstanding(_)
                | MessageState::DeadLettering
                | MessageState::Acknowledged
                    if !before =>
                {
                    seek.restart.push(*sequence);
                }
                MessageState::Waiting
                | MessageState::Outstanding(_)
                | MessageState::Acknowledging
                | MessageState::DeadLettering
                    if before =>
                {
                    seek.acknowledge.push(*sequence);
                }
                MessageState::Waiting
                | MessageState::Outstanding(_)
                | MessageState::Acknowledging
                | MessageState::DeadLettering
                | MessageState::Acknowledged => {}
            }
        }
        seek
    }

    /// Does what was written down; answers what was outstanding.
    pub(in super::super) fn apply_seek(&mut self, seek: &Seek, now: Time) -> Vec<EndedDelivery> {
        let mut ended = Vec::new();
        for sequence in &seek.acknowledge {
            let out = self.revoke(*sequence);
            ended.extend(out.map(|mut out| out.ended(DeliveryEnd::Expired)));
            self.acknowledged(*sequence);
        }
        for sequence in &seek.restart {
            let out = self.revoke(*sequence);
            ended.extend(out.map(|mut out| out.ended(DeliveryEnd::Expired)));
            self.restart(*sequence, now);
        }
        let messages = &self.messages;
        let dead_lettering = |sequence: &Sequence| matches!(messages.get(sequence), Some(message) if matches!(message.state, MessageState::DeadLettering));
        self.dead_lettering.retain(dead_lettering);
        ended
    }
    /// A message that the topic still had joins again; who had it before has no say any more.
    pub(in super::super) fn replay(&mut self, new_message: NewMessage, now: Time) {
        let sequence = new_message.sequence;
        self.add(new_message, now);
        self.restart(sequence, now);
    }

    /// It is available, and its deliveries so far do not count.
    fn restart(&mut self, sequence: Sequence, now: Time) {
        let Some(message) = self.messages.get_mut(&sequence) else {
            return;
        };
        if let MessageState::Acknowledged = message.state {
            self.unfinished += 1;
        }
        message.attempts = 0;
        message.held_for = 0;
        message.void = self.deliveries;
        self.wait(sequence, now);
    }
}

// === impl BacklogMessage ===

impl BacklogMessage {
    fn is_untried(&self) -> bool {
        self.delivery == 0 && self.attempts == 0
    }
}
