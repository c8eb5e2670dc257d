//! The report: a table of what was tried, and whether that was enough to mean something.

use super::check::{CrashCounts, Promise, Verdict};
use super::evidence::Evidence;
use super::message::ArmedPoint;
use super::point::{Point, ProcessFault};
use std::collections::BTreeSet;
use std::fmt::{self, Write};

/// A run with fewer successes shows nothing.
const SUCCEEDED_MIN: usize = 1_000;

/// A run with fewer faults that met a delivery in hand shows nothing.
const IN_FLIGHT_MIN: usize = 50;

/// A run with fewer deliveries of unknown end shows nothing.
const UNKNOWN_MIN: usize = 20;

/// How many broken promises a report spells out.
const SHOWN_MAX: usize = 20;

/// What all cases of a run came to.
#[derive(Clone, Debug, Default)]
pub struct CrashReport {
    rows: Vec<CrashRow>,
    met: BTreeSet<ArmedPoint>,
}

#[derive(Clone, Debug)]
struct CrashRow {
    store: &'static str,
    mode: &'static str,
    verdict: Verdict,
}

// === impl CrashReport ===

impl CrashReport {
    /// Adds a case.
    pub fn add(&mut self, evidence: &Evidence, verdict: Verdict) {
        for injected in &evidence.drive.injected {
            let fault = injected.fault;
            self.met
                .extend(injected.point.map(|point| ArmedPoint { point, fault }));
        }
        self.rows.push(CrashRow {
            store: evidence.case.location.name(),
            mode: evidence.case.mode.name(),
            verdict,
        });
    }

    /// The sums over all cases.
    #[must_use]
    pub fn total(&self) -> CrashCounts {
        let mut total = CrashCounts::default();
        for row in &self.rows {
            total += row.verdict.counts;
        }
        total
    }

    /// The broken promises, spelt out.
    #[must_use]
    pub fn broken(&self) -> Vec<String> {
        let mut broken = Vec::new();
        for row in &self.rows {
            let shown = row.verdict.broken.iter().take(SHOWN_MAX);
            broken.extend(shown.map(|violation| {
                let (promise, work) = (violation.promise, violation.work.0);
                let (store, mode, seen) = (row.store, row.mode, &violation.seen);
                format!("{store} {mode}: {promise:?} broken, work {work}: {seen}")
            }));
        }
        broken
    }

    /// What makes the run as a whole too easy to mean anything.
    #[must_use]
    pub fn invalid(&self) -> Vec<String> {
        let total = self.total();
        let enough = [
            ("successes", total.succeeded, SUCCEEDED_MIN),
            ("faults in flight", total.in_flight, IN_FLIGHT_MIN),
            ("unknown answers", total.unknown, UNKNOWN_MIN),
        ];
        let few = enough.into_iter().filter(|(_, seen, min)| seen < min);
        let mut invalid: Vec<String> = few
            .map(|(what, seen, min)| format!("invalid: {seen} {what}, {min} are needed"))
            .collect();
        let pairs = Point::ALL
            .into_iter()
            .flat_map(|point| ProcessFault::ALL.map(|fault| ArmedPoint { point, fault }));
        let missed = pairs.filter(|armed| !self.met.contains(armed));
        invalid.extend(missed.map(|armed| format!("invalid: {armed:?} was never met")));
        invalid
    }
}

impl fmt::Display for CrashReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "| store | mode | deliveries | runs | succeeded | parked | kills | pauses | in flight | unknown | extra, by fault \
             | extra, by stall | extra, unexplained | lost | other |"
        )?;
        writeln!(f, "|---|---|{}", "---:|".repeat(13))?;
        for row in &self.rows {
            row.fmt(f)?;
        }
        let mut sum = CrashRow {
            store: "**all**",
            mode: "",
            verdict: Verdict::default(),
        };
        sum.verdict.counts = self.total();
        let broken = self.rows.iter().flat_map(|row| row.verdict.broken.clone());
        sum.verdict.broken = broken.collect();
        sum.fmt(f)
    }
}

impl fmt::Display for CrashRow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let counts = self.verdict.counts;
        let extra = self.verdict.count(Promise::NoDuplicate);
        let lost = self.verdict.count(Promise::NoLoss);
        let other = self.verdict.broken.len() - extra - lost;
        let numbers = [
            counts.deliveries,
            counts.runs,
            counts.succeeded,
            counts.parked,
            counts.kills,
            counts.pauses,
            counts.in_flight,
            counts.unknown,
            counts.by_fault,
            counts.by_stall,
            extra,
            lost,
            other,
        ];
        let mut line = format!("| {} | {} |", self.store, self.mode);
        for number in numbers {
            write!(line, " {number} |")?;
        }
        writeln!(f, "{line}")
    }
}

// === impl CrashCounts ===

impl std::ops::AddAssign for CrashCounts {
    fn add_assign(&mut self, other: Self) {
        self.deliveries += other.deliveries;
        self.runs += other.runs;
        self.succeeded += other.succeeded;
        self.parked += other.parked;
        self.kills += other.kills;
        self.pauses += other.pauses;
        self.in_flight += other.in_flight;
        self.unknown += other.unknown;
        self.by_fault += other.by_fault;
        self.by_stall += other.by_stall;
    }
}
