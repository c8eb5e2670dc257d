//! Effects: as many as the mode promises, each extra one explained, none missing.

use super::{CaseChecker, Promise};
use crate::crash::case::Mode;
use crate::harness::{EffectPart, WorkId};
use semel::Outcome;
use semel::protocol::State;

// === impl CaseChecker ===

impl CaseChecker<'_> {
    pub(super) fn check_effects(&mut self, work: WorkId) {
        match self.evidence.case.mode {
            Mode::Transaction => self.check_rows(work),
            Mode::Downstream => self.check_charges(work),
            Mode::Park | Mode::Probe => {
                self.check_at_most_one(work, EffectPart::Work);
                self.check_at_most_one(work, EffectPart::Step);
                self.check_happened(work);
            }
            Mode::Retry => {
                self.check_explained(work, EffectPart::Work);
                self.check_explained(work, EffectPart::Step);
                self.check_happened(work);
            }
        }
    }

    /// A row of the handler's table is there if and only if its completion is.
    fn check_rows(&mut self, work: WorkId) {
        let evidence = self.evidence;
        let rows: Vec<_> = evidence.rows.iter().filter(|r| r.work == work).collect();
        self.check_exactly(work, rows.len());
        let Some(record) = evidence.records.get(&work) else {
            return;
        };
        let accepted = self.accepted(work);
        for row in rows {
            if row.fence != record.fence.0 || Some(&row.nonce) != accepted.as_ref() {
                let seen = format!("{row:?} is not what was completed: {record:?}");
                self.convict(Promise::NoDuplicate, work, seen);
            }
        }
    }

    fn check_charges(&mut self, work: WorkId) {
        let charges = self.evidence.charges.iter();
        let nonces: Vec<&String> = charges
            .filter(|charge| charge.work == work)
            .map(|charge| &charge.nonce)
            .collect();
        self.check_exactly(work, nonces.len());
        let accepted = self.accepted(work);
        if accepted.is_some_and(|accepted| !nonces.contains(&&accepted)) {
            self.convict(Promise::NoLoss, work, "the answer names no charge");
        }
    }

    /// One effect of what succeeded, none of what failed.
    fn check_exactly(&mut self, work: WorkId, effects: usize) {
        let succeeded = usize::from(self.state(work) == Some(State::Succeeded));
        let seen = format!("{effects} effects of a success counted {succeeded}");
        if effects > succeeded {
            self.convict(Promise::NoDuplicate, work, seen);
        } else if effects < succeeded {
            self.convict(Promise::NoLoss, work, seen);
        }
    }

    fn check_at_most_one(&mut self, work: WorkId, part: EffectPart) {
        let effects = self.effects.get(&(work, part)).map_or(0, Vec::len);
        if effects > 1 {
            let mode = self.evidence.case.mode.name();
            let seen = format!("{effects} effects of {part:?} under {mode}");
            self.convict(Promise::NoDuplicate, work, seen);
        }
    }

    /// Every effect but the last of its fences was followed by another because something befell its run.
    fn check_explained(&mut self, work: WorkId, part: EffectPart) {
        let mut effects = self.effects.get(&(work, part)).cloned().unwrap_or_default();
        effects.sort_unstable_by_key(|(attempt, _)| attempt.fence);
        effects.pop();
        for (attempt, _) in effects {
            if self.hit.contains(&attempt.delivery) {
                self.counts.by_fault += 1;
            } else if self.stalled.contains(&attempt.delivery) {
                self.counts.by_stall += 1;
            } else {
                let seen =
                    format!("{part:?} took effect again after {attempt:?}, which nothing befell");
                self.convict(Promise::NoDuplicate, work, seen);
            }
        }
    }

    /// A success names an effect that is in the ledger.
    fn check_happened(&mut self, work: WorkId) {
        let Some(accepted) = self.accepted(work) else {
            return;
        };
        let mut effects = self
            .effects
            .get(&(work, EffectPart::Work))
            .into_iter()
            .flatten();
        let named = effects.find(|(_, nonce)| *nonce == accepted);
        let named = named.map(|(attempt, _)| attempt.fence);
        let fence = self.evidence.records.get(&work).map(|it| it.fence.0);
        match named {
            None => self.convict(Promise::NoLoss, work, "it succeeded without an effect"),
            Some(named) if Some(named) != fence && !self.is_found(work, named, fence) => {
                let seen = format!("the answer of fence {named} was taken under {fence:?}");
                self.convict(Promise::FencesRise, work, seen);
            }
            Some(_) => {}
        }
        let step = self.effects.contains_key(&(work, EffectPart::Step));
        if self.evidence.case.has_step(work) && !step {
            self.convict(Promise::NoLoss, work, "it succeeded without its step");
        }
    }

    /// Whether the run of the record's fence asked, and heard of an effect under a lower one.
    fn is_found(&self, work: WorkId, named: u64, fence: Option<u64>) -> bool {
        Some(named) < fence
            && self.probed(work, |asked, status| (Some(asked), status) == (fence, 200))
    }

    /// The nonce that a successful record answers with.
    fn accepted(&self, work: WorkId) -> Option<String> {
        let record = self.evidence.records.get(&work)?;
        let result = record
            .result
            .as_ref()
            .filter(|_| record.state == State::Succeeded)?;
        let body = Outcome::decode(result).ok()?.body_bytes();
        Some(String::from_utf8_lossy(&body).into_owned())
    }
}
