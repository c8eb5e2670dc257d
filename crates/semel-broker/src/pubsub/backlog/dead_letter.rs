//! Messages that had enough attempts: they leave for the dead-letter topic, if there is one.

use super::{Backlog, EndedDelivery, MessageState, Sequence};
use crate::clock::Time;

// === impl Backlog ===

impl Backlog {
    /// It had enough attempts.
    pub(super) fn dead_letter(&mut self, sequence: Sequence) {
        if let Some(message) = self.messages.get_mut(&sequence) {
            message.state = MessageState::DeadLettering;
            self.dead_lettering.push(sequence);
        }
    }

    /// What is to go to the dead-letter topic.
    pub(in super::super) fn dead_lettering(&mut self) -> Vec<Sequence> {
        std::mem::take(&mut self.dead_lettering)
    }

    /// Whether it is still to go to the dead-letter topic.
    pub(in super::super) fn is_dead_lettering(&self, sequence: Sequence) -> bool {
        self.messages
            .get(&sequence)
            .is_some_and(|message| matches!(message.state, MessageState::DeadLettering))
    }

    /// It could not be forwarded: it stays.
    pub(in super::super) fn keep(&mut self, sequence: Sequence, now: Time) -> Vec<EndedDelivery> {
        if !self.is_dead_lettering(sequence) {
            return Vec::new();
        }
        // They were leased because this one was as good as gone.
        let ended = self.revoke_after(sequence, now);
        let pause = self.pause(self.attempts(sequence));
        self.wait(sequence, now.plus(pause));
        ended
    }
}
