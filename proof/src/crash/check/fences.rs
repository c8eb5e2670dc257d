//! Fences: unique, and rising in the order of grants.

use super::{CaseChecker, Promise};
use crate::crash::message::EffectBehaviour;
use crate::crash::sender::Sent;
use crate::harness::{Attempt, WorkId};

// === impl CaseChecker ===

impl CaseChecker<'_> {
    pub(super) fn check_fences(&mut self, work: WorkId) {
        let mut grants = self.attempts.get(&work).cloned().unwrap_or_default();
        grants.sort_unstable_by_key(|attempt| attempt.fence);
        for pair in grants.windows(2) {
            let [before, after] = pair else { continue };
            if before.fence == after.fence {
                let seen = format!("fence {} ran twice", before.fence);
                self.convict(Promise::FencesRise, work, seen);
            }
            // A run that never began is not counted, so its number is given again.
            let released = self.behaviour(before) == Some(EffectBehaviour::NotStarted);
            let least = if released {
                before.attempt
            } else {
                before.attempt + 1
            };
            if after.attempt < least {
                let seen = format!("attempts do not rise with fences: {before:?}, {after:?}");
                self.convict(Promise::FencesRise, work, seen);
            }
        }
        let late: Vec<String> = grants
            .iter()
            .flat_map(|first| self.overtaken_by(first, &grants))
            .collect();
        for seen in late {
            self.convict(Promise::FencesRise, work, seen);
        }
    }

    /// The grants that were asked for after `first` was answered, and have a lower fence all the same.
    fn overtaken_by(&self, first: &Attempt, grants: &[Attempt]) -> Vec<String> {
        let Some((heard, _)) = self.sent(first).and_then(|sent| sent.heard.as_ref()) else {
            return Vec::new();
        };
        let asked_later =
            |grant: &&Attempt| self.sent(grant).is_some_and(|sent| sent.sent > *heard);
        let later = grants.iter().filter(asked_later);
        later
            .filter(|grant| grant.fence <= first.fence)
            .map(|grant| format!("{grant:?} came after {first:?}"))
            .collect()
    }

    fn behaviour(&self, attempt: &Attempt) -> Option<EffectBehaviour> {
        self.sent(attempt).map(|sent| sent.delivery.behaviour)
    }

    fn sent(&self, attempt: &Attempt) -> Option<&Sent> {
        self.sent.get(&attempt.delivery).copied()
    }
}
