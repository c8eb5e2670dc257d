//! Going back or forward in time.

use super::{Backlog, DeliveryEnd, EndedDelivery, MessageState, Sequence};
use crate::clock::Time;

/// What a seek changes: first it is written down, then it is done.
#[derive(Debug, Default, PartialEq, Eq)]
pub(in super::super) struct Seek {
    /// Counted as acknowledged.
    pub(in super::super) acknowledge: Vec<Sequence>,
    /// Acknowledged before, available again.
    pub(in super::super) revive: Vec<Sequence>,
    /// Leased to somebody, available to everybody.
    pub(in super::super) release: Vec<Sequence>,
}

// === impl Backlog ===

impl Backlog {
    /// What has to change so that everything published before `to` is acknowledged and nothing else.
    pub(in super::super) fn seek(&self, to: Time) -> Seek {
        let mut seek = Seek::default();
        for (sequence, message) in &self.messages {
            let before = message.published < to;
            match message.state {
                MessageState::Acknowledged if !before => seek.revive.push(*sequence),
                MessageState::Outstanding(_) if !before => seek.release.push(*sequence),
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
        for sequence in &seek.revive {
            let message = self.messages.get_mut(sequence);
            let message =
                message.filter(|message| matches!(message.state, MessageState::Acknowledged));
            if let Some(message) = message {
                message.attempts = 0;
                message.held_for = 0;
                self.unfinished += 1;
                self.wait(*sequence, now);
            }
        }
        for sequence in &seek.release {
            if let Some(mut out) = self.revoke(*sequence) {
                ended.push(out.ended(DeliveryEnd::Expired));
                self.wait(*sequence, now);
            }
        }
        let messages = &self.messages;
        let dead_lettering = |sequence: &Sequence| matches!(messages.get(sequence), Some(message) if matches!(message.state, MessageState::DeadLettering));
        self.dead_lettering.retain(dead_lettering);
        ended
    }
}
