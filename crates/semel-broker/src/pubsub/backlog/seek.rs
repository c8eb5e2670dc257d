//! Going back or forward in time.

use super::{Backlog, Place, Standing};
use crate::clock::Time;

/// What a seek changes: first it is written down, then it is done.
#[derive(Debug, Default, PartialEq, Eq)]
pub(in super::super) struct Seek {
    /// Taken for acknowledged.
    pub(in super::super) acknowledge: Vec<Place>,
    /// Acknowledged before, available again.
    pub(in super::super) revive: Vec<Place>,
}

// === impl Backlog ===

impl Backlog {
    /// What has to change so that everything published before `to` is acknowledged and nothing else.
    pub(in super::super) fn seek(&self, to: Time) -> Seek {
        let mut seek = Seek::default();
        for (place, kept) in &self.messages {
            let before = kept.published < to;
            match kept.standing {
                Standing::Acknowledged if !before => seek.revive.push(*place),
                Standing::Waiting | Standing::Outstanding(_) | Standing::Leaving if before => {
                    seek.acknowledge.push(*place);
                }
                Standing::Waiting
                | Standing::Outstanding(_)
                | Standing::Leaving
                | Standing::Acknowledged => {}
            }
        }
        seek
    }

    /// Does what was written down.
    pub(in super::super) fn sought(&mut self, seek: &Seek, now: Time) {
        for place in &seek.acknowledge {
            drop(self.call_back(*place));
            self.left(*place);
        }
        for place in &seek.revive {
            let acknowledged = self
                .messages
                .get(place)
                .is_some_and(|kept| matches!(kept.standing, Standing::Acknowledged));
            if acknowledged {
                self.unfinished += 1;
                self.wait(*place, now);
            }
        }
        self.dying.retain(|place| !seek.acknowledge.contains(place));
    }
}
