//! The checker: knows the promises, not the code. It reads the evidence and says what was broken.

mod effects;
mod fences;
mod answers;

use super::evidence::Evidence;
use super::sender::Sent;
use crate::harness::{Attempt, Cell, EffectPart, Event, Verdict, WorkId};
use semel::protocol::State;
use std::collections::{BTreeMap, BTreeSet};

/// The promises.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Promise {
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

/// What was counted on the way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    /// Effects begun.
    pub(crate) runs: usize,
    /// Effects more than one that a fault explains.
    pub(crate) by_fault: usize,
    /// Effects more than one that a stall explains: the machine or the store kept the worker waiting for a good part
    /// of a lease.
    pub(crate) by_stall: usize,
}

/// The evidence, looked at per piece of work.
struct CaseChecker<'a> {
    evidence: &'a Evidence,
    sent: BTreeMap<u64, &'a Sent>,
    attempts: BTreeMap<WorkId, Vec<Attempt>>,
    effects: BTreeMap<(WorkId, EffectPart), Vec<(Attempt, &'a str)>>,
    /// What the handler was asked about: under which fence, and the status of its answer.
    probes: BTreeMap<WorkId, Vec<(u64, u16)>>,
    /// Deliveries that a fault met.
    hit: BTreeSet<u64>,
    /// Deliveries during which their worker was kept waiting.
    stalled: BTreeSet<u64>,
    verdict: Verdict<Promise>,
    counts: Counts,
}

/// Checks a case.
pub(crate) fn check(evidence: &Evidence) -> (Verdict<Promise>, Counts) {
    let mut checker = CaseChecker::open(evidence);
    for work in (0..evidence.drive.works).map(WorkId) {
        checker.check_end(work);
        checker.check_answers(work);
        checker.check_effects(work);
        checker.check_fences(work);
        checker.check_parked(work);
    }
    (checker.verdict, checker.counts)
}

/// The numbers of a report that say whether promises were kept; `stuck` is how much did not end.
pub(crate) fn promise_cells(
    verdict: &Verdict<Promise>,
    counts: Counts,
    stuck: usize,
) -> [(&'static str, Cell); 5] {
    let extra = verdict.count(Promise::NoDuplicate);
    let lost = verdict.count(Promise::NoLoss);
    let other = verdict.violations.len() - extra - lost + stuck;
    [
        ("extra, by fault", counts.by_fault.into()),
        ("extra, by stall", counts.by_stall.into()),
        ("extra, unexplained", extra.into()),
        ("lost", lost.into()),
        ("other", other.into()),
    ]
}

// === impl CaseChecker ===

impl<'a> CaseChecker<'a> {
    fn open(evidence: &'a Evidence) -> Self {
        let injected = evidence.drive.injected.iter();
        let sent = evidence.drive.sent.iter();
        let mut checker = Self {
            evidence,
            sent: sent.map(|sent| (sent.delivery.id, sent)).collect(),
            attempts: BTreeMap::new(),
            effects: BTreeMap::new(),
            probes: BTreeMap::new(),
            hit: injected.flat_map(|it| it.in_flight.clone()).collect(),
            stalled: BTreeSet::new(),
            verdict: Verdict::default(),
            counts: Counts::default(),
        };
        for events in evidence.ledgers.values() {
            checker.read(events);
        }
        checker.counts.runs = checker.attempts.values().map(Vec::len).sum();
        checker
    }

    fn read(&mut self, events: &'a [Event]) {
        let mut open = BTreeSet::new();
        for event in events {
            match event {
                Event::Received { delivery, .. } => {
                    open.insert(*delivery);
                }
                Event::Answered { delivery } => {
                    open.remove(delivery);
                }
                Event::Begun(attempt) => {
                    let attempts = self.attempts.entry(attempt.work).or_default();
                    attempts.push(*attempt);
                }
                Event::Effect {
                    attempt,
                    part,
                    nonce,
                } => {
                    let effects = self.effects.entry((attempt.work, *part)).or_default();
                    effects.push((*attempt, nonce.as_str()));
                }
                Event::Probed {
                    work,
                    fence,
                    status,
                } => {
                    let probes = self.probes.entry(*work).or_default();
                    probes.push((*fence, *status));
                }
                Event::Stalled => self.stalled.extend(&open),
                Event::Cut { delivery } => {
                    self.hit.insert(*delivery);
                }
                Event::PointHit { .. } | Event::Doubted { .. } => {}
            }
        }
    }

    fn convict(&mut self, promise: Promise, work: WorkId, seen: impl Into<String>) {
        self.verdict.convict(promise, work.0, seen);
    }

    /// Whether the handler was asked about this work, and answered so.
    fn probed(&self, work: WorkId, is: impl Fn(u64, u16) -> bool) -> bool {
        let mut probes = self.probes.get(&work).into_iter().flatten();
        probes.any(|(fence, status)| is(*fence, *status))
    }

    fn state(&self, work: WorkId) -> Option<State> {
        self.evidence.records.get(&work).map(|record| record.state)
    }

    /// Whether a fault or a stall fell into this delivery.
    fn excused(&self, delivery: u64) -> bool {
        self.hit.contains(&delivery) || self.stalled.contains(&delivery)
    }
}
