//! The table of what was tried, and whether that was enough to mean something.

use super::armed_fault::points;
use super::attack::AttackLog;
use super::deployment::{Deployment, Role};
use super::injected::FaultKind;
use super::partial_message::PartialMessage;
use super::trace;
use crate::crash::{CrashCounts, Evidence, Line, Promise, Verdict};
use std::collections::BTreeSet;
use std::fmt::{self, Write};
use std::time::Duration;

/// How many broken promises are spelt out.
const SHOWN_MAX: usize = 15;

/// What all deployments of a run came to.
#[derive(Debug, Default)]
pub struct GateReport {
    rows: Vec<GateRow>,
    /// The points that were met, by role and word.
    met: BTreeSet<(&'static str, String)>,
}

/// The least that a run must have met to mean something, and how soon it must end.
#[derive(Clone, Copy, Debug)]
pub(super) struct Floor {
    pub(super) succeeded: usize,
    pub(super) in_flight: usize,
    pub(super) unknown: usize,
    pub(super) every_point: bool,
    /// How long work may take to end after the heal, but for one in a hundred.
    pub(super) p99_max: Duration,
}

#[derive(Debug, Default)]
struct GateRow {
    store: &'static str,
    mode: &'static str,
    works: usize,
    storms: usize,
    faults: usize,
    kills: [usize; 3],
    pauses: usize,
    drains: usize,
    cuts: usize,
    blackholes: usize,
    outages: usize,
    jumps: usize,
    in_flight: usize,
    ambiguous: usize,
    /// From the heal to the end of a piece of work, of all but one in a hundred.
    p99_to_end: Duration,
    ended_after: Duration,
    verdict: Verdict,
    stuck: Vec<String>,
}

// === impl GateReport ===

impl GateReport {
    pub(super) fn add(
        &mut self,
        deployment: &Deployment,
        log: &AttackLog,
        evidence: &Evidence,
        verdict: Verdict,
    ) -> String {
        for injection in &log.injector.injected {
            if let Some((role, point)) = &injection.point {
                self.met.insert((role.name(), point.clone()));
            }
        }
        let row = GateRow::of(deployment, log, evidence, verdict);
        let mut told = row.to_string();
        told.push_str(&row.broken().join("\n"));
        self.rows.push(row);
        told
    }

    /// The broken promises, spelt out.
    #[must_use]
    pub fn broken(&self) -> Vec<String> {
        self.rows.iter().flat_map(GateRow::broken).collect()
    }

    /// What makes the run as a whole too easy to mean anything, or too slow to end.
    pub(super) fn invalid(&self, floor: Floor) -> Vec<String> {
        let sum = |of: fn(&GateRow) -> usize| self.rows.iter().map(of).sum::<usize>();
        let enough = [
            (
                "successes",
                sum(|row| row.verdict.counts.succeeded),
                floor.succeeded,
            ),
            (
                "faults in flight",
                sum(|row| row.in_flight),
                floor.in_flight,
            ),
            (
                "ambiguous operations",
                sum(|row| row.ambiguous),
                floor.unknown,
            ),
        ];
        let few = enough.into_iter().filter(|(_, seen, min)| seen < min);
        let mut invalid: Vec<String> = few
            .map(|(what, seen, min)| format!("invalid: {seen} {what}, {min} are needed"))
            .collect();
        invalid.extend(self.late(floor.p99_max));
        if floor.every_point {
            for role in [Role::Gate(0), Role::Broker, Role::Handler] {
                let partial_messages = PartialMessage::ALL
                    .into_iter()
                    .filter(|partial| partial.victim == role);
                let missed = points(role)
                    .into_iter()
                    .chain(partial_messages.map(|partial| partial.point))
                    .filter(|point| !self.met.contains(&(role.name(), (*point).to_owned())));
                invalid.extend(missed.map(|point| {
                    format!("invalid: the {}'s point {point} was never met", role.name())
                }));
            }
        }
        invalid
    }

    /// The deployments that took too long to end.
    fn late(&self, max: Duration) -> Vec<String> {
        let late = self.rows.iter().filter(|row| row.p99_to_end > max);
        late.map(|row| {
            let (store, mode, p99) = (row.store, row.mode, row.p99_to_end);
            format!("{store} {mode}: {p99:?} after the heal one work in a hundred had not ended, {max:?} are allowed")
        })
        .collect()
    }

