//! The checker: knows the promises, not the code. It reads the evidence and says what was broken.

mod effects;
mod fences;
mod answers;

use super::case::WorkId;
use super::evidence::Evidence;
use super::ledger::{Attempt, EffectPart, Line};
use super::point::ProcessFault;
use super::sender::Sent;
use semel::protocol::State;
use std::collections::{BTreeMap, BTreeSet};

/// What the checker found.
#[derive(Clone, Debug, Default)]
pub struct Verdict {
    /// What was broken.
    pub broken: Vec<Violation>,
    /// What was counted on the way.
    pub counts: CrashCounts,
}

/// A broken promise.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// Which.
    pub promise: Promise,
    /// Of which work.
    pub work: WorkId,
    /// What was seen.
    pub seen: String,
}

/// The promises.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Promise {
    /// No effect more than the mode allows.
    NoDuplicate,
    /// What is said to have succeeded has happened.
    NoLoss,
    /// Everybody hears the same bytes.
    SameAnswer,
    /// Fences rise in the order of grants.
    FencesRise,
    /// Every piece of work comes to an end.
    NotStuck,
    /// Work is parked for a reason, and listed.
    ParkedIsListed,
}

/// What was counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CrashCounts {
    /// Deliveries made.
    pub deliveries: usize,
    /// Effects begun.
    pub runs: usize,
    /// Pieces of work that succeeded.
    pub succeeded: usize,
    /// Pieces of work that were parked at the end.
    pub parked: usize,
    /// Workers killed.
    pub kills: usize,
    /// Workers paused past their lease.
    pub pauses: usize,
    /// Faults that met a worker with a delivery in hand.
    pub in_flight: usize,
    /// Deliveries whose worker died before it answered.
    pub unknown: usize,
    /// Effects more than one that a fault explains.
    pub by_fault: usize,
    /// Effects more than one that a stall explains: the machine or the store kept the worker waiting for a good part
    /// of a lease.
    pub by_stall: usize,
}

/// The evidence, looked at per piece of work.
struct CaseChecker<'a> {
    evidence: &'a Evidence,
    sent: BTreeMap<u64, &'a Sent>,
    attempts: BTreeMap<WorkId, Vec<Attempt>>,
    effects: BTreeMap<(WorkId, EffectPart), Vec<(Attempt, &'a str)>>,
    /// Deliveries that a fault met.
    struck: BTreeSet<u64>,
    /// Deliveries during which their worker was kept waiting.
    stalled: BTreeSet<u64>,
    verdict: Verdict,
}

/// Checks a case.
#[must_use]
pub fn check(evidence: &Evidence) -> Verdict {
    let mut checker = CaseChecker::open(evidence);
    for work in (0..evidence.works).map(WorkId) {
        checker.check_end(work);
        checker.check_answers(work);
        checker.check_effects(work);
        checker.check_fences(work);
        checker.check_parked(work);
    }
    checker.verdict
}

// === impl CaseChecker ===

impl<'a> CaseChecker<'a> {
    fn open(evidence: &'a Evidence) -> Self {
        let injected = &evidence.drive.injected;
        let mut checker = Self {
            evidence,
            sent: evidence.drive.sent.iter().map(by_number).collect(),
            attempts: BTreeMap::new(),
            effects: BTreeMap::new(),
            struck: injected.iter().flat_map(|s| s.open.clone()).collect(),
            stalled: BTreeSet::new(),
            verdict: Verdict::default(),
        };
        for lines in evidence.ledgers.values() {
            checker.read(lines);
        }
        checker.count();
        checker
    }

    fn read(&mut self, lines: &'a [Line]) {
        let mut open = BTreeSet::new();
        for line in lines {
            match line {
                Line::Received { delivery, .. } => {
                    open.insert(*delivery);
                }
                Line::Answered { delivery } => {
                    open.remove(delivery);
                }
                Line::Begun(attempt) => {
                    self.attempts
                        .entry(attempt.work)
                        .or_default()
                        .push(*attempt);
                }
                Line::Effect {
                    attempt,
                    part,
                    nonce,
                    ..
                } => {
                    let effects = self.effects.entry((attempt.work, *part)).or_default();
                    effects.push((*attempt, nonce.as_str()));
                }
                Line::Stalled { .. } => self.stalled.extend(&open),
                Line::Cut { delivery } => {
                    self.struck.insert(*delivery);
                }
                Line::FaultHit(_) | Line::PointHit { .. } | Line::Doubted { .. } => {}
            }
        }
    }

    fn count(&mut self) {
        let evidence = self.evidence;
        let (sent, injected) = (&evidence.drive.sent, &evidence.drive.injected);
        let with = |fault| injected.iter().filter(|s| s.fault == fault).count();
        let in_state = |state| {
            evidence
                .records
                .values()
                .filter(|r| r.state == state)
                .count()
        };
        self.verdict.counts = CrashCounts {
            deliveries: sent.len(),
            runs: self.attempts.values().map(Vec::len).sum(),
            succeeded: in_state(State::Succeeded),
            parked: in_state(State::Parked),
            kills: with(ProcessFault::Kill),
            pauses: with(ProcessFault::Pause),
            in_flight: injected.iter().filter(|s| !s.open.is_empty()).count(),
            unknown: sent.iter().filter(|sent| sent.unknown).count(),
            ..self.verdict.counts
        };
    }

    fn convict(&mut self, promise: Promise, work: WorkId, seen: impl Into<String>) {
        let seen = seen.into();
        self.verdict.broken.push(Violation {
            promise,
            work,
            seen,
        });
    }

    fn state(&self, work: WorkId) -> Option<State> {
        self.evidence.records.get(&work).map(|record| record.state)
    }

    /// Whether a fault or a stall fell into this delivery.
    fn excused(&self, delivery: u64) -> bool {
        self.struck.contains(&delivery) || self.stalled.contains(&delivery)
    }
}

const fn by_number(sent: &Sent) -> (u64, &Sent) {
    (sent.delivery.id, sent)
}

// === impl Verdict ===

impl Verdict {
    /// How often a promise was broken.
    #[must_use]
    pub fn count(&self, promise: Promise) -> usize {
        let of_it = self.broken.iter().filter(|v| v.promise == promise);
        of_it.count()
    }
}
