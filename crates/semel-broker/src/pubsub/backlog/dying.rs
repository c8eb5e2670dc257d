//! Messages that had enough attempts: they leave for the dead-letter topic, if there is one.

use super::{Backlog, Ended, Place, Standing};
use crate::clock::Time;

// === impl Backlog ===

impl Backlog {
    /// It had enough attempts.
    pub(super) fn die(&mut self, place: Place) {
        if let Some(kept) = self.messages.get_mut(&place) {
            kept.standing = Standing::Dying;
            self.dying.push(place);
        }
    }

    /// What is to go to the dead-letter topic.
    pub(in super::super) fn dying(&mut self) -> Vec<Place> {
        std::mem::take(&mut self.dying)
    }

    /// Whether it is still to go to the dead-letter topic.
    pub(in super::super) fn is_dying(&self, place: Place) -> bool {
        self.messages
            .get(&place)
            .is_some_and(|kept| matches!(kept.standing, Standing::Dying))
    }

    /// What was dying stays after all.
    pub(in super::super) fn stays(&mut self, place: Place, now: Time) -> Vec<Ended> {
        if !self.is_dying(place) {
            return Vec::new();
        }
        // They were given out because this one was as good as gone.
        let ended = self.call_back_after(place, now);
        let pause = self.pause(self.attempts(place));
        self.wait(place, now.plus(pause));
        ended
    }
}
