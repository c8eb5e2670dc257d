//! An attempt of which the sender has heard nothing yet.

use super::{AttemptResult, LANE};
use crate::judge::timeline::What;
use crate::world::recorder::Recorder;

/// Writes down that no answer came unless it is told otherwise, also when the attempt is given up.
pub(super) struct PendingAttempt<'a> {
    recorder: &'a Recorder,
    id: &'a str,
    attempt: u32,
    settled: bool,
}

// === impl PendingAttempt ===

impl<'a> PendingAttempt<'a> {
    pub(super) fn new(recorder: &'a Recorder, id: &'a str, attempt: u32) -> Self {
        Self {
            recorder,
            id,
            attempt,
            settled: false,
        }
    }

    pub(super) fn settled(mut self, what: What) {
        self.settled = true;
        self.recorder.note(LANE, what);
    }

    pub(super) fn because(self, why: &str) -> AttemptResult {
        let what = self.unanswered(why);
        self.settled(what);
        AttemptResult::Unanswered
    }

    fn unanswered(&self, why: &str) -> What {
        What::Unanswered {
            id: self.id.to_owned(),
            attempt: self.attempt,
            why: why.to_owned(),
        }
    }
}

impl Drop for PendingAttempt<'_> {
    fn drop(&mut self) {
        if !self.settled {
            let what = self.unanswered("the sender's deadline passed");
            self.recorder.note(LANE, what);
        }
    }
}