    /// How many points were met.
    #[must_use]
    pub fn points_met(&self) -> usize {
        self.met.len()
    }
}

impl fmt::Display for GateReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "| store | mode | works | storms | effects begun | succeeded | parked | faults | kills gate/broker/handler | pauses | \
             drains | cuts | blackholes | store crashes | clock jumps | in flight | ambiguous | extra, by fault | extra, by stall | \
             extra, unexplained | lost | other | p99 to end | ended after |"
        )?;
        writeln!(f, "|---|---|{}", "---:|".repeat(22))?;
        for row in &self.rows {
            row.fmt(f)?;
        }
        Ok(())
    }
}

// === impl GateRow ===

impl GateRow {
    fn broken(&self) -> Vec<String> {
        let (store, mode) = (self.store, self.mode);
        let shown = self.verdict.broken.iter().take(SHOWN_MAX);
        let promises = shown.map(|violation| {
            let (promise, work, seen) = (violation.promise, violation.work.0, &violation.seen);
            format!("{store} {mode}: {promise:?} broken, work {work}: {seen}")
        });
        let stuck = self.stuck.iter();
        let stuck = stuck.map(|what| format!("{store} {mode}: stuck after the heal: {what}"));
        promises.chain(stuck).collect()
    }

    fn of(deployment: &Deployment, log: &AttackLog, evidence: &Evidence, verdict: Verdict) -> Self {
        let count = |is: fn(&FaultKind) -> bool| {
            let injected = log.injector.injected.iter();
            injected.filter(|injection| is(&injection.kind)).count()
        };
        let cut = |line: &&Line| matches!(line, Line::Cut { .. });
        let handler_cuts = evidence.ledgers.values().flatten().filter(cut).count();
        let met = log
            .injector
            .injected
            .iter()
            .filter(|it| !it.open.is_empty())
            .count();
        Self {
            store: deployment.case.location.name(),
            mode: deployment.case.mode.name(),
            works: log.works as usize,
            storms: log.storms,
            faults: log.injector.injected.len() + handler_cuts,
            kills: [
                count(|what| matches!(what, FaultKind::Kill(Role::Gate(_)))),
                count(|what| matches!(what, FaultKind::Kill(Role::Broker))),
                count(|what| matches!(what, FaultKind::Kill(Role::Handler))),
            ],
            pauses: count(|what| matches!(what, FaultKind::Pause(_))),
            drains: count(|what| matches!(what, FaultKind::Drain)),
            cuts: count(|what| *what == FaultKind::Cut) + handler_cuts,
            blackholes: count(|what| *what == FaultKind::Blackhole),
            outages: count(|what| matches!(what, FaultKind::Outage)),
            jumps: count(|what| matches!(what, FaultKind::Clock)),
            in_flight: met + handler_cuts,
            ambiguous: verdict.counts.unknown + log.unclear,
            p99_to_end: trace::p99_to_end(evidence, log),
            ended_after: log.ended_after,
            verdict,
            stuck: log.stuck.clone(),
        }
    }
}

impl fmt::Display for GateRow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let CrashCounts {
            runs,
            succeeded,
            parked,
            by_fault,
            by_stall,
            ..
        } = self.verdict.counts;
        let extra = self.verdict.count(Promise::NoDuplicate);
        let lost = self.verdict.count(Promise::NoLoss);
        let other = self.verdict.broken.len() - extra - lost + self.stuck.len();
        let [gate, broker, handler] = self.kills;
        let mut line = format!("| {} | {} |", self.store, self.mode);
        for number in [
            self.works,
            self.storms,
            runs,
            succeeded,
            parked,
            self.faults,
        ] {
            write!(line, " {number} |")?;
        }
        write!(line, " {gate} / {broker} / {handler} |")?;
        for number in [
            self.pauses,
            self.drains,
            self.cuts,
            self.blackholes,
            self.outages,
            self.jumps,
            self.in_flight,
            self.ambiguous,
            by_fault,
            by_stall,
            extra,
            lost,
            other,
        ] {
            write!(line, " {number} |")?;
        }
        let (p99, all) = (self.p99_to_end.as_millis(), self.ended_after.as_millis());
        writeln!(f, "{line} {p99} ms | {all} ms |")
    }
}
