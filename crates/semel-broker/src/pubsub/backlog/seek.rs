//! Going back or forward in time.

use super::{Backlog, End, Ended, Place, Standing};
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
                Standing::Waiting
                | Standing::Outstanding(_)
                | Standing::Leaving
                | Standing::Dying
                    if before =>
                {
                    seek.acknowledge.push(*place);
                }
                Standing::Waiting
                | Standing::Outstanding(_)
                | Standing::Leaving
                | Standing::Dying
                | Standing::Acknowledged => {}
            }
        }
        seek
    }

    /// Does what was written down; answers what was outstanding.
    pub(in super::super) fn sought(&mut self, seek: &Seek, now: Time) -> Vec<Ended> {
        let mut ended = Vec::new();
        for place in &seek.acknowledge {
            let out = self.call_back(*place);
            ended.extend(out.map(|mut out| out.ended(End::Late)));
            self.left(*place);
        }
        for place in &seek.revive {
            let kept = self.messages.get_mut(place);
            let kept = kept.filter(|kept| matches!(kept.standing, Standing::Acknowledged));
            if let Some(kept) = kept {
                kept.attempts = 0;
                kept.held_for = 0;
                self.unfinished += 1;
                self.wait(*place, now);
            }
        }
        let messages = &self.messages;
        let dying = |place: &Place| matches!(messages.get(place), Some(kept) if matches!(kept.standing, Standing::Dying));
        self.dying.retain(dying);
        ended
    }
}
