//! Ends and answers: every piece of work ends, and everybody hears the same.

use super::{CaseChecker, Promise};
use crate::crash::case::Mode;
use crate::crash::message::SenderAnswer;
use crate::crash::sender::always_fails;
use crate::harness::WorkId;
use semel::protocol::State;
use std::collections::BTreeSet;

// === impl CaseChecker ===

impl CaseChecker<'_> {
    /// The record came to an end, and to the right one.
    pub(super) fn check_end(&mut self, work: WorkId) {
        if self.evidence.drive.stuck.contains(&work) {
            self.convict(Promise::NotStuck, work, "the sender never heard an end");
        }
        let state = self.state(work);
        match state {
            None => self.convict(Promise::NoLoss, work, "there is no record"),
            // Its own late word took it out of parking; the person who was asked finds it waiting.
            Some(State::Waiting) if self.heard_parked(work) => {}
            Some(State::Running | State::Waiting) => {
                self.convict(Promise::NotStuck, work, format!("it is left {state:?}"));
            }
            Some(State::Succeeded) if always_fails(work) => {
                self.convict(Promise::NoLoss, work, "a failure for good succeeded");
            }
            Some(State::Failed) if !always_fails(work) => {
                self.convict(
                    Promise::NoLoss,
                    work,
                    "it failed for good and never said so",
                );
            }
            Some(State::Succeeded | State::Failed | State::Parked) => {}
        }
    }

    fn heard_parked(&self, work: WorkId) -> bool {
        let mut sent = self.evidence.drive.sent.iter();
        sent.any(|sent| {
            sent.delivery.work == work && matches!(sent.heard, Some((_, SenderAnswer::Parked)))
        })
    }

    /// Every settled answer has the bytes of the record.
    pub(super) fn check_answers(&mut self, work: WorkId) {
        let mut answers = BTreeSet::new();
        let mut wrong = Vec::new();
        let evidence = self.evidence;
        let sent = evidence.drive.sent.iter();
        let heard = sent
            .filter(|sent| sent.delivery.work == work)
            .filter_map(|sent| sent.heard.as_ref());
        for (_, heard) in heard {
            match heard {
                SenderAnswer::Settled(succeeded, outcome) => {
                    answers.insert((*succeeded, outcome.clone()));
                }
                SenderAnswer::Wrong(what) => wrong.push(what),
                SenderAnswer::Parked | SenderAnswer::Again(_) => {}
            }
        }
        for what in wrong {
            self.convict(Promise::SameAnswer, work, format!("a sender heard {what}"));
        }
        let Some(record) = evidence.records.get(&work) else {
            return;
        };
        let recorded = record.state.ending().map(|_| {
            let result = record.result.clone().unwrap_or_default();
            (record.state == State::Succeeded, hex::encode(result))
        });
        for answer in answers {
            if recorded.as_ref() != Some(&answer) {
                let seen = format!("a sender heard {answer:?}, the record says {recorded:?}");
                self.convict(Promise::SameAnswer, work, seen);
            }
        }
    }

    /// Only doubt parks, and what is parked is listed.
    pub(super) fn check_parked(&mut self, work: WorkId) {
        let parked = self.state(work) == Some(State::Parked);
        if parked != self.evidence.parked.contains(&work) {
            self.convict(Promise::ParkedIsListed, work, "list and record disagree");
        }
        if !parked {
            return;
        }
        match self.evidence.case.mode {
            Mode::Park => self.check_doubted(work),
            Mode::Probe => self.check_unclear(work),
            Mode::Transaction | Mode::Downstream | Mode::Retry => {
                self.convict(Promise::ParkedIsListed, work, "this mode never parks");
            }
        }
    }

    fn check_doubted(&mut self, work: WorkId) {
        let mut deliveries = self.evidence.drive.sent.iter().map(|sent| &sent.delivery);
        if !deliveries.any(|delivery| delivery.work == work && self.excused(delivery.id)) {
            self.convict(Promise::ParkedIsListed, work, "nothing put it in doubt");
        }
    }

    /// What can be asked about is parked only when the answer has no meaning.
    fn check_unclear(&mut self, work: WorkId) {
        let has_no_meaning = |_, status| !matches!(status, 200 | 404 | 429 | 502..=504);
        if !self.probed(work, has_no_meaning) {
            let seen = "no answer to a probe was without a meaning";
            self.convict(Promise::ParkedIsListed, work, seen);
        }
    }
}
